# SPDX-License-Identifier: Apache-2.0
"""Laboratories: nodes, the network between them, a server, and commands that run there.

Every node is a set of name spaces: network, host name, mounts. All nodes share the processes of the laboratory.

    head (10.78.0.1, bridge) --- node1 (10.78.0.11), node2 (10.78.0.12), ...
                            \\-- server1 (10.78.0.201), ..."""

from __future__ import annotations

import contextlib
import math
import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import psutil

from iocast.campaign.hosts import NAMED
from iocast.errors import InputError, RunError
from iocast.ground.files import write_text
from iocast.lab import init, precedence, servers
from iocast.lab.nodes import wait_for
from iocast.lab.record import MARK, MAX_MOUNTS, Damaged, Known, Record, alone, check_name, known_process, read
from iocast.ground.processes import start

MAX_NODES = 64
NODES_OF_CAMPAIGN = 8
"""Of the campaign `laboratory`."""
NETWORK = "10.78.0"
"""First parts of all addresses. Laboratories don't see each other, so each has the same."""
FIRST_CLIENT, FIRST_SERVER = 11, 201
PROGRAMS = {"ip": "iproute2", "tc": "iproute2", "unshare": "util-linux", "nsenter": "util-linux", "mount": "mount"}
BURST = 1 / 250
"""Seconds at a link's rate that may be sent at once; a token bucket is filled by the kernel's timer."""
LEAST_BURST = 65536
"""Bytes of a packet as the kernel hands it to a device."""


def up(name: str, nodes: int, server: str, settings: Mapping[str, str], rate: str = "", mounts: int = 1) -> Record:
    """Makes a laboratory. What an interrupted one of this name left is removed first.

    @param mounts how often each node mounts the server
    @param rate of each client's link in bit/s as tc(8) writes it ("1gbit"); "" for no limit
    @raises InputError, RunError; nothing is left then"""
    check_name(name)
    kind = servers.find(server)
    known = kind.settings_of(settings)
    if not 1 <= nodes <= MAX_NODES:
        raise InputError(f"A laboratory has 1 to {MAX_NODES} client nodes, not {nodes}.")
    if not 1 <= mounts <= MAX_MOUNTS:
        raise InputError(f"A node mounts a server 1 to {MAX_MOUNTS} times, not {mounts}.")
    if mounts > 1 and not kind.mounts:
        able = ", ".join(name for name, one in servers.all_servers().items() if one.mounts)
        raise InputError(f"Nodes don't mount the server '{server}'; leave out --mounts, or take one of: {able}.")
    if rate:
        bits_per_second(rate)
    require_root()
    for program, package in {**PROGRAMS, **kind.programs}.items():
        if shutil.which(program) is None:
            raise RunError(f"The program {program} is not installed; install the package {package}.")
    record = Record(
        name,
        clients=[f"node{i + 1}" for i in range(nodes)],
        servers=[f"server{i + 1}" for i in range(kind.nodes_of(known))],
        rate=rate,
        server=server,
        settings=known,
        mounts=mounts,
    )
    with alone():
        _make_room(name)
        record.write()
    try:
        laboratory = Laboratory.start(record)
        laboratory.connect_nodes()
        kind(laboratory, known).start()
        record.ready = True
        record.write()
    except BaseException:
        with alone():
            record.remove()
        raise
    return record


def _make_room(name: str) -> None:
    """Removes what an interrupted laboratory of this name left. @raises InputError for one that is up, or being made"""
    if isinstance(before := read(name), Damaged):
        if before.processes():
            raise InputError(before.advice)
        before.remove()
    elif before is not None:
        if before.ready and before.init() is not None:
            raise InputError(f"The laboratory '{name}' is up already; remove it first: iocast lab down {name}.")
        if not before.ready and (maker := known_process(before.maker)) is not None:
            raise InputError(f"The laboratory '{name}' is being made by the process {maker.pid}; wait for its end.")
        before.remove()


def down(name: str) -> bool:
    """Removes a laboratory, or what is left of one. @return whether there was any

    @raises RunError where one of its processes does not end, or a file stays"""
    require_root()
    with alone():
        record = read(name)
        if record is not None:
            record.remove()
    return record is not None


