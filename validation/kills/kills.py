#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kills iocast at random moments and starts the same command again.

    validation/kills/kills.py DIR [--of measure|study|calibrate] [--over nfs|nodes] [--kills 500] [--seed 0] [--json]

Victims are iocast itself, mpirun, one rank, all of them at once, and iocast while a rank hangs; of studies and
calibrations iocast, a worker, a simulator, and all. Each round starts a short command below DIR, sends SIGKILL at a
random moment, and starts the same command again until it ends well.

A round fails when the command does not resume, when its results differ from those of an undisturbed one in what does
not depend on time, when a process or a file is left behind, or when a file of DIR that is not the campaign's is gone.
A kill counts when its signal reached a process that was alive: stopped, or still in a call to storage. Kills are
printed by victim and by the phase that they struck; rounds in which nothing was alive any longer are printed apart.

With --over nfs the measured directory lies on an NFS server that is started for it, as root. With --over nodes there
are two such mounts, each in a node of its own: namespaces of processes, mounts and the host's name. What is killed on
the first node is resumed on the second one. That is refused at first, since nobody can see there whether the owner is
dead. Ten minutes later, as far as the claims can tell, --take-over succeeds, whatever still hangs on the first node."""

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
sys.path[:0] = [str(ROOT), str(ROOT / "tests"), str(ROOT / "tests" / "python"), str(ROOT / "tests" / "backends")]
from programs import find_program  # noqa: E402

from iocast.ground.processes import start  # noqa: E402

VICTIMS = ("iocast", "mpirun", "a rank", "all", "iocast, a rank hangs")
LAUNCHERS = ("mpirun", "orterun", "prterun")
"""Names of the process that `mpirun` starts, by version."""
MOMENTS = ("any", "between two runs", "a place, and no manifest", "precreate", "benchmark", "cleanup")
PLAN = """schema_version: 1
workload: md-workbench
settings: {datasets: 2, objects: OBJECTS, iterations: OBJECTS, most_seconds: 60s}
repeats: 1
benchmark_repeats: 1
points:
  - {ranks: 1}
  - {ranks: 2, role: check}
