# SPDX-License-Identifier: Apache-2.0
"""Periodic stalls in measurements: found, and not counted as service as well."""

from pathlib import Path

import numpy as np
import pytest

from iocast.calibrate.reading import find_stall, single_rank_law
from iocast.importers.record import Phase, Record, write_runs
from iocast.runs.run_directory import Run, group

EVERY, LENGTH = 2.0, 0.3


def measured(out: Path, ranks: int, stalled: bool) -> Run:
    """12 seconds of creates of about 1 ms each; with stalls nothing begins in the last 0.3 s of every 2 s."""
    generator = np.random.default_rng(ranks)
    starts, seconds, of_rank = [], [], []
    for rank in range(ranks):
        now = 0.0
        while now < 12:
            begins = now
            if stalled and now % EVERY > EVERY - LENGTH:
                begins = (now // EVERY + 1) * EVERY
            end = begins + generator.lognormal(np.log(1e-3), 0.3)
            starts.append(now)
            seconds.append(end - now)
            of_rank.append(rank)
            now = end
    phase = Phase("benchmark", 0, 0.0, 12.0, len(starts), errors=0, rate=len(starts) / 12)
    phase.add_trace({"create": (np.array(starts), np.array(seconds))}, {"create": np.array(of_rank)})
    record = Record(out.name, "made up", [phase], pattern="md-workbench", ranks=ranks, nodes=1)
    record.parameters = {"waiting_factor": 0}
    write_runs([("", record)], out)
    return Run(out)


def test_a_stall_is_found_with_its_period_and_length(tmp_path: Path) -> None:
    found = find_stall([measured(tmp_path / "4", 4, stalled=True)])
    assert found is not None and found.operations == ("create",)
    assert found.every == pytest.approx(EVERY, rel=0.01)
    assert found.length == pytest.approx(LENGTH, rel=0.05)
    assert found.sigma < 0.05
    assert find_stall([measured(tmp_path / "quiet", 4, stalled=False)]) is None


def test_a_law_between_stalls_has_none_of_them(tmp_path: Path) -> None:
    (point,) = group([measured(tmp_path / "1", 1, stalled=True)])
    whole, between = single_rank_law(point, "create"), single_rank_law(point, "create", LENGTH / 2)
    assert whole is not None and between is not None
    assert float(whole["values"][-1].removesuffix("s")) > 0.9 * LENGTH
    assert float(between["values"][-1].removesuffix("s")) < 0.01
    assert float(between["values"][len(between["values"]) // 2].removesuffix("s")) == pytest.approx(1e-3, rel=0.5)
