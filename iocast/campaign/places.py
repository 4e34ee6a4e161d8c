# SPDX-License-Identifier: Apache-2.0
"""Directories that a campaign works in: who owns them, what lies in them, what an earlier process left running."""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
import struct
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import psutil

from iocast.ground import claim
from iocast.ground.claim import Claim
from iocast.errors import InputError, RunError
from iocast.ground.own_directory import MODE, OwnDirectory, require_own_directory
from iocast.records.campaign import CampaignDocument

MARK = "IOCAST_CAMPAIGN"
"""Environment variable of everything that a campaign starts: the campaign's identity."""
MAY_BE_LEFT = "The last run may have left its objects on the service."
COUNTING = 2.0
"""Seconds that a count of left files may take."""
SCRATCH = "iocast-campaign"
"""Directory below the measured one in which data sets lie."""
BY_CAMPAIGN = "by campaign"
"""Value of `places` in campaign.json: directories of data sets have the campaign's identity in their names."""


def counted(places: Sequence[Path]) -> str:
    """How many files and directories these directories are with what is in them: "1,234 files and directories". A count
    that takes more than COUNTING seconds ends there."""
    found, end = len(places), time.monotonic() + COUNTING
    for place in places:
        for _, directories, files in os.walk(place):
            found += len(directories) + len(files)
            if time.monotonic() > end:
                return f"at least {found:,} files and directories"
    return f"{found:,} files and directories"


def mark_of_places(campaign: Mapping[str, Any]) -> str:
    """The campaign's identity, which its directories have in their names; "" for a campaign of before they had."""
    return str(campaign["id"]) if campaign.get("places") == BY_CAMPAIGN else ""


def own_place(scratch: Path | None, name: str, mark: str) -> Path | None:
    """Directory of a data set below DIR/iocast-campaign. The campaign's identity `mark` is in its name, so that no
    other campaign's data set ever has it. None for a backend without directories."""
    return None if scratch is None else scratch / (f"{name}.{mark}" if mark else name)


def mount_points(directory: Path | None) -> list[Path]:
    """The ways to one directory of a file system that is mounted several times: "A,B,C", unless that is itself a
    directory. Empty for a backend without one."""
    if directory is None:
        return []
    return [directory] if directory.exists() else [Path(one) for one in str(directory).split(",")]


def make_place(place: Path | None) -> None:
    """Makes the directory of a data set, unless it is there. Nobody else can put anything into it.

    @raises InputError when something else is there"""
    if place is None:
        return
    with contextlib.suppress(FileExistsError):
        place.mkdir(mode=0o700)
    require_directory(place)


def require_directory(place: Path | None) -> None:
    """@raises InputError when the place is no directory itself: what a symbolic link leads to belongs to others"""
    if place is not None and not stat.S_ISDIR(os.lstat(place).st_mode):
        kind = "a symbolic link" if place.is_symlink() else "no directory"
        raise InputError(f"'{place}' is {kind}, which iocast did not make; look at it, and move it away.")


def left_in(scratch: Path, mark: str = "") -> str:
    """What directories of data sets there are in DIR/iocast-campaign, as a sentence; "" for none. mark: only those of
    the campaign of this identity."""
    try:
        places = [one for one in scratch.iterdir() if one.name.endswith(f".{mark}" * bool(mark)) and one.is_dir()]
        if mark:  # its own empty ones are clean
            places = [one for one in places if any(one.iterdir())]
    except FileNotFoundError:
        return ""
    except OSError as error:
        return f"'{scratch}' can't be read ({error.strerror}); it may still hold files."
    return f"'{scratch}' still holds {counted(places)}." if places else ""


def remove_if_empty(place: Path | None) -> bool:
    """Whether there is no such directory afterwards. None is no directory, and may hold anything."""
    if place is None:
        return False
    try:
        place.rmdir()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


def end_earlier(campaign: CampaignDocument, out: Path, take_over: bool) -> None:
    """Ends what an earlier process of this campaign left running, unless the campaign is a copy of one that goes on:
    copies have one identity, and, on a service, one place. Notes where it is now.

    @raises InputError when it goes on elsewhere, RunError as end_orphans()"""
    here, before = str(out.resolve()), str(campaign.get("out", ""))
    if before not in ("", here) and (owner := claim.live_owner(Path(before), take_over)):
        raise InputError(f"The campaign in '{out}' is a copy of that in '{before}', which goes on. {owner}")
    campaign["out"] = here
    end_orphans(str(campaign["id"]))


