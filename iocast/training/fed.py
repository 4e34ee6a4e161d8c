# SPDX-License-Identifier: Apache-2.0
"""How many accelerators a system feeds: a training workload simulated with several numbers of them
(`iocast simulate --accelerators`)."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import cast

import yaml

from iocast.ground import binaries
from iocast.errors import InputError
from iocast.ground.files import SCHEMA_VERSION
from iocast.platforms.fitted import Fitted
from iocast.published.serves import refuse_beyond
from iocast.ground.scratch import scratch_directory
from iocast.wording.text import quantity, table
from iocast.records.feeding import FedDocument, FedRow, BusyDevice
from iocast.records.simulated import SimulatedRun

PER_NODE = 8
"""Accelerators of a node, unless requested otherwise: what most nodes with accelerators have."""

MANY = 1000
"""Accelerators from which on a simulation's time is estimated before it begins."""
SOON = 90.0
"""Seconds below which nobody needs to know how long a simulation takes."""

NOTE = (
    "Nothing tells how far these values are off, since no training was measured on the platform: they are an order of "
    "magnitude."
)

KEPT = ("utilisation", "utilisation_after_first_step", "samples_per_second", "bytes_per_second")


def numbers_of(text: str) -> list[int]:
    """Numbers of accelerators, ascending: "8,64,512". @raises InputError"""
    try:
        numbers = sorted({int(part) if "e" not in part.lower() else _whole(part) for part in text.split(",")})
    except ValueError:
        numbers = []
    if not numbers or numbers[0] < 1:
        raise InputError(f"--accelerators {text} is no list of whole numbers from 1 on, such as 8,64,512.")
    return numbers


def _whole(text: str) -> int:
    """1e6 as a number. @raises ValueError for a fraction, or one that is too large"""
    value = float(text)
    if not value.is_integer() or value > 1e9:
        raise ValueError(text)
    return int(value)


def fed(
    platform: Fitted,
    workload: str,
    settings: Mapping[str, str],
    numbers: Sequence[int],
    per_node: int = PER_NODE,
    *,
    seed: int = 0,
    beyond: bool = False,
    report: Callable[[str, int, int], None] = lambda *_: None,
) -> FedDocument:
    """The document `fed`, with a row for each number: `{accelerators, nodes, readers, utilisation,
    utilisation_after_first_step, samples_per_second, bytes_per_second, busiest: [{name, busy}]}`, of the last epoch.

    @raises InputError for a workload that isn't training, for numbers that fill no whole nodes, and without `beyond`
    for those far beyond the published numbers of a platform"""
    resolved = binaries.resolve_workload(workload, settings, 1, 1)["workload"]
    if resolved["pattern"] != "training":
        raise InputError(
            f"--accelerators is for training, and '{workload}' is {resolved['pattern']}; choose unet3d, resnet50, "
            "cosmoflow, retinanet or another workload with the pattern training."
        )
    readers = int(resolved["parameters"]["readers"])
    for number in numbers:
        if number > per_node and number % per_node:
            raise InputError(
                f"{number} accelerators are no whole nodes with {per_node} each; choose a multiple of {per_node}, or "
                "set --accelerators-per-node."
            )
        if not beyond:
            refuse_beyond(platform, max(1, number // per_node), number * readers)
    rows = []
    with scratch_directory("accelerators") as scratch:
        (file := scratch / "platform.yaml").write_text(yaml.safe_dump(platform.best()))
        lengths: dict[int, float] = {}

        def simulated(number: int) -> SimulatedRun:
            begun = time.monotonic()
            nodes = max(1, number // per_node)
            only = {**settings, "phases": "train"}
            run = binaries.simulate(file, workload, only, nodes, number // nodes * readers, seed)
            lengths[number] = time.monotonic() - begun
            return run

        for place, number in enumerate(numbers):
            if number >= MANY and not lengths:
                simulated(per_node)
            report(f"simulating {number} accelerators{at_least(number, lengths)}", place, len(numbers))
            nodes = max(1, number // per_node)
            phase = [one for one in simulated(number)["phases"] if one["name"] == "train"][-1]
            links = phase.get("network", {}).get("busiest", [])
            busiest: list[BusyDevice] = [{"name": link["name"], "busy": link["busy"]} for link in links]
            row = row_of(number, phase["accelerators"], busiest)
            rows.append(row | {"nodes": nodes, "readers": number * readers})
    about = {"name": platform.file.stem, "file": str(platform.file), "content_hash": platform.content_hash()}
    return document("simulated", workload, settings, rows) | {"platform": about, "seed": seed, "notes": [NOTE]}


def at_least(number: int, lengths: Mapping[int, float]) -> str:
    """How long a simulation takes at least, from the longest of smaller ones: its time grows with the accelerators, and
    faster where they wait for each other. "" where that is soon over, or nothing is known."""
    smaller = max((n for n in lengths if n < number), default=None)
    seconds = lengths[smaller] * number / smaller if smaller else 0.0
    if seconds < SOON:
        return ""
    words = f"{seconds / 3600:.1f} hours" if seconds >= 5400 else f"{seconds / 60:.0f} minutes"
    return f", at least {words} by the time of {smaller}"


def document(source: str, workload: str, settings: Mapping[str, str], rows: Sequence[FedRow]) -> FedDocument:
    """kind `fed`: what numbers of accelerators do, measured or simulated."""
    return {
        "schema_version": SCHEMA_VERSION,
        "kind": "fed",
        "source": source,
        "workload": workload,
        "settings": dict(settings),
        "rows": list(rows),
    }


def row_of(number: int, of: Mapping[str, float], busiest: Sequence[BusyDevice] = ()) -> FedRow:
    """A row of the document, without where its ranks were."""
    kept = {key: of[key] for key in KEPT if key in of}
    return cast(FedRow, {"accelerators": number, **kept, "busiest": list(busiest)})


def fed_text(platform: str, answer: FedDocument) -> str:
    """A simulated answer for a terminal. `platform`: as its user calls it."""
    title = f"{answer['workload']} on {platform}: simulated from hardware data"
    return "\n".join([title, fed_rows_text(answer["rows"]), *answer["notes"]])


def fed_rows_text(rows: Sequence[FedRow]) -> str:
    """A table with a row for each number of accelerators."""
    header = ["accelerators", "nodes", "utilisation", "after the first step", "samples/s", "bandwidth", "busiest link"]
    body = [
        [
            str(row["accelerators"]),
            str(row["nodes"]),
            f"{100 * row['utilisation']:.1f} %",
            f"{100 * row['utilisation_after_first_step']:.1f} %" if "utilisation_after_first_step" in row else "",
            f"{row['samples_per_second']:.0f}",
            quantity("bandwidth", row["bytes_per_second"]),
            f"{row['busiest'][0]['name']} {100 * row['busiest'][0]['busy']:.0f} %" if row["busiest"] else "",
        ]
        for row in rows
    ]
    linked = any(row["busiest"] for row in rows)
    return table(header if linked else header[:-1], body if linked else [line[:-1] for line in body])
