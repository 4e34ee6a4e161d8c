# SPDX-License-Identifier: Apache-2.0
"""Finds and runs the two programs, iocast-sim and iocast-bench."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import threading
from functools import lru_cache
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from iocast.ground import progress
from iocast.errors import InputError, RunError
from iocast.ground.processes import start
from iocast.records.simulated import CountedWorkload, ResolvedWorkload, SimulatedRun
from iocast.records.platform import ResolvedPlatform


CHECKOUT = Path(__file__).resolve().parents[2]
"""Where this package lies in a clone of the repository."""
known_as: dict[str, str] = {}
"""Temporary platform files by their path, with the file or platform that the user named: programs' sentences name the
latter."""


def find(name: str) -> str:
    """Path of a program: in $IOCAST_BUILD/bin, in build/bin beside this package, or on $PATH. @raises RunError when it
    is nowhere"""
    found = _find(name)
    if found is None:
        how = (
            "run ./quickstart"
            if (CHECKOUT / "quickstart").is_file()
            else "build it from iocast's sources (README.md) and put it on PATH"
        )
        raise RunError(f"The program {name} is not built; {how}, or set IOCAST_BUILD to the build directory.")
    return found


def files_of(name: str) -> list[Path]:
    """The program, and the libraries that it loads when a command needs them (input/own_library.hpp); those of backends
    are iocast-bench's. @raises RunError as find()"""
    program = Path(find(name)).resolve()
    libraries = sorted((program.parents[1] / "lib" / "iocast").glob("*.so"))
    return [program, *(one for one in libraries if name == "iocast-bench" or not one.name.startswith("backend-"))]


def is_built(name: str) -> bool:
    """Whether there is such a program: iocast-bench and iocast-sim can be built and installed without each other."""
    return _find(name) is not None


def _find(name: str) -> str | None:
    places = [Path(os.environ["IOCAST_BUILD"]) / "bin"] if "IOCAST_BUILD" in os.environ else []
    places.append(CHECKOUT / "build" / "bin")
    for place in places:
        if (place / name).is_file():
            return str(place / name)
    return shutil.which(name)


@lru_cache(maxsize=None)
def version(program: str) -> str:
    """The line that a program prints of itself and of the libraries that it was built with."""
    try:
        return subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError) as error:
        raise RunError(f"'{program}' can't be started: {error}.") from error


def run_json(arguments: list[str], *, show_progress: bool = False) -> Any:
    """Runs a program that prints one JSON object; its exit code 2 becomes InputError, any other failure RunError.

    Its standard error is kept for the message, or passed through when `show_progress`."""
    try:
        if Path(arguments[0]).name == "iocast-sim" and not show_progress:
            done = _started(arguments[0]).run(arguments[1:])
        else:
            done = subprocess.run(
                arguments,
                stdout=subprocess.PIPE,
                stderr=None if show_progress else subprocess.PIPE,
                text=True,
                check=False,
            )
    except OSError as error:
        raise RunError(f"'{arguments[0]}' can't be started: {error.strerror}.") from error
    if done.returncode == 0:
        return json.loads(done.stdout)
    lines = (done.stderr or "").strip().splitlines()
    message = lines[-1] if lines else f"'{' '.join(arguments)}' failed with exit code {done.returncode}."
    message = message.split(": ", 1)[1] if message.startswith(("iocast-sim: ", "iocast-bench: ")) else message
    raised = (InputError if done.returncode == 2 else RunError)(_with_known_names(message))
    raised.code = _code_in(done.stdout) or raised.code
    raise raised


def _code_in(answer: str) -> str:
    """The code of `{"error": {"code": ..., "message": ...}}`; empty when the answer is something else."""
    try:
        return str(json.loads(answer)["error"]["code"])
    except (ValueError, KeyError, TypeError):
        return ""


def _with_known_names(sentence: str) -> str:
    """The sentence with what the user named in place of temporary files, whose lines nobody else sees."""
    known = list(known_as.items())
    for path, name in known:
        sentence = re.sub(re.escape(path) + r"(:\d+)?", name.replace("\\", r"\\"), sentence)
    for path, name in known:
        sentence = sentence.replace(f"'{Path(path).stem}'", f"'{Path(name).stem}'")
    return sentence


