#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Do forecasts for eight client nodes come true on servers of known capacity? In a laboratory (docs/laboratory.md) each
server is measured with one rank on one node, two on two, four on four and sixteen on four, and calibrated. Forecasts of
16, 32 and 64 ranks on eight nodes, with think time and without, are written with their hashes, and only then measured,
three times. Prints how wrong they were, beside simple rules. A second calibration of the same runs is given the number
of the server's threads as a known fact; its forecasts are written at the same time, and have a row of their own.

    validation/lab/protocol.py [SERVER...] [--keep DIR] [--json] [--page docs/scoreboard.md]

Needs root and what each server needs; about eight minutes a server on a quiet machine. With --keep, a server that is
finished there is not measured again. Exit status 4 when an error is above its target."""

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "validation"), str(ROOT / "validation/real")]
from filesystems import iocast, validated  # noqa: E402
from scoreboard import BASELINE, Bars, Scores, error_table, judge, put, scores  # noqa: E402

from iocast.rules.baselines import closed_queue  # noqa: E402
from iocast.ground.files import sha256, write_json  # noqa: E402
from iocast.lab import laboratory  # noqa: E402
from iocast.ground import binaries  # noqa: E402
from iocast.lab.servers import all_servers, find  # noqa: E402
from iocast.runs.measured import measured  # noqa: E402
from iocast.platforms.fitted import Fitted  # noqa: E402
from iocast.validate import KINDS  # noqa: E402

NODES = 8
KNOWN = "known"
"""Directory of the calibration with known threads, below the server's."""
STATIONS = ("mds", "server", "cpu")
"""Where a family has the server's threads."""
BARS = Bars(throughput=0.05, quantiles=0.10, q99=0.20, wasserstein=0.15, coverage=(0.80, 0.97))


@contextmanager
def brought_up(
    server: str, settings: dict[str, str], rate: str = "", mounts: int = 1
) -> Iterator[laboratory.Laboratory]:
    """A laboratory, until the block ends. It always has the same name, so that a campaign in it can go on."""
    name = f"validation-{server}"
    laboratory.up(name, NODES, server, settings, rate, mounts)
    try:
        yield laboratory.Laboratory.open(name)
    finally:
        laboratory.down(name)


def measure(lab: laboratory.Laboratory, plan: str, role: str, out: Path) -> None:
    """The runs of this role, with ranks on the nodes of the laboratory."""
    inner = ["measure", *lab.record.arguments, "--campaign", plan, "--role", role, "--out", str(out)]
    iocast("lab", "run", lab.record.name, "--", sys.executable, "-m", "iocast", *inner)


@contextmanager
def observed(lab: laboratory.Laboratory, campaign: Path, file: Path) -> Iterator[None]:
    """Observes the first client node meanwhile, and joins that to the campaign's runs: the links' bytes are counters
    that a site has, too."""
    file.unlink(missing_ok=True)
    observe = [sys.executable, "-m", "iocast", "observe", "--out", str(file), "--every", "100ms"]
    node = ["--node", lab.record.clients[0]]
    command = [sys.executable, "-m", "iocast", "lab", "run", lab.record.name, *node, "--", *observe]
    observer = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        yield
    finally:
        observer.terminate()
        observer.wait()
    for run in sorted(campaign.glob("runs/*/run.json")):
        iocast("observe", "--join", run.parent, file)


def seal_of(forecasts: Path) -> Path:
    return forecasts.with_suffix(".sha256.json")


def seal(forecasts: Path) -> None:
    """Writes the hash of each forecast, with the time and the load of the machine, before anything is measured; once,
    also after what ended between forecast and hash."""
    if (file := seal_of(forecasts)).exists():
        return
    write_json(
        file,
        {
            "written": datetime.now(timezone.utc).isoformat(timespec="seconds"),
            "load": os.getloadavg(),
            "sha256": {file.name: sha256(file) for file in sorted(forecasts.glob("*.json"))},
        },
    )


def station_of(fitted: Path) -> str:
    """The station of a calibrated platform that has the server's threads."""
    stations = binaries.resolve_platform(str(fitted))["stations"]
    return next(one for one in STATIONS if one in stations)


