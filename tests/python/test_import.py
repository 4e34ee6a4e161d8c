# SPDX-License-Identifier: Apache-2.0
"""Imported runs hold what their files say; the tools that can be had are run for it."""

import json
import random
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest
from programs import REPOSITORY

from iocast.calibrate.reading import noise, single_rank_law, split_law
from iocast.calibrate.search import Target
from iocast.errors import InputError
from iocast.export import export
from iocast.importers import import_files
from iocast.report.sources import read_sources
from iocast.report.story import _tell_measured
from iocast.runs.run_directory import Run, group

Iocast = Callable[..., CompletedProcess[str]]
SAMPLES = REPOSITORY / "tests" / "samples"


def imported(out: Path, *files: Path, ranks: int | None = None, nodes: int | None = None) -> dict[str, Any]:
    (path,) = import_files(files, out, None, {"ranks": ranks, "nodes": nodes})
    return json.loads((path / "run.json").read_text())


def phases(run: dict[str, Any], name: str) -> list[dict[str, Any]]:
    return [p for p in run["phases"] if p["name"] == name]


def test_md_workbench_of_2017(tmp_path: Path) -> None:
    run = imported(tmp_path / "run", SAMPLES / "md-workbench" / "mistral-2017.txt", nodes=5)
    assert run["placement"] == {"ranks": 50, "nodes": 5, "ranks_per_node": 10}  # the file tells 50 by its counts
    assert run["workload"]["pattern"] == "md-workbench"
    assert run["workload"]["parameters"] | {"phases": ""} == {
        "datasets": 1, "objects": 5000, "iterations": 1000, "object_size": 3900, "offset": 1, "repeats": 3,
        "start_index": 0, "waiting_factor": 0.0,
        "read_only": False, "phases": "",
    }  # fmt: skip
    benchmarks = phases(run, "benchmark")
    assert [p["repeat"] for p in benchmarks] == [1, 2, 3]
    assert [p["operations"] for p in benchmarks] == [200_000] * 3
    first = benchmarks[0]
    assert {op: v["count"] for op, v in first["latency"].items()} == dict.fromkeys(
        ("stat", "read", "unlink", "create"), 50_000
    )
    assert all(v["q50"] is None for v in first["latency"].values()) and first["rank_seconds"] is None
    assert first["rate"] == 9842.7 == pytest.approx(4 * 50_000 / first["seconds"], rel=1e-4)  # as printed
    assert run["started"].startswith("2017-07-")


def test_md_workbench_reports_of_ranks(tmp_path: Path) -> None:
    run = imported(tmp_path / "run", SAMPLES / "md-workbench" / "sandy9-2016.txt")
    assert (
        run["placement"]["ranks"] == 2
        and run["placement"]["nodes"] is None
        and "placement.nodes" in run["imported"]["missing"]
    )
    first = phases(run, "benchmark")[0]
    # 10000 objects at 618.0 and 576.8 a second
    assert first["rank_seconds"] == pytest.approx([10_000 / 618.0, 10_000 / 576.8])
    assert first["balance"] == pytest.approx(576.8 / 618.0)


def test_md_workbench_with_latency_files(tmp_path: Path) -> None:
    files = sorted((SAMPLES / "md-workbench").glob("lat-*.csv"))
    run = imported(tmp_path / "run", SAMPLES / "md-workbench" / "mistral-current.txt", *files)
    (benchmark,) = phases(run, "benchmark")
    assert set(benchmark["latency"]) == {"stat", "read", "unlink", "create"}
    lines = (SAMPLES / "md-workbench" / "lat-0.00-0-create.csv").read_text().splitlines()[1:]
    times = sorted(float(line.split(",")[1]) for line in lines)
    create = benchmark["latency"]["create"]
    assert create["count"] == len(times) == 100
    assert create["max"] == pytest.approx(times[-1]) and create["mean"] == pytest.approx(sum(times) / 100)
    assert create["q95"] == pytest.approx(times[94], rel=2e-3)
    assert (
        benchmark["slowest"][0]["seconds"] == max(s["seconds"] for s in benchmark["slowest"])
        and benchmark["slowest"][0]["rank"] == 0
    )
    assert sum(benchmark["timeline"]["create"]["count"]) == 100
    assert benchmark["latency_of_all_ranks"]["create"]["max"] > create["max"]  # of all ranks, from the text
    assert benchmark["latency_of_ranks"] == [0] and any("some ranks only" in w for w in run["warnings"])
    # Without the files, the quantiles that the text has; what it has not is null.
    run = imported(tmp_path / "text", SAMPLES / "md-workbench" / "mistral-current.txt")
    (benchmark,) = phases(run, "benchmark")
    create = benchmark["latency"]["create"]
    assert create["q25"] < create["q50"] < create["q75"] < create["q90"] < create["q99"] < create["max"]
    assert create["mean"] is None and create["q95"] is None
    assert benchmark["balance"] == pytest.approx(0.995, abs=0.001)


