# SPDX-License-Identifier: Apache-2.0
"""What a machine lacks: one sentence, one failure, or left out by name; tests that don't need it run as ever."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import machine
import pytest
from programs import REPOSITORY

CONFTEST = """
from machine import Machine

def pytest_addoption(parser):
    parser.addoption("--without", default="")

def pytest_configure(config):
    config.addinivalue_line("markers", "needs(what): of the machine")
    config.pluginmanager.register(Machine(config))
"""
TESTS = """
import pytest

@pytest.mark.parametrize("number", range(3))
@pytest.mark.needs("slurm")
def test_of_slurm(number): raise OSError("this must not be seen")

@pytest.mark.needs("tools")
def test_of_tools(): pass

def test_plain(): pass
"""
LACKS = {"slurm": "No cgroups are mounted. Mount them."}


def outcome(place: Path, *options: str) -> tuple[int, str]:
    (place / "conftest.py").write_text(CONFTEST)
    (place / "test_small.py").write_text(TESTS)
    environment = {**os.environ, machine.LACKS: json.dumps(LACKS), "PYTHONPATH": str(REPOSITORY / "tests")}
    environment = {
        name: value for name, value in environment.items() if not name.startswith(("PYTEST_", "IOCAST_SANITIZED"))
    }
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(place), *options]
    done = subprocess.run(command, capture_output=True, text=True, cwd=place, env=environment, timeout=120)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("processes", [[], ["-n", "2", "--dist=loadgroup"]], ids=["one process", "several"])
def test_what_is_missing_is_one_failure(tmp_path: Path, processes: list[str]) -> None:
    code, printed = outcome(tmp_path, *processes)
    assert code == 1 and "1 failed, 2 passed" in printed
    assert (
        "3 tests can't be run. No cgroups are mounted. Mount them. Or leave them out: --without slurm." in printed
        and "must not be seen" not in printed
    )


@pytest.mark.parametrize("processes", [[], ["-n", "2", "--dist=loadgroup"]], ids=["one process", "several"])
def test_what_is_left_out_is_printed_at_the_end(tmp_path: Path, processes: list[str]) -> None:
    code, printed = outcome(tmp_path, "--without", "slurm,tools", *processes)
    assert code == 0 and "1 passed" in printed
    assert "Left out by --without: slurm, 3 tests" in printed and "Left out by --without: tools, 1 tests" in printed


def test_another_name_is_refused(tmp_path: Path) -> None:
    code, printed = outcome(tmp_path, "--without", "slrum")
    assert code == 4 and "--without can't be 'slrum'" in printed and "slurm, mongodb" in printed


@pytest.mark.parametrize("user", [0, 1000])
@pytest.mark.parametrize("name", machine.NEEDS)
def test_where_nothing_is_installed_each_need_is_a_sentence_with_a_remedy(
    name: str, user: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Programs that are not on PATH are named with Debian's package."""
    monkeypatch.setattr(machine.os, "geteuid", lambda: user)
    monkeypatch.setattr(machine.os, "access", lambda *_: False)
    monkeypatch.setattr(machine.shutil, "which", lambda *_, **__: None)
    monkeypatch.setattr(machine.Path, "exists", lambda _: False)
    monkeypatch.setattr(machine.Path, "glob", lambda *_: iter(()))
    monkeypatch.setattr(
        machine.subprocess,
        "run",
        lambda *_, **__: subprocess.CompletedProcess([], 1, "", "unshare: Operation not permitted"),
    )
    sentence = machine.NEEDS[name]()
    if (name, user) == ("root", 0):
        assert sentence == ""
    else:
        assert re.fullmatch(r"[A-Z/a-z_].*\. (Install|Mount|Give|Run|Add|Load|Set) .*\.", sentence), sentence


def test_no_test_is_skipped_in_silence() -> None:
    """A test names what it needs of the machine, so that ./check reports it; only sanitizers skip, with a reason."""
    skips = re.compile(r"pytest\.skip\(|mark\.skip|importorskip|GTEST_SKIP|xfail")
    places = [
        f"{file.relative_to(REPOSITORY)}:{number}"
        for folder in ("tests", "validation/theory")
        for pattern in ("*.py", "*.cpp", "*.hpp")
        for file in (REPOSITORY / folder).rglob(pattern)
        if file not in (Path(__file__), REPOSITORY / "tests" / "conftest.py")
        for number, line in enumerate(file.read_text().splitlines(), start=1)
        if skips.search(line)
    ]
    assert places == []


def test_every_marker_names_a_need() -> None:
    texts = [file.read_text() for file in (REPOSITORY / "tests").rglob("*.py") if file != Path(__file__)]
    named = {
        name
        for text in texts
        for name in re.findall(r'mark\.needs\("(\w+)"\)|^    (?:backend = )?needs = "(\w+)"', text, flags=re.MULTILINE)
        for name in name
        if name
    }
    assert named == set(machine.NEEDS)


def changes() -> dict[str, list[str]]:
    """The table of tests/README.md: what is changed, and the files and folders of tests to run then."""
    text = (REPOSITORY / "tests" / "README.md").read_text()
    rows = re.findall(r"^\| (.+?) \| (.+?) \|", text[text.index("## After a change") :], flags=re.MULTILINE)
    found = {}
    for changed, tests in rows[2:]:
        if changed == "name":  # the next table
            break
        names = re.findall(r"`([\w*./-]+)`", tests)
        found[changed] = [name if "/" in name else f"tests/python/{name}" for name in names]
    return found


def test_the_table_of_changes_names_what_is_there() -> None:
    """Every folder of sources has its line, and every test that a line names exists."""
    table = changes()
    for changed, tests in table.items():
        for name in [*re.findall(r"`([\w./]+)`", changed), *(name for name in tests if not name.startswith("build/"))]:
            assert list(REPOSITORY.glob(name)), f"{changed}: there is no {name}"
    tracked = subprocess.run(["git", "ls-files"], cwd=REPOSITORY, capture_output=True, text=True, check=True).stdout
    folders = {line.partition("/")[0] for line in tracked.splitlines() if "/" in line and not line.startswith(".")}
    named = " ".join(table)
    assert {folder for folder in folders if f"`{folder}/" not in named} <= {"validation"}


def test_the_quick_check_leaves_out_files_that_are_there() -> None:
    names = re.findall(r"^slow=\(([^)]*)\)", (REPOSITORY / "check").read_text(), re.MULTILINE)[0].split()
    assert names == sorted(names) and all((REPOSITORY / f"tests/python/test_{name}.py").is_file() for name in names)
