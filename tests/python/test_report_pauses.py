# SPDX-License-Identifier: Apache-2.0
"""Where the time goes while an application computes: its own pauses, and no station, on every page as on the
terminal."""

import json
import re
import subprocess
from pathlib import Path

import pytest

from iocast.platforms.fitted import Fitted
from iocast.report.page import _title, write_numbers
from iocast.report.sources import read_sources
from iocast.report.story import tell
from iocast.simulate import simulate, simulation_text

STEPS = """\
schema_version: 1
description: computes, and writes its state
source: made up
pattern: application
application:
  files: {log: {per: process}, dump: {per: process}}
  phases:
    - {name: compute, file: log, operation: write, layout: sequential, size: 4KiB, requests: 2, think: 20s}
    - {name: checkpoint, file: dump, operation: write, layout: sequential, size: 1MiB, requests: 8}
"""
IN_OPERATION = re.compile(r"in an operation (\S+) % of the time")


@pytest.mark.parametrize("of", ["forecast", "forecast of one phase", "run"])
def test_a_phase_of_pauses_has_its_time_in_no_station(of: str, simulator: Path, tmp_path: Path) -> None:
    file, source = tmp_path / "steps.yaml", tmp_path / "source.json"
    file.write_text(STEPS)
    only = "compute" if of == "forecast of one phase" else None
    answer = simulate(Fitted.open("lustre"), str(file), {}, 2, 2, phase=only, report=lambda *_: None)
    (share,) = IN_OPERATION.findall(simulation_text(answer))
    assert float(share) < 0.1
    if of == "run":
        source = tmp_path / "run"
        arguments = [
            "--platform",
            "lustre",
            "--workload",
            str(file),
            "--nodes",
            "2",
            "--ppn",
            "2",
            "--out",
            str(source),
        ]
        subprocess.run([simulator, *arguments], check=True, capture_output=True)
    else:
        source.write_text(json.dumps(answer))
    write_numbers([source], tmp_path / "figures.json")
    titles = json.dumps(json.loads((tmp_path / "figures.json").read_text())["figures"])
    assert "no thinking" not in titles  # ranks pause there
    if only:  # operations of 4 KiB alone: rates answer, and the figure says it
        write_numbers([source], tmp_path / "numbers.json")
        panels = {
            row["panel"] for row in json.loads((tmp_path / "numbers.json").read_text())["figures"]["stations"]["rows"]
        }
        assert [float(one) for panel in panels for one in IN_OPERATION.findall(panel)] == [
            pytest.approx(float(share), rel=0.2)
        ]
        return
    assert _title(read_sources([source])).startswith(f"Storage {'simulation' if of == 'run' else 'forecast'}: ")
    (grid,) = tell(read_sources([source])).grids
    where = {row[0]: row[grid.header.index("where the time goes")] for row in grid.rows}
    assert where["compute"].startswith("the ranks' own pauses") and "oss" not in where["compute"]
    assert float(IN_OPERATION.findall(where["compute"])[0]) == pytest.approx(float(share), rel=0.2)
    assert where["checkpoint"].endswith("network, disks and clients' own limits")