def test_md_workbench_adaptive_waiting_gives_a_run_a_factor(tmp_path: Path) -> None:
    lines = (SAMPLES / "md-workbench" / "mistral-current.txt").read_text().splitlines()
    (number,) = [i for i, line in enumerate(lines) if line.startswith("benchmark")]
    waited = [
        lines[number].replace(" (0 errs)", f" waiting_factor:{factor} (0 errs)") for factor in ("0.06", "0.12", "4.00")
    ]
    (tmp_path / "out.txt").write_text("\n".join([*lines[: number + 1], *waited, *lines[number + 1 :]]) + "\n")
    import_files([tmp_path / "out.txt"], tmp_path / "runs")
    factors = {
        p.name: json.loads((p / "run.json").read_text())["workload"]["parameters"]["waiting_factor"]
        for p in (tmp_path / "runs").iterdir()
    }
    assert factors == {"t0": 0.0, "t0.0625": 0.0625, "t0.125": 0.125, "t4": 4.0}


def test_mdtest(tmp_path: Path) -> None:
    run = imported(tmp_path / "run", SAMPLES / "mdtest" / "archer-own-directories.log")
    assert run["placement"] == {"ranks": 24, "nodes": 1, "ranks_per_node": 24} and run["tool"] == {
        "name": "mdtest",
        "version": "1.9.3",
    }
    assert {p["name"]: p["rate"] for p in run["phases"]} == {
        "file-create": 1032.005, "file-stat": 4725.497, "file-remove": 563.824, "tree-create": 122.957,
        "tree-remove": 5.527,
    }  # fmt: skip
    assert run["phases"][0]["operations"] == 1048560 and run["phases"][0]["seconds"] == pytest.approx(
        1048560 / 1032.005
    )
    assert run["workload"]["parameters"] == {
        "items": 43690,
        "unique_directory": True,
        "files_only": True,
        "stride": 24,
        "phases": "create,stat,remove",
    }
    shared = imported(tmp_path / "shared", SAMPLES / "mdtest" / "archer-shared-file.log")
    assert shared["phases"][0]["rate"] == 579.067 and shared["phases"][0]["operations"] is None
    verbose = imported(tmp_path / "verbose", SAMPLES / "mdtest" / "verbose.log")
    assert [(p["repeat"], p["rate"]) for p in phases(verbose, "file-create")] == [(1, 4000.0), (2, 3200.0)]
    (removal,) = phases(verbose, "file-remove")  # in the summary only
    assert removal["rate"] == 8000 and removal["rate_over_repeats"] == {
        "repeats": 2,
        "mean": 8000,
        "min": 7000,
        "max": 9000,
        "standard_deviation": 1414.214,
    }
    assert not phases(verbose, "file-read")


def test_ior(tmp_path: Path) -> None:
    text = imported(tmp_path / "text", SAMPLES / "ior" / "beegfs.txt")
    document = imported(tmp_path / "json", SAMPLES / "ior" / "beegfs.json")
    for run in (text, document):
        assert run["placement"] == {"ranks": 48, "nodes": 2, "ranks_per_node": 24}
        write, read = run["phases"]
        assert (write["name"], read["name"]) == ("write", "read") and write["bytes_per_second"] == pytest.approx(
            178.86 * 2**20
        )
        assert write["rate"] == pytest.approx(178.86 / 16) and write["seconds"] == 34.35
        # IOR's Latency(s) is no mean latency: it leaves out segments and is that of one rank.
        assert write["ior_latency"] == 0.958324 and all(
            v is None for k, v in write["latency"]["pwrite"].items() if k != "count"
        )
        assert read["part_seconds"] == {"open": 0.006683, "transfer": 63.23, "close": 0.014209}
    assert {k: text[k] for k in ("phases", "placement")} == {k: document[k] for k in ("phases", "placement")}


def test_io500(tmp_path: Path) -> None:
    run = imported(tmp_path / "run", SAMPLES / "io500" / "tianhe")
    assert run["placement"] == {
        "ranks": 5280,
        "nodes": 480,
        "ranks_per_node": 11,
    }  # from the output of a phase beside the results
    (easy,), (find,), (ior,) = phases(run, "mdtest-easy-write"), phases(run, "find"), phases(run, "ior-hard-write")
    assert easy["rate"] == pytest.approx(1_099_180) and find["rate"] == pytest.approx(1_603_000)
    assert ior["bytes_per_second"] == pytest.approx(31.87 * 2**30) and ior["rate"] == pytest.approx(
        31.87 * 2**30 / 47008
    )
    assert easy["start_seconds"] == 333.0
    summary = SAMPLES / "io500" / "tianhe" / "result_summary.txt"
    with pytest.raises(InputError, match="--ranks"):
        imported(tmp_path / "file", summary)
    assert imported(tmp_path / "file", summary, ranks=5280, nodes=480)["placement"]["ranks_per_node"] == 11


