# SPDX-License-Identifier: Apache-2.0
"""`iocast lab`."""

from __future__ import annotations

import json
from typing import Annotated, Optional

import typer

from iocast.cli.app import verb
from iocast.cli.options import Json, refuse_without_effect, settings_of
from iocast.errors import InputError
from iocast.ground.strict_yaml import allowed_sentence

ACTIONS = ("up", "run", "list", "down")
OF_UP = ("nodes", "server", "sets", "rate", "mounts")


@verb(
    epilog="Examples: iocast lab up demo --nodes 4 --server queuefs --set threads=2\n\n"
    "iocast lab run demo -- mpirun --host node1,node2 hostname\n\n"
    "iocast lab down demo"
)
def lab(
    action: Annotated[str, typer.Argument(metavar="up|run|list|down", help="What to do.")],
    name: Annotated[Optional[str], typer.Argument(help="The laboratory.")] = None,
    command: Annotated[
        Optional[list[str]], typer.Argument(metavar="[-- COMMAND...]", help="Of run: the command.")
    ] = None,
    nodes: Annotated[int, typer.Option(help="Client nodes.", min=1, rich_help_panel="Up")] = 4,
    server: Annotated[str, typer.Option(help="Server (docs/laboratory.md#servers).", rich_help_panel="Up")] = "queuefs",
    sets: Annotated[
        Optional[list[str]],
        typer.Option("--set", metavar="NAME=VALUE", help="A setting of the server.", rich_help_panel="Up"),
    ] = None,
    rate: Annotated[
        str, typer.Option(help="Limit of each client's link, as 1gbit or 100mbit.", rich_help_panel="Up")
    ] = "",
    mounts: Annotated[int, typer.Option(help="Mount points a node.", min=1, rich_help_panel="Up")] = 1,
    node: Annotated[
        str, typer.Option(help="Node that the command runs on; head starts MPI ranks.", rich_help_panel="Run")
    ] = "head",
    json_: Json = False,
) -> None:
    """Make client nodes and a server of known capacity here.

    Nodes are name spaces of this machine's kernel: each has its own network, host name and mounts. Needs root. Within
    run, iocast measure and mpirun start ranks on the nodes. Down leaves nothing, also after a crash."""
    from iocast.lab import laboratory
    from iocast.lab.record import Damaged, all_records, as_json

    if action not in ACTIONS:
        raise InputError(f"There is no action '{action}' of iocast lab. {allowed_sentence(action, ACTIONS)}")
    if action != "up":
        refuse_without_effect(f"with iocast lab {action}", *OF_UP)
    if action != "run":
        refuse_without_effect(f"with iocast lab {action}", "node")
        if command:
            raise InputError(f"iocast lab {action} runs no command; leave out '{command[0]}'.")
    if action == "list":
        if name is not None:
            raise InputError("iocast lab list takes no name; it lists all.")
        records = all_records()
        if json_:
            print(json.dumps([as_json(record) for record in records]))
            return
        for record in records:
            if isinstance(record, Damaged):
                print(f"{record.name}: damaged. {record.advice}")
                continue
            print(
                f"{record.name}: {len(record.clients)} client nodes, server {record.server}, {laboratory.state(record)}"
            )
        if not records:
            print("No laboratory is up.")
        return
    if name is None:
        raise InputError(f"Name the laboratory: iocast lab {action} NAME.")
    if action == "up":
        record = laboratory.up(name, nodes, server, settings_of(sets), rate, mounts)
        print(json.dumps(as_json(record)) if json_ else laboratory.description(record))
    elif action == "down":
        was = laboratory.down(name)
        sentence = f"The laboratory '{name}' is gone." if was else f"There was no laboratory '{name}'."
        print(json.dumps({"name": name, "removed": was}) if json_ else sentence)
    else:
        if not command:
            raise InputError(f"Say what to run: iocast lab run {name} -- COMMAND.")
        raise typer.Exit(laboratory.Laboratory.open(name).run(command, node))
