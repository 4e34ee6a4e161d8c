# SPDX-License-Identifier: Apache-2.0
"""Names in a platform: whether an edit names a part and a key that are there, and the nearest one where it doesn't.

One checker for `predict --edit` and for studies; iocast-sim checks platform files by the same rule (docs/platforms.md).
"""

from __future__ import annotations

import shlex
import copy
import difflib
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from iocast.ground import binaries
from iocast.platforms.content import PROSE, whole
from iocast.errors import InputError
from iocast.platforms.fitted import Fitted
from iocast.platforms.documents import (
    PLATFORMS,
    RESOLVED,
    Document,
    get_path,
    make_room,
    mechanisms_in,
    set_path,
    steps_of,
)
from iocast.ground.strict import Json
from iocast.records.platform import ResolvedPlatform

SYNONYMS = {
    **dict.fromkeys(("threads", "thread", "cores", "core", "cpus", "processes", "workers"), "servers"),
    **dict.fromkeys(("nodes", "node", "machines", "hosts", "instances", "number"), "count"),
}
"""Words for capacity that storage people use, with the key of a station that means it."""
_USED_BY_ROUTES = ("stations", "limits", "locks", "demands", "caches", "buffers")
"""Sections whose parts matter through the routes alone; those of mechanisms are such as well."""
_USERS = ("operations", "locks", "caches", "buffers", "stalls", "failures", "background")
"""Sections that name parts; those of mechanisms do as well."""
UNKNOWN_KEY = "unknown-key"
"""Code of iocast-sim's error about a key that a part can't have."""


def paths(node: dict[str, Json] | list[Json], prefix: str = "") -> Iterator[str]:
    """Every dotted path of a document, down to single values and laws. The entries of a list that are maps have their
    numbers, from 0."""
    for key, value in node.items() if isinstance(node, dict) else enumerate(node):
        path = f"{prefix}.{key}" if prefix else str(key)
        if isinstance(node, dict) or isinstance(value, dict):
            yield path
        if isinstance(value, dict | list):
            yield from paths(value, path)


def known_paths(document: Document, resolved: Document) -> set[str]:
    """Paths that an edit may name: those that the platform's files write, and the defaults of the resolved platform."""
    known = set(paths(document))
    for part in (*RESOLVED, *mechanisms_in(resolved)):
        known |= set(paths({part: resolved.get(part) or {}}))
    known |= {
        f"demands.{n}.{key}"
        for n, law in document.get("demands", {}).items()
        if isinstance(law, dict)
        for key in ("scale", "shift")
    }
    return {path for path in known if path.partition(".")[0] not in (*PROSE, "serves")}


def missing(
    path: str, known: set[str], document: Document, resolve: Callable[[Document], Document], value: Any = None
) -> str | None:
    """Why the platform has nothing at the path, with the nearest name; None when it has. `value`: what an edit sets
    there.

    A key that no file writes and that has no default, such as a lock's `hand_over`, is one that the simulator accepts;
    that is checked through `resolve`, which raises InputError for others."""
    if path in known:
        return None
    parent, _, leaf = path.rpartition(".")
    section = path.partition(".")[0]
    if isinstance(value, dict) and "law" not in value and section in RESOLVED and parent == section:
        return None  # a whole part, which the simulator judges
    whole_part = isinstance(value, dict) and "law" not in value and parent == section  # of a section that is new here
    if whole_part or (
        parent != section
        and parent in known
        and isinstance(get_path(document, parent, {}), dict)
        and (leaf not in SYNONYMS)
    ):
        tried = copy.deepcopy(document)
        make_room(tried, path, value)
        set_path(tried, path, value)
        try:
            resolve(tried)
        except InputError as error:
            return _nearest(path, known) if error.code == UNKNOWN_KEY else None
        return None
    return _nearest(path, known)


