# SPDX-License-Identifier: Apache-2.0
"""What a knee search is about."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from iocast.runs.arrivals import number
from iocast.errors import InputError
from iocast.ground.strict_yaml import allowed_sentence

OVER = ("rate", "waiting_factor", "accelerators")
"""What the load of a search is."""


@dataclass
class KneeSearch:
    """What a search is about. directory: None for a backend without one. over: one of OVER."""

    directory: Path | None
    out: Path
    workload: str
    settings: dict[str, str]
    nodes: int
    ranks_per_node: int
    over: str
    phase: str = "benchmark"
    length: float = 5.0
    seed: int = 0
    backend: str = "posix"
    backend_options: list[str] = field(default_factory=list)
    threads_per_rank: int = 1

    @property
    def ranks(self) -> int:
        return self.nodes * self.ranks_per_node

    def check(self) -> None:
        """@raises InputError for settings of the load that is searched, and of another kind of load"""
        if self.over not in OVER:
            raise InputError(f"A knee search can't be over '{self.over}'. {allowed_sentence(self.over, OVER)}")
        if self.ranks_per_node % self.threads_per_rank:
            raise InputError(
                f"--ppn {self.ranks_per_node} can't be processes of --threads-per-rank {self.threads_per_rank} each; "
                "take a multiple."
            )
        forbidden = {"rate": ("rate", "waiting_factor", "think_time"), "waiting_factor": ("rate", "waiting_factor")}
        for name in forbidden.get(self.over, ()):
            if number(self.settings, name) > 0:
                raise InputError(f"A search over {self.over} sets the load itself; leave --set {name} out.")

    @property
    def identity(self) -> dict[str, Any]:
        """What must be the same when a search goes on."""
        return {
            key: str(value) if isinstance(value, Path) else value for key, value in asdict(self).items() if key != "out"
        }
