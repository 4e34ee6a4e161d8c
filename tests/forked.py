# SPDX-License-Identifier: Apache-2.0
"""The command line `iocast` without its start: each call is a process of its own, forked from one that has imported
everything.

Python and SciPy take half a second of a core to start, which is more than most commands take."""

from __future__ import annotations

import array
import contextlib
import gc
import importlib
import json
import os
import pkgutil
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from itertools import cycle
from pathlib import Path
from types import TracebackType
from typing import IO

from programs import REPOSITORY

used = [0.0, 0.0]
"""Processor seconds, of the user's and of the system's mode, of calls whose server has not ended yet."""
started = [0.0, 0.0]
"""Processor seconds of servers that have ended, without their calls."""
SERVER = "import sys; sys.path[:0] = {path!r}; from forked import serve; serve({socket})"
LIBRARIES = ("scipy.optimize", "scipy.stats", "altair", "jinja2", "typer._adapters")
"""What commands import when they run, beside the modules of iocast itself."""
HASHED = ("iocast.study.evaluate", "iocast.calibrate.search")
"""Modules by whose sources commands find what was computed before."""


class Iocast:
    """Runs `iocast`. Use as a context manager. Calls alternate between two servers with different hash seeds, so that
    an answer that depends on the order of a set differs between calls, as it would between processes."""

    def __init__(self) -> None:
        self._servers: list[tuple[socket.socket, subprocess.Popen[bytes]]] = []
        self._lock = threading.Lock()

    def __enter__(self) -> Iocast:
        for seed in ("1", "2"):
            ours, theirs = socket.socketpair()
            command = SERVER.format(path=[str(Path(__file__).parent), str(REPOSITORY)], socket=theirs.fileno())
            environment = {**os.environ, "PYTHONHASHSEED": seed}
            self._servers.append(
                (
                    ours,
                    subprocess.Popen(
                        [sys.executable, "-c", command],
                        pass_fds=[theirs.fileno()],
                        env=environment,
                        stdin=subprocess.DEVNULL,
                    ),
                )
            )
            theirs.close()
        self._turns = cycle(self._servers)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        for connection, _ in self._servers:
            connection.close()
        for _, server in self._servers:
            try:
                server.wait(10)
            except subprocess.TimeoutExpired:  # it may still be importing, on a loaded machine; no call waits for it
                server.kill()
                server.wait()
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        started[0] += after.ru_utime - before.ru_utime - used[0]
        started[1] += after.ru_stime - before.ru_stime - used[1]
        used[:] = 0.0, 0.0

    def __call__(
        self, arguments: list[str], environment: dict[str, str], timeout: float
    ) -> subprocess.CompletedProcess[str]:
        """@raises subprocess.TimeoutExpired after having killed it"""
        with self._lock:
            connection, _ = next(self._turns)
        ours, theirs = socket.socketpair()
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err, ours:
            request = {
                "arguments": arguments,
                "environment": environment,
                "directory": os.getcwd(),
                "cores": sorted(os.sched_getaffinity(0)),
            }
            with theirs:
                descriptors = array.array("i", [theirs.fileno(), out.fileno(), err.fileno()])
                connection.sendmsg([b"call"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, descriptors)])
            ours.sendall(json.dumps(request).encode() + b"\n")
            ours.settimeout(timeout)
            try:
                answer = ours.makefile().readline()
            except TimeoutError as error:
                ours.shutdown(socket.SHUT_WR)  # at which it is killed
                raise subprocess.TimeoutExpired(["iocast", *arguments], timeout, _text(out), _text(err)) from error
            assert answer, f"the server of iocast ended: {_text(err)}"
            status, user, system = json.loads(answer)
            with self._lock:
                used[0] += user
                used[1] += system
            return subprocess.CompletedProcess(["iocast", *arguments], status, _text(out), _text(err))


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode().replace("\r\n", "\n")


def serve(number: int) -> None:
    """Forks a process for each call that comes through the socket of this number, until that is closed."""
    import iocast

    own = pkgutil.walk_packages(iocast.__path__, "iocast.")
    for module in (*LIBRARIES, *(one.name for one in own if not one.name.endswith("__main__"))):
        importlib.import_module(module)
    from iocast.platforms.content import program_hash, sources_of

    for module in HASHED:  # once, and not by each call
        program_hash([], sources_of(module))
    gc.collect()
    gc.freeze()  # collections in a fork would copy all that it shares
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    with socket.socket(fileno=number) as calls:
        while True:
            message, descriptors, _, _ = socket.recv_fds(calls, 16, 3)
            while _ended():
                pass
            if not message:
                return
            if os.fork() == 0:
                calls.close()
                _watch(*descriptors)
            for descriptor in descriptors:
                os.close(descriptor)


def _ended() -> bool:
    """Takes note of a watcher that has ended, if there is one."""
    try:
        return os.waitpid(-1, os.WNOHANG)[0] != 0
    except ChildProcessError:
        return False


def _watch(number: int, out: int, err: int) -> None:
    """Reads a request, forks the process that carries it out, and answers with its exit status and its processor
    seconds, of the user's and of the system's mode. Ends with this process's end."""
    caller = socket.socket(fileno=number)
    request = json.loads(caller.makefile().readline())
    child = os.fork()
    if child == 0:
        caller.close()
        _run(request, out, err)

    def end_with_the_caller() -> None:
        if caller.recv(1) == b"":
            with contextlib.suppress(ProcessLookupError):  # it has ended
                os.kill(child, signal.SIGKILL)

    threading.Thread(target=end_with_the_caller, daemon=True).start()
    _, status, usage = os.wait4(child, 0)
    try:
        answer = [os.waitstatus_to_exitcode(status), usage.ru_utime, usage.ru_stime]
        caller.sendall(json.dumps(answer).encode() + b"\n")
    except OSError:
        pass  # who called has stopped waiting
    os._exit(0)


def _run(request: dict[str, object], out: int, err: int) -> None:
    os.dup2(out, 1)
    os.dup2(err, 2)
    os.closerange(3, 256)
    os.environ.clear()
    os.environ.update(request["environment"])  # type: ignore[call-overload]
    os.chdir(str(request["directory"]))
    os.sched_setaffinity(0, request["cores"])  # type: ignore[arg-type]
    sys.argv = ["-c", *request["arguments"]]  # type: ignore[misc]
    status = 1
    try:
        from iocast.cli import main

        main()
        status = 0
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
    except BaseException:
        sys.excepthook(*sys.exc_info())  # type: ignore[arg-type]
    finally:
        _finish(status)


def _finish(status: int) -> None:
    """What the interpreter does at its end: exit functions, other threads waited for, output flushed."""
    import atexit

    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            status = status or 120
    os._exit(status)
