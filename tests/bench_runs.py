# SPDX-License-Identifier: Apache-2.0
"""What the tests of iocast-bench share: the result of a run, and ways to look at it."""

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

SMALL = ["--set", "datasets=2", "--set", "objects=20", "--set", "iterations=10"]
MANIFEST = "iocast.manifest.json"


class Done(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        return json.loads(self.out)

    @property
    def messages(self) -> list[str]:
        """Messages of iocast-bench itself, without its warnings and without those of mpirun."""
        prefix = "iocast-bench: "
        lines = [line[len(prefix) :] for line in self.err.splitlines() if line.startswith(prefix)]
        return [line for line in lines if not line.startswith("warning: ")]


Run = Callable[..., Done]


def settings_arguments(text: str) -> list[str]:
    """ "a=1 b=2" as arguments."""
    return [part for setting in text.split() for part in ("--set", setting)]


def counts(phase: dict[str, Any]) -> dict[str, int]:
    return {tag: row["count"] for tag, row in phase["latency"].items() if "." not in tag}


def total_counts(result: dict[str, Any]) -> dict[str, int]:
    total: dict[str, int] = {}
    for phase in result["phases"]:
        for op, count in counts(phase).items():
            total[op] = total.get(op, 0) + count
    return total


def tree(directory: Path) -> dict[str, bytes]:
    return {str(p.relative_to(directory)): p.read_bytes() for p in sorted(directory.rglob("*")) if p.is_file()}


def expect_refusal(done: Done, *words: str) -> None:
    assert done.code == 2, done.err
    assert done.out == ""
    assert len(done.messages) == 1, done.err
    assert done.messages[0].endswith(".")
    for word in words:
        assert word in done.messages[0]


def expect_nothing_there(done: Done) -> None:
    """Of `--sweep` where nothing is left; exit code 4 is what iocast tells it by."""
    assert (done.code, done.out) == (4, ""), done.err
    assert [text.endswith("is empty; there is nothing to sweep.") for text in done.messages] == [True]


def wait_for(condition: Callable[[], bool], seconds: float = 120) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not come to pass"
        time.sleep(0.02)


def manifest_phase(root: Path) -> str:
    try:
        return json.loads((root / MANIFEST).read_text())["phase"]
    except (FileNotFoundError, json.JSONDecodeError):
        return ""


def ranks_in(directory: Path) -> list[int]:
    """Processes of iocast-bench that have `directory` on their command line."""
    found = []
    for process in Path("/proc").iterdir():
        try:
            command = (process / "cmdline").read_bytes().split(b"\0")
        except (OSError, NotADirectoryError):
            continue
        if command[0].endswith(b"iocast-bench") and os.fsencode(directory) in command:
            found.append(int(process.name))
    return found


def injected(library: Path, call: str, after: int = 1, number: int = 0) -> dict[str, str]:
    """For the environment: what tests/mpi/inject.c is to do."""
    return {"LD_PRELOAD": str(library), "INJECT_CALL": call, "INJECT_AFTER": str(after), "INJECT_ERRNO": str(number)}
