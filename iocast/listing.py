# SPDX-License-Identifier: Apache-2.0
"""What there is: workloads, patterns, backends, ...; and the tables of them in Markdown, as README has them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TypedDict

from typing_extensions import NotRequired

from iocast.ground import binaries
from iocast.campaign.plan import CAMPAIGNS, read_plan
from iocast.errors import InputError
from iocast.importers import all_importers
from iocast.ground.strict_yaml import Section
from iocast.records.codes import KINDS


class Parameter(TypedDict):
    name: str
    unit: str
    default: str
    meaning: str


class Key(TypedDict):
    """`unit`: of a number of a mechanism."""

    name: str
    meaning: str
    unit: NotRequired[str]


class Described(TypedDict, total=False):
    """A thing as `iocast describe --json` has it; each kind has some of these."""

    name: str
    kind: str
    summary: str
    source: str
    takes: str
    parameters: list[Parameter]
    keys: list[Key]
    available: bool
    needs: str
    pattern: str
    workload: str
    repeats: int
    points: list[str]
    steps: list[str]


def entries(what: str) -> list[Described]:
    """All there is of a kind: name, summary and more. @raises InputError for another kind, with those that there are"""
    if what == "campaigns":
        return [
            {"name": p.stem, "summary": Section.load(p).text("description", "")}
            for p in sorted(CAMPAIGNS.glob("*.yaml"))
        ]
    if what == "cautions":
        return [
            {
                "name": code,
                "summary": " ".join((kind.__doc__ or "").split()),
                "keys": [{"name": one, "meaning": ""} for one in kind.__struct_fields__ if one != "about"],
            }
            for code, kind in KINDS.items()
        ]
    if what == "formats":
        formats: list[Described] = [
            {"name": i.name, "summary": i.summary, "takes": i.takes} for i in all_importers().values()
        ]
        return [
            *formats,
            {
                "name": "darshan",
                "summary": "Darshan log, as a trace for the pattern replay",
                "takes": "darshan and the log",
            },
        ]
    found: list[Described] = binaries.run_json([binaries.find(program_of(what)), "--list", what, "--json"])[what]
    return found


def described(what: str, name: str) -> Described:
    """One thing of a kind in full."""
    if what == "campaigns":
        plan = read_plan(name)
        source = Section.load(plan.file).text("source", "this project")
        points, steps = [point.name for point in plan.points], [step.name for step in plan.steps]
        return {
            "name": name,
            "source": source,
            "workload": plan.workload,
            "repeats": plan.repeats,
            "points": points,
            "steps": steps,
        }
    if what == "formats":
        return next(entry for entry in entries(what) if entry["name"] == name)
    answer: Described = binaries.run_json([binaries.find(program_of(what)), "--describe", name, "--json"])
    return answer


def program_of(what: str) -> str:
    """The program that knows of such things: of workloads and patterns both do, of which one may be missing."""
    if what == "backends" or (what in ("workloads", "patterns") and not binaries.is_built("iocast-sim")):
        return "iocast-bench"
    return "iocast-sim"


def names_of(what: str) -> set[str]:
    """Names of a kind; none where the program that knows them is not built."""
    return {entry["name"] for entry in entries(what)} if binaries.is_built(program_of(what)) else set()


def describer_of(name: str) -> str:
    """The program that describes a platform, a primitive, a workload or a pattern."""
    if not binaries.is_built("iocast-sim") and name in names_of("workloads") | names_of("patterns"):
        return "iocast-bench"
    return "iocast-sim"


def short_source(source: str) -> str:
    """The first clause: up to a semicolon, a colon, a bracket, or the end of a sentence."""
    return re.split(r"; |: | \(|(?<! al)\.(?= [A-Z]|$)", source, maxsplit=1)[0]


def table(what: str) -> str:
    """A table of all workloads or all patterns: name, what it does, where it comes from in short; or of all cautions:
    code, keys, what it means."""
    if what == "cautions":
        codes = [("code", "keys", "meaning"), ("---", "---", "---")]
        for entry in entries(what):
            keys = ", ".join(f"`{key['name']}`" for key in entry["keys"])
            codes.append((f"`{entry['name']}`", keys, entry["summary"]))
        return _markdown(codes)
    if what not in ("workloads", "patterns"):
        raise InputError(f"There is no table of '{what}'; there are tables of workloads, patterns and cautions.")
    rows = [("workload" if what == "workloads" else "pattern", "what it does", "source"), ("---", "---", "---")]
    for entry in entries(what):
        name = f"`{entry['name']}`"
        if what == "workloads":
            name = f"[{name}](../workload/catalogue/{entry['name']}.yaml)"
        rows.append((name, entry["summary"], short_source(described(what, entry["name"])["source"])))
    return _markdown(rows)


def _markdown(rows: Sequence[Sequence[str]]) -> str:
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |\n" for row in rows)


def replaced(file: Path, what: str, new: str) -> str:
    """The file's text with `new` between the lines `<!-- iocast list WHAT -->` and `<!-- end -->`."""
    text = file.read_text()
    place = re.compile(rf"(<!-- iocast list {what} -->\n).*?(?=<!-- end -->)", re.DOTALL)
    if not place.search(text):
        raise InputError(
            f"The file '{file}' has no lines '<!-- iocast list {what} -->' and '<!-- end -->' to put the table between."
        )
    return place.sub(lambda match: match.group(1) + new, text)
