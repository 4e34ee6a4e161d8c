# SPDX-License-Identifier: Apache-2.0
"""A storage server drawn at random, whose truth is known: what `./quickstart` measures without a directory.

    python -m iocast.drawn draw [--seed N] --out TRUTH.yaml
    python -m iocast.drawn show TRUTH.yaml CAMPAIGN VALIDATION.json

`draw` writes a platform for `iocast-queuefs`, with stations, laws of service times and stalls from the seed, which it
prints. At least one mechanism is outside the family `fuse` that is calibrated: a station of its own for changes,
stalls, or service times of two kinds. `show` simulates the drawn platform where the forecast was checked, prints
forecast, measurement and truth side by side, and adds the truth to the rows of the validation, for the report.
"""

from __future__ import annotations

import argparse
import secrets
from enum import Enum
from pathlib import Path
from typing import Any, cast

import numpy as np

from iocast.ground import binaries
from iocast.calibrate.search import whole_settings
from iocast.errors import InputError
from iocast.ground.files import read_json, write_json, write_text
from iocast.platforms.documents import Document, dump
from iocast.runs.run_directory import Point, find_runs, group
from iocast.wording.text import interval, quantity
from iocast.records.validation import ValidationDocument

MEANS_MS = {"getattr": (1.0, 2.5), "open": (1.0, 2.5), "make": (2.0, 5.0), "remove": (1.5, 4.0)}
"""Range of mean service times in milliseconds: FUSE and the kernel take about 0.1 ms of each request."""
CHANGES = ("make", "remove")
SERVERS = (1, 4)
TRUTH_SEEDS = 3
"""Simulations whose mean is the truth of a quantity."""
SHOWN = ("rate", "q50", "q99")
"""Quantities of the table in the terminal; the report has all."""


class Outside(Enum):
    """Mechanisms that the family `fuse` does not have."""

    OWN_STATION = "changes have a station of their own"
    STALLS = "stalls"
    TWO_KINDS = "service times of two kinds"


def draw(seed: int) -> Document:
    """A platform that `iocast-queuefs` can be, the same for the same seed."""
    random = np.random.default_rng(seed)
    known = list(Outside)
    outside = [one for one in known if random.random() < 0.5] or [known[int(random.integers(len(known)))]]
    stations = {"mds": {"servers": int(random.integers(SERVERS[0], SERVERS[1] + 1))}}
    if Outside.OWN_STATION in outside:
        stations["journal"] = {"servers": int(random.integers(1, 3))}
    demands = {}
    for name, (low, high) in MEANS_MS.items():
        mean, sigma = float(random.uniform(low, high)), round(float(random.uniform(0.2, 0.8)), 2)
        demands[name] = _law(mean, sigma, Outside.TWO_KINDS in outside, random)
    visits = {
        name: {"station": "journal" if name in CHANGES and Outside.OWN_STATION in outside else "mds", "demand": name}
        for name in MEANS_MS
    }
    names = ", ".join(one.value for one in outside)
    document: Document = {
        "schema_version": 1,
        "description": f"a metadata server drawn with the seed {seed}; outside the family fuse: {names}",
        "source": "drawn at random; iocast-queuefs serves requests in real time as this file says",
        "stations": stations,
        "demands": demands,
    }
    if Outside.STALLS in outside:
        every, length = float(random.uniform(1, 3)), float(random.uniform(20, 80))
        station = visits["make"]["station"]
        document["stalls"] = {
            "commit": {
                "station": station,
                "every": f"{every:.2f}s",
                "length": f"{length:.0f}ms",
                "sigma": 0.3,
                "operations": ["create", "unlink"],
            }
        }
    opening: Document = {"open": [visits["open"]], "close": []}
    document["operations"] = {
        "stat": [visits["getattr"]],
        "read": opening | {"read": []},
        "append": opening | {"write": []},
        "open": [visits["open"]],
        "create": {"open": [visits["make"]], "write": [], "close": []},
        "unlink": [visits["remove"]],
        **{name: [] for name in ("pwrite", "pread", "fsync", "close", "readdir", "mkdir", "rmdir")},
    }
    return document