def require_root() -> None:
    """@raises RunError"""
    if os.geteuid() != 0:
        raise RunError("Only root can make networks and mounts for a laboratory; run iocast lab as root.")


class Laboratory:
    """One that is up, or on its way."""

    def __init__(self, record: Record) -> None:
        """@raises InputError when it has ended"""
        process = record.init()
        if process is None:
            raise InputError(
                f"The laboratory '{record.name}' has ended; remove what is left: iocast lab down {record.name}."
            )
        self.record = record
        self.directory = record.directory
        self._group = precedence.make(record.group)
        self._first = process.pid
        self._holders = {"head": process.pid} | _holders(process)
        missing = [one for one in (*record.clients, *record.servers) if one not in self._holders]
        if missing:
            raise RunError(f"The laboratory '{record.name}' has lost {missing[0]}; make it again.")

    @classmethod
    def open(cls, name: str) -> Laboratory:
        """@raises InputError when there is none"""
        require_root()
        record = read(name)
        if isinstance(record, Damaged):
            raise InputError(record.advice)
        if record is None or not record.ready:
            raise InputError(f"There is no laboratory '{name}'; iocast lab list names those that are up.")
        return cls(record)

    @classmethod
    def start(cls, record: Record) -> Laboratory:
        """Starts process 1 and the nodes' name spaces."""
        nodes = [*record.clients, *record.servers]
        group = precedence.make(record.group)
        separate = ["unshare", "--net", "--uts", "--mount", "--pid", "--fork", "--mount-proc", "--kill-child"]
        with (record.directory / "init.log").open("ab") as log:
            outer = subprocess.Popen(
                [*separate, sys.executable, "-I", init.__file__, *nodes],
                env={**os.environ, MARK: f"{record.identity} {record.name}"},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=lambda: precedence.join(group),
            )

        def started() -> bool:
            if outer.poll() is not None:
                text = (record.directory / "init.log").read_text(errors="replace").strip().rpartition("\n")[2]
                raise RunError(f"The name spaces of a laboratory can't be made here: {text or outer.returncode}.")
            with contextlib.suppress(psutil.Error):
                first = psutil.Process(outer.pid).children()
                return bool(first) and _holders(first[0]).keys() >= set(nodes)
            return False

        wait_for(started, "the nodes")
        process = psutil.Process(outer.pid).children()[0]
        record.first = (process.pid, process.create_time())
        record.write()
        return cls(record)

    # ---- the network

    def address(self, node: str) -> str:
        for names, first in ((self.record.clients, FIRST_CLIENT), (self.record.servers, FIRST_SERVER)):
            if node in names:
                return f"{NETWORK}.{first + names.index(node)}"
        return f"{NETWORK}.1"

    def connect_nodes(self) -> None:
        """A bridge on the head, a cable from it to each node, names for all, and the limits of the clients' links."""
        hosts = "".join(f"{self.address(node)} {node}\n" for node in self._holders)
        write_text(self.directory / "hosts", f"127.0.0.1 localhost\n{hosts}")
        write_text(self.directory / "clients", "".join(f"{node}\n" for node in self.record.clients))
        self.do("head", "mount", "--bind", str(self.directory / "hosts"), "/etc/hosts")
        self._ip("head", ["link set lo up", "link add lan type bridge", "link set lan up"])
        self._ip("head", [f"addr add {self.address('head')}/24 dev lan"])
        for node, pid in self._holders.items():
            self.do(node, "hostname", node)
            if node == "head":
                continue
            self._ip("head", [f"link add {node} type veth peer name lan netns {pid}"])
            self._ip("head", [f"link set {node} master lan", f"link set {node} up"])
            self._ip(node, ["link set lo up", f"addr add {self.address(node)}/24 dev lan", "link set lan up"])
            self.do(node, "mount", "--bind", str(self.directory / "hosts"), "/etc/hosts")
            if self.record.rate and node in self.record.clients:
                self.limit(node, self.record.rate)
        write_text(self.directory / "start", self._starter())
        (self.directory / "start").chmod(0o755)

    def limit(self, node: str, rate: str) -> None:
        """Bounds a client's link in both directions. @raises InputError for a rate that tc doesn't know"""
        burst = max(LEAST_BURST, round(bits_per_second(rate) / 8 * BURST))
        for where, device in ((node, "lan"), ("head", node)):
            self.do(
                where, "tc", "qdisc", "replace", "dev", device, "root",
                "tbf", "rate", rate, "burst", str(burst), "latency", "200ms",
            )  # fmt: skip

    def _ip(self, node: str, commands: Sequence[str]) -> None:
        """Commands of ip(8) in a node's network. Process ids in them are this process's own."""
        command = ["nsenter", f"--net=/proc/{self._holders[node]}/ns/net", "ip", "-batch", "-"]
        _checked(subprocess.run(command, input="\n".join(commands), capture_output=True, text=True, check=False))

    def _starter(self) -> str:
        """What mpirun calls in place of ssh: NODE COMMAND... It runs inside the laboratory, where the nodes' holders
        have other process ids."""
        cases = "\n".join(
            f"  {node}) holder={_inner_pid(self._holders[node])};;" for node in (*self.record.clients, "head")
        )
        return (
            "#!/bin/sh\n# SPDX-License-Identifier: Apache-2.0\n"
            f"# Starts a command on a node of the laboratory '{self.record.name}'.\n"
            "node=$1; shift\ncase $node in\n"
            f"{cases}\n"
            '  *) echo "There is no node $node in this laboratory." >&2; exit 1;;\nesac\n'
            'exec nsenter --target "$holder" --net --uts --mount sh -c "$*"\n'
        )

    # ---- commands on nodes

    def inside(self, node: str, command: Sequence[str], directory: str | None = None) -> list[str]:
        """The command that runs another one on a node, with the laboratory's processes as the only ones it sees."""
        holder = self._holders[node]
        place = [] if directory is None else [f"--wdns={directory}"]
        enter = ["nsenter", f"--target={holder}", "--net", "--uts", "--mount"]
        return [*enter, f"--pid=/proc/{self._first}/ns/pid", *place, "--", *command]

    def do(self, node: str, *command: str) -> str:
        """Output of a command on a node. @raises RunError with its last words when it fails"""
        return _checked(subprocess.run(self.inside(node, command), capture_output=True, text=True, check=False))

    def serve(self, node: str, name: str, command: Sequence[str], secrets: Mapping[str, str] | None = None) -> None:
        """Starts a program on a node that stays until the laboratory ends. Its output goes into the file NAME.log of
        the laboratory. `secrets`: environment variables, which other users can't read, as they can a command."""
        with (self.directory / f"{name}.log").open("ab") as log:
            self._serving = subprocess.Popen(
                self.inside(node, command),
                env={**os.environ, **(secrets or {})},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=self._join,
            )

    def _join(self) -> None:
        """In a child: puts it into the group of the laboratory."""
        precedence.join(self._group)

    def wait(self, condition: Callable[[], bool], name: str) -> None:
        """Until what serve() started under this name last does its work. @raises RunError with its last words"""
        try:
            wait_for(lambda: condition() or self._serving.poll() is not None, name)
            if condition():
                self.record.served[name] = self._served()
                return
        except RunError:
            pass
        words = (self.directory / f"{name}.log").read_text(errors="replace").strip()[-1000:]
        raise RunError(f"{name} did not come up in the laboratory; its last words: {words or 'none'}")

    def _served(self) -> Known:
        """What serve() started last: nsenter's only child is the program itself."""
        entered = psutil.Process(self._serving.pid)
        process = next(iter(entered.children()), entered)
        return process.pid, process.create_time()

    def answers(self, node: str, port: int) -> bool:
        """Whether something listens there."""
        probe = f"import socket; socket.create_connection(('{self.address(node)}', {port}), 5)"
        return self.succeeds("head", sys.executable, "-I", "-c", probe)

    def succeeds(self, node: str, *command: str) -> bool:
        """Whether a command on a node ends well."""
        return subprocess.run(self.inside(node, command), capture_output=True, check=False).returncode == 0

    def is_mounted(self, node: str, directory: Path) -> bool:
        lines = Path(f"/proc/{self._holders[node]}/mounts").read_text().splitlines()
        return any(line.split()[1] == str(directory) for line in lines)

    def environment(self) -> dict[str, str]:
        """Of commands that run in the laboratory: mpirun starts ranks on its client nodes."""
        return {
            **os.environ,
            **self.record.environment,
            NAMED: str(self.directory / "clients"),
            "OMPI_MCA_plm_rsh_agent": str(self.directory / "start"),
            "OMPI_MCA_btl_tcp_if_include": f"{NETWORK}.0/24",
            "OMPI_MCA_oob_tcp_if_include": f"{NETWORK}.0/24",
        }

    def run(self, command: Sequence[str], node: str = "head") -> int:
        """Runs a command to its end, in the same directory. @return its exit code"""
        if node not in self._holders:
            raise InputError(f"The laboratory '{self.record.name}' has no node '{node}': {', '.join(self._holders)}.")
        precedence.join(self._group)
        process = start(self.inside(node, command, os.getcwd()), env=self.environment())

        def forward(number: int, _: object) -> None:
            with contextlib.suppress(psutil.Error):
                for child in psutil.Process(process.pid).children():
                    child.send_signal(number)

        before = signal.signal(signal.SIGTERM, forward)
        try:
            while True:
                try:
                    return process.wait()
                except KeyboardInterrupt:  # the command has it from the terminal too, and decides
                    continue
        finally:
            signal.signal(signal.SIGTERM, before)


