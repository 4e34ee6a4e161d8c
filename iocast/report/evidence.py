# SPDX-License-Identifier: Apache-2.0
"""What the sources say together: which forecast meets which measurement, and how far apart they are."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any, cast

from iocast.rules.accuracy import is_quantile, is_rate, median_error
from iocast.ground.files import moment
from iocast.runs.limits_of import LEAD, share_if_pausing
from iocast.runs.measured import measured
from iocast.ground.names import as_file_name
from iocast.runs.phases import rate_of, unit_entry
from iocast.runs.question import Question
from iocast.records.forecast import ForecastDocument, forecast_rate, value_of
from iocast.records.validation import ScoredPoint, ScoredRow, ValidationDocument
from iocast.report.sources import Run, Sources, phase_of_point, phases_of_platform
from iocast.wording.text import too_wide
from iocast.wording.checked import Nearer
from iocast.records.simulated import PhaseOfRun
from iocast.records.fitted import FitRow, HoldOut

AS_IT_IS = "as it is"
HELD_OUT = "held out by the calibration"
"""Origin of a forecast by the fit without the largest scale."""
QUANTILES = ("q50", "q75", "q95", "q99", "max")
BASELINES = ("straight line", "last value", "universal scalability law", "closed M/M/c", "asymptotic bounds")
OPERATIONS = (
    "mkdir",
    "create",
    "open",
    "write",
    "stat",
    "read",
    "close",
    "readdir",
    "rename",
    "fsync",
    "unlink",
    "rmdir",
)


def operation_order(name: str) -> tuple[int, str]:
    """Operations in the order of a file's life, unknown ones last."""
    return (OPERATIONS.index(name) if name in OPERATIONS else len(OPERATIONS), name)


def split_quantity(name: str) -> tuple[str, str]:
    """("create", "q95") of "create.q95"; ("", "rate") of "rate"."""
    operation, _, what = name.rpartition(".")
    return operation, what


def quantity_order(name: str) -> tuple[Any, ...]:
    operation, what = split_quantity(name)
    return (bool(operation), operation_order(operation), QUANTILES.index(what) if what in QUANTILES else len(QUANTILES))


def drawable(answer: Mapping[str, Any]) -> dict[str, float | None]:
    """Value and ends of an answer as a logarithmic axis can show them: what is not above zero becomes None."""
    return {key: v if (v := answer.get(key)) is not None and v > 0 else None for key in ("value", "low", "high")}


def is_wide(answer: Mapping[str, Any]) -> bool:
    """Whether its interval is drawn without the value, which would be no answer."""
    return None not in (answer.get("low"), answer.get("high")) and too_wide(answer)


def ranks_of(placement: Mapping[str, Any]) -> int:
    return int(placement.get("ranks") or placement.get("nodes", 1) * placement.get("ranks_per_node", 1))


@dataclass
class Comparison:
    """One measured point with the forecast of it. `rows` are those of a validation."""

    phase: str
    ranks: int
    nodes: int | None
    waiting_factor: float
    role: str  # "fit" or "check"
    origin: str  # one of "validation", HELD_OUT, "forecast beside runs"
    runs: int | None
    level: float
    rows: list[ScoredRow]
    fitted_up_to: int | None = (
        None  # ranks of the largest measurement that this forecast knew, where its source says so
    )
    question: Question | None = None  # None in sources of before
    beforehand: bool | None = None
    """Whether the forecast was made before the measurement began; None where the sources don't say it."""

    def speaks_of(self, forecast: ForecastDocument) -> bool:
        """Whether it is of the forecast's phase, workload and settings; of the phase where sources say no more."""
        own, other = self.question, question_of(forecast)
        return self.phase == phase_of(forecast) and (own is None or other is None or own.is_of_workload(other))

    def is_of(self, forecast: ForecastDocument) -> bool:
        """Whether it is at the forecast's very question."""
        own, other = self.question, question_of(forecast)
        if own is not None and other is not None:
            return own.answers(other)
        place = (self.phase, self.ranks, self.waiting_factor)
        nodes = forecast["placement"].get("nodes")
        at = (phase_of(forecast), ranks_of(forecast["placement"]), waiting_factor(forecast))
        return place == at and (None in (nodes, self.nodes) or nodes == self.nodes)

    @property
    def title(self) -> str:
        where = f"{self.ranks:,} rank" + ("s" if self.ranks != 1 else "")
        if self.nodes:
            where += f" on {self.nodes:,} node" + ("s" if self.nodes != 1 else "")
        return f"{self.phase}, {where}" + (f", waiting factor {self.waiting_factor:g}" if self.waiting_factor else "")

    def row(self, quantity: str) -> ScoredRow | None:
        return next((r for r in self.rows if r["quantity"] == quantity), None)