def test_elbencho(tmp_path: Path) -> None:
    run = imported(tmp_path / "run", SAMPLES / "elbencho" / "cori-gpu.csv")
    assert run["placement"] == {"ranks": 4, "nodes": 4, "ranks_per_node": 1}
    mkdirs, write = run["phases"]
    assert mkdirs["rate"] == 5547 and mkdirs["latency"]["mkdir"] | {"count": 0} == pytest.approx(
        dict.fromkeys(("q25", "q50", "q75", "q95", "q99", "q999"))
        | {"count": 0, "min": 192e-6, "mean": 203e-6, "max": 214e-6}
    )
    assert write["rate"] == 2788 and write["operations"] == 306992 and write["balance"] == pytest.approx(84135 / 110109)
    document = imported(tmp_path / "json", SAMPLES / "elbencho" / "cori-gpu.json")
    latency = document["phases"][0]["latency"]["pwrite"]
    assert (
        latency["mean"] == 588e-6
        and latency["max"] == 4958e-6
        and latency["q50"] == pytest.approx((512 * 608) ** 0.5 * 1e-6, rel=1e-3)
    )


def all_imported(out: Path, *files: Path) -> list[dict[str, Any]]:
    return [json.loads((path / "run.json").read_text()) for path in import_files(files, out)]


@pytest.mark.needs("tools")
def test_fio(tmp_path: Path) -> None:
    """What is here now: two jobs at a time, then one."""
    (tmp_path / "files").mkdir()
    command = [
        "fio",
        f"--directory={tmp_path}/files",
        "--size=1m",
        "--output-format=json+",
        f"--output={tmp_path}/fio.json",
        "--lat_percentiles=1",
        "--name=mixed",
        "--rw=randrw",
        "--bs=4k",
        "--numjobs=2",
        "--name=later",
        "--stonewall",
        "--rw=write",
        "--bs=64k",
        "--fsync=4",
    ]
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    fio = json.loads((tmp_path / "fio.json").read_text())
    runs = all_imported(tmp_path / "runs", tmp_path / "fio.json")
    (mixed,), (later,) = (run["phases"] for run in runs)
    assert [run["placement"]["ranks"] for run in runs] == [2, 1] and (mixed["name"], later["name"]) == (
        "mixed",
        "later",
    )
    entries = [job["read"] for job in fio["jobs"] if job["jobname"] == "mixed"]
    latency = mixed["latency"]["pread"]
    assert (
        latency["count"] == sum(t["total_ios"] for t in entries)
        and latency["max"] == max(t["lat_ns"]["max"] for t in entries) * 1e-9
    )
    assert latency["mean"] == pytest.approx(
        sum(t["total_ios"] * t["lat_ns"]["mean"] for t in entries) / latency["count"] * 1e-9
    )
    assert (
        later["latency"]["fsync"]["count"] == fio["jobs"][2]["sync"]["total_ios"]
        and later["latency"]["pwrite"]["count"] == 16
    )
    # fio's own percentiles are those of its bins.
    own = fio["jobs"][2]["write"]["lat_ns"]["percentile"]["95.000000"] * 1e-9
    assert later["latency"]["pwrite"]["q95"] == pytest.approx(own, rel=0.02)


@pytest.mark.needs("tools")
def test_fs_mark_and_postmark(tmp_path: Path) -> None:
    (tmp_path / "files").mkdir()
    # It has no room for a long directory's name.
    command = ["fs_mark", "-d", "files", "-n", "50", "-s", "3900", "-t", "2", "-S", "1", "-L", "2", "-v"]
    mark = subprocess.run(command, check=True, capture_output=True, text=True, cwd=tmp_path)
    (tmp_path / "mark.txt").write_text(mark.stdout)
    run = imported(tmp_path / "mark", tmp_path / "mark.txt")
    assert [p["operations"] for p in run["phases"]] == [100, 100] and run["placement"]["ranks"] == 2
    assert {"create.open", "create.write", "create.close", "fsync"} <= set(run["phases"][0]["latency"])
    commands = f"set location {tmp_path}/files\nset number 200\nset transactions 500\nshow\nrun\nquit\n"
    postmark = subprocess.run(["postmark"], input=commands, check=True, capture_output=True, text=True)
    (tmp_path / "postmark.txt").write_text(postmark.stdout)
    run = imported(tmp_path / "postmark", tmp_path / "postmark.txt")
    (transactions,) = phases(run, "benchmark")
    assert run["workload"]["parameters"] == {
        "number": 200,
        "transactions": 500,
        "read": 512,
        "write": 512,
        "bias_read": 5,
        "bias_create": 5,
        "seed": 42,
    }
    counts = {op: v["count"] for op, v in transactions["latency"].items()}
    # Each of 500 transactions reads or appends, and creates or deletes; one on a file that is gone does nothing of the
    # first.
    assert (
        transactions["operations"] == sum(counts.values())
        and 480 <= counts["create"] + counts["unlink"] <= 500
        and 480 <= counts["read"] + counts["append"] <= 500
    )
    (create,), (delete,) = phases(run, "precreate"), phases(run, "cleanup")
    assert create["operations"] == 200 and delete["operations"] == 200 + counts["create"] - counts["unlink"]


