# SPDX-License-Identifier: Apache-2.0
"""Platform files as documents that can be merged and edited; what they mean, iocast-sim says (docs/platforms.md)."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar, cast

import yaml

from iocast.ground import strict
from iocast.errors import InputError
from iocast.ground.files import SCHEMA_VERSION, data_directory, read_yaml
from iocast.ground.strict import is_whole
from iocast.ground.strict_yaml import allowed_sentence
from iocast.records.platform import Step

RESOLVED = (
    "clients",
    "stations",
    "limits",
    "locks",
    "stalls",
    "failures",
    "background",
    "caches",
    "buffers",
    "network",
)
"""Sections of a resolved platform beside its operations and its mechanisms."""
_OTHER_SECTIONS = {
    *RESOLVED, *("schema_version", "extends", "description", "source", "name", "file", "kind"),
    *("demands", "operations", "serves", "calibration", "fitted", "topology", "mechanisms"),
}  # fmt: skip
PLATFORMS = data_directory("platforms")
Document = dict[str, Any]
Value = TypeVar("Value")
"""A document, or a part of one."""


def find_platform(name_or_file: str, beside: Path | None = None) -> Path:
    """The file of a platform by name, or a file itself (relative to `beside`)."""
    if name_or_file.endswith((".yaml", ".yml")):
        path = Path(name_or_file)
        return path if path.is_absolute() or beside is None else beside / path
    path = PLATFORMS / f"{name_or_file}.yaml"
    if not os.path.isfile(path):
        if os.path.exists(name_or_file):
            what = "a directory" if os.path.isdir(name_or_file) else "a file"
            raise InputError(f"'{name_or_file}' is {what}, and no platform file; these end in .yaml.")
        known = sorted(p.stem for p in PLATFORMS.glob("*.yaml"))
        raise InputError(
            f"There is no platform '{name_or_file}'. {allowed_sentence(name_or_file, known)[:-1]}; or name a YAML file."
        )
    return path


def reference(name_or_file: str, beside: Path | None = None) -> str:
    """What another file may say it extends: a platform by name, or a file by its whole path."""
    return (
        str(find_platform(name_or_file, beside).resolve()) if name_or_file.endswith((".yaml", ".yml")) else name_or_file
    )


def with_whole_paths(document: Document, folder: Path) -> Document:
    """The document, or a piece of one, with the whole path of a file that it names relative to `folder`: a platform of
    SimGrid. What it is merged into lies elsewhere. (`extends` may be a name: reference().)"""
    network = document.get("network")
    if not isinstance(network, dict) or not isinstance(file := network.get("simgrid"), str):
        return document
    return document | {"network": network | {"simgrid": str((folder / file).resolve())}}


def merge(base: object, over: Value, *, has_room: bool = False) -> Value:
    """`over` upon `base` as the simulator merges `extends`: maps merge, but a map with a `law` replaces what lies below
    it, as lists and single values do; null takes away, and so does a key that decides what others below it are for,
    unless room was made before (`has_room`)."""
    return _merged(base if has_room else without_decided(base, over), over, keep_null=False)


def laid_over(base: object, over: Value) -> Value:
    """The same for a `base` that still extends another platform: null stays, where it takes away what that one has."""
    return _merged(without_decided(base, over), over, keep_null=True)


def copied(content: Value) -> Value:
    """The maps and lists of a document anew; copy.deepcopy takes five times as long, for what no document has."""
    if isinstance(content, dict):
        return cast(Value, {key: copied(value) for key, value in content.items()})
    return cast(Value, [copied(value) for value in content]) if isinstance(content, list) else content


def _merged(base: object, over: Value, *, keep_null: bool) -> Value:
    if not isinstance(base, dict) or not isinstance(over, dict) or "law" in over:
        return copied(over)
    merged = dict(base)
    for key, value in over.items():
        if value is None and not keep_null:
            merged.pop(key, None)
        else:
            merged[key] = _merged(merged.get(key), value, keep_null=keep_null)
    return cast(Value, merged)


_OF_STRIPES = {"stripe_size", "stripe_count", "allocation", "free"}
_OF_SYSTEM = {"count", "spread", *_OF_STRIPES}
_OF_CARDS = {"latency", "hop_latency", "node_bandwidth", "server_bandwidth", "servers"}
TOPOLOGIES: dict[str, set[str]] = {
    "star": {"backbone_bandwidth"},
    "fat-tree": {"hop_latency", "leaf", "pod", "routing"},
    "islands": {"hop_latency", "leaf", "island", "routing"},
    "dragonfly": {"hop_latency", "groups", "global", "minimal"},
    "torus": {"hop_latency", "torus"},
    "simgrid": {"simgrid", "hosts"},
}
"""Topologies of a network, each with the keys of `network` that not all of them have."""
_PLACES = {"fat-tree": "leaf", "islands": "leaf", "dragonfly": "router", "torus": "router"}


def without_decided(base: Value, over: object) -> Value:
    """`base` without what has no effect any more below `over`, such as stripes of a station that `over` spreads by
    object. iocast-sim passes over these keys in a file that is extended, and refuses them beside what decides it
    (PlatformReader::refuse_idle)."""
    if not isinstance(base, dict) or not isinstance(over, dict):
        return base
    result = dict(base)
    stations, own = base.get("stations"), over.get("stations")
    if isinstance(stations, dict) and isinstance(own, dict):
        result["stations"] = stations | {
            name: _without(stations[name], _idle_at_station(own[name]))
            for name in own
            if isinstance(own[name], dict) and isinstance(stations.get(name), dict)
        }
    network, own = base.get("network"), over.get("network")
    if isinstance(network, dict) and isinstance(own, dict):
        result["network"] = _without_other_topologies(network, own)
    return cast(Value, result)


def _idle_at_station(own: Mapping[str, object]) -> set[str]:
    idle: set[str] = set()
    if own.get("per") == "node":
        idle |= _OF_SYSTEM
    if own.get("spread") is not None:
        idle |= {"stripe_count"} if own["spread"] == "stripe" else _OF_STRIPES
    if own.get("allocation") not in (None, "weighted"):
        idle |= {"free"}
    if own.get("allocation") == "by-stripe":
        idle |= {"stripe_count"}
    if own.get("discipline") not in (None, "timeslice"):
        idle |= {"quantum", "wakeup"}
    if own.get("discipline") == "ps":
        idle |= {"crowding"}
    return idle


def _without_other_topologies(network: Mapping[str, object], own: Mapping[str, object]) -> Mapping[str, object]:
    chosen = own.get("topology") or network.get("topology") or "simgrid"
    if (
        not isinstance(chosen, str)
        or chosen not in TOPOLOGIES
        or not {"topology", "simgrid"} & {key for key, value in own.items() if value}
    ):
        return network
    idle = set().union(*TOPOLOGIES.values()) - TOPOLOGIES[chosen] | (_OF_CARDS if chosen == "simgrid" else set())
    result = dict(_without(network, idle))
    if isinstance(servers := result.get("servers"), dict):
        place = _PLACES.get(chosen)
        other = {"leaf", "router", *(() if place else ("among",))} - {place}
        result["servers"] = {name: _without(one, other) for name, one in servers.items()}
    return result


def _without(part: Value, keys: set[str]) -> Value:
    if not isinstance(part, dict):
        return part
    return cast(Value, {key: value for key, value in part.items() if key not in keys})


def make_room(document: Document, path: str, value: Any) -> None:
    """Takes away what will have no effect any more beside this value at the path. Of several edits each makes room
    before one is set, so that none takes away what another says, in any order."""
    own: Document = {}
    set_path(own, path, value)
    document |= without_decided(document, own)


def chain(path: Path) -> list[tuple[Path, Document]]:
    """The file and all that it extends, itself first."""
    found: list[tuple[Path, Document]] = []
    following: Path | None = path
    while following is not None:
        if any(following.resolve() == seen.resolve() for seen, _ in found):
            raise InputError(f"The platform '{following}' extends itself.")
        document = read_yaml(following)
        version = document.get("schema_version", SCHEMA_VERSION)  # that one is there the simulator sees to
        if not isinstance(version, int) or version > SCHEMA_VERSION:
            raise InputError(
                f"The platform '{following}' has schema version {strict.shown(version)}; this program reads up to "
                f"{SCHEMA_VERSION}. Use a newer iocast."
            )
        found.append((following, with_whole_paths(document, following.parent)))
        base = document.get("extends")
        following = None if base is None else _extended_by(following, str(base))
    return found


def _extended_by(file: Path, base: str) -> Path:
    try:
        found = find_platform(base, file.parent)
    except InputError as error:
        raise InputError(f"{file}: in extends: {error}") from None
    if not found.exists():
        raise InputError(f"{file}: in extends: There is no file '{found}'.")
    return found


def set_path(document: Document, path: str, value: Any, *, keep_null: bool = False) -> None:
    """Sets a value by its dotted path. Names may hold dots themselves ("demands.create.open.shift"): at each map the
    longest key that is there is taken. In a list ("operations.unlink.1.lock_share") a number names an entry that is
    there, from 0. None removes, or with `keep_null` stays, where it takes away what the document extends."""
    parts = path.split(".")
    here: Any = document
    while True:
        if isinstance(here, list):
            here, parts = _entry(here, parts[0]), parts[1:]
            if not isinstance(here, dict) or not parts:
                raise InputError(
                    f"The path '{path}' leads into a list; it goes on with the number of one of its entries, from 0, "
                    "and a key there."
                )
        taken = next((n for n in range(len(parts), 0, -1) if ".".join(parts[:n]) in here), 1)
        key = ".".join(parts[:taken])
        parts = parts[taken:]
        if not parts:
            if value is None and not keep_null:
                here.pop(key, None)
            else:
                here[key] = value
            return
        if not isinstance(here.get(key), dict | list):
            here[key] = {}
        here = here[key]


_NOTHING = object()


def get_path(document: Document, path: str, otherwise: Any = None) -> Any:
    """What is at the path, which is read as set_path() does; `otherwise` when there is nothing."""
    parts = path.split(".")
    here: Any = document
    while parts:
        if isinstance(here, list):
            here, parts = _entry(here, parts[0]), parts[1:]
            if here is None:
                return otherwise
            continue
        taken = next((n for n in range(len(parts), 0, -1) if isinstance(here, dict) and ".".join(parts[:n]) in here), 0)
        if taken == 0:
            return otherwise
        here = here[".".join(parts[:taken])]
        parts = parts[taken:]
    return here


def holds(document: Document, path: str) -> bool:
    """Whether there is something at the path."""
    return get_path(document, path, _NOTHING) is not _NOTHING


def has_part(document: Document, path: str) -> bool:
    """Whether the part whose key a path names is there, such as the station of "stations.mds.servers". A path to a
    whole part, or to a key of a section without parts ("network.latency"), always has its place."""
    return path.count(".") < 2 or holds(document, path.rpartition(".")[0])


def _entry(entries: list[Any], number: str) -> Any:
    """None when there is no such entry."""
    return entries[int(number)] if is_whole(number) and int(number) < len(entries) else None


def parse_edit(text: str) -> tuple[str, Any]:
    """ "stations.cpu.servers=4" as path and value."""
    path, equals, value = text.partition("=")
    if not equals or not path:
        raise InputError(f"'{text}' is no edit; write a path and a value, such as stations.mds.servers=32.")
    try:
        return path, strict.parse_yaml(value, Path(path))
    except InputError as error:
        raise InputError(
            f"The edit {strict.shown(text)} has no value that YAML knows: {str(error).partition(': ')[2]}"
        ) from error


# The dumper in C, where there is one: platforms are written for every simulation.
class _Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]
    def ignore_aliases(self, data: Any) -> bool:
        return True


def _represent_list(dumper: yaml.SafeDumper, data: list[Any]) -> yaml.Node:
    flat = all(not isinstance(x, dict | list) for x in data)
    return dumper.represent_sequence("tag:yaml.org,2002:seq", data, flow_style=flat)


_Dumper.add_representer(list, _represent_list)


def dump(document: Document) -> str:
    return yaml.dump(document, Dumper=_Dumper, sort_keys=False, width=108, allow_unicode=True)


def mechanisms_in(document: Mapping[str, object]) -> list[str]:
    """Sections of a platform's document, written or resolved, that mechanisms have (docs/extend.md, Mechanism)."""
    return [section for section in document if section not in _OTHER_SECTIONS]


def steps_of(content: object) -> Iterator[Step]:
    """Every map in a document."""
    if isinstance(content, dict | list):
        for value in content.values() if isinstance(content, dict) else content:
            yield from steps_of(value)
        if isinstance(content, dict):
            yield cast(Step, content)
