# SPDX-License-Identifier: Apache-2.0
"""Forecasts for a system of which only hardware data are known (`iocast simulate`).

The simulated answer of every phase, the analytic solver's rate, and models of measured systems of the same family."""

from __future__ import annotations

from collections.abc import Callable

from iocast.ground import binaries
from iocast.errors import InputError, RunError
from iocast.platforms.family import others_of_family
from iocast.platforms.fitted import Fitted
from iocast.forecasts.answer import predict
from iocast.forecasts.simulated import LONG, SEEDS
from iocast.published.errors import Errors
from iocast.published.serves import refuse_beyond
from iocast.runs.question import Setting
from iocast.records.forecast import AnalyticRates, CourseRow, ForecastDocument, PhaseDocument
from iocast.wording.text import interval, quantity, table
from iocast.wording.forecast import label_of_family, ranks_text, seconds_range, total_text
from iocast.runs.total import bytes_per_second, moves_bulk
from iocast.jobs.workers import Workers

Report = Callable[[str, int, int], None]


def simulate(
    platform: Fitted,
    workload: str,
    settings: dict[str, str],
    nodes: int,
    ranks_per_node: int,
    *,
    phase: str | None = None,
    seed: int = 0,
    beyond: bool = False,
    report: Report,
    workers: Workers | None = None,
) -> ForecastDocument:
    """A forecast (docs/answers.md, `kind: forecast`) with the key `analytic`: `{rates, refusal, left_out}`: its rate by
    phase, or why it has none, and the mechanisms that it lacks.

    @raises InputError for a calibrated platform, whose forecasts have intervals; and from the programs"""
    if platform.fitted:
        raise InputError(
            f"The platform '{platform.file}' was fitted to measurements; its forecasts have intervals: "
            f"iocast predict {platform.file} --workload {workload} --nodes {nodes} --ppn {ranks_per_node}."
        )
    if not beyond:
        refuse_beyond(platform, nodes, nodes * ranks_per_node)
    report("the analytic solver", 0, 2)
    errors = Errors.of(platform)
    known = errors and binaries.resolve_workload(workload, settings, nodes, ranks_per_node)["workload"]
    systems = 0 if errors and known and errors.speaks_of(known["pattern"]) else len(others_of_family(platform))
    analytic, operations = _analytic(platform, workload, settings, nodes, ranks_per_node, phase, seed, workers)
    report(f"simulating {_size(nodes * ranks_per_node, operations, systems)}", 1, 2)
    answer = predict(
        platform, workload, settings, nodes, ranks_per_node, phase=phase, solver="simulate", seed=seed, beyond=True,
        workers=workers,
    )  # fmt: skip
    return {**answer, "analytic": analytic}


def _size(ranks: int, operations: float | None, systems: int) -> str:
    """How much is simulated. operations: of one run, where they are known."""
    each = "" if operations is None else f" with {operations:,.0f} operations"
    beside = f", and {systems} measured system{'s' * (systems != 1)} of its family once" if systems else ""
    times = "once" if operations is not None and operations > LONG else f"{SEEDS} times"
    return f"{ranks_text(ranks)}{each}: this platform {times}{beside}"


def _analytic(
    platform: Fitted,
    workload: str,
    settings: dict[str, str],
    nodes: int,
    ranks_per_node: int,
    phase: str | None,
    seed: int,
    workers: Workers | None,
) -> tuple[AnalyticRates, float | None]:
    """Rates of the analytic solver by phase, or why it has none; and the operations of all phases, where known."""
    try:
        solved = predict(
            platform,
            workload,
            settings,
            nodes,
            ranks_per_node,
            phase=phase,
            solver="analytic",
            seed=seed,
            beyond=True,
            workers=workers,
        )
    except (InputError, RunError) as error:
        return {"rates": {}, "refusal": str(error), "left_out": []}, None
    phases = [solved, *solved["further_phases"]]
    answer: AnalyticRates = {
        "rates": {one["phase"]: one["quantities"]["rate"]["value"] for one in phases},
        "refusal": "",
        "left_out": list(dict.fromkeys(text for one in phases for text in one["left_out"])),
    }
    return answer, solved["total_operations"]


def simulation_text(answer: ForecastDocument) -> str:
    """The phase of the moment `at`, where the answer has one, and all phases together; time, rate and range of each
    phase; rate, bytes a second and latencies of each operation; measured systems; the course of repeated phases."""
    where = answer["placement"]
    order = ", ranks lie cyclically" if "order" in where else ""
    lines = [
        f"{answer['workload']['name']} on {answer['platform']['name']}, {ranks_text(where['ranks'])} "
        f"({where['nodes']} x {where['ranks_per_node']}{order}): simulated from hardware data"
    ]
    if (at := answer.get("at")) and "moment" in at:
        lines.append(_moment_text(at, at["moment"]))
    if answer["total"]:
        lines.append(total_text(answer["total"], label_of_family(answer)))
    for one in (answer, *answer["further_phases"]):
        lines += _phase_lines(one, answer["analytic"]["rates"].get(one["phase"]), answer["level"])
    lines += _course_lines(answer["course"])
    if answer["analytic"]["refusal"]:
        lines.append(f"No analytic answer: {answer['analytic']['refusal']}")
    lacking = answer["analytic"]["left_out"]
    return "\n".join([*lines, "", *answer.get("basis", []), *lacking, *answer["warnings"]])


