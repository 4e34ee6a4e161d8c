# SPDX-License-Identifier: Apache-2.0
"""Knee searches of a queue whose truth is known, without programs: each run is an M/D/1 queue, simulated here."""

from pathlib import Path
from typing import Any

import numpy as np

from iocast.campaign.plan import PlannedRun
from iocast.ground.files import write_json
from iocast.knee import Search
from iocast.knee.judge import Seen
from iocast.knee.request import KneeSearch
from iocast.rules.accuracy import QUANTILES
from iocast.study.levels import Level


def responses(rate: float, count: int, random: np.random.Generator) -> np.ndarray:
    """Of an M/D/1 queue with service time 1 that begins empty: departures are i + 1 + max over j <= i of (arrival j -
    j)."""
    arrivals = np.cumsum(random.exponential(1 / rate, count))
    places = np.arange(count)
    return places + 1 + np.maximum.accumulate(arrivals - places) - arrivals


class Queue:
    """Stands for the runs of an open loop on one rank, 3000 operations each."""

    def __init__(self, out: Path, levels: list[Level], seed: int, service: float) -> None:
        self.search = KneeSearch(
            None, out, "queue", {}, nodes=1, ranks_per_node=1, over="rate", length=1.0, backend="dummy"
        )
        self.random, self.levels, self.service = np.random.Generator(np.random.Philox(seed)), levels, service
        self.runs: list[PlannedRun] = []
        self.seconds, self.slowest, self.reuses, self.size = 0.0, 0.0, True, "operations"
        self.max_rate = float("inf")
        self.operations = ["create", "stat"]
        self.seen: dict[str, Seen] = {}

    def sized(self, operations: float) -> dict[str, Any]:
        return {}

    def made(self, *steps: str) -> list[PlannedRun]:
        return [run for run in self.runs if run.step.partition(" ")[0] in steps]

    def make(self, step: str, settings: dict[str, Any], **_: Any) -> None:
        run = PlannedRun(str(len(self.runs)), 1, 1, settings, "fit", "complete", step=step)
        load = float(settings["rate"].removesuffix("/s")) * self.service if "rate" in settings else 1.0
        times = self.service * (responses(load, 3000, self.random) if "rate" in settings else np.ones(1))
        values = {level.text: float(np.quantile(times, QUANTILES[level.kind])) for level in self.levels}
        met = load < 1 and all(level.margin(values[level.text]) > 0 for level in self.levels)
        self.runs.append(run)
        self.seen[run.name] = Seen(
            min(load, 1.0) / self.service,
            float(times.mean()),
            self.service,
            load,
            load < 1,
            values,
            met,
            1.0,
            rates={op: min(load, 1.0) / self.service / 2 for op in self.operations},
        )

    def write(self, name: str, content: dict[str, Any]) -> None:
        write_json(self.search.out / name, content)

    def leave(self) -> None:
        pass


class QueueSearch(Search):
    def look(self, run: PlannedRun) -> Seen:
        return self.probes.seen[run.name]  # type: ignore[attr-defined]


def knee_of_queue(
    out: Path, levels: list[Level], seed: int, *, service: float = 1.0, precision: float = 0.2
) -> dict[str, Any]:
    """knee.json, also written into `out`."""
    queue = Queue(out, levels, seed, service)
    search = QueueSearch(queue, levels, budget=1e9, confidence=0.9, precision=precision)  # type: ignore[arg-type]
    return search.run(lambda *_: None)