def _law(mean_ms: float, sigma: float, two_kinds: bool, random: np.random.Generator) -> dict[str, Any]:
    """A lognormal law, or a mixture of one with a rare one several times as long; the mean is the same."""
    if not two_kinds:
        return {"law": "lognormal", "mean": f"{mean_ms:.2f}ms", "sigma": sigma}
    share, times = float(random.uniform(0.03, 0.1)), float(random.uniform(4, 8))
    usual = mean_ms / (1 - share + share * times)
    parts = [(1 - share, usual), (share, usual * times)]
    return {
        "law": "mixture",
        "parts": [
            {"weight": round(weight, 3), "law": "lognormal", "mean": f"{mean:.2f}ms", "sigma": sigma}
            for weight, mean in parts
        ],
    }


def truth_of(platform: Path, point: Point) -> dict[str, float]:
    """Quantities ("rate", "create.q99") that the drawn server alone gives at a measured point.

    Each is the mean of TRUTH_SEEDS simulations. The kernel, FUSE and the benchmark take time in the measurement, and
    none here."""
    run = point.first
    nodes, ranks_per_node = run.placement
    found: dict[str, list[float]] = {}
    for seed in range(1, TRUTH_SEEDS + 1):
        answer = binaries.simulate(
            platform, run.json["workload"]["name"], whole_settings(run), nodes, round(ranks_per_node), seed
        )
        for phase in answer["phases"]:
            if phase["name"] != run.phase:
                continue
            found.setdefault("rate", []).append(phase["rate"])
            for operation, latency in phase["latency"].items():
                for quantile in ("q50", "q75", "q95", "q99"):
                    found.setdefault(f"{operation}.{quantile}", []).append(latency[quantile])
    return {name: float(np.mean(values)) for name, values in found.items()}


def add_truth(platform: Path, campaign: Path, validation: ValidationDocument) -> ValidationDocument:
    """The validation with `truth` in each row of a checked point.

    @raises InputError when the campaign has none of its checked points"""
    runs, _ = find_runs([campaign])
    points = {point.name: point for point in group(runs) if point.role == "check"}
    checked = [one for one in validation["points"] if one["role"] == "check" and one["name"] in points]
    if not checked:
        raise InputError(f"No point of the role check of '{campaign}' is in the validation; measure it first.")
    for one in checked:
        truth = truth_of(platform, points[one["name"]])
        for row in one["rows"]:
            row["truth"] = truth.get(row["quantity"])
    return validation


def table(validation: ValidationDocument) -> list[str]:
    """Forecast, measurement and truth of the checked points, a line a quantity."""
    head = ("", "quantity", "forecast", "90 % interval", "measured", "truth", "forecast off")
    lines = [_line(*head)]
    for point in validation["points"]:
        for row in point["rows"] if point["role"] == "check" else []:
            if row.get("truth") is None or not row["quantity"].endswith(SHOWN):
                continue
            kind = "rate" if row["quantity"] == "rate" else ""
            forecast, between = interval(kind, {"value": row["forecast"], "low": row["low"], "high": row["high"]})
            measured, truth = quantity(kind, row["measured"]), quantity(kind, row["truth"])
            off = f"{100 * row['error']:+.0f} %{'' if row['inside'] else ', outside'}"
            lines.append(_line(point["name"], row["quantity"], forecast, between, measured, truth, off))
    return lines


def _line(*cells: str) -> str:
    widths = (-11, -12, 12, 24, 11, 11, 15)
    return "".join(f"{cell:<{-w}}" if w < 0 else f"{cell:>{w}}" for cell, w in zip(cells, widths, strict=True)).rstrip()


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="iocast.drawn", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    verbs = parser.add_subparsers(dest="verb", required=True)
    drawing = verbs.add_parser("draw")
    drawing.add_argument("--seed", type=int)
    drawing.add_argument("--out", type=Path, required=True)
    showing = verbs.add_parser("show")
    for name in ("truth", "campaign", "validation"):
        showing.add_argument(name, type=Path)
    given = parser.parse_args()
    if given.verb == "draw":
        seed = secrets.randbelow(1_000_000) if given.seed is None else given.seed
        document = draw(seed)
        write_text(given.out, "# SPDX-License-Identifier: Apache-2.0\n" + dump(document))
        print(f"Seed {seed}: {document['description'].partition('; ')[2]}.")
        return
    validation = add_truth(
        given.truth, given.campaign, cast(ValidationDocument, read_json(given.validation, "validation"))
    )
    write_json(given.validation, validation)
    print("\n".join(table(validation)))


if __name__ == "__main__":
    main()
