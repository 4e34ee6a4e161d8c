#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How fast studies are, beside the targets: 200 designs at 3 scales screened in under 30 s on two cores, the whole
study with simulation of the surviving tenth in under 5 minutes, an edited price in under 2 s; efficiency of workers; a
lost worker; a million clients.

    validation/speed/study.py [--only screening,whole,price,workers,lost,million] [--json]

Needs a quiet machine; exit status 4 when a target is missed."""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
STUDY: dict[str, Any] = {
    "schema_version": 1,
    "title": "speed",
    "platform": "lustre",
    "workloads": {"mix": {"workload": "md-workbench", "settings": {"datasets": 10, "objects": 20, "iterations": 20}}},
    "scales": {
        "a": {"nodes": 10, "ranks_per_node": 10},
        "b": {"nodes": 30, "ranks_per_node": 10},
        "c": {"nodes": 100, "ranks_per_node": 10},
    },
    "axes": {
        "servers": {"path": "stations.mds.count", "values": [1, 2, 3, 4, 8], "part": "server"},
        "cores": {
            name: {"edit": {"stations.mds.servers": n}, "parts": {"core": n}}
            for name, n in (("8", 8), ("16", 16), ("32", 32), ("64", 64))
        },
        "speed": {"path": "stations.mds.speed", "values": [1, 1.2, 1.5, 1.8, 2.1], "part": "fast"},
        "target": {"disk": {}, "flash": {"edit": {"stalls.commit.length": {"times": 0.1}}, "parts": {"flash": 1}}},
    },
    "parts": {
        n: {"price": p, "source": "made up"}
        for n, p in (("server", 9000), ("core", 400), ("fast", 7000), ("flash", 8000))
    },
    "levels": ["rate(create) >= 70k/s", "p99(create) < 30 ms"],
    "uncertainty": {
        "service times": {
            "paths": ["demands.make", "demands.getattr", "demands.open", "demands.remove"],
            "factor": 1.2,
            "source": "made up",
        }
    },
}


ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT)}


def command_of(study: dict[str, Any], out: Path, *options: str) -> list[str]:
    file = out.parent / f"{out.name}.yaml"
    file.write_text(yaml.safe_dump(study, sort_keys=False))
    return [
        sys.executable,
        "-c",
        "from iocast.cli import main; main()",
        "study",
        str(file),
        "--out",
        str(out),
        "--json",
        *options,
    ]


def run(study: dict[str, Any], out: Path, *options: str) -> tuple[float, dict[str, Any], str]:
    """Seconds of wall time, the answer, and standard error."""
    began = time.monotonic()
    done = subprocess.run(
        command_of(study, out, *options), env=ENVIRONMENT, capture_output=True, text=True, check=False
    )
    seconds = time.monotonic() - began
    if done.returncode not in (0, 4):
        raise SystemExit(done.stderr)
    return seconds, json.loads(done.stdout), done.stderr


def screening(scratch: Path) -> dict[str, Any]:
    """All designs through the analytic solver, nothing else, by the workers that a study has."""
    from iocast.study.questions import Ask
    from iocast.study.desk import Desk
    from iocast.study.spec import read_study
    from iocast.study.store import Store
    from iocast.jobs.workers import Workers

    file = scratch / "screening.yaml"
    file.write_text(yaml.safe_dump(STUDY, sort_keys=False))
    began = time.monotonic()
    with Store(scratch / "screening.sqlite") as store, Workers() as workers:
        desk = Desk(read_study(file), store, workers, lambda *_: None)
        asks = [Ask("analytic", d.number, p) for d in desk.designs.all() for p in desk.points()]
        found = desk.gather(asks, "")
    seconds = time.monotonic() - began
    assert len(found) == 600 and all("bounds" in r for r in found.values())
    return {"what": "200 designs x 3 scales screened", "seconds": seconds, "target": 30}


def whole(scratch: Path) -> dict[str, Any]:
    seconds, reported, _ = run(STUDY, scratch / "whole")
    assert reported["search"]["looked_at"] == 200 and reported["search"]["simulated"] >= 20, reported["search"]
    return {
        "what": (
            f"the whole study, {reported['search']['simulated']} designs simulated, {reported['search']['computed']}"
            " evaluations"
        ),
        "seconds": seconds,
        "target": 300,
    }


def price(scratch: Path) -> list[dict[str, Any]]:
    """After `whole`: a price that leaves the same designs worth a simulation, several times; and one that does not,
    until the first answer."""
    seconds = []
    for dearer in range(1, 8):
        one, reported, _ = run(with_core_at(400 + dearer), scratch / "whole")
        assert reported["search"]["computed"] == 0
        seconds.append(one)
    whole = f"an edited price, whole answer, median of {len(seconds)} ({min(seconds):.1f} to {max(seconds):.1f} s)"
    first, heard = first_answer(with_core_at(500), scratch / "whole")
    return [
        {"what": whole, "seconds": statistics.median(seconds), "target": 2},
        {
            "what": f"a price after which other designs are simulated, until \u201c{heard.strip()}\u201d",
            "seconds": first,
            "target": 2,
        },
    ]


def with_core_at(price: float) -> dict[str, Any]:
    return {**STUDY, "parts": {**STUDY["parts"], "core": {"price": price, "source": "made up"}}}


def first_answer(study: dict[str, Any], out: Path) -> tuple[float, str]:
    """Seconds until the study says what earlier runs know, and what it says; then it goes on to its end."""
    began = time.monotonic()
    with subprocess.Popen(
        command_of(study, out), env=ENVIRONMENT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        lines = iter(process.stderr)
        heard = next((line for line in lines if "earlier runs" in line), "")
        seconds = time.monotonic() - began
        for _ in lines:
            pass
    assert heard, "nothing was printed before the simulations"
    return seconds, heard


class ByHand:
    """Plain processes that do the same work without Dask: what two or four of them gain is what this machine's cores
    are worth together."""

    def __init__(self, count: int) -> None:
        self._pool = ProcessPoolExecutor(count)

    def __enter__(self) -> ByHand:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown()

    def map(self, compute: Any, tasks: list[Any]) -> Iterator[tuple[int, Any]]:
        futures = {self._pool.submit(compute, task): number for number, task in enumerate(tasks)}
        for future in as_completed(futures):
            yield futures[future], future.result()


def workers(scratch: Path) -> list[dict[str, Any]]:
    """Evaluations that keep a core busy for a while, by 1, 2 and 4 workers, and by as many plain processes. Efficiency
    counts no more workers than there are cores; that of the plain processes is the machine's own, and a worker's is
    counted by it too."""
    from iocast.study.questions import Ask
    from iocast.study.desk import Desk
    from iocast.study.spec import read_study
    from iocast.study.store import Store
    from iocast.jobs.workers import Workers

    file = scratch / "workers.yaml"
    file.write_text(yaml.safe_dump({**STUDY, "most_operations": 400_000}, sort_keys=False))
    cores, reported, answers = len(os.sched_getaffinity(0)), [], []

    def seconds_of(crew: Any, name: str) -> float:
        with Store(scratch / f"{name}.sqlite") as store, crew as working:
            desk = Desk(read_study(file), store, working, lambda *_: None)
            point = desk.points()[-1]
            desk.gather([Ask("simulate", n, point, 99) for n in range(1, 9)], "")  # the workers are up
            began = time.monotonic()
            answers.append(desk.gather([Ask("simulate", n, point) for n in range(1, 41)], ""))
            return time.monotonic() - began

    plain = {count: seconds_of(ByHand(count), f"plain-{count}") for count in (1, 2, 4)}
    # One is a process apart too, so that what is compared is the number.
    by_workers = {count: seconds_of(Workers(count, apart=True), f"workers-{count}") for count in (1, 2, 4)}
    for count, seconds in by_workers.items():
        used = min(count, cores)
        machine = plain[1] / plain[count] / used
        raw = by_workers[1] / seconds / used
        what = (
            f"{count} workers on {cores} cores, 40 simulations: {raw:.2f} of one worker's speed a core; plain processes"
            f" {machine:.2f}"
        )
        reported.append(
            {
                "what": what,
                "seconds": seconds,
                "plain_seconds": plain[count],
                "raw_efficiency": raw,
                "efficiency": plain[count] / seconds,
                "least_efficiency": 0.9,
            }
        )
    assert all(answer == answers[0] for answer in answers), "another number of workers gave another answer"
    return reported


def million(scratch: Path) -> dict[str, Any]:
    study = {
        **STUDY,
        "workloads": {"mix": {"workload": "md-workbench", "settings": {"datasets": 1, "objects": 1, "iterations": 1}}},
        "scales": {
            "small": {"nodes": 10, "ranks_per_node": 100},
            "a million": {"nodes": 10_000, "ranks_per_node": 100},
        },
        "axes": {"servers": {"path": "stations.mds.count", "values": [64, 256], "part": "server"}},
        "levels": ["p99(stat) < 10 s"],
        "most_operations": 4_000_000,
        "uncertainty": {},
        "search": {"replications": 4, "simulate": 1},
    }
    seconds, reported, _ = run(study, scratch / "million")
    row = next(r for r in reported["curves"] if r["scale"] == "a million" and r["quantity"] == "rate")
    return {
        "what": (
            f"a study with 1,000,000 clients (rate {row['value']:.3g}/s), {reported['search']['computed']} evaluations"
        ),
        "seconds": seconds,
        "target": None,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="screening,whole,price,workers,million")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    results: list[dict[str, Any]] = []
    missed = False
    with tempfile.TemporaryDirectory(prefix="iocast-speed-") as scratch:
        for name in given.only.split(","):
            found = {"screening": screening, "whole": whole, "price": price, "workers": workers, "million": million}[
                name
            ](Path(scratch))
            for r in found if isinstance(found, list) else [found]:
                late = r.get("target") is not None and r["seconds"] > r["target"]
                poor = "efficiency" in r and r["efficiency"] < r["least_efficiency"]
                missed |= late or poor
                results.append(r)
                if not given.json:
                    beside = (
                        f"target {r['target']} s"
                        if r.get("target")
                        else f"efficiency {r['efficiency']:.2f}"
                        if "efficiency" in r
                        else ""
                    )
                    print(
                        f"{r['what']}: {r['seconds']:.1f} s  {beside}{'  MISSED' if late or poor else ''}", flush=True
                    )
    if given.json:
        print(json.dumps({"results": results, "missed": missed}))
    sys.exit(4 if missed else 0)


if __name__ == "__main__":
    main()
