# SPDX-License-Identifier: Apache-2.0
"""Platforms beside the best one, drawn from what the measurements leave open."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np

from iocast.calibrate.recipe import Option, simplest
from iocast.calibrate.search import Fit
from iocast.calibrate.structure_search import Search
from iocast.platforms.documents import Document

DRAWS = 16
"""Platforms kept beside the best one: draws from what the data leave open."""
MAX_DRAWN = 2.5
"""Logarithms that a drawn parameter is away from the best one: what nothing was measured of, the prior's 90 %, and no
more."""
MOVES = ("shift", "scale")
"""Of a law from measurements, what a fit changes."""


def draws(search: Search, fits: list[Fit]) -> list[tuple[dict[str, str], Document]]:
    """Structures and candidates drawn from structures by weight and from each structure's parameters by their
    covariance. Options that fit as well as others did when their choice was up may as well go together: what the
    number of threads leaves open is open with every kind of slowdown. So each choice is drawn by itself, all of
    them by systematic samples in an order of its own."""
    generator = np.random.default_rng(search.seed)
    best = fits[0]
    drawn: list[dict[str, Fit]] = [{} for _ in range(DRAWS)]
    for choice in search.choices:
        rivals = search.rivals[choice]
        cumulative = np.cumsum(search.weights(rivals))
        for one, place in zip(drawn, generator.permutation(DRAWS), strict=True):
            one[choice] = rivals[int(np.searchsorted(cumulative, (place + 0.5) / DRAWS))]
    structures = [
        simplest(search.choices, {choice: fit.structure[choice] for choice, fit in one.items()}) for one in drawn
    ]
    for structure, one in zip(structures, drawn, strict=True):
        for choice, name in structure.items():
            if name != one[choice].structure[choice]:  # it does nothing together with the others
                one[choice] = dataclasses.replace(best, structure={**best.structure, choice: name})
    return [
        (structure, _difference(search, *together(search, one, best, generator), best))
        for structure, one in zip(structures, drawn, strict=True)
    ]


def drawn_from(search: Search, drawn: list[dict[str, str]]) -> dict[str, dict[str, float]]:
    """By choice the weights of the options that these structures of draws come from; of one that does nothing together
    with others, 0. A few options are in none of the structures that were fitted to the end."""
    found: dict[str, dict[str, float]] = {}
    for choice in search.choices:
        rivals = search.rivals[choice]
        weights = found.setdefault(choice, {})
        for fit, weight in zip(rivals, search.weights(rivals).tolist(), strict=True):
            weights[fit.structure[choice]] = weights.get(fit.structure[choice], 0.0) + weight
        for structure in drawn:
            weights.setdefault(structure[choice], 0.0)
    return found


def together(
    search: Search, chosen: dict[str, Fit], best: Fit, generator: np.random.Generator
) -> tuple[list[Option], dict[str, float]]:
    """Options that were fitted apart: each brings its own parameters, those of all come from the one that differs
    from the best, or the best."""
    options = search.options({choice: fit.structure[choice] for choice, fit in chosen.items()})
    base = next((fit for choice, fit in chosen.items() if fit.structure[choice] != best.structure[choice]), best)
    values = _drawn(base, generator)
    for fit, option in zip(chosen.values(), options, strict=True):
        if fit is not base and option.parameters:
            from_it = _drawn(fit, generator)
            values |= {p.name: from_it[p.name] for p in option.parameters if p.name in from_it}
    for parameter in search.active(options):
        # No fit drawn had it: crowding where each of them shares its servers, and these together do not.
        if parameter.name not in values:
            known = next(
                (fit for rivals in search.rivals.values() for fit in rivals if parameter.name in fit.values), None
            )
            values[parameter.name] = _drawn(known, generator)[parameter.name] if known else parameter.start
    return options, values


def _difference(search: Search, options: list[Option], values: dict[str, float], best: Fit) -> Document:
    """What of a candidate differs from the best one's document: laws from measurements only where the two see
    stalls, or parts of operations, differently; none for a demand that it has no use for."""
    document = search.build(options, values)
    own = {name: _as_measured(law) for name, law in search.build(best.options, best.values)["demands"].items()}
    document["demands"] = {
        name: (
            {k: v for k, v in law.items() if k in MOVES}
            if _as_measured(law) is not None and _as_measured(law) == own.get(name)
            else law
        )
        for name, law in document["demands"].items()
    }
    lacking = {name: None for name, law in own.items() if law is not None and name not in document["demands"]}
    document["demands"] = {name: law for name, law in document["demands"].items() if law != {}} | lacking
    return {key: value for key, value in document.items() if key not in ("schema_version", "extends")}


def _as_measured(law: Any) -> Document | None:
    """A law from measurements without what was fitted to it; None for others."""
    empirical = isinstance(law, dict) and law.get("law") == "empirical"
    return {key: value for key, value in law.items() if key not in MOVES} if empirical else None


def _drawn(fit: Fit, generator: np.random.Generator) -> dict[str, float]:
    """Parameters from what the data leave open about the best ones."""
    if not fit.parameters:
        return {}
    logs = np.log([fit.values[p.name] for p in fit.parameters])
    spread = np.clip(
        np.linalg.cholesky(fit.covariance + 1e-9 * np.eye(len(logs))) @ generator.standard_normal(len(logs)),
        -MAX_DRAWN,
        MAX_DRAWN,
    )
    return {
        p.name: float(np.clip(math.exp(x), p.low, p.high)) for p, x in zip(fit.parameters, logs + spread, strict=True)
    }
