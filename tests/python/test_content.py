# SPDX-License-Identifier: Apache-2.0
"""The hash of the inputs of an answer: what changes it and what doesn't; no store answers a changed question from an
old result."""

import json
import shutil
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest
import yaml
from programs import REPOSITORY, find_program
from schedule import SOME_PLATFORMS, mostly_long
from study_inputs import changed, write

from iocast.platforms import content
from iocast.calibrate import search
from iocast.calibrate.trace import Trace
from iocast.platforms.content import READERS, content_hash, platform_hash, program_hash, sources_of, workload_hash
from iocast.platforms.documents import PLATFORMS
from iocast.study import evaluate

CATALOGUE = REPOSITORY / "workload" / "catalogue"
WORKLOAD = """schema_version: 1
description: mine
source: me
pattern: md-workbench
parameters:
  datasets: 1
  objects: 20
  iterations: 20
"""
FAMILY = """schema_version: 1
description: own family
source: me
stations: {srv: {servers: 2}}
demands: {work: {law: exponential, mean: 100us}, net: 50us}
operations: {stat: [{delay: net}, {station: srv, demand: work}]}
"""


def reversed_keys(content: Any) -> Any:
    """The same with the keys of every map in the other order."""
    if isinstance(content, dict):
        return {key: reversed_keys(value) for key, value in reversed(content.items())}
    return [reversed_keys(value) for value in content] if isinstance(content, list) else content


