#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Processor time of the tests, which says where the time of ./check goes, on a busy machine too.

    tests/processor_time.py              table of the last run, by file, most first
    tests/processor_time.py TEXT...      its tests whose names contain one of the texts

A test is charged with what its process and the processes that it started and waited for use, from the end of the test
before it: with what is set up for it as well. Servers that leave their parents (slurmd, NFS-Ganesha) are not seen.
"""

from __future__ import annotations

import json
import resource
import sys
from collections import defaultdict
from typing import NamedTuple

import forked
import pytest
from programs import REPOSITORY

KEPT = REPOSITORY / "build" / "processor-time.json"
START = "(start of pytest, collection, servers of iocast)"
NAME = "processor time"


class Seconds(NamedTuple):
    """Processor seconds, of the user's and of the system's mode."""

    user: float
    system: float


def _used() -> Seconds:
    """By this process, by its children that ended, and by calls of `iocast` that a server forked for it."""
    rows = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return Seconds(
        sum(row.ru_utime for row in rows) + forked.used[0] - forked.started[0],
        sum(row.ru_stime for row in rows) + forked.used[1] - forked.started[1],
    )


class ProcessorTime:
    """A plugin of pytest."""

    def __init__(self) -> None:
        self._tests: dict[str, tuple[float, float]] = {}
        self._starts: list[Seconds] = []
        self._before = Seconds(0.0, 0.0)

    def pytest_collection_finish(self) -> None:
        self._before = _used()
        self._starts.append(self._before)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        self._starts.append(Seconds(*forked.started))
        if hasattr(session.config, "workeroutput"):
            session.config.workeroutput[NAME] = [list(one) for one in self._starts]  # execnet knows no named tuples

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]):  # type: ignore[no-untyped-def]
        report = yield
        if call.when == "teardown":
            now = _used()
            report.user_properties.append((NAME, (now.user - self._before.user, now.system - self._before.system)))
            self._before = now
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        for name, value in report.user_properties:
            if name == NAME:
                self._tests[report.nodeid.rpartition("@")[0] or report.nodeid] = value  # pytest-xdist appends the group

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: object) -> None:
        """Of pytest-xdist: what a process of the tests took to begin."""
        self._starts += [Seconds(*one) for one in getattr(node, "workeroutput", {}).get(NAME, [])]

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if len(self._tests) > 1 and KEPT.parent.is_dir():
            if self._before == (0.0, 0.0):  # pytest-xdist's first process collects nothing
                own = resource.getrusage(resource.RUSAGE_SELF)
                self._starts.append(Seconds(own.ru_utime, own.ru_stime))
            KEPT.write_text(json.dumps({"starts": self._starts, "tests": self._tests}))
            user, system = (sum(column) for column in zip(*self._starts, *self._tests.values(), strict=True))
            terminalreporter.write_line(
                f"Processor time: {user:.0f} s user, {system:.0f} s system; tests/processor_time.py has it by file."
            )


def main() -> None:
    kept = json.loads(KEPT.read_text())
    rows: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0, 0])
    texts = sys.argv[1:]
    for test, seconds in [*kept["tests"].items(), *((START, one) for one in kept["starts"])]:
        if texts and not any(text in test for text in texts):
            continue
        row = rows[test if texts else test.partition("::")[0]]
        for column, value in enumerate((*seconds, 1)):
            row[column] += value
    print("    user  system  number")
    for name, (user, system, number) in sorted(rows.items(), key=lambda one: -one[1][0] - one[1][1]):
        print(f"{user:8.1f}{system:8.1f}{number:8d}  {name}")
    print(f"{sum(row[0] for row in rows.values()):8.1f}{sum(row[1] for row in rows.values()):8.1f}  all together")


if __name__ == "__main__":
    main()
