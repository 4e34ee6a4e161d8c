# SPDX-License-Identifier: Apache-2.0
"""The listing that tests are collected from: made once for each build, whoever collects, and made anew with the
build."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import registry
from programs import REPOSITORY

PROGRAM = """#!/bin/sh
echo "$*" >> "$(dirname "$0")/calls"
[ ! -e "$(dirname "$0")/broken" ] || { echo "iocast-sim: The catalogue is gone." >&2; exit 1; }
case "$1" in
  --list) echo '{"'"$2"'": [{"name": "one"}, {"name": "two"}]}' ;;
  --describe) echo '{"name": "'"$2"'", "small": []}' ;;
esac
"""
ASK = (
    "import json, registry; print(json.dumps([registry.workload_names('iocast-sim'), registry.described('iocast-sim',"
    " 'two')]))"
)


@pytest.fixture
def build(tmp_path: Path) -> Path:
    """A build whose iocast-sim counts its calls."""
    program = tmp_path / "bin" / "iocast-sim"
    program.parent.mkdir()
    program.write_text(PROGRAM)
    program.chmod(0o755)
    return tmp_path


def collections(build: Path, number: int) -> list[str]:
    """What as many processes at once take from the listing."""
    environment = {**os.environ, "IOCAST_BUILD": str(build), "PYTHONPATH": str(REPOSITORY / "tests")}
    processes = [
        subprocess.Popen([sys.executable, "-S", "-c", ASK], env=environment, stdout=subprocess.PIPE, text=True)
        for _ in range(number)
    ]
    return [process.communicate(timeout=120)[0] for process in processes]


def calls(build: Path) -> list[str]:
    return (build / "bin" / "calls").read_text().splitlines()


def test_it_is_made_once_for_each_build(build: Path) -> None:
    answers = collections(build, 3)
    assert set(answers) == {json.dumps([["one", "two"], {"name": "two", "small": []}]) + "\n"}
    first = calls(build)
    assert len(first) == len(set(first)) == 4 + 2, "each program was started once"
    assert collections(build, 1) == answers[:1] and calls(build) == first
    os.utime(build / "bin" / "iocast-sim", ns=(1, 1))
    assert collections(build, 2) == answers[:2] and calls(build) == 2 * first


def test_a_program_that_fails_is_quoted(build: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (build / "bin" / "broken").touch()
    monkeypatch.setenv("IOCAST_BUILD", str(build))
    with pytest.raises(
        AssertionError, match=r"--list patterns failed with exit status 1: iocast-sim: The catalogue is gone\."
    ):
        registry._registry.__wrapped__("iocast-sim")
