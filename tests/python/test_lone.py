# SPDX-License-Identifier: Apache-2.0
"""Time that a lone rank measured and that a platform has no place for is named."""

from pathlib import Path

import pytest
import yaml

from iocast.ground import binaries
from iocast.calibrate import lone
from iocast.ground.files import read_json
from iocast.runs.run_directory import Run, group
from iocast.wording.notes import sentence

OPERATIONS = {
    "create": {"open": [{"delay": "2ms"}], "write": [], "close": [{"delay": "3ms"}]},
    "stat": [{"delay": "1ms"}],
    "read": {"open": [{"delay": "1ms"}], "read": [{"delay": "1ms"}], "close": []},
    "unlink": [{"delay": "2ms"}],
}


def _run(out: Path, close: str) -> Path:
    create = OPERATIONS["create"] | {"close": [{"delay": close}]}  # type: ignore[operator]
    platform = out.with_suffix(".yaml")
    document = {
        "schema_version": 1,
        "stations": {"idle": {"servers": 1}},
        "operations": OPERATIONS | {"create": create},
    }
    platform.write_text(yaml.safe_dump(document))
    command = [binaries.find("iocast-sim"), "--platform", str(platform), "--nodes", "1", "--ppn", "1"]
    command += ["--set=datasets=1", "--set=objects=50", "--set=iterations=50"]
    binaries.run_json([*command, "--out", str(out), "--json"])
    return out


@pytest.mark.parametrize(
    ("close", "named"),
    [("3ms", ""), ("2.6ms", ""), ("0ms", "60 % less, most of it in create.close"), ("6ms", "60 % more")],
)
def test_an_operation_whose_time_is_off_at_one_rank_is_named_with_its_part(
    tmp_path: Path, close: str, named: str
) -> None:
    (measured,) = group([Run(_run(tmp_path / "measured", "3ms"))])
    notes = lone.notes(measured, read_json(_run(tmp_path / "model", close) / "run.json", "run"))
    assert len(notes) == bool(named)
    assert all("A lone rank's create takes 5 ms" in (text := sentence(note)) and named in text for note in notes)
