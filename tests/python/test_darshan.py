# SPDX-License-Identifier: Apache-2.0
"""Darshan logs as traces: the example logs that come with Darshan's own reader, imported and replayed."""

import importlib.util
import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import h5py
import numpy as np
import pytest

Iocast = Callable[..., CompletedProcess[str]]
pytestmark = pytest.mark.needs("darshan")
FOUND = importlib.util.find_spec("darshan")
LOGS = Path(FOUND.origin if FOUND and FOUND.origin else "darshan").parent
IOR, MANY, COUNTERS = (
    LOGS / "examples" / "example_logs" / name for name in ("ior_hdf5_example.darshan", "dxt.darshan", "example.darshan")
)


def segments(log: Path) -> list[tuple[str, int, int, int, float]]:
    """Kind, rank, offset, length and start of all that DXT recorded, read independently of the importer."""
    import darshan.backend.cffi_backend as backend

    handle = backend.log_open(str(log))
    found = []
    while (record := backend.log_get_record(handle, "DXT_POSIX", dtype="dict")) is not None:
        for kind in ("read", "write"):
            found += [
                (f"p{kind}", record["rank"], s["offset"], s["length"], s["start_time"])
                for s in record[f"{kind}_segments"]
            ]
    backend.log_close(handle)
    return found


def rows(trace: Path) -> dict[str, np.ndarray]:
    with h5py.File(trace) as file:
        names = {value: name for name, value in h5py.check_enum_dtype(file["kind"].dtype).items()}
        columns = {
            name: file[name][:]
            for name in ("rank", "kind", "dataset", "object", "offset", "size", "start_ns", "duration_ns")
        }
    columns["kind"] = np.array([names[k] for k in columns["kind"]])
    return columns


@pytest.mark.parametrize("log", [IOR, MANY], ids=lambda p: p.stem)
def test_every_segment_of_dxt_is_there(iocast: Iocast, log: Path, tmp_path: Path) -> None:
    done = iocast("import", "darshan", log, "--out", tmp_path / "ops.h5")
    assert done.returncode == 0, done.stderr
    assert "Reads and writes are those of DXT" in done.stdout
    columns = rows(tmp_path / "ops.h5")
    accesses = np.isin(columns["kind"], ("pread", "pwrite"))
    imported = sorted(
        zip(*(columns[name][accesses].tolist() for name in ("kind", "rank", "offset", "size")), strict=True)
    )
    assert imported == sorted(s[:4] for s in segments(log))
    first = min(s[4] for s in segments(log))
    assert columns["start_ns"][accesses].min() == round(first * 1e9)


