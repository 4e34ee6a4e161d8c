#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Small truths of known structure, one a row: does a change of the calibration make forecasts better, and is the alarm
right? Each is "measured" by the second simulator with up to 16 clients, as iocast-bench would record it ("own") or as
an imported tool tells it, whole operations only ("imported"), calibrated as `lustre`, and forecast at 64 and 256
clients. Quick, and seen while the calibration was made: fresh systems are those of blind.py.

    validation/blind/probes.py [--keep DIR] [--only NAME...] [--plain COUNT [--alone]] [--seed 1] [--json FILE]

With --keep, measurements lie in DIR and are not made again; forecasts are. With --plain, COUNT random plain servers of
1 to 32 threads instead, own and imported in turns, calibrated only: how often the alarm is false. With --alone these
are fitted by their true structure alone, which takes a tenth of the time; a search among more structures leaves at most
this misfit, but for chance. Half a minute a truth and core."""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import yaml

VALIDATION = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(VALIDATION.parent), str(VALIDATION), str(VALIDATION / "theory"), str(VALIDATION / "blind")]
from blind import _pin, as_long, measured  # noqa: E402
from second_simulator import System, run  # noqa: E402
from truths import Truth  # noqa: E402

from iocast.calibrate.fit import calibrate  # noqa: E402
from iocast.platforms.fitted import Fitted  # noqa: E402
from iocast.platforms.documents import dump  # noqa: E402
from iocast.runs.run_directory import Run, group  # noqa: E402
from iocast.validate import errors, validate  # noqa: E402
from iocast.records.note_of_measurements import ALARMS  # noqa: E402

FIT = [(clients, 0.0) for clients in (1, 2, 4, 8, 16)] + [(4, 1.0), (16, 1.0)]
TARGETS = [(64, 0.0), (256, 0.0), (64, 1.0)]
REPEATS = 2
SECONDS = 1.2
RULES = ("closed M/M/c", "last value")
PLAIN_THREADS = (1, 2, 3, 4, 6, 8, 12, 16, 32)


@dataclass(frozen=True)
class Probe:
    name: str
    system: System
    own: bool

    def truth(self) -> Truth:
        return Truth(self.name, self.system, "", SECONDS)


def _system(**reported: Any) -> System:
    return System(
        **{"client": 4e-6, "storage": 3e-4, "service": {"stat": 6e-4, "read": 8e-4, "unlink": 1.2e-3, "create": 1.4e-3}}
        | reported
    )


def _bare(threads: int, **reported: Any) -> System:
    """Every operation is one visit to the server, and nothing else."""
    return _system(threads=threads, storage=0.0, client=0.0, **reported)


PROBES = [
    *(Probe(f"plain {threads} own", _system(threads=threads), True) for threads in (1, 2, 4, 8, 16, 32)),
    Probe("bare 1 imported", _bare(1), False),
    Probe("bare 8 imported", _bare(8, round_trip=8e-5), False),
    Probe("bare 6 own", _bare(6), True),
    Probe("far 4 imported", _bare(4, round_trip=8e-4), False),
    Probe("plain 8 imported", _system(threads=8), False),
    Probe("lock 64 own", _system(threads=64, journal=0.5), True),
    Probe("lock 64 imported", _system(threads=64, journal=0.5), False),
    Probe("cliff own", _system(threads=64, cliff=6, cliff_slope=0.12), True),
    Probe("shards own", _system(threads=2, shards=4), True),
    Probe("others 4 own", _system(threads=4, others=1000.0), True),
]


def plain(count: int, seed: int) -> list[Probe]:
    """Random plain servers, by threads and own or imported in turns."""
    r = random.Random(seed)
    found = []
    for number in range(count):
        threads, own = PLAIN_THREADS[number % len(PLAIN_THREADS)], number // len(PLAIN_THREADS) % 2 == 0
        stat = 4e-4 * 3 ** r.random()
        service = {
            "stat": stat,
            "read": stat * r.uniform(1, 1.6),
            "unlink": stat * r.uniform(1.3, 2.5),
            "create": stat * r.uniform(1.4, 3),
        }
        storage = r.choice((0.0, 2e-4, 6e-4))
        system = System(
            threads=threads,
            service=service,
            sigma=r.uniform(0.2, 0.9),
            round_trip=5e-5 * 8 ** r.random(),
            storage=storage,
            client=4e-6 if storage else 0.0,
        )
        found.append(Probe(f"{number:02d} plain {threads} {'own' if own else 'imported'}", system, own))
    return found


def _as_imported(directory: Path) -> None:
    """Takes out of its runs what an imported tool doesn't tell: the parts of operations."""
    for file in directory.glob("*/run.json"):
        document = json.loads(file.read_text())
        for phase in document["phases"]:
            phase["latency"] = {op: reported for op, reported in phase["latency"].items() if "." not in op}
        file.write_text(json.dumps(document))
        log = file.with_name("latency.hlog")
        lines = log.read_text().splitlines(keepends=True)
        log.write_text(
            "".join(line for line in lines if not line.startswith("Tag=") or line.partition(",")[0].count(".") < 2)
        )


