# SPDX-License-Identifier: Apache-2.0
"""A report of an edited platform's forecast alone answers for that platform, and says which it is."""

from pathlib import Path

import pytest
from forked import Iocast


EDIT = "network.node_bandwidth=50kB/s"


@pytest.mark.parametrize(
    ("edits", "headline"),
    [
        ((EDIT,), f"Forecast with {EDIT}, for 2 ranks: benchmark"),
        ((EDIT, ""), "Forecast for 2 ranks: benchmark"),  # the system as it is
        ((EDIT, "stations.oss.servers=2"), "Forecasts of 2 changed systems for 2 ranks, "),  # none is the question
    ],
)
def test_a_forecast_of_an_edited_platform_alone_is_the_answer(
    edits: tuple[str, ...], headline: str, iocast: Iocast, tmp_path: Path
) -> None:
    files = []
    for number, edit in enumerate(edits):
        settings = ["--set", "objects=20", "--set", "iterations=20", *(["--edit", edit] if edit else [])]
        done = iocast("predict", "lustre", "--nodes", "2", "--ppn", "1", *settings, "--json")
        assert done.returncode == 0, done.stderr
        files.append(tmp_path / f"{number}.json")
        files[-1].write_text(done.stdout)
    assert iocast("report", *files, "--out", tmp_path / "r.html").returncode == 0
    assert headline in (tmp_path / "r.html").read_text().replace("\u00a0", " ")
