# SPDX-License-Identifier: Apache-2.0
"""Columns of other people's tables that hold results or places, by which runs are no different measurements."""

from __future__ import annotations

import re
from collections.abc import Collection

RESULT_WORDS = frozenset(
    "wall walltime elapsed duration runtime seconds tmin tmean tmax mean median stddev stdev sd std variance balance "
    "errors iops bandwidth throughput latency rate ops".split()
)
"""Words of a column's name, of which one makes it a result."""
SETTING_WORDS = frozenset("limit target provisioned mode per think goal quota cap allowed requested".split())
"""Words of which one makes it a setting all the same: a limit of IOPS is none that were measured."""
TIMES = frozenset({"time", "time_s", "time_ms", "total_time", "total_time_s", "start_time", "end_time", "timestamp"})
PLACES = frozenset(
    "file filename file_name path log logfile log_file output source source_path url command cmd".split()
)
"""Names of columns that say where a result comes from."""
IS_A_FILE = r"(?=.*[/.])\S+\.(txt|csv|log|json|out|dat|ya?ml|xml|html?|gz|zst|pdf|darshan)"


def is_result(name: str, cells: Collection[str]) -> bool:
    """Whether a column holds what was measured, or names of files: no setting, by which runs would be different."""
    words = re.split(r"[^a-z0-9]+", name.lower())
    plain = "_".join(words)
    return (
        plain.endswith(("_per_s", "_per_sec", "_per_second"))
        or (bool(RESULT_WORDS & set(words)) and not SETTING_WORDS & set(words))
        or plain in TIMES | PLACES
        or (bool(cells) and all(re.fullmatch(IS_A_FILE, cell, re.IGNORECASE) for cell in cells))
    )
