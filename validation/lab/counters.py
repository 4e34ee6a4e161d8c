#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a server's own counters are worth: PostgreSQL behind a pool of known size (docs/laboratory.md) is measured with
one, two and four ranks on as many nodes, while SHOW STATS of the pool is written five times a second. It is calibrated
twice, without these counters and with them. Both forecast 16 and 32 ranks before these are measured.

    validation/lab/counters.py [THREADS...] [--keep DIR]

Needs root and what the server needs; about three minutes for each number of threads on a quiet machine."""

import argparse
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml
from protocol import iocast, measure, row_of, seal, station_of, validated
from scoreboard import Scores, error_table

from iocast.calibrate.recipe import NO_LIMIT
from iocast.ground import binaries
from iocast.lab import laboratory

PLAN = Path(__file__).with_name("few.yaml")
NODES = 4
WAYS = ("without counters", "with counters")
LOOP = (
    'while [ ! -e {stop} ]; do echo "snapshot_time: $(date +%s.%N)"; '
    'psql -qX --csv -h {host} -p 6432 -U lab -c "show stats" pgbouncer; sleep 0.2; done'
)


@contextmanager
def counted(lab: laboratory.Laboratory, file: Path) -> Iterator[None]:
    """Writes the pool's counters meanwhile."""
    stop = file.with_suffix(".stop")
    stop.unlink(missing_ok=True)
    loop = LOOP.format(stop=stop, host=lab.address(lab.record.servers[0]))
    command = [sys.executable, "-m", "iocast", "lab", "run", lab.record.name, "--", "sh", "-c", loop]
    with file.open("w") as out:
        writer = subprocess.Popen(command, stdout=out)
        try:
            yield
        finally:
            stop.touch()
            writer.wait()


def run(threads: int, out: Path) -> dict[str, tuple[Path, dict[str, Any]]]:
    """By way of calibrating, where it is and how its forecasts fared, for a pool of `threads` connections."""
    name = f"validation-counters-{threads}"
    laboratory.up(name, NODES, "postgresql", {"threads": str(threads)})
    try:
        lab = laboratory.Laboratory.open(name)
        with counted(lab, out / "pool.csv"):
            measure(lab, str(PLAN), "fit", out / "campaign")
        shutil.copytree(out / "campaign", out / "bare")
        for measured in sorted((out / "campaign").glob("runs/*/run.json")):
            iocast("observe", "--join", measured.parent, out / "pool.csv")
        for way, campaign in zip(WAYS, ("bare", "campaign"), strict=True):
            place = out / way.replace(" ", "-")
            place.mkdir()
            iocast("calibrate", out / campaign, "--out", place / "fitted.yaml")
            iocast("predict", place / "fitted.yaml", "--points-of", out / "campaign", "--out", place / "forecasts")
            seal(place / "forecasts")
        measure(lab, str(PLAN), "check", out / "campaign")
    finally:
        laboratory.down(name)
    places = {way: out / way.replace(" ", "-") for way in WAYS}
    return {way: (place, validated(place, out / "campaign")) for way, place in places.items()}


def found(place: Path) -> str:
    """The number of threads that a calibration found, and what the counters say of it."""
    fitted = place / "fitted.yaml"
    servers = binaries.resolve_platform(str(fitted))["stations"][station_of(fitted)].get("servers", 1)
    seen = yaml.safe_load(fitted.read_text())["fitted"].get("counted", {}).get("threads", {})
    weights = ", ".join(f"{number} with {100 * weight:.0f} %" for number, weight in seen.items() if weight >= 0.01)
    shown = "no limit" if servers >= NO_LIMIT else f"{servers:g} threads"
    return f"{shown} found" + (f"; by the counters alone {weights}" if weights else "")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("threads", nargs="*", type=int, default=[2, 3], metavar="THREADS")
    parser.add_argument("--keep", type=Path, help="a directory for campaigns and forecasts")
    given = parser.parse_args()
    rows: dict[str, Scores] = {}
    words: list[str] = []
    with tempfile.TemporaryDirectory(prefix="iocast-counters-") as scratch:
        for threads in given.threads:
            out = (given.keep or Path(scratch)) / str(threads)
            out.mkdir(parents=True)
            for way, (place, validation) in run(threads, out).items():
                title = f"{threads} threads, {way}"
                rows[title] = row_of({place: validation})
                words.append(f"- {title}: {found(place)}.")
    lines = error_table("16 and 32 ranks, from 1, 2 and 4", rows)
    print("\n".join([*lines, "", *words]))


if __name__ == "__main__":
    main()