def _measure(probe: Probe, place: Path, wanted: list[tuple[int, float]], first_seed: int) -> list[Any]:
    if not (place / "done").exists():
        place.mkdir(parents=True, exist_ok=True)
        truth = probe.truth()
        points = [(n, t, as_long(truth, run(truth.system, n, 40, t, first_seed).rate, n)) for n, t in wanted]
        measured(truth, points, REPEATS, first_seed, place / "runs")
        if not probe.own:
            _as_imported(place / "runs")
        (place / "done").write_text("")
    return group([Run(path) for path in sorted((place / "runs").iterdir())])


def true_structure(threads: int, place: Path) -> str:
    """A platform file of the family, which leaves nothing to choose: this many threads, and all else plain."""
    calibration = yaml.safe_load((VALIDATION.parent / "platforms" / "lustre.yaml").read_text())["calibration"]
    seen = str(threads) if threads < max(n for n, _ in FIT) else "unlimited"
    kept = {"threads": seen, "node": "many"}
    calibration["choices"] = {
        choice: {name: option if str(name) == kept.get(choice, "none") else None for name, option in options.items()}
        for choice, options in calibration["choices"].items()
    }
    file = place / "true.yaml"
    file.write_text(yaml.safe_dump({"schema_version": 1, "extends": "lustre", "calibration": calibration}))
    return str(file)


def outcome(probe: Probe, place: Path, number: int, requested: bool, alone: bool = False) -> dict[str, Any]:
    seed = 100_000 + 1000 * number
    fit = _measure(probe, place / "fit", FIT, seed)
    began = time.process_time()
    family = true_structure(probe.system.threads, place) if alone else "lustre"
    document = calibrate(fit, family, 0, lambda *_: None)
    file = place / "fitted.yaml"
    file.write_text(dump(document))
    fitted = document["fitted"]
    found: dict[str, Any] = {
        "name": probe.name,
        "structure": fitted["structure"],
        "misfit": fitted["misfit"],
        "usual_misfit": fitted.get("usual_misfit"),
        "parameters": {p["name"]: p["value"] for p in fitted["parameters"].values()},
    }
    found |= {
        "alarm": any(one["code"] in ALARMS for one in fitted["cautions"]),
        "weights": fitted.get("blend", {}).get("weights"),
        "notes": fitted["notes"],
    }
    found["holdout"] = [row["error"] for row in fitted["holdout"].get("rows", []) if row["quantity"] == "rate"]
    found["calibration"] = round(time.process_time() - began + sum(os.times()[2:4]), 1)
    if requested:
        points = _measure(probe, place / "target", TARGETS, seed + 500)
        platform = Fitted.open(str(file))
        found["validation"] = validate(platform, points)
    return found


def _text(structure: dict[str, str]) -> str:
    return " ".join(option for choice, option in structure.items() if option not in ("none", "many"))


