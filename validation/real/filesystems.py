#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Do forecasts come true on real file systems? ext4, XFS and btrfs on loop devices, tmpfs, GlusterFS with a delayed
brick, and the self-test's file system, whose truth is known (docs/selftest.md): each measured at up to four ranks,
calibrated, forecast at thirty-two, and only then measured there. Prints how wrong the forecasts were; beside them the
closed M/M/c queue's errors.

    validation/real/filesystems.py [FILESYSTEM...] [--scaling weak|strong] [--place DIR] [--keep DIR] [--json] [--page
    docs/scoreboard.md]

With weak scaling each of the thirty-two ranks has as many objects as a rank alone had, with strong scaling (for those
without servers that sleep) all together have as many.

Needs root for loop devices and mounts, xfsprogs, btrfs-progs, glusterfs-server and glusterfs-client for XFS, btrfs and
GlusterFS, and a quiet machine; about five minutes a file system. With --keep, file systems that are finished there are
not measured again. Errors are medians of |log(forecast / measured)| as factors less 1; exit status 4 when one is above
its target."""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, NoReturn

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "validation"), str(ROOT / "validation/real")]
from mounts import MOUNTS  # noqa: E402
from scoreboard import Bars, error_table, judge, put, scores  # noqa: E402

FAMILY = {"queuefs": "fuse", "glusterfs": "fuse"}  # all others: local
CAMPAIGN = """\
schema_version: 1
workload: md-workbench
settings: {{datasets: 4}}
seconds: {seconds}
scaling: {scaling}
benchmark_repeats: {benchmark_repeats}
repeats: {repeats}
points:
  - {{ranks: [1, 2, 4], waiting_factor: [0, 1], role: fit}}
  - {{ranks: 32, waiting_factor: [0, 1], role: check}}
"""
SLEEPING = {
    "seconds": 0.7,
    "benchmark_repeats": 1,
    "repeats": 2,
}  # servers that sleep: runs last as long as they should, and no page cache makes one unlike the other
FEW = {"queuefs": SLEEPING, "glusterfs": SLEEPING}
MANY = {
    "weak": {"seconds": 0.7, "benchmark_repeats": 3, "repeats": 3},
    "strong": {"seconds": 12, "benchmark_repeats": 3, "repeats": 2},
}
"""With strong scaling few ranks have as many objects as many have: what these fill (a journal, a cache of inodes) is in
the fitted runs too."""
BARS = Bars(throughput=0.10, quantiles=0.15, q99=0.30, wasserstein=0.15, coverage=(0.80, 0.97))


def iocast(*arguments: object, allowed: tuple[int, ...] = (0,)) -> str:
    command = [sys.executable, "-c", "from iocast.cli import main; main()", *map(str, arguments)]
    done = subprocess.run(
        command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)}, check=False
    )
    if done.returncode not in allowed:
        sys.exit(f"iocast {' '.join(map(str, arguments))}\n{done.stdout}\n{done.stderr}")
    return done.stdout


def validation_of(kind: str, scaling: str, place: Path, out: Path) -> dict[str, Any]:
    """The whole way; forecasts lie in `out`, with their times, before the check is measured."""
    if (out / "validation.json").exists():
        return json.loads((out / "validation.json").read_text())
    if out.exists():
        sys.exit(
            f"The directory '{out}' holds a measurement that did not come to its end; remove it, or keep results"
            " elsewhere."
        )
    with MOUNTS[kind](place) as directory:
        out.mkdir(parents=True)
        plan = out / "campaign.yaml"
        plan.write_text(CAMPAIGN.format(scaling=scaling, **FEW.get(kind, MANY[scaling])))
        forecast_and_check([directory], FAMILY.get(kind, "local"), plan, out)
    return validated(out)


def forecast_and_check(storage: list[object], family: str, plan: Path, out: Path) -> None:
    """`storage` as `iocast measure` takes it. Forecasts are written before the check is measured."""
    iocast("measure", *storage, "--campaign", plan, "--role", "fit", "--out", out / "campaign")
    iocast("calibrate", out / "campaign", "--platform", family, "--out", out / "fitted.yaml")
    iocast("predict", out / "fitted.yaml", "--points-of", out / "campaign", "--out", out / "forecasts")
    iocast("measure", *storage, "--campaign", plan, "--role", "check", "--out", out / "campaign")


def validated(out: Path, campaign: Path | None = None) -> dict[str, Any]:
    """Judges the forecasts in `out` by the checks of a campaign, by default that in `out`, too."""
    earlier = [
        argument for forecast in sorted((out / "forecasts").glob("*.json")) for argument in ("--forecast", forecast)
    ]
    iocast(
        "validate",
        out / "fitted.yaml",
        campaign or out / "campaign",
        "--role",
        "check",
        *earlier,
        "--out",
        out / "validation.json",
        allowed=(0, 4),
    )
    return json.loads((out / "validation.json").read_text())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kinds", nargs="*", metavar="FILESYSTEM", help=f"of {', '.join(MOUNTS)}; all without")
    parser.add_argument("--scaling", choices=sorted(MANY), default="weak")
    parser.add_argument(
        "--place", type=Path, default=Path(tempfile.gettempdir()), help="where the loop devices' files lie"
    )
    parser.add_argument("--keep", type=Path, help="a directory for campaigns, forecasts and validations")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--page", type=Path, help="put the table there, between its marks")
    given = parser.parse_args()
    unknown = [kind for kind in given.kinds if kind not in MOUNTS]
    if unknown:
        parser.error(f"there is no {', '.join(unknown)}; allowed: {', '.join(MOUNTS)}")
    kinds = given.kinds or [kind for kind in MOUNTS if given.scaling == "weak" or kind not in FEW]
    if given.scaling == "strong" and (slow := [kind for kind in kinds if kind in FEW]):
        parser.error(
            "thirty-two ranks would have next to nothing to do if they shared what a rank alone does on"
            f" {', '.join(slow)}; use --scaling weak"
        )
    with tempfile.TemporaryDirectory(prefix="iocast-real-") as scratch:
        out = (given.keep or Path(scratch)) / given.scaling
        found = {kind: validation_of(kind, given.scaling, given.place, out / kind) for kind in kinds}
    report(found, "real" if given.scaling == "weak" else "real, strong scaling", given)


def report(found: dict[str, dict[str, Any]], section: str, given: argparse.Namespace) -> NoReturn:
    """Prints the table of these validations, puts it into a section of the page that was named, and ends."""
    rows = {kind: scores([validation]) for kind, validation in found.items()}
    if len(rows) > 1:
        rows["all"] = scores(list(found.values()))
    lines = error_table("32 ranks from up to 4", rows)
    missed = judge(list(rows.values())[-1], BARS)
    lines += ["", f"Targets missed, over all: {', '.join(missed)}." if missed else "All targets are met."]
    print(json.dumps(rows, indent=1) if given.json else "\n".join(lines))
    if given.page:
        put(given.page, section, lines)
    sys.exit(4 if missed else 0)


if __name__ == "__main__":
    main()
