# SPDX-License-Identifier: Apache-2.0
"""The keys of STUDY.yaml for the manual: meanings from here, ranges and defaults from the code that reads them."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from dataclasses import dataclass

from iocast.study import spec

MEANINGS = {
    "schema_version": "1",
    "title": "title of the page; left out: the name of the folder or file",
    "question": "one sentence",
    "platform": "a fitted platform, one that extends one (relative to the file), or a platform of the catalogue",
    "confidence": "probability with which all levels must hold",
    "workloads.NAME.workload": "a workload of the catalogue, a pattern, or a file",
    "workloads.NAME.settings": "parameters of the workload and their values",
    "workloads.NAME.weight": "weight in means over workloads",
    "workloads.NAME.phase": "phase of the levels; left out: `benchmark`, or else the main phase with most operations",
    "workloads.NAME.scales": "scales at which it runs; left out: all",
    "scales.NAME.nodes": "client nodes",
    "scales.NAME.ranks_per_node": "ranks on each",
    "tasks.NAME.OPERATION": "operations in a row of this kind that a user waits for",
    "axes.NAME.path": "a path of the platform, for an axis of numbers",
    "axes.NAME.values": "numbers, or `{times: x}`, `{plus: x}`, for that path",
    "axes.NAME.part": "the part that is bought as often as the value says",
    "axes.NAME.VALUE.platform": "another platform to start from",
    "axes.NAME.VALUE.add": "a piece of platform that is laid over the platform",
    "axes.NAME.VALUE.edit": "paths of the platform, each with a value, `{times: x}` or `{plus: x}`",
    "axes.NAME.VALUE.parts": "number of each part beyond `base`",
    "axes.NAME.VALUE.note": "text for the page",
    "exclude[].AXIS": "values; a design with one of them on every named axis can't be built",
    "currency": "name of the unit of prices",
    "base.PART": "number of this part in every design",
    "parts.NAME.price": "price of one",
    "parts.NAME.watts": "power of one",
    "parts.NAME.rack_units": "rack units of one",
    "parts.NAME.source": "where the price comes from; without one, or with `placeholder`, the page warns",
    "running.years": "years of electricity in the cost",
    "running.price_per_kwh": "price of a kilowatt-hour",
    "limits.budget": "largest price and electricity of a design",
    "limits.watts": "largest power of a design",
    "limits.rack_units": "largest height of a design",
    "scenarios.NAME.add": "a piece of platform that is laid over a design",
    "scenarios.NAME.edit": "paths of the design's platform, as in axes",
    "levels[].level": "a service level such as `p99(create) < 50 ms`; a level may also stand without a map",
    "levels[].workload": "workloads that it is about; left out: all",
    "levels[].at": "scales at which it must hold; left out: all for times, each workload's largest for rates",
    "levels[].under": "scenario in which it must hold; left out: everything works",
    "levels[].why": "text for the page",
    "uncertainty.NAME.paths": "paths whose numbers are wrong by one unknown factor",
    "uncertainty.NAME.factor": "the factor lies between 1/factor and factor with 90 % probability",
    "uncertainty.NAME.source": "where the factor comes from",
    "model_error.KIND": "90 % factor of the model's own error, for `rate`, `q50`, `q75`, `q95`, `q99` or `max`",
    "model_error.source": "where these factors come from",
    "measurements.NAME.tells": "names of `uncertainty`, or `the model`",
    "measurements.NAME.price": "price of the measurement",
    "measurements.NAME.leaves": "90 % factor that stays unknown afterwards",
    "falling_short": "cost of missing a level after buying; left out: the price of the decision",
    "most_operations": "operations of one simulation; larger workloads are simulated shorter",
    "search.full_up_to": "designs up to which all are screened; more are searched by an optimiser",
    "search.evaluations": "designs that the optimiser may screen",
    "search.simulate": "designs that may be simulated; 0: a tenth of all, at least twelve",
    "search.replications": "replications of each simulation, at most",
}
PREFIXES = {
    "read_study": "",
    "_scales": "scales.NAME.",
    "_workloads": "workloads.NAME.",
    "_tasks": "tasks.NAME.",
    "_parts": "parts.NAME.",
    "_numbers_axis": "axes.NAME.",
    "_named_axis": "axes.NAME.VALUE.",
    "_edits": "axes.NAME.VALUE.",
    "_levels": "levels[].",
    "_uncertainty": "uncertainty.NAME.",
    "_measurements": "measurements.NAME.",
    "_search": "search.",
}
"""Where the keys stand that a function of `iocast.study.spec` reads."""
SECTIONS = {"running": "running.", "limits": "limits.", "error": "model_error."}
"""Where the keys stand that are read from these variables."""
NAMED = {
    "tasks.NAME.OPERATION": ("0", ""),
    "base.PART": ("0", ""),
    "limits.budget": ("0", ""),
    "limits.watts": ("0", ""),
    "limits.rack_units": ("0", ""),
    "model_error.KIND": ("1", "100"),
}
"""Ranges of keys that are read in a loop over names."""
OUTER = {
    "workloads", "scales", "tasks", "axes", "exclude", "base", "parts", "running", "limits", "scenarios", "levels",
    "uncertainty", "model_error", "measurements", "search",
}  # fmt: skip
"""Sections, whose keys have rows of their own."""


@dataclass(frozen=True)
class Entry:
    """`low` and `high` are "" where there is no bound; `default` is "" where none is stated or it is empty."""

    meaning: str
    low: str = ""
    high: str = ""
    default: str = ""

    @property
    def between(self) -> str:
        if self.low and self.high:
            return f"{self.low} to {self.high}"
        return f"at least {self.low}" if self.low else f"at most {self.high}" if self.high else ""


def all_keys() -> dict[str, Entry]:
    """Every key in the order of `MEANINGS`."""
    read = {key: (low, high, default) for key, low, high, default in keys_read()}
    return {
        key: Entry(meaning, *(read.get(key) or (*NAMED.get(key, ("", "")), ""))) for key, meaning in MEANINGS.items()
    }


def keys_read() -> Iterator[tuple[str, str, str, str]]:
    """Key, low, high and default of each key that `iocast.study.spec` reads by its name."""
    for function in ast.parse(inspect.getsource(spec)).body:
        if isinstance(function, ast.FunctionDef) and function.name in PREFIXES:
            for call in ast.walk(function):
                if isinstance(call, ast.Call) and (found := _key(call, PREFIXES[function.name])):
                    yield found


def _key(call: ast.Call, prefix: str) -> tuple[str, str, str, str] | None:
    is_whole = isinstance(call.func, ast.Name) and call.func.id == "_whole"
    arguments = call.args[1:] if is_whole else call.args
    is_read = isinstance(call.func, ast.Attribute) and call.func.attr in ("number", "value", "choice")
    helper = isinstance(call.func, ast.Name) and call.func.id in ("_names", "_counts", "_platform")
    if helper:
        arguments = call.args[1:2]
    if not (is_whole or is_read or helper) or not arguments or not isinstance(arguments[0], ast.Constant):
        return None
    key = str(arguments[0].value)
    if isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Name):
        prefix = SECTIONS.get(call.func.value.id, prefix)
    if not prefix and key in OUTER:
        return None
    bounds = {k.arg: k.value for k in call.keywords}
    is_number = is_read and isinstance(call.func, ast.Attribute) and call.func.attr == "number"
    if is_whole:
        return f"{prefix}{key}", "1", _written(arguments[1]), ""
    default = _written(arguments[1]) if is_number and len(arguments) > 1 else ""
    return f"{prefix}{key}", _written(bounds.get("low")), _written(bounds.get("high")), default


def _written(node: ast.expr | None) -> str:
    """A constant, or a default of `Search`, as people write it."""
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "known":
        return f"{getattr(spec.Search(), node.attr):,}"
    if not isinstance(node, ast.Constant) or not isinstance(node.value, int | float):
        return ""
    return f"{node.value:,.12g}"
