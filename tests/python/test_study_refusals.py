# SPDX-License-Identifier: Apache-2.0
"""Studies that ask for what is not there: one finished sentence with file and line, exit 2, nothing lost."""

import re
from collections.abc import Callable
from datetime import date
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest
from study_inputs import SMALL, changed, write
from test_refusals import refused

from iocast.errors import InputError
from iocast.study import run_study
from iocast.study.desk import Desk
from iocast.study.spec import read_study
from iocast.study.store import Store
from iocast.jobs.workers import Workers

Iocast = Callable[..., CompletedProcess[str]]


def axis(**edit: Any) -> dict[str, Any]:
    return {"axis": {"as it is": {}, "other": {"edit": {k.replace("__", "."): v for k, v in edit.items()}}}}


CASES: list[tuple[str, dict[str, Any], tuple[str, ...]]] = [
    (
        "an axis that names nothing",
        changed(axes=axis(stations__mdt__servers=2)),
        ("study.yaml:", "stations.mdt.servers", "stations.mds.servers"),
    ),
    ("an unknown key", changed(levls=["p99(create) < 1 s"]), ("study.yaml:", "levls", "levels")),
    ("an unknown part", changed(base={"chasis": 1}), ("study.yaml:", "chasis", "no price", "chassis")),
    ("no parts at all", changed(parts=None), ("study.yaml:", "core", "no price", "parts")),
    (
        "a part without a price",
        changed(parts={**SMALL["parts"], "core": {"watts": 3}}),
        ("study.yaml:", "parts.core", "'price' is missing"),
    ),
    (
        "a level on an operation that is never done",
        changed(levels=["p99(readdir) < 1 s"]),
        ("readdir", "never does", "create"),
    ),
    (
        "a level that is none",
        changed(levels=["create should be fast"]),
        ("study.yaml:", "no level", "p99(create) < 50 ms"),
    ),
    ("an unknown statistic", changed(levels=["p98(create) < 50 ms"]), ("study.yaml:", "p98", "p99")),
    ("an unknown unit", changed(levels=["p99(create) < 50 m/s"]), ("study.yaml:", "m/s", "ms")),
    ("no unit", changed(levels=["p99(create) < 50"]), ("study.yaml:", "has no unit", "ms")),
    ("bits", changed(levels=["bandwidth(read) >= 10Gbit/s"]), ("study.yaml:", "is in bits", "it is 1.25 GB/s")),
    (
        "an edit of a part without a route",
        changed(platform="ime", axes=axis(demands__cached_write="5ms"), uncertainty=None),
        ("study.yaml:", "no operation", "'ime'", "demands.cached_write"),
    ),
    ("a rate from above", changed(levels=["rate(create) < 50k/s"]), ("study.yaml:", ">=")),
    ("a response time from below", changed(levels=["p99(create) > 50 ms"]), ("study.yaml:", "<")),
    ("an equality", changed(levels=["p99(create) = 50 ms"]), ("study.yaml:", "'='")),
    (
        "two limits of one quantity",
        changed(levels=["p99(create) < 50 ms", {"level": "p99(create) < 20 ms", "at": ["many"]}]),
        ("study.yaml:", "two limits of one quantity", "at the scale 'many'; keep one"),
    ),
    (
        "a level twice",
        changed(levels=["p99(create) < 50 ms", "p99(create) < 50 ms"]),
        ("study.yaml:", "'p99(create) < 50 ms' is there twice", "workload 'mix' at the scale 'few'; keep one"),
    ),
    (
        "a level twice in other units",
        changed(levels=["p99(create) < 50 ms", "p99(create) <= 0.05 s"]),
        ("study.yaml:", "are the same level"),
    ),
    (
        "a level at a scale where only another workload is",
        changed(
            workloads={
                "early": SMALL["workloads"]["mix"] | {"scales": ["few"]},
                "later": {
                    "workload": "mdtest-easy",
                    "phase": "file-create",
                    "settings": {"items": 4},
                    "scales": ["many"],
                },
            },
            levels=[{"level": "p99(unlink) < 1 s", "at": ["few", "many"]}],
        ),
        ("p99(unlink) < 1 s", "names the scale 'many', where nothing does 'unlink' (early does at few)", "leave that"),
    ),
    (
        "a level of a workload that does not do it",
        changed(
            workloads=SMALL["workloads"]
            | {"job": {"workload": "ior-easy", "phase": "write", "settings": {"per_process": "8MiB"}}},
            levels=[{"level": "p99(unlink) < 1 s", "workload": ["mix", "job"]}],
        ),
        ("names the workload 'job', where nothing does 'unlink' (mix does at few, many)",),
    ),
    ("no level", changed(levels=[]), ("study.yaml:", "at least one service level")),
    (
        "an unknown scale",
        changed(levels=[{"level": "p99(stat) < 1 s", "at": ["mny"]}]),
        ("study.yaml:", "mny", "Did you mean 'many'"),
    ),
    (
        "a level at a scale that its workload does not have",
        changed(
            workloads={
                **SMALL["workloads"],
                "later": {"workload": "mdtest-easy", "phase": "file-create", "scales": ["many"]},
            },
            levels=[{"level": "p99(create) < 1 s", "at": ["few"], "workload": "later"}],
        ),
        ("study.yaml:", "p99(create) < 1 s", "no place at the scale 'few'", "later runs at many"),
    ),
    (
        "a level with a workload that its scale does not have",
        changed(
            workloads={
                **SMALL["workloads"],
                "later": {"workload": "mdtest-easy", "phase": "file-create", "scales": ["many"]},
            },
            levels=[{"level": "p99(create) < 1 s", "at": ["few"], "workload": ["mix", "later"]}],
        ),
        ("study.yaml:", "no place at the workload 'later'", "mix runs at few, many"),
    ),
    ("a rate of any operation", changed(levels=["rate(any) >= 60k/s"]), ("study.yaml:", "rate(all)")),
    (
        "the time of one workload for another",
        changed(
            workloads={**SMALL["workloads"], "job": {"workload": "md-workbench"}},
            levels=[{"level": "time(job) < 60 s", "workload": "mix"}],
        ),
        ("study.yaml:", "workload 'job' alone", "leave out 'workload'"),
    ),
    ("an unknown scenario", changed(levels=[{"level": "p99(stat) < 1 s", "under": "rain"}]), ("study.yaml:", "rain")),
    (
        "an unknown workload",
        changed(workloads={"mix": {"workload": "md-workbnch"}}),
        ("workloads.mix", "md-workbnch", "md-workbench"),
    ),
    (
        "an unknown setting",
        changed(workloads={"mix": {"workload": "md-workbench", "settings": {"datsets": 1}}}),
        ("workloads.mix", "datsets", "datasets"),
    ),
    (
        "an unknown phase",
        changed(workloads={"mix": {"workload": "md-workbench", "phase": "benchmrk"}}),
        ("workloads.mix", "benchmrk"),
    ),
    (
        "an operation of two phases",
        changed(workloads={"mix": {"workload": "mdtest", "settings": {"items": 4}}}, levels=["p99(stat) < 1 s"]),
        ("study.yaml:", "p99(stat)", "directory-stat and file-stat", "workloads.mix.phase"),
    ),
    (
        "an operation of another phase",
        changed(
            workloads={"mix": {"workload": "ior-easy", "settings": {"per_process": "8MiB"}}},
            levels=["p99(pread) < 1 s"],
        ),
        ("study.yaml:", "in read", "workloads.mix.phase"),
    ),
    ("an unknown platform", changed(platform="lustr"), ("study.yaml:", "lustr", "lustre")),
    ("a platform file that is not there", changed(platform="nothing.yaml"), ("study.yaml:", "nothing.yaml")),
    ("an unknown axis to exclude", changed(exclude=[{"sped": "fast"}]), ("study.yaml:", "sped", "speed")),
    ("an unknown value to exclude", changed(exclude=[{"speed": "fats"}]), ("study.yaml:", "fats", "fast")),
    ("an impossible confidence", changed(confidence=1.5), ("study.yaml:", "confidence", "1.5")),
    ("nobody to serve", changed(scales={"none": {"nodes": 0, "ranks_per_node": 4}}), ("study.yaml:", "nodes", "0")),
    ("half a node", changed(scales={"half": {"nodes": 0.5, "ranks_per_node": 4}}), ("study.yaml:", "nodes")),
    (
        "a factor that is no number",
        changed(axes=axis(stations__mds__servers={"times": "two"})),
        ("study.yaml:", "'times'", "two"),
    ),
    ("a sum of different units", changed(axes=axis(network__latency={"plus": "5GB/s"})), ("study.yaml:", "5GB/s")),
    (
        "an uncertainty about nothing",
        changed(uncertainty={"x": {"paths": "demands.mak", "factor": 2, "source": "s"}}),
        ("study.yaml:", "demands.mak", "demands.make"),
    ),
    (
        "an uncertainty without a source",
        changed(uncertainty={"x": {"paths": "demands.make", "factor": 2}}),
        ("study.yaml:", "'source' is missing"),
    ),
    (
        "a measurement of nothing",
        changed(measurements={"m": {"tells": "service time", "price": 1}}),
        ("measurements.m", "service time", "service times"),
    ),
    ("an edit that makes no platform", changed(axes=axis(stations__mds__discipline="lifo")), ("lifo",)),
    ("a newer schema", changed(schema_version=2), ("study.yaml:1", "2")),
    ("no axes", changed(axes={}), ("study.yaml:", "axes")),
]


