# SPDX-License-Identifier: Apache-2.0
"""Everything that was ever computed for a study, kept by content: an edited study computes only what is new."""

from __future__ import annotations

import json
import sqlite3
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from iocast.errors import InputError, RunError


class Store:
    """Results by key, in one SQLite file that survives being killed. Use as a context manager."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.computed = 0

    def __enter__(self) -> Store:
        try:
            self.file.parent.mkdir(parents=True, exist_ok=True)
            self._connection = sqlite3.connect(self.file, timeout=5)
            self._connection.execute("PRAGMA journal_mode=WAL")
            self._connection.execute("PRAGMA synchronous=NORMAL")
            self._connection.execute(
                "CREATE TABLE IF NOT EXISTS results (key TEXT PRIMARY KEY, content BLOB NOT NULL) WITHOUT ROWID"
            )
            self._connection.commit()
        except sqlite3.OperationalError as error:  # a full disk, or another process
            raise RunError(f"The file '{self.file}' can't be opened or written: {error}.") from error
        except sqlite3.DatabaseError as error:
            raise InputError(
                f"The file '{self.file}' can't be used as a study's memory: {error}. Remove it to compute everything "
                "anew."
            ) from error
        except OSError as error:
            raise RunError(f"The directory '{self.file.parent}' can't be made: {error.strerror}.") from error
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.commit()
        self._connection.close()

    def get(self, keys: Iterable[str]) -> dict[str, Any]:
        """The results that are there."""
        wanted, found = list(dict.fromkeys(keys)), {}
        for start in range(0, len(wanted), 500):
            some = wanted[start : start + 500]
            marks = ",".join("?" * len(some))
            for key, content in self._connection.execute(
                f"SELECT key, content FROM results WHERE key IN ({marks})", some
            ):
                found[key] = json.loads(zlib.decompress(content))
        return found

    def put(self, key: str, content: Any) -> None:
        """Kept at once: who interrupts a study loses only what is under way."""
        blob = zlib.compress(json.dumps(content, separators=(",", ":")).encode(), 3)
        try:
            self._connection.execute("INSERT OR REPLACE INTO results VALUES (?, ?)", (key, blob))
            self._connection.commit()
        except sqlite3.DatabaseError as error:
            raise RunError(f"The file '{self.file}' can't be written: {error}.") from error
        self.computed += 1
