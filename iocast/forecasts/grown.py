# SPDX-License-Identifier: Apache-2.0
"""The rate of a platform that was fitted to rates alone, by the curves of growth."""

from __future__ import annotations

import math

import numpy as np

from iocast import analytic
from iocast.rules import growth
from iocast.runs import limits_of
from iocast.errors import InputError
from iocast.platforms.fitted import Fitted
from iocast.forecasts import one_system, stretched
from iocast.forecasts.request import Found, Request, Samples, Shown, resolved
from iocast.runs.operations import Shares
from iocast.runs.phases import unit_entry
from iocast.runs.question import Setting
from iocast.records.fitted import FittedCampaign
from iocast.records.forecast import Ends, WorkloadDocument
from iocast.records.note import BeyondMemory, CoresUnknown, MoreRanksThanCores, Note

RATES_SHOW_NO_BOTTLENECK = limits_of.unknown("rates alone do not show it.")


def grown_rates(platform: Fitted, request: Request, nodes: int, ranks_per_node: int, level: float) -> Found:
    """The rate by the curves of growth (iocast/rules/growth.py), for a platform fitted to rates alone. An edit
    multiplies it by what it changes in each of the fitted networks, which one solver solves with and without the
    edit."""
    factor, working_set = float(request.settings.get("waiting_factor", 0)), request.settings.get("working_set")
    campaign = platform.fitted["campaign"]
    measured = growth.measured_in(campaign)
    target = growth.Placement(nodes, ranks_per_node / (1 + factor))
    found = growth.forecast(measured, target, operations=campaign.get("unit", "operations") == "operations")
    changes, model = [0.0], one_system.Grown(math.exp(found.value), {}, RATES_SHOW_NO_BOTTLENECK)
    if platform.edited:
        edited, plain = (
            [
                analytic.solve(
                    resolved(document, platform.file), {"stat": 1.0}, nodes, ranks_per_node, factor, 1, points=64
                )
                for document in one.draws()
            ]
            for one in (platform, platform.as_measured())
        )
        changes = [math.log(new.rate / old.rate) for new, old in zip(edited, plain, strict=True)]
        middle = edited[int(np.argsort(changes)[len(changes) // 2])]
        model = one_system.Grown(middle.rate, middle.utilisation, RATES_SHOW_NO_BOTTLENECK)
    value = found.value + float(np.median(changes))
    low, high = _shifted_interval(found, changes, level)
    rate: Ends = {"value": math.exp(value), "low": math.exp(low), "high": math.exp(high), "model": math.exp(value)}
    if unit := unit_entry(campaign.get("unit")):
        rate["unit"] = unit["unit"]
    quantities = {"rate": rate}
    quantities |= stretched.latencies(campaign["points"], target, found, changes, level)
    unmeasured, unknown = _beyond_the_machine(campaign, nodes, ranks_per_node, working_set)
    if unmeasured:
        for quantity in quantities.values():
            quantity["low"] = quantity["high"] = None
    workload: WorkloadDocument = {
        **campaign["workload"],
        "parameters": campaign["workload"]["parameters"] | {"waiting_factor": factor},
    }
    shown: Shown = {"workload": workload, "shares": Shares(1.0, {}, {}), "distributions": {}, "model": model}
    shown["unmeasured"] = unmeasured + unknown
    shown["growth"] = {"falls": found.falls, "text": _growth_text(found, measured, nodes * ranks_per_node)}
    values = {name: quantity["value"] for name, quantity in quantities.items()}
    ensemble = {name: [one] for name, one in values.items()}
    samples: Samples = {"value": values, "ensemble": ensemble, "quantities": quantities}
    return {platform.phase: (samples, shown)}


def _shifted_interval(found: growth.Forecast, changes: list[float], level: float) -> tuple[float, float]:
    """The interval of growth's forecast plus one of `changes`, each as likely as the others; logarithms."""
    if len(set(changes)) == 1:
        low, high = found.interval(level)
        return low + changes[0], high + changes[0]
    grid = np.array([found.quantile(p) for p in (np.arange(500) + 0.5) / 500])
    low, high = np.quantile(np.add.outer(grid, changes), found.tails(level))
    return float(low), float(high)


def _beyond_the_machine(
    campaign: FittedCampaign, nodes: int, ranks_per_node: int, working_set: str | None
) -> tuple[list[Note], list[Note]]:
    """Of a single machine: notes on what the question has and no measurement had, more ranks than cores or a
    working set beyond the memory, for which no interval is known; and on what can't be judged because cores or memory
    are not known."""
    points = campaign["points"]
    if nodes > 1 or any(p["nodes"] > 1 for p in points):
        return [], []
    machine = campaign.get("environment") or {}
    unmeasured: list[Note] = []
    unknown: list[Note] = []
    cores, most = machine.get("cpus_per_node"), max(p["ranks"] for p in points)
    if cores is None and ranks_per_node > most:
        unknown.append(CoresUnknown())
    elif cores is not None and ranks_per_node > cores >= most:
        unmeasured.append(MoreRanksThanCores(ranks_per_node, cores))
    memory = machine.get("memory_bytes")
    sets = [(size, p["ranks"]) for p in points if (size := p.get("working_set"))]
    target = (
        _bytes_of(working_set)
        if working_set
        else max((size / ranks * ranks_per_node for size, ranks in sets), default=None)
    )
    if memory is not None and target is not None and target > memory and all(size <= memory for size, _ in sets):
        unmeasured.append(BeyondMemory(target, memory))
    return unmeasured, unknown


def _bytes_of(setting: str) -> float:
    number = Setting.read(setting).number
    if number is None or number <= 0:
        raise InputError(f"The working set is '{setting}'; it must be a number of bytes, such as 64GiB.")
    return number


def _growth_text(found: growth.Forecast, measured: list[growth.Measured], ranks: int) -> str:
    if found.falls is None:
        return "Growth was not measured: the forecast follows other systems whose operations take as long."
    most = measured[growth.largest(measured)]
    return (
        f"With {ranks:,} ranks {100 * found.falls:.0f} % of the curves that explain the measurements are below "
        f"{100 * growth.FALL:.0f} % of the rate at {most.nodes} node{'s' * (most.nodes != 1)}."
    )
