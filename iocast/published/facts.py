# SPDX-License-Identifier: Apache-2.0
"""Published numbers as rows of `platforms/facts/SOURCE.csv`, each a statement that is simulated and judged.

A row names a platform, a placement, a workload with settings, a phase, and a quantity of it. Values are in seconds and
per second. `role`: `given` (the platform states it), `fitted` (a number of the platform was chosen for it) or
`forecast`; only forecasts are evidence."""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from iocast.errors import InputError
from iocast.ground.files import data_directory
from iocast.published.experiment import Claim, Phase, phase
from iocast.ground.strict_yaml import allowed_sentence

FACTS = data_directory("platforms") / "facts"
COLUMNS = (
    "place", "platform", "nodes", "ppn", "placement", "workload", "settings", "phase", "operation", "quantity",
    "value", "tolerance", "role", "reason",
)  # fmt: skip
OPTIONAL = {"place": "", "placement": "unknown", "settings": "", "tolerance": "1.5", "role": "fitted", "reason": ""}
"""Columns that a file of one's own may lack, with what holds then; it has no platform."""
ROLES = ("given", "fitted", "forecast")
PLACEMENTS = ("block", "cyclic", "unknown")
BOUNDS = ("at least", "at most")
"""Tolerances of a row whose value is a bound; all others are factors."""
BUDGET = 200_000
"""Iterations of one simulation over all ranks. A row that had more is simulated with fewer; its slowest operation is
not judged, which more operations make slower."""
SEEDS_OF_A_MAXIMUM = 7
"""A maximum is the median over as many seeds: in a single run it is a matter of chance."""


@dataclass(frozen=True)
class Fact:
    """A row of a file of facts."""

    place: str
    platform: str
    nodes: int
    ppn: int
    placement: str
    workload: str
    settings: Mapping[str, str]
    phase: str
    operation: str
    quantity: str
    value: float
    tolerance: str
    role: str
    reason: str

    @property
    def iterations(self) -> int:
        """Of all ranks together."""
        loops = self.nodes * self.ppn * int(self.settings.get("datasets", "1"))
        return loops * int(self.settings.get("iterations", "0"))

    @property
    def bounds(self) -> tuple[float, float]:
        """Between which a simulated value meets the row."""
        if self.tolerance == "at least":
            return self.value, float("inf")
        if self.tolerance == "at most":
            return float("-inf"), self.value
        return self.value / float(self.tolerance), self.value * float(self.tolerance)


def per_second(found: Phase, fact: Fact) -> float:
    return float(found["latency"][fact.operation]["count"] / found["seconds"])


def virtual_per_second(found: Phase, fact: Fact) -> float:
    """The rate without the pauses: a rank waits `waiting_factor` times as long as each operation took."""
    return (1 + float(fact.settings.get("waiting_factor", 0))) * per_second(found, fact)


def slowest(found: Phase, fact: Fact) -> float:
    """Seconds of the slowest operation, of a kind or of all."""
    kinds = [fact.operation] if fact.operation else [name for name in found["latency"] if "." not in name]
    return max(float(found["latency"][kind]["max"]) for kind in kinds)


def balance(found: Phase, _: Fact) -> float:
    """Time of the fastest rank over that of the slowest."""
    return float(found["balance"])


def quantile(found: Phase, fact: Fact) -> float:
    return float(found["latency"][fact.operation][fact.quantity])


QUANTITIES: dict[str, tuple[Callable[[Phase, Fact], float], str, float]] = {
    "rate": (per_second, "/s", 1),
    "virtual_rate": (virtual_per_second, "virtual /s", 1),
    "balance": (balance, "", 1),
    "max": (slowest, "ms", 1e3),
    **dict.fromkeys(("mean", "q25", "q50", "q75", "q95", "q99"), (quantile, "ms", 1e3)),
}
"""By name: its value in a phase, the unit it is shown in, and how many of them are one in SI."""


def read_facts(source: str, directory: Path = FACTS) -> list[Fact]:
    """The rows of a source; none without a file.

    @raises InputError for a file or a row that can't be read, with its line"""
    file = directory / f"{source}.csv"
    if not file.is_file():
        return []
    with file.open(newline="", encoding="utf-8") as stream:
        rows = csv.DictReader(stream, strict=True)
        if tuple(rows.fieldnames or ()) != COLUMNS:
            raise InputError(f"The columns of {file} must be: {', '.join(COLUMNS)}.")
        return [_fact(row, f"{file}:{rows.line_num}") for row in rows]


def read_own_facts(file: Path, platform: str) -> list[Fact]:
    """The rows of a file of one's own about one platform.

    @raises InputError for a file or a row that can't be read, with its line"""
    needed = [name for name in COLUMNS if name not in OPTIONAL and name != "platform"]
    try:
        with file.open(newline="", encoding="utf-8-sig") as stream:
            rows = csv.DictReader(stream, strict=True)
            columns = list(rows.fieldnames or ())
            for name in columns:
                if name not in (*needed, *OPTIONAL):
                    raise InputError(
                        f"{file}:1: there is no column '{name}' of a fact. "
                        f"{allowed_sentence(str(name), [*needed, *OPTIONAL])}"
                    )
            if lacking := [name for name in needed if name not in columns]:
                raise InputError(
                    f"{file}:1: the column '{lacking[0]}' of a fact is missing; needed: {', '.join(needed)}."
                )
            found = []
            for row in rows:
                where = f"{file}:{rows.line_num}"
                if None in row or None in row.values():
                    raise InputError(f"{where}: a row has {len(columns)} values.")
                given = {name: value for name, value in row.items() if value or name not in OPTIONAL}
                place = {"place": f"line {rows.line_num}", "platform": platform}
                found.append(_fact({**OPTIONAL, **place, **given}, where))
            return found
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{file} is no table of facts: {error}.") from error


