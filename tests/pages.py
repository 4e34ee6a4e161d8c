# SPDX-License-Identifier: Apache-2.0
"""The manual's pages as tests run them: their commands in their order, as a reader would type them in a clone."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from PIL import Image, ImageChops
from programs import REPOSITORY, find_program

STATUS = re.compile(r"# exit status ([\d or]+)")
IMAGE = re.compile(r"!\[([^\]]*)\]\(([^)]+)\)")
BRIEF = str(REPOSITORY / "tests" / "brief")
"""Shorter searches, on PYTHONPATH: pages are run to see that their commands work."""
PYTHON_PATH = f"{BRIEF}:{REPOSITORY}"
RUN_ELSEWHERE = {"README.md": "end_to_end/test_readme.py", "docs/backends.md": "backends/test_contract.py"}
"""Pages with commands that are not of one story, by the tests that run every one of them."""


def all_pages() -> list[str]:
    found = [
        REPOSITORY / "README.md",
        *(REPOSITORY / "docs").rglob("*.md"),
        *(REPOSITORY / "examples").glob("*/README.md"),
    ]
    return sorted(str(page.relative_to(REPOSITORY)) for page in found)


@dataclass(frozen=True)
class Block:
    """A fenced block. `file` is set when the line before it names one ("`NAME`:"), `answer` for text that comes right
    after commands."""

    language: str
    content: str
    file: str = ""
    answer: bool = False


def blocks_of(page: str) -> list[Block]:
    text = (REPOSITORY / page).read_text()
    assert not re.search(r"^ +```", text, flags=re.MULTILINE), (
        f"{page} has an indented block; the site shows only those that begin a line"
    )
    found: list[Block] = []
    end = 0
    for match in re.finditer(r"(?:`(\S+)`:\n\n)?^```([^\n]*)\n(.*?)^```$", text, flags=re.DOTALL | re.MULTILINE):
        follows = bool(found) and found[-1].language in ("sh", "python") and not text[end : match.start()].strip()
        found.append(Block(match[2], match[3], match[1] or "", match[2] == "text" and follows))
        end = match.end()
    return found


def commands_of(page: str) -> list[str]:
    """Lines of the `sh` blocks, those that end with a backslash joined with the next."""
    return [line for block in blocks_of(page) if block.language == "sh" for line in lines_of(block)]


def lines_of(block: Block) -> list[str]:
    return [
        line for line in block.content.replace("\\\n", " ").splitlines() if line.strip() and not line.startswith("#")
    ]


def images_of(page: str) -> list[tuple[str, Path]]:
    """Alternative text and file of every figure that a page shows."""
    text = (REPOSITORY / page).read_text()
    assert "<img" not in text, f"{page}: write figures as ![what it shows](file)"
    return [(alt, (REPOSITORY / page).parent / file) for alt, file in IMAGE.findall(text)]


class Page:
    """Runs pages in a directory that looks like a clone in which everything is built. What is measured is a directory
    of this test's own."""

    def __init__(self, place: Path, environment: Mapping[str, str]) -> None:
        """`place` is made."""
        self.place = place
        self.printed: list[str] = []
        """Standard output of every command."""
        self._background: list[subprocess.Popen[bytes]] = []
        for directory in (place, place / "scratch", place / "results", place / "build", place / ".venv"):
            directory.mkdir()
        for name in ("campaigns", "docs", "examples", "platforms", "tests", "workload"):
            (place / name).symlink_to(REPOSITORY / name)
        programs = place / "build" / "bin"
        programs.mkdir()
        (place / ".venv" / "bin").symlink_to(programs)
        (programs / "iocast").write_text(f'#!/bin/sh\nPYTHONPATH={PYTHON_PATH} exec {sys.executable} -m iocast "$@"\n')
        (programs / "iocast").chmod(0o755)
        for name in ("iocast-bench", "iocast-sim", "pattern-speed"):
            program = find_program(name)
            assert program is not None, f"{name} is not built; run ./check"
            (programs / name).symlink_to(program)
        (programs / "dask").symlink_to(Path(sys.executable).parent / "dask")
        self.environment = {
            **environment, "PATH": f"{programs}:{os.environ['PATH']}", "IOCAST_BUILD": str(place / "build"),
            "PYTHONPATH": PYTHON_PATH,
            "OMPI_MCA_rmaps_base_oversubscribe": "1", "OMPI_MCA_hwloc_base_binding_policy": "none",
            "OMPI_MCA_mpi_yield_when_idle": "1",
            "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe", "PRTE_MCA_hwloc_default_binding_policy": "none",
        }  # fmt: skip

    def run(self, name: str, change: Mapping[str, str] | None = None, before: Callable[[str], None] = lambda line: None,
            statuses: Collection[int] = (0,), **environment: str) -> None:  # fmt: skip
        """Every block of a page in docs/ or of another page of the repository: commands; YAML that the line before it
        calls a file; Python. Text after commands is what they must print, a line of three dots standing for any lines.
        Figures are those that a command made.

        `change`: what is other here than where a reader is (addresses, sizes), by the page's own words. `before` is
        called with each command. `statuses`: how a command may exit that says nothing of it ("# exit status 4")."""
        page = name if (REPOSITORY / name).exists() else f"docs/{name}"
        # The longest first, so that no one is taken for a part of another.
        changes = {"/scratch/me": str(self.place / "scratch"), "DIR": str(self.place / "scratch"), **(change or {})}
        words = re.compile(
            "|".join(rf"(?<![\w.]){re.escape(word)}(?!\w)" for word in sorted(changes, key=len, reverse=True))
        )
        for text in change or {}:
            assert text in (REPOSITORY / page).read_text(), f"{page} no longer says '{text}'"
        blocks = blocks_of(page)
        assert any(block.language == "sh" for block in blocks), f"{page} shows no command"
        try:
            for block in blocks:
                content = words.sub(lambda found: changes[found[0]], block.content)
                if block.language in ("sh", "python"):
                    first = len(self.printed)
                if block.language == "sh":
                    for line in lines_of(Block("sh", content)):
                        before(line)
                        self._run_line(line, set(statuses), environment)
                elif block.answer:
                    assert_same_text(page, content, "".join(self.printed[first:]))
                elif block.language == "python":
                    self._run([sys.executable, "-c", content], {0}, environment)
                elif block.file:
                    (self.place / block.file).write_text(content)
        finally:
            self.end()
        for alt, shown in images_of(page):
            assert alt and shown.exists(), f"{page} shows {shown}, which is not there"
            made = [file for file in self.place.rglob(shown.name) if not file.is_symlink()]
            assert made, f"{page} shows {shown.name}, which none of its commands makes"
            assert_same_picture(made[0], shown)
        assert not any((self.place / "scratch").iterdir())

    def end(self) -> None:
        """Ends what runs in the background."""
        for process in self._background:
            os.killpg(process.pid, signal.SIGTERM)
        for process in self._background:
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        self._background.clear()

    def _run_line(self, line: str, statuses: set[int], environment: Mapping[str, str]) -> None:
        if line.rstrip().endswith("&"):
            with (self.place / f"background-{len(self._background)}.log").open("wb") as log:
                command = ["bash", "-c", f"exec {line.rstrip().rstrip('&')}"]
                self._background.append(
                    subprocess.Popen(
                        command,
                        cwd=self.place,
                        env={**self.environment, **environment},
                        stdout=log,
                        stderr=log,
                        start_new_session=True,
                    )
                )
            return
        reported = STATUS.search(line)
        self._run(
            ["bash", "-c", line],
            {int(status) for status in reported[1].split(" or ")} if reported else statuses,
            environment,
        )

    def _run(self, command: list[str], statuses: set[int], environment: Mapping[str, str]) -> None:
        done = subprocess.run(
            command,
            cwd=self.place,
            env={**self.environment, **environment},
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        assert done.returncode in statuses, (
            f"{command[-1]}\nexit status {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
        )
        self.printed.append(done.stdout)


def own_copy(page: Page, name: str) -> Path:
    """Puts a copy of a directory of the repository, which the test may change, in the place of the link to it."""
    (page.place / name).unlink()
    return Path(shutil.copytree(REPOSITORY / name, page.place / name))


def assert_same_text(page: str, shown: str, text: str) -> None:
    parts = [
        re.escape("\n".join(line.rstrip() for line in part.splitlines()))
        for part in re.split(r"^\.\.\.\n", shown, flags=re.MULTILINE)
    ]
    plain = "\n".join(line.rstrip() for line in text.splitlines())
    assert re.fullmatch(r"(?:.*\n)*?".join(part + r"\n" if part else "" for part in parts), plain + "\n"), (
        f"{page} shows\n{shown}\nand its commands say\n{text}"
    )


def assert_same_picture(made: Path, shown: Path) -> None:
    """But for fonts, whose edges differ from machine to machine: both seen from afar, at a sixteenth of a megapixel."""
    small = [Image.open(file).convert("RGB").resize((256, 256), Image.Resampling.BOX) for file in (made, shown)]
    histogram = ImageChops.difference(*small).convert("L").histogram()
    off = sum(histogram[24:]) / sum(histogram)
    assert off < 0.02, (
        f"{shown} shows something else than {made}: {100 * off:.1f} % of its area differs; copy the new one there"
    )
