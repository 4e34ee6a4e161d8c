# SPDX-License-Identifier: Apache-2.0
"""Cheap cells of `validation/sweep/sweep.py`, and that it lists what it is there for."""

from __future__ import annotations

import sys
from importlib.util import module_from_spec, spec_from_file_location

import pytest
from programs import REPOSITORY

SPEC = spec_from_file_location("sweep_of_platforms", REPOSITORY / "validation" / "sweep" / "sweep.py")
assert SPEC is not None and SPEC.loader is not None
sweep = module_from_spec(SPEC)
sys.modules[SPEC.name] = sweep  # its dataclasses look themselves up there
SPEC.loader.exec_module(sweep)

PLATFORMS = ("lustre", "beegfs", "datawarp-8", "ime", "mistral")


@pytest.mark.parametrize("nodes", [1, 10])
@pytest.mark.parametrize("workload", ["ior-hard", "postmark"])
@pytest.mark.parametrize("platform", PLATFORMS)
def test_bytes_meet_devices_and_stay_within_them(platform: str, workload: str, nodes: int) -> None:
    question = sweep.Question(platform, workload, nodes, sweep.WORKLOADS[workload])
    assert sweep.check_cell(question) == []


def test_a_cell_whose_bytes_meet_nothing_is_listed() -> None:
    found = sweep.check_cell(sweep.Question("queue", "ior-easy", 1, sweep.WORKLOADS["ior-easy"]))
    assert "pwrite of any number of bytes takes as long" in found


def test_a_cliff_is_beyond_chance() -> None:
    step = sweep.cliffs(lambda seed: {"cliff": 0.05 + 0.001 * (seed % 3), "noise": 0.03 * (-1) ** seed, "none": 0.01})
    assert list(step) == ["cliff"] and step["cliff"] == pytest.approx(0.051, abs=0.001)


def test_a_rate_beyond_cards_is_listed() -> None:
    question = sweep.Question("lustre", "ior-easy", 1, ())
    sums = {"pwrite": {"bytes_per_second": 5.1e9}}
    faults = sweep.faults_of(question, {"phases": [{"name": "write", "by_operation": sums}]})
    assert len(faults) == 1 and "more than cards and disks" in faults[0]


def test_a_step_is_explained_by_the_instance_that_has_most() -> None:
    """A quarter of the bytes on one of eight OSTs at eleven nodes, an eighth at nine and twelve."""

    def run(share: float) -> dict[str, object]:
        return {
            "phases": [
                {"name": "write", "network": {"shares": {"oss": {"instance": 5, "share": share, "instances": 8}}}}
            ]
        }

    runs = {9: run(0.125), 11: run(0.25), 12: run(0.125)}
    line = 1 / 9 / 3 + 2 / 12 / 3
    off = (0.5 / 11) / line - 1
    assert "oss 5: 25.00 % of the bytes of all 8" in sweep.explained("write", off, runs)
    assert sweep.explained("write", -off, runs) == "" and sweep.explained("read", off, runs) == ""