@dataclass
class Score:
    """How wrong forecasts were over some comparisons: median errors, as `iocast.rules.accuracy` defines them."""

    rate_error: float | None
    quantile_error: float | None
    inside: int
    judged: int
    baselines: dict[str, tuple[float | None, float | None]] = field(default_factory=dict)  # rate and quantile error


def comparisons(sources: Sources) -> list[Comparison]:
    """Every forecast that meets a measurement, checks before fitted points and large before small.

    A validation is believed first; without one what the calibration held out; else forecasts are matched with runs.
    """
    found = [_from_validation(p, v) for v in sources.validations for p in v["points"] if p.get("rows")]
    if not found:
        for platform in sources.fitted:
            held = platform["fitted"].get("holdout") or {}
            level, phase = float(platform["fitted"].get("level", 0.9)), phases_of_platform(platform)[0]
            questions = {one.name: one.question for one in measured(platform["fitted"])}
            found += _held_out(held, phase, level, questions)
    if not found and sources.study is not None:
        found += _held_out(
            sources.study["platform"].get("holdout") or {}, sources.study["platform"].get("phase") or "benchmark", 0.9
        )
    if not any(c.role == "check" for c in found):
        found += _matched(sources)
    order = sources.phases
    return sorted(
        found,
        key=lambda c: (
            c.role != "check",
            -c.ranks,
            order.index(c.phase) if c.phase in order else len(order),
            c.waiting_factor,
        ),
    )


def checks(sources: Sources) -> list[Comparison]:
    """Comparisons with data that the forecast had not seen."""
    return [c for c in comparisons(sources) if c.role == "check"]


def _held_out(
    held: HoldOut, phase: str, level: float, questions: Mapping[str, Question] | None = None
) -> list[Comparison]:
    """The held-out scale of a calibration, one comparison for each phase and waiting factor; rows name the latter as in
    "N=4 T=1"."""
    by_setting: dict[tuple[str, float], list[FitRow]] = {}
    for row in held.get("rows") or []:
        named = re.search(r"T=([\d.]+)", str(row.get("point", "")))
        factor = float(named.group(1)) if named else float(held.get("waiting_factor") or 0)
        by_setting.setdefault((str(row.get("phase") or phase), factor), []).append(row)
    origin, known = HELD_OUT, held.get("fitted_up_to")
    return [
        Comparison(
            name,
            ranks_of(held),
            held.get("nodes"),
            factor,
            "check",
            origin,
            None,
            level,
            _rows(cast(list[ScoredRow], rows)),
            known,
            (questions or {}).get(str(rows[0].get("point"))),
        )
        for (name, factor), rows in by_setting.items()
    ]


