# SPDX-License-Identifier: Apache-2.0
"""What a report's page says of accelerators."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from iocast.importers.series import import_series
from iocast.report import accelerators
from iocast.report.sources import read_sources
from iocast.report.story import tell
from iocast.report.tables import all_tables

SAMPLES = Path(__file__).resolve().parents[1] / "samples" / "dlio"


@pytest.mark.parametrize(("sample", "verdict"), [("training-2.0", "not fed: 90"), ("summary.json", "fed.")])
def test_a_training_is_judged_by_its_utilisation(sample: str, verdict: str, tmp_path: Path) -> None:
    sources = read_sources(import_series([SAMPLES / sample], tmp_path / "runs"))
    headline = tell(sources).headline
    assert "busy at" in headline and headline.replace("\u202f", " ").replace("\xa0", " ").find(verdict) > 0
    [table] = [one for one in all_tables(sources) if one.name == "accelerators"]
    used = [phase["accelerators"]["utilisation_after_first_step"] for phase in sources.runs[0].phases]
    assert [row["au"] for row in table.rows] == used
    fed = ["computation" in row["limit"] for row in table.rows]
    assert fed == [one >= 0.9 for one in used]
    assert "stall_share" not in [column.key for column in table.columns]


def test_a_simulation_names_the_busiest_link(simulate: Callable[..., Any], tmp_path: Path) -> None:
    settings = ("steps=4", "phases=train", "compute_time=1ms")
    sets = [part for one in settings for part in ("--set", one)]
    simulate("lustre", "--workload", "unet3d", "--ppn", "4", "--out", tmp_path / "run", *sets)
    sources = read_sources([tmp_path / "run"])
    [row] = accelerators.table(sources).rows
    assert row["limit"].startswith("storage or hosts") and "node 0 in is busy" in row["limit"]


def test_runs_without_accelerators_have_no_such_table(tmp_path: Path) -> None:
    sources = read_sources(import_series([SAMPLES.parent / "fs_mark"], tmp_path / "runs"))
    assert not accelerators.table(sources).rows and not accelerators.sentence(sources.runs[0])
