# SPDX-License-Identifier: Apache-2.0
"""STUDY.yaml: the question of a study (docs/studies.md). Everything that can be checked without a platform or a program
is checked here."""

from __future__ import annotations

import contextlib
import math
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from statistics import NormalDist
from typing import Any, cast

from iocast.errors import InputError
from iocast.platforms.documents import Document, find_platform, get_path, set_path, with_whole_paths
from iocast.ground.strict_yaml import Section, allowed_sentence
from iocast.records.study import StudyFile
from iocast.study.documents import Edit
from iocast.study.levels import Level, parse_level, stated_twice

NORMAL = ""
"""The scenario in which everything works."""
MODEL = "the model"
"""What a measurement tells when it removes the model's own error, by measuring nearer to the target scale."""
MAX_DESIGNS = 10_000_000
_KINDS = ("rate", "q50", "q75", "q95", "q99", "max")


@dataclass(frozen=True)
class Workload:
    name: str
    reference: str  # a workload of the catalogue, a pattern or a file
    settings: dict[str, str]
    weight: float
    phase: str  # "" for the benchmark phase, or else the one with most operations
    scales: tuple[str, ...]


@dataclass(frozen=True)
class Scale:
    name: str
    nodes: int
    ranks_per_node: int

    @property
    def ranks(self) -> int:
        return self.nodes * self.ranks_per_node


@dataclass(frozen=True)
class Value:
    """One way an axis can fall."""

    name: str
    edits: tuple[Edit, ...]
    parts: dict[str, float]
    platform: str = ""  # another platform to start from
    note: str = ""
    line: int = 0


@dataclass(frozen=True)
class Axis:
    name: str
    values: tuple[Value, ...]
    numbers: bool = False  # values are numbers at one path, which say little without the axis' name

    def named(self, name: str) -> Value:
        return next(v for v in self.values if v.name == name)


@dataclass(frozen=True)
class Part:
    name: str
    price: float
    watts: float
    rack_units: float
    source: str


@dataclass(frozen=True)
class Limits:
    """infinity where none is stated"""

    budget: float = math.inf
    watts: float = math.inf
    rack_units: float = math.inf


@dataclass(frozen=True)
class Scenario:
    name: str
    edits: tuple[Edit, ...]
    line: int


@dataclass(frozen=True)
class Uncertain:
    """Numbers that all are wrong by one unknown factor, which lies between 1/factor and factor with 90 %
    probability."""

    name: str
    paths: tuple[str, ...]
    factor: float
    source: str
    line: int

    @property
    def sd(self) -> float:
        return math.log(self.factor) / NormalDist().inv_cdf(0.95)


@dataclass(frozen=True)
class Measurement:
    """Something that could be measured before buying, and what would still be unknown afterwards (as a 90 % factor)."""

    name: str
    tells: tuple[str, ...]
    price: float
    leaves: float


@dataclass(frozen=True)
class Search:
    full_up_to: int = 1000  # designs; more are searched by an optimiser
    evaluations: int = 600  # designs that the optimiser may look at
    simulate: int = 0  # designs that may be simulated; 0: a tenth of all, at least twelve
    replications: int = 16  # of each simulation, at most


@dataclass
class Study:
    file: Path
    title: str
    question: str
    platform: str
    confidence: float
    workloads: dict[str, Workload]
    scales: dict[str, Scale]  # smallest first
    tasks: dict[str, dict[str, float]]
    axes: list[Axis]
    exclude: list[dict[str, tuple[str, ...]]]
    base: dict[str, float]
    parts: dict[str, Part]
    currency: str
    years: float
    price_per_kwh: float
    limits: Limits
    scenarios: dict[str, Scenario]
    levels: list[Level]
    uncertainty: dict[str, Uncertain]
    model_error: dict[str, float]  # by kind of quantity, standard deviation of the logarithm
    model_error_source: str
    measurements: list[Measurement]
    falling_short: float | None
    most_operations: int
    search: Search = field(default_factory=Search)

    @property
    def largest(self) -> Scale:
        return list(self.scales.values())[-1]

    @property
    def size(self) -> int:
        """Designs of the full factorial, exclusions not yet taken off."""
        return math.prod(len(axis.values) for axis in self.axes)


