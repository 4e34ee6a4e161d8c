# SPDX-License-Identifier: Apache-2.0
"""`iocast.calibrate_facts`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from iocast.api.answer import Answer, Place, Progress, Row, quietly
from iocast.calibrate.facts import FactsFit
from iocast.calibrate.facts import calibrate_facts as fit_facts
from iocast.ground.files import write_text
from iocast.platforms.documents import dump
from iocast.wording.facts import facts_text


class FactsCalibration(Answer):
    """A platform that was fitted to published numbers alone."""

    def __init__(self, fit: FactsFit) -> None:
        self._fit = fit

    def document(self) -> dict[str, Any]:
        return self._fit.platform

    def save(self, file: Place) -> Path:
        """Writes the platform file, which commands and other calls take."""
        write_text(Path(file), "# SPDX-License-Identifier: Apache-2.0\n" + dump(self._fit.platform))
        return Path(file)

    def text(self) -> str:
        return facts_text(self._fit)

    def rows(self) -> list[Row]:
        return list(self._fit.rows)


def calibrate_facts(
    facts: Place, platform: str, *, paths: Sequence[str] = (), progress: Progress = quietly
) -> FactsCalibration:
    """Fits demands of a platform to a table of published numbers (docs/calibration.md).

    @param facts file with the columns nodes, ppn, workload, phase, operation, quantity, value, and optional ones
    @param paths of the demands to fit, such as "demands.getattr.mean"; by default those that explain the facts best
    @raises InputError for a file that can't be read, or fewer than two facts to fit"""
    return FactsCalibration(fit_facts(Path(facts), platform, paths, progress))