def test_the_command_line(iocast: Iocast, tmp_path: Path) -> None:
    done = iocast("import", SAMPLES / "fio" / "two-groups.json", "--out", tmp_path / "run", "--label", "mine", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["runs"][0]["imported"]["format"] == "fio"
    page = iocast("report", tmp_path / "run", "--out", tmp_path / "page.html")
    assert page.returncode == 0 and "mine" in (tmp_path / "page.html").read_text(), page.stderr
    assert {f["name"] for f in json.loads(iocast("list", "formats", "--json").stdout)["formats"]} >= {
        "fio",
        "mdtest",
        "io500",
    }


def test_refusals(iocast: Iocast, tmp_path: Path) -> None:
    sample = SAMPLES / "fs_mark" / "verbose.txt"

    def refused(*files: Path, format_: str | None = None, **reported: int) -> str:
        with pytest.raises(InputError) as error:
            import_files(files, tmp_path / "out", format_, reported)
        assert not (tmp_path / "out").exists()
        return str(error.value)

    assert "Did you mean 'fs_mark'" in refused(sample, format_="fsmark")
    assert "says 2 ranks, --ranks says 3" in refused(sample, ranks=3)
    assert "different tools" in refused(sample, SAMPLES / "postmark" / "report.txt")
    assert "can't be on 70 nodes" in refused(SAMPLES / "md-workbench" / "mistral-2017.txt", nodes=70)
    (tmp_path / "cut.txt").write_text((SAMPLES / "md-workbench" / "mistral-current.txt").read_text()[:900])
    done = iocast("import", tmp_path / "cut.txt", "--out", tmp_path / "out")
    assert (
        done.returncode == 2
        and "cut.txt:" in done.stderr
        and "Traceback" not in done.stderr
        and not (tmp_path / "out").exists()
    )


def test_calibrations_take_what_a_text_tells(measured: Path, tmp_path: Path) -> None:
    """Simulated runs as md-workbench would print them: quantiles only, and compound operations as a whole."""
    for name in ("n1-r1", "n1-r2", "n4-r1"):
        export([measured / name], "md-workbench", tmp_path / f"{name}.txt")
        import_files([tmp_path / f"{name}.txt"], tmp_path / name, None, {"nodes": 1})
    points = group([Run(tmp_path / name) for name in ("n1-r1", "n1-r2", "n4-r1")])
    assert [(point.ranks, len(point.runs)) for point in points] == [(1, 2), (4, 1)]
    single, exact = points[0], Run(measured / "n1-r1")
    # No mean, no 95 % quantile: a target has the printed quantiles only.
    target = Target.of(single, noise(points))
    assert {n for n in target.names if n.startswith("create")} == {
        f"create.{q}" for q in ("q25", "q50", "q75", "q99", "max")
    }
    assert not single.has("create.q95") and single.value("create.q50") == pytest.approx(
        exact.latencies("create").quantile(0.5), rel=0.01
    )
    law = single_rank_law(single, "stat")
    assert law is not None and law["probabilities"] == [0.0, 0.25, 0.5, 0.75, 0.9, 0.99, 1.0]
    seconds = [float(v.removesuffix("s")) for v in law["values"]]
    assert seconds[2] == pytest.approx(exact.latencies("stat").quantile(0.5), rel=0.01)
    # Parts that are not printed add up to the whole, quantile by quantile; the one with the largest mean varies.
    whole = single_rank_law(single, "create")
    assert whole is not None
    parts = split_law(
        whole,
        {
            "open": {"law": "lognormal", "mean": "8us", "sigma": 0.3},
            "write": "3us",
            "close": {"law": "lognormal", "mean": "500ns"},
        },
    )
    sums = [
        sum(float(part["values"][i if len(part["values"]) > 2 else 0].removesuffix("s")) for part in parts.values())
        for i in range(7)
    ]
    assert (
        sums == pytest.approx([float(v.removesuffix("s")) for v in whole["values"]], rel=1e-6)
        and len(parts["open"]["values"]) == 7
    )
    # Nothing repeated and not measured here: more noise is assumed.
    assert noise([points[1]])["rate"] == 0.15


def test_table_of_rates(tmp_path: Path) -> None:
    table = tmp_path / "paper.csv"
    table.write_text(
        "# Table 2\nnodes,ppn,rate,waiting_factor,D,label,operation,mean,q75\n"
        '10,10,2180,,1,Mistral,create,0.01,0.02\n\n10,1,58,4,1,"Mistral, T = 4",,,\n'
    )
    directories = import_files([table], tmp_path / "runs")  # recognised by its header
    first, second = (json.loads((directory / "run.json").read_text()) for directory in directories)
    assert first["placement"] == {"ranks": 100, "nodes": 10, "ranks_per_node": 10} and first["label"] == "Mistral"
    (phase,) = first["phases"]
    assert phase["name"] == "create" and phase["rate"] == 2180 and phase["operations"] is None
    assert (
        phase["latency"]["create"]["mean"] == 0.01
        and phase["latency"]["create"]["q75"] == 0.02
        and phase["latency"]["create"]["q50"] is None
    )
    assert first["workload"]["parameters"] == {"D": "1"}
    assert second["workload"]["parameters"] == {"D": "1", "waiting_factor": 4.0} and second["label"] == "Mistral, T = 4"


@pytest.mark.parametrize(
    ("columns", "rows", "phases_", "names"),
    [
        ("rate,operation", ["290,create", "2900,stat"], ["create", "stat"], ["create", "stat"]),
        ("rate,phase", ["290,write", "2900,read"], ["write", "read"], ["write", "read"]),
        ("rate,phase,operation", ["9,b,create", "8,b,stat"], ["b-create", "b-stat"], ["b-create", "b-stat"]),
        ("rate,phase,operation", ["9,b,create", "8,c,create"], ["b", "c"], ["b", "c"]),
        ("rate", ["290", "300"], ["benchmark", "benchmark"], ["offer", "offer"]),
        ("rate,workload", ["290,mdtest", "300,mdtest"], ["benchmark", "benchmark"], ["mdtest", "mdtest"]),
    ],
)
def test_a_line_of_a_table_is_called_by_what_it_measured(
    tmp_path: Path, columns: str, rows: list[str], phases_: list[str], names: list[str]
) -> None:
    table = tmp_path / "offer.csv"
    table.write_text("\n".join([f"nodes,ppn,{columns}", *(f"1,10,{row}" for row in rows)]) + "\n")
    runs = import_files([table], tmp_path / "runs")
    documents = [json.loads((one / "run.json").read_text()) for one in runs]
    assert [one["phases"][0]["name"] for one in documents] == phases_
    text = dict(_tell_measured(read_sources(runs)).paragraphs)["Measured"]
    assert set(text.partition(" in ")[0].split(", ")) == set(names)
    if len(set(phases_)) == 1:
        assert len(group([Run(one, phases_[0]) for one in runs])) == 1  # repeats


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("nodes,ppn,rate\n10,10\n", ":2: this line has 2 cells"),
        ("nodes,ppn,rate\n10,10,fast\n", ":2: rate is 'fast'"),
        ("nodes,ppn,rate\n10,10,13.2k\n", ":2: rate is '13.2k'; write it without a letter: 13200."),
        ("nodes,ppn,rate\n10,10,2 M\n", ":2: rate is '2 M'; write it without a letter: 2000000."),
        ("nodes,ppn,rate\n10,10,0\n", ":2: rate is 0"),
        ("nodes,ppn,rate\n10,0,5\n", ":2: ppn is '0'"),
        ("nodes,ppn,ranks,rate\n10,10,99,5\n", ":2: 99 ranks are not 10 nodes"),
        ("nodes,ppn,rate,rate\n10,10,5,5\n", ":1: a column's name is there twice"),
        ("nodes,ppn,rate,q50,q99\n10,10,5,0.2,0.1\n", ":2: the quantiles of the latency do not ascend"),
        ("nodes,ppn,rate,mean,max\n1,1,5,9,0.2\n", ":2: the mean 9 is not between min and max"),
        ("nodes,ppn,rate\n", ":1: there is no result below the header"),
        ("nodes,rate\n1,5\n", ":1: the header needs the column rate and two of"),
    ],
)
def test_table_that_can_not_be(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "bad.csv").write_text(text)
    with pytest.raises(InputError) as refused:
        import_files([tmp_path / "bad.csv"], tmp_path / "run", "table")
    assert says in str(refused.value) and not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("mean", "warns"), [("2950.000", False), ("2950.001", False), ("3950.000", True), ("950.000", True)]
)
def test_a_mean_beyond_its_extremes_is_a_warning(tmp_path: Path, mean: str, warns: bool) -> None:
    row = "   File creation                2950.000       2950.000       "
    text = (SAMPLES / "mdtest" / "stonewall.log").read_text()
    assert row + "2950.000" in text
    (tmp_path / "mdtest.log").write_text(text.replace(row + "2950.000", row + mean))
    found = imported(tmp_path / "run", tmp_path / "mdtest.log")["warnings"]
    assert any("of File creation is not between its minimum" in one for one in found) == warns, found


