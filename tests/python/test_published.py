# SPDX-License-Identifier: Apache-2.0
"""The scoreboard's arithmetic, on tables as small as can be: no target scale is ever fitted to, and errors are what
they say."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from programs import REPOSITORY

SCORES = REPOSITORY / "validation" / "published" / "scores.py"
HEADER = "system,mode,nodes,ppn,operation,rate_per_s\n"
FITTED = (
    "Cirrus,mf,1,36,File creation,5400\nCirrus,mf,4,36,File creation,19000\nCirrus,mf,8,36,File"
    " creation,31000\nCirrus,mf,8,36,File creation,33000\n"
)


def scores(data: Path, text: str, simulator: Path) -> dict[str, Any]:
    (data / "scaling").mkdir(parents=True)
    (data / "scaling" / "archer_mdtest_scaling.csv").write_text(HEADER + FITTED + text)
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY), "IOCAST_BUILD": str(simulator.parents[1])}
    done = subprocess.run(
        [sys.executable, str(SCORES), str(data), "--json"], capture_output=True, text=True, env=environment, check=True
    )
    return json.loads(done.stdout)


def test_a_target_scale_is_never_fitted_to(simulator: Path, tmp_path: Path) -> None:
    """The same forecasts, bit by bit, whatever was measured at the target scales."""
    entries = [
        scores(tmp_path / str(rate), f"Cirrus,mf,16,36,File creation,{rate}\n", simulator) for rate in (40000, 400)
    ]
    for answer in entries:
        (one,) = answer["rows"]
        assert one["nodes"] == 16 and one["beyond"] == 2
    forecasts = [{k: v for k, v in answer["rows"][0].items() if k != "measured"} for answer in entries]
    assert forecasts[0] == forecasts[1]
    assert [answer["rows"][0]["measured"] for answer in entries] == [pytest.approx(40000), pytest.approx(400)]
    value = forecasts[0]["iocast"]["value"]
    found = [answer["families"]["Cirrus"] for answer in entries]
    assert found[0]["median"] == pytest.approx(max(value / 40000, 40000 / value) - 1) and found[1][
        "median"
    ] == pytest.approx(value / 400 - 1)
    assert found[0]["inside"] == 1 and found[1]["inside"] == 0


def test_tables_that_are_not_there(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(SCORES), str(tmp_path)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        check=False,
    )
    assert done.returncode == 2 and "README.md says which tables are read" in done.stderr
