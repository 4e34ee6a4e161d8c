# SPDX-License-Identifier: Apache-2.0
"""The tables of a report: rows of plain values, and for each column how people read it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from iocast.knee.words import confirmation, counted, load_text, own_operations, why_ended
from iocast.runs.phases import main_phases, rate_of
from iocast.records.forecast import RANGE, forecast_rate, value_of
from iocast.report import accelerators, evidence, feeding, servers, study_tables, units
from iocast.report.evidence import Comparison
from iocast.report.sources import Run, Sources
from iocast.report.table import Column, Table
from iocast.watching.utilisation import bounds, waits_in
from iocast.records.simulated import PhaseOfRun


def all_tables(sources: Sources) -> list[Table]:
    """Every table with at least one row, in reading order."""
    compared = evidence.comparisons(sources)
    made = [
        *study_tables.all_tables(sources),
        feeding.table(sources),
        accelerators.table(sources),
        _knees(sources),
        _beside("checked", "Forecast beside measurement", [c for c in compared if c.role == "check"], folded=False),
        _forecasts(sources),
        _family(sources),
        _limits(sources),
        _runs(sources),
        servers.table(sources),
        _means(sources),
        _demands(sources),
        _waits(sources),
        _beside("refitted", "The fitted model beside the measurements it was fitted to",
                [c for c in compared if c.role != "check"], folded=True),
        _parameters(sources),
        _structures(sources),
    ]  # fmt: skip
    return [t for t in made if t.rows]


def _knees(sources: Sources) -> Table:
    """Knee searches: the load that each states, in its own unit."""
    rows: list[dict[str, Any]] = []
    for knee in sources.knees:
        ranks, ends = knee["placement"]["ranks"], knee["knee"]
        answer: Mapping[str, Any] = knee["answer"] or {}
        of_level = {level["text"]: level["quantity"] for level in knee["levels"]}
        values = {
            text: units.quantity(of_level[text], value["value"]) for text, value in (answer.get("values") or {}).items()
        }
        rows.append(
            {
                "search": knee["name"],
                "ranks": ranks,
                "what": " and ".join(level["text"] for level in knee["levels"]) or "greatest power",
                "load": load_text(knee["over"], answer.get("load"), ranks),
                "low": load_text(knee["over"], ends["low"], ranks),
                "high": load_text(knee["over"], ends["high"], ranks)
                if ends["high"] is not None or not answer
                else "not reached",
                "confidence": knee["confidence"],
                "confirmed": confirmation(knee).removesuffix("."),
                "rate": (answer.get("rate") or {}).get("value"),
                "alone": ", ".join(
                    f"{op}: {units.rate(rate)}"
                    for op in own_operations(knee)
                    if (rate := ((answer.get("rates") or {}).get(op) or {}).get("value")) is not None
                ),
                "response": (answer.get("response") or {}).get("value"),
                "values": ", ".join(f"{text}: {value}" for text, value in values.items()),
                "why": why_ended(knee),
            }
        )
    columns = [
        Column("search", "search"),
        Column("ranks", "ranks", "count"),
        Column("what", "searched"),
        Column("load", "load"),
        Column("low", "knee from"),
        Column("high", "to"),
        Column("confidence", "confidence", "share"),
        Column("confirmed", "fresh runs"),
        Column("rate", "throughput", "rate"),
        Column("alone", "operations alone"),
        Column("response", "mean response", "seconds"),
        Column("values", "levels there"),
        Column("why", "why it ended"),
    ]
    note = (
        "The load is the highest for which the search found the levels kept, or that of the greatest power (throughput "
        "over response time). The column 'fresh runs' has whether they confirm it; the knee lies in the interval. "
        + " ".join(dict.fromkeys(n for knee in sources.knees for n in [counted(knee), *knee["notes"]] if n))
    )
    return Table("knees", "Knee", note.strip(), columns, rows, leads=True)


def _beside(name: str, title: str, compared: list[Comparison], folded: bool) -> Table:
    names = {n for c in compared for r in c.rows for n in (r.get("baselines") or {})}
    baselines = sorted(names, key=evidence.baseline_order)
    columns = [
        Column("phase", "phase"),
        Column("ranks", "ranks", "count"),
        Column("waiting_factor", "waiting factor", "plain"),
        Column("quantity", "quantity"),
        Column("measured", "measured", "quantity"),
        Column("measured_low", "range of repeats", "quantity", "measured_high"),
        *([Column("truth", "truth", "quantity")] if any("truth" in row for c in compared for row in c.rows) else []),
        Column("forecast", "forecast", "quantity"),
        Column("low", "interval", "quantity", "high"),
        Column("error", "error", "error"),
        Column("inside", "inside", "yesno"),
        *(Column(n, f"error of {n}", "error") for n in baselines),
    ]
    rows = []
    for c in compared:
        for row in c.rows:
            printed = row.get("baselines") or {}
            errors = {n: one.get("error") if (one := printed.get(n)) else None for n in baselines}
            rows.append({"phase": c.phase, "ranks": c.ranks, "waiting_factor": c.waiting_factor, **row, **errors})
    note = (
        "Error is forecast over measurement minus 1. Inside says whether the interval of the forecast contained the "
        "measurement. Bounds have no error: they say only between what the answer must lie."
    )
    if any("truth" in row for c in compared for row in c.rows):
        note += " Truth: the drawn server alone in a simulation, without the kernel, FUSE and the benchmark."
    if not all(c.waiting_factor for c in compared):
        columns = [c for c in columns if c.key != "waiting_factor" or any(r["waiting_factor"] for r in rows)]
    columns = [c for c in columns if c.key not in names or any(r[c.key] is not None for r in rows)]
    return Table(name, title, note, columns, rows, folded)


def _forecasts(sources: Sources) -> Table:
    tails = {n for f in sources.forecasts for n in f["quantities"] if n.endswith(".q99")}
    columns = [
        Column("phase", "phase"),
        Column("system", "system"),
        Column("ranks", "ranks", "count"),
        Column("nodes", "nodes", "count"),
        Column("waiting_factor", "waiting factor", "plain"),
        Column("rate", "throughput", "rate", within=("rate_low", "rate_high")),
        Column("rate_low", "interval", "rate", "rate_high"),
        *(
            Column(n, n, "seconds", within=(f"{n}.low", f"{n}.high"))
            for n in sorted(tails, key=evidence.quantity_order)
        ),
        Column("extrapolation", "extrapolation", "factor"),
    ]
    rows: list[dict[str, Any]] = []
    for label, forecasts in (
        pair for phase in evidence.forecast_phases(sources) for pair in evidence.what_if(sources, phase).items()
    ):
        for f in forecasts:
            rate: Mapping[str, Any] = forecast_rate(f) or {}
            rows.append(
                {
                    "phase": evidence.phase_of(f),
                    "system": label,
                    "ranks": evidence.ranks_of(f["placement"]),
                    "nodes": f["placement"].get("nodes"),
                    "waiting_factor": evidence.waiting_factor(f),
                    "rate": rate.get("value"),
                    "rate_low": rate.get("low"),
                    "rate_high": rate.get("high"),
                    "unit": rate.get("unit"),
                    **{n: value_of(f["quantities"].get(n)) for n in tails},
                    **{
                        f"{n}.{end}": ends[end] if (ends := f["quantities"].get(n)) else None
                        for n in tails
                        for end in RANGE
                    },
                    "extrapolation": f.get("extrapolation"),
                }
            )
    if not any(r["waiting_factor"] for r in rows):
        columns = [c for c in columns if c.key != "waiting_factor"]
    note = "q99 is exceeded by one operation in a hundred. Extrapolation is these ranks over the most that were fitted."
    return Table("forecasts", "All forecasts", note, columns, rows)


def _family(sources: Sources) -> Table:
    """Forecasts of platforms that were never calibrated beside the measured systems of their family."""
    shown = [
        (label, f)
        for phase in evidence.forecast_phases(sources)
        for label, forecasts in evidence.what_if(sources, phase).items()
        for f in forecasts
        if f.get("family")
    ]
    systems = list(dict.fromkeys(one["name"] for _, f in shown for one in f["family"]["systems"]))
    rows = [
        {
            "phase": evidence.phase_of(f),
            "system": label,
            "ranks": evidence.ranks_of(f["placement"]),
            "quantity": name,
            "forecast": f["quantities"][name]["value"],
            "low": ends["low"],
            "high": ends["high"],
            **{one["name"]: one["quantities"].get(name) for one in f["family"]["systems"]},
        }
        for label, f in shown
        for name, ends in f["family"]["range"].items()
        if name == "rate" or name.endswith((".q50", ".q99"))
    ]
    columns = [
        Column("phase", "phase"),
        Column("system", "system"),
        Column("ranks", "ranks", "count"),
        Column("quantity", "quantity"),
        Column("forecast", "forecast", "quantity"),
        Column("low", "range, not an interval", "quantity", "high"),
        *(Column(name, name, "quantity") for name in systems),
    ]
    note = (
        "Nothing was fitted to measurements of these systems. The last columns are models that were set to "
        "measurements of other systems of the family, with the same question."
    )
    return Table(
        "family", "Forecasts without measurements beside measured systems of their family", note, columns, rows
    )


def _limits(sources: Sources) -> Table:
    rows = [
        {
            "phase": evidence.phase_of(f),
            "system": label,
            "ranks": evidence.ranks_of(f["placement"]),
            "bottleneck": evidence.limit_of(f),
        }
        for label, forecasts in evidence.what_if(sources).items()
        for f in forecasts
        if f.get("bottleneck")
    ]
    columns = [
        Column("phase", "phase"),
        Column("system", "system"),
        Column("ranks", "ranks", "count"),
        Column("bottleneck", "what limits it"),
    ]
    return Table("limits", "What limits each forecast", "As the model sees it.", columns, rows, folded=True)


def _runs(sources: Sources) -> Table:
    tails: set[str] = set()
    rows: list[dict[str, Any]] = []
    for run, phase in (
        (r, p)
        for r in sources.runs
        for p in [one for name in _shown_phases(r) for one in r.repeats(name)] or [PhaseOfRun()]
    ):
        latency = {o: v for o, v in (phase.get("latency") or {}).items() if "." not in o}
        values = {f"{o}.{q}": v.get(q) for o, v in latency.items() for q in ("q50", "q99")}
        tails |= set(values)
        rows.append(
            {
                "run": run.point or run.name,
                "source": "simulated" if run.simulated else "measured",
                "role": run.role or None,
                "ranks": run.ranks,
                "nodes": run.nodes,
                "waiting_factor": run.waiting_factor,
                "phase": phase.get("name"),
                "repeat": phase.get("repeat"),
                "rate": rate_of(phase),
                "unit": phase.get("rate_unit"),
                "errors": phase.get("errors"),
                "balance": phase.get("balance"),
                "node_balance": phase.get("node_balance"),
                **values,
            }
        )
    columns = [
        Column("run", "run"),
        Column("source", "source"),
        Column("role", "role"),
        Column("ranks", "ranks", "count"),
        Column("nodes", "nodes", "count"),
        Column("waiting_factor", "waiting factor", "plain"),
        Column("phase", "phase"),
        Column("repeat", "repeat", "count"),
        Column("rate", "throughput", "rate"),
        Column("errors", "failed", "count"),
        Column("balance", "balance", "share"),
        Column("node_balance", "balance of nodes", "share"),
        *(Column(n, n, "seconds") for n in sorted(tails, key=evidence.quantity_order)),
    ]
    columns = [c for c in columns if c.key not in ("repeat", "node_balance") or any(r[c.key] for r in rows)]
    note = (
        "One line for each phase but set-up and clean-up, and each repeat of it. Balance is the first rank's end over "
        "the last rank's; of nodes, likewise of the means of their ranks."
    )
    return Table("runs", "All runs", note, columns, rows, folded=len(rows) > 12)


def _means(sources: Sources) -> Table:
    """Operations of which means alone are known, as a server's statistics have them: rates, means, and by Little's law
    how many were in service at a time."""
    rows = []
    for run, phase in ((one, phase) for one in sources.runs for phase in one.phases):
        known = {
            op: (one["count"], one["mean"])
            for op, one in (phase.get("latency") or {}).items()
            if "." not in op and one.get("count") and one.get("mean") is not None and one.get("q50") is None
        }
        seconds, whole = phase.get("seconds"), sum(count * mean for count, mean in known.values())
        for op, (count, mean) in sorted(known.items(), key=lambda item: -item[1][0] * item[1][1]):
            rows.append(
                {
                    "run": run.point or run.name,
                    "operation": op,
                    "count": count,
                    "rate": count / seconds if seconds else None,
                    "mean": mean,
                    "largest": phase["latency"][op].get("max"),
                    "share": count * mean / whole if whole else None,
                    "in_service": count * mean / seconds if seconds else None,
                }
            )
    columns = [
        Column("run", "run"),
        Column("operation", "operation"),
        Column("count", "operations", "count"),
        Column("rate", "rate", "rate"),
        Column("mean", "mean time", "seconds"),
        Column("largest", "largest", "seconds"),
        Column("share", "share of the time", "share"),
        Column("in_service", "in service at a time", "number"),
    ]
    note = (
        "Operations whose means alone were imported, as from a server's statistics; those that take most of the time "
        "first. In service at a time, Little's law: rate times mean time. Without quantiles no latency can be forecast."
    )
    return Table("means", "What operations took on average", note, columns, rows)


def _shown_phases(run: Run) -> list[str]:
    """Phases that the report is about, and the others but set-up and clean-up."""
    return list(dict.fromkeys([*run.about, *main_phases(run.phase_names)]))


def _demands(sources: Sources) -> Table:
    """Observed resources: utilisation and service demand by the utilisation law."""
    rows = []
    for run, phase in ((one, phase) for one in sources.runs for phase in one.about):
        for name, known in bounds(run.path, phase).items():
            rows.append(
                {
                    "run": run.point or run.name,
                    "ranks": run.ranks,
                    "waiting_factor": run.waiting_factor,
                    "phase": phase,
                    "resource": name,
                    **known,
                }
            )
    columns = [
        Column("run", "run"),
        Column("ranks", "ranks", "count"),
        Column("waiting_factor", "waiting factor", "plain"),
        Column("phase", "phase"),
        Column("resource", "resource"),
        Column("utilisation", "used", "share"),
        Column("demand", "an operation takes", "seconds"),
        Column("rate_at_most", "allows at most", "rate"),
    ]
    note = (
        "Busy time over completed operations (utilisation law). A machine's processors also count what else ran there; "
        "the lines of processes do not. No rate above the last column can pass the resource, whatever the number of "
        "ranks."
    )
    return Table(
        "demands", "What an operation takes of the observed resources", note, columns, rows, folded=len(rows) > 12
    )


def _waits(sources: Sources) -> Table:
    """Observed processes: where in the kernel they slept."""
    rows = [
        {
            "run": run.point or run.name,
            "ranks": run.ranks,
            "waiting_factor": run.waiting_factor,
            "phase": phase,
            "process": name,
            "where": where,
            "share": share,
        }
        for run in sources.runs
        for phase in run.about
        for name, shares in waits_in(run.path, phase).items()
        for where, share in shares.items()
    ]
    columns = [
        Column("run", "run"),
        Column("ranks", "ranks", "count"),
        Column("waiting_factor", "waiting factor", "plain"),
        Column("phase", "phase"),
        Column("process", "process"),
        Column("share", "of its time", "share"),
        Column("where", "asleep in"),
    ]
    note = (
        "Functions of the kernel, the innermost first; the rest of the time processes worked or waited for a core. "
        "What is not there at few ranks, no forecast from few ranks can know."
    )
    return Table("waits", "What processes waited for in the kernel", note, columns, rows, folded=len(rows) > 12)


def _parameters(sources: Sources) -> Table:
    rows = [
        {"platform": p["name"], "parameter": path, **({"value": printed} if not isinstance(printed, dict) else printed)}
        for p in sources.fitted
        for path, printed in (p["fitted"].get("parameters") or {}).items()
    ]
    for row in rows:
        for key in ("value", "low", "high"):
            row[key] = _number(row.get(key))
    columns = [
        Column("platform", "platform"), Column("parameter", "parameter"), Column("value", "value", "number"),
        Column("low", "90 % range", "number", "high"),
    ]  # fmt: skip
    return Table("parameters", "Fitted parameters", "Times are in seconds.", columns, rows, folded=True)


def _structures(sources: Sources) -> Table:
    rows = [
        {
            "platform": p["name"], "structure": ", ".join(f"{k} {v}" for k, v in (a.get("structure") or {}).items()),
            "weight": _number(a.get("weight")), "misfit": _number(a.get("misfit")),
        }
        for p in sources.fitted
        for a in p["fitted"].get("alternatives") or []
    ]  # fmt: skip
    columns = [
        Column("platform", "platform"), Column("structure", "structure"), Column("weight", "weight", "share"),
        Column("misfit", "misfit", "number"),
    ]  # fmt: skip
    note = (
        "Where several structures share the weight, the measurements can't tell them apart and the intervals span them "
        "all."
    )
    return Table("structures", "Structures that were tried", note, columns, rows, folded=True)


def _number(value: Any) -> Any:
    """YAML reads 6e-5 as text; a number in text becomes one, all else stays."""
    try:
        return float(value) if isinstance(value, str) else value
    except ValueError:
        return value
