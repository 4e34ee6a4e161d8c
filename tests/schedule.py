# SPDX-License-Identifier: Apache-2.0
"""Order of the tests, and which of them stay together: what takes longest begins first, so that no core waits at the
end for another's last file.

Tests that share something that their module makes (a server, a browser, a data set) stay together, one place of a
backend at a time; all others go one by one to whichever process is free (pytest-xdist with --dist=loadgroup)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterable
from typing import Any

import pytest

KEPT = "iocast/seconds"
"""Seconds of each group in the last run, in pytest's cache."""
LONGEST = (
    "tests/end_to_end/test_readme.py",
    "tests/end_to_end/test_study_tutorial.py",
    "tests/python/test_commands_in_documents.py::test_planning",
    "tests/python/test_study.py",
    "tests/python/test_evidence_in_runs.py",
    "tests/end_to_end/test_study_cluster.py",
    "tests/backends/test_contract.py:cephfs",
    "tests/python/test_forecast.py",
    "tests/python/test_slurm.py",
    "tests/browser",
    "tests/backends",
    "tests/mpi/test_selftest.py",
    "tests/python/test_commands_in_documents.py",
    "tests/python/test_study_examples.py",
    "tests/end_to_end",
    "tests/python/test_structures.py",
    "tests/python/test_knee.py",
    "tests/python/test_findings.py",
    "tests/python/test_calibrate_accesses.py",
    "tests/python/test_report.py",
)
"""Beginnings of groups' names in the order of a first run; the rest follow as collected."""


SOME_PLATFORMS = ("cephfs", "cori", "gpfs", "local", "lustre", "mistral", "multisocket", "nfs", "queue")
"""Of each kind of platform one, with nearly all mechanisms of all: facts and templates, one machine and many, families
and what extends them, once and twice over."""


def mostly_long(values: Iterable[Any], always: Container[Any], why: str) -> list[Any]:
    """Parameters, or tuples of them, of which ./check takes those of `always`, and ./check --all the others too."""
    long = pytest.mark.long(why)
    return [
        value if value in always else pytest.param(*(value if isinstance(value, tuple) else (value,)), marks=long)
        for value in values
    ]


class Schedule:
    """A plugin of pytest."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._seconds: dict[str, float] = defaultdict(float)

    @pytest.hookimpl(tryfirst=True)  # before pytest-xdist reads the groups
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        cache = getattr(self._config, "cache", None)  # none with -p no:cacheprovider
        known: dict[str, float] = cache.get(KEPT, {}) if cache else {}
        groups = {item.nodeid: group_of(item) for item in items}
        for item in items:
            item.add_marker(pytest.mark.xdist_group(groups[item.nodeid]))
        place = {group: number for number, group in enumerate(dict.fromkeys(groups.values()))}

        def key(item: pytest.Item) -> tuple[float, int, int]:
            group = groups[item.nodeid]
            first = next(
                (number for number, beginning in enumerate(LONGEST) if group.startswith(beginning)), len(LONGEST)
            )
            return -known.get(group, 0.0), first, place[group]

        items.sort(key=key)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._seconds[report.nodeid.rpartition("@")[2]] += report.duration  # pytest-xdist appends the group

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Keeps the times of a whole run, in the process that all reports come to."""
        cache = getattr(session.config, "cache", None)
        if hasattr(session.config, "workerinput") or cache is None or len(self._seconds) < 1000:
            return
        cache.set(KEPT, {group: round(took, 2) for group, took in self._seconds.items() if took > 0.5})


def group_of(item: pytest.Item) -> str:
    """The module, and the place of a backend, where its tests share a fixture of the module; else the test itself."""
    fixtures = getattr(item, "_fixtureinfo", None)
    definitions = fixtures.name2fixturedefs if fixtures else {}
    if not any(
        definition.scope in ("module", "package") for found in definitions.values() for definition in found[-1:]
    ):
        return item.nodeid
    module = item.nodeid.partition("::")[0]
    place = getattr(getattr(item, "callspec", None), "params", {}).get("place")
    return f"{module}:{place}" if place else module