def _fact(row: dict[str, Any], where: str) -> Fact:
    if None in row or None in row.values():
        raise InputError(f"{where}: a row has {len(COLUMNS)} values.")
    for column, allowed in (("role", ROLES), ("placement", PLACEMENTS), ("quantity", tuple(QUANTITIES))):
        if row[column] not in allowed:
            raise InputError(f"{where}: '{row[column]}' is no {column}. {allowed_sentence(row[column], allowed)}")
    for column in ("place", "platform", "workload", "phase"):
        if not row[column]:
            raise InputError(f"{where}: the {column} is missing.")
    if row["quantity"] not in ("balance", "max") and not row["operation"]:
        raise InputError(f"{where}: name the operation whose {row['quantity']} this is.")
    tolerance = row["tolerance"]
    if tolerance not in BOUNDS:
        _number(tolerance, "tolerance", where, low=1.001, high=100.0)
    settings = dict(part.partition("=")[::2] for part in row["settings"].split())
    if not all(settings.values()):
        raise InputError(f"{where}: settings are NAME=VALUE with blanks between; '{row['settings']}' are not.")
    texts = {name: row[name] for name in COLUMNS if name not in ("nodes", "ppn", "settings", "value")}
    return Fact(
        nodes=int(_number(row["nodes"], "number of nodes", where, low=1, high=1e6, whole=True)),
        ppn=int(_number(row["ppn"], "number of ranks per node", where, low=1, high=1e6, whole=True)),
        settings=settings,
        value=_number(row["value"], "value", where, low=1e-9, high=1e15),
        **texts,
    )


def _number(text: str, what: str, where: str, low: float, high: float, whole: bool = False) -> float:
    try:
        value = float(int(text) if whole else text)
    except ValueError:
        value = float("nan")
    if not low <= value <= high:
        raise InputError(
            f"{where}: the {what} is '{text}'; it must be a {'whole ' if whole else ''}number from {low:g} to {high:g}."
        )
    return value


def simulated(
    fact: Fact, budget: int = BUDGET, seeds: int = SEEDS_OF_A_MAXIMUM, edits: Mapping[str, Any] | None = None
) -> float:
    """What the platform with these edits gives for a row, in its units; runs are shortened to the budget.

    @raises InputError where the workload has no such phase or operation"""
    settings = {**fact.settings, "phases": _phases(fact)}
    if fact.iterations > budget:
        settings["iterations"] = str(max(1, int(settings["iterations"]) * budget // fact.iterations))
    take = QUANTITIES[fact.quantity][0]
    where = (fact.platform, fact.workload, fact.phase, fact.nodes, fact.ppn)
    placement = "cyclic" if fact.placement == "cyclic" else "block"
    found = [
        phase(*where, settings, dict(edits or {}), seed=seed, placement=placement)
        for seed in range(1, 1 + (seeds if fact.quantity == "max" else 1))
    ]
    if fact.operation and fact.operation not in found[0]["latency"]:
        known = [name for name in found[0]["latency"] if "." not in name]
        raise InputError(
            f"The phase '{fact.phase}' of {fact.workload} has no operation '{fact.operation}' ({fact.place}). "
            f"{allowed_sentence(fact.operation, known)}"
        )
    return median(take(one, fact) for one in found)


def _phases(fact: Fact) -> str:
    """The phases that a run needs. A benchmark's objects are made before it without a simulation, unless the row says
    in which phases."""
    return fact.settings.get("phases", fact.phase).replace(";", ",")


def sentence(fact: Fact) -> str:
    """The row as a finished sentence."""
    kind = f"{fact.operation} " if fact.operation else ""
    unit, scale = QUANTITIES[fact.quantity][1:]
    settings = ", ".join(f"{name} {value}" for name, value in fact.settings.items() if name != "phases")
    role = "" if fact.role == "forecast" else f" ({fact.role})"
    return (
        f"{fact.platform}, {fact.nodes} x {fact.ppn}, {settings}, {fact.phase}: "
        f"{kind}{fact.quantity} {fact.value * scale:g}{' ' + unit if unit else ''}{role}."
    )


def claims_of(source: str, reasons: Mapping[str, str], directory: Path = FACTS) -> list[Claim]:
    """The rows of a source as statements. `reasons`: why some are missed, by the name that a row gives.

    @raises InputError for a file or a row that can't be read, or that names no reason"""
    found = []
    for fact in read_facts(source, directory):
        if fact.reason and fact.reason not in reasons:
            raise InputError(
                f"{source}: there is no reason '{fact.reason}'. {allowed_sentence(fact.reason, list(reasons))}"
            )
        if fact.quantity != "max" or fact.iterations <= BUDGET:
            found.append(_claim(fact, reasons.get(fact.reason, "")))
    return found


def _claim(fact: Fact, why_not: str) -> Claim:
    unit, scale = QUANTITIES[fact.quantity][1:]
    low, high = fact.bounds
    return Claim(
        sentence(fact), fact.place, low * scale, high * scale, lambda: scale * simulated(fact), unit, why_not,
        fact.role, fact.quantity,
    )  # fmt: skip