@pytest.mark.parametrize(
    ("first", "differs"),
    [
        ("nodes;ppn;rate", "with ';' between cells for commas"),
        ("nodes\tranks\trate", "with tabs between cells for commas"),
        ("nodes,ppn,rates", "with column 'rates' for 'rate'"),
        ("Nodes,ppn,rate", "with column 'Nodes' for 'nodes'"),
        ("node;ppn;rate", "with column 'node' for 'nodes' and ';' between"),
        ("nodes,ppn,rate_per_s,date", "with column 'rate_per_s' for 'rate'. "),
        ("nodes,ppn,creates_per_s,stats_per_s,date", "with columns 'creates_per_s' or 'stats_per_s' for 'rate'. "),
        ("time,latency,rate", ""),
        ("hello", ""),
    ],
)
def test_a_file_that_is_nearly_a_table_is_refused_with_what_differs(tmp_path: Path, first: str, differs: str) -> None:
    (tmp_path / "near.csv").write_text(first + "\n1,2,3\n")
    with pytest.raises(InputError) as refused:
        import_files([tmp_path / "near.csv"], tmp_path / "run")
    assert ("nearly a table" in str(refused.value)) == bool(differs) and differs in str(refused.value)


@pytest.mark.parametrize(
    ("column", "meant"), [("unti", "unit"), ("Operation", "operation"), ("q98", "q95"), ("cores_", "cores")]
)
def test_a_column_that_is_nearly_one_of_a_table_is_no_setting(tmp_path: Path, column: str, meant: str) -> None:
    """A rate whose unit nobody reads is another rate."""
    (tmp_path / "near.csv").write_text(f"nodes,ppn,rate,{column}\n1,2,3,4\n")
    with pytest.raises(InputError, match=rf"near.csv:1: the column '{column}' is nearly '{meant}'"):
        import_files([tmp_path / "near.csv"], tmp_path / "run")


