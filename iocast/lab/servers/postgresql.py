# SPDX-License-Identifier: Apache-2.0
"""PostgreSQL behind a pool of connections, PgBouncer: as many statements are served at a time as the pool has
connections. A preloaded library (answer_delay.c) holds each of PostgreSQL's answers for a known time."""

from __future__ import annotations

from pathlib import Path

from iocast.ground.files import write_text
from iocast.lab.answer_delay import PROGRAMS, held
from iocast.lab.servers import Server

PORT, BEHIND = 6432, 5432
POOL = """\
[databases]
* = host={store} port={behind} user=lab
[pgbouncer]
listen_addr = {address}
listen_port = {port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = {threads}
max_client_conn = 10000
ignore_startup_parameters = extra_float_digits,options
server_idle_timeout = 0
server_lifetime = 86400
stats_users = lab
"""


class PostgreSql(Server):
    name = "postgresql"
    title = "PostgreSQL behind PgBouncer"
    known = (
        "the pool has as many connections as the setting has threads; each answer holds one for the service time "
        "(constant), and a request that finds all busy waits in order of arrival."
    )
    unknown = "the own work of PostgreSQL and of the pool, about 0.1 ms a statement each."
    defaults = {"threads": "2", "service": "4ms"}
    counts = {"threads": (1, 64)}
    programs = {"pgbouncer": "pgbouncer", "psql": "postgresql", "setpriv": "util-linux", **PROGRAMS}

    def start(self) -> None:
        lab, (node,) = self.laboratory, self.record.servers
        store = lab.directory / "store"
        store.mkdir()
        lab.do(node, "mount", "-t", "tmpfs", "-o", "size=2g,mode=0755", "iocast-lab", str(store))
        lab.do(node, "chown", "postgres", str(store))
        owner = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups", "env", "--chdir=/"]
        data = ["-D", f"{store}/data"]
        lab.do(
            node, *owner, _program("initdb"), *data, "-U", "lab", "-A", "trust", "--no-sync", "-E", "UTF8",
            "--no-locale",
        )  # fmt: skip
        settings = ["fsync=off", "shared_buffers=64MB", "listen_addresses=", f"unix_socket_directories={store}"]
        options = [word for setting in settings for word in ("-c", setting)]
        lab.serve(node, "postgresql", [*owner, *held(self), _program("postgres"), *data, *options])
        ready = ["psql", "-h", str(store), "-U", "lab", "-c", "", "postgres"]
        lab.wait(lambda: lab.succeeds(node, *ready), "postgresql")
        pool = lab.directory / "pgbouncer.ini"
        address = lab.address(node)
        write_text(
            pool, POOL.format(store=store, behind=BEHIND, address=address, port=PORT, threads=self.settings["threads"])
        )
        lab.serve(node, "pgbouncer", [*owner, "pgbouncer", str(pool)])
        lab.wait(lambda: lab.answers(node, PORT), "pgbouncer")
        place = {"host": address, "port": str(PORT), "user": "lab", "database": "postgres"}
        given = [f"--backend-option=--postgresql.{name}={value}" for name, value in place.items()]
        self.record.arguments = ["--backend", "postgresql", *given]


def _program(name: str) -> str:
    """Of the newest PostgreSQL, whose programs Debian has apart from the others."""
    places = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"), reverse=True)
    return str(places[0]) if places else name


SERVER = PostgreSql
