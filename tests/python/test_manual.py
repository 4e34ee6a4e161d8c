# SPDX-License-Identifier: Apache-2.0
"""Manual pages: everything that --help and --describe tell is in them, and man reads them without a complaint."""

import json
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from programs import find_program

Iocast = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def pages(iocast: Iocast, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What man shows of each page, its paragraphs in a line each."""
    assert shutil.which("man") and shutil.which("groff"), (
        "install the Debian packages man-db and groff-base; ./check does"
    )
    directory = tmp_path_factory.mktemp("man")
    done = iocast("manual", "--out", directory, "--json")
    assert done.returncode == 0, done.stderr
    shown = {}
    for page in json.loads(done.stdout)["pages"]:
        read = subprocess.run(
            ["man", "--warnings=all", "--no-hyphenation", "--no-justification", "-l", page],
            capture_output=True, text=True, check=True,
            env={"PATH": "/usr/bin:/bin", "MANWIDTH": "2000", "LC_ALL": "C.UTF-8", "MANROFFOPT": "-c"},
        )  # fmt: skip
        assert read.stderr == "", f"{page}: {read.stderr}"
        shown[Path(page).name] = re.sub(r"[ \n]+", " ", re.sub(".\x08", "", read.stdout))
    return shown


def ask(program: str, *arguments: str) -> Any:
    binary = find_program(program)
    assert binary is not None, f"{program} is not built; run ./check"
    return subprocess.run([str(binary), *arguments], capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("program", ["iocast-bench", "iocast-sim"])
@pytest.mark.needs("tools")
def test_all_of_the_help_is_in_the_page(program: str, pages: dict[str, str]) -> None:
    words = re.sub(r"^Usage:.*$", "", ask(program, "--help"), flags=re.MULTILINE).split("\n", 1)[1]
    options = [line for line in words.splitlines() if line.startswith("  --")]
    assert len(options) > 10
    for line in words.splitlines():
        for phrase in re.split(r"\s{2,}|:$|^Exit \w+: ", line.strip()):
            assert phrase.lower() in pages[f"{program}.1"].lower(), phrase


@pytest.mark.needs("tools")
def test_each_verb_has_a_page_with_its_options(iocast: Iocast, pages: dict[str, str]) -> None:
    verbs = [
        name.removeprefix("iocast-")[:-2]
        for name in pages
        if name.endswith(".1") and name not in ("iocast-bench.1", "iocast-sim.1", "iocast.1")
    ]
    assert {"measure", "calibrate", "import", "manual"} <= set(verbs)
    reported = iocast("--help").stdout
    assert set(verbs) == set(re.findall(r"^  ([a-z]+)  ", reported[reported.index("Get data:") :], flags=re.MULTILINE))
    for verb in ("measure", "observe"):
        for option in re.findall(r"^  (--[a-z-]+)", iocast(verb, "--help").stdout, flags=re.MULTILINE):
            assert option in pages[f"iocast-{verb}.1"] or option == "--help"
        assert f"iocast-{verb}(1)" in pages["iocast.1"]


@pytest.mark.parametrize("what", ["backends", "patterns", "workloads", "platforms", "primitives"])
@pytest.mark.needs("tools")
def test_each_thing_is_described(what: str, pages: dict[str, str]) -> None:
    program = "iocast-bench" if what == "backends" else "iocast-sim"
    for entry in json.loads(ask(program, "--list", what, "--json"))[what]:
        described = json.loads(ask(program, "--describe", entry["name"], "--json"))
        for row in [*described.get("parameters", []), *described.get("keys", [])]:
            assert f"{row['name']} {row['meaning']}" in pages[f"iocast-{what}.7"]


@pytest.mark.parametrize("what", ["campaigns", "formats"])
@pytest.mark.needs("tools")
def test_what_the_toolkit_itself_knows_is_described(what: str, iocast: Iocast, pages: dict[str, str]) -> None:
    listed = json.loads(iocast("list", what, "--json").stdout)[what]
    assert len(listed) >= 2 and all(
        f"{entry['name']} {entry['summary']}" in pages[f"iocast-{what}.7"] for entry in listed
    )


def test_without_the_programs_it_says_so(iocast: Iocast, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from iocast.ground import binaries
    from iocast.errors import RunError
    from iocast.cli.manual_pages import write_manual

    def nowhere(name: str) -> str:
        raise RunError(f"The program {name} is not built")

    monkeypatch.setattr(binaries, "find", nowhere)
    with pytest.raises(RunError, match="not built"):
        write_manual(None, tmp_path / "man")
    assert not (tmp_path / "man").exists()
