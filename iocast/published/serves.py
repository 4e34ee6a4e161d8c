# SPDX-License-Identifier: Apache-2.0
"""Which questions a platform answers: the section `serves` of its file (docs/platforms.md), which iocast-sim
obeys in its runs, for forecasts and studies."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from iocast.ground import binaries
from iocast.errors import InputError
from iocast.platforms.fitted import Fitted
from iocast.platforms.documents import merge
from iocast.records.note import NoFacts
from iocast.runs.question import Setting
from iocast.ground.strict_yaml import Section
from iocast.wording.text import quantity

FAR = 4
"""Times the largest nodes or ranks of any published number of a platform, beyond which a forecast says so."""
REFUSED = 10
"""And beyond which there is none but on request."""


@dataclass(frozen=True)
class Serves:
    """Largest nodes and ranks of the published numbers of a system, 0 without any, and rates that it can't exceed."""

    platform: str
    """Whose file states the scale, or the one that was requested."""
    nodes: int = 0
    ranks: int = 0
    measured: bool = False
    """Calibrated to measurements, which say more than published numbers."""
    node_local: frozenset[str] | None = frozenset()
    """Operations that a node does by itself; None: all."""
    bounds: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """By operation `rate`, operations a second, and `bytes`, bytes a second."""
    source: Fitted | None = field(default=None, compare=False)
    """Whose files say so."""

    @classmethod
    def of(cls, platform: Fitted) -> Serves:
        """@raises InputError for a section that iocast-sim refuses, with file and line"""
        try:
            return cls._read(platform)
        except (AttributeError, TypeError, ValueError):
            binaries.resolve_platform(platform.file)
            raise

    @classmethod
    def _read(cls, platform: Fitted) -> Serves:
        merged: dict[str, Any] = {}
        name = platform.file.stem
        for file, document in reversed(platform.chain()):
            if own := document.get("serves"):
                merged = merge(merged, own)
                name = file.stem if own.get("facts") else name
        scale = {} if platform.fitted else merged.get("facts") or {}
        bounds = {
            operation: {key: _per_second(value) for key, value in one.items()}
            for operation, one in (merged.get("bounds") or {}).items()
        }
        local = merged.get("node_local") or ()
        return cls(
            name, int(scale.get("nodes", 0)), int(scale.get("ranks", 0)), bool(platform.fitted),
            None if local == "all" else frozenset(local), bounds, platform,
        )  # fmt: skip

    @property
    def template(self) -> NoFacts | None:
        """Of a platform that no number of a system stands behind."""
        return None if self.measured or self.nodes else NoFacts(self.platform)

    def beyond(self, nodes: float, ranks: float) -> float:
        """Times the largest nodes or ranks of a published number; 0 without any."""
        return max(nodes / self.nodes, ranks / self.ranks) if self.nodes else 0.0

    def refuse_beyond(self, nodes: int, ranks: int) -> None:
        """@raises InputError where a platform with published numbers is requested far beyond all of them"""
        if (factor := self.beyond(nodes, ranks)) > REFUSED:
            raise InputError(
                f"{nodes:,} nodes with {ranks:,} ranks are {factor:.0f} times the largest of any published number of "
                f"{self.platform} ({self.nodes:,} nodes, {self.ranks:,} ranks): nothing tells whether it is like its "
                f"model there. Allowed: {REFUSED} times; or simulate it all the same with --beyond."
            )

    def refuse_alone(self, operations: Iterable[str], alone: Iterable[str]) -> None:
        """@raises InputError for operations among `alone`, which visit nothing that nodes share, and which the platform
        doesn't declare as node-local. iocast-sim refuses the same."""
        local = self.node_local
        found = [op for op in operations if op in alone and local is not None and op not in local]
        if found:
            where = self._where("operations", found[0])
            raise InputError(
                f"{where}: on the platform '{self.platform}' these operations visit nothing that client nodes share: "
                f"{', '.join(found)}. Each further node would do as much as the first, without bound. Give their "
                f"routes a server; or, where each node works by itself, write serves: {{node_local: "
                f"[{', '.join(found)}]}} in the platform's file. One node is simulated as it is."
            )

    def refuse_unbounded(self, operation: str, phase: str, rate: float, each: float) -> None:
        """@raises InputError for a rate beyond a bound that the platform declares. each: bytes of an operation"""
        bound = self.bounds.get(operation, {})
        for key, value in (("rate", rate), ("bytes", rate * each)):
            if key in bound and value > bound[key] * (1 + 1e-9):
                unit = "bandwidth" if key == "bytes" else "rate"
                where = self._where("serves", "bounds", operation)
                raise InputError(
                    f"{where}: in the phase '{phase}' {operation} has {quantity(unit, value)} on the platform "
                    f"'{self.platform}', whose file declares {quantity(unit, bound[key])} as the most that it serves "
                    f"(serves.bounds.{operation}.{key}): no such answer is given. Ask for fewer clients, or declare "
                    "another bound."
                )

    def _where(self, *keys: str) -> str:
        """File and line of a section, in the topmost file that has it."""
        assert self.source is not None
        for file, document in self.source.chain():
            here: Any = document
            for key in keys:
                here = here.get(key) if isinstance(here, dict) else None
            if here is not None and file.is_file():
                section = Section.load(file)
                for key in keys[:-1]:
                    section = section.section(key)
                return f"{file}:{section.line(keys[-1])}"
        return str(self.source.file)


def _per_second(value: Any) -> float:
    """Of "18000/s" or "5.25GB/s"; what it can't be, iocast-sim refuses with its line."""
    return Setting.read(str(value).removesuffix("/s")).number or math.inf


def refuse_beyond(platform: Fitted, nodes: int, ranks: int) -> None:
    """@raises InputError where a platform with published numbers is requested far beyond all of them"""
    Serves.of(platform).refuse_beyond(nodes, ranks)
