# SPDX-License-Identifier: Apache-2.0
"""The table of processor time charges each test with its own work and that of its children."""

import json
import subprocess
import sys
from pathlib import Path

from programs import REPOSITORY

CONFTEST = """
import processor_time, forked, pathlib
processor_time.KEPT = pathlib.Path(__file__).with_name("kept.json")
def pytest_configure(config):
    config.pluginmanager.register(processor_time.ProcessorTime())
"""
TESTS = """
import subprocess, sys, time
from forked import used

def test_before():
    pass

def test_that_a_child_works():
    subprocess.run([sys.executable, "-S", "-c", "import time\\nwhile time.process_time() < 0.3: pass"], check=True)

def test_that_a_server_of_iocast_works():
    used[0] += 100.0

def test_after():
    time.sleep(0.3)
"""


def test_each_is_charged_with_its_own(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(f"import sys; sys.path.insert(0, {str(REPOSITORY / 'tests')!r}){CONFTEST}")
    (tmp_path / "test_some.py").write_text(TESTS)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:hypothesispytest", str(tmp_path)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0 and "Processor time: 10" in done.stdout, done.stdout
    kept = json.loads((tmp_path / "kept.json").read_text())
    seconds = {name.rpartition("::")[2]: sum(both) for name, both in kept["tests"].items()}
    assert len(kept["starts"]) == 2 and len(seconds) == 4
    before, child, server, after = seconds.values()
    assert 0.3 <= child and before < child / 2 and after < child / 2 and server >= 100
