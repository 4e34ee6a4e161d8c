# SPDX-License-Identifier: Apache-2.0
"""Which platform families may explain measurements, by the storage that they name. Storage is local only where its file
system is known to be; whatever else is not known may be shared by all nodes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from iocast.platforms.fitted import refuse_more_nodes
from iocast.platforms.documents import Document
from iocast.records.note_of_measurements import FamilyByDefault
from iocast.runs.run_directory import Point
from iocast.wording.notes import add

RATES_ALONE = "queue"
"""The platform for runs that have no latencies."""
FAMILIES = {"lustre": "lustre", "beegfs": "beegfs", "ceph": "cephfs", "fuse": "fuse", "nfs": "nfs"}
"""The platform family by a part of a file system's type."""
WITHOUT_A_CACHE = frozenset({"libnfs"})
"""Clients that ask the server for each part of an operation, where those of the family have a cache."""
LOCAL = frozenset(
    "ext2 ext3 ext4 xfs btrfs zfs tmpfs ramfs shmem devtmpfs overlay overlayfs aufs f2fs bcachefs nilfs2 jfs reiserfs "
    "ntfs ntfs3 vfat msdos exfat hfs hfsplus apfs ufs squashfs erofs rootfs".split()
)
"""File systems of one operating system, as mounts and stat -f name them."""
DEFAULT = ("network", "lustre")
"""Families for storage that is not known, the plainest first: the one that fits best is taken."""


@dataclass(frozen=True)
class Storage:
    """families: to be tried, the plainest first. unknown: why they are a default, as a clause; empty where the
    measurements name the family."""

    families: tuple[str, ...]
    unknown: str = ""

    def require_nodes(self, points: Sequence[Point], nodes: int) -> None:
        """@raises InputError for more nodes than were measured, where neither the storage nor a second number of nodes
        tells what a further node brings"""
        if self.unknown:
            refuse_more_nodes({point.first.placement[0] for point in points}, nodes, self.unknown)


def storage_of(points: Sequence[Point]) -> Storage:
    """The families for these points' storage: `queue` where some point has no quantiles of latency."""
    if any(len(point.quantities()) == 1 for point in points):
        return Storage((RATES_ALONE,))
    environment = points[0].first.json.get("environment") or {}
    filesystem = environment.get("filesystem") or {}
    if filesystem.get("client") in WITHOUT_A_CACHE:
        return Storage(("network",))
    kind = str(filesystem.get("type", "")).lower()
    service = environment.get("service")
    named = kind or str((service or {}).get("type", "")).lower()
    family = next((family for name, family in FAMILIES.items() if name in named), None)
    if family is not None:
        return Storage((family,))
    if service:
        # Family `service` has the clients' machine do the work: with clients on several that is not so.
        apart = any((point.first.placement[0] or 1) > 1 for point in points)
        unknown = f"the machines of the service '{service.get('type', '')}' are not recorded"
        return Storage(("network" if apart else "service",), unknown)
    if kind and LOCAL & set(kind.split("/")):
        return Storage(("local",))
    if kind in ("", "unknown"):
        return Storage(DEFAULT, "the measured file system is not recorded")
    return Storage(DEFAULT, f"no family is known for the file system '{kind}'")


def best_family(storage: Storage, fit: Callable[[str], Document]) -> Document:
    """The fit of the family whose score is the smallest, with what was tried under `fitted.by_default` where the family
    is a default."""
    documents = {family: fit(family) for family in storage.families}
    won = min(documents, key=lambda family: float(documents[family]["fitted"].get("score", 0.0)))
    document = documents[won]
    if storage.unknown:
        scores = {family: float(one["fitted"]["score"]) for family, one in documents.items()}
        document["fitted"]["by_default"] = {"because": storage.unknown, "family": won, "scores": scores}
        add(document["fitted"], [FamilyByDefault(won, storage.unknown, scores)])
    return document
