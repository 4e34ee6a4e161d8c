# SPDX-License-Identifier: Apache-2.0
"""Finds and runs the two programs, iocast-sim and iocast-bench."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

from iocast.errors import InputError, RunError


def find(name: str) -> str:
    """Path of a program: in $IOCAST_BUILD/bin, in build/bin beside this package, or on $PATH."""
    places = [Path(os.environ["IOCAST_BUILD"]) / "bin"] if "IOCAST_BUILD" in os.environ else []
    places.append(Path(__file__).resolve().parent.parent / "build" / "bin")
    for place in places:
        if (place / name).is_file():
            return str(place / name)
    on_path = shutil.which(name)
    if on_path is None:
        raise RunError(f"The program {name} is not built; run ./quickstart, or set IOCAST_BUILD to the build directory.")
    return on_path


def run_json(arguments: list[str], *, show_progress: bool = False) -> Any:
    """Runs a program that prints one JSON object; its exit code 2 becomes InputError, any other failure RunError.

    Its standard error is kept for the message, or passed through when `show_progress`."""
    try:
        done = subprocess.run(arguments, stdout=subprocess.PIPE, stderr=None if show_progress else subprocess.PIPE, text=True, check=False)
    except OSError as error:
        raise RunError(f"'{arguments[0]}' can't be started: {error.strerror}.") from error
    if done.returncode == 0:
        return json.loads(done.stdout)
    lines = (done.stderr or "").strip().splitlines()
    message = lines[-1] if lines else f"'{' '.join(arguments)}' failed with exit code {done.returncode}."
    message = message.split(": ", 1)[1] if message.startswith(("iocast-sim: ", "iocast-bench: ")) else message
    raise (InputError if done.returncode == 2 else RunError)(message)


def simulate(platform: str | Path, workload: str, settings: dict[str, Any], nodes: int, ranks_per_node: int, seed: int) -> Any:
    """One run of iocast-sim; returns what it prints with --json (docs/run-directory.md)."""
    arguments = [find("iocast-sim"), "--json", "--platform", str(platform), "--workload", workload, "--seed", str(seed)]
    arguments += ["--nodes", str(nodes), "--ppn", str(ranks_per_node)]
    for name, value in settings.items():
        arguments += ["--set", f"{name}={value}"]
    return run_json(arguments)


def resolve_platform(platform: str | Path) -> Any:
    """The platform as the simulator understands it: docs/platforms.md, 'The resolved platform'."""
    return run_json([find("iocast-sim"), "--platform", str(platform), "--print-platform"])