@pytest.mark.parametrize(("log", "ranks"), [(IOR, 4), (MANY, 1)], ids=["ior_hdf5_example", "dxt"])
def test_the_trace_replays_and_leaves_nothing(
    iocast: Iocast, simulator: Path, log: Path, ranks: int, tmp_path: Path
) -> None:
    """Operation by operation: nothing is used before it is there, no file is read beyond its end, all is removed."""
    trace, dump = tmp_path / "ops.h5", tmp_path / "dump"
    assert iocast("import", "--format", "darshan", log, "--out", trace).returncode == 0
    done = subprocess.run(
        [
            simulator,
            "--platform",
            "local",
            "--workload",
            "replay",
            "--set",
            f"file={trace}",
            "--ppn",
            str(ranks),
            "--dump-ops",
            dump,
            "--json",
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert [p["name"] for p in json.loads(done.stdout)["phases"]] == [
        "setup",
        "precreate",
        "benchmark",
        "cleanup",
        "teardown",
    ]
    streams = [[line.split() for line in (dump / f"ops.{rank}").read_text().splitlines()] for rank in range(ranks)]
    datasets: set[str] = set()
    size: dict[tuple[str, str], int] = {}
    for phase in range(5):
        for stream in streams:
            starts = [i for i, op in enumerate(stream) if op[0] == "phase"] + [len(stream)]
            opened: set[tuple[str, str]] = set()
            for kind, dataset, item, length, offset, *_, flags in stream[starts[phase] + 1 : starts[phase + 1]]:
                file = (dataset, item)
                if kind == "mkdir":
                    datasets.add(dataset)
                    continue
                assert dataset in datasets
                if kind == "rmdir":
                    assert not any(d == dataset for d, _ in size)
                    datasets.remove(dataset)
                elif kind == "create":
                    assert file not in size
                    size[file] = int(length)
                elif kind == "open":
                    if int(flags) & 2:
                        size.setdefault(file, 0)
                    assert file in size and file not in opened
                    opened.add(file)
                    assert len(opened) <= 60
                elif kind == "close":
                    opened.remove(file)
                elif kind == "pwrite":
                    assert file in opened
                    size[file] = max(size[file], int(offset) + int(length))
                elif kind == "pread":
                    assert file in opened and int(offset) + int(length) <= size[file]
                elif kind == "unlink":
                    del size[file]
                else:
                    assert file in size
            assert not opened
    assert not size and not datasets


@pytest.mark.parametrize("ranks", [1, 4])
def test_the_trace_replays_on_a_file_system(
    iocast: Iocast,
    simulator: Path,
    bench: Path,
    mpirun: Callable[[int], list[str]],
    mpi_environment: dict[str, str],
    launch_check: None,
    ranks: int,
    tmp_path: Path,
) -> None:
    """The benchmark does what the simulator does, operation by operation, without a failure, and leaves nothing."""
    trace, root = tmp_path / "ops.h5", tmp_path / "root"
    root.mkdir()
    assert iocast("import", "darshan", IOR, "--out", trace).returncode == 0
    replay = ["--workload", "replay", "--set", f"file={trace}", "--json", "--dump-ops"]
    command = [*mpirun(ranks), str(bench), *replay, str(tmp_path / "real"), "--posix.root", str(root)]
    done = subprocess.run(command, capture_output=True, text=True, env=mpi_environment, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert sum(phase["errors"] for phase in json.loads(done.stdout)["phases"]) == 0
    assert list(root.iterdir()) == []
    subprocess.run(
        [simulator, "--platform", "local", *replay, tmp_path / "simulated", "--ppn", str(ranks)],
        capture_output=True,
        check=True,
        timeout=120,
    )
    for rank in range(ranks):
        assert (tmp_path / "real" / f"ops.{rank}").read_bytes() == (tmp_path / "simulated" / f"ops.{rank}").read_bytes()


def test_counters_alone_are_marked_as_approximate(iocast: Iocast, tmp_path: Path) -> None:
    done = iocast("import", "darshan", COUNTERS, "--out", tmp_path / "ops.h5", "--json")
    assert done.returncode == 0, done.stderr
    assert any("made up from counters" in note for note in json.loads(done.stdout)["notes"])
    import darshan.backend.cffi_backend as backend

    handle = backend.log_open(str(COUNTERS))
    totals = {"READS": 0, "WRITES": 0, "BYTES_READ": 0, "BYTES_WRITTEN": 0}
    names = backend.log_get_name_records(handle)
    while (record := backend.log_get_record(handle, "POSIX", dtype="dict")) is not None:
        if not str(names.get(record["id"], "")).startswith(("/dev/", "/proc/", "/sys/", "<")):
            for name in totals:
                totals[name] += max(0, int(record["counters"][f"POSIX_{name}"]))
    backend.log_close(handle)
    columns = rows(tmp_path / "ops.h5")
    for kind, number, size in (("pread", "READS", "BYTES_READ"), ("pwrite", "WRITES", "BYTES_WRITTEN")):
        assert np.count_nonzero(columns["kind"] == kind) == totals[number]
        assert columns["size"][columns["kind"] == kind].sum() == totals[size]
    with h5py.File(tmp_path / "ops.h5") as file:
        assert json.loads(file.attrs["about"])["approximate"]


def test_refusals(iocast: Iocast, tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no log")
    (tmp_path / "cut.darshan").write_bytes(IOR.read_bytes()[:1500])
    for log, word in (
        (tmp_path / "text", "no Darshan log"),
        (tmp_path / "none", "There is no file"),
        (tmp_path / "cut.darshan", "can't be read"),
    ):
        done = iocast("import", "darshan", log, "--out", tmp_path / "ops.h5")
        assert done.returncode == 2 and word in done.stderr, done.stderr
        assert not (tmp_path / "ops.h5").exists()
    (tmp_path / "there.h5").write_text("mine")
    done = iocast("import", "darshan", IOR, "--out", tmp_path / "there.h5")
    assert done.returncode == 2 and (tmp_path / "there.h5").read_text() == "mine"


def test_the_text_of_the_parser_is_the_log_itself(tmp_path: Path) -> None:
    """Counters written as darshan-parser does give the trace of the log that they are of."""
    from iocast.errors import InputError
    from iocast.importers.darshan_log import import_log

    import darshan.backend.cffi_backend as backend

    handle = backend.log_open(str(COUNTERS))
    job, names = backend.log_get_job(handle), backend.log_get_name_records(handle)
    lines = [
        f"# darshan log version: 3.10\n# nprocs: {job['nprocs']}\n# run time:"
        f" {job['run_time']}\n#<module>\t<rank>\t<record id>\t<counter>\t<value>"
    ]
    while (record := backend.log_get_record(handle, "POSIX", dtype="dict")) is not None:
        for name, value in {**record["counters"], **record["fcounters"]}.items():
            lines.append(
                f"POSIX\t{record['rank']}\t{record['id']}\t{name}\t{value}\t{names[record['id']]}\t/scratch\tlustre"
            )
    backend.log_close(handle)
    (tmp_path / "parsed.txt").write_text("\n".join(lines) + "\n")
    assert (
        import_log(tmp_path / "parsed.txt", tmp_path / "text.h5")["operations"]
        == import_log(COUNTERS, tmp_path / "log.h5")["operations"]
    )
    text, log = rows(tmp_path / "text.h5"), rows(tmp_path / "log.h5")
    assert all((text[name] == log[name]).all() for name in log)
    (tmp_path / "cut.txt").write_text("\n".join(lines)[:-500])
    with pytest.raises(InputError, match="cut.txt:"):
        import_log(tmp_path / "cut.txt", tmp_path / "cut.h5")


def test_a_log_in_the_place_of_results_is_sent_to_its_import(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And what lacks for that is installed where iocast runs."""
    from iocast.errors import InputError
    from iocast.forecasts.sources import runs_of
    from iocast.importers.darshan_log import import_log

    log = tmp_path / "program.darshan"
    log.write_bytes(b"3.41".ljust(8, b"\0") + (6567223).to_bytes(8, "little"))
    for sources in ([log], [tmp_path]):
        with pytest.raises(InputError, match=r"iocast import darshan \S+ --out ops\.h5"):
            runs_of(sources, tmp_path / "out", {})
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(InputError, match=re.escape(f"{sys.executable} -m pip install darshan h5py")):
        import_log(log, tmp_path / "ops.h5")
