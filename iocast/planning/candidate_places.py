# SPDX-License-Identifier: Apache-2.0
"""Places where a measurement may narrow a forecast."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from iocast.errors import InputError
from iocast.ground.binaries import as_setting
from iocast.platforms.fitted import Fitted
from iocast.forecasts.request import ranks_per_node_of, workload_of
from iocast.planning.proposed import Place
from iocast.runs.settings import units_of

WAITING_FACTORS = (0.0, 1.0, 4.0)
TELLING_APART = {"read_only": "true", "offset": "0"}
"""Settings of patterns with which a run shows alone what others show together: reads beside no changes; each rank in
directories of its own."""


def four_times(platform: Fitted) -> Place:
    """The largest measured placement with four times the nodes, or on one node the ranks."""
    largest = max(platform.fitted["campaign"]["points"], key=lambda point: point["ranks"])
    nodes = int(largest.get("nodes", 1))
    per_node = int(largest["ranks"]) // nodes
    return Place(4 * nodes, per_node) if nodes > 1 else Place(1, 4 * per_node)


def candidates(
    nodes: int,
    ranks_per_node: int,
    pattern: str = "",
    settings: Mapping[str, Any] | None = None,
    factors: Sequence[float] = WAITING_FACTORS,
) -> list[Place]:
    """Places up to these nodes and ranks per node: by twos over nodes with one rank each, then on all nodes; and with
    all ranks what distinguishes what the pattern with these settings does."""
    spread = [(n, 1) for n in _by_twos(nodes)] + [(nodes, p) for p in _by_twos(ranks_per_node)]
    places = [Place(n, p, factor) for n, p in dict.fromkeys(spread) for factor in factors]
    return places + [Place(nodes, ranks_per_node, 0.0, (one,)) for one in _telling_apart(pattern, settings or {})]


def limits_of(platform: Fitted, nodes: int | None, ranks_per_node: int | None) -> tuple[int, int]:
    """Nodes and ranks per node that can be measured at most.

    @raises InputError where a fitted platform was measured on several nodes and `nodes` is missing, since one node
    alone narrows nothing; or where both are missing"""
    points = platform.fitted.get("campaign", {}).get("points", [])
    most = max((int(p.get("nodes") or 1) for p in points), default=1)
    if platform.fitted and nodes is None and (most > 1 or ranks_per_node is None):
        missing = "--nodes" if most > 1 else "--nodes or --ppn"
        raise InputError(
            f"The platform '{platform.file}' was fitted to measurements on up to {most} node{'s' * (most > 1)} with "
            f"{ranks_per_node_of(platform)} ranks each. Name how many can be measured next with {missing}."
        )
    return nodes or 1, ranks_per_node or ranks_per_node_of(platform)


def _telling_apart(pattern: str, settings: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Of TELLING_APART what the pattern has and what changes it."""
    names = units_of(pattern) if pattern else {}
    same = {name for name, value in TELLING_APART.items() if as_setting(settings.get(name)) == value}
    if as_setting(settings.get("node_offset", "0")) != "0":
        same.add("offset")  # it is not looked at then
    return [(name, value) for name, value in TELLING_APART.items() if name in names and name not in same]


def beyond(platform: Fitted, requested: Place) -> list[Place]:
    """Places between the measured ones and the target, up to eight times as large, with the target's ranks per node."""
    largest = max(platform.fitted["campaign"]["ranks"])
    counts = (math.ceil(times * largest / requested.ranks_per_node) for times in (2, 4, 8))
    nodes = [n for n in counts if n < requested.nodes]
    ranks = [(n, requested.ranks_per_node) for n in nodes]
    if requested.nodes == 1:
        ranks = [(1, times * largest) for times in (2, 4, 8) if times * largest < requested.ranks]
    factors = dict.fromkeys((0.0, requested.waiting_factor))
    return [Place(n, p, factor) for n, p in dict.fromkeys(ranks) for factor in factors]


def measured_settings(platform: Fitted) -> dict[str, Any]:
    """Of the fitted campaign's workload, without what a campaign chooses itself."""
    measured = workload_of(platform, None, {})
    own = {"waiting_factor", "start_index", "phases"}
    if has_sizes(measured.pattern):
        own |= {"iterations", "objects", "repeats"}
    return {name: value for name, value in measured.settings.items() if name not in own}


def has_sizes(pattern: str) -> bool:
    """Whether `iocast measure` decides the sizes of this workload's runs: iterations on as many objects."""
    return {"iterations", "objects"} <= set(units_of(pattern))


def _by_twos(most: int) -> list[int]:
    return [*(2**i for i in range(most.bit_length()) if 2**i < most), most]
