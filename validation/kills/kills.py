#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kills campaigns at random moments and resumes them: iocast itself, mpirun, one rank, all of them at once, or iocast
while a rank hangs.

    validation/kills/kills.py DIR [--kills 500] [--seed 0] [--json]

Each round starts a campaign of short runs below DIR, sends SIGKILL at a random moment, and starts the same command
again until it ends well. It fails when a campaign does not resume, when its results differ from those of an undisturbed
one in what does not depend on time, when a process or a file is left behind, or when a file of DIR that is not the
campaign's is gone. The count of kills is printed by victim and by the phase that they struck. A round takes two to four
seconds on an idle machine."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

ROOT = Path(__file__).resolve().parents[2]

VICTIMS = ("iocast", "mpirun", "a rank", "all", "iocast, a rank hangs")
MOMENTS = ("any", "between two runs", "a place, and no manifest", "precreate", "benchmark", "cleanup")
PLAN = """schema_version: 1
workload: md-workbench
settings: {datasets: 2, objects: OBJECTS, iterations: OBJECTS}
repeats: 1
benchmark_repeats: 1
points:
  - {ranks: 1}
  - {ranks: 2, role: check}
"""


@dataclass
class Outcome:
    victim: str
    phase: str
    faults: list[str] = field(default_factory=list)


