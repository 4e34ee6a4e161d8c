# SPDX-License-Identifier: Apache-2.0
"""Documents that repeat what the programs know agree with them."""

import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

from programs import REPOSITORY

Iocast = Callable[..., subprocess.CompletedProcess[str]]


def test_a_page_lists_the_workloads(iocast: Iocast, tmp_path: Path) -> None:
    listed = REPOSITORY / "docs" / "workloads.md"
    copy = tmp_path / "workloads.md"
    shutil.copy(listed, copy)
    assert iocast("list", "workloads", "--markdown", "--into", copy).returncode == 0
    assert copy.read_text() == listed.read_text(), "run: iocast list workloads --markdown --into docs/workloads.md"
    for name in re.findall(r"\]\(\.\./(workload/catalogue/[^)]*)\)", copy.read_text()):
        assert (REPOSITORY / name).exists(), name


def test_tables_are_refused_where_they_have_no_place(iocast: Iocast, tmp_path: Path) -> None:
    (tmp_path / "empty.md").write_text("nothing\n")
    done = iocast("list", "workloads", "--markdown", "--into", tmp_path / "empty.md")
    assert done.returncode == 2 and "has no lines '<!-- iocast list workloads -->'" in done.stderr
    assert (tmp_path / "empty.md").read_text() == "nothing\n"
    done = iocast("list", "platforms", "--markdown")
    assert done.returncode == 2 and "there are tables of workloads and patterns" in done.stderr


def test_the_manual_shows_the_tested_pattern() -> None:
    shown = re.findall(r"```cpp\n(.*?)```", (REPOSITORY / "docs" / "patterns.md").read_text(), flags=re.DOTALL)
    assert shown == [(REPOSITORY / "tests" / "unit" / "example_pattern.cpp").read_text()]
