#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Do forecasts of unknown systems come true? Random metadata servers (truths.py) are "measured" by a second simulator
that shares nothing with iocast (validation/theory/second_simulator.py) at up to 16 clients, calibrated as `lustre`,
forecast at 64 and 256, and only then measured there. Two in five have something that `lustre` has no place for; on
those an alarm is required. One in five saturates beyond what is measured.

    validation/blind/blind.py [--count 40] [--seed 6] [--others "judged on"] [--keep DIR] [--only NAME...] [--json]
        [--page docs/scoreboard.md [--section NAME]]

With --others, systems of four kinds that no family has: those that the rules for blends and alarms were chosen on, or
the four that they are judged on (truths.py).

With --keep, what is finished lies in DIR and is not made again. A minute or two a truth and core. Errors are medians of
|log(forecast / measured)| as factors less 1; exit status 4 when one is above its target."""

from __future__ import annotations

import argparse
import hashlib
import json
import multiprocessing
import os
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

import numpy as np

VALIDATION = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(VALIDATION.parent), str(VALIDATION), str(VALIDATION / "theory")]
from scoreboard import Bars, behind_rules, error_table, judge, put, scores, share_interval  # noqa: E402
from second_simulator import Observed, run  # noqa: E402
from truths import OTHER_KINDS, SIDES, Truth, other_truths, truths  # noqa: E402

from iocast.calibrate.fit import calibrate  # noqa: E402
from iocast.runs.earlier import Earlier  # noqa: E402
from iocast.ground.files import write_json  # noqa: E402
from iocast.platforms.fitted import Fitted  # noqa: E402
from iocast.importers.record import Phase, Record, write_runs  # noqa: E402
from iocast.platforms.documents import dump  # noqa: E402
from iocast.forecasts.answer import predict  # noqa: E402
from iocast.runs.run_directory import Point, Run, group  # noqa: E402
from iocast.validate import validate  # noqa: E402
from iocast.records.note_of_measurements import ALARMS  # noqa: E402

Request = tuple[int, float, int]
"""Clients, waiting factor, iterations."""
FIT = [(clients, 0.0) for clients in (1, 2, 4, 8, 16)] + [(4, 1.0), (16, 1.0)]
TARGETS = [(clients, factor) for clients in (64, 256) for factor in (0.0, 1.0)]
REPEATS_FIT, REPEATS_TARGET = 3, 2
BARS = Bars(throughput=0.03, throughput_ninth=0.08, quantiles=0.07, q99=0.15, wasserstein=0.08, coverage=(0.85, 0.95))
ALARM, FALSE_ALARM = 0.9, 0.1


def write_run(seen: Observed, truth: Truth, clients: int, factor: float, iterations: int, out: Path) -> None:
    """As iocast-bench would have recorded it."""
    phase = Phase("benchmark", 0, 0.0, seen.seconds, sum(map(len, seen.latencies.values())), 0, seen.rate)
    phase.rank_seconds = seen.finished
    phase.add_trace({op: (np.array(seen.begun[op]), np.array(seen.latencies[op])) for op in seen.latencies})
    half = np.full(len(seen.opened["read"]), max(truth.system.client / 2, 1e-9))
    opened = {op: np.array(values) for op, values in seen.opened.items()}
    parts = {
        "read.open": opened["read"], "read.close": half,
        "read.read": np.array(seen.latencies["read"]) - opened["read"] - half,
        "create.open": opened["create"], "create.write": 2 * half, "create.close": half,
    }  # fmt: skip
    phase.latency |= {name: phase.latency["stat"].of_values(values) for name, values in parts.items()}
    record = Record(
        out.name,
        "second simulator",
        [phase],
        pattern="md-workbench",
        ranks=clients,
        nodes=1 if truth.one_node else clients,
    )
    record.parameters = {
        "datasets": 1,
        "objects": iterations,
        "iterations": iterations,
        "waiting_factor": factor,
        "object_size": 3901,
    }
    record.label, record.imported = out.name, {"format": "second simulator", "files": [], "missing": {}}
    write_runs([("", record)], out)


def measured(truth: Truth, points: list[Request], repeats: int, first_seed: int, out: Path) -> list[Point]:
    seed = first_seed
    for clients, factor, iterations in points:
        for repeat in range(repeats):
            seed += 1
            write_run(
                run(truth.system, clients, iterations, factor, seed),
                truth,
                clients,
                factor,
                iterations,
                out / f"{clients}-{factor:g}-{repeat}",
            )
    return group([Run(path) for path in sorted(out.iterdir())])


def as_long(truth: Truth, rate: float, clients: int) -> int:
    """Iterations with which a run lasts the truth's seconds if it has this rate."""
    return max(40, round(truth.seconds * rate / (4 * clients)))


