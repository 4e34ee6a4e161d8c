#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What two versions of iocast answer differently: every command of cases.yaml runs with both, and each difference in
what they print and write is one line.

    validation/same/same.py BEFORE [AFTER] [--only GROUP...] [--keep DIR] [--lines 20]

BEFORE and AFTER (by default the checkout of this file) are each a checkout, a commit, or a directory that `--keep`
wrote. A commit's Python runs with the programs that are built here; a checkout's runs with its own. With `--keep`
only BEFORE runs, and its results stay in DIR.

Times, paths, versions and hashes of programs are masked (MASKED, PATTERNS). Commands that measure this machine are
compared by the names and kinds of the values that they print and write as JSON. Exit status 4 when something differs.
Two minutes of processor time a version; `--only catalogue answers` takes a tenth of it."""

from __future__ import annotations

import argparse
import difflib
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
MASKED = {
    *("ended", "made_at", "started", "wall_seconds", "requests_per_second", "peak_rss_bytes"),  # this machine, now
    *("content_hash", "iocast", "program", "program_hash", "programs", "version", "versions"),
}
"""Keys of JSON and YAML whose values are not compared."""
PATTERNS = (
    (r"\b20\d\d-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?(\.\d+)?(Z|[+-]\d\d:?\d\d)?( UTC)?", "TIME"),
    (r"iocast-scratch-[\w-]+", "SCRATCH"),
    (r"(?m)^ *\[\d+/\d+\].*\n", ""),  # a long step prints how far it is
    (r"requests simulated in .*", "requests simulated"),
)
"""Regular expressions that are masked in every text."""
NUMBER = r"(?<![A-Za-z_])\d[\d.,]*(e[+-]?\d+)?( ?[numkMG]?(s|B|/s)\b)?"


@dataclass(frozen=True)
class Command:
    """A command of cases.yaml. `numbers`: whether those that it prints and writes are compared."""

    line: str
    numbers: bool


def read_cases(only: list[str]) -> dict[str, list[Command]]:
    """Commands by group. @raises SystemExit for a group that cases.yaml lacks"""
    written: dict[str, list[Any]] = yaml.safe_load((HERE / "cases.yaml").read_text())
    if unknown := set(only) - set(written):
        sys.exit(f"cases.yaml has no group {', '.join(sorted(unknown))}; its groups: {', '.join(written)}.")
    return {
        group: [Command(one, True) if isinstance(one, str) else Command(one["run"], False) for one in commands]
        for group, commands in written.items()
        if not only or group in only
    }


def checkout_of(version: str, scratch: Path) -> Path:
    """The directory of a checkout, or that of a commit, extracted into `scratch`."""
    if (Path(version) / "iocast" / "__init__.py").is_file():
        return Path(version).resolve()
    archive = subprocess.run(["git", "-C", ROOT, "archive", version], capture_output=True, check=False)
    if archive.returncode:
        sys.exit(f"'{version}' is neither a checkout, a directory that --keep wrote, nor a commit.")
    place = scratch / "checkout"
    place.mkdir()
    subprocess.run(["tar", "-x", "-C", place], input=archive.stdout, check=True)
    return place


def run(version: str, cases: dict[str, list[Command]], out: Path) -> None:
    """Carry out the commands with a version; `out` gets a folder a group with what they printed and wrote."""
    with tempfile.TemporaryDirectory(prefix="same-") as scratch:
        checkout = checkout_of(version, Path(scratch))
        build = checkout / "build" if (checkout / "build" / "bin").is_dir() else ROOT / "build"
        python = checkout / ".venv" / "bin" / "python"
        programs = {
            "iocast": [str(python) if python.is_file() else sys.executable, "-m", "iocast"],
            "iocast-sim": [str(build / "bin" / "iocast-sim")],
        }
        environment = os.environ | {
            "PYTHONPATH": os.pathsep.join([str(checkout), str(ROOT / "tests" / "brief")]),
            "IOCAST_BUILD": str(build),
            "IOCAST_HOME": str(checkout),
            "COLUMNS": "200",
        }
        for group, commands in cases.items():
            place = out / group
            place.mkdir(parents=True)
            (place / "inputs").symlink_to(ROOT)
            (place / "storage").mkdir()
            for number, command in enumerate(commands, 1):
                program, *arguments = shlex.split(command.line)
                print(f"{version}: {command.line}", file=sys.stderr)
                done = subprocess.run([*programs[program], *arguments], cwd=place, env=environment, capture_output=True)
                shown = [f"exit status {done.returncode}\n".encode(), done.stdout, b"--- standard error\n", done.stderr]
                (place / f"{number:02}.printed").write_bytes(b"".join(shown))
            (place / "inputs").unlink()
        paths = {str(out.resolve()): "RESULTS", str(build): "BUILD", str(checkout): "CHECKOUT", str(ROOT): "CHECKOUT"}
        (out / "paths.json").write_text(json.dumps(paths))


def masked(text: str, paths: dict[str, str]) -> str:
    """The text without what differs from run to run."""
    for path in sorted(paths, key=len, reverse=True):
        text = text.replace(path, paths[path])
    for pattern, name in PATTERNS:
        text = re.sub(pattern, name, text)
    return text


def leaves(value: Any, numbers: bool, where: str = "") -> Iterator[str]:
    """One line a value of a document: its place and itself. Without `numbers`, its place and kind, each once."""
    if isinstance(value, dict):
        for key, one in value.items():
            yield from [f"{where}.{key}: masked"] if key in MASKED else leaves(one, numbers, f"{where}.{key}")
    elif isinstance(value, list):
        for place, one in enumerate(value):
            yield from leaves(one, numbers, f"{where}[{place if numbers else ''}]")
        if not value:
            yield f"{where}: []"
    elif numbers:
        yield f"{where}: {value!r}"
    else:
        yield f"{where}: {'number' if isinstance(value, int | float) else type(value).__name__}"


def lines_of(file: Path, paths: dict[str, str], numbers: bool) -> list[str]:
    """What is compared of a file: values of JSON and YAML, lines of other text, the length of anything else."""
    try:
        text = masked(file.read_text(), paths)
    except UnicodeDecodeError:
        return [f"{file.stat().st_size} bytes"]
    document = re.search(r"^\{$.*?^\}$|^\{.*\}$", text, re.M | re.S) if file.suffix == ".printed" else None
    if file.suffix == ".yaml":
        found = list(leaves(yaml.safe_load(text), numbers))
    elif file.suffix == ".json":
        found = list(leaves(json.loads(text), numbers))
    elif document:
        around = text[: document.start()] + text[document.end() :]
        found = [*leaves(json.loads(document.group()), numbers), *around.splitlines()]
    elif file.suffix == ".html":
        found = re.sub(r"(?<=>)(?=<)|(?<=[,{}])(?=\")", "\n", re.sub(r"\b[0-9a-f]{16,64}\b", "HASH", text)).splitlines()
    else:
        found = text.splitlines()
    return found if numbers else sorted({re.sub(NUMBER, "#", line) for line in found})


def differences(before: Path, after: Path, cases: dict[str, list[Command]], most: int) -> Iterator[str]:
    """One line for each difference between two directories of results, at most `most` of a file."""
    paths = [json.loads((side / "paths.json").read_text()) for side in (before, after)]
    for group, commands in cases.items():
        files = [{f.relative_to(s) for f in (s / group).rglob("*") if f.is_file()} for s in (before, after)]
        numbers = all(command.numbers for command in commands)
        if numbers:
            yield from (f"{file}: written before only" for file in sorted(files[0] - files[1]))
            yield from (f"{file}: written after only" for file in sorted(files[1] - files[0]))
        for file in sorted(files[0] & files[1]):
            if file.suffix in (".sqlite", ".jsonl") or not (numbers or file.suffix in (".json", ".printed")):
                continue
            one, other = (lines_of(side / file, of, numbers) for side, of in zip((before, after), paths, strict=True))
            if one == other:
                continue
            changed = [
                line
                for line in difflib.unified_diff(one, other, n=0, lineterm="")
                if not re.match(r"---|\+\+\+|@@", line)
            ]
            named = f" ({commands[int(file.stem) - 1].line})" if file.suffix == ".printed" else ""
            yield from (f"{file}{named}: {line[:300]}" for line in changed[:most])
            if len(changed) > most:
                yield f"{file}{named}: {len(changed) - most} more lines differ"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before")
    parser.add_argument("after", nargs="?", default=str(ROOT))
    parser.add_argument("--only", nargs="+", default=[])
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--lines", type=int, default=20)
    options = parser.parse_args()
    cases = read_cases(options.only)
    if options.keep:
        run(options.before, cases, options.keep)
        return
    with tempfile.TemporaryDirectory(prefix="same-") as scratch:
        sides = []
        for name, version in (("b", options.before), ("a", options.after)):
            kept = Path(version)
            if not (kept / "paths.json").is_file():
                kept = Path(scratch) / name
                run(version, cases, kept)
            sides.append(kept)
        found = list(differences(sides[0], sides[1], cases, options.lines))
    print("\n".join(found) or f"{sum(map(len, cases.values()))} commands print and write the same.")
    sys.exit(4 if found else 0)


if __name__ == "__main__":
    main()
