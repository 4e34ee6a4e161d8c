# SPDX-License-Identifier: Apache-2.0
"""How large a misfit chance alone makes: of measurements of the fitted platform itself, as many and as long as the real
ones."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from iocast.calibrate.search import Simulations, Target, cost_of, summaries, whole_settings
from iocast.platforms.documents import Document
from iocast.runs.settings import name_for_programs

DRAWS = 19
"""Of a misfit by chance. One that is larger than all of these has a chance of 1 in 20 (Barnard's Monte Carlo test)."""


def largest_misfit(
    simulations: Simulations,
    document: Document,
    targets: list[Target],
    counts: dict[str, int],
    seed: int,
    draws: int = DRAWS,
) -> float:
    """The largest of `draws` misfits, on the scale of a fit's cost, that measurements of the platform `document` would
    have. Laws of service come from one rank's operations, so that their errors stand in all simulations: each draw has
    laws from as many operations as were measured, and runs of its own. A parametric bootstrap (Efron & Tibshirani 1993,
    section 6.5), without a fit to each draw, which makes its misfits rather too large.

    @param counts operations that the law of each demand rests on"""
    generator = np.random.default_rng(seed)
    alone = [target.point.ranks == 1 and target.point.waiting_factor == 0 for target in targets]
    (best,) = simulations.at_targets([document], targets, seed)
    lone = [(s - t.logs) / t.sigmas for s, t, one in zip(best, targets, alone, strict=True) if one]
    beyond = [target for target, one in zip(targets, alone, strict=True) if not one]
    true = simulations.write(document)
    jobs: list[Any] = []
    for draw in range(draws):
        for number, target in enumerate(beyond):
            run = target.point.first
            settings = whole_settings(run, document)
            pattern = name_for_programs(run.json["workload"])
            for repeat in range(len(target.point.runs)):
                own = seed + 1 + (draw * len(beyond) + number) * 100 + repeat
                jobs.append((true, pattern, settings, *run.placement, own))
    measured = iter(simulations.run_those_that_settle(jobs))
    perturbed = [with_laws_of(document, counts, generator) for _ in range(draws)]
    costs = []
    for found in simulations.at_targets(perturbed, beyond, seed):
        residuals = list(lone)
        for simulated, target in zip(found, beyond, strict=True):
            runs = [next(measured) for _ in target.point.runs]
            logs = [summaries(one, target, simulated) for one in runs if one is not None]
            if logs:
                residuals.append((simulated - np.mean(logs, axis=0)) / target.sigmas)
        costs.append(cost_of(np.concatenate(residuals)))
    return max(costs)


def with_laws_of(document: Document, counts: dict[str, int], generator: np.random.Generator) -> Document:
    """The platform with `empirical` laws as another measurement of as many operations would have given them."""
    result = copy.deepcopy(document)
    for name, count in counts.items():
        law = result["demands"].get(name)
        if not isinstance(law, dict) or law.get("law") != "empirical" or count < 2:
            continue
        values = [float(value.removesuffix("s")) for value in law["values"]]
        sample = np.interp(generator.random(count), law["probabilities"], values)
        law["values"] = [f"{value:.9g}s" for value in np.asarray(np.quantile(sample, law["probabilities"]))]
    return result
