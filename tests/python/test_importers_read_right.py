# SPDX-License-Identifier: Apache-2.0
"""What holds for every importer and every sample: second readers agree, numbers say where they come from, logs may be
glued and noisy."""

import json
import re
import subprocess
import sys
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from typing import Any

import pytest
import yaml
from programs import REPOSITORY

from iocast.importers.series import series_alarms
from iocast.errors import InputError
from iocast.importers import all_importers, darshan_log, import_files
from iocast.importers.record import numbers_of

SAMPLES = REPOSITORY / "tests" / "samples"
NOISE = "[c01:4711] mca: base: component_find: unable to open a library (ignored)\n" * 400
WHOLE = sorted(
    path for path in SAMPLES.glob("*/*") if path.is_file() and path.suffix != ".md" and not path.name.startswith("lat-")
)  # fmt: skip
TEXTS = [
    path
    for path in WHOLE
    if path.parent.name in ("mdtest", "ior", "fio", "md-workbench", "elbencho") and path.suffix in (".txt", ".log")
]


def imported(files: list[Path], out: Path) -> list[dict[str, Any]]:
    try:
        made = import_files(files, out)
    except InputError as error:
        if "--ranks" not in str(error):
            raise
        made = import_files(files, out, None, {"ranks": 4})
    return [json.loads((path / "run.json").read_text()) for path in made]


def content(run: dict[str, Any]) -> dict[str, Any]:
    """A run without what says in which file it stood."""
    return {key: value for key, value in run.items() if key not in ("imported", "label", "warnings")}


def name_of(path: Path) -> str:
    return str(path.relative_to(SAMPLES))