"""


VICTIMS_THAT_COMPUTE = ("iocast", "a worker", "a simulator", "all")
STAGES = ("no results yet", "some results", "most results")
COMMANDS_THAT_COMPUTE = ("study", "calibrate")
OBJECTS_OVER_NFS = 30
OWNER = "iocast.owner.json"
ATTRIBUTES = 4
"""Seconds after which a node asks the NFS server again how old a fresh file is (acregmin of nfs(5) is 3)."""
SILENCE = 600
"""Seconds by which claims on a dead node are made older: more than the five minutes that a take-over takes."""


@dataclass
class Outcome:
    victim: str
    phase: str
    faults: list[str] = field(default_factory=list)
    killed: int = 0
    """Processes that were alive when SIGKILL came."""


def kill(process: psutil.Process) -> bool:
    """Ends a process. @return whether it was alive, which is certain of one that was seen stopped before"""
    try:
        process.suspend()
        until = time.monotonic() + 1
        while process.status() not in (psutil.STATUS_STOPPED, psutil.STATUS_DISK_SLEEP):
            if process.status() in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD) or time.monotonic() > until:
                return False
            time.sleep(0.0005)
        process.kill()
    except psutil.Error:
        return False
    return True


def of_name(processes: list[psutil.Process], *names: str) -> list[psutil.Process]:
    """Those of them that are there and have one of these names."""
    found = []
    for process in processes:
        with contextlib.suppress(psutil.Error):
            if process.name() in names:
                found.append(process)
    return found


class Rounds:
    """Rounds of measurements in `directory`, which is made and must be removed by who made this.

    `storage`: directory that the measured ones are made in, `directory` when None. `mounted`: the same as iocast has
    it, where that is another one. `nodes`: where iocast runs, None for here."""

    victims = VICTIMS

    def __init__(
        self, directory: Path, seed: int, objects: int = 600, *,
        storage: Path | None = None, mounted: Path | None = None, nodes: Nodes | None = None,
    ) -> None:  # fmt: skip
        self.directory, self.random = directory, random.Random(seed)
        self.storage, self.nodes = storage or directory, nodes
        self.mounted = mounted or self.storage
        directory.mkdir(exist_ok=True)
        self.plan = directory / "plan.yaml"
        self.plan.write_text(PLAN.replace("OBJECTS", str(objects)))
        self.environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        begun = time.monotonic()
        (place := directory / "undisturbed").mkdir()
        self._root(place).mkdir(parents=True, exist_ok=True)
        done = self._measure(place)
        assert done.wait() == 0, done.stderr.read() if done.stderr else ""
        self.expected = self._results(place)
        self.seconds = time.monotonic() - begun
        shutil.rmtree(place)

    def round(self, number: int, victim: str) -> Outcome:
        place = self.directory / f"round-{number}"
        place.mkdir(parents=True)
        (root := self._root(place)).mkdir(parents=True)
        (root / "mine").write_text("stays")
        child = self._measure(place)
        self._wait(place, child, self.random.choice(MOMENTS))
        outcome = Outcome(victim, self._phase(place))
        ended = child.poll() is not None
        hanging = self._kill(child, victim, outcome)
        child.communicate(timeout=300)
        entries = (
            self._resume_on_another_node(place, outcome) if self.nodes and not ended else self._resume(place, outcome)
        )
        for process in hanging:  # what it hung on has come back
            with contextlib.suppress(psutil.Error):
                process.send_signal(signal.SIGCONT)
        psutil.wait_procs(_of(place), timeout=30)
        if not outcome.faults and (found := self._results(place)) != self.expected:
            outcome.faults.append(f"other results: {found}")
        if (left := sorted(p.name for p in root.iterdir())) != ["mine"]:
            outcome.faults.append(f"left behind: {left}, {sorted(str(p) for p in root.rglob('*'))[:5]}")
        if alive := _of(place):
            outcome.faults.append(f"still alive: {alive}")
            for process in alive:
                process.kill()
        outcome.faults += [text for text in entries if "Traceback" in text][:1]
        if not outcome.faults:
            shutil.rmtree(place)
            shutil.rmtree(root, ignore_errors=True)
        return outcome

    def _resume(self, place: Path, outcome: Outcome, node: int = 0, *options: str) -> list[str]:
        """Up to three times the same command. @return what each printed on standard error"""
        entries = []
        for _ in range(3):
            again = self._measure(place, node, *options)
            entries.append(again.communicate(timeout=300)[1].strip())
            if again.returncode == 0:
                return entries
        outcome.faults.append(f"does not resume: {entries}")
        return entries

    def _resume_on_another_node(self, place: Path, outcome: Outcome) -> list[str]:
        root = self._root(place)
        claims = [place / "out" / OWNER, root / "iocast-campaign" / OWNER]
        if any(claim.exists() for claim in claims):
            for options in ((), ("--take-over",)):
                early = self._measure(place, 1, *options)
                errors = early.communicate(timeout=300)[1]
                if early.returncode != 2 or "--take-over" not in errors:
                    outcome.faults.append(
                        f"a node that can't see the owner goes on, exit code {early.returncode}: {errors}"
                    )
        for claim in claims:
            with contextlib.suppress(FileNotFoundError):
                os.utime(claim, (time.time() - SILENCE,) * 2)
        time.sleep(ATTRIBUTES)
        for claim in root.rglob("iocast.claim.json"):
            with contextlib.suppress(FileNotFoundError, ValueError):
                content = json.loads(claim.read_text())
                claim.write_text(json.dumps(content | {"seen": content["seen"] - SILENCE}))
        return self._resume(place, outcome, 1, "--take-over")

    def _root(self, place: Path) -> Path:
        return self.storage / place.name / "root"

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

    def _measure(self, place: Path, node: int = 0, *options: str) -> subprocess.Popen[str]:
        root = self.mounted / self._root(place).relative_to(self.storage)
        command = [
            *(self.nodes.enter(node) if self.nodes else ()), sys.executable, "-m", "iocast", "measure", str(root),
            "--campaign", str(self.plan), "--out", str(place / "out"), *options,
        ]  # fmt: skip
        return subprocess.Popen(
            command,
            env=self.environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def _kill(self, child: subprocess.Popen[str], victim: str, outcome: Outcome) -> list[psutil.Process]:
        """@return ranks that hang"""
        hanging = []
        with contextlib.suppress(psutil.Error):
            family = [psutil.Process(child.pid), *psutil.Process(child.pid).children(recursive=True)]
            own, *below = family[1:] if self.nodes and len(family) > 1 else family  # behind nsenter
            ranks, launchers = of_name(below, "iocast-bench"), of_name(below, *LAUNCHERS)
            if victim == "iocast, a rank hangs" and ranks:
                hanging = ranks[:1]
                hanging[0].send_signal(signal.SIGSTOP)
            chosen = {"mpirun": launchers, "a rank": ranks[:1], "all": [own, *below]}.get(victim, [own])
            if not chosen:
                outcome.victim, chosen = "iocast", [own]
            outcome.killed = sum(kill(process) for process in chosen)
        return hanging

    def _phase(self, place: Path) -> str:
        """What the benchmark is doing, by its own manifest."""
        for manifest in self._root(place).glob("*/*/iocast.manifest.json"):
            with contextlib.suppress(OSError, ValueError, KeyError):
                content = json.loads(manifest.read_text())
                return str(
                    content.get("phase") or content.get("state") or content.get("status") or "a data set lies there"
                )
        return (
            "a place, and no manifest"
            if any(self._root(place).glob("*/*/"))
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


class Nodes:
    """Two nodes of this machine: each has its own processes, its own name, and its own mount of an NFS server."""

    def __init__(self, mounts: list[Path], shared: Path) -> None:
        """`shared`: an empty directory where each node has its mount."""
        hosts = shared.with_name("hosts")
        hosts.write_text("127.0.0.1 localhost node1 node2\n")  # mpirun looks its own host up
        # The first process of each ignores SIGCHLD: the kernel buries the orphans that it gets.
        begin = 'mount --bind "$1" "$2" && mount --bind "$4" /etc/hosts && hostname "$3" && trap "" CHLD'
        self._first = [
            start(
                ["unshare", "--fork", "--kill-child", "--pid", "--mount-proc", "--uts"]
                + ["sh", "-c", f"{begin} && exec sleep infinity"]
                + ["sh", str(mount), str(shared), f"node{number}", str(hosts)]
            )
            for number, mount in enumerate(mounts, start=1)
        ]  # fmt: skip
        until = time.monotonic() + 30
        while not all(self._sleeps(one) for one in self._first):
            assert time.monotonic() < until, "the nodes did not start"
            time.sleep(0.05)

    def _sleeps(self, first: subprocess.Popen[bytes]) -> bool:
        return [p.name() for p in psutil.Process(first.pid).children()] == ["sleep"]

    def enter(self, number: int) -> list[str]:
        (process,) = psutil.Process(self._first[number].pid).children()
        return ["nsenter", "--target", str(process.pid), "--pid", "--mount", "--uts"]

    def end(self) -> None:
        for first in self._first:
            ended = [*psutil.Process(first.pid).children(), first]  # a node ends with its first process
            for process in ended:
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.kill()
            first.wait()


class Computations:
    """Rounds of a study or a calibration in `directory`. As Rounds."""

    victims = VICTIMS_THAT_COMPUTE

    def __init__(self, directory: Path, seed: int, what: str) -> None:
        self.directory, self.random, self.what = directory, random.Random(seed), what
        directory.mkdir()
        self.environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        if what == "study":
            from study_inputs import SMALL, write

            self.input = [write(directory / "input", SMALL)]
        else:
            simulator = find_program("iocast-sim")
            assert simulator is not None, "iocast-sim is not built; run ./check"
            self.input = [directory / f"run-{ranks}" for ranks in (1, 2, 4, 8)]
            sizes = [word for name in ("datasets=1", "objects=41", "iterations=40") for word in ("--set", name)]
            for ranks, run in zip((1, 2, 4, 8), self.input, strict=True):
                subprocess.run(
                    [simulator, "--platform", "local", "--ppn", str(ranks), "--seed", str(ranks), *sizes, "--out", run],
                    check=True,
                    capture_output=True,
                )
        begun = time.monotonic()
        place = directory / "undisturbed"
        child = self._begin(place)
        _, errors = child.communicate(timeout=3600)
        assert child.returncode == 0, errors
        self.seconds, self.expected, self.size = time.monotonic() - begun, self._answer(place), self._computed(place)

    def round(self, number: int, victim: str) -> Outcome:
        place = self.directory / f"round-{number}"
        child = self._begin(place)
        until = time.monotonic() + self.random.uniform(0.05, 0.95) * self.seconds
        while time.monotonic() < until and child.poll() is None:
            time.sleep(0.01)
        share = self._computed(place) / self.size
        outcome = Outcome(victim, STAGES[0 if share == 0 else 1 if share < 0.7 else 2])
        self._kill(child, outcome)
        _, errors = child.communicate(timeout=3600)
        if victim not in ("iocast", "all") and child.returncode == 0 and self._answer(place) != self.expected:
            outcome.faults.append("another answer")
        # Killed when the answer was written, and its own files not yet removed: that is for the next command.
        written = child.returncode != 0 and (place / "answer.yaml").exists()
        again = child
        if child.returncode != 0 and not written:
            psutil.wait_procs(self._alive(place), timeout=30)
            again = self._begin(place)
            _, errors = again.communicate(timeout=3600)
        if (again.returncode != 0 and not written) or "Traceback" in errors:
            outcome.faults.append(f"does not resume: {errors}")
        elif self._answer(place) != self.expected:
            outcome.faults.append("another answer")
        psutil.wait_procs(self._alive(place), timeout=10)
        outcome.faults += [f"still alive: {p}" for p in self._alive(place)]
        if not written and (left := sorted(p.name for p in (place / "tmp").iterdir())):
            outcome.faults.append(f"left behind: {left}")
        if left := sorted({p.name for p in place.iterdir()} - {"tmp", "answer", "answer.yaml", "answer.search.jsonl"}):
            outcome.faults.append(f"left behind: {left}")
        if not outcome.faults:
            shutil.rmtree(place)
        return outcome

    def _begin(self, place: Path) -> subprocess.Popen[str]:
        (place / "tmp").mkdir(parents=True, exist_ok=True)
        out = place / ("answer" if self.what == "study" else "answer.yaml")
        return subprocess.Popen(
            [sys.executable, "-m", "iocast", self.what, *self.input, "--out", out, "--workers", "2", "--seed", "1"],
            env={**self.environment, "TMPDIR": str(place / "tmp")},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def _kill(self, child: subprocess.Popen[str], outcome: Outcome) -> None:
        with contextlib.suppress(psutil.Error):  # the command had ended
            own = psutil.Process(child.pid)
            below = own.children(recursive=True)
            workers = [p for p in below if self._is_worker(p)]
            simulators = of_name(below, "iocast-sim")
            chosen = {"a worker": workers[:1], "a simulator": simulators[:1], "all": [own, *below]}.get(
                outcome.victim, [own]
            )
            if not chosen:
                outcome.victim, chosen = "iocast", [own]
            outcome.killed = sum(kill(process) for process in chosen)

    @staticmethod
    def _is_worker(process: psutil.Process) -> bool:
        with contextlib.suppress(psutil.Error):
            return "spawn_main" in " ".join(process.cmdline())
        return False

    def _alive(self, place: Path) -> list[psutil.Process]:
        """Processes with this round's directory for temporary files."""
        found = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error, OSError):
                if process.environ().get("TMPDIR") == str(place / "tmp") and process.status() != psutil.STATUS_ZOMBIE:
                    found.append(process)
        return found

    def _computed(self, place: Path) -> int:
        """Bytes of the results that are kept for a resumption."""
        kept = place / ("answer/evaluations.sqlite" if self.what == "study" else "answer.search.jsonl")
        return kept.stat().st_size if kept.exists() else 0

    def _answer(self, place: Path) -> Any:
        if self.what == "study":
            answer = json.loads((place / "answer" / "study.json").read_text())
            for key in ("computed", "found"):  # what was there already
                answer["search"].pop(key)
            return json.loads(
                json.dumps({key: value for key, value in answer.items() if key not in ("command", "date")})
            )
        return (place / "answer.yaml").read_text()