def seed_of(number: int) -> int:
    """From which on random numbers are a truth's own."""
    return 1000 * (number + 1)


def small_campaign(truth: Truth, number: int, repeats: int, out: Path) -> list[Point]:
    """What is fitted to: a truth, by its place in the list of them, at up to 16 clients."""
    seed = seed_of(number)
    small = [(n, t, as_long(truth, run(truth.system, n, 40, t, seed).rate, n)) for n, t in FIT]
    return measured(truth, small, repeats, seed, out)


def outcome(truth: Truth, number: int) -> dict[str, Any]:
    """Forecasts are made, and their digest taken, before anything at their scale is simulated by the second
    simulator."""
    with tempfile.TemporaryDirectory(prefix="iocast-blind-") as scratch:
        place = Path(scratch)
        fitted = place / "fitted.yaml"
        points = small_campaign(truth, number, REPEATS_FIT, place / "fit")
        fitted.write_text(dump(calibrate(points, "lustre", 0, lambda *_: None)))
        platform = Fitted.open(str(fitted))
        # How long a run at the target scale will last, only a forecast could say: as if the largest measured rate were
        # the last.
        largest = max(point.value("rate") for point in points)
        large = [(n, t, as_long(truth, largest, n)) for n, t in TARGETS]
        forecasts = [predict(platform, None, _settings(t, i), *_place(truth, n)) for n, t, i in large]
        digest = hashlib.sha256(json.dumps(forecasts, sort_keys=True).encode()).hexdigest()
        validation = validate(
            platform,
            measured(truth, large, REPEATS_TARGET, seed_of(number) + 500, place / "target"),
            forecasts=[Earlier.of_document(one) for one in forecasts],
        )
        notes = platform.fitted["notes"]
        found = {
            "truth": truth.name,
            "side": truth.side,
            "system": vars(truth.system),
            "forecasts_sha256": digest,
            "validation": validation,
        }
        found |= {"alarm": any(one["code"] in ALARMS for one in platform.fitted["cautions"]), "notes": notes}
        return found | {
            key: platform.fitted[key]
            for key in (
                "structure",
                "parameters",
                "misfit",
                "discrepancy",
                "alternatives",
                "holdout",
                "fit",
                "noise",
                "blend",
            )
        }


def _place(truth: Truth, clients: int) -> tuple[int, int]:
    """Nodes, and clients on each."""
    return (1, clients) if truth.one_node else (clients, 1)


def _settings(factor: float, iterations: int) -> dict[str, str]:
    return {"waiting_factor": f"{factor:g}", "iterations": str(iterations), "objects": str(iterations)}


def _pin(cores: Any) -> None:
    os.sched_setaffinity(0, {cores.get()})


