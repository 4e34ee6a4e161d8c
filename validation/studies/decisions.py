#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Do decisions that a study states with 90 % come true in 85 to 95 % of small studies?

    validation/studies/decisions.py [--studies 100] [--page docs/scoreboard.md]

Each study is of a random system: a pool of servers behind clients, with times and numbers of servers drawn anew. The
study knows its numbers but for factors, which it states, and an error of the model. The truth has other numbers, drawn
as stated from a seed that the study does not see, and is simulated with other random numbers. The designs are servers
of more and more speed, in steps so small that the cheapest one which keeps the level with 90 % keeps it with little
more. A decision comes true when the chosen design keeps the level on the truth. Seven minutes of processor time."""

from __future__ import annotations

import argparse
import math
import os
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import yaml

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[1]), str(HERE.parent)]
from iocast.ground import binaries  # noqa: E402
from iocast.api.study import study  # noqa: E402
from iocast.jobs.workers import Workers  # noqa: E402
from scoreboard import binomial_interval, put  # noqa: E402

SETTINGS = {"datasets": 1, "objects": 20, "iterations": 20}
SPEEDS = [round(0.85 * 1.045**step, 3) for step in range(17)]
CONFIDENCE = 0.9
NEAR = (0.85, 0.95)
"""Stated chances that count as 90 %, and the shares that must come true of them."""
NORMAL_90 = 1.645
"""Standard deviations from the middle of a normal distribution to the ends of its inner 90 %."""


class System:
    """A random system, what its study states of it, and its truth."""

    def __init__(self, number: int) -> None:
        known, hidden = np.random.default_rng([1, number]), np.random.default_rng([2, number])
        times = {name: float(1e-3 * known.lognormal(0, 0.5)) for name in ("make", "remove", "open", "getattr")}
        self.platform: dict[str, Any] = {
            "schema_version": 1,
            "stations": {
                "server": {"servers": int(known.integers(1, 9))},
                "client": {"per": "node", "servers": 8},
            },
            "demands": {
                name: {"law": "lognormal", "mean": _microseconds(time), "sigma": 0.5}
                for name, time in {**times, "client": 50e-6}.items()
            },
            "operations": {
                "mkdir": _visits("make"), "rmdir": _visits("remove"), "unlink": _visits("remove"),
                "stat": _visits("getattr"),
                "create": {"open": _visits("make"), "write": [], "close": []},
                "read": {"open": _visits("open"), "read": [], "close": []},
            },
        }  # fmt: skip
        self.number = number
        self.nodes, self.ranks_per_node = int(known.integers(2, 9)), int(known.integers(1, 9))
        self.factors = {"changes": float(known.uniform(1.15, 1.6)), "looks": float(known.uniform(1.15, 1.6))}
        self.paths = {"changes": ["make", "remove"], "looks": ["open", "getattr"]}
        self.model_error = float(known.uniform(1.05, 1.3))
        self.required = self._rate(self.platform, seed=number) * float(known.uniform(0.9, 1.1))
        self.truth = yaml.safe_load(yaml.safe_dump(self.platform))
        for name, factor in self.factors.items():
            drawn = _drawn(hidden, factor)
            for demand in self.paths[name]:
                self.truth["demands"][demand]["mean"] = _microseconds(times[demand] * drawn)
        self.off = _drawn(hidden, self.model_error)

    def _rate(self, platform: dict[str, Any], seed: int) -> float:
        """Creates a second."""
        with tempfile.TemporaryDirectory(prefix="iocast-decisions-") as scratch:
            file = Path(scratch) / "platform.yaml"
            file.write_text(yaml.safe_dump(platform))
            run = binaries.simulate(file, "md-workbench", SETTINGS, self.nodes, self.ranks_per_node, seed)
        phase = next(one for one in reversed(run["phases"]) if one["name"] == "benchmark")
        return float(phase["latency"]["create"]["count"] / phase["seconds"])

    def true_rate(self, speed: float) -> float:
        platform = yaml.safe_load(yaml.safe_dump(self.truth))
        platform["stations"]["server"]["speed"] = speed
        return self._rate(platform, seed=100_000 + self.number) * self.off

    def decide(self, out: Path) -> dict[str, Any]:
        """The study's answer."""
        (out / "platform.yaml").write_text(yaml.safe_dump(self.platform))
        document = {
            "schema_version": 1,
            "platform": "platform.yaml",
            "confidence": CONFIDENCE,
            "workloads": {"files": {"workload": "md-workbench", "settings": SETTINGS}},
            "scales": {"all": {"nodes": self.nodes, "ranks_per_node": self.ranks_per_node}},
            "axes": {
                "speed": {
                    str(speed): {"edit": {"stations.server.speed": speed}, "parts": {"step": step}}
                    for step, speed in enumerate(SPEEDS, start=1)
                }
            },
            "currency": "EUR",
            "parts": {"step": {"price": 1000, "source": "made up"}},
            "levels": [f"rate(create) >= {self.required:.6g}/s"],
            "uncertainty": {
                name: {"paths": [f"demands.{one}" for one in self.paths[name]], "factor": factor, "source": "drawn"}
                for name, factor in self.factors.items()
            },
            "model_error": {"rate": self.model_error, "source": "drawn"},
        }
        (out / "study.yaml").write_text(yaml.safe_dump(document, sort_keys=False))
        return study(out / "study.yaml", out=out / "answer", workers=Workers(1)).document()


