# SPDX-License-Identifier: Apache-2.0
"""Exports hold all of a run: what other programs' readers read back is equal."""

import csv
import json
import re
from collections import defaultdict
from collections.abc import Callable
from dataclasses import astuple
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pyarrow.parquet
import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from programs import REPOSITORY

from iocast.errors import InputError
from iocast.export import COLUMNS, FORMATS, Row, export, rows_of
from iocast.importers import all_importers, import_files, matching
from iocast.importers.source import Source
from iocast.runs.latency_log import read_log
from iocast.runs.run_directory import Run
from iocast.wording.text import cell

Iocast = Callable[..., CompletedProcess[str]]
SAMPLES = REPOSITORY / "tests" / "samples"


@pytest.fixture(scope="module")
def run(simulate: Callable[..., Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small run with three benchmark phases."""
    out = tmp_path_factory.mktemp("export") / "run"
    settings = [a for s in ("datasets=2", "objects=60", "iterations=60", "repeats=3") for a in ("--set", s)]
    simulate("local", "--ppn", "3", "--out", out, "--label", 'a "quoted", \\ label', *settings)
    return out


@pytest.fixture(scope="module")
def foreign(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An imported run, in which much is missing."""
    path, _ = import_files([SAMPLES / "fio" / "two-groups.json"], tmp_path_factory.mktemp("export") / "fio")
    return path


def test_the_table_holds_the_whole_run(run: Path) -> None:
    rows = list(rows_of(run))
    document = json.loads((run / "run.json").read_text())
    by = {(r.phase, r.repeat, r.operation, r.quantity): r.value for r in rows if r.at is None and r.rank is None}
    for phase in document["phases"]:
        assert by[phase["name"], phase["repeat"], "", "rate"] == phase["rate"]
        for op, did in phase["by_operation"].items():
            assert {key: by[phase["name"], phase["repeat"], op, key] for key in did} == did
        for op, latency in phase["latency"].items():
            assert by[phase["name"], phase["repeat"], op, "latency_q99"] == latency["q99"]
            counts = [
                r
                for r in rows
                if (r.phase, r.repeat, r.operation, r.quantity) == (phase["name"], phase["repeat"], op, "latency_count")
            ]
            assert sum(r.value for r in counts) == latency["count"]
        for station, used in phase["stations"].items():
            for op, own in {"": used, **used["operations"]}.items():
                stated = {key: value for key, value in own.items() if key != "operations"}
                found = {key: by[phase["name"], phase["repeat"], op, f"station_{station}_{key}"] for key in stated}
                assert found == stated
    ends = [r.value for r in rows if r.quantity == "rank_seconds"]
    assert ends == [s for phase in document["phases"] for s in phase["rank_seconds"]]
    assert sum(r.value for r in rows if r.quantity == "latency_count" and "." not in r.operation) == sum(
        p["operations"] for p in document["phases"]
    )


def test_csv_and_parquet_read_back_equal(run: Path, foreign: Path, tmp_path: Path) -> None:
    rows = [*rows_of(run), *rows_of(foreign)]
    types = [str, str, str, int, int, str, int, str, str, int, float, float]
    export([run, foreign], "csv", tmp_path / "runs.csv")
    with (tmp_path / "runs.csv").open(newline="") as file:
        header, *lines = csv.reader(file)
    assert tuple(header) == COLUMNS
    empty = {i for i, name in enumerate(COLUMNS) if name in ("nodes", "rank", "at")}
    assert [
        Row(*(None if cell == "" and i in empty else types[i](cell) for i, cell in enumerate(line))) for line in lines
    ] == rows
    export([run, foreign], "parquet", tmp_path / "runs.parquet")
    table = pyarrow.parquet.read_table(tmp_path / "runs.parquet")
    assert tuple(table.column_names) == COLUMNS
    assert [Row(**line) for line in table.to_pylist()] == rows


@pytest.mark.parametrize(
    "text, shown",
    [(bad, f"'{bad}") for bad in ("=1+1", "@SUM(A1)", "+cmd|' /C calc'!A0", "-2+3+cmd|' /C calc'!A0", "-(1)")]
    + [(good, good) for good in ("-3 %", "+1.5e-3 s", "-2,000", "n8-t0", "", "a=b")]
    + [("a\x1b[2J", "a\\x1b[2J"), (-1.5, -1.5), (None, None)],
)
def test_no_text_is_a_formula(text: Any, shown: Any) -> None:
    assert cell(text) == shown


def test_openmetrics_reads_back_equal(run: Path, foreign: Path, tmp_path: Path) -> None:
    """By the format's own reader: every row, and every histogram bucket."""
    rows = [*rows_of(run), *rows_of(foreign)]
    export([run, foreign], "openmetrics", tmp_path / "runs.txt")
    seen, buckets = set(), defaultdict(list)
    for family in text_string_to_metric_families((tmp_path / "runs.txt").read_text()):
        for sample in family.samples:
            labels = dict(sample.labels)
            if family.type == "histogram":
                if sample.name.endswith("_bucket") and labels["le"] != "+Inf":
                    le = labels.pop("le")
                    buckets[tuple(sorted(labels.items()))].append((float(le), sample.value))
                continue
            seen.add((family.name, tuple(sorted(labels.items())), sample.value))
    expected, counts = set(), defaultdict(list)
    for row in rows:
        labels = {
            n: str(v)
            for n, v in zip(COLUMNS, astuple(row), strict=True)
            if v not in (None, "") and n not in ("quantity", "value")
        }
        if row.quantity == "latency_count":
            counts[tuple(sorted((n, v) for n, v in labels.items() if n != "at"))].append((row.at, row.value))
        else:
            expected.add(("iocast_" + row.quantity, tuple(sorted(labels.items())), row.value))
    assert seen == expected
    differences = {
        k: [(le, n - before) for (le, n), before in zip(v, [0, *(n for _, n in v)], strict=False)]
        for k, v in buckets.items()
    }
    assert differences == counts


def test_md_workbench_text_is_what_its_script_takes_apart(run: Path, tmp_path: Path) -> None:
    export([run], "md-workbench", tmp_path / "out.txt")
    text = (tmp_path / "out.txt").read_text()
    document = json.loads((run / "run.json").read_text())
    # As results-in-db.py does: a header of "\tkey=value" lines up to the second empty line, then one match a result.
    header = text.split("\n\n")[0].splitlines()[1:]
    reported = dict(line.strip().split("=") for line in header if "=" in line)
    assert reported["obj-per-proc"] == "60" and reported["data-sets"] == "2"
    result = re.compile(r"^(?:(\d+): )?([a-z]+).* ([0-9.]+) obj/s.*?(?: ([0-9.]+) Mib/s)? \((\d+) errs")
    found = [m.groups() for line in text.splitlines() if (m := result.match(line))]
    benchmarks = [p for p in document["phases"] if p["name"] == "benchmark"]
    whole = [float(f[2]) for f in found if f[0] is None and f[1] == "benchmark"]
    assert whole == pytest.approx([p["latency"]["read"]["count"] / p["seconds"] for p in benchmarks], abs=0.06)
    assert len([f for f in found if f[0] is not None]) == 3 * len(document["phases"]) and {f[4] for f in found} == {"0"}


def test_md_workbench_text_comes_back(run: Path, tmp_path: Path) -> None:
    """Exported and imported, the run says the same as far as the text can."""
    export([run], "md-workbench", tmp_path / "out.txt")
    (path,) = import_files([tmp_path / "out.txt"], tmp_path / "back", None, {"nodes": 1})
    before, after = json.loads((run / "run.json").read_text()), json.loads((path / "run.json").read_text())
    assert after["placement"] == before["placement"]
    for name in (
        "datasets",
        "objects",
        "iterations",
        "object_size",
        "offset",
        "repeats",
        "waiting_factor",
        "read_only",
    ):
        assert after["workload"]["parameters"][name] == before["workload"]["parameters"][name]
    assert [p["name"] for p in after["phases"]] == [p["name"] for p in before["phases"]]
    for a, b in zip(after["phases"], before["phases"], strict=True):
        assert (
            a["operations"] == b["operations"]
            and a["rate"] == pytest.approx(b["rate"], rel=1e-4)
            and a["balance"] == pytest.approx(b["balance"], rel=1e-2)
        )
        for op, latency in b["latency"].items():
            if op in ("stat", "read", "create", "unlink"):
                assert {q: a["latency"][op][q] for q in ("min", "q25", "q50", "q75", "q99", "max")} == pytest.approx(
                    {q: latency[q] for q in ("min", "q25", "q50", "q75", "q99", "max")}, rel=1e-4
                )


IMPORTED_TOO = {"csv": [], "parquet": [], "openmetrics": [], "md-workbench": ["md-workbench"]}
"""By format of exports the importers that read it. The first three are for other programs' readers, whose values are
equal (above)."""
NUMBER = re.compile(r"(?<![\w-])\d+\.?\d*(?:e[+-]\d+)?(?=\D|$)")


def test_which_formats_have_an_importer_too(run: Path, tmp_path: Path) -> None:
    """One that gets an importer needs the test below."""
    found = {}
    for format_ in FORMATS:
        export([run], format_, tmp_path / format_)
        found[format_] = [one.name for one in matching(Source(tmp_path / format_), all_importers())]
    assert found == IMPORTED_TOO


def imported(text: Path, out: Path) -> Path:
    (path,) = import_files([text], out, None, {"nodes": 1})
    return path


def known(phase: dict[str, Any]) -> dict[str, Any]:
    """What the text of md-workbench can say of a phase."""
    quantiles = ("min", "q25", "q50", "q75", "q90", "q99", "max")
    return {
        "counts": {op: one["count"] for op, one in phase["latency"].items()},
        **{key: phase[key] for key in ("name", "operations", "errors", "seconds", "rate")},
        "rank_seconds": phase.get("rank_seconds") or [],
        **{f"{op}.{q}": one.get(q) for op, one in phase["latency"].items() for q in quantiles},
    }


@pytest.mark.parametrize("sample", [*sorted(SAMPLES.glob("md-workbench/*.txt")), None], ids=lambda s: s and s.stem)
def test_what_is_imported_and_exported_is_the_file(sample: Path | None, run: Path, tmp_path: Path) -> None:
    """Of every md-workbench text that there is, and of an exported run: what is imported, exported and imported again
    has the same numbers, and what is exported twice is the same text but for the last digit of rates, which come of
    rounded seconds."""
    if sample is None:
        export([run], "md-workbench", tmp_path / "0.txt")
    first = imported(sample or tmp_path / "0.txt", tmp_path / "first")
    export([first], "md-workbench", tmp_path / "1.txt")
    second = imported(tmp_path / "1.txt", tmp_path / "second")
    export([second], "md-workbench", tmp_path / "2.txt")
    a, b = (json.loads((one / "run.json").read_text()) for one in (first, second))
    assert b["placement"] == a["placement"] and len(b["phases"]) == len(a["phases"])
    for before, after in zip(a["phases"], b["phases"], strict=True):
        old, new = known(before), known(after)
        assert set(old) == set(new)
        assert new.pop("name") == old.pop("name")
        for key in old:
            digit = 0.06 if key == "rate" else 1e-6  # of a rate one digit is printed
            assert new[key] == pytest.approx(old[key], rel=1e-4, abs=digit), key
    texts = [(tmp_path / f"{n}.txt").read_text() for n in ([1, 2] if sample else [0, 1, 2])]
    if sample is None:
        texts[0] = texts[0].replace(texts[0].splitlines()[0], texts[1].splitlines()[0], 1)  # the tool that measured
    for text in texts[1:]:
        assert NUMBER.sub("#", text) == NUMBER.sub("#", texts[0])
        for one, other in zip(NUMBER.findall(texts[0]), NUMBER.findall(text), strict=True):
            assert float(other) == pytest.approx(float(one), rel=1e-4, abs=0.11)
    version = re.search(r"version: ([^)]*)\)", texts[-1])
    assert version is not None and version[1] in (sample or tmp_path / "0.txt").read_text()


def test_log_and_reader_agree(run: Path) -> None:
    pooled = Run(run)
    total = sum(h.get_total_count() for tag, _, h in read_log(run / "latency.hlog") if tag == "benchmark.create")
    assert pooled.latencies("create").count == total


def test_refusals(iocast: Iocast, run: Path, foreign: Path, tmp_path: Path) -> None:
    done = iocast("export", run, "--format", "parqet", "--out", tmp_path / "x")
    assert done.returncode == 2 and "Did you mean 'parquet'" in done.stderr
    done = iocast("export", run, "--format", "csv", "--out", tmp_path / "x.csv", "--json")
    assert done.returncode == 0 and json.loads(done.stdout)["bytes"] == (tmp_path / "x.csv").stat().st_size
    for runs, format_, words in (
        ([run], "csv", "exists already"),
        ([tmp_path], "parquet", "no run.json"),
        ([foreign], "md-workbench", "workload fio"),
    ):
        with pytest.raises(InputError, match=words):
            export(runs, format_, tmp_path / ("x.csv" if words == "exists already" else "y"))
    assert not (tmp_path / "y").exists()
