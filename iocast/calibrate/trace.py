# SPDX-License-Identifier: Apache-2.0
"""What a search has tried, kept as it goes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from iocast.platforms.content import content_hash, platform_hash, program_hash, sources_of, whole, workload_hash
from iocast.ground import strict
from iocast.errors import RunError
from iocast.platforms.documents import Document, merge

Simulation = tuple[str, Mapping[str, str], int, int, str, Sequence[str]]
"""Workload, settings, nodes, ranks per node, phase, and the quantities that are read."""


class Trace:
    """A file of one JSON object a line: `structure`, `parameters`, `cost`, and of each simulation its `keys` and
    `summaries`. Who simulates the same again, at the same or at other measurements, finds it there; so an interrupted
    calibration goes on where it was, and one without the largest scale takes what the whole one has simulated.

    Without a file it lasts as long as the object."""

    def __init__(self, file: Path | None) -> None:
        self._file = file
        self._known: dict[str, NDArray[np.float64]] = {}
        self._families: dict[str, Document] = {}
        self._workloads: dict[tuple[str, tuple[tuple[str, str], ...]], str] = {}
        self._simulator = program_hash(["iocast-sim"], sources_of("iocast.calibrate.search"))
        if file is None or not file.is_file():
            return
        text = strict.read_text(file)
        for number, line in enumerate(text.splitlines(), start=1):
            try:
                entry = strict.parse_json(line, file, number)
                self._known |= {
                    str(key): np.array(values, dtype=float)
                    for key, values in zip(entry["keys"], entry["summaries"], strict=True)
                }
            except (ValueError, KeyError, TypeError):
                continue  # it was being written when the search ended
        if text and not text.endswith("\n"):
            self._append("\n")

    def keys(self, document: Document, rows: Sequence[Simulation], seed: int) -> list[str]:
        """Hash of everything that each simulation of a candidate depends on: its platform with all that it extends,
        question, seed, simulator and the sources that read its answers."""
        own = {key: value for key, value in document.items() if key != "extends"}
        platform = platform_hash(merge(self._family(str(document["extends"])), own) if "extends" in document else own)
        return [
            content_hash(
                [self._simulator, platform, self._workload(workload, settings), nodes, per_node, phase, names, seed]
            )
            for workload, settings, nodes, per_node, phase, names in rows
        ]

    def _workload(self, workload: str, settings: Mapping[str, str]) -> str:
        """Its hash, whose files are read once a search."""
        key = (workload, tuple(settings.items()))
        if key not in self._workloads:
            self._workloads[key] = workload_hash(workload, settings)
        return self._workloads[key]

    def _family(self, name: str) -> Document:
        """Read once a search: its content is that of the whole search."""
        if name not in self._families:
            self._families[name] = whole({"extends": name})
        return self._families[name]

    def get(self, key: str) -> NDArray[np.float64] | None:
        return self._known.get(key)

    def put(
        self,
        keys: Sequence[str],
        structure: dict[str, str],
        parameters: dict[str, float],
        cost: float,
        summaries: Sequence[NDArray[np.float64]],
    ) -> None:
        self._known |= dict(zip(keys, summaries, strict=True))
        if self._file is not None:
            entry = {
                "keys": list(keys),
                "structure": structure,
                "parameters": parameters,
                "cost": cost,
                "summaries": [values.tolist() for values in summaries],
            }
            self._append(json.dumps(entry) + "\n")

    def _append(self, text: str) -> None:
        assert self._file is not None
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            with self._file.open("a") as out:
                out.write(text)
        except OSError as error:
            raise RunError(f"The trace of the search '{self._file}' can't be written: {error.strerror}.") from error