@pytest.mark.parametrize("study, words", [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_bad_studies(
    simulator: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, study: dict[str, Any], words: tuple[str, ...]
) -> None:
    monkeypatch.setenv("IOCAST_BUILD", str(simulator.parents[1]))
    with pytest.raises(InputError) as refusal, Workers(1) as workers:
        run_study(write(tmp_path, study), tmp_path / "answer", workers, lambda *_: None, [])
    message = str(refusal.value)
    assert message.endswith(".") and "\n" not in message, message
    line = re.search(r"study\.yaml:(\d+): ", message)
    assert line and 1 <= int(line[1]) <= len((tmp_path / "study.yaml").read_text().splitlines()), message
    for word in words:
        assert word in message, (word, message)
    assert not (tmp_path / "answer" / "study.json").exists()


@pytest.mark.parametrize("at", [None, ["one"], ["many"], ["one", "many"]])
def test_a_level_holds_where_its_operation_is_done(simulator: Path, tmp_path: Path, at: list[str] | None) -> None:
    """An application whose writers are none with one rank: a level on writes has no place at that scale."""
    (tmp_path / "job.yaml").write_text(
        "schema_version: 1\ndescription: a reader beside a writer\nsource: made up\npattern: application\n"
        "application:\n  processes: {sets: {writers: 1, readers: 1}}\n"
        "  files: {results: {of: writers, per: process}, input: {of: readers, per: process}}\n"
        "  phases:\n    - name: step\n      accesses:\n"
        "        - {file: results, operation: write, layout: sequential, size: 1MiB, requests: 2}\n"
        "        - {file: input, operation: read, layout: sequential, size: 1MiB, requests: 2}\n"
    )
    level = {"level": "p99(pwrite) < 1 s"} | ({"at": at} if at else {})
    study = read_study(
        write(
            tmp_path,
            changed(
                workloads={"job": {"workload": "job.yaml"}},
                scales={"one": {"nodes": 1, "ranks_per_node": 1}, "many": {"nodes": 2, "ranks_per_node": 2}},
                levels=[level],
            ),
        )
    )
    with Workers(1) as workers, Store(tmp_path / "store") as store:
        if at and "one" in at:
            with pytest.raises(InputError, match="'pwrite'"):
                Desk(study, store, workers, lambda *_: None)
        else:
            assert Desk(study, store, workers, lambda *_: None).levels[0].places == (("job", "many"),)


@pytest.mark.parametrize("scales", [None, ["few"], ["many"], ["many", "few"]])
@pytest.mark.parametrize("level", ["rate(create) >= 60M/s", "p99(create) < 1 s"])
def test_no_level_is_without_a_place(tmp_path: Path, level: str, scales: list[str] | None) -> None:
    """A rate is due at the largest scale that its own workload has, though the study has a larger one."""
    mix = SMALL["workloads"]["mix"] | ({"scales": scales} if scales else {})
    study = read_study(
        write(tmp_path, changed(workloads={"mix": mix, "job": mix | {"scales": ["many"]}}, levels=[level]))
    )
    places = study.levels[0].places
    own = [scale for scale in ("few", "many") if scale in (scales or ["few", "many"])]
    assert places == tuple(("mix", s) for s in (own[-1:] if "rate" in level else own)) + (("job", "many"),)


def test_a_refusal_is_a_sentence_and_exit_2(iocast: Iocast, tmp_path: Path) -> None:
    refused(iocast("study", write(tmp_path, CASES[0][1]), "--out", tmp_path / "answer", "--workers", "1"), *CASES[0][2])


def test_lines_are_those_of_the_file(iocast: Iocast, tmp_path: Path) -> None:
    file = write(tmp_path, changed(levels=["p99(stat) < 8 ms", "p99(create) << 8 ms"]))
    number = next(i for i, line in enumerate(file.read_text().splitlines(), start=1) if "<<" in line)
    refused(iocast("study", file, "--out", tmp_path / "answer"), f"study.yaml:{number}:")
    twice = file.read_text() + "platform: mistral\n"
    file.write_text(twice)
    refused(
        iocast("study", file, "--out", tmp_path / "answer"), f"study.yaml:{len(twice.splitlines())}:", "given twice"
    )


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("a level on an operation that is never done", "p99(readdir)"),
        ("a level of a workload that does not do it", "p99(unlink)"),
        ("an operation of two phases", "p99(stat)"),
        ("an unknown setting", "settings:"),
        ("an unknown phase", "benchmrk"),
        ("an unknown workload", "mix:"),
        ("a measurement of nothing", "m:"),
    ],
)
def test_what_the_simulator_refuses_has_the_line_of_the_study(
    simulator: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str, word: str
) -> None:
    monkeypatch.setenv("IOCAST_BUILD", str(simulator.parents[1]))
    file = write(tmp_path, next(study for known, study, _ in CASES if known == name))
    with pytest.raises(InputError) as refusal, Workers(1) as workers:
        run_study(file, tmp_path / "answer", workers, lambda *_: None, [])
    number = re.search(r"study\.yaml:(\d+): ", str(refusal.value))
    assert number and word in file.read_text().splitlines()[int(number[1]) - 1], refusal.value


