# SPDX-License-Identifier: Apache-2.0
"""What every mechanism must do (docs/extend.md, Mechanism); new ones are covered at once, by the example in their
file."""

import copy
import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from programs import find_program
from registry import listed

from iocast.analytic.routes import read_routes
from iocast.errors import InputError
from iocast.ground import binaries
from iocast.platforms.documents import mechanisms_in
from iocast.platforms.drawing import platform_text
from iocast.platforms.fitted import Fitted
from iocast.platforms.platform_names import check_edits

SIMULATOR = find_program("iocast-sim")
assert SIMULATOR is not None, "iocast-sim is not built; run ./check"


def ask(*arguments: str | Path) -> Any:
    done = subprocess.run([str(SIMULATOR), *map(str, arguments), "--json"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


DESCRIBED = [ask("--describe", entry["name"]) for entry in listed("iocast-sim", "primitives")]
MECHANISMS = [one for one in DESCRIBED if "mechanism" in one]
SETTINGS = ("phases=precreate", "datasets=1", "objects=100", "iterations=1")


def platform_of(mechanism: dict[str, Any]) -> dict[str, Any]:
    """Creates that have its step."""
    declared = mechanism["mechanism"]
    return {
        "schema_version": 1,
        "stations": {"s": {"servers": 2}},
        declared["section"]: {"m": yaml.safe_load(declared["example"])},
        "operations": {
            "mkdir": [],
            "create": {"open": [{"station": "s", "demand": "100us"}], "write": [yaml.safe_load(declared["use"])]},
        },
    }


def written(place: Path, platform: dict[str, Any]) -> Path:
    file = place / "p.yaml"
    file.write_text(yaml.safe_dump(platform, sort_keys=False))
    return file


def run(place: Path, platform: dict[str, Any]) -> Any:
    settings = [word for setting in SETTINGS for word in ("--set", setting)]
    return ask("--platform", written(place, platform), *settings, "--nodes", "2", "--ppn", "2")


@pytest.fixture(params=MECHANISMS, ids=lambda one: one["name"])
def mechanism(request: pytest.FixtureRequest) -> dict[str, Any]:
    found: dict[str, Any] = request.param
    return found


def test_its_keys_are_declared_whole(mechanism: dict[str, Any]) -> None:
    declared = mechanism["mechanism"]
    for key in mechanism["keys"]:
        assert key["meaning"] and ("unit" in key) != ("value" in key), key
        assert isinstance(key.get("default", "size - batch"), str) or key["default"] <= key["high"], key
    assert mechanism["keys"][-1]["name"] == declared["step"] and declared["says"].count("{}") == 1
    numbers = {key["name"] for key in mechanism["keys"] if "unit" in key}
    assert numbers <= set(yaml.safe_load(declared["example"])), "the example has every number"


@pytest.mark.parametrize("section", ["limits", "locks", "stalls", "failures", "background", "caches", "buffers"])
def test_keys_of_what_the_engine_does_itself_are_declared_whole(section: str) -> None:
    described = ask("--describe", section)
    assert described in DESCRIBED and "mechanism" not in described
    for key in described["keys"]:
        assert key["meaning"] and ("unit" in key) != ("value" in key), key
        assert isinstance(key.get("default", "size - batch"), str) or key["default"] <= key["high"], key
        assert "unit" not in key or key["low"] < key["high"], key


def test_every_number_of_it_changes_an_answer(mechanism: dict[str, Any], tmp_path: Path) -> None:
    platform = platform_of(mechanism)
    section = mechanism["mechanism"]["section"]
    before = run(tmp_path, platform)["phases"]
    assert before[0][section]["m"], "a run reports it"
    assert run(tmp_path, platform)["phases"] == before
    for key in (key["name"] for key in mechanism["keys"] if "unit" in key):
        changed = copy.deepcopy(platform)
        value = str(changed[section]["m"][key])
        changed[section]["m"][key] = re.sub(r"^[\d.]+", lambda number: f"{2 * float(number[0]):g}", value)
        assert run(tmp_path, changed)["phases"] != before, key


def test_the_toolkit_knows_it_from_the_simulator_alone(mechanism: dict[str, Any], tmp_path: Path) -> None:
    declared = mechanism["mechanism"]
    section = declared["section"]
    file = written(tmp_path, platform_of(mechanism))
    resolved = binaries.resolve_platform(file)
    assert mechanisms_in(resolved) == [section]
    drawn = platform_text(ask("--describe", file))
    assert f"{mechanism['name']} m: " in drawn and declared["says"].format("m") in drawn
    with pytest.raises(InputError, match="analytic solver can't know"):
        read_routes(resolved, {"create": 1.0}, 4096.0)
    part = resolved[section]["m"] | platform_of(mechanism)[section]["m"]  # with the units of an edit
    for key in part.keys() - {"per", declared.get("pieces")}:
        check_edits(Fitted.open(str(file), [(f"{section}.m.{key}", part[key])]))
        with pytest.raises(InputError, match=f"Did you mean '{section}.m.{key}'"):
            check_edits(Fitted.open(str(file), [(f"{section}.m.{key}x", part[key])]))
