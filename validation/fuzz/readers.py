#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Damages files that iocast reads, at random and as somebody hostile would, and has the toolkit read them.

    validation/fuzz/readers.py [--inputs 100000] [--seed 0] [--only KIND...] [--json]

A reader must return, or refuse with a sentence. Exceptions that nobody foresaw are counted apart: the command line
turns them into a sentence with the file's name (`iocast/cli/__init__.py`, `_unexpected`). Anything else (a sentence
that is none, more than 10 seconds, more than 3 GiB, a file written elsewhere) is a fault, is printed with the kind and
the seed of the input, and makes the exit status 1. Kinds: runs, latency logs, campaigns, plans, studies, fitted
platforms, forecasts, observations, tables to be imported, reports of all of them. About 200 inputs a second."""

from __future__ import annotations

import argparse
import contextlib
import copy
import json
import random
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]
from programs import find_program  # noqa: E402

from iocast.calibrate.findings import findings  # noqa: E402
from iocast.cli import _unexpected  # noqa: E402
from iocast.campaign.plan import read_plan  # noqa: E402
from iocast.errors import InputError, RunError  # noqa: E402
from iocast.export.table import rows_of  # noqa: E402
from iocast.ground.files import read_json  # noqa: E402
from iocast.platforms.fitted import Fitted  # noqa: E402
from iocast.importers import import_files  # noqa: E402
from iocast.report.sources import read_sources  # noqa: E402
from iocast.runs.run_directory import Run, find_runs, group  # noqa: E402
from iocast.study.spec import read_study  # noqa: E402
from iocast.watching.utilisation import Observation  # noqa: E402

MAX_SECONDS = 10.0
MAX_MEMORY = 3 * 2**30

HOSTILE: list[Any] = [
    None, True, False, 0, -1, -5, 2**63, 2**64, 10**299, -(10**299), 1e308, -1e308, 1e-320, 0.1, "", "x",
    "a/../../../escaped", "../x", ".", "..", ".hidden", "/etc/passwd",
    "a\nb", "\x1b[31m", "\x00", "NaN", "nan", "inf", "-1", "1e999", "9" * 400, "é", "x" * 5000, [], {}, [[]], [{}],
    [None], {"": None}, {"a": []}, [1, "a"], ["x"] * 50, "complete", "check",
]  # fmt: skip
TOKENS = [
    b"NaN", b"Infinity", b"-Infinity", b"1e999", b"9" * 5000, b"-5", b"null", b"[" * 300, b"{" * 300, b'{"a":' * 200,
    b"\xff\xfe", b"\x00", b"&a [*a]", b"*a", b"!!python/object:os.system x",
    b"!!int x", b"? [", b"- " * 300, b"2001-13-45", b"../../x", b"\x1b]0;t\x07", b"\n", b"\t", b":", b"'", b'"', b"\\",
    b"#", b"%YAML 9.9\n", b"---\n", b"<<: *a", b"\xe2\x80\xa8", b"Tag=", b",",
]  # fmt: skip
BOMB = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{b}: &{b} [{','.join(['*' + a] * 9)}]\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True)
)

PLAN = """schema_version: 1
description: many things
workload: md-workbench
settings: {datasets: 2, objects: 100}
seconds: 2
repeats: 2
scaling: strong
steps:
  - {name: make, settings: {phases: precreate}, role: beside}
  - {name: use, settings: {phases: benchmark}}
points:
  - {nodes: [1, 2], ranks_per_node: [2, 4], waiting_factor: [0, 1], settings: [{objects: 5}, {objects: 6}]}
  - {nodes: 1, ranks: 4, threads_per_rank: 2, role: check}