def _visits(demand: str) -> list[dict[str, str]]:
    return [{"station": "client", "demand": "client"}, {"station": "server", "demand": demand}]


def _microseconds(time: float) -> str:
    return f"{1e6 * time:.6g}us"


def _drawn(generator: np.random.Generator, factor: float) -> float:
    """A factor that lies between 1/factor and factor with 90 %."""
    return math.exp(math.log(factor) / NORMAL_90 * float(generator.standard_normal()))


def decided(number: int) -> tuple[float, bool] | None:
    """The stated chance, and whether the decision came true; None for a study that chose nothing."""
    system = System(number)
    with tempfile.TemporaryDirectory(prefix="iocast-decisions-") as scratch:
        answer = system.decide(Path(scratch))
    if answer["decision"] is None:
        return None
    speed = float(answer["decision"]["values"]["speed"])
    return float(answer["confidence"]), system.true_rate(speed) >= system.required


def lines_of(found: list[tuple[float, bool] | None]) -> list[str]:
    """As Markdown: the decisions that were stated near 90 %, and all."""
    decisions = [one for one in found if one is not None]
    lines = [
        "| decisions | studies | stated, mean | came true | 95 % interval of the share | target 85 to 95 % |",
        "|---|---|---|---|---|---|",
    ]
    near = [one for one in decisions if NEAR[0] <= one[0] <= NEAR[1]]
    for name, some in (("stated with 85 to 95 %", near), ("all", decisions)):
        stated, true = float(np.mean([one for one, _ in some])), sum(came for _, came in some)
        low, high = binomial_interval(true, len(some))
        verdict = "met" if NEAR[0] <= true / len(some) <= NEAR[1] else "missed"
        lines.append(
            f"| {name} | {len(some)} | {100 * stated:.1f} % | {true} ({100 * true / len(some):.1f} %) "
            f"| {100 * low:.1f} to {100 * high:.1f} % | {verdict} |"
        )
    return [*lines, "", f"Of {len(found)} studies {len(found) - len(decisions)} chose no design."]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--studies", type=int, default=100)
    parser.add_argument("--page", type=Path, help="put the table between its marks there")
    given = parser.parse_args()
    found: list[tuple[float, bool] | None] = []
    with ProcessPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        for number, one in enumerate(pool.map(decided, range(given.studies))):
            print(number, "no design" if one is None else f"stated {one[0]:.3f}, {one[1]}", flush=True)
            found.append(one)
    lines = lines_of(found)
    print("\n".join(lines))
    if given.page:
        put(given.page, "decisions", lines)


if __name__ == "__main__":
    main()