def outcomes(chosen: list[tuple[int, Truth]], keep: Path) -> list[dict[str, Any]]:
    """What is not in `keep` yet is made, a truth a core."""
    keep.mkdir(parents=True, exist_ok=True)

    def file(truth: Truth) -> Path:
        return keep / f"{truth.name.replace(' ', '-')}.json"

    cores = multiprocessing.Manager().Queue()
    for core in os.sched_getaffinity(0):
        cores.put(core)
    with ProcessPoolExecutor(cores.qsize(), initializer=_pin, initargs=(cores,)) as pool:
        made = {pool.submit(outcome, truth, number): truth for number, truth in chosen if not file(truth).exists()}
        for done in as_completed(made):
            if done.exception() is not None:  # the others go on, and a table without it tells of fewer truths
                print(f"{made[done].name}: {done.exception()}", file=sys.stderr)
                continue
            write_json(file(made[done]), done.result())
            print(
                f"{made[done].name}: {100 * done.result()['validation']['summary']['rate_error_median']:.1f} % in"
                " throughput",
                file=sys.stderr,
            )
    return [json.loads(file(truth).read_text()) for _, truth in chosen if file(truth).exists()]


def table(found: list[dict[str, Any]]) -> list[str]:
    """As Markdown: all, those of each side of the family, and each kind."""
    groups = {"all": found} | {f"all {side}": [f for f in found if f["side"] == side] for side in SIDES}
    for one in found:
        groups.setdefault(one["truth"].partition(" ")[2], []).append(one)
    more = {
        name: {
            "truths": str(len(ones)),
            "alarm": f"{100 * np.mean([o['alarm'] for o in ones]):.0f} %",
            "inside, 95 % interval": share_interval([o["validation"] for o in ones]),
        }
        for name, ones in groups.items()
        if ones
    }
    return error_table(
        "64 and 256 clients from up to 16",
        {name: scores([o["validation"] for o in ones]) for name, ones in groups.items() if ones},
        more,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--seed", type=int, default=6)
    parser.add_argument("--others", choices=list(OTHER_KINDS), help="kinds that no family has, instead")
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--only", nargs="+", help="truths whose names hold one of these words")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--page", type=Path, help="put the table there, between its marks")
    parser.add_argument("--section", default="blind", help="the name in these marks")
    given = parser.parse_args()
    chosen = [
        (n, t)
        for n, t in enumerate(
            other_truths(given.count, given.seed, given.others) if given.others else truths(given.count, given.seed)
        )
        if not given.only or any(word in t.name for word in given.only)
    ]
    if not chosen:
        parser.error(
            "there is no such truth; their names are a number and one of "
            + ", ".join(kind for kinds in (SIDES | OTHER_KINDS).values() for kind in kinds)
        )
    with tempfile.TemporaryDirectory(prefix="iocast-blind-") as scratch:
        found = outcomes(chosen, given.keep or Path(scratch))
    if given.json:
        print(json.dumps(found, indent=1))
    if not found:
        parser.error("nothing is finished yet")
    lines = table(found)
    missed, inside, outside = (
        [],
        *([one for one in found if one["side"] == side] for side in ("in the grid", "out of it")),
    )
    if inside:
        missed += judge(scores([one["validation"] for one in inside]), BARS)
        missed += ["false alarms"] if np.mean([one["alarm"] for one in inside]) > FALSE_ALARM else []
    if outside and np.mean([one["alarm"] for one in outside]) < ALARM:
        missed.append("alarms")
    kinds = sorted({one["truth"].partition(" ")[2] for one in found})
    behind = {
        kind: behind_rules([one["validation"] for one in found if one["truth"].partition(" ")[2] == kind])
        for kind in kinds
    }
    missed += [f"{kind}: {reported}" for kind, reports in behind.items() for reported in reports]
    if len(found) < len(chosen):
        missed.append(f"{len(chosen) - len(found)} truths without a forecast")
    lines += [
        "",
        "Targets missed (truths in the grid, alarms, classes against simple rules):"
        if missed
        else "All targets are met.",
    ]
    lines += ["", *(f"- {one}" for one in missed)] if missed else []
    print("\n".join(lines), file=sys.stderr if given.json else sys.stdout)
    if given.page:
        put(given.page, given.section, lines)
    sys.exit(4 if missed else 0)


if __name__ == "__main__":
    main()
