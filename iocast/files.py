# SPDX-License-Identifier: Apache-2.0
"""Reading and writing the files that verbs hand to each other (docs/answers.md)."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

from iocast import strict
from iocast.errors import InputError, RunError
from iocast.names import ALLOWED, is_file_name

SCHEMA_VERSION = 1


def data_directory(name: str) -> Path:
    """`platforms` or `campaigns`: in $IOCAST_HOME, beside this package, or in share/iocast of this Python or of the
    installed programs."""
    places = [Path(os.environ["IOCAST_HOME"])] if "IOCAST_HOME" in os.environ else []
    places += [Path(__file__).resolve().parents[1], Path(sys.prefix) / "share" / "iocast"]
    if (program := shutil.which("iocast-bench") or shutil.which("iocast-sim")) is not None:
        places.append(Path(program).resolve().parents[1] / "share" / "iocast")
    return next((place / name for place in places if (place / name).is_dir()), places[-1] / name)


def write_text(path: Path, text: str, *, secret: bool = False) -> None:
    """Replaces the file as a whole: a reader sees the old content or the new. `secret`: nobody else may read it."""
    write_bytes(path, text.encode(), secret=secret)


def write_bytes(path: Path, content: bytes, *, secret: bool = False) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path, secret=secret) as out:
            out.write(content)
    except OSError as error:
        raise RunError(f"The file '{path}' can't be written: {error.strerror}.") from error


@contextlib.contextmanager
def replacing(path: Path, *, secret: bool = False) -> Iterator[BinaryIO]:
    """A new file that takes the place of `path` when the block ends well, on the disk by then. After an error nothing
    of it stays.

    `secret`: nobody else may read it; else the umask decides."""
    handle, fresh = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:100]}.", suffix=".new")
    try:
        with os.fdopen(handle, "wb") as out:
            yield out
            out.flush()
            if not secret:
                os.fchmod(out.fileno(), 0o666 & ~umask())
            os.fsync(out.fileno())
        os.replace(fresh, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(fresh)
        raise
    sync_directory(path.parent)


def sync_directory(path: Path) -> None:
    """Has the names in it on the disk, where the file system can."""
    with contextlib.suppress(OSError):
        handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def umask() -> int:
    """This process's, without changing it where the kernel tells it."""
    with contextlib.suppress(OSError), open("/proc/self/status") as status:
        for line in status:
            if line.startswith("Umask:"):
                return int(line.split()[1], 8)
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def write_json(path: Path, content: Any, indent: int | None = 1, *, secret: bool = False) -> None:
    """`indent=None` for what nobody reads: the encoder in C writes it, which knows no indentation."""
    write_text(path, json.dumps(content, indent=indent) + "\n", secret=secret)


def read_json(path: Path, kind: str | None = None) -> dict[str, Any]:
    """A JSON object whose schema version this program knows and whose kind is `kind`, if given. Runs and campaigns have
    what they must.

    @raises InputError with the file, and the line or the part that is wrong"""
    content = strict.parse_json(strict.read_text(path), path)
    require_version(content, path)
    if kind is not None and content.get("kind") != kind:
        raise InputError(
            f"The file '{path}' is a {strict.shown(content['kind'])[1:-1] if 'kind' in content else 'nameless thing'}, "
            f"not a {kind}."
        )
    require_whole(content, path)
    return dict(content)


def require_version(content: Any, path: Path) -> None:
    """@raises InputError for what is no file of iocast's, or a newer one's"""
    if not isinstance(content, dict) or "schema_version" not in content:
        raise InputError(f"The file '{path}' is not one of iocast's: it has no schema_version.")
    version = content["schema_version"]
    if isinstance(version, bool) or not isinstance(version, int) or version < 1:
        raise InputError(
            f"The file '{path}' has the schema version {strict.shown(version)}, which is no number from 1 on."
        )
    if version > SCHEMA_VERSION:
        raise InputError(
            f"The file '{path}' has schema version {version}; this program reads up to {SCHEMA_VERSION}. Use a newer "
            "iocast."
        )


