# SPDX-License-Identifier: Apache-2.0
"""Structures that a calibration left open: which say different throughputs here, and the middle of their answers."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from iocast.records.fitted import FittedSection
from iocast.forecasts.request import Samples
from iocast.records.forecast import Parting

TIE = 0.75
"""Share of the draws from which on one option of a choice is the answer."""


def middle_of(
    fitted: FittedSection,
    undecided: bool,
    value: dict[str, float],
    ensemble: dict[str, list[float]],
    structures: Sequence[Mapping[str, str]],
    settles: bool = True,
) -> dict[str, float]:
    """The forecast's values: those of the best platform. Where options tie that answer differently, their geometric
    mean by the draws, so that which of them is the best doesn't decide. Where structures tie otherwise, or work of
    others piles up in the best platform, the median of the draws."""
    if not any(ensemble.values()):
        return value
    middle: Callable[[NDArray[np.float64]], Any]
    if _tied(ensemble, structures, fitted):
        middle = np.mean
    elif not settles or undecided:
        middle = np.median
    else:
        return value
    return {
        name: float(np.exp(middle(np.log(np.maximum(printed, 1e-9))))) if printed else value[name]
        for name, printed in ensemble.items()
    }


def _tied(ensemble: dict[str, list[float]], structures: Sequence[Mapping[str, str]], fitted: FittedSection) -> bool:
    """Whether of a choice whose options say different throughputs none has most of the draws (TIE)."""
    parting = {one["choice"] for one in parting_choices({"ensemble": ensemble, "structures": structures}, fitted)}
    return bool(parting & tied_choices(structures))


def tied_choices(structures: Sequence[Mapping[str, str]]) -> set[str]:
    """Choices of which no option has most of the draws (TIE)."""
    return {
        choice
        for choice in (structures[0] if structures else ())
        if max(Counter(one[choice] for one in structures).values()) < TIE * len(structures)
    }


def parting_choices(samples: Samples, fitted: FittedSection) -> list[Parting]:
    """Choices of structure whose options fit about equally well and say different throughputs here: by more than a
    tenth, than two measurements of one thing differ by, and than chance among the draws explains (Welch's t above
    2)."""
    found: list[Parting] = []
    structures = samples.get("structures") or []
    logs = np.log(np.maximum(samples["ensemble"].get("rate", []), 1e-9))
    for choice in structures[0] if structures else ():
        by_option: dict[str, list[float]] = {}
        for structure, log in zip(structures, logs, strict=True):
            by_option.setdefault(structure[choice], []).append(float(log))
        reported = sorted(
            (float(np.mean(printed)), option) for option, printed in by_option.items() if len(printed) > 1
        )
        if len(reported) < 2:
            continue
        (least, slow), (most, fast) = reported[0], reported[-1]
        chance = math.sqrt(
            sum(float(np.var(by_option[option], ddof=1)) / len(by_option[option]) for option in (slow, fast))
        )
        if most - least > max(math.log(1.1), 2 * fitted["noise"]["rate"], 2 * chance):
            found.append({"choice": choice, "rates": {option: math.exp(mean) for mean, option in reported}})
    return found