def _holders(first: psutil.Process) -> dict[str, int]:
    """Processes that hold the nodes' name spaces, by node, once they do."""
    found = {}
    for process in first.children():
        with contextlib.suppress(psutil.Error, OSError):
            if process.name() == "sleep" and (node := process.environ().get(init.NODE)):
                found[node] = process.pid
    return found


def _inner_pid(pid: int) -> int:
    """The id of a process in its own name space of processes."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("NSpid:")).split()[-1])


def bits_per_second(rate: str) -> float:
    """@raises InputError for another spelling than tc's "1gbit", "100mbit", "64kbit" """
    for unit, factor in (("gbit", 1e9), ("mbit", 1e6), ("kbit", 1e3)):
        if rate.endswith(unit):
            with contextlib.suppress(ValueError):
                if 0 < (value := float(rate.removesuffix(unit)) * factor) < math.inf:
                    return value
    raise InputError(f"'{rate}' is no rate of a link; write it as 1gbit, 100mbit or 64kbit.")


def _checked(done: subprocess.CompletedProcess[str]) -> str:
    if done.returncode:
        words = done.stderr.strip() or done.stdout.strip() or f"exit code {done.returncode}"
        raise RunError(f"A step in making the laboratory failed ({shlex.join(done.args)[-300:]}): {words[-500:]}")
    return done.stdout


