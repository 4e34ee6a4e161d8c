# SPDX-License-Identifier: Apache-2.0
"""Documents are what iocast/records declares: no key more, none less, and values of the declared kinds."""

from __future__ import annotations

import json
import types
import typing
from collections.abc import Mapping
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from programs import REPOSITORY
from referencing import Registry, Resource
from typing_extensions import NotRequired

import iocast
from iocast.records.comparison import ComparisonDocument
from iocast.records.forecast import ForecastDocument
from iocast.records.knee import KneeDocument
from iocast.records.schemas import made_plain, schemas
from iocast.records.validation import ValidationDocument

SMALL = {"datasets": 1, "iterations": 10, "objects": 10}
CIRRUS = str(REPOSITORY / "examples" / "first-forecast" / "cirrus.csv")
SCHEMAS = REPOSITORY / "docs" / "schemas"
KNEES = sorted((REPOSITORY / "tests" / "earlier").rglob("knee.json"))


def fault(value: Any, kind: Any, where: str = "document") -> str:
    """What the declaration doesn't allow, the first such place; "" for nothing."""
    origin, parts = typing.get_origin(kind), typing.get_args(kind)
    if typing.is_typeddict(kind):
        return _fault_of_map(value, kind, where)
    if origin in (typing.Union, types.UnionType):
        found = [fault(value, part, where) for part in parts]
        return "" if "" in found else max(found, key=len)
    if origin is list and isinstance(value, list):
        return next(filter(None, (fault(one, parts[0], f"{where}[]") for one in value)), "")
    if origin is dict and isinstance(value, dict):
        return next(filter(None, (fault(one, parts[1], f"{where}.{key}") for key, one in value.items())), "")
    if kind is Any or (kind is float and isinstance(value, int) and not isinstance(value, bool)):
        return ""
    plain = origin or kind
    fits = isinstance(value, plain) and (plain is bool or not isinstance(value, bool))
    return "" if fits else f"{where} is {value!r}, not {plain}"


def _fault_of_map(value: Any, kind: Any, where: str) -> str:
    if not isinstance(value, Mapping):
        return f"{where} is {value!r}, not a map"
    hints = typing.get_type_hints(kind, localns={"NotRequired": NotRequired}, include_extras=True)
    optional = {key for key, hint in hints.items() if typing.get_origin(hint) is NotRequired}
    optional |= kind.__optional_keys__
    if unknown := value.keys() - hints.keys():
        return f"{where} has {sorted(unknown)}, which {kind.__name__} lacks"
    if absent := hints.keys() - optional - value.keys():
        return f"{where} has no {sorted(absent)} of {kind.__name__}"
    bare = {key: typing.get_args(h)[0] if typing.get_origin(h) is NotRequired else h for key, h in hints.items()}
    return next(filter(None, (fault(one, bare[key], f"{where}.{key}") for key, one in value.items())), "")


def test_forecasts_are_what_is_declared() -> None:
    solved = iocast.predict("queue", 1, 8, workload="md-workbench", settings=SMALL, solver="analytic").document()
    assert not fault(solved, ForecastDocument)
    assert not fault(iocast.simulate("queue", "md-workbench", 1, 2, settings=SMALL).document(), ForecastDocument)
    assert "has ['more']" in fault(solved | {"more": 1}, ForecastDocument)
    assert "document.level is 'high'" in fault(solved | {"level": "high"}, ForecastDocument)
    del solved["quantities"]["rate"]["low"]
    assert "document.quantities.rate has no ['low']" in fault(solved, ForecastDocument)


def test_validations_and_comparisons_are_what_is_declared() -> None:
    runs = iocast.import_results(CIRRUS)
    fitted = iocast.calibrate(runs)
    assert not fault(iocast.predict(fitted, 16).document(), ForecastDocument)
    assert not fault(iocast.validate(fitted, runs).document(), ValidationDocument)
    assert not fault(iocast.compare(runs.directories[0], runs.directories[0]).document(), ComparisonDocument)


@pytest.mark.parametrize("file", KNEES, ids=lambda file: file.parent.name)
def test_knee_searches_are_what_is_declared(file: Any) -> None:
    assert not fault(json.loads(file.read_text()), KneeDocument)


def test_the_manual_has_the_schemas() -> None:
    there = {file.name: json.loads(file.read_text()) for file in SCHEMAS.iterdir()}
    assert there == json.loads(json.dumps(schemas())), (
        "the declarations changed; run: .venv/bin/python -m iocast.records.schemas docs/schemas"
    )


def test_schemas_are_those_of_every_msgspec() -> None:
    """Whether it indents the lines of docstrings (up to 0.22) or not."""
    plain = {"description": "one\ntwo", "properties": {"description": {"description": "three"}}}
    indented = {"description": "one\n    two", "properties": {"description": {"description": "three"}}}
    assert made_plain(indented) == plain == made_plain(plain)


def test_answers_keep_their_schemas() -> None:
    known = schemas()

    def faults(name: str, document: Mapping[str, Any]) -> list[str]:
        registry = Registry().with_resources((file, Resource.from_contents(one)) for file, one in known.items())
        check = Draft202012Validator(known[f"{name}.schema.json"], registry=registry)
        return [f"{one.json_path}: {one.message}" for one in check.iter_errors(json.loads(json.dumps(document)))]

    runs = iocast.import_results(CIRRUS)
    fitted = iocast.calibrate(runs)
    forecast = iocast.predict(fitted, 4096).document()
    assert forecast["cautions"] and not faults("forecast", forecast)
    assert not faults("fitted", fitted.document()["fitted"])
    assert not faults("validation", iocast.validate(fitted, runs).document())
    assert not faults("comparison", iocast.compare(runs.directories[0], runs.directories[0]).document())
    assert not [fault for file in KNEES for fault in faults("knee", json.loads(file.read_text()))]
    forecast["cautions"][0]["code"] = "of-tomorrow"
    assert faults("forecast", forecast)[0].startswith("$.cautions[0]: ")