@pytest.mark.parametrize("key", ["title", "question", "currency", "platform"])
@pytest.mark.parametrize("given", [["a"], {"a": 1}, True, None])
def test_what_is_no_text_is_refused(tmp_path: Path, key: str, given: object) -> None:
    study = changed()
    study[key] = given
    with pytest.raises(InputError, match=rf"study\.yaml:\d+: '{key}' must be a text, not "):
        read_study(write(tmp_path, study))


@pytest.mark.parametrize("given", [5, 2.5, "17", ".", "1e3", "inf"])
def test_a_currency_is_no_number(tmp_path: Path, given: object) -> None:
    with pytest.raises(InputError, match=r"study\.yaml:\d+: 'currency' is '.*'; it must be a word or a sign"):
        read_study(write(tmp_path, changed(currency=given)))
    for known in ("EUR", "$", "\N{EURO SIGN}", "k\N{POUND SIGN}"):
        assert read_study(write(tmp_path, changed(currency=known))).currency == known


def test_a_date_is_a_text(tmp_path: Path) -> None:
    """YAML reads it as a date, and nobody writes it in quotes."""
    parts = {**SMALL["parts"], "core": {"price": 1, "source": date(2024, 5, 1)}}
    assert "source: 2024-05-01" in (file := write(tmp_path, changed(parts=parts))).read_text()
    assert read_study(file).parts["core"].source == "2024-05-01"


