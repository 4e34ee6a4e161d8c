# SPDX-License-Identifier: Apache-2.0
"""Documents that repeat what the programs know agree with them."""

import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from programs import REPOSITORY

Iocast = Callable[..., subprocess.CompletedProcess[str]]


@pytest.mark.parametrize("what", ["workloads", "cautions"])
def test_a_page_lists_what_there_is(iocast: Iocast, tmp_path: Path, what: str) -> None:
    listed = REPOSITORY / "docs" / f"{what}.md"
    copy = tmp_path / listed.name
    shutil.copy(listed, copy)
    assert iocast("list", what, "--markdown", "--into", copy).returncode == 0
    assert copy.read_text() == listed.read_text(), f"run: iocast list {what} --markdown --into docs/{what}.md"
    for name in re.findall(r"\]\(\.\./(workload/catalogue/[^)]*)\)", copy.read_text()):
        assert (REPOSITORY / name).exists(), name


def test_tables_are_refused_where_they_have_no_place(iocast: Iocast, tmp_path: Path) -> None:
    (tmp_path / "empty.md").write_text("nothing\n")
    done = iocast("list", "workloads", "--markdown", "--into", tmp_path / "empty.md")
    assert done.returncode == 2 and "has no lines '<!-- iocast list workloads -->'" in done.stderr
    assert (tmp_path / "empty.md").read_text() == "nothing\n"
    done = iocast("list", "platforms", "--markdown")
    assert done.returncode == 2 and "there are tables of workloads, patterns and cautions" in done.stderr


@pytest.mark.parametrize(
    ("page", "source"),
    [("patterns.md", "unit/example_pattern.cpp"), ("new-backend.md", "contract/example_backend.cpp")],
)
def test_the_manual_shows_the_tested_example(page: str, source: str) -> None:
    shown = re.findall(r"```cpp\n(.*?)```", (REPOSITORY / "docs" / page).read_text(), flags=re.DOTALL)
    assert shown == [(REPOSITORY / "tests" / source).read_text()]


def test_evidence_has_a_table_of_its_commands() -> None:
    """Every script of validation/ is in the table of its README; what the table names is there."""
    folder = REPOSITORY / "validation"
    text = (folder / "README.md").read_text()
    named = set(
        re.findall(r"^\| `(?:pytest validation/)?([\w./]+)", text.partition("## What each shows")[2], re.MULTILINE)
    )
    scripts = {
        str(file.relative_to(folder))
        for file in folder.rglob("*")
        if file.is_file() and os.access(file, os.X_OK) and file.read_bytes().startswith(b"#!")
    }
    assert scripts - named == set()
    for name in named | set(re.findall(r"`((?:\w+/)+\w+(?:\.py)?)[ `]", text.partition("## What each shows")[0])):
        assert name.startswith("build/bin/") or (folder / name).exists() or (REPOSITORY / name).exists(), name
    for target in re.findall(r"\]\(([^)#]+)", text):
        assert (folder / target).exists(), target


def test_the_tests_that_a_page_names_are_there() -> None:
    text = (REPOSITORY / "docs" / "trust.md").read_text()
    named = re.findall(r"`(test_\w+\.py)`(?:: ((?:`test_\w+`(?:, )?)+))?", text)
    assert len(named) > 30
    for file, tests in named:
        source = (REPOSITORY / "tests" / "python" / file).read_text()
        assert not [name for name in re.findall(r"`(\w+)`", tests) if f"def {name}(" not in source], file