def _of(place: Path) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.name() in ("iocast-bench", *LAUNCHERS) and any(str(place) in word for word in process.cmdline()):
                found.append(process)
    return found


def started(
    what: str, over: str | None, scratch: Path, seed: int, opened: contextlib.ExitStack
) -> Rounds | Computations:
    """Rounds below `scratch`; the servers and nodes that they need end with `opened`."""
    if what != "measure":
        return Computations(scratch / "rounds", seed, what)
    if over is None:
        return Rounds(scratch / "rounds", seed)
    from servers import NfsMount

    mount = opened.enter_context(NfsMount())
    if over == "nfs":
        return Rounds(scratch / "rounds", seed, OBJECTS_OVER_NFS, storage=mount.export, mounted=mount.nodes[0])
    (shared := scratch / "storage").mkdir()
    nodes = Nodes(mount.nodes, shared)
    opened.callback(nodes.end)
    return Rounds(scratch / "rounds", seed, OBJECTS_OVER_NFS, storage=mount.export, mounted=shared, nodes=nodes)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--of", choices=("measure", *COMMANDS_THAT_COMPUTE), default="measure")
    parser.add_argument("--over", choices=("nfs", "nodes"))
    parser.add_argument("--kills", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="after which no further round begins")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    if given.over and given.of != "measure":
        parser.error(f"--over is for --of measure; --of {given.of} computes on one node.")
    scratch = Path(tempfile.mkdtemp(prefix="iocast-kills-", dir=given.directory))
    outcomes: list[Outcome] = []
    begun = time.monotonic()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by SIGTERM"))  # servers and nodes end with this process
    with contextlib.ExitStack() as opened:
        rounds = started(given.of, given.over, scratch, given.seed, opened)
        for number in range(given.kills):
            if time.monotonic() - begun > given.seconds:
                break
            outcomes.append(rounds.round(number, rounds.victims[number % len(rounds.victims)]))
            for fault in outcomes[-1].faults:
                print(
                    f"round {number}, {outcomes[-1].victim} killed, {outcomes[-1].phase}: {fault}",
                    file=sys.stderr,
                    flush=True,
                )
    kills = [o for o in outcomes if o.killed]
    struck = Counter((o.victim, o.phase) for o in kills)
    bad = [o for o in outcomes if o.faults]
    if given.json:
        print(
            json.dumps(
                {
                    "kills": len(kills),
                    "rounds": len(outcomes),
                    "faults": len(bad),
                    "struck": [{"victim": v, "phase": p, "count": n} for (v, p), n in sorted(struck.items())],
                }
            )
        )
    else:
        for (victim, phase), count in sorted(struck.items()):
            print(f"{count:5}  {victim:22} {phase}")
        missed = len(outcomes) - len(kills)
        print(f"{len(kills)} kills, {len(bad)} with a fault; in {missed} more rounds nothing was alive any longer.")
    if not bad:
        shutil.rmtree(scratch)
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