def read_study(file: Path) -> Study:
    """@raises InputError: file, line, what is allowed and the nearest match"""
    yaml = Section.load(file, "study")
    scales = _scales(yaml)
    workloads = _workloads(yaml, scales)
    parts = _parts(yaml)
    axes = _axes(yaml, parts)
    scenarios = _scenarios(yaml)
    uncertainty = _uncertainty(yaml)
    running = yaml.section("running") if "running" in yaml else None
    limits = yaml.section("limits") if "limits" in yaml else None
    error = yaml.section("model_error") if "model_error" in yaml else None
    study = Study(
        file=file,
        title=yaml.text("title", file.parent.name if file.name == "study.yaml" else file.stem),
        question=yaml.text("question", ""),
        platform=_platform(yaml, "platform", yaml.text("platform")),
        confidence=yaml.number("confidence", 0.9, low=0.5, high=0.999),
        workloads=workloads,
        scales=scales,
        tasks=_tasks(yaml),
        axes=axes,
        exclude=_exclude(yaml, axes),
        base=_counts(yaml, "base", parts),
        parts=parts,
        currency=_currency(yaml),
        years=0.0 if running is None else running.number("years", low=0, high=100),
        price_per_kwh=0.0 if running is None else running.number("price_per_kwh", low=0),
        limits=Limits()
        if limits is None
        else Limits(*(float(limits.number(k, math.inf, low=0)) for k in ("budget", "watts", "rack_units"))),
        scenarios=scenarios,
        levels=_levels(yaml, workloads, scales, scenarios),
        uncertainty=uncertainty,
        model_error={}
        if error is None
        else {
            k: math.log(error.number(k, low=1, high=100)) / NormalDist().inv_cdf(0.95)
            for k in error.keys()
            if k != "source"
        },
        model_error_source="" if error is None else error.text("source"),
        measurements=_measurements(yaml, uncertainty),
        falling_short=yaml.number("falling_short", None, low=0),
        most_operations=int(yaml.number("most_operations", 1_000_000, low=1000, high=1e9)),
        search=_search(yaml),
    )
    for section in (running, limits, error):
        if section is not None:
            section.finish()
    if error is not None and (unknown := set(study.model_error) - set(_KINDS)):
        error.fail(
            min(unknown), f"'{min(unknown)}' is no kind of quantity. {allowed_sentence(min(unknown), _KINDS)[:-1]}"
        )
    yaml.finish()
    if study.size > MAX_DESIGNS:
        yaml.fail(
            "axes",
            f"the axes span {study.size} designs; at most {MAX_DESIGNS} can be distinguished here, so leave values or "
            "axes out",
        )
    return study


def _is_number(text: str) -> bool:
    with contextlib.suppress(ValueError):
        float(text)
        return True
    return False


def _currency(yaml: Section) -> str:
    """@raises InputError for a number, which would stand behind each price"""
    found = yaml.text("currency", "")
    if found and (_is_number(found) or not any(sign.isalpha() or unicodedata.category(sign) == "Sc" for sign in found)):
        yaml.fail("currency", f"'currency' is '{found}'; it must be a word or a sign, such as EUR")
    return found


def _platform(section: Section, key: str, name: str) -> str:
    """The platform's name, or its file relative to the study as an absolute path."""
    try:
        file = find_platform(name, section.file.parent)
    except InputError as error:
        section.fail(key, str(error).rstrip("."))
    if not file.is_file():
        section.fail(key, f"there is no file '{file}'")
    return str(file.resolve()) if name.endswith((".yaml", ".yml")) else name


def _named(
    yaml: Section, key: str, read: Callable[[Section, str], Any], what: str, need: bool = False
) -> dict[str, Any]:
    """A map of maps as {name: what `read` makes of it}; every entry's keys must all be known."""
    if key not in yaml and not need:
        return {}
    section = yaml.section(key)
    if need and not section.keys():
        yaml.fail(key, f"a study needs at least one {what}")
    result = {}
    for name in section.keys():
        one = section.section(name)
        result[name] = read(one, name)
        one.finish()
    section.finish()
    return result


