# SPDX-License-Identifier: Apache-2.0
"""What the owner of a system knows of it: numbers of the platform that a calibration holds (a fact), or begins with and
is drawn to (a prior with a spread)."""

from __future__ import annotations

import copy
import difflib
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from iocast.calibrate.recipe import NO_LIMIT, Option, Parameter, Recipe, family_document, read_recipe
from iocast.calibrate.reading import seconds_of
from iocast.errors import InputError
from iocast.platforms.documents import Document, get_path, set_path
from iocast.platforms.platform_names import SYNONYMS, paths

SECTIONS = ("stations", "limits", "locks", "caches", "buffers", "demands")
"""Whose numbers may be known: `mds.servers` is `stations.mds.servers`."""
UNSTATED = {"stations": ("servers", "count", "contention", "crowding"), "limits": ("slots",)}
"""Numbers of a section's parts that a family's file need not write."""
COUNTS = ("servers", "count", "slots")


@dataclass(frozen=True)
class Known:
    """name: as it was given. value: as a platform has it, `512` or `20us`. factor: how far the true value may well be
    off either way (a standard deviation of the logarithm); 1: a fact."""

    name: str
    value: Any
    factor: float = 1.0

    @classmethod
    def of(cls, text: str) -> Known:
        """ "mds.servers=512", or "mds.servers=512~2" for one that may well be off by a factor 2.

        @raises InputError for what is no such text"""
        found = re.fullmatch(r"\s*([\w.-]+)\s*=\s*([^~\s]+)\s*(?:~\s*([\d.]+))?\s*", text)
        if found is None or found[3] is not None and not _is_factor(found[3]):
            raise InputError(
                f"'{text}' is nothing that may be known; write NAME=VALUE for a fact, such as mds.servers=512, or "
                "NAME=VALUE~FACTOR with a factor above 1 that it may well be off by, such as network=20us~1.5."
            )
        return cls(found[1], _value(found[2]), float(found[3] or 1))

    def document(self) -> Document:
        return {"name": self.name, "value": self.value} | ({"factor": self.factor} if self.factor > 1 else {})


def _is_factor(text: str) -> bool:
    try:
        return 1 < float(text) < 1000
    except ValueError:
        return False


def _value(text: str) -> Any:
    try:
        return int(text)
    except ValueError:
        try:
            return float(text)
        except ValueError:
            return text


def families_with(known: Sequence[Known], families: Sequence[str]) -> tuple[str, ...]:
    """Those of the families that have all these names.

    @raises InputError for a name that none has, with the nearest one"""
    names = {family: _names(family) for family in families}
    for one in known:
        if not any(_path(one.name, own) for own in names.values()):
            near = difflib.get_close_matches(
                one.name, sorted({n for own in names.values() for n in own}), n=1, cutoff=0.5
            )
            hint = f" Did you mean '{near[0]}'?" if near else ""
            raise InputError(
                f"'{one.name}' is known of nothing in {_listed(families)}.{hint} 'iocast describe {families[0]}' shows "
                "what a family has."
            )
    having = tuple(family for family in families if all(_path(one.name, names[family]) for one in known))
    if not having:
        raise InputError(f"No family has all of {', '.join(one.name for one in known)}; name one with --platform.")
    return having


def _listed(families: Sequence[str]) -> str:
    return f"the family '{families[0]}'" if len(families) == 1 else f"the families {', '.join(families)}"


def _names(platform: str) -> dict[str, str]:
    """By name that may be given, its path: the path itself, without its section, and names of parameters."""
    document = family_document(platform)
    every = {path for path in paths({section: document.get(section) or {} for section in SECTIONS}) if "." in path}
    for section, keys in UNSTATED.items():
        every |= {f"{section}.{part}.{key}" for part in document.get(section) or {} for key in keys}
    found = {path: path for path in every}
    for path in sorted(every):
        found.setdefault(path.partition(".")[2], path)
    return {p.name: p.path for p in _parameters(read_recipe(platform))} | found


def _path(name: str, names: dict[str, str]) -> str:
    head, _, last = name.rpartition(".")
    return names.get(name) or names.get(f"{head}.{SYNONYMS.get(last, last)}", "")