def test_limits_that_leave_nothing(iocast: Iocast, tmp_path: Path) -> None:
    """Answered, not refused: what is too dear is part of the answer."""
    done = iocast(
        "study", write(tmp_path, changed(limits={"budget": 100})), "--out", tmp_path / "answer", "--workers", "1"
    )
    assert done.returncode == 2, done.stderr
    assert "budget" in done.stderr and "6,000" in done.stderr


def test_directories_and_files_of_others_are_left_alone(iocast: Iocast, tmp_path: Path) -> None:
    file = write(tmp_path / "s", SMALL)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine").write_text("kept")
    refused(iocast("study", file, "--out", tmp_path / "full"), "no directory of a study")
    assert [p.name for p in (tmp_path / "full").iterdir()] == ["mine"]
    refused(iocast("study", tmp_path / "none.yaml", "--out", tmp_path / "a"), "none.yaml", "can't be read")
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "evaluations.sqlite").write_text(
        "this is no database, it is a long enough text to be read as one " * 9
    )
    refused(iocast("study", file, "--out", tmp_path / "broken"), "evaluations.sqlite", "Remove it")
    refused(iocast("study", file, "--out", tmp_path / "a", "--slurm", "--scheduler", "tcp://h:1"), "--scheduler")


def test_compare_refuses_what_it_can_not_set_side_by_side(iocast: Iocast, tmp_path: Path) -> None:
    refused(iocast("compare", tmp_path, tmp_path), "nothing that can be compared")
    (tmp_path / "a.yaml").write_text("schema_version: 1\nextends: lustre\n")
    refused(iocast("compare", tmp_path / "a.yaml", tmp_path / "a.yaml"), "--study")
    refused(iocast("compare", tmp_path / "a.yaml", tmp_path / "b.yaml", "--study", write(tmp_path, SMALL)), "b.yaml")
    refused(iocast("compare", "lustre", "mistral"), "--study")
    study = write(tmp_path, SMALL)
    refused(iocast("compare", "lustr", "lustre", "--study", study), "no platform 'lustr'", "Did you mean 'lustre'")
    # The small study's uncertainty is of demands that the other one lacks: both names were taken as platforms.
    refused(iocast("compare", "lustre", "queue", "--study", study), "the platform 'queue.yaml' has nothing at")