@pytest.mark.parametrize(
    ("column", "cell"),
    [("date", "2024-01-01"), ("rates", "5"), ("tag", "x"), ("mix", "70/30"), ("mix", "oltp"), ("mid", "a")],
)
def test_a_column_that_can_not_be_the_known_one_is_a_setting(tmp_path: Path, column: str, cell: str) -> None:
    """The known one is there itself, or the cells are no values of it."""
    (tmp_path / "t.csv").write_text(f"nodes,ppn,rate,min,{column}\n1,2,3,,{cell}\n")
    assert column in imported(tmp_path / "with", tmp_path / "t.csv")["workload"]["parameters"]
    (tmp_path / "t.csv").write_text(f"nodes,ppn,rate,{column}\n1,2,3,{cell}\n")
    assert column in imported(tmp_path / "without", tmp_path / "t.csv")["workload"]["parameters"]


def test_settings_of_a_table_are_named(tmp_path: Path, iocast: Callable[..., CompletedProcess[str]]) -> None:
    (tmp_path / "t.csv").write_text("nodes,ppn,rate,stripes\n1,2,3,4\n2,2,5,4\n")
    done = iocast("forecast", tmp_path / "t.csv", "--nodes", 8, "--out", tmp_path / "out")
    assert done.returncode == 0 and "t.csv: settings of the workload" in done.stdout and "stripes" in done.stdout


def test_stated_nodes_that_do_not_divide_the_ranks_are_a_warning(tmp_path: Path) -> None:
    for nodes in (5, 7):
        run = imported(tmp_path / f"run-{nodes}", SAMPLES / "md-workbench" / "mistral-2017.txt", nodes=nodes)
        ranks = run["placement"]["ranks"]
        found = [text for text in run["warnings"] if "unequal numbers on each node" in text]
        assert len(found) == (ranks % nodes != 0), run["warnings"]


def _with_error(text: str) -> str:
    return text.replace('"error" : 0', '"error" : 28', 1)


def _shorter(text: str) -> str:
    """The first job as one that was to run for an hour."""
    return text.replace('"job options" : {', '"job options" : {"time_based" : "1", "runtime" : "1h",', 1)