def is_unused(path: str, document: Document, resolved: Document) -> bool:
    """Whether the path leads into a part that no operation's route uses, so that no value there changes an answer:
    often one that a family has and a platform that extends it serves otherwise."""
    section = path.partition(".")[0]
    mechanisms = {*mechanisms_in(document), *mechanisms_in(resolved)}
    users = (*_USERS, *mechanisms)
    if section == "network":
        return not any(
            "transfer" in step
            for where in (document, resolved)
            for user in users
            for step in steps_of(where.get(user) or {})
        )
    if section not in (*_USED_BY_ROUTES, *mechanisms):
        return False
    parts = document.get(section)
    found = (
        [str(name) for name in parts if path == f"{section}.{name}" or path.startswith(f"{section}.{name}.")]
        if isinstance(parts, dict)
        else []
    )
    used = {text for where in (document, resolved) for user in users for text in texts_in(where.get(user) or {})}
    return bool(found) and max(found, key=len) not in used


def unused(path: str, platform: str) -> str:
    """The sentence that refuses such an edit."""
    return (
        f"no operation of the platform '{platform}' uses '{path}', so that no value there changes an answer. Edit what "
        "its routes use, or the routes under 'operations'."
    )


def route_name(operation: str, resolved: Mapping[str, Any]) -> str:
    """The operation whose route the platform has for this one."""
    from iocast.analytic.routes import FALLBACKS  # its libraries take a second to load

    return operation if operation in resolved["operations"] else FALLBACKS.get(operation, operation)


def reached(resolved: Mapping[str, Any], operations: Iterable[str]) -> tuple[set[str], set[str]]:
    """The routes that a workload with these operations takes, by name, and the names in them: of parts, and of those
    behind them."""
    routes = {route_name(op, resolved) for op in operations} | {"wake"}
    names = set(texts_in({name: resolved["operations"].get(name, []) for name in routes}))
    for _ in resolved:  # what drains, fills and fetches reaches more; a chain is no longer than the sections
        for kind in ("locks", "caches", "buffers", *mechanisms_in(resolved)):
            parts = resolved.get(kind) or {}
            names |= {text for name in names & set(parts) for text in texts_in(parts[name])}
    return routes, names


def idle_edit(path: str, resolved: Document, operations: Iterable[str]) -> str | None:
    """Why an edit at the path changes no answer to a workload with these operations; None where it may."""
    section, _, rest = path.partition(".")
    used = set(operations)
    routes, parts = reached(resolved, used)
    mechanisms = mechanisms_in(resolved)
    known = resolved.get(section)
    names = [name for name in known if rest == name or rest.startswith(f"{name}.")] if isinstance(known, dict) else []
    if section == "operations":
        idle = bool(names) and max(names, key=len) not in routes
    elif section in ("stations", "limits", "locks", "caches", "buffers", *mechanisms):
        idle = bool(names) and max(names, key=len) not in parts
    else:
        return None
    if not idle:
        return None
    names_used = ", ".join(sorted(used))
    return f"no operation of this workload ({names_used}) uses '{path}', so that no value there changes the answer."


def speed_sentences(resolved: ResolvedPlatform, operations: Iterable[str]) -> list[str]:
    """A sentence for each station whose `speed` scales demands, where a step of these operations there has a bandwidth
    as well, which it doesn't scale."""
    found: dict[str, list[str]] = {}
    for operation in operations:
        for step in steps_of(resolved["operations"].get(operation, [])):
            station = resolved["stations"].get(step.get("station", ""), {})
            if float(step.get("bandwidth", 0)) > 0 and float(station.get("speed", 1)) != 1:
                found.setdefault(step["station"], []).append(operation)
    return [
        f"The speed of '{name}', {float(resolved['stations'][name]['speed']):.3g}, divides its demands and not its "
        f"time by bytes: edit the bandwidth of its steps ({', '.join(dict.fromkeys(users))}) as well."
        for name, users in found.items()
    ]


