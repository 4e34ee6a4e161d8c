# SPDX-License-Identifier: Apache-2.0
"""What every importer must do with every sample of its format; a new importer needs a folder in tests/samples."""

import contextlib
import gc
import itertools
import json
import math
import random
import re
import shutil
import time
from pathlib import Path
from typing import Any

import pytest
from schedule import mostly_long

from iocast.errors import InputError
from iocast import importers
from iocast.importers import all_importers, import_files, record
from iocast.importers.series import import_series
from iocast.importers.source import Source
from iocast.report.page import write_numbers
from iocast.report.sources import read_sources

SAMPLES = Path(__file__).resolve().parents[1] / "samples"
IMPORTERS = all_importers()
LISTED = [
    (name, path)
    for name in IMPORTERS
    for path in sorted((SAMPLES / name).iterdir())
    if not path.name.startswith("lat-")
]
NOTHING_GIVEN = {"ranks": None, "nodes": None, "label": None}
NAMELESS = {
    "s3-main.csv": {"ranks": 4},
    "aggregate.txt": {"ranks": 4},
    "rocksdb.txt": {"ranks": 4},
    "md_stats.txt": {"ranks": 4},
    "job_stats.yaml": {"ranks": 4},
    "mountstats.txt": {"ranks": 4},
    "nfsd.txt": {"ranks": 4},
    **dict.fromkeys(
        ("profile.txt", "profile.xml", "statements.csv", "database.csv", "pgbouncer.csv", "mds.txt", "osd.txt"),
        {"ranks": 4},
    ),
    **dict.fromkeys(("client.txt", "server.txt", "production.txt"), {"ranks": 4}),
    **dict.fromkeys(("garage.txt", "minio.txt", "ceph-rgw.txt"), {"ranks": 4}),
}
"""Options that samples need, whose formats don't say how many ranks there were."""
OTHER_RANKS = {
    "dlio/summary.json": (r'("num_accelerators":) 4', r"\1 8"),
    "elbencho/cori-gpu.csv": (r",dir,1,4,1,", ",dir,1,8,1,"),
    "elbencho/cori-gpu.json": (r'("threads": *"?)\d+', r"\g<1>3"),
    "elbencho/live.csv": (r",8,3,,$", ",9,3,,"),
    "elbencho/resfile.txt": (r'("--threads") "4"', r'\1 "6"'),
    "filebench/varmail.txt": (r"(Starting) \d+", r"\1 9"),
    "fio/text.txt": (r"jobs=\d+", "jobs=3"),
    "fio/two-groups.json": (r'("numjobs" *: *")\d+', r"\g<1>3"),
    "fs_mark/verbose.txt": (r"\b2 thread", "5 thread"),
    "ior/beegfs.json": (r'("tasks":) 48', r"\1 96"),
    "ior/no-summary.txt": (r"^(tasks +:) \d+", r"\1 4"),
    "iozone/throughput.txt": (r"(throughput for\s+)4\b", r"\g<1>9"),
    "md-workbench/mistral-current.txt": (r"total objects: 300000", "total objects: 600000"),
    "mdtest/stonewall.log": (r"\b41(?= t|000000 f)", "82"),
    "pgbench/tpcb.txt": (r"(number of clients:) 10", r"\1 20"),
    "rados/write.txt": (r"(Maintaining) 16", r"\1 32"),
    "smallfile/create.txt": (r"(total threads =) 2", r"\1 4"),
    "sysbench/rndrw.txt": (r"(Number of threads:) 4", r"\1 9"),
    "table/mistral.csv": (r"^(\d+),(\d+)", r"\g<1>0,\2"),
    "training-table/measured.csv": (r"^(lab,unet3d,h100,\d+,\d+)", r"\g<1>0"),
    "warp/get.json": (r'("concurrency":) 8', r"\1 16"),
    "ycsb/workload-a.txt": (r"-threads 8", "-threads 9"),
}
"""How the ranks of a sample become others, for each importer whose files print them."""
COUNTERS = {"ceph", "gluster", "lustre", "nfs", "nfsd", "postgresql", "prometheus"}
"""Importers of counters of servers and mounts, a snapshot below the other."""
NO_RANKS = {"cosbench", "db_bench", "dd", "hacc", "io500", "postmark", *COUNTERS}
"""Importers whose files are of one process, print no ranks, or hold one run."""
LABELS = (
    "[prterun-host-1@1,0]<stdout>: ",
    "[1,0]<stdout>:",
    "0: ",
    "[0] ",
    "node01: ",
    "2024-01-02T03:04:05.123Z ",
    "Jan  2 03:04:05 ",
    "web-1  | ",
)
PHASE_KEYS = {
    "name", "repeat", "start_seconds", "seconds", "operations", "errors", "rate", "balance", "responding_seconds",
    "think_asked_seconds",
    "think_actual_seconds", "latency", "errors_by_operation", "timeline", "slowest", "rank_seconds",
}  # fmt: skip


