# SPDX-License-Identifier: Apache-2.0
"""What a search has tried, kept as it goes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from iocast import binaries
from iocast.errors import RunError
from iocast.files import sha256


class Trace:
    """A file of one JSON object a line: `key`, `structure`, `parameters`, `cost` and the `summaries` that were simulated. Who searches again
    with the same measurements, seed and simulator finds them there; so an interrupted calibration goes on where it was.

    Without a file nothing is kept."""

    def __init__(self, file: Path | None) -> None:
        self._file = file
        self._known: dict[str, list[np.ndarray]] = {}
        self._simulator = sha256(Path(binaries.find("iocast-sim")))
        if file is None or not file.is_file():
            return
        text = file.read_text()
        for line in text.splitlines():
            try:
                entry = json.loads(line)
                self._known[entry["key"]] = [np.array(values) for values in entry["summaries"]]
            except (json.JSONDecodeError, KeyError, TypeError):
                continue  # it was being written when the search ended
        if text and not text.endswith("\n"):
            self._append("\n")

    def key(self, asked: Any) -> str:
        """Of everything that a simulation depends on."""
        return hashlib.sha256(json.dumps([self._simulator, asked], sort_keys=True).encode()).hexdigest()

    def get(self, key: str) -> list[np.ndarray] | None:
        return self._known.get(key)

    def put(self, key: str, structure: dict[str, str], parameters: dict[str, float], cost: float, summaries: Sequence[np.ndarray]) -> None:
        self._known[key] = list(summaries)
        if self._file is not None:
            entry = {"key": key, "structure": structure, "parameters": parameters, "cost": cost, "summaries": [values.tolist() for values in summaries]}
            self._append(json.dumps(entry) + "\n")

    def _append(self, text: str) -> None:
        assert self._file is not None
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            with self._file.open("a") as out:
                out.write(text)
        except OSError as error:
            raise RunError(f"The trace of the search '{self._file}' can't be written: {error.strerror}.") from error