def _scales(yaml: Section) -> dict[str, Scale]:
    def read(one: Section, name: str) -> Scale:
        return Scale(name, _whole(one, "nodes", 1e7), _whole(one, "ranks_per_node", 1e5))

    found = _named(yaml, "scales", read, "scale", need=True)
    return dict(sorted(found.items(), key=lambda item: (item[1].ranks, item[1].nodes)))


def _whole(section: Section, key: str, high: float) -> int:
    value = section.number(key, low=1, high=high)
    if value != int(value):
        section.fail(key, f"'{key}' must be a whole number, not {value:g}")
    return int(value)


def _names(section: Section, key: str, allowed: list[str], what: str) -> tuple[str, ...]:
    """A list of names, each of them known; empty when the key is not there."""
    names = section.texts(key, [])
    for name in names:
        if name not in allowed:
            section.fail(key, f"there is no {what} '{name}' here. {allowed_sentence(name, allowed)[:-1]}")
    return tuple(names)


def _workloads(yaml: Section, scales: dict[str, Scale]) -> dict[str, Workload]:
    def read(one: Section, name: str) -> Workload:
        reference = one.text("workload")
        if reference.endswith((".yaml", ".yml")):
            reference = str((one.file.parent / reference).resolve())
            if not Path(reference).is_file():
                one.fail("workload", f"there is no file '{reference}'")
        given = one.value("settings", {})
        if not isinstance(given, dict):
            one.fail("settings", "'settings' must be a map of parameters and values")
        settings = {str(k): str(v).lower() if isinstance(v, bool) else str(v) for k, v in given.items()}
        chosen = _names(one, "scales", list(scales), "scale") or tuple(scales)
        return Workload(name, reference, settings, one.number("weight", 1, low=0), one.text("phase", ""), chosen)

    found = _named(yaml, "workloads", read, "workload", need=True)
    if sum(w.weight for w in found.values()) <= 0:
        yaml.fail("workloads", "the weights of all workloads are zero, so none of them counts")
    return found


def _tasks(yaml: Section) -> dict[str, dict[str, float]]:
    def read(one: Section, name: str) -> dict[str, float]:
        return {operation: one.number(operation, low=0) for operation in one.keys()}

    return _named(yaml, "tasks", read, "task")


def _parts(yaml: Section) -> dict[str, Part]:
    def read(one: Section, name: str) -> Part:
        price, watts = float(one.number("price", low=0)), float(one.number("watts", 0, low=0))
        return Part(name, price, watts, float(one.number("rack_units", 0, low=0)), one.text("source", ""))

    return _named(yaml, "parts", read, "part")


def _counts(section: Section, key: str, parts: dict[str, Part]) -> dict[str, float]:
    """How many of each part."""
    if key not in section:
        return {}
    inner = section.section(key)
    counts = {name: float(inner.number(name, low=0)) for name in inner.keys()}
    for name in counts:
        if name not in parts:
            known = f"{allowed_sentence(name, list(parts))[:-1]}" if parts else "The study has no 'parts'"
            inner.fail(name, f"the part '{name}' has no price. {known}; add it to 'parts'")
    return counts


def _edits(section: Section) -> tuple[Edit, ...]:
    """The edits under `add` and `edit`."""
    edits: list[Edit] = []
    if "add" in section:
        piece = section.value("add")
        if not isinstance(piece, dict):
            section.fail("add", "'add' must be a piece of platform: a map of stations, demands, operations, ...")
        edits.append(Edit("", "lay", with_whole_paths(piece, section.file.parent)))
    if "edit" in section:
        inner = section.section("edit")
        for path in inner.keys():
            edits.append(_edit(path, inner.value(path), partial(inner.fail, path), section.file.parent))
    return tuple(edits)


