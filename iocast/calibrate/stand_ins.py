# SPDX-License-Identifier: Apache-2.0
"""Operations that nothing measured, and like ones that were: to open a file is the same request whether its whole is
read afterwards or a part. What such a request takes on this system is nearer to what its family's author thought of
another one. It is no measurement of the operation itself, and a forecast that rests on it has no interval."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any, cast

from iocast.calibrate.reading import single_rank_law
from iocast.calibrate.recipe import Recipe
from iocast.platforms.documents import Document, get_path, holds, set_path, steps_of
from iocast.records.platform import Step
from iocast.runs.run_directory import Point

ALIKE = {
    "open": ("read.open", "append.open"),
    "close": ("read.close", "append.close", "create.close"),
    "pread": ("read.read",),
    "pwrite": ("append.write", "create.write"),
    "read.open": ("open", "append.open"),
    "read.close": ("close", "append.close"),
    "read.read": ("pread",),
    "append.open": ("open", "read.open"),
    "append.close": ("create.close", "close"),
    "append.write": ("pwrite", "create.write"),
    "create.close": ("append.close", "close"),
    "create.write": ("append.write", "pwrite"),
}
"""Of an operation or part those that ask a server for the same, the nearest first. What makes or removes a name, lists
a directory, or waits for a disk is like nothing else."""
PLAIN = {"delay", "station", "demand", "lock", "lock_share", "limit", "steps", "transfer"}
"""Keys in the route of an operation for which another may stand in. Caches, buffers, disks and rates know bytes and
what was done before, which times of another operation do not."""


@dataclass(frozen=True)
class StandIn:
    """Of an operation or part that nothing measured, `demand`; `like` is the one that stands in for it."""

    tag: str
    demand: str
    like: str
    like_demand: str

    def put(self, document: Document, family: Document) -> None:
        """Gives it the route that the other one has in the document, or in `family`, with a copy of that demand under
        its own name; then it moves its own bytes, as the number of these differs, and leaves in caches what it did."""
        path = f"operations.{self.like}"
        route: list[Any] = copy.deepcopy(get_path(document if holds(document, path) else family, path))
        route = [step for step in route if not _leaves(step)]
        route += [step for step in get_path(document, f"operations.{self.tag}") or [] if _leaves(step)]
        moves = any("transfer" in step for step in steps_of(route))
        route += [] if moves else [step for step in get_path(family, f"operations.{self.tag}") if "transfer" in step]
        for step in map(_plain, steps_of(route)):
            for key in ("demand", "delay"):
                if step.get(key) == self.like_demand:
                    step[key] = self.demand
                    document["demands"][self.demand] = copy.deepcopy(document["demands"][self.like_demand])
        set_path(document, f"operations.{self.tag}", route)
        declared = get_path(document, "serves.node_local") or get_path(family, "serves.node_local") or []
        if "." not in self.tag and declared != "all" and all(step.keys() == {"delay"} for step in route):
            # Several nodes of an operation of delays alone are refused, since nothing would limit them.
            set_path(document, "serves.node_local", [*declared, self.tag])

    def path(self, document: Document) -> str:
        """After put() what it rests on: its demand, or its route where a structure has left the other's demand out."""
        used = any(
            self.demand in (step.get("demand"), step.get("delay"))
            for step in map(_plain, steps_of(document["operations"]))
        )
        return f"demands.{self.demand}" if used else f"operations.{self.tag}"


def stand_ins(recipe: Recipe, single: Point, family: Document) -> list[StandIn]:
    """Of the operations that `single`, the point of a lone rank, lacks, and for which another one can stand in: both
    visit the same station in `family`. What the owner knows is left alone."""
    demands = {tag: demand for demand, tag in recipe.laws.items()}
    measured = [tag for tag in demands if single_rank_law(single, tag) is not None]
    known = {*recipe.facts, *recipe.priors}
    found = []
    for tag, alike in ALIKE.items():
        demand, route = demands.get(tag), get_path(family, f"operations.{tag}")
        if demand is None or tag.partition(".")[0] in single.first.operations or not isinstance(route, list):
            continue
        plain = all(set(step) <= PLAIN for step in steps_of(route))
        owned = any(path == f"demands.{demand}" or path.startswith(f"operations.{tag}") for path in known)
        like = next((one for one in alike if one in measured), "")
        if like and plain and not owned and (station := _visited(family, tag, demand)):
            if _visited(family, like, demands[like]) == station:
                found.append(StandIn(tag, demand, like, demands[like]))
    return found


def _visited(family: Document, tag: str, demand: str) -> str:
    """The station at which an operation or part has this demand; "" where at none."""
    steps = map(_plain, steps_of(get_path(family, f"operations.{tag}")))
    return next((step["station"] for step in steps if step.get("demand") == demand and "station" in step), "")


def _leaves(step: Document) -> bool:
    """Whether it takes no time, and changes what caches have."""
    return ("cache" in step or "forget" in step) and not {"hit", "miss", "evict", "recall"} & set(step)


def _plain(step: Step) -> Document:
    return cast(Document, step)
