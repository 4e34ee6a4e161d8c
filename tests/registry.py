# SPDX-License-Identifier: Apache-2.0
"""What the built programs list and describe. Tests are collected from it, so it is made once for each build, and kept
beside it."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

from programs import REPOSITORY, find_program

KINDS = {
    "iocast-bench": ("patterns", "workloads", "backends"),
    "iocast-sim": ("patterns", "workloads", "platforms", "primitives"),
}


def listed(program: str, kind: str) -> list[dict[str, Any]]:
    """Entries of `program --list KIND --json`; nothing where the program is not built."""
    found: list[dict[str, Any]] = _registry(program).get(kind, [])
    return found


def described(program: str, name: str) -> dict[str, Any]:
    """`program --describe NAME --json`, of a pattern or a workload."""
    found: dict[str, Any] = _registry(program)["described"][name]
    return found


def operations_of(name: str, settings: str) -> dict[str, int]:
    """Operations by kind of one rank of a workload with one of its small settings, as iocast-bench plans them."""
    found: dict[str, int] = _registry("iocast-bench")["operations"][f"{name} {settings}"]
    return found


def workload_names(program: str) -> list[str]:
    """Patterns and workloads, each name once."""
    return sorted({entry["name"] for kind in ("patterns", "workloads") for entry in listed(program, kind)})


def answer(program: Path, *arguments: str) -> Any:
    """The JSON that a program prints. @raises AssertionError with its standard error, when it fails"""
    done = subprocess.run([str(program), *arguments, "--json"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, (
        f"{program.name} {' '.join(arguments)} failed with exit status {done.returncode}: {done.stderr}"
    )
    return json.loads(done.stdout)


@cache
def _registry(name: str) -> dict[str, Any]:
    program = find_program(name)
    if program is None:
        return {}
    directory = program.parents[1] / "registries"
    directory.mkdir(exist_ok=True)
    file = directory / f"{name}-{_key(program)}.json"
    with (directory / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # collections at the same time wait for the one that asks
        if file.exists():
            kept: dict[str, Any] = json.loads(file.read_text())
            return kept
        made = _ask(program)
        written = file.with_suffix(".new")
        written.write_text(json.dumps(made))
        written.replace(file)
        return made


def _key(program: Path) -> str:
    """Changes with the program, the libraries that it loads, and the files that it reads its workloads and platforms
    from."""
    digest = hashlib.sha256(os.environ.get("IOCAST_HOME", "").encode())
    for file in (program, *sorted((program.resolve().parents[1] / "lib" / "iocast").glob("*.so"))):
        status = file.stat()
        digest.update(f"{file.name} {status.st_size} {status.st_mtime_ns}".encode())
    for file in (
        *sorted((REPOSITORY / "workload" / "catalogue").iterdir()),
        *sorted((REPOSITORY / "platforms").rglob("*.yaml")),
        Path(__file__),
    ):
        digest.update(file.name.encode() + file.read_bytes())
    return digest.hexdigest()[:16]


def _ask(program: Path) -> dict[str, Any]:
    found: dict[str, Any] = {kind: answer(program, "--list", kind)[kind] for kind in KINDS[program.name]}
    names = {entry["name"] for kind in ("patterns", "workloads") for entry in found[kind]}
    found["described"] = {name: answer(program, "--describe", name) for name in sorted(names)}
    if program.name == "iocast-bench":
        found["operations"] = {
            f"{name} {settings}": answer(program, "--workload", name, *_arguments(settings), "--dry-run")["footprint"][
                "operations"
            ]
            for name, described in found["described"].items()
            for settings in described["small"]
        }
    return found


def _arguments(settings: str) -> list[str]:
    return [part for setting in settings.split() for part in ("--set", setting)]