def require_whole(content: dict[str, Any], path: Path, *, partial: bool = False) -> None:
    """Of a run or a campaign, whoever reads it: what everybody relies on is there, and no measured value is negative.
    `partial`: of a run, parts may lack.

    @raises InputError with the part"""
    if content.get("kind") == "run":
        try:
            require_possible(content, partial=partial)
        except Impossible as error:
            raise InputError(
                f"The file '{path}', {error.where}{error.what}; the file is damaged, or was edited."
            ) from error
    elif content.get("kind") == "campaign":
        _require_campaign(content, path)


def _required_map(
    phase: dict[str, Any], key: str, where: str, refuse: Callable[[str, Any, str], NoReturn]
) -> dict[str, Any]:
    """The map of this key, empty where the phase has none."""
    content = phase.get(key)
    if content is not None and not isinstance(content, dict):
        refuse(f"{where}.{key}", content, "a map")
    return dict(content or {})


def _require_numbers(values: Any, where: str, depth: int, refuse: Callable[[str, Any, str], NoReturn]) -> None:
    """A map of numbers, and of `operations`, each of which has such a map, where `depth` is 2."""
    if not isinstance(values, dict):
        refuse(where, values, "a map")
    for key, value in values.items():
        if key == "operations" and depth == 2:
            if not isinstance(value, dict):
                refuse(f"{where}.operations", value, "a map")
            for name, numbers in value.items():
                _require_numbers(numbers, f"{where}.operations.{strict.shown(name)}", 1, refuse)
        elif isinstance(value, dict | str):
            refuse(f"{where}.{strict.shown(key)}", value, "a number")


def _require_series(phase: dict[str, Any], where: str, refuse: Callable[[str, Any, str], NoReturn]) -> None:
    """Of a phase's timeline, its slowest operations, and its numbers by operation, station and rank."""

    def is_number(value: Any) -> bool:
        return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1e300

    timeline = phase.get("timeline")
    if timeline is not None:
        if not isinstance(timeline, dict):
            refuse(f"{where}.timeline", timeline, "a map")
        for operation, series in timeline.items():
            if operation == "bin_seconds":
                # A phase in which nothing took any time has no bins, of no width.
                if not is_number(series) or (not series and len(timeline) > 1):
                    refuse(f"{where}.timeline.bin_seconds", series, "a number above 0")
            elif not isinstance(series, dict) or not all(
                isinstance(values, list) and all(v is None or is_number(v) for v in values)
                for values in series.values()
            ):
                refuse(f"{where}.timeline.{operation}", series, "a map of lists of numbers")
            elif "count" not in series or len({len(values) for values in series.values()}) != 1:
                refuse(f"{where}.timeline.{operation}", series, "lists of one length, with a count")
        if len(timeline) > 0 and "bin_seconds" not in timeline:
            refuse(f"{where}.timeline", timeline, "a map with bin_seconds")
    ranks = phase.get("rank_seconds")
    if ranks is not None and not (isinstance(ranks, list) and all(is_number(one) for one in ranks)):
        refuse(f"{where}.rank_seconds", ranks, "a list of numbers from 0 on")
    for key, depth in (("by_operation", 1), ("stations", 2)):
        for name, values in _required_map(phase, key, where, refuse).items():
            _require_numbers(values, f"{where}.{key}.{strict.shown(name)}", depth, refuse)
    for name, count in _required_map(phase, "errors_by_operation", where, refuse).items():
        if not is_number(count):
            refuse(f"{where}.errors_by_operation.{strict.shown(name)}", count, "a number from 0 on")
    slowest = phase.get("slowest")
    if slowest is not None and not (
        isinstance(slowest, list)
        and all(
            isinstance(one, dict)
            and isinstance(one.get("op"), str)
            and all(is_number(one.get(key)) for key in ("start", "seconds"))
            for one in slowest
        )
        and all(
            "rank" in one and (one["rank"] is None or is_number(one["rank"])) for one in slowest
        )  # an imported trace may not know it
    ):
        refuse(f"{where}.slowest", slowest, "a list of maps with op, rank, start and seconds")


MEASURED = ("seconds", "operations", "errors", "rate")
"""Keys of every phase; a value that its tool did not tell is null."""
COUNTS = ("operations", "errors", "repeat", "count")
"""Keys of a phase, and of a latency, whose values are whole numbers."""


class Impossible(Exception):
    """What a run can't have: `where` it stands, dots between levels, and `what` is wrong, to be put after it."""

    def __init__(self, where: str, what: str) -> None:
        super().__init__(where + what)
        self.where, self.what = where, what