def holding(recipe: Recipe, known: Sequence[Known]) -> Recipe:
    """The recipe of a fit in which facts are held and priors are begun with. A choice between values of a known
    number falls away; one that the family fits is fitted no more.

    @raises InputError for a value that can't be there"""
    if not known:
        return recipe
    if recipe.method == "rates":
        raise InputError(
            f"'{known[0].name}' can't be held: rates alone are continued by curves, which have no such number. Runs "
            "with latencies are fitted with it."
        )
    names = _names(recipe.family)
    result = replace(recipe, choices=dict(recipe.choices), facts=dict(recipe.facts), priors=dict(recipe.priors))
    named: dict[str, Known] = {}
    for one in known:
        path = _path(one.name, names)
        if other := named.get(path):
            raise InputError(
                f"'{other.name}' and '{one.name}' are one number, which has one value; leave one of them out."
            )
        named[path] = one
        if one.factor > 1:
            _draw_to(result, path, one)
        else:
            _hold(result, path, one)
    return result


def _parameters(recipe: Recipe) -> list[Parameter]:
    return [
        *recipe.parameters,
        *(p for options in recipe.choices.values() for option in options for p in option.parameters),
    ]


def _between_values(options: Iterable[Option], path: str) -> bool:
    """Whether the options are values of the number that the path names, and nothing else."""
    edits = [option.edit for option in options if option.edit]
    return bool(edits) and all(get_path(edit, path) is not None and _without(edit, path) == {} for edit in edits)


def _without(edit: Document, path: str) -> Document:
    rest = copy.deepcopy(edit)
    set_path(rest, path, None)

    def bare(node: Document) -> Document:
        kept = {key: bare(value) if isinstance(value, dict) else value for key, value in node.items()}
        return {key: value for key, value in kept.items() if value != {}}

    return bare(rest)


def _changed(recipe: Recipe, path: str, change: Any) -> bool:
    """Changes the parameters that are written there; whether there is one."""
    there = any(p.path == path for p in _parameters(recipe))
    recipe.parameters = [change(p) if p.path == path else p for p in recipe.parameters]
    recipe.choices = {
        choice: [
            replace(option, parameters=tuple(change(p) if p.path == path else p for p in option.parameters))
            for option in options
        ]
        for choice, options in recipe.choices.items()
    }
    return there


def _number(one: Known, low: float, high: float, unit: str) -> float:
    value = seconds_of(one.value) if unit == "s" else one.value
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        raise InputError(
            f"'{one.name}' is known to be {one.value}; it is fitted between {low:g}{unit} and {high:g}{unit}, so that "
            "it must be " + ("a time such as 20us there." if unit == "s" else "a number there.")
        )
    return float(value)


def _hold(recipe: Recipe, path: str, one: Known) -> None:
    for choice, options in recipe.choices.items():
        if _between_values(options, path):
            _require_count(one)
            edit: Document = {}
            set_path(edit, path, one.value)
            recipe.choices[choice] = [Option(str(one.value), edit=edit)]
            recipe.facts[path] = one.value
            return
    if not _changed(recipe, path, lambda p: replace(p, start=_number(one, p.low, p.high, p.unit), held=True)):
        if path.rpartition(".")[2] in COUNTS:
            _require_count(one)
        recipe.facts[path] = one.value


def allowed(options: Iterable[Option], facts: dict[str, Any]) -> list[Option]:
    """Those that leave what is known as it is."""
    return [
        option
        for option in options
        if all(get_path(option.edit, path) in (None, value) for path, value in facts.items())
    ]


def _require_count(one: Known) -> None:
    if isinstance(one.value, bool) or not isinstance(one.value, int) or not 1 <= one.value <= NO_LIMIT:
        raise InputError(f"'{one.name}' is known to be {one.value}; it must be a whole number of at least 1.")


def _draw_to(recipe: Recipe, path: str, one: Known) -> None:
    spread = math.log(one.factor)
    if any(_between_values(options, path) for options in recipe.choices.values()):
        recipe.priors[path] = (_number(one, 1, NO_LIMIT, ""), spread)
    elif not _changed(recipe, path, lambda p: replace(p, start=_number(one, p.low, p.high, p.unit), spread=spread)):
        raise InputError(
            f"'{one.name}' is not fitted by the family '{recipe.family}', so that it can't be a prior; state it as a "
            f"fact: {one.name}={one.value}."
        )