def _in_text(text: str, before: str, line: str) -> str:
    return text.replace(f"\n{before}", f"\n{line}\n{before}", 1)


UNFINISHED = {
    "fio by a signal": ("fio/two-groups.json", lambda text: f"fio: terminating on signal 15\n{text}", "signal 15"),
    "fio by an error": ("fio/two-groups.json", _with_error, "ended with error 28 (No space left on device)"),
    "fio before its time": ("fio/two-groups.json", _shorter, "and was to run for 3600 s"),
    "fio's text by a signal": (
        "fio/text.txt",
        lambda text: _in_text(text, "Run status", "fio: terminating on signal 2"),
        "signal 2",
    ),
    "fio's text by an error": ("fio/text.txt", lambda text: text.replace("err= 0", "err= 5", 1), "with error 5 ("),
    "IOR by an error": ("ior/beegfs.txt", lambda text: _in_text(text, "read ", "ior ERROR: read, errno 5"), "errno 5"),
    "IOR without its read": (
        "ior/beegfs.txt",
        lambda text: text.partition("\nread ")[0] + "\n",
        "asks for read, and there is no result of it",
    ),
    "IOR by mpirun": (
        "ior/beegfs.txt",
        lambda text: _in_text(text, "Finished ", "rank 3 exited on signal 9 (Killed)."),
        "signal 9",
    ),
    "mdtest by an error": (
        "mdtest/stonewall.log",
        lambda text: text.partition("-- finished at")[0] + "Process 3(n1): FAILED in create\n",
        "-- finished at",
    ),
}


@pytest.mark.parametrize("case", UNFINISHED)
def test_a_run_that_ended_before_its_end_is_not_whole(tmp_path: Path, case: str) -> None:
    """It is refused with its line, and left out with a warning where another run of the file is whole."""
    sample, damage, words = UNFINISHED[case]
    whole = (SAMPLES / sample).read_text()
    (tmp_path / "one").write_text(damage(whole))
    with pytest.raises(InputError, match=re.escape(words)) as refused:
        import_files([tmp_path / "one"], tmp_path / "run")
    assert re.match(rf"{tmp_path}/one:[1-9]\d*: .*\.$", str(refused.value)), refused.value
    assert not (tmp_path / "run").exists()
    if "by an error" in case or "before its time" in case:
        (tmp_path / "both").write_text(damage(whole) + whole)
        documents = all_imported(tmp_path / "kept", tmp_path / "both")
        assert any("is left out" in warning for document in documents for warning in document["warnings"])


AFTERWARDS = (
    "slurmstepd: error: *** JOB 4711 ON n1 CANCELLED AT 2025-11-26T05:00:00 DUE TO TIME LIMIT ***",
    "srun: error: n1: task 0: Out Of Memory",
    'mdtest-4.0.0 ERROR: open64("/scratch/x", 66, 0664) failed. Error: No space left on device',
    "mpirun noticed that process rank 3 exited on signal 9 (Killed).",
)
"""What a job prints whose next program is ended."""


@pytest.mark.parametrize("line", AFTERWARDS)
@pytest.mark.parametrize("sample", ["fio/two-groups.json", "fio/text.txt", "ior/beegfs.txt"])
def test_a_run_is_whole_whatever_comes_after_it(tmp_path: Path, sample: str, line: str) -> None:
    """Also between two runs that are both whole."""
    whole = (SAMPLES / sample).read_text()
    (tmp_path / "one").write_text(f"{whole}{line}\n")
    (tmp_path / "two").write_text(f"{whole}{line}\n{whole}")
    (tmp_path / "clean").write_text(f"{whole}\n{whole}")
    for name in ("one", "two", "clean"):
        import_files([tmp_path / name], tmp_path / f"run-{name}")
    runs = {name: sorted((tmp_path / f"run-{name}").rglob("run.json")) for name in ("one", "two", "clean")}
    assert len(runs["two"]) == len(runs["clean"]) == 2 * len(runs["one"])
    for path in (*runs["one"], *runs["two"]):
        assert not any("left out" in warning for warning in json.loads(path.read_text())["warnings"])


@pytest.mark.parametrize(
    "options",
    [
        {"time_based": "0"},
        {"time_based": "1", "steadystate": "iops:2%"},
        {"time_based": "1", "ss": "bw:5%"},
        {"time_based": "1", "exitall": "1"},
        {"time_based": "1", "fill_device": "1"},
    ],
)
def test_fio_that_may_end_before_its_time_is_whole(tmp_path: Path, options: dict[str, str]) -> None:
    given = "".join(f'"{name}" : "{value}", ' for name, value in options.items())
    text = (SAMPLES / "fio" / "two-groups.json").read_text()
    (tmp_path / "one").write_text(text.replace('"job options" : {', f'"job options" : {{{given}"runtime" : "1h",', 1))
    assert all_imported(tmp_path / "run", tmp_path / "one")


