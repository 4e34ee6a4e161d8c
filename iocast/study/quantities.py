# SPDX-License-Identifier: Apache-2.0
"""What a level asks about, from what an evaluation says: an operation, the worst of them, or a task of several in a
row."""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from iocast.study.evaluate import STATISTICS, Result
from iocast.study.levels import ANY

SAMPLES = 1000
_KNOWN = {"q25": 0.25, "q50": 0.5, "q75": 0.75, "q95": 0.95, "q99": 0.99, "q999": 0.999}


def operations_of(result: Result) -> list[str]:
    return [name[: -len(".mean")] for name in result["quantities"] if name.endswith(".mean")]


def value(result: Result, quantity: str, tasks: dict[str, dict[str, float]]) -> float | None:
    """The quantity in SI units; None when the result does not have it."""
    if "quantities" not in result:
        return None
    known = result["quantities"]
    if quantity in known:
        return float(known[quantity])
    subject, _, what = quantity.rpartition(".")
    if subject == ANY and what in STATISTICS:
        return max((float(known[f"{op}.{what}"]) for op in operations_of(result)), default=None)
    if subject in tasks and what in STATISTICS and all(f"{op}.mean" in known for op in tasks[subject]):
        return _task(known, tasks[subject], what)
    if subject in tasks and what == "rate" and all(f"{op}.rate" in known for op in tasks[subject]):
        return min(float(known[f"{op}.rate"]) / n for op, n in tasks[subject].items() if n > 0)
    return None


def _task(known: dict[str, Any], task: dict[str, float], what: str) -> float:
    """A statistic of the time that a task takes whose operations follow each other, their times taken as independent.

    Quantiles by sampling; a maximum is all means and the one largest excess (Foss, Korshunov & Zachary 2013: one big
    jump)."""
    mean = sum(n * known[f"{op}.mean"] for op, n in task.items())
    if what == "mean":
        return float(mean)
    jump = max((known[f"{op}.{what}"] - known[f"{op}.mean"] for op, n in task.items() if n > 0), default=0.0)
    if what in ("max", "q999"):
        return float(mean + max(jump, 0.0))
    total = np.zeros(SAMPLES)
    for index, (op, n) in enumerate(task.items()):
        whole, rest = int(n), n - int(n)
        draws = _quantile(known, op, _scores(index, whole + (rest > 0)))
        total += draws[:, :whole].sum(axis=1) + (rest * draws[:, whole] if rest else 0.0)
    return float(np.quantile(total, _KNOWN[what]))


def _quantile(known: dict[str, Any], op: str, scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """An operation's quantile function of normal scores: straight lines between the logarithms of the known
    quantiles."""
    count = max(known[f"{op}.rate"] * known["seconds"], 2000.0)
    normal = NormalDist()
    places = [*(normal.inv_cdf(p) for p in _KNOWN.values()), normal.inv_cdf(1 - 0.5 / count)]
    values = [max(known[f"{op}.{name}"], 1e-12) for name in (*_KNOWN, "max")]
    slope = (math.log(values[1]) - math.log(values[0])) / (places[1] - places[0])
    places.insert(0, -4.0)
    values.insert(0, values[0] * math.exp(slope * (-4.0 - places[1])))
    return np.asarray(np.exp(np.interp(scores, places, np.log(values))))


@lru_cache(maxsize=32)
def _scores(index: int, columns: int) -> NDArray[np.float64]:
    """[SAMPLES, columns] standard normal numbers, others for each operation of a task."""
    return np.random.Generator(np.random.Philox(key=[1, index])).standard_normal((SAMPLES, columns))
