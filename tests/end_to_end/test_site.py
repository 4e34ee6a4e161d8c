# SPDX-License-Identifier: Apache-2.0
"""docs/build, as the README has it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from programs import REPOSITORY, find_program


def build(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(REPOSITORY / "docs" / "build"), *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


def test_one_command_builds_the_site(tmp_path: Path) -> None:
    done = build("--out", tmp_path / "new" / "site")
    assert done.returncode == 0, done.stdout + done.stderr
    pages = {str(page.relative_to(tmp_path / "new" / "site")) for page in (tmp_path / "new" / "site").rglob("*.html")}
    expected = {
        str(page.relative_to(REPOSITORY / "docs").with_suffix(".html")) for page in (REPOSITORY / "docs").rglob("*.md")
    }
    expected |= {f"examples/{page.parent.name}.html" for page in (REPOSITORY / "examples").glob("*/README.md")}
    assert pages >= expected | {
        "index.html",
        "contributing.html",
        "changes.html",
        "tests.html",
        "reference/commands.html",
        "reference/keys.html",
        "reference/python.html",
    }
    assert done.stdout.strip() == f"Open {tmp_path}/new/site/index.html in a browser."


@pytest.mark.long("a second site; the first one is built always")
def test_dead_links_and_pages_that_nothing_leads_to_are_errors(tmp_path: Path) -> None:
    """In a copy: MkDocs finds what it complains of while the rest is built as ever."""
    changed = ("docs", "examples")
    for entry in REPOSITORY.iterdir():
        if entry.name in changed:
            shutil.copytree(entry, tmp_path / entry.name)
        elif entry.name != "site":
            (tmp_path / entry.name).symlink_to(entry)
    with (tmp_path / "docs" / "compare.md").open("a") as page:
        page.write(
            "[a page](nowhere.md), [a section](export.md#nowhere), [a workload](../workload/catalogue/nothing.yaml)\n"
        )
    (tmp_path / "docs" / "forgotten.md").write_text("# Forgotten\n")
    simulator = find_program("iocast-sim")
    assert simulator is not None
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", "site"], cwd=tmp_path,
        env={**os.environ, "IOCAST_BUILD": str(simulator.parents[1])},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1 and done.stderr.count("WARNING") == 4, done.stdout + done.stderr
    for word in ("nowhere.md", "#nowhere", "#nothing", "forgotten.md"):
        assert word in done.stderr


def test_it_overwrites_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine\n")
    done = build("--out", tmp_path)
    assert done.returncode == 2 and "holds something else" in done.stderr
    assert [file.name for file in tmp_path.iterdir()] == ["mine.txt"]
    assert build("--output", tmp_path).returncode == 2
