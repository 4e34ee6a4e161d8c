# SPDX-License-Identifier: Apache-2.0
"""iocast describe PLATFORM: every route as text and as a drawing."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from programs import REPOSITORY
from schedule import mostly_long

from iocast.ground import binaries
from iocast.platforms.drawing import platform_text
from iocast.errors import InputError
from iocast.report.page import write_routes
from iocast.whatif.page_file import write_page

Iocast = Callable[..., subprocess.CompletedProcess[str]]


def described(name: str) -> dict[str, Any]:
    found: dict[str, Any] = binaries.run_json([binaries.find("iocast-sim"), "--describe", name, "--json"])
    return found


@pytest.mark.parametrize("platform", [path.stem for path in sorted((REPOSITORY / "platforms").glob("*.yaml"))])
def test_all_of_a_platform_is_drawn(tmp_path: Path, platform: str) -> None:
    resolved = described(platform)
    write_routes(resolved, tmp_path / "routes.svg")
    lines = platform_text(resolved).splitlines()
    assert lines[0] == platform
    for station in resolved["stations"]:
        assert any(re.match(rf"  {re.escape(station)} +\S", line) for line in lines)
    for operation, parts in resolved["operations"].items():
        begin = lines.index(f"  {operation}")
        end = next((n for n in range(begin + 1, len(lines)) if not lines[n]), len(lines))
        steps = sum(
            len(part["steps"]) or 1 for part in parts
        )  # at least one line each; those with steps inside have more
        assert end - begin - 1 >= steps
    texts = [
        "".join(one.itertext()) for one in ElementTree.parse(tmp_path / "routes.svg").iter() if one.tag.endswith("text")
    ]
    drawn = {operation for operation, parts in resolved["operations"].items() if any(part["steps"] for part in parts)}
    assert drawn <= set(texts) and f"Routes of {platform}" in texts


def test_every_kind_of_step_has_its_words(iocast: Iocast, tmp_path: Path) -> None:
    """Those of the platform that holds all that one may hold."""
    page = (REPOSITORY / "docs" / "platforms.md").read_text()
    file = tmp_path / "everything.yaml"
    example = re.search(r"```yaml\n(schema_version: 1\n(?:#.*\n)?extends: lustre\n.*?)```", page, re.DOTALL)
    assert example is not None
    file.write_text(example[1])
    resolved = described(str(file))
    reported = platform_text(resolved)
    kinds = {
        kind
        for step in steps_of(resolved)
        for kind in ("limit", "delay", "transfer", "buffer", "flush", "take", "cache", "forget", "station")
        if kind in step
    }
    assert kinds == {"limit", "delay", "transfer", "buffer", "flush", "take", "cache", "forget", "station"}
    for words in (
        "with a slot of rpcs:", "delay  5.00 us rtt", "bytes to oss",
        "bytes from oss, a part at each instance that has bytes of it", "bytes into buffer writeback",
        "wait until buffer cache has drained (everywhere)",
        "take one of pool precreated", "look into cache inodes", "cache inodes forgets it", "miss:",
        "30 % of it with lock directory", "with lock extent (shared)", "and if that was called back:",
        "in 4 parts at a time",
        "for each entry", "for each block + bytes at 5 GB/s", "slices of 3.00 ms", "  drain", "  refill",
        "first stat open, then rest, then drain background",
    ):  # fmt: skip
        assert words in reported, words
    assert "{" not in reported, "something is shown as data"


def steps_of(node: Any) -> Iterator[dict[str, Any]]:
    if isinstance(node, dict):
        yield node
        node = list(node.values())
    if isinstance(node, list):
        for one in node:
            yield from steps_of(one)


def test_the_command(iocast: Iocast, tmp_path: Path) -> None:
    done = iocast("describe", "cephfs", "--svg", tmp_path / "routes.svg")
    assert done.returncode == 0 and (tmp_path / "routes.svg").read_text().startswith("<svg")
    assert done.stdout.startswith(platform_text(described("cephfs"))) and done.stdout.endswith(
        "\nThere is a backend of this name, too: iocast describe cephfs --backend\n"
    )
    assert json.loads(iocast("describe", "cephfs", "--backend", "--json").stdout)["kind"] == "backend"
    assert json.loads(iocast("describe", "cephfs", "--json").stdout) == described("cephfs")
    assert "There is no backend 'lustre'." in iocast("describe", "lustre", "--backend").stderr


def test_only_platforms_have_routes(iocast: Iocast, tmp_path: Path) -> None:
    done = iocast("describe", "md-workbench", "--svg", tmp_path / "routes.svg")
    assert done.returncode == 2 and "Only a platform has routes to draw; 'md-workbench' is a workload." in done.stderr
    assert not (tmp_path / "routes.svg").exists()


def test_a_page_takes_no_other_files_place(iocast: Iocast, tmp_path: Path) -> None:
    """Neither a page of a platform nor a report: only an earlier page is written anew, and no directory is made."""
    page, notes = tmp_path / "page.html", tmp_path / "notes.html"
    notes.write_text("<p>mine</p>")
    for _ in range(2):
        assert iocast("describe", "local", "--page", page).returncode == 0
    done = iocast("describe", "local", "--page", notes)
    assert done.returncode == 2 and f"'{notes}' exists and is no page of iocast" in done.stderr
    with pytest.raises(InputError, match="no page of iocast"):
        write_page(notes, "<p>another</p>")
    assert notes.read_text() == "<p>mine</p>"
    done = iocast("describe", "local", "--page", tmp_path / "new" / "page.html")
    assert done.returncode == 2 and "is not a directory; make it first" in done.stderr
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("alone", mostly_long(["iocast-bench", "iocast-sim"], ["iocast-sim"], "the other way round"))
def test_one_program_alone_answers_what_it_knows(alone: str, simulator: Path, iocast: Iocast, tmp_path: Path) -> None:
    """A laptop may have no MPI, a compute node no SimGrid. What only the other program knows is an error that names
    it."""
    other = ({"iocast-bench", "iocast-sim"} - {alone}).pop()
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / alone).symlink_to(simulator.with_name(alone))
    both = {what: iocast("list", what, "--json").stdout for what in ("workloads", "patterns")}
    environment = {"IOCAST_BUILD": str(tmp_path), "PATH": "/usr/bin:/bin"}

    def ask(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [
            sys.executable,
            "-c",
            (
                "from pathlib import Path; from iocast.ground import binaries; "
                f"binaries.CHECKOUT = Path({str(tmp_path)!r}); from iocast.cli import main; main()"
            ),
        ]
        return subprocess.run(
            [*command, *arguments],
            capture_output=True,
            text=True,
            env=environment | {"PYTHONPATH": str(REPOSITORY)},
            timeout=120,
        )

    for what, listed in both.items():
        assert ask("list", what, "--json").stdout == listed
    assert json.loads(ask("describe", "md-workbench", "--json").stdout)["name"] == "md-workbench"
    known, unknown = ("lustre", "posix") if alone == "iocast-sim" else ("posix", "lustre")
    assert ask("describe", known).returncode == 0
    done = ask("describe", unknown, *(["--backend"] if unknown == "posix" else []))
    assert done.returncode == 1 and f"The program {other} is not built; build it" in done.stderr, done.stderr