def table(found: list[dict[str, Any]]) -> list[str]:
    lines = [
        "| truth | structure | misfit (usual) | alarm | held out | rate at "
        + ", ".join(f"{n} T={t:g}" for n, t in TARGETS)
        + " | rules (M/M/c; last) | q50 to q95 (M/M/c) | q99 (M/M/c) | inside | blend |",
        "|---" * 11 + "|",
    ]
    for one in found:
        cells = [
            one["name"],
            _text(one["structure"]),
            f"{one['misfit']:.2f} ({one['usual_misfit']:.2f})" if one["usual_misfit"] else f"{one['misfit']:.2f}",
            "ALARM" if one["alarm"] else "",
            " ".join(f"{100 * e:+.1f}" for e in one["holdout"]),
        ]
        if "validation" in one:
            v = one["validation"]
            by_ranks = {
                (p["placement"]["ranks"], p["waiting_factor"]): next(r for r in p["rows"] if r["quantity"] == "rate")
                for p in v["points"]
            }
            rates = [by_ranks[key] for key in TARGETS]
            cells.append(" ".join(f"{100 * r['error']:+.1f}" for r in rates))
            cells.append(
                "; ".join(
                    " ".join(
                        f"{100 * r['baselines'][rule]['error']:+.0f}" if rule in r["baselines"] else "-" for r in rates
                    )
                    for rule in RULES
                )
            )
            for kind in ("q50 to q95", "q99"):
                cells.append(
                    f"{100 * np.median(errors(v, kind)):.1f}"
                    f" ({100 * np.median(errors(v, kind, RULES[0]) or [np.nan]):.0f})"
                )
            cells.append(f"{100 * (v['summary']['coverage'] or 0):.0f}")
        else:
            cells += [""] * 5
        cells.append(
            " ".join(f"{name} {weight:.2f}" for name, weight in (one["weights"] or {}).items() if weight > 0.005)
        )
        lines.append("| " + " | ".join(cells) + " |")
    lines.append("")
    lines.append(
        f"Alarms: {sum(one['alarm'] for one in found)} of {len(found)}; of plain servers"
        f" {sum(one['alarm'] for one in found if _is_plain(one))} of {sum(map(_is_plain, found))}."
    )
    scored = [one["validation"] for one in found if "validation" in one]
    if scored:
        for kind in ("throughput", "q50 to q95", "q99"):
            ours, rule = ([e for v in scored for e in errors(v, kind, model)] for model in (None, RULES[0]))
            lines.append(
                f"{kind}: median {100 * np.median(ours):.1f} %, nine in ten below {100 * np.quantile(ours, 0.9):.0f} %;"
                f" closed M/M/c {100 * np.median(rule):.1f} %, {100 * np.quantile(rule, 0.9):.0f} %."
            )
        lines.append(f"Inside their intervals: {100 * np.mean([v['summary']['coverage'] for v in scored]):.0f} %.")
    lines.append(f"Seconds of processor for all calibrations: {sum(one['calibration'] for one in found):.0f}.")
    return lines


def _is_plain(one: dict[str, Any]) -> bool:
    return any(word in one["name"] for word in ("plain", "bare", "far"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--only", nargs="+", help="truths whose names hold one of these words")
    parser.add_argument("--plain", type=int, metavar="COUNT", help="random plain servers, calibrated only")
    parser.add_argument("--alone", action="store_true", help="plain servers by their true structure alone")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    probes = plain(given.plain, given.seed) if given.plain else PROBES
    chosen = [
        (n + (500 * given.seed if given.plain else 0), p)
        for n, p in enumerate(probes)
        if not given.only or any(word in p.name for word in given.only)
    ]
    import multiprocessing

    with tempfile.TemporaryDirectory(prefix="iocast-probes-") as scratch, multiprocessing.Manager() as manager:
        keep = given.keep or Path(scratch)
        cores = manager.Queue()
        for core in os.sched_getaffinity(0):
            cores.put(core)
        with ProcessPoolExecutor(len(os.sched_getaffinity(0)), initializer=_pin, initargs=(cores,)) as pool:
            jobs = [
                pool.submit(
                    outcome,
                    p,
                    keep / f"{'plain-' if given.plain else ''}{given.seed}-{p.name.replace(' ', '-')}",
                    n,
                    not given.plain,
                    given.alone,
                )
                for n, p in chosen
            ]
            found = []
            for job, (_, probe) in zip(jobs, chosen, strict=True):
                if job.exception() is not None:
                    print(f"{probe.name}: {job.exception()!r}", file=sys.stderr)
                else:
                    found.append(job.result())
                    print(table([found[-1]])[2], file=sys.stderr, flush=True)
                    if given.json:
                        given.json.write_text(json.dumps(found))
    print("\n".join(table(found)))


if __name__ == "__main__":
    main()
