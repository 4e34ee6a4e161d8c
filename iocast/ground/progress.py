# SPDX-License-Identifier: Apache-2.0
"""What long work says on standard error while it goes on."""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from iocast.errors import RunError

stderr = Console(stderr=True, highlight=False)
PATIENCE = 3.0
"""Seconds after which a command that is mostly quick prints its progress."""


def keep_interrupts() -> None:
    """Python drops an interrupt that comes while it throws an object away (in __del__ or the callback of a weak
    reference); from now on it is sent again a moment later."""

    def again(dropped: Any) -> None:
        if issubclass(dropped.exc_type, KeyboardInterrupt):
            timer = threading.Timer(
                0.05, signal.pthread_kill, (threading.main_thread().ident, signal.SIGINT)
            )  # wakes it if it waits
            timer.daemon = True
            timer.start()
        else:
            sys.__unraisablehook__(dropped)

    sys.unraisablehook = again


KEPT = "what was measured or computed is kept"
CONTINUES = f"{KEPT}, and the same command continues from there"


SIMULATING_EVERY = 30.0
"""Seconds between two lines about one long simulation, where they stay."""
_open_steps: list[Steps] = []


def simulating(share: float, seconds_left: float | None) -> None:
    """What a simulation that somebody waits for in this process says of itself: its finished share, 0 to 1, and how
    long it will take; None while the share stands still, which says nothing of an end."""
    if _open_steps:
        _open_steps[-1].within(share, seconds_left)


class Steps:
    """Progress of long work: a live line on a terminal, plain lines elsewhere, at every step or at most one in `every`
    seconds, and none before `after` seconds. `interrupted`: what an interruption leaves, and what then."""

    def __init__(self, every: float = 0, after: float = 0, interrupted: str | Callable[[], str] = KEPT) -> None:
        self._interrupted = interrupted
        self._live = stderr.is_terminal
        self._step: tuple[str, int, int] | None = None
        self._timer = None if self._live or not after else threading.Timer(after, self._begin_to_print)
        self._every = every
        self._printed: tuple[str, float] = ("", 0.0)
        self._began: tuple[str, float, int] = ("", 0.0, 0)
        self._within = 0.0
        self._stepped = 0.0
        self._progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.fields[done]}/{task.total}"),
            TimeElapsedColumn(),
            TextColumn("left:"),
            TimeRemainingColumn(),
            console=stderr,
            transient=True,
        )
        self._task: Any = None

    def __enter__(self) -> Steps:
        if self._live:
            self._progress.start()
        if self._timer is not None:
            self._timer.daemon = True
            self._timer.start()
        _open_steps.append(self)
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        _open_steps.remove(self)
        if self._live:
            self._progress.stop()
        if self._timer is not None:
            self._timer.cancel()
        if kind is KeyboardInterrupt:  # typer would end the program without a word
            what = self._interrupted if isinstance(self._interrupted, str) else self._interrupted()
            raise RunError(f"Interrupted; {what}.")

    def __call__(self, what: str, done: int, total: int) -> None:
        self._step, self._within = (what, done, total), time.monotonic()
        self._stepped = self._within
        if self._timer is not None:
            return
        if not self._live:
            self._plain(what, done, total)
        elif self._task is None or done == 0:
            if self._task is not None:
                self._progress.remove_task(self._task)
            self._task = self._progress.add_task(what, total=total, completed=done, done=done)
        else:
            self._progress.update(self._task, description=what, total=total, completed=done, done=done)

    def within(self, share: float, seconds_left: float | None) -> None:
        """The finished share of the simulation that the present step waits for: moves the bar on a terminal; elsewhere
        a line now and then."""
        if self._step is None:
            return
        (what, done, total), now = self._step, time.monotonic()
        if self._task is not None:
            self._progress.update(self._task, completed=min(done + share, total))
        elif not self._live and now - self._within >= SIMULATING_EVERY:
            self._within = now
            left = "which stands still" if seconds_left is None else f"{seconds_left:.0f} s left"
            how_far = f"{100 * share:.0f} % of this simulation, {left}"
            if seconds_left is not None and seconds_left < SIMULATING_EVERY * (1 - share):  # one of many short ones
                how_far = f"for {now - self._stepped:.0f} s now"
            stderr.print(f"  [{done}/{total}] {what}: {how_far}", markup=False, soft_wrap=True)

    def _begin_to_print(self) -> None:
        self._timer = None
        if self._step is not None:
            self._plain(*self._step)

    def tell(self, sentence: str) -> None:
        """A line that stays, above the progress."""
        stderr.print(sentence, markup=False, soft_wrap=True)

    def _plain(self, what: str, done: int, total: int) -> None:
        now = time.monotonic()
        if what != self._began[0] or done <= self._began[2]:
            self._began = (what, now, done)
        if self._every and what == self._printed[0] and now - self._printed[1] < self._every:
            return
        self._printed = (what, now)
        _, began, first = self._began
        left = (
            f", {(now - began) * (total - done) / (done - first):.0f} s left"
            if self._every and first < done < total
            else ""
        )
        stderr.print(f"  [{done}/{total}] {what}{left}", markup=False, soft_wrap=True)
