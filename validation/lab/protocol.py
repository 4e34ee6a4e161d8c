#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Do forecasts for eight client nodes come true on servers of known capacity? In a laboratory (docs/laboratory.md) each
server is measured with one rank on one node, two on two, four on four and sixteen on four, and calibrated. Forecasts of
16, 32 and 64 ranks on eight nodes, with think time and without, are written with their hashes, and only then measured,
twice. Prints how wrong they were, beside simple rules.

    validation/lab/protocol.py [SERVER...] [--keep DIR] [--json] [--page docs/scoreboard.md]

Needs root and what each server needs; about five minutes a server on a quiet machine. With --keep, a server that is
finished there is not measured again. Exit status 4 when an error is above its target."""

import argparse
import json
import math
import os
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
from iocast.lab.servers import all_servers  # noqa: E402
from iocast.runs.measured import measured  # noqa: E402
from iocast.platforms.fitted import Fitted  # noqa: E402
from iocast.validate import KINDS  # noqa: E402

NODES = 8
BARS = Bars(throughput=0.05, quantiles=0.10, q99=0.20, wasserstein=0.15, coverage=(0.80, 0.97))


@contextmanager
def brought_up(
    server: str, settings: dict[str, str], rate: str = "", nodes: int = NODES
) -> Iterator[laboratory.Laboratory]:
    """A laboratory, until the block ends. It always has the same name, so that a campaign in it can go on."""
    name = f"validation-{server}"
    laboratory.up(name, nodes, server, settings, rate)
    try:
        yield laboratory.Laboratory.open(name)
    finally:
        laboratory.down(name)


def measure(lab: laboratory.Laboratory, plan: str, role: str, out: Path) -> None:
    """The runs of this role, with ranks on the nodes of the laboratory."""
    inner = ["measure", *lab.record.arguments, "--campaign", plan, "--role", role, "--out", str(out)]
    iocast("lab", "run", lab.record.name, "--", sys.executable, "-m", "iocast", *inner)


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


def validation_of(server: str, out: Path, plan: str = "laboratory") -> dict[str, Any]:
    """The whole way for one server, in `out`; what is finished there is read."""
    if (out / "validation.json").exists():
        found: dict[str, Any] = json.loads((out / "validation.json").read_text())
        return found
    out.mkdir(parents=True, exist_ok=True)
    campaign, fitted, forecasts = out / "campaign", out / "fitted.yaml", out / "forecasts"
    with brought_up(server, {}) as lab:
        measure(lab, plan, "fit", campaign)
        if not fitted.exists():
            iocast("calibrate", campaign, "--out", fitted)
        if not forecasts.exists():
            iocast("predict", fitted, "--points-of", campaign, "--out", forecasts)
        seal(forecasts)
        measure(lab, plan, "check", campaign)
    return validated(out)


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


def row_of(found: dict[str, dict[str, Any]], out: Path) -> Scores:
    """Scores over these servers."""
    ruled = [errors_of_the_queue(out / server, validation) for server, validation in found.items()]
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
        found = {server: validation_of(server, out / server) for server in given.servers or all_servers()}
        rows = {server: row_of({server: validation}, out) for server, validation in found.items()}
        rows |= {"all": row_of(found, out)} if len(rows) > 1 else {}
    missed = judge(list(rows.values())[-1], BARS)
    lines = error_table("16 to 64 ranks on 8 nodes, from up to 16 on 4", rows)
    lines += ["", f"Targets missed, over all: {', '.join(missed)}." if missed else "All targets are met."]
    print(json.dumps(rows, indent=1) if given.json else "\n".join(lines))
    if given.page:
        put(given.page, "laboratory", lines)
    sys.exit(4 if missed else 0)


if __name__ == "__main__":
    main()
