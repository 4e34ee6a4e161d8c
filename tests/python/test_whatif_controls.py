# SPDX-License-Identifier: Apache-2.0
"""What a page lets its reader change, and what it says of that which changes nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_primitives import STATS, simulate

from iocast.forecasts.request import resolved
from iocast.whatif.controls import _of_platform


@pytest.fixture(autouse=True)
def _built(simulator: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IOCAST_BUILD", str(simulator.parents[1]))


@pytest.mark.parametrize("name", ["network", "lustre", "gpfs", "nfs"])
def test_links_that_no_operation_crosses_are_no_choice(name: str) -> None:
    system = resolved({"schema_version": 1, "extends": name})
    idle = {
        operation: {one.path: bool(one.idle) for one in _of_platform(dict(system), [operation])}
        for operation in ("stat", "pwrite")
    }
    links = [path for path in idle["stat"] if path.startswith("network.")]
    assert links and all(idle["stat"][path] for path in links)
    assert not any(idle["pwrite"][path] for path in links)


def test_what_is_no_choice_changes_nothing(simulator: Path, tmp_path: Path) -> None:
    """But for the time at which the phase begins, since files are written before."""
    slow, fast = (
        simulate(simulator, tmp_path, f"schema_version: 1\nextends: network\nnetwork: {{node_bandwidth: {limit}}}\n",
                 *STATS)["phases"][1]["seconds"]
        for limit in ("1kB/s", "10GB/s")
    )  # fmt: skip
    assert slow == pytest.approx(fast, rel=1e-6)