def numbers(value: Any) -> list[float]:
    if isinstance(value, dict):
        return [n for v in value.values() for n in numbers(v)]
    if isinstance(value, list):
        return [n for v in value for n in numbers(v)]
    return [value] if isinstance(value, int | float) and not isinstance(value, bool) else []


def runs(out: Path) -> list[dict[str, Any]]:
    return [json.loads(p.read_text()) for p in sorted(out.rglob("run.json"))]


@pytest.mark.parametrize("name", IMPORTERS)
def test_every_importer_has_a_sample(name: str) -> None:
    assert any((SAMPLES / name).iterdir())
    assert IMPORTERS[name].summary and IMPORTERS[name].takes


@pytest.mark.parametrize(("name", "sample"), LISTED, ids=lambda v: v.name if isinstance(v, Path) else v)
def test_samples_are_recognised_as_theirs_alone(name: str, sample: Path) -> None:
    assert [i.name for i in IMPORTERS.values() if i.recognises(Source(sample))] == [name]


@pytest.mark.parametrize(("name", "sample"), LISTED, ids=lambda v: v.name if isinstance(v, Path) else v)
def test_samples_become_run_directories(name: str, sample: Path, tmp_path: Path) -> None:
    written = import_files([sample], tmp_path / "run", None, NOTHING_GIVEN | NAMELESS.get(sample.name, {}))
    assert written and all((path / "latency.hlog").is_file() for path in written)
    for run in runs(tmp_path / "run"):
        assert (
            run["kind"] == "run"
            and run["source"] == "imported"
            and run["status"] == "complete"
            and run["imported"]["format"] == name
        )
        assert run["placement"]["ranks"] >= 1 and run["phases"]
        assert all(math.isfinite(n) for n in numbers(run)) and all(
            n >= 0 for phase in run["phases"] for n in numbers(phase)
        )
        missing = run["imported"]["missing"]
        assert all(why.endswith(".") for why in missing.values()) and all(w.endswith(".") for w in run["warnings"])
        unexplained = {
            key for key in ("command", "started", "environment", "seed") if run[key] is None
        } - missing.keys()
        assert not unexplained, missing
        for phase in run["phases"]:
            assert set(phase) >= PHASE_KEYS
            assert phase["rate"] is not None or phase.get("bytes_per_second") is not None
            if phase["rate"] is not None and phase["operations"] and phase["seconds"]:
                assert phase["rate"] == pytest.approx(phase["operations"] / phase["seconds"], rel=0.02, abs=1)
            # Every null has a reason in `missing`.
            for key in ("timeline", "slowest", "errors", "operations"):
                if phase[key] is None and not (key == "operations" and phase["name"].startswith("tree")):
                    assert any(f"phases[].{key}" in m for m in missing), (key, missing)
    write_numbers(written, tmp_path / "report.json")
    # The histograms say what the summaries say.
    for run in read_sources(written).runs:
        for (phase_name, op), distribution in run.distributions.items():
            stated = [p["latency"][op] for p in run.phases if p["name"] == phase_name]
            assert distribution.total == sum(s["count"] for s in stated)
            if len(stated) == 1:
                assert distribution.quantiles([0.5])[0] == pytest.approx(stated[0]["q50"], rel=2e-3)