def _edit(path: str, value: Any, fail: Callable[[str], Any], folder: Path) -> Edit:
    if isinstance(value, dict) and "law" not in value:
        if len(value) == 1 and next(iter(value)) in ("times", "plus"):
            how, amount = next(iter(value.items()))
            if how == "times" and (isinstance(amount, bool) or not isinstance(amount, int | float) or amount < 0):
                fail(f"'times' must be a factor of at least 0, not '{amount}'")
            return Edit(path, str(how), amount)
        fail(
            f"'{path}' can't be set to a map; write a value, {{times: 2}} or {{plus: 1}}, or use 'add' for a piece of "
            "platform"
        )
    own: Document = {}
    set_path(own, path, value)
    return Edit(path, "set", get_path(with_whole_paths(own, folder), path))


def _axes(yaml: Section, parts: dict[str, Part]) -> list[Axis]:
    section = yaml.section("axes")
    axes = []
    for name in section.keys():
        one = section.section(name)
        axes.append(_numbers_axis(one, name, parts) if "path" in one else _named_axis(one, name, parts))
    if not axes:
        yaml.fail("axes", "a study needs at least one axis with something to choose between")
    return axes


def _numbers_axis(one: Section, name: str, parts: dict[str, Part]) -> Axis:
    """path: one place of the platform; values: what is written there; part: what is bought as often as the value
    says."""
    path, part = one.text("path"), one.text("part", "")
    if part and part not in parts:
        known = f"{allowed_sentence(part, list(parts))[:-1]}" if parts else "The study has no 'parts'"
        one.fail("part", f"the part '{part}' has no price. {known}; add it to 'parts'")
    values = []
    for value, line in one.entries("values"):
        plain = {k: value.value(k) for k in value.keys()} if isinstance(value, Section) else value
        edit = _edit(path, plain, partial(one.fail_at, line), one.file.parent)
        bought: dict[str, float] = {}
        if part:
            if edit.how != "set" or isinstance(plain, bool) or not isinstance(plain, int | float):
                one.fail_at(line, f"'{plain}' is no number of parts; name the values, each with its own 'parts'")
            bought[part] = float(plain)
        text = str(plain) if edit.how == "set" else f"{'times' if edit.how == 'times' else 'plus'} {edit.value}"
        values.append(Value(text, (edit,), bought, line=line))
    one.finish()
    return _checked(one, name, values, numbers=True)


def _named_axis(one: Section, name: str, parts: dict[str, Part]) -> Axis:
    values = []
    for label in one.keys():
        value = one.section(label)
        platform = _platform(value, "platform", value.text("platform")) if "platform" in value else ""
        edits, counts = _edits(value), _counts(value, "parts", parts)
        values.append(Value(label, edits, counts, platform, value.text("note", ""), one.line(label)))
        value.finish()
    return _checked(one, name, values)


def _checked(one: Section, name: str, values: list[Value], numbers: bool = False) -> Axis:
    if not values:
        one.fail(None, f"the axis '{name}' has no values")
    names = [v.name for v in values]
    twice = next((n for n in names if names.count(n) > 1), None)
    if twice is not None:
        one.fail(None, f"the axis '{name}' has the value '{twice}' twice")
    return Axis(name, tuple(values), numbers)


def _exclude(yaml: Section, axes: list[Axis]) -> list[dict[str, tuple[str, ...]]]:
    """Combinations that nobody can build: {axis: values}; a design is out when it has one of the values on every axis
    named."""
    if "exclude" not in yaml:
        return []
    by_name = {axis.name: axis for axis in axes}
    found = []
    for one in yaml.sections("exclude"):
        for name in one.keys():
            if name not in by_name:
                one.fail(name, f"there is no axis '{name}'. {allowed_sentence(name, list(by_name))[:-1]}")
        found.append(
            {
                name: _names(one, name, [v.name for v in by_name[name].values], f"value of the axis '{name}'")
                for name in one.keys()
            }
        )
        one.finish()
    return found


def _scenarios(yaml: Section) -> dict[str, Scenario]:
    def read(one: Section, name: str) -> Scenario:
        return Scenario(name, _edits(one), one.line())

    return _named(yaml, "scenarios", read, "scenario")


