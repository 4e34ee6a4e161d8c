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
from typing import Any, BinaryIO, cast

from iocast.ground import strict
from iocast.errors import InputError, RunError
from iocast.records.campaign import CampaignDocument, campaign_of
from iocast.records.declared import Impossible
from iocast.records.run import read_run, with_every_part

SCHEMA_VERSION = 1


def data_directory(name: str) -> Path:
    """`platforms` or `campaigns`: in $IOCAST_HOME, beside this package, or in share/iocast of this Python or of the
    installed programs."""
    places = [Path(os.environ["IOCAST_HOME"])] if "IOCAST_HOME" in os.environ else []
    places += [Path(__file__).resolve().parents[2], Path(sys.prefix) / "share" / "iocast"]
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

    `secret`: nobody else may read it; else the umask decides.
    @raises InputError where `path` is a device, a pipe or a socket, which a file would take the place of"""
    refuse_special(path)
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


def refuse_special(path: Path) -> None:
    """@raises InputError for what is there, and neither a file nor a directory; /dev/stdout is such a thing, too"""
    if path.exists() and (not (path.is_file() or path.is_dir()) or path.absolute().parent == Path("/dev")):
        raise InputError(f"'{path}' is a device, a pipe or a socket, and no place for a file; name a new file.")


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
    with _whole(path):
        if content.get("kind") == "run":
            read_run(with_every_part(content) if partial else content)
        elif content.get("kind") == "campaign":
            campaign_of(content)


@contextlib.contextmanager
def _whole(path: Path) -> Iterator[None]:
    """@raises InputError for what a file's record can't have"""
    try:
        yield
    except Impossible as error:
        raise InputError(
            f"The file '{path}', {error.where}{error.what}; the file is damaged, or was edited."
        ) from error


def read_campaign(directory: Path, *, planned: bool = False) -> CampaignDocument:
    """The content of a campaign's campaign.json, whose points have what they must, and names that stay in the
    directory. `planned`: also what it takes to make a point's runs.

    @raises InputError with the file and the point"""
    path = directory / "campaign.json"
    content = read_json(path, "campaign")
    with _whole(path):
        campaign_of(content, planned=planned)
    return cast(CampaignDocument, content)


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