@pytest.mark.parametrize(
    ("name", "sample"), [(n, s) for n, s in LISTED if s.is_file()], ids=lambda v: v.name if isinstance(v, Path) else v
)
def test_what_was_cut_off_is_refused_or_complete(name: str, sample: Path, tmp_path: Path) -> None:
    """Cut anywhere, a file is refused with its line, or what remains says the same."""
    reported = NOTHING_GIVEN | NAMELESS.get(sample.name, {})
    import_files([sample], tmp_path / "whole", name, reported)
    whole = [{k: v for k, v in run.items() if k != "imported"} for run in runs(tmp_path / "whole")]
    content = sample.read_bytes()
    places = random.Random(1).sample(range(len(content)), min(60, len(content)))
    for number, place in enumerate([*places, *range(len(content) - 12, len(content))]):
        cut = tmp_path / sample.name
        cut.write_bytes(content[:place])
        try:
            import_files([cut], tmp_path / str(number), name, reported)
        except InputError as error:
            assert str(cut) in str(error) and ":" in str(error) and str(error).endswith("."), error
            assert not (tmp_path / str(number)).exists()
            continue
        entries = [{k: v for k, v in run.items() if k != "imported"} for run in runs(tmp_path / str(number))]
        complete_phases = [[phase for phase in run["phases"]] for run in whole]
        # A line is a worker's, an interval's, an operation's or a state of its own; no line says that it is the last.
        if name in ("cosbench", "db_bench", *COUNTERS) or sample.name == "live.csv":
            assert content[place - 1 : place] == b"\n" or content[place : place + 1] == b"\n", place
        elif name in ("elbencho", "hacc"):  # each phase is appended by itself: earlier ones are whole
            assert all(any(phase in phases for phases in complete_phases) for run in entries for phase in run["phases"])
        elif name in ("table", "training-table"):  # so is each line
            assert all(run in whole for run in entries), place
        else:
            assert entries == whole, place


@pytest.mark.parametrize("name", IMPORTERS)
def test_rubbish_is_refused(name: str, tmp_path: Path) -> None:
    rubbish = {
        "empty": b"",
        "binary": bytes(range(256)) * 20,
        "words": b"hello\nworld\n",
        "json": b'{"a": 1}\n',
        "brace": b"{\n",
    }
    for title, content in rubbish.items():
        file = tmp_path / title
        file.write_bytes(content)
        with pytest.raises(InputError, match=str(file)):
            import_files([file], tmp_path / "out", name, NOTHING_GIVEN)
        with pytest.raises(InputError, match=str(file)):
            import_files([file], tmp_path / "out", None, NOTHING_GIVEN)
    assert not (tmp_path / "out").exists()


def test_formats_are_not_mixed_up(tmp_path: Path) -> None:
    """Every sample read as every other format is refused."""
    for (name, sample), other in itertools.product(LISTED, IMPORTERS):
        if other != name:
            with pytest.raises(InputError):
                import_files([sample], tmp_path / "out", other, NOTHING_GIVEN)


def test_directories_are_written_whole_or_not_at_all(tmp_path: Path) -> None:
    sample = SAMPLES / "fs_mark" / "verbose.txt"
    (tmp_path / "there").mkdir()
    with pytest.raises(InputError, match="exists already"):
        import_files([sample], tmp_path / "there", None, NOTHING_GIVEN)
    copy = tmp_path / "copy.txt"
    shutil.copy(sample, copy)
    import_files([copy], tmp_path / "run", None, NOTHING_GIVEN)
    assert {p.name for p in tmp_path.iterdir()} == {"there", "copy.txt", "run"}


def test_an_import_that_ends_early_leaves_no_part_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Several runs are there together or not at all, whichever of them can't be written."""
    folder = tmp_path / "results"
    folder.mkdir()
    for number in range(3):
        shutil.copy(SAMPLES / "fs_mark" / "verbose.txt", folder / f"{number}.txt")
        with (folder / f"{number}.txt").open("a") as file:
            file.write("\n" * number)
    whole = record.write_json
    for ended in range(4):
        left = itertools.count()

        def write(path: Path, content: Any, ended: int = ended, left: Any = left) -> None:
            if next(left) == ended:
                raise KeyboardInterrupt
            whole(path, content)

        monkeypatch.setattr(record, "write_json", write)
        with pytest.raises(KeyboardInterrupt):
            import_series([folder], tmp_path / "out")
        assert {path.name for path in tmp_path.iterdir()} == {"results"}
    monkeypatch.undo()
    assert len(import_series([folder], tmp_path / "out")) == 3


