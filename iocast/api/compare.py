# SPDX-License-Identifier: Apache-2.0
"""`iocast.compare`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from iocast.api.answer import Found, Place, Row, cells, unit_in_row
from iocast.api.chart import Axes
from iocast.changes import Threshold
from iocast.compare import compare as compared
from iocast.records.comparison import ComparisonDocument
from iocast.records.codes import each_once, notes_of
from iocast.records.note import Cautious, Note
from iocast.wording.checked import comparison_text


class Comparison(Found[ComparisonDocument]):
    """What changed between two measurements, beyond noise."""

    axes = Axes("quantity", "ratio", "low", "high", "point")

    @property
    def failed(self) -> bool:
        """Whether a threshold is exceeded, or that is not known."""
        return bool(self._document["failed"] or self._document["undecided"])

    @property
    def cautions(self) -> list[Note]:
        """Also those of its points."""
        parts: list[Cautious] = [self._document, *self._document["points"]]
        return each_once([one for part in parts for one in notes_of(part)])

    def text(self) -> str:
        return comparison_text(self._document)

    def rows(self) -> list[Row]:
        keys = ("quantity", "a", "b", "ratio", "low", "high", "verdict")
        return [
            {
                "point": point["name"],
                "phase": point["phase"],
                "unit": unit_in_row(row["quantity"], row),
                **{key: cell for key, cell in cells(row) if key in keys},
            }
            for point in self._document["points"]
            for row in point["rows"]
        ]


def compare(
    before: Place,
    after: Place,
    *,
    phase: str | None = None,
    fail_on: str | Sequence[str] = (),
    alpha: float = 0.05,
    seed: int = 0,
) -> Comparison:
    """Compares two run directories or campaigns.

    >>> import iocast
    >>> runs = iocast.import_results("tests/samples/mdtest/archer-own-directories.log")
    >>> same = iocast.compare(runs.directories[0], runs.directories[0], phase="file-create")
    >>> same.failed, {row["ratio"] for row in same.rows()}
    (False, {1.0})

    @param fail_on losses that fail it, such as "10%" or "create.q99=25%"
    @param alpha chance of one false alarm or more among all quantities
    @raises InputError for what is no measurement"""
    limits = [fail_on] if isinstance(fail_on, str) else fail_on
    thresholds = [Threshold.parse(one) for one in limits]
    return Comparison(compared(Path(before), Path(after), phase=phase, alpha=alpha, seed=seed, fail_on=thresholds))