def require_possible(content: dict[str, Any], *, partial: bool = False) -> None:
    """Of a run, as it is read and as an importer is about to write it: each part is there and can be.

    @raises Impossible"""

    def refuse(where: str, value: Any, wanted: str) -> NoReturn:
        raise Impossible(where, f": {strict.shown(value)} is not {wanted}")

    def require(where: str, value: Any, kind: Any, wanted: str) -> None:
        if (value is not None or not partial) and (not isinstance(value, kind) or isinstance(value, bool)):
            refuse(where, value, wanted)

    require("status", content.get("status"), str, "a word such as complete")
    require("source", content.get("source"), str, "a word such as bench")
    seed = content.get("seed")
    if seed is not None and (not isinstance(seed, int) or isinstance(seed, bool)):
        refuse("seed", seed, "a whole number")
    workload, placement = content.get("workload") or {}, content.get("placement") or {}
    require("workload", content.get("workload"), dict, "a map")
    for key in ("name", "pattern"):
        require(f"workload.{key}", workload.get(key), str, "a name")
    require("workload.parameters", workload.get("parameters"), dict, "a map")
    require("placement", content.get("placement"), dict, "a map")
    for key in ("ranks", "nodes", "ranks_per_node"):
        if key not in placement and not partial:
            raise Impossible("placement", f", has no '{key}'")
        value = placement.get(key)
        whole = isinstance(value, int) and not isinstance(value, bool)
        mean = key == "ranks_per_node" and isinstance(value, float)  # where nodes had unlike numbers
        counted = (whole or mean) and isinstance(value, int | float) and 1 <= value < 2**53
        if not (value is None and key != "ranks") and not counted:
            refuse(f"placement.{key}", value, "a number from 1 on")
    for key in ("waiting_factor", "think_time"):
        if (value := (workload.get("parameters") or {}).get(key, 0)) is not None or key == "waiting_factor":
            try:
                known = not isinstance(value, bool) and 0 <= float(value) <= 1e300
            except (TypeError, ValueError, OverflowError):
                known = False
            if not known:
                refuse(f"workload.parameters.{key}", value, "a number from 0 on")
    require("environment", content.get("environment") or {}, dict, "a map")
    require("phases", content.get("phases"), list, "a list")
    for number, phase in enumerate(content.get("phases") or []):
        where = f"phases[{number}]"
        require(where, phase, dict, "a map")
        if not is_file_name(phase.get("name")):
            refuse(f"{where}.name", phase.get("name"), f"a name, which has {ALLOWED}")
        require(f"{where}.latency", phase.get("latency"), dict, "a map")
        for key in MEASURED:
            if key not in phase and not partial:
                raise Impossible(where, f", has no '{key}'")
        if phase.get("repeat") is None and not partial:
            refuse(f"{where}.repeat", phase.get("repeat"), "a whole number from 0 on")
        _require_series(phase, where, refuse)
        parts = [(where, {key: value for key, value in phase.items() if not isinstance(value, dict | list)})]
        for operation, of in (phase.get("latency") or {}).items():
            require(f"{where}.latency.{strict.shown(operation)}", of, dict, "a map")
            parts.append((f"{where}.latency.{operation}", of))
        for place, values in parts:
            for key, value in values.items():
                if value is None or (
                    isinstance(value, str)
                    and place == where
                    and key not in MEASURED
                    and not str(key).endswith("_seconds")
                ):
                    continue
                if isinstance(value, dict | list | str) or (place != where and isinstance(value, bool)):
                    refuse(f"{place}.{key}", value, "a number")
                if not isinstance(value, bool) and not 0 <= value <= 1e300 and key != "start_seconds":
                    refuse(f"{place}.{key}", value, "a number from 0 on")
                if key in COUNTS and not (isinstance(value, int) and not isinstance(value, bool) and value < 2**63):
                    refuse(f"{place}.{key}", value, "a whole number from 0 to 2^63 - 1")


POINT = {
    "name": str,
    "nodes": int,
    "ranks_per_node": int,
    "settings": dict,
    "role": str,
    "status": str,
    "threads_per_rank": int,
    "group": str,
    "step": str,
    "seed": int | None,
}
"""Keys of a point in campaign.json, name, role and status in each, and their types."""