"""
FITTED = """schema_version: 1
extends: local
stations: {cpu: {servers: 2, speed: 1.5}}
fitted:
  campaign: {workload: md-workbench, phase: benchmark, points: [{name: N=1, ranks: 1}], settings: {objects: 100}}
  structure: {cpu: fcfs}
  parameters: {stations.cpu.speed: {value: 1.5, low: 1.2, high: 1.9}}
  noise: {rate: 0.05}
  discrepancy: {rate: {sd: 0.1, degrees: 4, ranks: 8}}
  alternatives: [{weight: 0.8, structure: {cpu: ps}}]
  draws:
    - {stations: {cpu: {speed: 1.4}}, demands: {}}
    - {stations: {cpu: {speed: 1.6}}}
  notes: [fitted by hand]
"""
TABLE = (
    "workload,phase,operation,nodes,ppn,rate,operations,q50,q99,waiting_factor\n"
    "mine,benchmark,create,1,2,1000.5,200,0.001,0.01,0\n"
    "mine,benchmark,create,2,2,1900,400,0.001,0.02,1\n"
)
OBSERVATION = (
    '{"kind": "observation", "schema_version": 1, "host": "h", "started": "2026-11-24T10:00:00.000Z", "cpus": 2}\n'
    + "".join(
        json.dumps(
            {
                "monotonic": n / 10,
                "time": 1.7e9 + n / 10,
                "cpu": {"user": n, "system": n},
                "disks": {"sda": {"busy": n / 20, "read": n}},
                "net": {"eth0": {"rx": n, "tx": n}},
            }
        )
        + "\n"
        for n in range(8)
    )
)


@dataclass
class Kind:
    """`file` is damaged; `read` gets the directory that it lies in."""

    file: str
    read: Callable[[Path], Any]
    weight: int = 1


def use_run(directory: Path) -> None:
    runs, _ = find_runs([directory / "run"])
    points = group(runs)
    for point in points:
        for name in point.quantities():
            point.value(name)
    findings(points)
    list(rows_of(directory / "run"))


def use_log(directory: Path) -> None:
    run = Run(directory / "run")
    for tag in run.tags():
        for which in ("q50", "q99", "max"):
            run.latencies(tag).quantity(which)
    read_sources([directory / "run"])


def use_fitted(directory: Path) -> None:
    fitted = Fitted.open(str(directory / "fitted.yaml"))
    _ = fitted.phase, fitted.rates_alone, fitted.best(), fitted.draws()
    read_sources([directory / "fitted.yaml"])


def use_imported(directory: Path) -> None:
    out = directory / "imported"
    try:
        import_files([directory / "table.csv"], out, "table")
    finally:
        shutil.rmtree(out, ignore_errors=True)
        escaped = [p for p in directory.parent.iterdir() if p != directory]
        assert not escaped, f"written outside of the output directory: {escaped}"


KINDS = {
    "run": Kind("run/run.json", use_run, 3),
    "log": Kind("run/latency.hlog", use_log, 3),
    "campaign": Kind("campaign/campaign.json", lambda d: find_runs([d / "campaign"]), 2),
    "campaign in a report": Kind("campaign/campaign.json", lambda d: read_sources([d / "campaign"])),
    "plan": Kind("plan.yaml", lambda d: read_plan(str(d / "plan.yaml")), 3),
    "study": Kind("study.yaml", lambda d: read_study(d / "study.yaml"), 3),
    "fitted": Kind("fitted.yaml", use_fitted, 3),
    "forecast": Kind(
        "forecast.json", lambda d: (read_json(d / "forecast.json", "forecast"), read_sources([d / "forecast.json"])), 2
    ),
    "observation": Kind("observation.jsonl", lambda d: Observation(d / "observation.jsonl")),
    "table": Kind("table.csv", use_imported),
}


def make_corpus(directory: Path) -> None:
    """A whole file of each kind, below the new directory."""
    directory.mkdir(parents=True)
    simulator = find_program("iocast-sim")
    assert simulator is not None, "iocast-sim is not built; run ./check"
    settings = [a for one in ("datasets=1", "objects=20", "iterations=20") for a in ("--set", one)]
    for out in ("run", "campaign/runs/n1-t0-r1", "campaign/runs/n1-t0-r2"):
        (directory / out).parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(
            [simulator, "--platform", "local", "--ppn", "2", *settings, "--out", directory / out],
            check=True,
            capture_output=True,
        )
    points = [
        {"name": f"n1-t0-r{n}", "nodes": 1, "ranks_per_node": 2, "settings": {}, "role": role, "status": "complete"}
        for n, role in ((1, "fit"), (2, "check"))
    ]
    campaign = {
        "schema_version": 1,
        "kind": "campaign",
        "id": "0",
        "workload": "md-workbench",
        "root": "/x",
        "plan": "p",
        "plan_sha256": "0",
        "overrides": {},
        "seed": 0,
        "points": points,
    }
    (directory / "campaign" / "campaign.json").write_text(json.dumps(campaign, indent=1))
    (directory / "plan.yaml").write_text(PLAN)
    (directory / "fitted.yaml").write_text(FITTED)
    study = (ROOT / "examples" / "one-mds-or-dne" / "study.yaml").read_text()
    (directory / "study.yaml").write_text(re.sub(r"^platform: .*", "platform: lustre", study, flags=re.MULTILINE))
    forecast = {
        "schema_version": 1, "kind": "forecast", "label": "N=4",
        "placement": {"ranks": 4, "nodes": 1, "ranks_per_node": 4},
        "workload": {"name": "md-workbench", "parameters": {}},
        "platform": {"name": "local", "edits": []}, "level": 0.9,
        "quantities": {"rate": {"value": 1.0, "low": 0.9, "high": 1.1}}, "curves": {}, "baselines": {},
    }  # fmt: skip
    (directory / "forecast.json").write_text(json.dumps(forecast))
    (directory / "table.csv").write_text(TABLE)
    (directory / "observation.jsonl").write_text(OBSERVATION)


def damaged(content: bytes, name: str, chance: random.Random) -> bytes:
    """One to four damages: of the structure where there is one, or of the bytes."""
    structure = name.endswith((".json", ".yaml")) and chance.random() < 0.6
    if structure:
        with contextlib.suppress(ValueError, yaml.YAMLError, TypeError, RecursionError, UnicodeError):
            document = json.loads(content) if name.endswith(".json") else yaml.safe_load(content)
            for _ in range(chance.randint(1, 3)):
                document = _changed(document, chance)
            if name.endswith(".json"):
                return json.dumps(document).encode()
            return yaml.safe_dump(document, sort_keys=False, allow_unicode=True).encode()
    if name.endswith(".yaml") and chance.random() < 0.02:
        return content + BOMB.encode()
    out = bytearray(content)
    for _ in range(chance.randint(1, 4)):
        place = chance.randrange(len(out) + 1)
        way = chance.randrange(6)
        if way == 0 and out:
            out[min(place, len(out) - 1)] = chance.randrange(256)
        elif way == 1:
            del out[place : place + chance.choice((1, 2, 10, 100))]
        elif way == 2:
            out[place:place] = chance.choice(TOKENS)
        elif way == 3:
            end = place + chance.choice((1, 5, 50, 500))
            out[place:place] = out[place:end] * chance.choice((1, 2, 20))
        elif way == 4 and chance.random() < 0.3:
            del out[place:]
        else:
            numbers = list(re.finditer(rb"-?\d+(\.\d+)?", bytes(out[place : place + 500])))
            if numbers:
                found = chance.choice(numbers)
                out[place + found.start() : place + found.end()] = chance.choice(
                    (b"-1", b"NaN", b"1e400", b"0", b"9" * 30, b"9" * 5000, b"''", b"{}", b".inf")
                )
    return bytes(out)


def _changed(document: Any, chance: random.Random) -> Any:
    """With another value, another key or without one somewhere."""
    places: list[tuple[Any, Any]] = []
    waiting = [document]
    while waiting:
        one = waiting.pop()
        for key in list(one) if isinstance(one, dict) else range(len(one)) if isinstance(one, list) else ():
            places.append((one, key))
            waiting.append(one[key])
    if not places:
        return copy.deepcopy(chance.choice(HOSTILE))
    # The top of a file is read by most.
    holder, key = (
        places[int(chance.random() ** 4 * (len(places) - 1))] if chance.random() < 0.5 else chance.choice(places)
    )
    way = chance.random()
    if way < 0.15:
        del holder[key]
    elif way < 0.25 and isinstance(holder, dict):
        holder[chance.choice(["x", "", "a/../b", "name"])] = holder.pop(key)
    elif way < 0.3 and isinstance(holder, list):
        holder.append(copy.deepcopy(holder[key]))
    else:
        holder[key] = copy.deepcopy(chance.choice(HOSTILE))
    return document


unforeseen: Counter[str] = Counter()
"""Exceptions of other kinds than refusals, by kind of file and place."""


def fault(kind: str, directory: Path, content: bytes) -> str:
    """What is wrong with how this content is read; empty when nothing is."""
    used = KINDS[kind]
    file = directory / used.file
    file.write_bytes(content)
    begun = time.process_time()
    try:
        used.read(directory)
    except (InputError, RunError) as error:
        text = str(error)
        if not text.rstrip().endswith((".", ")")) or "\x1b" in text or len(text) > 4000:
            return f"no sentence: {text[:200]!r}"
    except Exception as error:
        printed, status = _unexpected(error)
        if status != 2 or str(directory) not in printed:
            return traceback.format_exc(limit=-4)
        where = [frame for frame in traceback.extract_tb(error.__traceback__) if "/iocast/" in frame.filename][-1]
        unforeseen[f"{kind}: {Path(where.filename).name}:{where.lineno} {type(error).__name__}"] += 1
    spent = time.process_time() - begun
    return f"it took {spent:.1f} s" if spent > MAX_SECONDS else ""


class Fuzz:
    """Readers beside a corpus in a new directory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory / "here"
        make_corpus(self.directory)
        self.whole = {kind: (self.directory / used.file).read_bytes() for kind, used in KINDS.items()}
        for kind, content in self.whole.items():
            assert not (printed := fault(kind, self.directory, content)), f"{kind}, undamaged: {printed}"

    def round(self, kind: str, chance: random.Random) -> str:
        content = self.whole[kind]
        try:
            return fault(kind, self.directory, damaged(content, KINDS[kind].file, chance))
        finally:
            (self.directory / KINDS[kind].file).write_bytes(content)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--inputs", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--seconds", type=float, default=float("inf"), help="after which no further input is tried")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY, MAX_MEMORY))
    kinds = [kind for kind in given.only for _ in range(KINDS[kind].weight)]
    count: Counter[str] = Counter()
    faults: Counter[str] = Counter()
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="iocast-fuzz-") as scratch:
        fuzz = Fuzz(Path(scratch))
        for number in range(given.inputs):
            if time.monotonic() - begun > given.seconds:
                break
            kind = kinds[number % len(kinds)]
            count[kind] += 1
            if printed := fuzz.round(kind, random.Random(f"{given.seed}-{number}")):
                last = printed.strip().splitlines()[-1]
                where = re.findall(r'File "[^"]*/(iocast/[^"]*)", line (\d+)', printed)
                key = f"{kind}: {':'.join(where[-1]) if where else ''} {last.split(':')[0]}"
                faults[key] += 1
                if faults[key] == 1:
                    print(f"{given.seed}-{number}, {kind}: {printed}", file=sys.stderr, flush=True)
    if given.json:
        print(json.dumps({"inputs": count.total(), "by_kind": count, "faults": faults, "unforeseen": unforeseen}))
    else:
        for kind, tried in count.items():
            print(f"{tried:8}  {kind}")
        print(f"Unforeseen: {unforeseen.total()}" + "".join(f"\n{n:8}  {key}" for key, n in unforeseen.most_common()))
        print(
            f"{count.total()} inputs, {faults.total()} faults"
            + ("." if not faults else ": " + "; ".join(f"{n} x {key}" for key, n in faults.most_common()))
        )
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
