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
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, BinaryIO

import yaml

from iocast.errors import InputError, RunError
from iocast.names import ALLOWED, is_file_name

SCHEMA_VERSION = 1


def data_directory(name: str) -> Path:
    """`platforms` or `campaigns`: in $IOCAST_HOME, beside this package, or in share/iocast of this Python or of the installed programs."""
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
    """A new file that takes the place of `path` when the block ends well, on the disk by then. After an error nothing of it stays.

    `secret`: nobody else may read it; else the umask decides."""
    handle, fresh = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:100]}.", suffix=".new")
    try:
        with os.fdopen(handle, "wb") as out:
            yield out
            out.flush()
            if not secret:
                os.fchmod(out.fileno(), 0o666 & ~_umask())
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


def _umask() -> int:
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
    """A JSON object whose schema version this program knows and whose kind is `kind`, if given."""
    try:
        content = json.loads(path.read_text())
    except OSError as error:
        raise InputError(f"The file '{path}' can't be read: {error.strerror}.") from error
    except json.JSONDecodeError as error:
        raise InputError(f"{path}:{error.lineno}: this is not valid JSON ({error.msg}); the file may have been cut off.") from error
    if not isinstance(content, dict) or "schema_version" not in content:
        raise InputError(f"The file '{path}' is not one of iocast's: it has no schema_version.")
    if content["schema_version"] > SCHEMA_VERSION:
        raise InputError(
            f"The file '{path}' has schema version {content['schema_version']}; this program reads up to {SCHEMA_VERSION}. Use a newer iocast."
        )
    if kind is not None and content.get("kind") != kind:
        raise InputError(f"The file '{path}' is a {content.get('kind', 'nameless thing')}, not a {kind}.")
    return content


POINT = {"name": str, "nodes": int, "ranks_per_node": int, "settings": dict, "role": str, "status": str, "threads_per_rank": int, "group": str, "step": str, "seed": int | None}
"""Keys of a point in campaign.json, the first six of them in each, and their types."""


def read_campaign(directory: Path) -> dict[str, Any]:
    """The content of a campaign's campaign.json, whose points have what they must, and names that stay in the directory.

    @raises InputError with the file and the point"""
    path = directory / "campaign.json"
    content = read_json(path, "campaign")
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
                if key in ("name", "nodes", "ranks_per_node", "settings", "role", "status"):
                    raise InputError(f"{where} has no '{key}'.")
            elif not isinstance(point[key], kind) or isinstance(point[key], bool) or (isinstance(point[key], int) and not 0 <= point[key] < 2**63):
                raise InputError(f"{where}: '{key}' is {_shown(point[key])}, which it can't be.")
        if unknown := set(point) - set(POINT):
            raise InputError(f"{where} has the unknown key {_shown(min(unknown))}; a newer iocast wrote it, or it is damaged.")
        for key in ("name", "group"):
            if point.get(key) and not is_file_name(point[key]):
                raise InputError(f"{where}: '{key}' is {_shown(point[key])}; a name has {ALLOWED}.")
        if point["name"] in names or not point["name"]:
            raise InputError(f"{where} has no name of its own: {_shown(point['name'])}.")
        names.add(point["name"])
    return content


def _shown(value: Any) -> str:
    """A value of a file for a message: short, without what a terminal would act on."""
    text = ascii(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def read_yaml(path: Path) -> dict[str, Any]:
    try:
        # A fitted platform with its draws is long: the C loader, where there is one, reads it in a tenth of the time.
        content = yaml.load(path.read_text(), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except OSError as error:
        raise InputError(f"The file '{path}' can't be read: {error.strerror}.") from error
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise InputError(f"{path}:{line}: this is not valid YAML: {error.problem}.") from error
    if not isinstance(content, dict):
        raise InputError(f"The file '{path}' is not a YAML map of keys and values.")
    return content


def duration(text: str, option: str, low: float, high: float) -> float:
    """ "500ms", "5s", "10min", "2h" in seconds.

    @raises InputError: for anything else, and for what is not from `low` to `high` seconds"""
    found = re.fullmatch(r"\s*(\d+\.?\d*|\.\d+)\s*(ms|s|min|h)\s*", text)
    value = float(found[1]) * {"ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0}[found[2]] if found else -1.0
    if not low <= value <= high:
        raise InputError(f"{option} can't be '{text}'; write a number with a unit (ms, s, min, h), from {low:g} s to {high / 3600:g} h.")
    return value


def utc_now() -> str:
    """ "2026-11-24T20:15:03.120Z", as run.json has `started`."""
    return datetime.now(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def moment(text: str) -> datetime:
    """A time as utc_now() writes it. @raises ValueError for anything else"""
    return datetime.fromisoformat(text.replace("Z", "+00:00"))


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