def plain_paths(content: Any, prefix: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The way to every single value."""
    entries = content.items() if isinstance(content, dict) else enumerate(content) if isinstance(content, list) else ()
    found = [prefix] if not isinstance(content, dict | list) else []
    return found + [path for key, value in entries for path in plain_paths(value, (*prefix, key))]


def with_another(content: Any, path: tuple[Any, ...]) -> Any:
    """A copy with another value at the path."""
    made = json.loads(json.dumps(content))
    here = made
    for key in path[:-1]:
        here = here[key]
    here[path[-1]] = f"{here[path[-1]]}9"
    return made


@pytest.mark.parametrize(
    "file",
    mostly_long(
        sorted(PLATFORMS.glob("*.yaml")),
        [PLATFORMS / f"{name}.yaml" for name in SOME_PLATFORMS],
        "values of the same kinds",
    ),
    ids=lambda f: f.stem,
)
def test_every_value_of_a_platform_counts_and_its_prose_does_not(file: Path, tmp_path: Path) -> None:
    document = yaml.safe_load(file.read_text())
    before = platform_hash(document, file.parent)
    assert platform_hash(reversed_keys(document), file.parent) == before
    described = document | {"description": "else", "source": "else", "calibration": {}}
    assert platform_hash(described, file.parent) == before
    behaviour = {
        key: value
        for key, value in document.items()
        if key not in ("schema_version", "extends", "description", "source", "calibration", "fitted")
    }
    same = [
        path for path in plain_paths(behaviour) if platform_hash(with_another(document, path), file.parent) == before
    ]
    assert not same


def test_a_platform_counts_through_all_that_it_extends(tmp_path: Path) -> None:
    (tmp_path / "family.yaml").write_text(FAMILY)
    (tmp_path / "middle.yaml").write_text("{schema_version: 1, extends: family.yaml}")
    document = {"schema_version": 1, "extends": "middle.yaml"}
    before = platform_hash(document, tmp_path)
    (tmp_path / "family.yaml").write_text(
        "# a comment\n" + FAMILY.replace("source: me", "source: you").replace("servers: 2", "servers: 2.0")
    )
    assert platform_hash(document, tmp_path) == before
    shutil.copytree(tmp_path, tmp_path / "moved", ignore=lambda *_: ["moved"])
    assert platform_hash(document, tmp_path / "moved") == before
    (tmp_path / "family.yaml").write_text(FAMILY.replace("servers: 2", "servers: 8"))
    assert platform_hash(document, tmp_path) != before


@pytest.mark.parametrize("file", sorted(CATALOGUE.glob("*.yaml")), ids=lambda f: f.stem)
def test_every_value_of_a_workload_counts_and_its_name_and_prose_do_not(file: Path, tmp_path: Path) -> None:
    document = yaml.load(file.read_text(), Loader=yaml.BaseLoader)
    copy = tmp_path / "renamed.yaml"

    def hash_of(content: Any) -> str:
        copy.write_text(yaml.safe_dump(content, sort_keys=False))
        return workload_hash(str(copy), {})

    before = workload_hash(file.stem, {})
    assert workload_hash(str(file), {}) == before
    assert hash_of(document | {"description": "else", "source": "else"}) == before
    assert (hash_of(reversed_keys(document)) == before) == (document["pattern"] != "mix"), (
        "members of a mix get their ranks in order"
    )
    behaviour = {
        key: value for key, value in document.items() if key not in ("schema_version", "description", "source", "small")
    }
    assert not [path for path in plain_paths(behaviour) if hash_of(with_another(document, path)) == before]


def test_a_trace_counts_by_its_content(tmp_path: Path) -> None:
    example = REPOSITORY / "workload" / "traces" / "example.h5"
    shutil.copy(example, tmp_path / "a.h5")
    before = workload_hash("replay", {"file": str(tmp_path / "a.h5")})
    assert workload_hash("replay", {"file": "example.h5"}) == before
    assert workload_hash("mix", {"one.workload": "replay", "one.file": "example.h5"}) == workload_hash(
        "mix", {"one.workload": "replay", "one.file": str(tmp_path / "a.h5")}
    )
    (tmp_path / "a.h5").write_bytes(example.read_bytes() + b"more")
    assert workload_hash("replay", {"file": str(tmp_path / "a.h5")}) != before


def test_a_member_of_a_mix_counts_by_its_content(tmp_path: Path) -> None:
    member = tmp_path / "mine.yaml"
    member.write_text(WORKLOAD)
    settings = {"one.workload": str(member), "two.workload": "postmark"}
    before = workload_hash("mix", settings)
    member.write_text(WORKLOAD.replace("objects: 20", "objects: 21"))
    assert workload_hash("mix", settings) != before


def test_every_key_of_a_request_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    request = {
        "what": "simulate", "platform_key": "a", "workload": "md-workbench", "settings": {"datasets": "2"}, "nodes": 2,
        "ranks_per_node": 3, "seed": 4,
        "phase": "benchmark", "bytes": {"create": 5},
    }  # fmt: skip
    other = {
        "what": "analytic", "platform_key": "b", "workload": "postmark", "settings": {"datasets": "3"}, "nodes": 9,
        "ranks_per_node": 9, "seed": 9, "phase": "x",
        "bytes": {"create": 6},
    }  # fmt: skip
    before = evaluate.key_of(request)
    assert evaluate.key_of(dict(reversed(request.items()))) == before
    assert not [key for key in request if evaluate.key_of(request | {key: other[key]}) == before]
    monkeypatch.setattr(evaluate, "programs", lambda: {"simulate": "another simulator", "analytic": ""})
    assert evaluate.key_of(request) != before


def test_a_candidates_key_holds_the_family_that_it_extends(tmp_path: Path) -> None:
    family = tmp_path / "family.yaml"

    def key(text: str, **changed_question: Any) -> str:
        family.write_text(text)
        question = {
            "settings": {"objects": "3"},
            "ranks": 4,
            "phase": "benchmark",
            "names": ["rate"],
            "seed": 0,
        } | changed_question
        document = {"schema_version": 1, "extends": str(family), "demands": {"net": "10us"}}
        questions = [("md-workbench", question["settings"], 1, question["ranks"], question["phase"], question["names"])]
        return Trace(None).keys(document, questions, question["seed"])[0]

    before = key(FAMILY)
    assert key("# a comment\n" + FAMILY) == before
    assert key(FAMILY.replace("servers: 2", "servers: 8")) != before
    for change in (
        {"settings": {"objects": "4"}},
        {"ranks": 5},
        {"phase": "precreate"},
        {"names": ["stat.q50"]},
        {"seed": 1},
    ):
        assert key(FAMILY, **change) != before, change


def test_an_edited_workload_is_computed_again_and_a_renamed_one_is_not(
    iocast: Callable[..., CompletedProcess[str]], tmp_path: Path
) -> None:
    def study_of(workload: str, text: str) -> dict[str, Any]:
        (tmp_path / workload).write_text(text)
        axes = {"speed": {"plain": {}, "fast": {"edit": {"stations.mds.speed": 2}}}}
        file = write(
            tmp_path,
            changed(
                workloads={"mix": {"workload": workload}}, axes=axes, scales={"few": {"nodes": 2, "ranks_per_node": 2}}
            ),
        )
        done = iocast("study", file, "--out", tmp_path / "out", "--workers", "1", "--json")
        assert done.returncode in (0, 4), done.stderr
        return json.loads(done.stdout)

    def rates(answer: dict[str, Any]) -> list[float]:
        return [d["rate"] for d in answer["designs"]]

    first = study_of("mine.yaml", WORKLOAD)
    renamed = study_of("yours.yaml", "# the same\n" + WORKLOAD)
    assert renamed["search"]["computed"] == 0 and rates(renamed) == rates(first)
    edited = study_of("mine.yaml", WORKLOAD.replace("iterations: 20", "iterations: 20\n  object_size: 4MB"))
    assert edited["search"]["computed"] > 0
    assert max(rates(edited)) < 0.9 * min(rates(first)), "four million bytes each take longer than 3901"


def test_same_content_is_the_same_hash() -> None:
    assert content_hash({"a": 1, "b": [1, {"c": None}]}) == content_hash({"b": (1.0, {"c": None}), "a": 1})
    assert content_hash({"a": True}) != content_hash({"a": 1})


def ran_by(work: Callable[[], object]) -> set[Path]:
    """Source files of iocast whose functions run meanwhile."""
    names: set[str] = set()
    sys.setprofile(lambda frame, *_: names.add(frame.f_code.co_filename))
    try:
        work()
    finally:
        sys.setprofile(None)
    root = Path(evaluate.__file__).resolve().parents[1]
    return {Path(name).resolve() for name in names if Path(name).resolve().is_relative_to(root)}


def test_every_source_that_computes_an_evaluation_counts(monkeypatch: pytest.MonkeyPatch, simulator: Path) -> None:
    """Those whose functions run when one is computed are found among the imports; each changes the key."""
    request = {
        "platform": {"schema_version": 1, "extends": "queue"}, "platform_key": "k", "workload": "md-workbench",
        "settings": {"datasets": "1", "objects": "5", "iterations": "5"}, "nodes": 1, "ranks_per_node": 2, "seed": 1,
        "phase": "benchmark", "bytes": {}, "mix": {"stat": 1.0, "create": 1.0},
        "place": [1, 2], "datasets": 2.0, "objects": 10.0, "blocks": {}, "waiting_factor": 0.0,
        "think_time": 0.0, "points": 64,
    }  # fmt: skip
    every, solver = set(sources_of("iocast.study.evaluate")), "analytic"
    readers = files_of(READERS)
    assert len(readers) == len(READERS)
    for what in ("resolve", "profile", "simulate", "analytic"):
        ran = ran_by(lambda: evaluate.evaluate(request | {"what": what}))  # noqa: B023
        assert ran & every and ran <= every | readers, (what, ran - every)
        assert (what == "analytic") == any(file.parent.name == solver for file in ran)
    before = evaluate.programs.__wrapped__()
    own = {file: content._source_hash(file) for file in every}
    for file in every:
        monkeypatch.setattr(content, "_source_hash", lambda one: "another" if one == file else own[one])  # noqa: B023
        after = evaluate.programs.__wrapped__()
        assert after["analytic"] != before["analytic"], file
        assert (after["simulate"] == before["simulate"]) == (file.parent.name == solver), file


def test_every_source_that_computes_a_candidate_counts(simulator: Path) -> None:
    def simulate() -> None:
        with search.Simulations(about="queue") as simulations:
            settings = {"datasets": "1", "objects": "5", "iterations": "5"}
            file = simulations.write({"schema_version": 1, "extends": "queue"})
            assert len(list(simulations.run([(file, "md-workbench", settings, 1, 2, 1)]))) == 1

    ran = ran_by(simulate)
    assert ran and ran <= set(sources_of("iocast.calibrate.search")) | files_of(READERS)


def files_of(modules: Iterable[str]) -> set[Path]:
    found = [(REPOSITORY / name.replace(".", "/")).with_suffix(".py") for name in modules]
    return {file for file in found if file.is_file()}


SOURCE = '''"""Rates."""

LIMIT = 3.0
"""Of a rate."""


def rate(count, seconds):
    """Operations a second."""
    if seconds <= 0:  # nothing took any time
        raise InputError(f"The run of {count} operations took no time.")
    return min(count / seconds, LIMIT)
'''
EDITS = [
    ("Operations a second.", "Operations in each second.", False),
    ("Of a rate.", "Most of a rate.", False),
    ("took no time", "has no length; measure it again", False),
    ("nothing took any time", "an empty phase", False),
    ("LIMIT = 3.0\n", "LIMIT = (\n    3.0\n)\n", False),
    ("count / seconds", "count * seconds", True),
    ("LIMIT = 3.0", "LIMIT = 3.1", True),
    ("seconds <= 0", "seconds < 0", True),
    ("raise InputError", "raise TooRare", True),
]


@pytest.mark.parametrize(("before", "after", "counts"), EDITS)
def test_an_edited_formula_counts_and_an_edited_sentence_does_not(before: str, after: str, counts: bool) -> None:
    assert before in SOURCE
    assert (content.computing(SOURCE) != content.computing(SOURCE.replace(before, after))) == counts


def test_a_study_computes_again_after_an_edited_formula_and_after_nothing_else(
    monkeypatch: pytest.MonkeyPatch, simulator: Path
) -> None:
    """The key of an evaluation, with an edit in each source that it depends on."""
    request = {"what": "analytic", "platform_key": "k", "platform": {}, "mix": {"stat": 1.0}}
    sources = sources_of("iocast.study.evaluate")
    assert not files_of(READERS) & set(sources), "an edit of these changes no key"
    own = {file: content._source_hash(file) for file in sources}
    programs = evaluate.programs.__wrapped__

    def key(file: Path, edit: str) -> str:
        edited = content_hash(content.computing(file.read_text() + edit))
        monkeypatch.setattr(content, "_source_hash", lambda one: edited if one == file else own[one])
        monkeypatch.setattr(evaluate, "programs", programs)
        return evaluate.key_of(request)

    before = key(sources[0], "")
    for file in sources:
        assert key(file, '\n# A sentence.\n"""Another."""\n') == before, file
        assert key(file, "\nSCALE = 1.1\n") != before, file


def test_every_library_that_a_program_loads_counts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Traces are read by one of them, and the routes of SimGrid's platforms by another."""
    program = find_program("iocast-sim")
    assert program is not None
    shutil.copytree(program.parents[1] / "lib", tmp_path / "lib")
    (tmp_path / "bin").mkdir()
    shutil.copy(program, tmp_path / "bin")
    monkeypatch.setenv("IOCAST_BUILD", str(tmp_path))
    libraries = sorted((tmp_path / "lib" / "iocast").glob("*.so"))
    assert {"hdf5", "simgrid", "backend-s3"} <= {one.stem for one in libraries}
    before = program_hash(["iocast-sim"])
    for library in libraries:
        content = library.read_bytes()
        library.write_bytes(content + b" ")
        assert (program_hash(["iocast-sim"]) != before) == (not library.stem.startswith("backend-")), library
        library.write_bytes(content)