class Rounds:
    """Rounds in `directory`, which is made and must be removed by who made this."""

    def __init__(self, directory: Path, seed: int, objects: int = 600) -> None:
        self.directory, self.random = directory, random.Random(seed)
        directory.mkdir(exist_ok=True)
        self.plan = directory / "plan.yaml"
        self.plan.write_text(PLAN.replace("OBJECTS", str(objects)))
        self.environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        begun = time.monotonic()
        (place := directory / "undisturbed").mkdir()
        done = self._measure(place)
        assert done.wait() == 0, done.stderr.read() if done.stderr else ""
        self.expected = self._results(place)
        self.seconds = time.monotonic() - begun
        shutil.rmtree(place)

    def round(self, number: int, victim: str) -> Outcome:
        place = self.directory / f"round-{number}"
        (place / "root").mkdir(parents=True)
        (place / "root" / "mine").write_text("stays")
        child = self._measure(place)
        self._wait(place, child, self.random.choice(MOMENTS))
        outcome = Outcome(victim, self._phase(place))
        self._kill(child, victim, outcome)
        child.communicate(timeout=300)
        entries = []
        for _ in range(3):
            again = self._measure(place)
            _, errors = again.communicate(timeout=300)
            entries.append(errors.strip())
            if again.returncode == 0:
                break
        else:
            outcome.faults.append(f"does not resume: {entries}")
        if not outcome.faults and (found := self._results(place)) != self.expected:
            outcome.faults.append(f"other results: {found}")
        if (left := sorted(p.name for p in (place / "root").iterdir())) != ["mine"]:
            outcome.faults.append(f"left behind: {left}, {sorted(str(p) for p in (place / 'root').rglob('*'))[:5]}")
        if alive := [p.pid for p in _of(place)]:
            outcome.faults.append(f"still alive: {alive}")
            for process in _of(place):
                process.kill()
        if traces := [text for text in entries if "Traceback" in text]:
            outcome.faults.append(traces[0])
        if not outcome.faults:
            shutil.rmtree(place)
        return outcome

    def _wait(self, place: Path, child: subprocess.Popen[str], moment: str) -> None:
        """Until a random moment of that phase, or at all."""
        until = time.monotonic() + 3 * self.seconds
        if moment == "any":  # Python alone takes a while before there is anything to kill
            time.sleep(self.random.uniform(0.3, 1.0) * self.seconds)
            return
        skipped = self.random.randrange(2)  # the second run has it, too
        before = ""
        while time.monotonic() < until and child.poll() is None:
            phase = self._phase(place)
            if phase == moment != before:
                if not skipped:
                    time.sleep(self.random.choice((0, 0.002, 0.01, 0.03)))
                    return
                skipped -= 1
            before = phase
            time.sleep(0.001)

    def _measure(self, place: Path) -> subprocess.Popen[str]:
        (place / "root").mkdir(exist_ok=True)
        command = [
            sys.executable,
            "-m",
            "iocast",
            "measure",
            str(place / "root"),
            "--campaign",
            str(self.plan),
            "--out",
            str(place / "out"),
        ]
        return subprocess.Popen(
            command,
            env=self.environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def _kill(self, child: subprocess.Popen[str], victim: str, outcome: Outcome) -> None:
        with contextlib.suppress(psutil.Error):
            own = psutil.Process(child.pid)
            below = own.children(recursive=True)
            ranks = [p for p in below if p.name() == "iocast-bench"]
            launchers = [p for p in below if p.name() in ("mpirun", "orterun", "prterun")]
            if victim == "iocast, a rank hangs" and ranks:
                ranks[0].send_signal(signal.SIGSTOP)
            chosen = {"mpirun": launchers, "a rank": ranks[:1], "all": [own, *below]}.get(victim, [own])
            if not chosen:
                outcome.victim, chosen = "iocast", [own]
            for process in chosen:
                process.kill()

    def _phase(self, place: Path) -> str:
        """What the benchmark is doing, by its own manifest."""
        for manifest in (place / "root").glob("*/*/iocast.manifest.json"):
            with contextlib.suppress(OSError, ValueError, KeyError):
                content = json.loads(manifest.read_text())
                return str(
                    content.get("phase") or content.get("state") or content.get("status") or "a data set lies there"
                )
        return (
            "a place, and no manifest"
            if any((place / "root").glob("*/*/"))
            else "no place yet"
            if not (place / "out").exists()
            else "between two runs"
        )

    def _results(self, place: Path) -> Any:
        """What does not depend on time: per run its phases' operations and errors."""
        content = json.loads((place / "out" / "campaign.json").read_text())
        found = {}
        for point in content["points"]:
            run = json.loads((place / "out" / "runs" / point["name"] / "run.json").read_text())
            phases = [
                (p["name"], p["operations"], p["errors"], {op: of["count"] for op, of in p["latency"].items()})
                for p in run["phases"]
            ]
            found[point["name"]] = [point["status"], run["status"], run["seed"], phases]
        return json.loads(json.dumps(found))


def _of(place: Path) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.name() in ("iocast-bench", "mpirun", "orterun", "prterun") and any(
                str(place) in word for word in process.cmdline()
            ):
                found.append(process)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--kills", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="after which no further round begins")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    scratch = Path(tempfile.mkdtemp(prefix="iocast-kills-", dir=given.directory))
    rounds = Rounds(scratch / "rounds", given.seed)
    outcomes: list[Outcome] = []
    begun = time.monotonic()
    for number in range(given.kills):
        if time.monotonic() - begun > given.seconds:
            break
        outcomes.append(rounds.round(number, VICTIMS[number % len(VICTIMS)]))
        for fault in outcomes[-1].faults:
            print(
                f"round {number}, {outcomes[-1].victim} killed, {outcomes[-1].phase}: {fault}",
                file=sys.stderr,
                flush=True,
            )
    struck = Counter((o.victim, o.phase) for o in outcomes)
    bad = [o for o in outcomes if o.faults]
    if given.json:
        print(
            json.dumps(
                {
                    "kills": len(outcomes),
                    "faults": len(bad),
                    "struck": [{"victim": v, "phase": p, "count": n} for (v, p), n in sorted(struck.items())],
                }
            )
        )
    else:
        for (victim, phase), count in sorted(struck.items()):
            print(f"{count:5}  {victim:22} {phase}")
        print(f"{len(outcomes)} kills, {len(bad)} with a fault.")
    if not bad:
        shutil.rmtree(scratch)
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
