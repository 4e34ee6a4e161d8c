# SPDX-License-Identifier: Apache-2.0
"""File systems of filesystems.py: each made, mounted and ended by a context manager that gives its directory. Needs
root."""

import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path

from iocast import selftest

SIZE = 12 << 30
PATIENCE = 20.0
"""Seconds until a server must answer."""
THREADS, DELAY = 2, 1e-3
"""Of the GlusterFS brick: requests served at a time, and seconds each is held."""
HELD = "lookup,stat,create,unlink,open"


def _need(program: str, package: str) -> None:
    if shutil.which(program) is None:
        sys.exit(f"{program} is not installed; install the package {package}.")


@contextmanager
def on_loop_device(make: list[str], package: str, place: Path) -> Iterator[Path]:
    """A fresh file system on a file in `place`."""
    _need(make[0], package)
    with tempfile.TemporaryDirectory(prefix="iocast-real-", dir=place) as scratch:
        image, directory = Path(scratch) / "image", Path(scratch) / "mount"
        directory.mkdir()
        with image.open("wb") as file:
            file.truncate(SIZE)
        subprocess.run([*make, str(image)], check=True)
        with _mounted(["mount", "-o", "loop", str(image), str(directory)], directory):
            yield directory


@contextmanager
def tmpfs(place: Path) -> Iterator[Path]:
    with (
        tempfile.TemporaryDirectory(prefix="iocast-real-", dir=place) as scratch,
        _mounted(["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "iocast", scratch], Path(scratch)),
    ):
        yield Path(scratch)


@contextmanager
def queuefs(place: Path) -> Iterator[Path]:
    del place  # it keeps nothing
    with (
        tempfile.TemporaryDirectory(prefix="iocast-queuefs-") as scratch,
        selftest.mounted("queuefs", Path(scratch) / "log.csv", 1) as directory,
    ):
        yield directory


@contextmanager
def glusterfs(place: Path) -> Iterator[Path]:
    """A brick of THREADS threads that sleep for DELAY in each request about names and attributes, behind the FUSE
    client, which caches none of them."""
    _need("glusterfsd", "glusterfs-server")
    _need("glusterfs", "glusterfs-client")
    with tempfile.TemporaryDirectory(prefix="iocast-real-", dir=place) as scratch:
        home = Path(scratch)
        brick, directory = home / "brick", home / "mount"
        brick.mkdir()
        directory.mkdir()
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        layers = [
            ("posix", "storage/posix", {"directory": brick}),
            ("locks", "features/locks", {}),
            (
                "delay",
                "debug/delay-gen",
                {"delay-duration": round(DELAY * 1e6), "delay-percentage": 100, "enable": HELD},
            ),
            ("threads", "performance/io-threads", {"thread-count": THREADS}),
            ("brick", "debug/io-stats", {"unique-id": brick}),
            (
                "server",
                "protocol/server",
                {
                    "transport-type": "tcp",
                    "transport.socket.bind-address": "127.0.0.1",
                    "transport.socket.listen-port": port,
                    "auth.addr.brick.allow": "127.0.0.1",
                },
            ),
        ]
        (home / "server.vol").write_text(_volumes(layers))
        client = {"transport-type": "tcp", "remote-host": "127.0.0.1", "remote-port": port, "remote-subvolume": "brick"}
        (home / "client.vol").write_text(_volumes([("client", "protocol/client", client)]))
        server = subprocess.Popen(["glusterfsd", "-N", "-f", home / "server.vol", "-l", home / "server.log"])
        mount = [
            "glusterfs",
            "-N",
            "-f",
            home / "client.vol",
            "-l",
            home / "client.log",
            "--entry-timeout=0",
            "--attribute-timeout=0",
            directory,
        ]
        daemon = subprocess.Popen(mount)
        try:
            until = time.monotonic() + PATIENCE
            while not _answers(directory):
                if time.monotonic() > until:
                    sys.exit(
                        f"GlusterFS did not answer within {PATIENCE:g} s:\n{(home / 'client.log').read_text()[-2000:]}"
                    )
                time.sleep(0.05)
            yield directory
        finally:
            subprocess.run(["umount", str(directory)], check=False)
            for process in (daemon, server):
                process.terminate()
                process.wait()


def _volumes(layers: list[tuple[str, str, dict[str, object]]]) -> str:
    """A volume file of GlusterFS, each layer on top of the one before."""
    text, below = "", ""
    for name, kind, options in layers:
        lines = [
            f"volume {name}",
            f"  type {kind}",
            *(f"  option {key} {value}" for key, value in options.items()),
            *([f"  subvolumes {below}"] if below else []),
            "end-volume",
        ]
        text += "\n".join(lines) + "\n"
        below = name
    return text


def _answers(directory: Path) -> bool:
    try:
        (directory / "first").mkdir()
        (directory / "first").rmdir()
    except OSError:
        return False
    return directory.is_mount()


@contextmanager
def _mounted(command: list[str], directory: Path) -> Iterator[None]:
    subprocess.run(command, check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", str(directory)], check=True)


MOUNTS: dict[str, Callable[[Path], AbstractContextManager[Path]]] = {
    "ext4": partial(on_loop_device, ["mkfs.ext4", "-q", "-F"], "e2fsprogs"),
    "xfs": partial(on_loop_device, ["mkfs.xfs", "-q", "-f"], "xfsprogs"),
    "btrfs": partial(on_loop_device, ["mkfs.btrfs", "-q", "-f"], "btrfs-progs"),
    "tmpfs": tmpfs,
    "queuefs": queuefs,
    "glusterfs": glusterfs,
}
