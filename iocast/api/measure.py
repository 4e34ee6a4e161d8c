# SPDX-License-Identifier: Apache-2.0
"""`iocast.measure`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from iocast.ground.binaries import as_settings
from iocast.api.answer import Place, Progress, quietly
from iocast.api.runs import Runs
from iocast.campaign.bench import Backend
from iocast.campaign.directory import Campaign
from iocast.campaign.places import mount_points
from iocast.campaign.plan import PlannedRun, read_plan


def measure(
    directory: Place | None,
    campaign: Place = "quick",
    *,
    out: Place,
    role: str | None = None,
    nodes: int | None = None,
    settings: Mapping[str, object] | None = None,
    backend: str = "posix",
    backend_options: Sequence[str] = (),
    observe: bool = False,
    seed: int = 0,
    progress: Progress = quietly,
) -> Runs:
    """Runs a campaign on a storage system, or what is missing of it in `out`, and returns the complete runs.

    @param directory on the storage to be measured; its contents are left alone. None for a backend without one
    @param campaign by name, or a file
    @param role only these points: fit or check
    @raises InputError, RunError with the benchmark's sentence; what was measured is kept, and the same call goes on"""

    def report(run: PlannedRun, number: int, total: int) -> None:
        progress(f"measuring {run.text} ({run.name})", number, total)

    place = None if directory is None else Path(directory)
    mounts = max(1, len(mount_points(place)))
    plan = read_plan(str(campaign), nodes=nodes, settings=as_settings(settings or {}), mounts=mounts)
    storage = Backend(backend, tuple(backend_options))
    with Campaign(place, plan, Path(out), seed, backend=storage, observe=observe, role=role) as work:
        work.prepare()
        work.measure(role, report)
        return Runs([Path(out) / "runs" / run.name for run in work.runs if run.status == "complete"])
