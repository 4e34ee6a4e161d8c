# SPDX-License-Identifier: Apache-2.0
"""How many accelerators a system feeds: a training workload simulated with several numbers of them
(`iocast simulate --accelerators`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import yaml

from iocast import binaries
from iocast.errors import InputError
from iocast.fitted import Fitted
from iocast.published.errors import refuse_beyond
from iocast.scratch import scratch_directory
from iocast.text import quantity, table

PER_NODE = 8
"""Accelerators of a node, unless requested otherwise: what most nodes with accelerators have."""

NOTE = (
    "Nothing tells how far these values are off, since no training was measured on the platform: they are an order of "
    "magnitude."
)

KEPT = ("utilisation", "utilisation_after_first_step", "samples_per_second", "bytes_per_second")


def numbers_of(text: str) -> list[int]:
    """Numbers of accelerators, ascending: "8,64,512". @raises InputError"""
    try:
        numbers = sorted({int(part) for part in text.split(",")})
    except ValueError:
        numbers = []
    if not numbers or numbers[0] < 1:
        raise InputError(f"--accelerators {text} is no list of whole numbers from 1 on, such as 8,64,512.")
    return numbers


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
) -> list[dict[str, Any]]:
    """A row for each number: `{accelerators, nodes, readers, utilisation, utilisation_after_first_step,
    samples_per_second, bytes_per_second, busiest: [{name, busy}]}`, of the last epoch.

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
        for place, number in enumerate(numbers):
            report(f"simulating {number} accelerators", place, len(numbers))
            nodes = max(1, number // per_node)
            only = {**settings, "phases": "train"}
            run = binaries.simulate(file, workload, only, nodes, number // nodes * readers, seed)
            phase = [one for one in run["phases"] if one["name"] == "train"][-1]
            row = {key: phase["accelerators"][key] for key in KEPT if key in phase["accelerators"]}
            links = phase.get("network", {}).get("busiest", [])
            busiest = [{"name": link["name"], "busy": link["busy"]} for link in links]
            rows.append(
                {"accelerators": number, "nodes": nodes, "readers": number * readers, **row, "busiest": busiest}
            )
    return rows


def fed_text(platform: str, workload: str, rows: Sequence[Mapping[str, Any]]) -> str:
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
    return f"{workload} on {platform}: simulated from hardware data\n{table(header, body)}\n{NOTE}"