def validations_of(server: str, out: Path, plan: str = "laboratory") -> dict[Path, dict[str, Any]]:
    """The whole way for one server, in `out`; what is finished there is read. By directory of each calibration what its
    forecasts came to, first of the one that knows nothing."""
    places = [out, *([out / KNOWN] if "threads" in find(server).defaults else [])]
    if (out / "validation.json").exists():
        return {place: json.loads(file.read_text()) for place in places if (file := place / "validation.json").exists()}
    campaign = out / "campaign"
    out.mkdir(parents=True, exist_ok=True)
    with brought_up(server, {}) as lab:
        if not (out / "fitted.yaml").exists():
            with observed(lab, campaign, out / "node.jsonl"):
                measure(lab, plan, "fit", campaign)
        for place in places:
            place.mkdir(parents=True, exist_ok=True)
            fitted, forecasts = place / "fitted.yaml", place / "forecasts"
            if not fitted.exists():
                threads = find(server).defaults["threads"]
                facts = ["--known", f"{station_of(out / 'fitted.yaml')}.servers={threads}"] if place != out else []
                iocast("calibrate", campaign, *facts, "--out", fitted)
            if not seal_of(forecasts).exists():
                iocast("predict", fitted, "--points-of", campaign, "--out", forecasts)
            seal(forecasts)
        measure(lab, plan, "check", campaign)
    return {place: validated(place, campaign) for place in reversed(places)}  # of `out` last: it is the mark of the end


def errors_of_the_queue(out: Path, validation: dict[str, Any]) -> dict[str, list[float]]:
    """Errors of the closed M/M/c queue by kind of quantity. It takes ranks wherever they are, where the rules of a
    forecast want placements on one line."""
    points = [one.point for one in measured(Fitted.open(str(out / "fitted.yaml")).fitted)]
    found: dict[str, list[float]] = {kind: [] for kind in KINDS}
    for point in validation["points"]:
        rule = closed_queue(points, point["placement"]["ranks"], point["waiting_factor"])
        for row in point["rows"]:
            kind = next((kind for kind, names in KINDS.items() if row["quantity"].rpartition(".")[2] in names), None)
            if kind is not None and isinstance(value := rule.get(row["quantity"]), float):
                found[kind].append(math.exp(abs(math.log(value / row["measured"]))) - 1)
    return found


def row_of(found: dict[Path, dict[str, Any]]) -> Scores:
    """Scores over these calibrations."""
    ruled = [errors_of_the_queue(place, validation) for place, validation in found.items()]
    queue = {f"{kind}, {BASELINE}": float(np.median([e for one in ruled for e in one[kind]])) for kind in KINDS}
    return scores(list(found.values())) | queue


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("servers", nargs="*", metavar="SERVER", help=f"of {', '.join(all_servers())}; all without")
    parser.add_argument("--keep", type=Path, help="a directory for campaigns, forecasts and validations")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--page", type=Path, help="put the table there, between its marks")
    given = parser.parse_args()
    if unknown := [one for one in given.servers if one not in all_servers()]:
        parser.error(f"there is no {', '.join(unknown)}; allowed: {', '.join(all_servers())}")
    with tempfile.TemporaryDirectory(prefix="iocast-lab-") as scratch:
        out = given.keep or Path(scratch)
        servers = given.servers or list(all_servers())
        found = {server: validations_of(server, out / server) for server in servers}
        rows: dict[str, Scores] = {}
        for title, name in (("", ""), (", threads known", KNOWN)):
            own = {server: out / server / name for server in servers if out / server / name in found[server]}
            rows |= {f"{server}{title}": row_of({place: found[server][place]}) for server, place in own.items()}
            if len(own) > 1:
                rows[f"all{title}"] = row_of({place: found[server][place] for server, place in own.items()})
    missed = judge(rows["all" if len(servers) > 1 else servers[0]], BARS)
    lines = error_table("16 to 64 ranks on 8 nodes, from up to 16 on 4", rows)
    met = "All targets are met over all, nothing known."
    lines += ["", f"Targets missed, over all: {', '.join(missed)}." if missed else met]
    print(json.dumps(rows, indent=1) if given.json else "\n".join(lines))
    if given.page:
        put(given.page, "laboratory", lines)
    sys.exit(4 if missed else 0)


if __name__ == "__main__":
    main()
