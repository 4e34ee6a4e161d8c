# SPDX-License-Identifier: Apache-2.0
"""The page of a platform without measurements, as `iocast describe PLATFORM --page` writes it."""

from __future__ import annotations

from pathlib import Path

import jinja2
from markupsafe import Markup

from iocast.platforms.drawing import platform_text
from iocast.whatif.module import HOW
from iocast.whatif.page_file import check_page, write_page
from iocast.whatif.panel import HERE, POLICY, Beside, panel, setting_of, version
from iocast.records.platform import ResolvedPlatform

WORKLOAD, NODES, RANKS_PER_NODE = "md-workbench", 10, 4
"""What is simulated before anything is changed."""
NEVER_MEASURED = (
    "Nobody measured this platform for these answers: its numbers are its author's, and there are no intervals."
)


def write_platform_page(described: ResolvedPlatform, name_or_file: str, out: Path) -> bool:
    """Write the page of a platform that iocast-sim described. Returns whether it simulates: False where the module was
    not built, and the page says how to get it."""
    check_page(out)
    text, simulates = platform_page(described, name_or_file)
    write_page(out, text)
    return simulates


def platform_page(described: ResolvedPlatform, name_or_file: str) -> tuple[str, bool]:
    """The page, and whether it simulates."""
    made = panel(setting_of(name_or_file, WORKLOAD, {}, NODES, RANKS_PER_NODE), Beside(notes=[NEVER_MEASURED]))
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(HERE), autoescape=True, undefined=jinja2.StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    styles = [HERE.parent / "report" / "page.css", HERE / "panel.css"]
    text = environment.get_template("platform.html.j2").render(
        name=described["name"],
        description=described.get("description") or f"The platform {described['name']}",
        source=described.get("source") or "",
        drawing=platform_text(described),
        style=Markup("\n".join(file.read_text(encoding="utf-8") for file in styles)),
        policy=POLICY,
        version=version(),
        whatif=made,
        how=HOW,
    )
    return text, made is not None
