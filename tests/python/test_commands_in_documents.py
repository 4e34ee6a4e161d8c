# SPDX-License-Identifier: Apache-2.0
"""The manual's pages, run: their commands in their order, in an empty directory, as a user would type them."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from programs import REPOSITORY, find_program
from slurm_cluster import Cluster

FELL_SHORT = "# exit status 4"


@pytest.fixture
def page(tmp_path: Path, bench: Path, mpi_environment: dict[str, str]) -> Iterator["Page"]:
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "iocast").write_text(f'#!/bin/sh\nPYTHONPATH={REPOSITORY} exec {sys.executable} -m iocast "$@"\n')
    (programs / "iocast").chmod(0o755)
    for name in ("iocast-bench", "iocast-sim"):
        program = find_program(name)
        assert program is not None, f"{name} is not built; run ./check"
        (programs / name).symlink_to(program)
    place = tmp_path / "here"
    place.mkdir()
    (place / "tests").symlink_to(REPOSITORY / "tests")
    environment = {**mpi_environment, "PATH": f"{programs}:{os.environ['PATH']}", "IOCAST_BUILD": str(bench.parents[1]), "OMPI_MCA_rmaps_base_oversubscribe": "1"}
    yield Page(place, environment)


class Page:
    """Runs the blocks of a page. `/scratch/me` becomes a directory of this test's own; a YAML block after "`NAME.yaml`:" is that file."""

    def __init__(self, place: Path, environment: dict[str, str]) -> None:
        self.place, self.environment = place, environment
        self.said: list[str] = []
        (place / "scratch").mkdir()

    def run(self, name: str, **environment: str) -> None:
        text = (REPOSITORY / "docs" / name).read_text()
        blocks = re.findall(r"(?:`(\S+\.yaml)`:\n\n)?```(sh|yaml|python)\n(.*?)```", text, flags=re.DOTALL)
        assert any(language == "sh" for _, language, _ in blocks), f"{name} shows no command"
        for file, language, content in blocks:
            content = content.replace("/scratch/me", str(self.place / "scratch"))
            if language == "yaml":
                (self.place / file).write_text(content)
            elif language == "python":
                self._run([sys.executable, "-c", content], 0, environment)
            else:
                for line in content.splitlines():
                    if line.strip() and not line.startswith("#"):
                        self._run(["bash", "-c", line], 4 if FELL_SHORT in line else 0, environment)
        assert not any((self.place / "scratch").iterdir())

    def _run(self, command: list[str], status: int, environment: dict[str, str]) -> None:
        done = subprocess.run(command, cwd=self.place, env=self.environment | environment, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == status, f"{command[-1]}\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
        self.said.append(done.stdout)


def test_import(page: Page) -> None:
    page.run("import.md")
    listed = page.said[0]
    text = (REPOSITORY / "docs" / "import.md").read_text()
    assert re.findall(r"^(\S+)  ", listed, flags=re.MULTILINE) == re.findall(r"^\| `(\w[^`]*)` \|", text, flags=re.MULTILINE)


def test_export(page: Page) -> None:
    page.run("export.md")
    assert "'operation': 'create'" in page.said[-1]


def test_compare(page: Page) -> None:
    page.run("compare.md")


def test_observe(page: Page) -> None:
    (page.place / "small.yaml").write_text(
        "schema_version: 1\nworkload: md-workbench\nsettings: {datasets: 1, objects: 2000, iterations: 2000}\nrepeats: 1\nbenchmark_repeats: 1\npoints:\n  - {ranks: 1}\n"
    )
    page.run("observe.md")


def test_campaigns(page: Page) -> None:
    if os.geteuid() != 0:
        pytest.skip("slurmd starts jobs as their users and so must be root; as another user, jobs are not tried")
    with Cluster() as cluster:
        changed = {name: value for name, value in cluster.environment.items() if os.environ.get(name) != value and name != "PATH"}
        page.run("campaigns.md", **changed)
        cluster.wait_for_jobs()
    assert "Table 2" in "".join(page.said)
    assert (page.place / "by-job" / "campaign.json").read_text().count('"complete"') == 4
