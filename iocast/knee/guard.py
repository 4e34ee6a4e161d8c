# SPDX-License-Identifier: Apache-2.0
"""The end of runs that take far longer than planned."""

from __future__ import annotations

import threading

from iocast.campaign.launchers import Ending, ask_to_end


class TooLong(Exception):
    """A run was ended by its guard."""


class BudgetSpent(Exception):
    """The pilot, or making the data set, was ended by its guard; a sentence says so."""


class Guard:
    """Signals the benchmark to end when it takes too long."""

    def __init__(self, ending: Ending, most: float | None) -> None:
        self.ending, self.struck = ending, False
        self._timer = threading.Timer(most, self._strike) if most is not None else None

    def _strike(self) -> None:
        self.struck = True
        if self.ending.child is not None:
            ask_to_end(self.ending.child)

    def __enter__(self) -> Guard:
        if self._timer is not None:
            self._timer.daemon = True
            self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._timer is not None:
            self._timer.cancel()