MAX_COURSE = 20
"""Rows of the course that are printed; the file of `--out` has all."""


def moment_of(text: str) -> float:
    """Seconds of `--at`. @raises InputError for what is no time"""
    found = Setting.read(text)
    if found.unit != "s" or found.number is None or found.number < 0:
        raise InputError(f"--at is '{text}'; it must be a time since the first phase began, such as 90s, 30min or 2h.")
    return found.number


def phase_at(course: list[CourseRow], at: float) -> CourseRow:
    """The row of the course in which a moment lies, or the next one. @raises InputError after the last phase"""
    row = next((one for one in course if at <= one["start"] + one["seconds"]), None)
    if row is None:
        end = course[-1]["start"] + course[-1]["seconds"]
        raise InputError(
            f"--at is {quantity('', at).strip()}, and the phases last {quantity('', end).strip()} in all; name an "
            "earlier moment, or make them longer with --set."
        )
    return row


def _moment_text(row: CourseRow, at: float) -> str:
    moved = f", {quantity('bandwidth', row['bytes_per_second'])}" if row["bytes_per_second"] else ""
    ends = f"{quantity('', row['start'])} to {quantity('', row['start'] + row['seconds'])}"
    rate = quantity("rate", row["rate"])
    when = "" if row["start"] <= at else "between two phases of this forecast; next comes "
    return f"At {quantity('', at)}: {when}phase {row['phase']}, repeat {row['repeat']} ({ends}), {rate}{moved}."


def _course_lines(course: list[CourseRow]) -> list[str]:
    if len(course) < 2 or len(course) == len({row["phase"] for row in course}):
        return []
    rows = [
        [
            row["phase"],
            str(row["repeat"]),
            quantity("", row["start"]),
            quantity("", row["seconds"]),
            quantity("rate", row["rate"]),
            quantity("bandwidth", row["bytes_per_second"]) if row["bytes_per_second"] else "-",
        ]
        for row in course[:MAX_COURSE]
    ]
    lines = ["", table(["course", "repeat", "begins after", "lasts", "rate", "bytes a second"], rows)]
    more = len(course) - len(rows)
    return lines + ([f"... and {more} more; all are under 'course' in the file of --out."] if more else [])


def _phase_lines(one: PhaseDocument, analytic: float | None, level: float) -> list[str]:
    family, rate = one.get("family"), one["quantities"]["rate"]["value"]
    facts = [f"rate {quantity('rate', rate)}"]
    moved = bytes_per_second(one)
    facts += [f"{quantity('bandwidth', moved)}"] if moved else []
    times = f", {one['repeats']} times" if one["repeats"] > 1 else ""
    facts += [f"{quantity('', seconds['value'])} long{times}"] if (seconds := one.get("seconds")) else []
    if moves_bulk(one):  # then time and bytes a second are the question
        facts.reverse()
    answered = one["quantities"]["rate"]
    if answered["low"] is not None:
        facts.append(f"{100 * level:.0f} % interval {interval('rate', answered)[1]}")
    if family and (ends := family["range"].get("rate")) is not None:
        each = moved / rate if rate else 0.0
        low, high = quantity("rate", ends["low"]), quantity("rate", ends["high"])
        text = f"{family['label']}: {low} .. {high}"
        text += (
            f", {quantity('bandwidth', each * ends['low'])} .. {quantity('bandwidth', each * ends['high'])}"
            if moved
            else ""
        )
        text += f", {length} long" if (length := seconds_range(one)) else ""
        facts.append("the measured systems do the same" if low == high else text)
    facts += [f"analytic solver {quantity('rate', analytic)}"] if analytic is not None else []
    systems = family["systems"] if family else []
    is_open = any(name.endswith(".response.q99") for name in one["quantities"])
    quantiles = ["q50", "q99", *(["response.q99"] if is_open else [])]
    rows = []
    for name, row in one["operations"].items():
        latencies = [
            one["quantities"][known]["value"] if (known := f"{name}.{quantile}") in one["quantities"] else None
            for quantile in quantiles
        ]
        measured = [system["quantities"].get("rate") for system in systems]
        rows.append(
            [
                name,
                quantity("rate", row["rate"]["value"]),
                quantity("bandwidth", row["bytes_per_second"]["value"]) if "bytes_per_second" in row else "-",
                *(quantity("", value) for value in latencies),
                *(quantity("rate", None if value is None else row["share"] * value) for value in measured),
            ]
        )
    header = [f"phase {one['phase']}", "rate", "bytes a second", "median", "99th percentile"]
    header += ["99th percentile since it was due"] if is_open else []
    header += [f"rate of {system['name']}" for system in systems]
    return [
        "",
        f"Phase {one['phase']}: {'; '.join(facts)}.",
        " ".join(filter(None, (one["bottleneck"], one.get("links")))),
        table(header, rows),
    ]