def _from_validation(point: ScoredPoint, validation: ValidationDocument) -> Comparison:
    placement: Mapping[str, Any] = point.get("placement") or {}
    runs, made = point.get("runs"), point.get("made")
    return Comparison(
        phase_of_point(point, validation),
        ranks_of(placement),
        placement.get("nodes"),
        float(point.get("waiting_factor") or 0),
        str(point.get("role") or "check"),
        "validation",
        len(runs) if isinstance(runs, list) else runs,
        float(validation.get("level", 0.9)),
        _rows(point["rows"]),
        question=Question.read(point["question"]) if "question" in point else None,
        beforehand=None if made is None else False if made.get("when") == "now" else made.get("before_measurement"),
    )


def _rows(rows: Sequence[ScoredRow]) -> list[ScoredRow]:
    return sorted((r for r in rows if r.get("measured") is not None), key=lambda r: quantity_order(r["quantity"]))


def _matched(sources: Sources) -> list[Comparison]:
    """Forecasts of the system as it is beside real runs of the same placement, workload and waiting factor."""
    found = []
    for forecast in sources.forecasts:
        if is_alternative(forecast):
            continue
        phase = phase_of(forecast)
        runs = [r for r in sources.runs if not r.simulated and _same(forecast, r)]
        seen_there = {name: _measured(runs, phase, name) for name in forecast["quantities"]}
        rows = []
        for name, requested in forecast["quantities"].items():
            values = seen_there[name]
            if not values:
                continue
            middle = median(values)
            baselines = {}
            for baseline, printed in (forecast.get("baselines") or {}).items():
                if name in printed:
                    answer = printed[name]
                    one = dict(answer) if isinstance(answer, dict) else {"value": answer, "error": answer / middle - 1}
                    baselines[baseline] = one
            low, high = requested.get("low"), requested.get("high")
            rows.append(
                {
                    "quantity": name,
                    "measured": middle,
                    "measured_low": min(values),
                    "measured_high": max(values),
                    "forecast": requested["value"],
                    "low": low,
                    "high": high,
                    "error": requested["value"] / middle - 1,
                    "inside": None if low is None or high is None else low <= middle <= high,
                    "baselines": baselines,
                }
                | unit_entry(requested.get("unit"))
            )
        if rows:
            seen = any(r.role == "fit" for r in runs)
            found.append(
                Comparison(
                    phase,
                    runs[0].ranks,
                    runs[0].nodes,
                    runs[0].waiting_factor,
                    "fit" if seen else "check",
                    "forecast beside runs",
                    len(runs),
                    float(forecast.get("level", 0.9)),
                    _rows(cast(list[ScoredRow], rows)),
                    question=question_of(forecast),
                    beforehand=_was_before(forecast, runs),
                )
            )
    return found


def question_of(forecast: ForecastDocument) -> Question | None:
    """None of a forecast of before."""
    return Question.read(forecast["question"]) if "question" in forecast else None


def _was_before(forecast: ForecastDocument, runs: list[Run]) -> bool | None:
    """Whether a forecast was made before all of these runs began; None where they don't say it."""
    try:
        made = moment(forecast["made_at"])
        return made < min(moment(str(run.document["started"])) for run in runs)
    except (KeyError, ValueError, TypeError):
        return None


def _same(forecast: ForecastDocument, run: Run) -> bool:
    """Whether the run is a measurement of the forecast's question."""
    question = question_of(forecast)
    if question is not None:
        return phase_of(forecast) in run.phase_names and question.answers(run.question(phase_of(forecast)))
    placement, workload = forecast["placement"], forecast.get("workload") or {}
    if ranks_of(placement) != run.ranks or placement.get("nodes", run.nodes) != run.nodes:
        return False
    name = workload if isinstance(workload, str) else workload.get("name", run.workload)
    return name == run.workload and waiting_factor(forecast) == run.waiting_factor


def in_operations(forecast: ForecastDocument) -> str:
    """The share of their time that the ranks of a forecast are in an operation, where that is small; else ""."""
    rate = value_of(forecast_rate(forecast)) or 0.0
    return share_if_pausing(rate * mean_response(forecast), ranks_of(forecast["placement"]))