def test_second_readers_agree_on_all_samples() -> None:
    done = subprocess.run(
        [sys.executable, REPOSITORY / "validation" / "importers", SAMPLES, "--list"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    last = done.stdout.splitlines()[-1].split()
    assert last[0] == "all" and int(last[1]) > 30 and float(last[-2]) >= 95, done.stdout


def _module(path: Path) -> Any:
    spec = spec_from_loader("judge_of_importers", SourceFileLoader("judge_of_importers", str(path)))
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_second_readers_see_a_wrong_number(tmp_path: Path) -> None:
    """A judge that can't fail is none: what an importer says of one file is held against another."""
    judge = _module(REPOSITORY / "validation" / "importers")
    path = SAMPLES / "mdtest" / "stonewall.log"
    reading = judge.read(path)
    assert judge.judge(path, reading, tmp_path).outcome == "right"
    reading.runs[0].put("file-create", 0, operations=41_000_000.0)
    assert judge.judge(path, reading, tmp_path).outcome == "wrong"


@pytest.mark.parametrize("sample", WHOLE, ids=name_of)
def test_every_number_says_where_it_comes_from(sample: Path, tmp_path: Path) -> None:
    for run in imported([sample], tmp_path / "run"):
        origin = run["imported"]["origin"]
        for number, phase in enumerate(run["phases"]):
            for key in numbers_of(phase):
                where = origin[f"phases[{number}].{key}"]
                assert re.match(rf"{re.escape(str(sample))}:\d+", where), (key, where)
                _stands_there(phase, key, where, sample)
        where = origin.get("placement.ranks", "")  # of a server's counters it need not be known
        assert f"{sample}" in where or where == "--ranks" or run["placement"]["ranks"] is None


def _stands_there(phase: dict[str, Any], key: str, where: str, sample: Path) -> None:
    """A number of text output that is not derived stands in its line, but for its unit."""
    value: Any = phase
    for part in key.split(".") if not key.startswith("latency.") else []:
        value = value[part]
    exact = re.fullmatch(r".*:(\d+)", where)
    if (
        exact is None
        or sample.suffix not in (".txt", ".log")
        or key not in ("rate", "seconds", "operations", "bytes_per_second")
    ):
        return
    line = sample.read_text().splitlines()[int(exact[1]) - 1]
    tokens = [float(text) for text in re.findall(r"\d+(?:\.\d+)?", line)]
    scales = (1, 1e-3, 1e3, 2**10, 2**20, 2**30, 4, 2)
    printed = any(abs(value - token * scale) <= 2e-3 * abs(value) for token in tokens for scale in scales)
    assert printed or sample.parent.name in ("md-workbench", "fs_mark", "postmark"), (key, value, line)


@pytest.mark.parametrize("sample", TEXTS, ids=name_of)
def test_noise_before_the_output_changes_nothing(sample: Path, tmp_path: Path) -> None:
    (tmp_path / sample.name).write_text(NOISE + sample.read_text())
    assert [content(r) for r in imported([tmp_path / sample.name], tmp_path / "noisy")] == [
        content(r) for r in imported([sample], tmp_path / "own")
    ]


@pytest.mark.parametrize("tool", sorted({path.parent.name for path in TEXTS}))
def test_a_log_of_several_runs_is_those_runs(tool: str, tmp_path: Path) -> None:
    """Each with its own command, start, parameters and nodes."""
    texts = [path for path in TEXTS if path.parent.name == tool and "2016" not in path.name]
    (tmp_path / "log.txt").write_text("".join(path.read_text() for path in [*texts, texts[0]]))
    together = imported([tmp_path / "log.txt"], tmp_path / "together")
    alone = [run for i, path in enumerate([*texts, texts[0]]) for run in imported([path], tmp_path / f"alone-{i}")]
    assert [content(run) for run in together] == [content(run) for run in alone]


@pytest.mark.parametrize(
    "sample", [SAMPLES / "mdtest" / "stonewall.log", SAMPLES / "ior" / "no-summary.txt"], ids=name_of
)
def test_a_run_that_was_cut_off_costs_no_other(sample: Path, tmp_path: Path) -> None:
    whole, half = sample.read_text(), "\n".join(sample.read_text().splitlines()[:14])
    (tmp_path / "log.txt").write_text(whole + half + "\n")
    (run,) = imported([tmp_path / "log.txt"], tmp_path / "run")
    assert content(run) == content(imported([sample], tmp_path / "own")[0])
    (tmp_path / "half.txt").write_text(half + "\n")
    with pytest.raises(InputError, match="half.txt:"):
        imported([tmp_path / "half.txt"], tmp_path / "none")


def test_two_json_documents_of_fio_are_two_runs(tmp_path: Path) -> None:
    one = (SAMPLES / "fio" / "two-groups.json").read_text()
    (tmp_path / "both.json").write_text(one + (SAMPLES / "fio" / "version-2.json").read_text())
    first, _, second = imported([tmp_path / "both.json"], tmp_path / "runs")
    assert (first["tool"]["version"], second["tool"]["version"]) == ("3.33", "2.2.10")
    (tmp_path / "cut.json").write_text(one + one[:3000])
    run, _ = imported([tmp_path / "cut.json"], tmp_path / "cut")
    assert "cut off" in " ".join(run["warnings"])


def test_each_run_lists_its_own_files(tmp_path: Path) -> None:
    files = [SAMPLES / "mdtest" / "archer-own-directories.log", SAMPLES / "mdtest" / "stonewall.log"]
    runs = imported(files, tmp_path / "runs")
    assert [[f["name"] for f in run["imported"]["files"]] for run in runs] == [[f.name] for f in files]


def test_after_a_stonewall_operations_are_those_that_were_done(tmp_path: Path) -> None:
    """41 tasks on 3 nodes: the longest rank made 22050 files, not the million requested."""
    (run,) = imported([SAMPLES / "mdtest" / "stonewall.log"], tmp_path / "run")
    create = run["phases"][0]
    assert create["operations"] == 22050 * 41 and create["seconds"] == 306.458
    assert create["operations"] == pytest.approx(create["rate"] * create["seconds"], rel=1e-3)
    assert run["placement"]["ranks"] == 41 and run["placement"]["nodes"] == 3
    assert run["placement"]["ranks_per_node"] * 3 == pytest.approx(41)  # uneven
    # Without the line and without times nothing tells the number; it is not the one requested.
    text = (SAMPLES / "mdtest" / "stonewall.log").read_text()
    (tmp_path / "old.txt").write_text(re.sub(r"(?s)Continue stonewall.*?\n|SUMMARY time.*(?=-- finished)", "", text))
    (run,) = imported([tmp_path / "old.txt"], tmp_path / "old")
    assert (
        run["phases"][0]["operations"] is None
        and run["phases"][0]["seconds"] is None
        and "phases[].operations" in run["imported"]["missing"]
    )


def test_files_requested_are_those_done_where_no_stonewall_could_end_them(tmp_path: Path) -> None:
    """-W 0 is no stonewall; and a phase whose file of -x could not be read did all that was requested."""
    text = re.sub(
        r"(?s)Continue stonewall.*?\n|SUMMARY time.*(?=-- finished)",
        "",
        (SAMPLES / "mdtest" / "stonewall.log").read_text(),
    )
    stat = text.replace("'-C' '-Y' '-W' '300'", "'-T'").replace("41000000 files\n", "41000000 files\n{}")
    unread = stat.format("WARNING: could not read stonewall status file\n")
    for changed, operations in (
        (text.replace("'300'", "'0'"), 41_000_000),
        (unread, 41_000_000),
        (stat.format(""), None),
    ):
        (tmp_path / "log.txt").write_text(changed)
        (run,) = imported([tmp_path / "log.txt"], tmp_path / str(len(list(tmp_path.iterdir()))))
        assert run["phases"][0]["operations"] == operations


def test_a_summary_without_any_rate_is_refused_for_that(tmp_path: Path) -> None:
    text = (SAMPLES / "mdtest" / "stonewall.log").read_text().replace("2950.000", "0.000").replace("20.000", "0.000")
    (tmp_path / "log.txt").write_text(text)
    with pytest.raises(InputError, match=r"log.txt:16: every rate of the summary is 0.000"):
        imported([tmp_path / "log.txt"], tmp_path / "run")


@pytest.mark.parametrize("block", ["225008m", "1100g", "11000m", "130000k"])
def test_bytes_of_ior_are_exact_where_sizes_are_printed_rounded(block: str, tmp_path: Path) -> None:
    """ "219.73 GiB" is a rounded block size; the command, or else the column block(KiB), has it exactly."""
    text = (SAMPLES / "ior" / "beegfs.txt").read_text()
    exact = int(block[:-1]) * {"k": 2**10, "m": 2**20, "g": 2**30}[block[-1]]
    unit, name = next((2**p, n) for p, n in ((40, "TiB"), (30, "GiB"), (20, "MiB")) if exact >= 2**p)
    text = text.replace("-b 128m", f"-b {block}").replace("128 MiB", f"{exact / unit:.2f} {name}")
    text = text.replace(" 131072 ", f" {exact // 1024} ")
    for rate, seconds in (("178.86", "34.35"), ("97.14", "63.25")):
        text = text.replace(f" {seconds}  ", f" {48 * exact / 2**20 / float(rate):.2f}  ")
    for number, changed in enumerate((text, text.replace(f"-b {block}", "-f script"))):
        (tmp_path / "log.txt").write_text(changed)
        (run,) = imported([tmp_path / "log.txt"], tmp_path / str(number))
        assert [phase["bytes"] for phase in run["phases"]] == [48 * exact] * 2
        assert run["workload"]["parameters"]["block_size"] == exact


def test_result_txt_without_times_and_what_find_counted(tmp_path: Path) -> None:
    """At verbosity 0 result.txt has scores alone; find's rate is of its total-files in the time of find.csv."""
    text = (SAMPLES / "io500" / "tianhe" / "result.txt").read_text()
    text = re.sub(r"t_(start|delta|end) .*\n", "", text)
    found = "[find]\nfound           = 7\ntotal-files     = 433371\n"
    (tmp_path / "result.txt").write_text(text.replace("[find]\n", found))
    (tmp_path / "find.csv").write_text("runtime: 0.270350 rate: 1603.0\nrank, errors\n")
    (run,) = imported([tmp_path], tmp_path / "run")
    assert {phase["seconds"] for phase in run["phases"]} == {None} and "phases[].seconds" in run["imported"]["missing"]
    assert all(phase["rate"] or phase["bytes_per_second"] for phase in run["phases"])
    (find,) = (phase for phase in run["phases"] if phase["name"] == "find")
    assert find["counted"] == {"operations": 433371, "seconds": 0.27035}
    number = next(n for n, phase in enumerate(run["phases"]) if phase["name"] == "find")
    origin = run["imported"]["origin"]
    assert origin[f"phases[{number}].counted.seconds"] == f"{tmp_path}/find.csv:1"
    assert "/result.txt:" in origin[f"phases[{number}].counted.operations"]


def test_a_stonewall_that_contradicts_rate_and_time_is_reported(tmp_path: Path) -> None:
    text = (SAMPLES / "mdtest" / "stonewall.log").read_text().replace("max: 22050", "max: 22950")
    (tmp_path / "log.txt").write_text(text)
    (run,) = imported([tmp_path / "log.txt"], tmp_path / "run")
    assert (
        run["phases"][0]["operations"] == pytest.approx(2950 * 306.458, rel=1e-3) and "log.txt:10" in run["warnings"][0]
    )


def test_milliseconds_of_a_summary_are_recognised_by_the_clock(tmp_path: Path) -> None:
    text = (SAMPLES / "mdtest" / "stonewall.log").read_text()
    (tmp_path / "ms.txt").write_text(text.replace(" 306.458", " 306458.000").replace(" 0.050", " 50.000"))
    (run,) = imported([tmp_path / "ms.txt"], tmp_path / "run")
    assert run["phases"][0]["seconds"] == pytest.approx(306.458) and run["phases"][0]["operations"] == 904050


def test_transfer_sizes(tmp_path: Path) -> None:
    from iocast.importers.ior import transfer_size

    assert [
        transfer_size(f"ior -w {t} -b 1g") for t in ("-t=4096", "-t 1M", "-t 512kb", "-t 47008", "-t1m", "-t 256k")
    ] == [4096, 2**20, 2**19, 47008, 2**20, 2**18]
    (run,) = imported([SAMPLES / "ior" / "no-summary.txt"], tmp_path / "run")
    write = run["phases"][0]
    assert write["transfer_size"] == run["workload"]["parameters"]["transfer_size"] == 47008
    assert write["bytes"] == 41000 * 41 * 47008 and write["operations"] == 41000 * 41


def test_what_is_printed_beside_the_measurement_is_no_parameter(tmp_path: Path) -> None:
    """Repeats that differ in a score, a file size that follows from others, or the placement are repeats."""
    for sample in (SAMPLES / "io500" / "tianhe", SAMPLES / "ior" / "beegfs.txt", SAMPLES / "elbencho" / "cori-gpu.csv"):
        (run,) = imported([sample], tmp_path / sample.stem)
        assert not {"score", "aggregate_filesize", "threads", "hosts"} & set(run["workload"]["parameters"])
    assert run["workload"]["parameters"]["block_size"]


def test_first_generation_of_io500(tmp_path: Path) -> None:
    (run,) = imported([SAMPLES / "io500" / "first-generation"], tmp_path / "run")
    phases = {p["name"]: p for p in run["phases"]}
    assert list(phases) == ["ior-easy-write", "mdtest-easy-write", "ior-hard-write", "find"]
    assert (
        phases["ior-easy-write"]["bytes_per_second"] == pytest.approx(4.2 * 2**30)
        and phases["mdtest-easy-write"]["rate"] == 12_500
    )
    assert run["placement"] == {"ranks": 20, "nodes": 10, "ranks_per_node": 2}
    assert phases["mdtest-easy-write"]["counted"] == {"operations": 20 * 190_000, "seconds": pytest.approx(304.0)}


def test_a_package_with_an_empty_summary_or_in_an_outer_folder(tmp_path: Path) -> None:
    package = tmp_path / "outer" / "results" / "2024.01.01-00.00.00"
    package.mkdir(parents=True)
    (package / "result.txt").write_text(
        "procs           = 40\n" + (SAMPLES / "io500" / "tianhe" / "result.txt").read_text()
    )
    (run,) = imported([package], tmp_path / "alone")
    assert run["placement"]["ranks"] == 40
    (package / "result_summary.txt").write_text("")
    assert content(imported([package], tmp_path / "empty")[0]) == content(run)
    assert [content(r) for r in imported([tmp_path / "outer"], tmp_path / "outer-run")] == [content(run)]
    # A copy of the summary outside is not the package when that lies below.
    (tmp_path / "outer" / "result_summary.txt").write_text(
        (SAMPLES / "io500" / "tianhe" / "result_summary.txt").read_text()
    )
    assert [content(r) for r in imported([tmp_path / "outer"], tmp_path / "copied")] == [content(run)]


def test_a_partial_trace_of_darshan_is_no_whole_one() -> None:
    traced = [
        {"id": 1, "read_segments": [0] * 5, "write_segments": []},
        {"id": 2, "read_segments": [0] * 4, "write_segments": [0]},
    ]
    counted = [
        {"id": i, "counters": {"POSIX_READS": reads, "POSIX_WRITES": -1 if i == 1 else 1}}
        for i, reads in ((1, 5), (2, 9), (3, 2))
    ]
    assert darshan_log._incomplete(traced, counted) == {2, 3}


def test_every_importer_has_a_sample_and_a_row_in_the_manual() -> None:
    manual = (REPOSITORY / "docs" / "import.md").read_text()
    for name in all_importers():
        assert (SAMPLES / name).is_dir(), f"tests/samples/{name}/ is missing"
        assert f"| `{name}` |" in manual, f"docs/import.md has no row for {name}"


MDTEST = """-- started at 06/14/2024 10:00:{nodes:02d} --

mdtest-4.0.0 was launched with {ranks} total task(s) on {nodes} node(s)
Command line used: mdtest '-n' '{items}' '-u' '-F' '-C' '-d' '/scratch/t'
{ranks} tasks, {files} files

SUMMARY rate (in ops/sec): (of 1 iterations)
   Operation                     Max            Min           Mean        Std Dev
   ---------                     ---            ---           ----        -------
   File creation            {rate:.3f}      {rate:.3f}      {rate:.3f}          0.000
-- finished at 06/14/2024 10:05:00 --
"""


def write_logs(directory: Path, placements: list[tuple[int, int, float]], items: int = 1000) -> None:
    directory.mkdir(parents=True)
    for nodes, ranks, rate in placements:
        text = MDTEST.format(nodes=nodes, ranks=ranks, rate=rate, items=items, files=items * ranks)
        (directory / f"mdtest-{nodes}x{ranks}.txt").write_text(text)


def series_of(out: Path) -> dict[str, Any]:
    return json.loads((out / "series.json").read_text())


def test_a_directory_becomes_a_series_that_every_verb_takes(iocast: Any, tmp_path: Path) -> None:
    write_logs(tmp_path / "logs" / "deep", [(1, 8, 4000.0), (2, 16, 7500.0), (4, 32, 13000.0)])
    (tmp_path / "logs" / "notes.txt").write_text("nothing\n")
    (tmp_path / "logs" / "cut.txt").write_text(
        MDTEST.format(nodes=8, ranks=64, rate=1.0, items=1, files=64)[:400] + "\n"
    )
    done = iocast("import", tmp_path / "logs", "--out", tmp_path / "series")
    assert done.returncode == 0, done.stderr
    assert (
        "weak scaling" in done.stdout
        and "left out" in done.stdout
        and "cut.txt:" in done.stdout
        and "ALARM" not in done.stdout
    )
    assert sorted(p.parent.name for p in (tmp_path / "series").glob("*/run.json")) == [
        "mdtest-1x8-n8",
        "mdtest-2x16-n16",
        "mdtest-4x32-n32",
    ]
    from iocast.compare import is_measurement
    from iocast.export import export
    from iocast.report.sources import read_sources
    from iocast.runs.run_directory import find_runs

    assert len(read_sources([tmp_path / "series"]).runs) == 3 and is_measurement(tmp_path / "series")
    export([tmp_path / "series"], "csv", tmp_path / "r.csv")
    assert (tmp_path / "r.csv").stat().st_size
    assert [run.ranks for run in find_runs([tmp_path / "series"], "file-create")[0]] == [8, 16, 32]
    with pytest.raises(InputError, match="file-create"):
        find_runs([tmp_path / "series"], "file-creation")


def test_an_archive_is_as_its_directory(tmp_path: Path) -> None:
    import tarfile

    from iocast.importers.series import import_series

    write_logs(tmp_path / "logs", [(1, 8, 4000.0), (2, 16, 7500.0)])
    with tarfile.open(tmp_path / "logs.tar.gz", "w:gz") as tape:
        for path in sorted((tmp_path / "logs").iterdir()):
            tape.add(path, f"../../{path.name}")  # a name that leads out of it
    packed, plain = (
        import_series([path], tmp_path / f"series-{i}")
        for i, path in enumerate((tmp_path / "logs.tar.gz", tmp_path / "logs"))
    )
    assert [content(json.loads((p / "run.json").read_text())) for p in packed] == [
        content(json.loads((p / "run.json").read_text())) for p in plain
    ]
    run = json.loads((packed[0] / "run.json").read_text())
    assert run["imported"]["origin"]["placement.ranks"] == f"{tmp_path}/logs.tar.gz:mdtest-1x8.txt:3"
    assert [f["name"] for f in run["imported"]["files"]] == ["mdtest-1x8.txt"]


def test_strong_scaling_is_noticed(tmp_path: Path) -> None:
    from iocast.importers.series import import_series

    for nodes, items in ((1, 1000), (2, 500), (4, 250)):
        write_logs(tmp_path / "logs" / str(nodes), [(nodes, 8 * nodes, 4000.0)], items)
    import_series([tmp_path / "logs"], tmp_path / "series")
    assert series_of(tmp_path / "series")["scaling"] == {"mdtest file-create": "strong"}


@pytest.mark.parametrize(
    ("placements", "alarm"),
    [
        ([(10, 600, 30_000.0), (10, 320, 196_000.0)], True),
        ([(1, 8, 4000.0), (2, 16, 7800.0), (4, 32, 15000.0), (8, 64, 900.0), (16, 128, 55000.0)], True),
        ([(1, 8, 4000.0), (2, 16, 32_000.0)], True),  # eight times the rate with twice the ranks
        ([(1, 8, 4000.0), (2, 16, 7800.0), (4, 32, 14000.0), (8, 64, 15000.0), (16, 128, 14500.0)], False),
        ([(1, 1, 1000.0), (1, 8, 5000.0), (1, 64, 4000.0), (8, 64, 30_000.0)], False),
        ([(21, 410, 30_000.0), (21, 420, 31_000.0)], False),
    ],
)  # fmt: skip
def test_placements_that_contradict_each_other_raise_the_alarm(
    placements: list[tuple[int, int, float]], alarm: bool, tmp_path: Path
) -> None:
    from iocast.importers.series import import_series

    write_logs(tmp_path / "logs", placements)
    import_series([tmp_path / "logs"], tmp_path / "series")
    found = series_of(tmp_path / "series")["contradictions"]
    assert bool(found) == alarm, found
    for one in found:
        residuals = [p["residual"] for p in one["placements"]]
        assert one["factor"] > 1.5 and max(abs(r) for r in residuals) > 0.2 and "contradict" in one["sentence"]
    if alarm and len(placements) > 3:  # the one among many that is wrong
        assert {p["ranks"] for one in found for p in one["placements"] if p["residual"] < -0.2} == {64}


def test_explain_names_file_and_line(iocast: Any, tmp_path: Path) -> None:
    sample = SAMPLES / "ior" / "no-summary.txt"
    done = iocast("import", "--explain", sample)
    assert done.returncode == 0, done.stderr
    number = 1 + sample.read_text().splitlines().index("WARNING: Using actual aggregate bytes moved = 79020448000")
    assert re.search(rf"write\.bytes\s+79020448000\s+{re.escape(str(sample))}:{number}$", done.stdout, re.MULTILINE), (
        done.stdout
    )
    assert iocast("import", sample).returncode == 2  # neither --out nor --explain


IOR_LOG = """IOR-4.0.0: MPI Coordinated Test of Parallel I/O
Began               : Fri Jun 14 10:10:{nodes:02d} 2024
Command line        : ior -w -t {size} -b 1g -F -o /scratch/f
StartTime           : Fri Jun 14 10:10:{nodes:02d} 2024
Options: 
api                 : POSIX
access              : file-per-process
nodes               : {nodes}
tasks               : {tasks}
clients per node    : 8
repetitions         : 1
xfersize            : {size} bytes
blocksize           : 1 GiB
Results: 
access    bw(MiB/s)  IOPS       Latency(s)  block(KiB) xfer(KiB)  open(s)    wr/rd(s)   close(s)   total(s)   iter
------    ---------  ----       ----------  ---------- ---------  --------   --------   --------   --------   ----
write     {rate}     1000       0.001       1048576    {kib}      0.01       20.0       0.01       20.0       0   
"""  # noqa: W291


def test_transfer_sizes_are_compared_and_fitted_in_bytes(tmp_path: Path) -> None:
    """Rising bandwidths stay rising whatever the transfer size, and runs with others are no repeats."""
    from iocast.calibrate.rates import BYTES, unit_of
    from iocast.importers.series import import_series
    from iocast.runs.run_directory import Run, group

    (tmp_path / "logs").mkdir()
    for nodes, size, rate in ((1, 2**20, 353.0), (2, 2**19, 459.0), (4, 2**21, 526.0), (8, 2**20, 900.0)):
        text = IOR_LOG.format(nodes=nodes, tasks=8 * nodes, size=size, rate=rate, kib=size // 1024)
        (tmp_path / "logs" / f"{nodes}.txt").write_text(text)
    runs = [Run(path, "write") for path in import_series([tmp_path / "logs"], tmp_path / "series")]
    points = group(runs)
    assert [point.value("rate") for point in points] == pytest.approx([mib * 2**20 for mib in (353, 459, 526, 900)])
    assert [run.parameters["transfer_size"] for run in runs] == [2**20, 2**19, 2**21, 2**20] and unit_of(
        points
    ) == BYTES
    assert len({str(run.question.settings) for run in runs}) == 3  # runs of another size answer another question
    other = IOR_LOG.format(nodes=1, tasks=8, size=2**22, rate=400.0, kib=4096)
    (tmp_path / "other.txt").write_text(other)
    import_files([tmp_path / "other.txt"], tmp_path / "other")
    assert (
        len(group([runs[0], Run(tmp_path / "other", "write")])) == 2
    )  # of one placement, and no repeats of each other


def test_unlike_nodes_are_modelled_and_forecast(iocast: Any, tmp_path: Path) -> None:
    from iocast.runs.run_directory import Run

    write_logs(tmp_path / "logs", [(1, 8, 4000.0), (2, 16, 7500.0), (5, 41, 16000.0), (21, 410, 52000.0)])
    assert iocast("import", tmp_path / "logs", "--out", tmp_path / "series").returncode == 0
    run = Run(tmp_path / "series" / "mdtest-21x410-n410", "file-create")
    assert run.placement[0] * run.placement[1] == pytest.approx(410)
    done = iocast(
        "calibrate", tmp_path / "series", "--phase", "file-create", "--platform", "queue", "--out", tmp_path / "q.yaml"
    )
    assert done.returncode == 0 and "N=21x19.52" in done.stdout, done.stdout + done.stderr
    fitted = yaml.safe_load((tmp_path / "q.yaml").read_text())["fitted"]
    campaign = fitted["campaign"] if "campaign" in fitted else next(iter(fitted["phases"].values()))["campaign"]
    assert campaign["ranks"] == [8, 16, 41, 410]


def test_the_number_of_fio_jobs_is_unknown_where_one_entry_holds_several_sections(tmp_path: Path) -> None:
    """group_reporting adds up job_runtime over all sections of a group, and prints the options of the first."""
    document = json.loads((SAMPLES / "fio" / "two-groups.json").read_text())
    job = document["jobs"][0]
    job["job options"] = {**job.get("job options", {}), "group_reporting": "1", "numjobs": "2"}
    document["jobs"] = [job]
    longest = sum(job[way]["runtime"] for way in ("read", "write"))
    for times, known in ((2, True), (7, False)):
        job["job_runtime"] = times * longest
        (tmp_path / "log.json").write_text(json.dumps(document))
        if known:
            (run,) = imported_as_it_is(tmp_path / "log.json", tmp_path / "run")
            assert run["placement"]["ranks"] == 2 and run["phases"][0]["rank_seconds"] is None
        else:
            with pytest.raises(InputError, match="group_reporting has put more jobs into one entry.*--ranks"):
                imported_as_it_is(tmp_path / "log.json", tmp_path / "none")
            (run,) = imported([tmp_path / "log.json"], tmp_path / "given")
            assert run["placement"]["ranks"] == 4 and run["phases"][0]["rank_seconds"] is None


def imported_as_it_is(file: Path, out: Path) -> list[dict[str, Any]]:
    return [json.loads((path / "run.json").read_text()) for path in import_files([file], out)]


@pytest.mark.parametrize(
    ("printed", "bytes_per_second"), [("BW=40.0MiB/s (41.9MB/s)", 40 * 2**20), ("BW=41.9MB/s (40.0MiB/s)", 41.9e6)]
)
def test_units_of_fio_text_are_binary_with_an_i_only(printed: str, bytes_per_second: float, tmp_path: Path) -> None:
    """kb_base=1000 puts the decimal unit first."""
    text = (SAMPLES / "fio" / "text.txt").read_text()
    (tmp_path / "log.txt").write_text(re.sub(r"BW=\S+ \([^)]*\)", printed, text))
    mixed, later = imported_as_it_is(tmp_path / "log.txt", tmp_path / "run")
    assert mixed["phases"][0]["bytes_per_second"] == pytest.approx(2 * bytes_per_second)  # reads and writes
    assert later["phases"][0]["bytes_per_second"] == pytest.approx(bytes_per_second)


def test_data_sets_of_a_cleanup_are_not_its_objects(tmp_path: Path) -> None:
    """The last version prints "objects:250000 dsets: 50"; rates are those printed, not counts over a rounded time."""
    text = (SAMPLES / "md-workbench" / "mistral-current.txt").read_text()
    (tmp_path / "out.txt").write_text(text)
    (run,) = imported_as_it_is(tmp_path / "out.txt", tmp_path / "run")
    phases = {phase["name"]: phase for phase in run["phases"]}
    for phase in ("precreate", "cleanup"):
        counts = {op: known["count"] for op, known in phases[phase]["latency"].items()}
        assert sorted(counts.values()) == [50, 250_000] and phases[phase]["operations"] == 250_050
    printed = [float(rate) for rate in re.findall(r"rate:([\d.]+) iops/s", text)]
    assert [phase["rate"] for phase in run["phases"]] == printed
    (run,) = imported_as_it_is(SAMPLES / "md-workbench" / "md-real-io-2016.txt", tmp_path / "real-io")
    text = (SAMPLES / "md-workbench" / "md-real-io-2016.txt").read_text()
    printed = [float(rate) for rate in re.findall(r"([\d.]+) (?:elements|iters)/s", text)]
    assert [phase["rate"] for phase in run["phases"]] == [printed[0], 4 * printed[1], printed[2]]


def test_a_series_names_packages_by_their_submission_and_alarms_once_a_phase(iocast: Any, tmp_path: Path) -> None:
    """Of many contradictions the largest of each phase is printed, with its runs; all are in series.json."""
    whole = SAMPLES / "io500" / "first-generation"
    for number, factor in enumerate((1, 5, 25)):
        package = tmp_path / "site" / f"submission-{number}" / "results" / f"2024.01.0{number + 1}-00.00.00"
        package.mkdir(parents=True)
        for file in whole.iterdir():
            text = file.read_text()
            if file.name == "result_summary.txt":
                text = re.sub(r"[\d.]+(?= kiops : time)", lambda m: str(float(m[0]) * factor), text)  # noqa: B023
            if number == 2:  # twice the nodes
                text = text.replace("with 20 total", "with 40 total").replace("on 10 node", "on 20 node")
                text = text.replace("20 tasks", "40 tasks")
            (package / file.name).write_text(text)
    done = iocast("import", tmp_path / "site", "--out", tmp_path / "series")
    assert done.returncode == 0, done.stderr
    names = {path.parent.name for path in (tmp_path / "series").glob("*/run.json")}
    assert {name.rpartition("-io500")[0] for name in names} == {f"submission-{number}" for number in range(3)}
    found = series_of(tmp_path / "series")["contradictions"]
    alarms = re.findall(r"ALARM: (.*?): .*", done.stdout)
    described = series_of(tmp_path / "series")
    (curve, phase), *_ = {(one["curve"], one["phase"]) for one in found}
    assert [one.startswith(f"ALARM: {curve}: ") for one in series_alarms(described, [phase])] == [True]
    assert not series_alarms(described, [phase.removeprefix(phase[:4])]), "the end of its name is another phase"
    assert len(series_alarms(described)) == len(alarms)
    for one in found:
        del one["phase"]  # as older files have it
    assert len(series_alarms({**described, "contradictions": found}, [phase])) == len(alarms)
    assert len(found) > len(alarms) == len(set(alarms)) == len({one["curve"] for one in found})
    assert "(submission-0-io500)" in done.stdout and "2 more of this phase are in series.json" in done.stdout


def test_a_reader_of_darshan_without_its_library_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As PyPI's package is for Python 3.13."""
    (tmp_path / "darshan").mkdir()
    (tmp_path / "darshan" / "__init__.py").write_text("raise RuntimeError('Could not find libdarshan-util.so!')\n")
    (tmp_path / "a.darshan").write_bytes(b"3.41".ljust(8, b"\0") + (6567223).to_bytes(8, "little"))
    for name in [one for one in sys.modules if one.partition(".")[0] == "darshan"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(InputError, match=r"a\.darshan'.* libdarshan-util.*darshan-parser"):
        darshan_log.import_log(tmp_path / "a.darshan", tmp_path / "ops.h5")


def test_a_folder_of_darshan_logs_is_no_folder_of_results(tmp_path: Path) -> None:
    from iocast.importers.series import import_series

    for number in range(2):
        (tmp_path / f"{number}.darshan").write_bytes(b"3.41".ljust(8, b"\0") + (6567223).to_bytes(8, "little"))
    with pytest.raises(InputError, match="has 2 Darshan logs and no result .*iocast import darshan LOG --out ops.h5"):
        import_series([tmp_path], tmp_path / "out")
