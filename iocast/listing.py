# SPDX-License-Identifier: Apache-2.0
"""The tables of workloads and patterns in Markdown, as README has them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from iocast import binaries
from iocast.errors import InputError


def table(what: str) -> str:
    """A table of all workloads or all patterns: name, what it does, where it comes from."""
    if what not in ("workloads", "patterns"):
        raise InputError(f"There is no table of '{what}'; there are tables of workloads and patterns.")
    program = binaries.find("iocast-sim")
    rows = [("workload" if what == "workloads" else "pattern", "what it does", "source"), ("---", "---", "---")]
    for entry in binaries.run_json([program, "--list", what, "--json"])[what]:
        described: dict[str, Any] = binaries.run_json([program, "--describe", entry["name"], "--json"])
        name = f"`{entry['name']}`"
        if what == "workloads":
            name = f"[{name}](workload/catalogue/{entry['name']}.yaml)"
        rows.append((name, entry["summary"], described["source"]))
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |\n" for row in rows)


def replaced(file: Path, what: str, new: str) -> str:
    """The file's text with `new` between the lines `<!-- iocast list WHAT -->` and `<!-- end -->`."""
    text = file.read_text()
    place = re.compile(rf"(<!-- iocast list {what} -->\n).*?(?=<!-- end -->)", re.DOTALL)
    if not place.search(text):
        raise InputError(f"The file '{file}' has no lines '<!-- iocast list {what} -->' and '<!-- end -->' to put the table between.")
    return place.sub(lambda match: match.group(1) + new, text)
