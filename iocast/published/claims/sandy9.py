# SPDX-License-Identifier: Apache-2.0
"""Runs of md-workbench on one machine with XFS and btrfs: rows of `platforms/facts/sandy9.csv`.

Repeats of a run differ by up to a factor of four where memory is just short. Runs of XFS and btrfs that nothing was
fitted to are among the rows that were kept apart (validation/published/frozen.py)."""

from __future__ import annotations

from iocast.published.facts import claims_of

SOURCE = "J. Kunkel: md-workbench's results of one machine (sandy9), 2016 to 2017"

REASONS = {
    "kept-inodes": (
        "Memory keeps exactly the inodes that were used last, so that a removal after the benchmark phase hardly has "
        "to read any; measured removals are as slow as if none were kept, and three processes hinder each other there."
    ),
    "write-backs": (
        "An inode's write-back has one time, whatever else is written; measured creates wait for it with many "
        "processes and hardly with one."
    ),
    "slower-than-one": (
        "Three processes on the SSD are slower than one in this run; on the disk, with all memory as well, they are "
        "twice as fast."
    ),
}

CLAIMS = claims_of("sandy9", REASONS)
