# SPDX-License-Identifier: Apache-2.0
"""The `calibration:` section of a platform file: what of it may be fitted, and how (docs/calibration.md)."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import yaml

from iocast.calibrate.evidence import EVIDENCE
from iocast.errors import InputError
from iocast.platforms.documents import Document, chain, find_platform, get_path, holds, merge, set_path
from iocast.ground.strict_yaml import Section, allowed_sentence


@dataclass(frozen=True)
class Parameter:
    """A number to be fitted, on a logarithmic scale between `low` and `high`."""

    name: str
    path: str
    low: float
    high: float
    start: float
    unit: str = ""
    when: str = ""  # "thinking": only when some measurement has a waiting factor
    spread: float = 1.5  # standard deviation of its logarithm beforehand: a weak prior, which keeps what nothing tells
    held: bool = False  # known to be `start`, and not fitted
    also: tuple[
        tuple[str, float], ...
    ] = ()  # further paths that get the value times a factor, where what they are in was measured
    within: tuple[
        tuple[str, str], ...
    ] = ()  # (law, demand): a way to and fro of its own, as long as this one but no longer than what was measured

    def write(self, document: Document, value: float) -> None:
        self._set(document, self.path, value)
        for path, factor in self.also:
            if holds(document, path.rpartition(".")[0]):
                self._set(document, path, value * factor)
        for law, way in self.within:
            if holds(document, f"demands.{law}.values"):
                there = min(value, _fastest(document["demands"][law]) / 2)
                set_path(document, f"demands.{way}", self._text(there))
                self._set(document, f"demands.{law}.shift", -2 * there)

    def _set(self, document: Document, path: str, value: float) -> None:
        """What several parameters take from a law adds up."""
        if path.endswith(".shift"):
            value += float(str(get_path(document, path, "0s")).removesuffix("s"))
            set_path(document, path, f"{value:.9g}s")
        else:
            set_path(document, path, self._text(value))

    def _text(self, value: float) -> Any:
        if self.unit == "B":
            return f"{round(value)}B"
        return f"{value:.9g}{self.unit}" if self.unit else float(f"{value:.9g}")


def _fastest(law: Document) -> float:
    """Seconds within which one in twenty is done by an `empirical` law."""
    values = [float(value.removesuffix("s")) for value in law["values"]]
    return float(np.interp(0.05, law["probabilities"], values))


@dataclass(frozen=True)
class Option:
    """One way a choice can fall: an edit of the platform, perhaps with parameters of its own."""

    name: str
    edit: Document
    then: Document = field(default_factory=dict)  # by path of a route, steps that follow at its end
    parameters: tuple[Parameter, ...] = ()
    needs: str = ""  # what must be seen in the data (evidence.py)
    detected: tuple[tuple[str, str], ...] = ()
    unlimited: str = ""  # a station at which nobody waits: it has NO_LIMIT servers
    rewrite: Callable[[Document], None] | None = None  # of the whole document, with all edits and parameters


NO_LIMIT = 1_000_000
"""Servers of a station of which no limit was seen: more than any question has ranks."""
MEASURED_SYSTEM = "measured_system"
FACTS = "facts"
"""What `iocast calibrate FACTS.csv` left (iocast/calibrate/facts.py)."""
PLAIN = "none"
"""The option of a choice that does nothing, by its name in every family."""


@dataclass
class Recipe:
    family: str
    method: str  # "quantiles": simulated quantile matching; "rates": what rates alone tell
    laws: dict[str, str]
    measured: dict[str, str]
    fixed: dict[str, Any]
    parameters: list[Parameter]
    choices: dict[str, list[Option]] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)
    """By path, numbers that are known, whatever structure is chosen."""
    priors: dict[str, tuple[float, float]] = field(default_factory=dict)
    """By path of a number that a choice is about, what it is thought to be, and the standard deviation of its
    logarithm."""


def read_recipe(platform: str) -> Recipe:
    """The section `calibration` of a platform, merged with those below it.

    @raises InputError when the platform can't be calibrated, or its section is malformed (with file and line)"""
    yaml_section = _calibration(platform)
    if yaml_section is None:
        raise InputError(
            f"The platform '{platform}' does not say what may be fitted; it and what it extends have no 'calibration' "
            "section."
        )
    yaml_section.value(FACTS, None)
    yaml_section.value(MEASURED_SYSTEM, None)  # no matter of a fit (iocast/platforms/family.py)
    recipe = Recipe(
        family=platform,
        method=yaml_section.choice("method", ("quantiles", "rates"), "quantiles"),
        laws=yaml_section.value("laws", {}),
        measured=yaml_section.value("measured", {}),
        fixed=yaml_section.value("fixed", {}),
        parameters=_parameters(yaml_section),
    )
    if "choices" in yaml_section:
        choices = yaml_section.section("choices")
        for choice in choices.keys():
            options = choices.section(choice)
            recipe.choices[str(choice)] = [
                _option(options.section(name), str(name), recipe.family) for name in options.keys()
            ]
    yaml_section.finish()
    return recipe