def texts_in(content: Json) -> Iterator[str]:
    """Every text in a document that isn't a key."""
    if isinstance(content, dict | list):
        for key, value in content.items() if isinstance(content, dict) else enumerate(content):
            if key != "part":  # names a part of an operation
                yield from texts_in(value)
    elif isinstance(content, str):
        yield content


def check_file(platform: Fitted) -> None:
    """The user's own file by iocast-sim's rules, such as those on keys without effect: programs are given documents
    that extend it, of which such a key is inherited.

    @raises InputError with file and line"""
    if platform.file.parent.resolve() != PLATFORMS.resolve() and not (platform.fitted and len(platform.documents) == 1):
        _check_file(platform.file, platform.file.stat().st_mtime_ns)


@lru_cache(maxsize=64)
def _check_file(file: Path, written: int) -> None:
    binaries.resolve_platform(file)


def check_edits(platform: Fitted) -> None:
    """@raises InputError for an edit that names what the platform doesn't have, or gives it what it can't be"""
    if not platform.edits:
        return
    from iocast.calibrate.search import Simulations

    unedited = Fitted(platform.file, platform.fitted, platform.documents, [])
    document = whole(unedited.best())
    with Simulations(about=platform.file) as simulations:

        def resolve(one: Document) -> Document:
            return dict(binaries.resolve_platform(simulations.write(one)))

        resolved = resolve(document)
        for path, value in platform.edits:
            why = missing(path, known_paths(document, resolved), document, resolve, value)
            if why:
                raise InputError(
                    f"{of_edit(path, value)} the platform '{platform.file.stem}' has nothing at '{path}'. {why}"
                )
            if is_unused(path, document, resolved) and not any(
                other.startswith("operations.") for other, _ in platform.edits
            ):
                raise InputError(f"{of_edit(path, value)} {unused(path, platform.file.stem)}")
            make_room(document, path, value)
            set_path(document, path, value)  # a part that one edit adds is one that the next may change
            try:
                resolved = resolve(document)
            except InputError as error:
                raise InputError(f"{of_edit(path, value)} {str(error).removeprefix(f'{platform.file}: ')}") from error


def of_edit(path: str, value: object) -> str:
    """An edit as the command line has it, for the begin of a message."""
    return f"--edit {shlex.quote(f'{path}={value}')}:"


def _nearest(path: str, known: set[str]) -> str:
    """The path with its first unknown name replaced by the nearest one there, or what there is, as a sentence."""
    near = next((one for one in _mended(path, known) if one in known), None)
    if near is None:
        near = next(iter(difflib.get_close_matches(path, sorted(known), n=1, cutoff=0.6)), None)
    parts = path.split(".")
    depth = next((n for n in range(len(parts), 0, -1) if ".".join(parts[:n]) in known), 0)
    there = ".".join(parts[:depth])
    siblings = sorted(
        {p[len(there) :].lstrip(".").partition(".")[0] for p in known if p.startswith(f"{there}." if there else "")}
        - {""}
    )
    if not siblings:
        return f"Its '{there}' is empty."
    meant = f"Did you mean '{near}'? " if near else ""
    return f"{meant}Allowed{f' in {there}' if there else ''}: {', '.join(siblings[:30])}."


def _mended(path: str, known: set[str]) -> Iterable[str]:
    """Paths with each name that is not there replaced by a synonym, one in other letters' case, or the most similar
    one."""
    found: list[str] = []
    for part in path.split("."):
        there = ".".join(found)
        prefix = f"{there}." if there else ""
        if prefix + part in known:
            found.append(part)
            continue
        siblings = sorted({p[len(prefix) :].partition(".")[0] for p in known if p.startswith(prefix)})
        same = [s for s in siblings if s.casefold() == part.casefold()]
        close = difflib.get_close_matches(part.casefold(), siblings, n=1, cutoff=0.5)
        chosen = [SYNONYMS[part]] if SYNONYMS.get(part) in siblings else same or close
        if not chosen:
            return
        found.append(chosen[0])
    yield ".".join(found)