def state(record: Record) -> str:
    """What `iocast lab list` prints of it after its name and server."""
    if not record.ready or record.init() is None:
        return f"left over; iocast lab down {record.name}"
    if not (gone := record.gone()):
        return "up"
    names = " and ".join(filter(None, [", ".join(gone[:-1]), gone[-1]]))
    return f"without {names}, which ended (see {record.directory}/{gone[0]}.log); iocast lab down {record.name}"


def description(record: Record) -> str:
    """What `iocast lab up` prints."""
    kind = servers.find(record.server)
    given = " ".join(f"{name}={value}" for name, value in record.settings.items())
    measure = " ".join(["iocast measure", *record.arguments])
    link = f", links of {record.rate}" if record.rate else ""
    campaign = "laboratory" if len(record.clients) >= NODES_OF_CAMPAIGN else "quick"
    link += f", {record.mounts} mount points each" if record.mounts > 1 else ""
    return (
        f"{record.name}: {len(record.clients)} client nodes{link}; {kind.title} on "
        f"{len(record.servers)} server node{'s' * (len(record.servers) != 1)} ({given}).\n"
        f"Known: {kind.known}\nNot known: {kind.unknown}\n"
        f"Measure it: iocast lab run {record.name} -- {measure} --campaign {campaign} "
        f"--out results/{record.name}"
    )
