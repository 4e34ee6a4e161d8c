# SPDX-License-Identifier: Apache-2.0
"""What a report says of accelerators: how busy they were, and what they waited for."""

from __future__ import annotations


import msgspec

from iocast.records.quantities import ACCELERATORS
from iocast.records.run import Accelerators
from iocast.report import units
from iocast.report.sources import Run, Sources
from iocast.report.table import Column, Table
from iocast.training.tasks import limit_of
from iocast.records.simulated import PhaseOfRun


def of_phase(phase: PhaseOfRun) -> Accelerators | None:
    found = phase.get("accelerators")
    return msgspec.convert(found, Accelerators) if found else None


def limit_in(run: Run) -> float:
    """Utilisation that counts as fed for what was trained."""
    parameters = run.document["workload"].get("parameters") or {}
    return limit_of(str(parameters.get("workload") or run.workload))


def what_limits(run: Run, phase: PhaseOfRun) -> str:
    """What the accelerators wait for: computation where they are fed; in a simulation the busiest link or device."""
    of = of_phase(phase)
    used = of.quantity("au") if of else None
    if of is None or used is None:
        return ""
    if used >= limit_in(run):
        return "computation: the accelerators are fed"
    busiest = phase.get("network", {}).get("busiest") or []
    known = f": {busiest[0]['name']} is busy for {units.share(busiest[0]['busy'])}" if busiest else ""
    return f"storage or hosts, which steps wait for{known}"


def table(sources: Sources) -> Table:
    """A line for each phase with accelerators, and each repeat."""
    rows = []
    for run in sources.runs:
        for phase in run.phases:
            if (of := of_phase(phase)) is None:
                continue
            rows.append(
                {
                    "run": run.point or run.name,
                    "source": "simulated" if run.simulated else "measured",
                    "phase": phase["name"],
                    "repeat": phase.get("repeat"),
                    "count": of.count,
                    **{name: of.quantity(name) for name in ACCELERATORS},
                    "bytes_per_second": of.bytes_per_second,
                    "limit": what_limits(run, phase),
                }
            )
    columns = [
        Column("run", "run"),
        Column("source", "source"),
        Column("phase", "phase"),
        Column("repeat", "repeat", "count"),
        Column("count", "accelerators", "count"),
        Column("au", "utilisation", "share"),
        Column("samples", "samples a second", "rate"),
        Column("bytes_per_second", "bandwidth", "bandwidth"),
        Column("accelerator_bandwidth", "of one accelerator", "bandwidth"),
        Column("stall_share", "stalled by checkpoints", "share"),
        Column("limit", "what limits"),
    ]
    kept = [one for one in columns if any(row[one.key] not in (None, "", 0) for row in rows)]
    note = (
        "Utilisation is computation over time after the first step, as DLIO and MLPerf Storage define it; of the whole "
        "phase where that was not recorded."
    )
    return Table("accelerators", "Accelerators", note, kept, rows, leads=True)


def sentence(run: Run) -> str:
    """How busy the accelerators of a run's main phase are, against the benchmark's limit; "" without any."""
    about = run.phase()
    repeats = [(one, of) for one in (run.repeats(about["name"]) if about else []) if (of := of_phase(one))]
    used = [value for _, of in repeats if (value := of.quantity("au")) is not None]
    if not repeats or not used:
        return ""
    mean, limit = sum(used) / len(used), limit_in(run)
    samples = [of.samples_per_second for _, of in repeats if of.samples_per_second is not None]
    rate = f" at {units.digits(sum(samples) / len(samples))} samples a second" if samples else ""
    count = repeats[0][1].count
    verdict = "fed" if mean >= limit else f"not fed: {units.share(limit)} is required"
    is_ = "is" if count == 1 else "are"
    return f"{count:,} accelerator{'s' * (count != 1)} {is_} {units.share(mean)} busy{rate}, {verdict}."
