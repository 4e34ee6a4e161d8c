# SPDX-License-Identifier: Apache-2.0
"""`iocast.knee`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from iocast.ground.binaries import as_settings
from iocast.api.answer import Found, Place, Progress, Row, cells, quietly
from iocast.api.chart import Axes
from iocast.campaign.launchers import Ending
from iocast.ground.files import duration
from iocast.knee import Search, check_levels
from iocast.knee.probes import Probes
from iocast.knee.request import KneeSearch
from iocast.knee.words import knee_text
from iocast.records.knee import KneeDocument
from iocast.study.levels import parse_level


class Knee(Found[KneeDocument]):
    """The highest load that keeps service levels, and every load that was tried."""

    axes = Axes("load", "response")

    def text(self) -> str:
        return knee_text(self._document)

    def rows(self) -> list[Row]:
        keys = ("load", "runs", "met", "missed", "verdict", "rate", "response", "busy")
        loads = [dict(cells(one)) | {"runs": len(one["runs"])} for one in self._document["loads"]]
        return [{key: one.get(key) for key in keys} for one in loads]


def knee(
    directory: Place | None,
    slo: str | Sequence[str] = (),
    *,
    out: Place,
    over: str = "rate",
    nodes: int = 1,
    ranks_per_node: int = 1,
    workload: str = "md-workbench",
    settings: Mapping[str, object] | None = None,
    phase: str = "benchmark",
    length: str = "5s",
    budget: str = "10min",
    precision: float = 0.1,
    confidence: float = 0.9,
    backend: str = "posix",
    backend_options: Sequence[str] = (),
    seed: int = 0,
    progress: Progress = quietly,
) -> Knee:
    """Searches the highest load of a storage system that keeps service levels, by runs of the benchmark.

    @param slo levels such as "p99(create) < 50 ms"; without any, the load of greatest throughput / response time
    @param over what the load is: "rate" or "waiting_factor"
    @param length, budget of a run, and of all, with units
    @raises InputError, RunError; the same call goes on with a search in `out`"""
    levels = [parse_level(text) for text in ([slo] if isinstance(slo, str) else slo)]
    seconds = duration(budget, "--budget", 1, 30 * 86400)
    place = None if directory is None else Path(directory).resolve()
    question = KneeSearch(
        place, Path(out), workload, as_settings(settings or {}), nodes, ranks_per_node, over, phase,
        duration(length, "--length", 0.1, 86400), seed, backend, list(backend_options),
    )  # fmt: skip
    with Probes(question, {"levels": [level.text for level in levels]}, Ending()) as probes:
        check_levels(levels, probes.operations)
        probes.check_extent(seconds)
        search = Search(probes, levels, budget=seconds, confidence=confidence, precision=precision)
        return Knee(search.run(progress))
