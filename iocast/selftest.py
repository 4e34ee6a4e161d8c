# SPDX-License-Identifier: Apache-2.0
"""The whole way on storage whose truth is known: a file system of this project's own (selftest/queuefs.cpp) is measured
with few ranks, calibrated, forecast, and measured with many (docs/answers.md, `kind: selftest`)."""

from __future__ import annotations

import csv
import math
import os
import subprocess
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from iocast.ground import binaries
from iocast.calibrate.fit import calibrate
from iocast.calibrate.recipe import read_recipe
from iocast.campaign.directory import Campaign
from iocast.campaign.plan import read_plan
from iocast.runs.earlier import Earlier
from iocast.errors import InputError, RunError
from iocast.ground.files import SCHEMA_VERSION, sha256, write_json, write_text
from iocast.platforms.fitted import Fitted
from iocast.platforms.documents import dump
from iocast.forecasts.answer import predict_planned
from iocast.ground.processes import start
from iocast.runs.run_directory import Point, find_runs, group
from iocast.ground.scratch import scratch_directory
from iocast.validate import errors, validate
from iocast.records.platform import ResolvedPlatform
from iocast.records.validation import AllowedError, SelftestDocument, ServedDocument

ALLOWED = {"throughput": 0.10, "q50 to q95": 0.15, "q99": 0.30}
"""Median errors, as factors less 1, that a forecast may have at four times the ranks."""
MAX_DEVIATION = 4.0
"""Standard errors between the mean of the logged service times and what the truth says."""
Report = Callable[[str, int, int], None]


def selftest(out: Path, truth: str, family: str, campaign: str, seed: int, report: Report) -> SelftestDocument:
    """All that was measured, found and forecast lies in the new directory `out`.

    @raises InputError for a truth, family or campaign that can't be used, before anything is made
    @raises RunError where no file system can be mounted, or a run fails"""
    binaries.find("iocast-queuefs")
    resolved = binaries.resolve_platform(truth)
    read_recipe(family)
    plan = read_plan(campaign)
    out.mkdir(parents=True)
    log = out / "truth.csv"
    with mounted(truth, log, seed) as place, Campaign(place, plan, out / "campaign", seed) as work:
        work.prepare()
        work.measure("fit", lambda run, number, total: report(f"measuring {run.text}", number, total))
        fitted = out / "fitted.yaml"
        write_text(
            fitted,
            "# SPDX-License-Identifier: Apache-2.0\n" + dump(calibrate(_points(out, "fit"), family, seed, report)),
        )
        platform = Fitted.open(str(fitted))
        forecasts = {
            path: answer for path, answer in predict_planned(platform, out / "campaign", out / "forecasts", seed=seed)
        }
        digests = {path.name: sha256(path) for path in forecasts}
        work.measure("check", lambda run, number, total: report(f"measuring {run.text}", number, total))
    validation = validate(
        platform, _points(out, "check"), forecasts=[Earlier.of_document(one) for one in forecasts.values()]
    )
    write_json(out / "validation.json", validation)
    services = _services(log, resolved)
    missed: dict[str, AllowedError] = {
        kind: {"error": float(np.median(errors(validation, kind))), "allowed": allowed}
        for kind, allowed in ALLOWED.items()
    }
    answer: SelftestDocument = {
        "schema_version": SCHEMA_VERSION,
        "kind": "selftest",
        "truth": truth,
        "family": family,
        "forecasts_sha256": digests,
        "structure": platform.fitted["structure"],
        "notes": platform.fitted["notes"],
        "cautions": platform.fitted.get("cautions", []),
        "services": services,
        "errors": missed,
        "coverage": validation["summary"]["coverage"],
        "passed": all(one["error"] <= one["allowed"] for one in missed.values())
        and all(one["deviation"] <= MAX_DEVIATION for one in services.values()),
    }
    write_json(out / "selftest.json", answer)
    return answer


@contextmanager
def mounted(truth: str, log: Path, seed: int) -> Iterator[Path]:
    """A directory with the file system on it, until the end; then `log` says what every request found.

    @raises InputError for a truth that it can't be
    @raises RunError where FUSE is not to be had"""
    with scratch_directory("selftest") as scratch:
        (place := scratch / "mounted").mkdir()
        command = [
            binaries.find("iocast-queuefs"),
            "--platform",
            truth,
            "--log",
            str(log.resolve()),
            "--seed",
            str(seed),
            str(place),
        ]
        process = start(command, stderr=subprocess.PIPE, text=True)
        try:
            ends = time.monotonic() + 10
            while not os.path.ismount(place):
                if process.poll() is not None or time.monotonic() > ends:
                    process.terminate()
                    printed = process.communicate()[1].strip().rpartition("\n")[2]
                    raise (InputError if process.returncode == 2 else RunError)(
                        printed.removeprefix("iocast-queuefs: ")
                        or f"The file system for the test did not appear at '{place}' within 10 s."
                    )
                time.sleep(0.02)
            yield place
        finally:
            process.terminate()
            process.wait()


def _points(out: Path, role: str) -> list[Point]:
    runs, _ = find_runs([out / "campaign"], "benchmark")
    return [point for point in group(runs) if point.role == role]


def _services(log: Path, truth: ResolvedPlatform) -> dict[str, ServedDocument]:
    """By operation: how many were served, how long in the mean, what the truth says, and how many standard errors lie
    between."""
    found: dict[str, list[float]] = defaultdict(list)
    with log.open() as lines:
        for row in csv.DictReader(lines):
            found[row["operation"]].append(float(row["finish"]) - float(row["start"]))
    result: dict[str, ServedDocument] = {}
    for operation, seconds in sorted(found.items()):
        step = next(step for part in truth["operations"][operation] for step in part["steps"])
        law, speed = step["demand"], truth["stations"][step["station"]]["speed"]
        mean, deviation = law["mean"] / speed, math.sqrt(law["variance"]) / speed
        error = max(deviation / math.sqrt(len(seconds)), 1e-9)
        result[operation] = {
            "count": len(seconds),
            "mean": float(np.mean(seconds)),
            "truth": mean,
            "deviation": abs(float(np.mean(seconds)) - mean) / error,
        }
    return result
