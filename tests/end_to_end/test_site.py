# SPDX-License-Identifier: Apache-2.0
"""docs/build, as the README has it."""

import subprocess
from pathlib import Path

from programs import REPOSITORY


def build(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(REPOSITORY / "docs" / "build"), *map(str, arguments)], capture_output=True, text=True, timeout=600, check=False)


def test_one_command_builds_the_site(tmp_path: Path) -> None:
    done = build("--out", tmp_path / "new" / "site")
    assert done.returncode == 0, done.stdout + done.stderr
    pages = {str(page.relative_to(tmp_path / "new" / "site")) for page in (tmp_path / "new" / "site").rglob("*.html")}
    expected = {str(page.relative_to(REPOSITORY / "docs").with_suffix(".html")) for page in (REPOSITORY / "docs").rglob("*.md")}
    expected |= {f"examples/{page.parent.name}.html" for page in (REPOSITORY / "examples").glob("*/README.md")}
    assert pages >= expected | {"index.html", "reference/commands.html", "reference/python.html"}
    assert done.stdout.strip() == f"Open {tmp_path}/new/site/index.html in a browser."


def test_it_overwrites_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine\n")
    done = build("--out", tmp_path)
    assert done.returncode == 2 and "holds something else" in done.stderr
    assert [file.name for file in tmp_path.iterdir()] == ["mine.txt"]
    assert build("--output", tmp_path).returncode == 2