def end_orphans(mark: str) -> None:
    """Ends what an earlier process of this campaign started on this machine and left running.

    @raises RunError for one that does not end, as in a call to storage that hangs"""
    orphans = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if process.pid != os.getpid() and process.environ().get(MARK) == mark:
                orphans.append(process)
    for deadly in (False, True):
        for process in orphans:
            with contextlib.suppress(psutil.Error):
                (process.kill if deadly else process.terminate)()
        _, orphans = psutil.wait_procs(orphans, timeout=5)
    if orphans:
        which = ", ".join(str(process.pid) for process in orphans)
        raise RunError(
            f"Of an earlier process of this campaign still run here, and can't be ended: {which}. They wait for the "
            "storage, most likely; the campaign goes on when they are gone."
        )


def make_own_directory(path: Path) -> OwnDirectory:
    """A directory whose children the ext file systems spread over block groups, as they do with users' homes.

    ext4 without a journal looks at every inode of a group that was deleted within the last minutes before it makes a
    new one there (Linux, fs/ext4/ialloc.c, recently_deleted), so runs that share a group slow down those after them, up
    to forty-fold for creates. Other file systems don't know the flag."""
    with contextlib.suppress(FileExistsError):
        path.mkdir(MODE)
    made = OwnDirectory(path)
    get_flags, set_flags, top_directory = 0x80086601, 0x40086602, 0x00020000  # linux/fs.h
    with contextlib.suppress(OSError):
        (flags,) = struct.unpack("l", fcntl.ioctl(made.handle, get_flags, struct.pack("l", 0)))
        fcntl.ioctl(made.handle, set_flags, struct.pack("l", flags | top_directory))
    return made


def _not_begun(out: Path) -> bool:
    """Whether there is no more than what comes before campaign.json: nothing, a claim, job scripts, and a pilot that
    was ended."""
    if not out.is_dir():
        return False
    names = {p.name for p in out.iterdir()}
    pilots = {p.name.partition(".")[0] for p in (out / "runs").iterdir()} if "runs" in names else set()
    return all(name in ("slurm", "runs") or claim.NAME in name for name in names) and pilots <= {"pilot"}


class Owned:
    """What this process alone works in: a campaign's directory, and DIR/iocast-campaign. Both are made. `out`: the
    first, open. Release it."""

    def __init__(self, out: Path, scratch: Path | None, take_over: bool) -> None:
        """@raises InputError, RunError when another process owns one of them, or another user can change them"""
        self._claims: list[Claim] = []
        self._opened: list[OwnDirectory] = []
        self._made = [] if os.path.lexists(out) else [out]
        self._scratch = scratch
        try:
            out.parent.mkdir(parents=True, exist_ok=True)
            with contextlib.suppress(FileExistsError):
                out.mkdir(MODE)
            self.out = OwnDirectory(out)
            self._claim(self.out, str(out.resolve()), "iocast measure into this directory", take_over)
            for name in ("runs", "observations"):
                if os.path.lexists(self.out.at / name):
                    with self.out.named():
                        require_own_directory(self.out.at / name)
            if scratch is not None:
                place = make_own_directory(scratch)
                self._claim(place, str(out.resolve()), f"the campaign in '{out.resolve()}'", take_over)
        except OSError as error:
            self.release()
            raise RunError(f"The directory '{error.filename or out}' can't be made: {error.strerror}.") from error
        except BaseException:
            self.release()
            raise

    def _claim(self, directory: OwnDirectory, campaign: str, what: str, take_over: bool) -> None:
        self._opened.append(directory)
        with directory.named():
            self._claims.append(Claim(directory.at, campaign, what, take_over=take_over))

    def make(self, name: str) -> Path:
        """A directory in the campaign's, unless it is there; the way to it by what is open."""
        (path := self.out.at / name).mkdir(MODE, exist_ok=True)
        return path

    def require_held(self) -> None:
        """@raises RunError when somebody took one of them over, as after minutes without a sign of life"""
        if not all(one.is_held() for one in self._claims):
            raise RunError(
                "Another process has taken this campaign over; this one ends here, and what it measured is kept."
            )

    def release(self) -> None:
        for one in reversed(self._claims):
            one.release()
        self._claims = []
        for opened in self._opened:
            opened.close()
        self._opened = []
        for directory in [*self._made, *([self._scratch] if self._scratch else [])]:  # unless something was made in it
            remove_if_empty(directory)


def check_out(out: Path, scratch: Path | None) -> None:
    """@raises InputError when something else than a campaign is there, or `out` lies among the data sets"""
    if scratch is not None and out.resolve().is_relative_to(scratch):
        raise InputError(
            f"The output directory '{out}' lies in '{scratch}', where data sets are made and removed; choose another "
            "place."
        )
    if out.exists() and not (out / "campaign.json").is_file() and not _not_begun(out):
        raise InputError(
            f"The output directory '{out}' exists already and holds no campaign; name a new one, nothing is "
            "overwritten."
        )