def simulate(
    platform: str | Path,
    workload: str,
    settings: Mapping[str, object],
    nodes: int,
    ranks_per_node: int,
    seed: int,
    *,
    brief: bool = True,
    placement: str = "block",
) -> SimulatedRun:
    """One run of iocast-sim; returns what it prints with --json, and unless it is to be the whole, with --brief
    (docs/run-directory.md)."""
    arguments = [
        find("iocast-sim"),
        "--json",
        *(["--brief"] if brief else []),
        "--platform",
        str(platform),
        "--workload",
        workload,
        "--seed",
        str(seed),
    ]
    arguments += ["--nodes", str(nodes), "--ppn", str(round(ranks_per_node))]
    arguments += ["--placement", placement] if placement != "block" else []
    arguments.append("--beyond")  # callers refuse what is too far, before they simulate
    for name, value in settings.items():
        arguments += ["--set", f"{name}={value}"]
    return cast(SimulatedRun, run_json(arguments))


def as_setting(value: object) -> str:
    """A parameter's value as the programs' --set takes it, without its unit: True is "true"."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def as_settings(values: Mapping[str, object]) -> dict[str, str]:
    """Values of YAML, JSON or Python."""
    return {name: as_setting(value) for name, value in values.items()}


def resolve_workload(
    workload: str, settings: Mapping[str, object], nodes: int, ranks_per_node: int
) -> ResolvedWorkload:
    """The workload as the simulator understands it, without simulating."""
    return cast(ResolvedWorkload, run_json(_print_workload(workload, settings, nodes, ranks_per_node)))


def count_operations(
    workload: str, settings: Mapping[str, object], nodes: int, ranks_per_node: int, most: int
) -> CountedWorkload:
    """The same with what the ranks ask for (workload/count.hpp), of which at most `most` operations are counted."""
    arguments = _print_workload(workload, settings, nodes, ranks_per_node)
    return cast(CountedWorkload, run_json([*arguments, "--count-operations", str(most)]))


def _print_workload(workload: str, settings: Mapping[str, object], nodes: int, ranks_per_node: int) -> list[str]:
    arguments = [
        find("iocast-sim"),
        "--print-workload",
        "--workload",
        workload,
        "--nodes",
        str(nodes),
        "--ppn",
        str(round(ranks_per_node)),
    ]
    for name, value in settings.items():
        arguments += ["--set", f"{name}={value}"]
    return arguments


def resolve_platform(platform: str | Path) -> ResolvedPlatform:
    """The platform as the simulator understands it: docs/platforms.md, 'The resolved platform'."""
    printed = run_json([find("iocast-sim"), "--platform", str(platform), "--print-platform"])
    return cast(ResolvedPlatform, printed)


class _Simulator:
    """An iocast-sim that has started and runs one command line after the other (sim/serve.hpp): most simulations take
    less time than its start."""

    def __init__(self, program: str) -> None:
        self._process = start([program, "--serve"], signal.SIGKILL, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._answering = False

    def __del__(self) -> None:
        if not hasattr(self, "_process"):
            return
        if self._answering:  # nobody waits for that simulation any more, which may take minutes
            self._process.kill()
        self._process.__exit__(None, None, None)  # closes its input, at which it ends

    def run(self, arguments: list[str]) -> subprocess.CompletedProcess[str]:
        """@raises RunError when it ends instead of answering"""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._answering = True
        request = {"directory": os.getcwd(), "arguments": arguments}
        try:
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            self._process.stdin.flush()
            answer = self._process.stdout.readline()
            while b"share" in answer:
                progress.simulating(**json.loads(answer))
                answer = self._process.stdout.readline()
        except BrokenPipeError:
            answer = b""
        if not answer:
            raise RunError(f"iocast-sim ended in the middle of a simulation: {' '.join(arguments)}.")
        sizes = json.loads(answer)
        out, err = (self._process.stdout.read(sizes[which]).decode() for which in ("out", "err"))
        self._answering = False
        return subprocess.CompletedProcess(arguments, sizes["code"], out, err)

    @property
    def ready(self) -> bool:
        """Whether it can take a command line: it is there, and nobody was interrupted who waited for an earlier
        answer."""
        return not self._answering and self._process.poll() is None


_simulators = threading.local()


def _started(program: str) -> _Simulator:
    """This thread's, started again when its surroundings have changed or it is gone."""
    key = (os.getpid(), program, os.path.getmtime(program), os.environ.get("IOCAST_HOME"))
    if getattr(_simulators, "key", None) != key or not _simulators.simulator.ready:
        _simulators.simulator, _simulators.key = _Simulator(program), key
    simulator: _Simulator = _simulators.simulator
    return simulator