def _levels(
    yaml: Section, workloads: dict[str, Workload], scales: dict[str, Scale], scenarios: dict[str, Scenario]
) -> list[Level]:
    levels = []
    for entry, line in yaml.entries("levels"):
        try:
            level = parse_level(entry.text("level") if isinstance(entry, Section) else str(entry))
        except InputError as error:
            yaml.fail_at(line, str(error).rstrip("."))
        about: tuple[str, ...] = ()
        at: tuple[str, ...] = ()
        under, why = NORMAL, ""
        if isinstance(entry, Section):
            about, at = (
                _names(entry, "workload", list(workloads), "workload"),
                _names(entry, "at", list(scales), "scale"),
            )
            under = entry.choice("under", list(scenarios), "") if "under" in entry else NORMAL
            why = entry.text("why", "")
            entry.finish()
        if level.quantity == "seconds":
            about = _time_of(level, about, workloads, yaml, line)
        places = _places(level, about or tuple(workloads), at, workloads, scales)
        level = replace(level, places=places, named_scales=at, named_workloads=about, under=under, why=why)
        if without := level.named_without_place():
            runs = "; ".join(f"{w} runs at {', '.join(workloads[w].scales)}" for w in about or workloads)
            yaml.fail_at(line, f"'{level.text}' has no place at the {without[0]} '{without[1]}': {runs}")
        levels.append(level)
    if not levels:
        yaml.fail("levels", "a study needs at least one service level; without one the cheapest design always wins")
    if twice := stated_twice(levels):
        yaml.fail("levels", twice)
    return levels


def _places(
    level: Level, about: tuple[str, ...], at: tuple[str, ...], workloads: dict[str, Workload], scales: dict[str, Scale]
) -> tuple[tuple[str, str], ...]:
    """Few clients can't ask for much: a rate is due at the largest scale of each workload, a response time at all."""
    places: list[tuple[str, str]] = []
    for name in about:
        own = [scale for scale in scales if scale in workloads[name].scales]
        places += [(name, scale) for scale in own if (scale in at if at else level.upper or scale == own[-1])]
    return tuple(places)


def _time_of(
    level: Level, about: tuple[str, ...], workloads: dict[str, Workload], yaml: Section, line: int
) -> tuple[str, ...]:
    """The subject of `time(...)` is a workload."""
    name = level.text[level.text.index("(") + 1 : level.text.index(")")].strip()
    if name not in workloads:
        yaml.fail_at(
            line,
            f"'{level.text}' asks for the time of a workload that is not here. "
            f"{allowed_sentence(name, list(workloads))[:-1]}",
        )
    if about not in ((), (name,)):
        yaml.fail_at(line, f"'{level.text}' is about the workload '{name}' alone; leave out 'workload'")
    return (name,)


def _uncertainty(yaml: Section) -> dict[str, Uncertain]:
    def read(one: Section, name: str) -> Uncertain:
        return Uncertain(
            name,
            tuple(one.texts("paths")),
            one.number("factor", low=1, high=1000),
            one.text("source"),
            one.line("paths"),
        )

    return _named(yaml, "uncertainty", read, "uncertain number")


def _measurements(yaml: Section, uncertainty: dict[str, Uncertain]) -> list[Measurement]:
    def read(one: Section, name: str) -> Measurement:
        return Measurement(
            name, tuple(one.texts("tells")), one.number("price", low=0), one.number("leaves", 1, low=1, high=1000)
        )

    return list(_named(yaml, "measurements", read, "measurement").values())


def _search(yaml: Section) -> Search:
    if "search" not in yaml:
        return Search()
    one = yaml.section("search")
    known = Search()
    found = Search(
        int(one.number("full_up_to", known.full_up_to, low=1, high=100_000)),
        int(one.number("evaluations", known.evaluations, low=20, high=100_000)),
        int(one.number("simulate", known.simulate, low=0, high=10_000)),
        int(one.number("replications", known.replications, low=4, high=1000)),
    )
    one.finish()
    return found


def document_of(study: Study) -> StudyFile:
    """The study file as plain data, for the record of the question."""
    yaml = Section.load(study.file)
    return cast(StudyFile, {key: yaml.value(key) for key in yaml.keys()})