def _calibration(platform: str) -> Section | None:
    """The section `calibration` of a platform upon those of its bases; None where there is none, or a null."""
    found: Section | None = None
    for file, _ in reversed(chain(find_platform(platform))):
        whole = Section.load(file)
        if "calibration" not in whole:
            continue
        if whole.is_null("calibration"):
            found = None
            continue
        own = whole.section("calibration")
        found = own if found is None else own.over(found)
    return None if found is None or set(found.keys()) <= {MEASURED_SYSTEM, FACTS} else found


def _parameters(owner: Section) -> list[Parameter]:
    if "parameters" not in owner:
        return []
    result = []
    section = owner.section("parameters")
    for name in section.keys():
        one = section.section(name)
        low = one.number("low", low=1e-12)
        result.append(
            Parameter(
                name=name,
                path=one.text("path"),
                low=low,
                high=one.number("high", low=low),
                start=one.number("start", low=low),
                unit=one.text("unit", ""),
                when=one.choice("when", ("", "thinking"), ""),
                also=tuple(one.value("also", {}).items()),
                within=tuple(one.value("within", {}).items()),
            )
        )
        one.finish()
    return result


def _option(section: Section, name: str, platform: str) -> Option:
    unlimited = section.text("unlimited", "")
    edit = section.value("edit", {})
    if unlimited:
        stations = list(family_document(platform).get("stations", {}))
        if unlimited not in stations:
            section.fail(
                "unlimited", f"there is no station '{unlimited}'. {allowed_sentence(unlimited, stations)[:-1]}"
            )
        edit = merge(edit, {"stations": {unlimited: {"servers": NO_LIMIT}}})
    option = Option(
        name,
        edit=edit,
        then=section.value("then", {}),
        parameters=tuple(_parameters(section)),
        needs=section.choice("needs", ("", *EVIDENCE), ""),
        detected=tuple(section.value("detected", {}).items()),
        unlimited=unlimited,
    )
    section.finish()
    return option


def family_document(platform: str) -> Document:
    """The platform with all that it extends, merged."""
    merged: Document = {}
    for _, document in reversed(chain(find_platform(platform))):
        merged = merge(merged, document)
    merged.pop("extends", None)  # it is merged, and a file beside another is not found from elsewhere
    own: dict[str, Any] = yaml.safe_load(yaml.safe_dump(merged))
    return own


def options_of(choices: dict[str, list[Option]], structure: dict[str, str]) -> list[Option]:
    """By choice, the option of this name."""
    return [next(option for option in choices[choice] if option.name == name) for choice, name in structure.items()]


def without_limit(options: list[Option]) -> set[str]:
    """Stations at which nobody waits."""
    return {option.unlimited for option in options if option.unlimited}


def simplest(choices: dict[str, list[Option]], structure: dict[str, str]) -> dict[str, str]:
    """The structure without what says nothing where nobody waits for a server: the order of those who wait, their
    crowding, and a share of the servers for others, since a share of no limit has no size. Whoever puts options
    together does it by this: the search, its draws, and what is believed of a family before anything is measured."""
    options = options_of(choices, structure)
    free = without_limit(options)
    result = dict(structure)
    for choice, option in zip(structure, options, strict=True):
        plain = next((one for one in choices[choice] if one.name == PLAIN), None)
        if free and plain and _where_nobody_waits(option, free) == _where_nobody_waits(plain, free):
            result[choice] = PLAIN
    return result


def _where_nobody_waits(option: Option, free: set[str]) -> tuple[Any, ...]:
    """What an option says where nobody waits at these stations."""
    edit = copy.deepcopy(option.edit)
    idle = {f"stations.{station}.crowding" for station in free}
    for station in free & set(edit.get("stations") or {}):
        edit["stations"][station].pop("discipline", None)
    for name, work in list((edit.get("background") or {}).items()):
        if work.get("station") in free and "share" in work:
            del edit["background"][name]
            idle.add(f"background.{name}.share")
    parameters = [parameter for parameter in option.parameters if parameter.path not in idle]
    return _without_empty(edit), parameters, option.then, option.detected, option.rewrite


def _without_empty(document: Document) -> Document:
    kept = {key: _without_empty(value) if isinstance(value, dict) else value for key, value in document.items()}
    return {key: value for key, value in kept.items() if value != {}}