def test_a_set_that_lost_runs_is_called_that(tmp_path: Path) -> None:
    for name in ("fs_mark/verbose.txt", "postmark/report.txt", "pgbench/tpcb.txt"):
        shutil.copy(SAMPLES / name, tmp_path)
    out = tmp_path / "out"
    written = import_series([tmp_path / "*.txt"], out)
    assert not read_sources([out]).notes
    shutil.rmtree(written[0])
    [note] = read_sources([out]).notes
    assert "1 of the 3 runs" in note and written[0].name in note


FILES = [(name, sample) for name, sample in LISTED if sample.is_file()]


def results(file: Path, out: Path) -> list[tuple[Any, ...]]:
    """What each phase of the runs in a file is, whichever of its repeats: placement, name and numbers."""
    import_files([file], out, None, NOTHING_GIVEN | NAMELESS.get(file.name, {}))
    keys = ("name", "rate", "seconds", "operations", "bytes_per_second")
    found = [
        (run["placement"]["ranks"], *(phase.get(key) for key in keys)) for run in runs(out) for phase in run["phases"]
    ]
    return sorted(found, key=str)


def test_each_importer_says_how_ranks_are_changed() -> None:
    assert {name.partition("/")[0] for name in OTHER_RANKS} == set(IMPORTERS) - NO_RANKS


@pytest.mark.parametrize(("name", "sample"), FILES, ids=lambda v: v.name if isinstance(v, Path) else v)
def test_two_runs_in_one_log_are_two_runs_or_are_refused(name: str, sample: Path, tmp_path: Path) -> None:
    text = sample.read_text()
    old, new = OTHER_RANKS.get(f"{name}/{sample.name}", ("$^", ""))
    changed = re.sub(old, new, text, flags=re.MULTILINE)
    assert (changed != text) == (new != "")
    for folder, content in (("first", text), ("second", changed), ("both", text + changed)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / sample.name).write_text(content)
    first, second = (results(tmp_path / n / sample.name, tmp_path / f"{n}-out") for n in ("first", "second"))
    try:
        both = results(tmp_path / "both" / sample.name, tmp_path / "both-out")
    except InputError as error:
        assert "cut off" not in str(error)
    else:
        assert both == sorted([*first, *second], key=str)


@pytest.mark.parametrize(("name", "sample"), FILES, ids=lambda v: v.name if isinstance(v, Path) else v)
def test_labels_of_a_launcher_and_the_encoding_change_nothing(name: str, sample: Path, tmp_path: Path) -> None:
    text = sample.read_text()
    whole = results(sample, tmp_path / "whole")
    lines = text.split("\n")[:-1]
    copies = ["".join(f"{label}{line}\n" for line in lines).encode() for label in LABELS if len(lines) > 2]
    copies += [("\ufeff" + text.replace("\n", "\r\n")).encode("utf-16-le"), text.encode("utf-16-be")]
    for number, content in enumerate(copies):
        (tmp_path / str(number)).mkdir()
        copy = tmp_path / str(number) / sample.name
        copy.write_bytes(content)
        assert results(copy, tmp_path / f"{number}-out") == whole, content[:60]


HOSTILE = (" ", "a", "a:", "1.", "\n", " \n", "a b=1, ")


@pytest.mark.parametrize(
    ("name", "sample"),
    mostly_long(
        FILES,
        list({(name, sample.suffix): (name, sample) for name, sample in FILES}.values()),
        "another sample of a reader",
    ),
    ids=lambda v: v.name if isinstance(v, Path) else v,
)
def test_hostile_lines_take_time_in_proportion(name: str, sample: Path, tmp_path: Path) -> None:
    """Twice the blanks, letters or empty lines take twice the processor time, not four times."""
    text = sample.read_text()
    copy = tmp_path / sample.name

    def used(noise: str) -> float:
        first, _, rest = text.partition("\n")
        copy.write_text(f"{first}\n{noise}\n{rest}{noise}\n")
        gc.disable()  # a collection walks all that the tests of this process left, and is no reader's time
        try:
            begin = time.process_time()
            with contextlib.suppress(InputError):
                source = Source(copy)
                if IMPORTERS[name].recognises(source):
                    importers.read_sources(IMPORTERS[name], [source])
            return time.process_time() - begin
        finally:
            gc.enable()

    for part in HOSTILE:
        few = used(part * (10_000 // len(part)))
        many = min(used(part * (40_000 // len(part))) for _ in range(2))
        # Four times the input: a reader quadratic in it takes 16 times as long, one in proportion 4 times.
        assert many < 8 * few + 0.5, (part, few, many)