def in_operations_of_run(run: Run, phases: list[PhaseOfRun]) -> str:
    """The same of phases of a run."""
    responding = sum(p.get("responding_seconds") or 0.0 for p in phases)
    return share_if_pausing(responding, run.ranks * sum(p.get("seconds") or 0.0 for p in phases))


def mean_response(forecast: ForecastDocument) -> float:
    """Mean response time over all operations, from their distributions; 0 where they aren't known."""
    total = 0.0
    for operation, entry in (forecast.get("operations") or {}).items():
        known = (forecast.get("distributions") or {}).get(operation)
        if not known:
            return 0.0
        p, s = known["probability"], known["seconds"]
        total += entry["share"] * sum((b - a) * (x + y) / 2 for a, b, x, y in zip(p, p[1:], s, s[1:], strict=False))
    return total


def phase_of(forecast: ForecastDocument) -> str:
    return str(forecast.get("phase") or "benchmark")


def limit_of(forecast: ForecastDocument) -> str:
    """What limits its rate, without the words that lead to it."""
    return forecast["bottleneck"][len(LEAD) if forecast.get("limited_by") else 0 :]


def _measured(runs: list[Run], phase: str, quantity: str) -> list[float]:
    """The quantity in each run, those that lack it or have 0 left out."""
    operation, what = split_quantity(quantity)
    values = []
    for entry in (p for run in runs for p in run.repeats(phase)):
        value = rate_of(entry) if not operation else (entry.get("latency") or {}).get(operation, {}).get(what)
        if value:
            values.append(float(value))
    return values


def waiting_factor(forecast: ForecastDocument) -> float:
    workload = forecast.get("workload")
    parameters = (workload.get("parameters") if isinstance(workload, dict) else None) or {}
    return float(forecast.get("waiting_factor") or parameters.get("waiting_factor") or 0)


def is_alternative(forecast: ForecastDocument) -> bool:
    """Whether the forecast is of an edited platform (a what-if) and not of the measured one."""
    return bool((forecast.get("platform") or {}).get("edits"))


def label_of(forecast: ForecastDocument) -> str:
    if is_alternative(forecast):
        return str(forecast.get("label") or "edited platform")
    return AS_IT_IS


def what_if(sources: Sources, phase: str | None = None) -> dict[str, list[ForecastDocument]]:
    """Forecasts by label, each ordered by ranks, the system as it is first; of one phase alone where it is named. Where
    several platforms have forecasts as they are, the labels name them."""
    labels: dict[str, list[ForecastDocument]] = {}
    chosen = [f for f in sources.forecasts if phase is None or phase_of(f) == phase]
    for forecast in sorted(chosen, key=lambda f: (is_alternative(f), ranks_of(f["placement"]))):
        label = label_of(forecast)
        if not is_alternative(forecast) and (system := system_of(sources, forecast)):
            label = f"{system} {AS_IT_IS}"
        labels.setdefault(label, []).append(forecast)
    return labels


def system_of(sources: Sources, forecast: ForecastDocument) -> str:
    """The name of a forecast's platform where the sources have forecasts of several as they are, those of one name with
    their content; "" where there is one system. Fits to the phases of one system, each called by its phase as
    `iocast forecast` does, are no systems of their own."""
    known = [f for f in sources.forecasts if not is_alternative(f)]
    systems = {_system(f) for f in known}
    by_phase = {(phase_of(f), _system(f)) for f in known}
    fits = all(name == as_file_name(phase) for phase, (name, _) in by_phase)
    if len(systems) == 1 or (fits and len(by_phase) == len(systems)):
        return ""
    name, content = _system(forecast)
    return f"{name} ({content[:8]})" if sum(name == other for other, _ in systems) > 1 else name


def series_of(sources: Sources, forecast: ForecastDocument) -> str:
    """The name of a forecast's series in figures: its system where there are several, and its workload or settings
    where others were measured, or where nothing was and forecasts differ in them; "" where all is one series."""
    return ", ".join(filter(None, (system_of(sources, forecast), _apart(sources, forecast))))


