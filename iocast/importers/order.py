# SPDX-License-Identifier: Apache-2.0
"""Which ranks shared a node, where a log prints how they were started: cyclically (rank r on node r mod nodes) or in
blocks."""

from __future__ import annotations

import re
from collections.abc import Sequence

from iocast.importers.source import Source

CYCLIC = (
    r"\bs(?:run|batch|alloc)\b.*\s(?:--distribution[= ]|-m ?)cyclic\b",  # Slurm's option
    r"#SBATCH\s+(?:--distribution[= ]|-m ?)cyclic\b",
    r"\bSLURM_DISTRIBUTION=['\"]?cyclic\b",
    r"\bmpi(?:run|exec)\b.*\s(?:--?map-by[= ]node\b|--?bynode\b|-rr\b)",  # Open MPI, MPICH
)
BLOCK = (
    r"\bs(?:run|batch|alloc)\b.*\s(?:--distribution[= ]|-m ?)block\b",
    r"#SBATCH\s+(?:--distribution[= ]|-m ?)block\b",
    r"\bSLURM_DISTRIBUTION=['\"]?block\b",
    r"\bmpi(?:run|exec)\b.*\s--?map-by[= ](?:core|slot|ppr:\d+:node)\b",
)
_ORDERS = {"cyclic": re.compile("|".join(CYCLIC)), "block": re.compile("|".join(BLOCK))}


def order_of(sources: Sequence[Source]) -> str | None:
    """ "cyclic" or "block"; None where none or both are printed."""
    text = "\n".join(source.head for source in sources if not source.is_directory)
    found = [order for order, pattern in _ORDERS.items() if pattern.search(text)]
    return found[0] if len(found) == 1 else None
