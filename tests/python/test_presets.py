# SPDX-License-Identifier: Apache-2.0
"""CMakePresets.json: each preset configures, and sets what its name promises."""

import json
import re
import subprocess
from pathlib import Path

import pytest
from schedule import mostly_long
from programs import REPOSITORY

SETTINGS = {
    "release": {"CMAKE_BUILD_TYPE": "Release"},
    "debug": {"CMAKE_BUILD_TYPE": "Debug"},
    "asan": {"CMAKE_BUILD_TYPE": "RelWithDebInfo", "IOCAST_SANITIZE": "ON"},
    "coverage": {"CMAKE_BUILD_TYPE": "Debug", "CMAKE_CXX_FLAGS": "--coverage"},
}
PRESETS = json.loads((REPOSITORY / "CMakePresets.json").read_text())


def test_every_preset_is_here_and_builds() -> None:
    assert {one["name"] for one in PRESETS["configurePresets"]} == set(SETTINGS)
    assert {one["name"] for one in PRESETS["buildPresets"]} == set(SETTINGS)


@pytest.mark.parametrize("preset", mostly_long(SETTINGS, ["asan"], "CMake reads the presets alike"))
def test_it_configures(preset: str, tmp_path: Path) -> None:
    command = ["cmake", "--preset", preset, "-B", str(tmp_path)]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    cache = dict(re.findall(r"^(\w+):\w+=(.*)$", (tmp_path / "CMakeCache.txt").read_text(), re.MULTILINE))
    wanted = {"IOCAST_TESTS": "ON"} | SETTINGS[preset]
    assert {name: cache[name] for name in wanted} == wanted