def _apart(sources: Sources, forecast: ForecastDocument) -> str:
    own, phase = question_of(forecast), phase_of(forecast)
    if own is None:
        return ""
    known = [run.question(phase) for run in sources.runs if not run.simulated and phase in run.phase_names]
    for platform in sources.fitted:
        known += [one.question for one in measured(platform["fitted"]) if one.question.phase == phase]
    if any(own.is_of_workload(one) for one in known):
        return ""
    others = [question_of(one) for one in as_they_are(sources) if phase_of(one) == phase]
    apart = [one for one in known + [one for one in others if one is not None] if not own.is_of_workload(one)]
    values = {name: value for one in apart for name, (value, _) in own.settings_apart(one).items()}
    if apart and not values:
        return own.name or own.pattern
    return ", ".join(f"{name}={'unset' if value is None else value}" for name, value in sorted(values.items()))


def _system(forecast: ForecastDocument) -> tuple[str, str]:
    """A platform's name, and what tells it from others of that name."""
    platform = forecast.get("platform") or {}
    return str(platform.get("name", "")), str(platform.get("content_hash", "")).rpartition(":")[2]


def as_they_are(sources: Sources) -> list[ForecastDocument]:
    """Forecasts of platforms without edits, ordered by ranks."""
    found = (f for f in sources.forecasts if not is_alternative(f))
    return sorted(found, key=lambda f: ranks_of(f["placement"]))


def forecast_phases(sources: Sources) -> list[str]:
    """Phases that forecasts are of, each once, in order."""
    return list(dict.fromkeys(phase_of(f) for f in sources.forecasts))


def targets(sources: Sources) -> list[ForecastDocument]:
    """Forecasts of the system as it is at scales that nothing was measured at, in the order of phases, the largest
    scale first."""
    compared, order = comparisons(sources), forecast_phases(sources)
    runs = [run for run in sources.runs if not run.simulated]

    def is_measured(forecast: ForecastDocument) -> bool:
        return any(c.is_of(forecast) for c in compared) or any(_same(forecast, run) for run in runs)

    found = [f for f in sources.forecasts if not is_alternative(f) and not is_measured(f)]
    return sorted(found, key=lambda f: (-ranks_of(f["placement"]), order.index(phase_of(f)), waiting_factor(f)))


def largest_common(labels: dict[str, list[ForecastDocument]]) -> int | None:
    """The largest number of ranks that every label was forecast for."""
    common = set.intersection(*({ranks_of(f["placement"]) for f in fs} for fs in labels.values())) if labels else set()
    return max(common, default=None)


@dataclass(frozen=True)
class Ruled:
    """The simple rule that was nearest to held-out measurements: `error` is that of its rate at the largest of them, or
    the only one that is known; `size` and `own` are the medians of its errors' sizes and of the forecast's."""

    name: str
    error: float
    size: float
    own: float


def best_rule(compared: list[Comparison]) -> Ruled | None:
    """Of comparisons with measurements; None where they have no rules."""
    found = score([c for c in compared if c.row("rate")])
    known = {n: r for n, (r, _) in (found.baselines if found else {}).items() if r is not None}
    if found is None or found.rate_error is None or not known:
        return None
    name = min(known, key=lambda n: known[n])
    rows = [row for c in compared if (row := c.row("rate"))]
    errors = [error for row in rows if (error := _baseline_error(row, name)) is not None]
    return Ruled(name, errors[0], known[name], found.rate_error)


def with_best_rule(forecast: ForecastDocument, compared: list[Comparison]) -> ForecastDocument:
    """The forecast with the rule that was best in these comparisons of its phase, where they have rules."""
    best = best_rule([c for c in compared if c.speaks_of(forecast)])
    known = best is not None and best.name in (forecast.get("baselines") or {})
    return {**forecast, "rule": {"name": best.name, "error": best.error}} if best and known else forecast