def read_campaign(directory: Path, *, planned: bool = False) -> dict[str, Any]:
    """The content of a campaign's campaign.json, whose points have what they must, and names that stay in the
    directory. `planned`: also what it takes to make a point's runs.

    @raises InputError with the file and the point"""
    content = read_json(directory / "campaign.json", "campaign")
    for number, point in enumerate(content["points"]):
        if planned and (absent := [key for key in ("nodes", "ranks_per_node", "settings") if key not in point]):
            raise InputError(f"The file '{directory / 'campaign.json'}', points[{number}] has no '{absent[0]}'.")
    return content


def _require_campaign(content: dict[str, Any], path: Path) -> None:
    points = content.get("points")
    if not isinstance(points, list):
        raise InputError(f"The file '{path}' has no list 'points'; it is damaged, or not a campaign of iocast's.")
    names = set()
    for number, point in enumerate(points):
        where = f"The file '{path}', points[{number}]"
        if not isinstance(point, dict):
            raise InputError(f"{where} is no map of keys and values.")
        for key, kind in POINT.items():
            if key not in point:
                if key in ("name", "role", "status"):
                    raise InputError(f"{where} has no '{key}'.")
            elif (
                not isinstance(point[key], kind)
                or isinstance(point[key], bool)
                or (isinstance(point[key], int) and not 0 <= point[key] < 2**63)
            ):
                raise InputError(f"{where}: '{key}' is {strict.shown(point[key])}, which it can't be.")
        if unknown := set(point) - set(POINT):
            raise InputError(
                f"{where} has the unknown key {strict.shown(min(unknown))}; a newer iocast wrote it, or it is damaged."
            )
        for key in ("name", "group"):
            if point.get(key) and not is_file_name(point[key]):
                raise InputError(f"{where}: '{key}' is {strict.shown(point[key])}; a name has {ALLOWED}.")
        if point["name"] in names or not point["name"]:
            raise InputError(f"{where} has no name of its own: {strict.shown(point['name'])}.")
        if any(point.get(key, 1) < 1 for key in ("nodes", "ranks_per_node", "threads_per_rank")):
            raise InputError(f"{where} has no node or no rank; each point has one at least.")
        names.add(point["name"])
    for key, kind in (
        ("attempts", dict),
        ("search", dict),
        ("overrides", dict),
        ("filesystem", dict),
        ("id", str),
        ("places", str),
        ("workload", str),
        ("root", str),
        ("seed", int),
        ("max_rate", str),
    ):
        if key in content and not isinstance(content[key], kind):
            raise InputError(
                f"The file '{path}', {key}: {strict.shown(content[key])} can't be; the file is damaged, or was edited."
            )
    if not is_file_name(content.get("id", "none")):
        raise InputError(
            f"The file '{path}', id: {strict.shown(content['id'])} can't name a file; a name has {ALLOWED}."
        )
    if not all(
        isinstance(n, int) and not isinstance(n, bool) and 0 <= n < 10**6 and is_file_name(key)
        for key, n in content.get("attempts", {}).items()
    ):
        raise InputError(
            f"The file '{path}', attempts: {strict.shown(content['attempts'])} can't be; the file is damaged, or was "
            "edited."
        )


def read_yaml(path: Path) -> dict[str, Any]:
    """A YAML map as plain values. @raises InputError with the line"""
    content = strict.parse_yaml(strict.read_text(path), path)
    if not isinstance(content, dict):
        raise InputError(f"The file '{path}' is not a YAML map of keys and values.")
    return content


def duration(text: str, option: str, low: float, high: float) -> float:
    """ "500ms", "5s", "10min", "2h" in seconds.

    @raises InputError: for anything else, and for what is not from `low` to `high` seconds"""
    found = re.fullmatch(rf"({strict.NUMBER})\s*(ms|s|min|h)", text.strip())
    value = float(found[1]) * {"ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0}[found[2]] if found else -1.0
    if not low <= value <= high:
        raise InputError(
            f"{option} can't be '{text}'; write a number with a unit (ms, s, min, h), from {low:g} s to "
            f"{high / 3600:g} h."
        )
    return value


def utc_now() -> str:
    """ "2026-11-24T20:15:03.120Z", as run.json has `started`."""
    return datetime.now(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def moment(text: str) -> datetime:
    """A time as utc_now() writes it. @raises ValueError for anything else"""
    return datetime.fromisoformat(text.replace("Z", "+00:00"))


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
