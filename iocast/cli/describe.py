# SPDX-License-Identifier: Apache-2.0
"""`iocast describe`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Optional

import typer

from iocast.ground import binaries
from iocast.cli.app import verb
from iocast.cli.options import Json
from iocast.cli.passing import pass_through
from iocast.errors import InputError


@verb(epilog="Example: iocast describe lustre --page lustre.html")
def describe(
    name: Annotated[str, typer.Argument(help="A workload, pattern, backend, platform (or its file) or primitive.")],
    svg: Annotated[
        Optional[Path], typer.Option(help="Platform: draw the route of every operation into this SVG file.")
    ] = None,
    nodes: Annotated[
        Optional[int],
        typer.Option(help="Platform: client nodes of its network [default: those of the machine, or 1000]."),
    ] = None,
    page: Annotated[
        Optional[Path], typer.Option(help="Platform: write a page into this HTML file on which it can be tried out.")
    ] = None,
    backend: Annotated[bool, typer.Option("--backend", help="The backend of this name, not the platform.")] = False,
    json_: Json = False,
) -> None:
    """Describe one workload, platform, backend or primitive.

    The description has parameters, units, defaults and source; for a platform the stations, the links between switches
    and the route of every operation."""
    from iocast.platforms.drawing import platform_text
    from iocast.platforms.fitted import Fitted
    from iocast.listing import describer_of, names_of
    from iocast.published.errors import Errors
    from iocast.ground.strict_yaml import allowed_sentence

    if backend:
        binaries.find("iocast-bench")  # or there is none that could be described
    known = {what: names_of(what) for what in ("backends", "platforms")}
    is_backend = name in known["backends"] and (backend or name not in known["platforms"])
    if backend and not is_backend:
        raise InputError(f"There is no backend '{name}'. {allowed_sentence(name, sorted(known['backends']))}")
    command = [binaries.find("iocast-bench" if is_backend else describer_of(name)), "--describe", name]
    command += ["--nodes", str(nodes)] if nodes is not None else []
    described = binaries.run_json([*command, "--json"])
    for option, file, what in (("svg", svg, "routes to draw"), ("page", page, "a page to try it out")):
        if file is not None and described["kind"] != "platform":
            raise InputError(f"Only a platform has {what}; '{name}' is a {described['kind']}. Leave out --{option}.")
    if svg is not None:
        from iocast.report.page import write_routes

        write_routes(described, svg)
    if page is not None:
        from iocast.whatif.module import HOW
        from iocast.whatif.platform import write_platform_page

        if not write_platform_page(described, name, page):
            print(HOW, file=sys.stderr)
    if described["kind"] != "platform" or json_:
        pass_through([*command, *(["--json"] if json_ else [])])
        return
    print(platform_text(described))
    if errors := Errors.of(Fitted.open(name)):
        from iocast.wording.notes import sentence

        print(f"\n{sentence(errors.note)}")
    if name in known["backends"]:
        print(f"\nThere is a backend of this name, too: iocast describe {name} --backend")