def test_fio_that_counts_errors_and_goes_on_is_whole(tmp_path: Path) -> None:
    text = (SAMPLES / "fio" / "two-groups.json").read_text().replace('"error" : 0', '"error" : 5, "total_err" : 3', 1)
    (tmp_path / "one").write_text(text)
    runs = all_imported(tmp_path / "run", tmp_path / "one")
    assert sum(phase["errors"] for run in runs for phase in run["phases"]) == 3


PYTHON = re.compile(
    r"could not convert|invalid literal|index out of|object has no|unsupported operand|NoneType|(?:Key|Type|Value|"
    r"Index|Attribute|Overflow)Error|argument must be|not supported between|Expecting|delimiter|Invalid control"
)
"""What Python's exceptions say, and no file."""
PUT_IN = (
    "x",
    "-",
    "-5",
    "1e999",
    "nan",
    "NaN",
    "9" * 30,
    "0",
    "null",
    "[]",
    "{}",
    '"a"',
    "true",
    "1.2.3",
    "é",
    ",",
    "\n",
)


def _damaged(text: str, chance: random.Random) -> str:
    """A number or a word replaced, a line left out, some characters left out, or the end cut off."""
    way = chance.randrange(4)
    places = list(re.finditer(r"-?\d+\.?\d*" if chance.random() < 0.5 else r"\w+", text))
    if way == 0 and places:
        place = chance.choice(places)
        return text[: place.start()] + chance.choice(PUT_IN) + text[place.end() :]
    if way == 1:
        lines = text.split("\n")
        del lines[chance.randrange(len(lines))]
        return "\n".join(lines) or "x"
    begin = chance.randrange(len(text))
    return text[:begin] + text[begin + chance.choice((1, 3, 20)) :] if way == 2 else text[:begin] or "x"


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("sample", sorted(p for p in SAMPLES.glob("*/*.*") if p.is_file()), ids=lambda p: p.name)
def test_a_damaged_file_is_refused_in_its_own_words(tmp_path: Path, sample: Path) -> None:
    """With file and line, and none of the words of Python's exceptions; or it is still a result."""
    chance, text = random.Random(sample.name), sample.read_text(errors="replace")[:20_000]
    for number in range(12):
        (file := tmp_path / sample.name).write_text(_damaged(_damaged(text, chance), chance))
        try:
            import_files([file], tmp_path / f"run{number}", sample.parent.name, {"ranks": 4, "nodes": 1})
        except InputError as refused:
            assert re.search(rf"{re.escape(str(file))}:[1-9]\d*: .*[.]$", str(refused), re.DOTALL), refused
            assert not PYTHON.search(str(refused)), refused


@pytest.mark.parametrize(
    ("sample", "was", "is_now", "says"),
    [
        ("dlio/summary.json", '"num_accelerators"', '"accelerators"', ":1: 'num_accelerators' is missing in it."),
        ("fio/two-groups.json", '"total_ios" : 242', '"total_ios" : "24Z"', "'24Z' stands where a number is allowed."),
        ("fio/two-groups.json", '"groupid" : 0', '"groupid" : 1e999', "a number is too large to be a measurement"),
        ("fio/two-groups.json", '"error" : 0,', '"error" : 0', "a comma or a closing bracket is missing"),
        ("filebench/varmail.txt", " ops/s", ".2.3 ops/s", "which is no number"),
        ("elbencho/rows.json", "[", "[" * 100_000, "nested more deeply than any tool writes"),
    ],
)
def test_what_was_read_and_what_is_allowed_are_named(
    tmp_path: Path, sample: str, was: str, is_now: str, says: str
) -> None:
    text = (SAMPLES / sample).read_text()
    assert was in text
    (tmp_path / "file").write_text(text.replace(was, is_now, 1))
    with pytest.raises(InputError) as refused:
        import_files([tmp_path / "file"], tmp_path / "run", sample.partition("/")[0])
    assert says in str(refused.value)


def test_what_mdtest_lacks_is_a_warning_once(tmp_path: Path, iocast: Callable[..., CompletedProcess[str]]) -> None:
    """Also of runs with unlike phases, and of repeats of one phase."""
    logs = tmp_path / "logs"
    logs.mkdir()
    text = (SAMPLES / "mdtest" / "verbose.log").read_text()
    (logs / "a.log").write_text(text)
    (logs / "b.log").write_text(text.replace("'-n' '1000'", "'-n' '2000'").replace("File stat ", "File read "))
    done = iocast("import", logs, "--out", tmp_path / "runs")
    assert done.returncode == 0 and done.stdout.count("ran without -N") == 1, done.stdout