def rules_nearer(forecasts: list[ForecastDocument], compared: list[Comparison]) -> list[Nearer]:
    """Phases whose best simple rule was nearer to the held-out measurements than the forecast."""
    found = []
    for phase in dict.fromkeys(phase_of(f) for f in forecasts):
        these = [f for f in forecasts if phase_of(f) == phase]
        own = [c for c in compared if c.row("rate") and any(c.speaks_of(f) for f in these)]
        best = best_rule(own)
        rule = next((f["rule"] for f in these if f.get("rule")), None)
        if best is not None:
            found.append(Nearer(phase, best.name, best.size, best.own))
        elif own and rule:
            error = own[0].row("rate")
            found.append(Nearer(phase, rule["name"], abs(rule["error"]), abs(error["error"] if error else 0.0)))
    return found


def distance(sources: Sources, comparison: Comparison) -> float | None:
    """Ranks of a comparison over the most that its forecast was fitted to; None where that is not known."""
    largest = comparison.fitted_up_to or largest_fitted(sources, comparison.phase)
    return comparison.ranks / largest if largest else None


def largest_fitted(sources: Sources, phase: str) -> int | None:
    """Ranks of the largest measurement that the platform of a phase was fitted to."""
    return max(scales_of(sources, phase), default=None)


def scales_of(sources: Sources, phase: str) -> set[int]:
    """Numbers of ranks that the platform of a phase was fitted to."""
    return {
        int(ranks)
        for platform in sources.fitted
        if phase in phases_of_platform(platform)
        for ranks in (platform["fitted"].get("campaign") or {}).get("ranks") or []
    }


def score(compared: list[Comparison]) -> Score | None:
    """Errors over all rows of some comparisons, of the forecast and of each baseline; None without rows."""
    rows = [r for c in compared for r in c.rows]
    if not rows:
        return None
    judged = [r for r in rows if r.get("inside") is not None]
    names = {name for r in rows for name in (r.get("baselines") or {})}
    return Score(
        *_medians((r["quantity"], r.get("error")) for r in rows),
        sum(bool(r["inside"]) for r in judged),
        len(judged),
        {
            name: _medians((r["quantity"], _baseline_error(r, name)) for r in rows)
            for name in sorted(names, key=baseline_order)
        },
    )


def _medians(errors: Iterable[tuple[str, float | None]]) -> tuple[float | None, float | None]:
    """Of the rate, and of the quantiles."""
    every = list(errors)
    return median_error(every, is_rate), median_error(every, is_quantile)


def baseline_order(name: str) -> tuple[int, str]:
    return (BASELINES.index(name) if name in BASELINES else len(BASELINES), name)


def _baseline_error(row: ScoredRow, name: str) -> float | None:
    known = (row.get("baselines") or {}).get(name)
    return known.get("error") if known else None


def focus_runs(sources: Sources) -> list[Run]:
    """The runs worth drawing one by one: those named themselves (the 4 of most ranks), else the largest real one that
    is a check; of a knee search, one at the load that it states."""
    if sources.given_runs:
        return sources.given_runs[-4:]
    real = [r for r in sources.runs if not r.simulated] or sources.runs
    stated = {name for knee in sources.knees if knee["answer"] for name in knee["answer"]["runs"]}
    ordered = sorted(
        real, key=lambda r: (r.role != "check", -r.ranks, r.path.name not in stated, r.waiting_factor, r.path.name)
    )
    return ordered[:1]


def run_title(run: Run) -> str:
    kind = "simulated" if run.simulated else "measured"
    where = f"{run.ranks:,} rank" + ("s" if run.ranks != 1 else "")
    if run.waiting_factor:
        where += f", waiting factor {run.waiting_factor:g}"
    return f"{run.name}: {where}, {kind}"
