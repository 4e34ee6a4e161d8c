# SPDX-License-Identifier: Apache-2.0
"""The first screen: what was measured, forecast and wrong, in words that take a minute to read.

Every sentence is made of the same numbers that `summary` hands to the JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from iocast.rules.accuracy import OF_QUANTILES
from iocast.knee import words as knee_words
from iocast.records.forecast import Ends, ForecastDocument, Numbers, forecast_rate, value_of
from iocast.records.validation import ScoredRow
from iocast.runs.phases import main_phases, rate_of
from iocast.report import accelerators, answers, evidence, feeding, record, servers, units
from iocast.report.cards import Card, Story
from iocast.report.cautions import basis, file_systems, warnings
from iocast.report.evidence import Comparison, Score
from iocast.report.sources import Run, Sources
from iocast.report.study_story import tell_study
from iocast.wording.text import one_sided, roughly, too_wide
from iocast.runs.total import are_bulk, moves_bulk
from iocast.wording.checked import nearer_text

MAX_PHASES, MAX_SCALES, MAX_ANSWERS = 3, 3, 4  # named in the headline, which is three lines of a page


def tell(sources: Sources) -> Story:
    measured = _tell_measured(sources)
    return measured if sources.study is None else tell_study(sources, sources.study, measured)


def _tell_measured(sources: Sources) -> Story:
    compared = evidence.comparisons(sources)
    checked = [c for c in compared if c.role == "check"]
    reported = checked or compared
    scored = evidence.score(reported)
    best = reported[0] if reported else None
    headline = _headline(sources, best, bool(checked))
    check = _checked_sentence(best, bool(checked))
    nearer = nearer_text(evidence.rules_nearer(answers.answered(sources), checked), _size) if checked else ""
    texts = [
        ("How wrong it was", f"{'' if check in headline else check} {_wrong(scored, bool(checked), reported)}".strip()),
        ("How often it held", _how_often(sources, scored)),
        ("Truth", _truth(best)),
        ("Simple rules", _simple(scored, reported)),
        ("What if", _what_if(sources)),
        ("Measured", _runs(sources, simulated=False)),
        ("Simulated", _runs(sources, simulated=True)),
        ("Forecast", _forecast(sources, best, bool(checked), len(reported))),
        ("Without measurements", _without_measurements(sources)),
    ]
    return Story(
        headline,
        answers.question(sources),
        answers.grids(sources),
        [],
        [(about, text) for about, text in texts[1:] if text],
        _cards(sources, best, scored, bool(checked), reported),
        warnings(sources),
        len(sources.alarms),
        [*sources.missing, *([nearer] if nearer else [])],
        _summary(sources, best, scored, bool(checked)),
        [
            *[(about, text) for about, text in (texts[0], ("What limits it", _limit(sources))) if text],
            *servers.facts(servers.loads(sources)),
        ],
        _reach(sources, best, checked=bool(checked)),
    )


def _limit(sources: Sources) -> str:
    """What limits the rate at the largest target scale, of each phase."""
    targets = [f for f in answers.answered(sources) if f.get("bottleneck")]
    largest = max(map(_target_scale, targets), default=None)
    limits = {evidence.phase_of(f): evidence.limit_of(f) for f in targets if _target_scale(f) == largest}
    return " ".join(f"{phase}: {limit}" if len(limits) > 1 else limit for phase, limit in limits.items())


def _largest_fitted(sources: Sources) -> int | None:
    """Ranks of the largest measurement that the forecast was made from."""
    fitted = [c.ranks for c in evidence.comparisons(sources) if c.role == "fit"]
    fitted += [r.ranks for r in sources.runs if r.role == "fit"]
    fitted += [
        int(ranks)
        for platform in sources.fitted
        for ranks in (platform["fitted"].get("campaign") or {}).get("ranks") or []
    ]
    return max(fitted, default=None)


def _rate_error(rows: list[Comparison]) -> list[float]:
    return [float(row["error"]) for c in rows if (row := c.row("rate")) and row.get("error") is not None]


def _beyond(error: float) -> str:
    """An error as "4.1 % above", with the size written without its sign."""
    size = units.error(abs(error)).removeprefix("+")
    return f"{size} {'above' if error > 0 else 'below'}" if round(error, 4) else "the same as"


def _headline(sources: Sources, best: Comparison | None, checked: bool) -> str:
    """The answer for each target scale, each number with its phase; without a target, what a check showed."""
    targets = answers.answered(sources)
    check = _checked_sentence(best, checked)
    if check and not evidence.targets(sources):
        return check
    if targets:
        by_scale: dict[tuple[int, int, float], list[ForecastDocument]] = {}
        for one in sorted(targets, key=_target_scale):
            by_scale.setdefault(_target_scale(one), []).append(one)
        scales = list(by_scale)
        nodes = {ranks: {on for count, on, _ in scales if count == ranks} for ranks, _, _ in scales}
        if len(scales) > MAX_SCALES:
            scales = [*scales[: MAX_SCALES - 1], scales[-1]]
        parts = []
        for ranks, on, factor in scales:
            where = f" on {units.nodes(on)}" if len(nodes[ranks]) > 1 else ""
            most = min(MAX_PHASES, max(1, MAX_ANSWERS // len(scales)))
            answer = _scale_answer(by_scale[ranks, on, factor], sources, most)
            parts.append(f"for {_scale(ranks, factor)}{where}: {answer}")
        left = len(by_scale) - len(scales)
        more = f"; {left} more scale{'s' * (left != 1)} below" if left else ""
        edits = (targets[0].get("platform") or {}).get("edits") or {}
        under = f"with {', '.join(f'{path}={value}' for path, value in edits.items())}, " if edits else ""
        answer = f"Forecast {under}{'; '.join(parts)}{more}"
        return f"{answer}." if check else f"{answer}, and no measurement has checked it here."
    if sources.feedings:
        return " ".join(map(feeding.headline, sources.feedings))
    if sources.knees:
        names = [f"{knee['name']}: " if len(sources.knees) > 1 else "" for knee in sources.knees]
        return " ".join(f"{name}{knee_words.headline(k)}" for name, k in zip(names, sources.knees, strict=True))
    for run in evidence.focus_runs(sources):
        if text := _ran(run):
            return f"{text} {accelerators.sentence(run)}".rstrip()
    if known := servers.loads(sources):
        return servers.answer(known[0])
    if sources.forecasts:
        return _of_changed_systems(sources.forecasts)
    if sources.fitted:
        return f"The platform '{sources.fitted[0]['name']}' was fitted, and no measurement beside it checks it here."
    return "There is nothing measured or forecast to tell of."


def _reach(sources: Sources, best: Comparison | None, *, checked: bool) -> str:
    """What the ranges of the headline are, and how many times the largest measured scale it reaches; "" where nothing
    is forecast."""
    if _checked_sentence(best, checked) and not evidence.targets(sources) and best is not None:
        return " ".join(filter(None, [
            f"Its range is a {units.share(best.level)} interval." if _has_ends(best.row("rate")) else "",
            answers.reached(best.ranks, evidence.distance(sources, best)),
        ]))  # fmt: skip
    forecasts = [f for f in answers.answered(sources) if "rate" in f["quantities"]]
    if not forecasts:
        known = servers.loads(sources) if sources.are_of_servers else []
        return servers.reach(known) if known else " ".join(filter(None, map(feeding.reach, sources.feedings)))
    levels = dict.fromkeys(
        units.share(f["level"]) for f in forecasts if f.get("level") and _has_ends(f["quantities"]["rate"])
    )
    calibrated = [f for f in forecasts if _is_calibrated(f)]
    found = [f"Ranges are {' and '.join(levels)} intervals."] if levels else []
    farthest = max(calibrated, key=lambda f: float(f.get("extrapolation") or 0), default=None)
    if farthest is not None:
        found.append(answers.reached(evidence.ranks_of(farthest["placement"]), farthest.get("extrapolation")))
    return " ".join(filter(None, found))


def _is_calibrated(forecast: ForecastDocument) -> bool:
    """Of others the extrapolation is 1, whatever the scale. Forecasts of before say it by their range alone."""
    numbers = (forecast.get("platform") or {}).get("numbers")
    return numbers == Numbers.FITTED.value if numbers else not forecast.get("family")


def _has_ends(rate: Mapping[str, Any] | None) -> bool:
    return rate is not None and None not in (rate.get("low"), rate.get("high"))


def _target_scale(forecast: ForecastDocument) -> tuple[int, int, float]:
    """Ranks, nodes (0 where they are not stated) and waiting factor."""
    placement = forecast["placement"]
    return evidence.ranks_of(placement), int(placement.get("nodes") or 0), evidence.waiting_factor(forecast)


def _of_changed_systems(forecasts: list[ForecastDocument]) -> str:
    """Of edited systems that differ, without a forecast of the one that they change: how many, and where all are of one
    phase and scale how far they are apart."""
    systems = {str((f.get("platform") or {}).get("edits")) for f in forecasts}
    rates = [f["quantities"]["rate"]["value"] for f in forecasts if "rate" in f["quantities"]]
    alike = len({(evidence.phase_of(f), _target_scale(f)) for f in forecasts}) == 1 and len(rates) == len(forecasts)
    ranks, _, factor = _target_scale(forecasts[0])
    between = (
        f" for {_scale(ranks, factor)}, {units.span(units.rate(min(rates)), units.rate(max(rates)))}" if alike else ""
    )
    return f"Forecasts of {len(systems)} changed systems{between}; none of the system that they change."


def _scale_answer(forecasts: list[ForecastDocument], sources: Sources, most: int) -> str:
    """Phases of one target scale, the first ones."""
    by_time = answers.is_of_time(forecasts)
    shown = [
        _phase_answer(f, name, by_time)
        for f, name in zip(forecasts[:most], answers.names_of(forecasts, sources), strict=False)
        if "rate" in f["quantities"]
    ]
    left = len(forecasts) - most
    return ", ".join(shown) + (f" and {left} more phase{'s' * (left != 1)}" if left > 0 else "")


def _phase_answer(forecast: ForecastDocument, name: str, by_time: bool) -> str:
    """The phase's name and rate with its interval; where times answer, the phase's time and bandwidth."""
    moved = answers.bandwidth_text(forecast) if moves_bulk(forecast) and answers.bandwidth(forecast) else None
    known = [*filter(None, [answers.time(forecast), moved])]
    if not by_time or not known:
        return f"{name} {_rate_with_interval(forecast)}"
    if evidence.is_wide(forecast["quantities"]["rate"]):
        return f"{name} {answers.between(forecast, by_time)} ({' at '.join(known)})"
    return f"{name} {' at '.join(known)}"


def _how_often(sources: Sources, scored: Score | None) -> str:
    """How such forecasts fared elsewhere; "" without a forecast of a calibrated platform."""
    if not sources.forecasts and scored is None:
        return ""
    if not sources.fitted and not sources.validations and any(f.get("family") for f in sources.forecasts):
        return "Forecasts of platforms that were never calibrated have no record."
    if not sources.fitted:
        return ""
    cases = _cases(sources)
    if _has_queues(sources):
        return record.sentence_of_calibrated(max((beyond for _, beyond in cases), default=record.CALIBRATED_REACH[1]))
    if not cases:
        return record.sentence(record.RATES_ALONE)
    by_row = {record.cell(*one): one for one in cases}
    return " ".join(record.sentence_of_rates_alone(*one) for one in by_row.values())


def _cases(sources: Sources) -> list[tuple[int, float]]:
    """Number of fitted scales and target over largest fitted ranks of each forecast that the page answers with."""
    found = []
    for one in answers.answered(sources):
        scales = evidence.scales_of(sources, evidence.phase_of(one))
        if scales:
            found.append((len(scales), evidence.ranks_of(one["placement"]) / max(scales)))
    return list(dict.fromkeys(found))


def _scale(ranks: int, waiting_factor: float) -> str:
    return units.ranks(ranks) + (f" with waiting factor {waiting_factor:g}" if waiting_factor else "")


def _checked_sentence(best: Comparison | None, checked: bool) -> str:
    """ "For 64 ranks the forecast of benchmark was 27.8 k/s, 2 % above the 27.2 k/s that was then measured."; ""
    without a comparison. "Then" only where the sources show that the forecast was made before."""
    rate = best.row("rate") if best else None
    if best is None or rate is None:
        return ""
    what = "was then measured" if best.beforehand else "was measured"
    if not checked:
        what = "had been measured and fitted"
    if best.fitted_up_to:
        what = "was measured and held back from the fit"
    forecast, measured = (units.rate(value, rate.get("unit")) for value in (rate["forecast"], rate["measured"]))
    where = f"For {_scale(best.ranks, best.waiting_factor)} the forecast of {best.phase} was"
    if evidence.is_wide(rate):
        return f"{where} {_rate_span(rate)} ({roughly(forecast, rate)}); {measured} {what}."
    where += f" {forecast}"
    return f"{where}, {_beyond(float(rate['error']))} the {measured} that {what}."


def _length(run: Run, phase: str, seconds: list[float]) -> str:
    """The phase, how long it took, and the bandwidth where it moved bytes in bulk; seconds: of its repeats."""
    moved, operations = answers.data_of(run, phase)
    at = f" at {units.bandwidth(moved / sum(seconds))}" if are_bulk(moved, operations) else ""
    return f"{phase} {units.repeated(sum(seconds) / len(seconds), len(seconds))}{at}"


def _ran(run: Run) -> str:
    """What a run did, with the phase; of an application's phases, or one that moves bytes in bulk, how long they
    took."""
    where = "In simulation, " if run.simulated else ""
    who = f"{where}{units.ranks(run.ranks)}{f' on {units.nodes(run.nodes)}' if run.nodes else ''}"
    did = "do" if run.simulated else "did"
    lengths = {
        name: [float(phase.get("seconds") or 0) for phase in run.repeats(name)] for name in main_phases(run.phase_names)
    }
    seconds = {name: sum(each) for name, each in lengths.items()}
    if answers.run_is_of_time(run) and all(seconds.values()):
        longest = sorted(seconds, key=lambda name: -seconds[name])[:MAX_PHASES]
        found = [_length(run, name, lengths[name]) for name in seconds if name in longest]
        more = f" and {len(seconds) - len(longest)} more" if len(seconds) > len(longest) else ""
        whole = f" for the {len(seconds)} phases of {run.subject}" if len(seconds) > 1 else ""
        took = f" {'take' if run.simulated else 'took'} {units.seconds(sum(seconds.values()))}{whole}" if whole else ""
        return f"{who}{took}: {', '.join(found)}{more}."
    about = run.phase()
    rate = rate_of(about) if about else None
    return f"{who} {did} {units.rate(rate, about.get('rate_unit'))} in {about['name']}." if about and rate else ""


def _truth(best: Comparison | None) -> str:
    """Throughput of a server whose truth is known, beside forecast and measurement."""
    row = best.row("rate") if best else None
    truth = row.get("truth") if row else None
    if not best or not row or truth is None:
        return ""
    errors = [units.error(value / truth - 1) for value in (row["forecast"], row["measured"])]
    return (
        f"The drawn server alone serves {units.rate(truth)} of {units.ranks(best.ranks)} in a simulation, "
        "without the kernel, FUSE and the benchmark. "
        f"The forecast is {errors[0]} off that, the measurement {errors[1]}."
    )


def _runs(sources: Sources, simulated: bool) -> str:
    runs = [r for r in sources.runs if r.simulated is simulated]
    if not runs:
        return ""
    ranks = sorted({r.ranks for r in runs})
    known = [] if simulated else file_systems(sources)
    where = f" on {', '.join(known)}" if known else ""
    scale = units.ranks(ranks[0]) if len(ranks) == 1 else f"{ranks[0]:,} to {units.ranks(ranks[-1])}"
    operations = sum(p.get("operations") or 0 for r in runs for p in r.phases)
    workload = ", ".join(dict.fromkeys(r.subject for r in runs))
    number = "one run" if len(runs) == 1 else f"{len(runs)} runs"
    counted = f", {units.count(operations)} operations in all" if operations else ""
    return f"{workload}{where} in {number} of {scale}{counted}."


def _has_queues(sources: Sources) -> bool:
    """Whether a queueing model was calibrated: rates alone are fitted by curves."""
    return not sources.fitted or any(platform["fitted"].get("method") != "rates" for platform in sources.fitted)


def _forecast(sources: Sources, best: Comparison | None, checked: bool, several: int) -> str:
    fitted = (best.fitted_up_to if best else None) or _largest_fitted(sources)
    source = f"runs of up to {units.ranks(fitted)}" if fitted else "the measurements"
    model = "A queueing model was calibrated with" if _has_queues(sources) else "Curves of growth were fitted to"
    if best and checked:
        times = f", {units.factor(best.ranks / fitted)} times as many," if fitted and best.ranks > fitted else ""
        point = "measurement that the model" if several == 1 else f"{several} measurements that the model"
        had = "had not seen" if several == 1 else "had not seen, the largest first"
        rate = best.row("rate")
        interval = ""
        if rate and rate.get("low") is not None and rate.get("high") is not None:
            span = _rate_span(rate)
            interval = f" The {units.share(best.level)} interval of throughput was {span}."
        return (
            f"{model} {source} and forecast {units.ranks(best.ranks)}{times} in {best.phase}; the report compares it "
            "with "
            f"{'the one ' if several == 1 else ''}{point} {had}.{interval}"
        )
    if best:
        return (
            f"{model} {source}. Here it is compared with the very data it was fitted to, "
            "which says that it can describe them but not that it can forecast."
        )
    return ""


def _without_measurements(sources: Sources) -> str:
    """What forecasts of platforms that were never calibrated rest on; the ranges stand in the grid."""
    found = [sentence for forecast in sources.forecasts for sentence in basis(forecast)[1]]
    return " ".join(dict.fromkeys(found))


def _wrong(scored: Score | None, checked: bool, rows: list[Comparison]) -> str:
    if scored is None:
        return ""
    where = "On data it had not seen" if checked else "On data it was fitted to"
    errors = _rate_error(rows)
    texts = []
    if len(errors) == 1:
        texts.append(f"{where}, the forecast of throughput was wrong by {units.error(errors[0])}.")
    elif errors:
        worst = max(errors, key=lambda e: abs(e))
        middle = units.error(scored.rate_error).removeprefix("+")
        texts.append(
            f"{where}, the median error of throughput was {middle} over {len(errors)} points, the worst "
            f"{units.error(worst)}."
        )
    texts += [sentence] if (sentence := one_sided(errors)) else []
    if scored.quantile_error is not None:
        texts.append(
            f"The median error of the {OF_QUANTILES} was {units.error(scored.quantile_error).removeprefix('+')}."
        )
    if scored.judged:
        level = rows[0].level
        texts.append(
            f"Of {scored.judged} intervals meant to contain the measurement with {units.share(level)} probability, "
            f"{scored.inside} did."
        )
        if scored.inside / scored.judged < level - 0.15:
            texts.append("The forecast was too sure of itself: read its intervals as too narrow.")
    return " ".join(texts)


def _simple(scored: Score | None, rows: list[Comparison]) -> str:
    if scored is None:
        return ""
    rates = {n: r for n, (r, _) in scored.baselines.items() if r is not None}
    tails = {n: q for n, (_, q) in scored.baselines.items() if q is not None}
    texts = []
    for what, known, own in (
        ("throughput", rates, scored.rate_error),
        (f"the {OF_QUANTILES}", tails, scored.quantile_error),
    ):
        if known and own is not None:
            name = min(known, key=lambda n: known[n])
            better = "better than" if own < known[name] else "worse than" if own > known[name] else "as good as"
            theirs = _rate_text(name, scored, rows) if what == "throughput" else _size(known[name])
            ours = _rate_text(None, scored, rows) if what == "throughput" else _size(own)
            texts.append(
                f"For {what} the best of the simple rules, {_article(name)}, was wrong by {theirs}; "
                f"the forecast, with {ours}, was {better} it."
            )
    return " ".join(texts)


def _rate_text(baseline: str | None, scored: Score, entries: list[Comparison]) -> str:
    """The throughput error of a baseline, or of the forecast: with its sign for one point, the median size for
    several."""
    rows = [row for c in entries if (row := c.row("rate"))]
    if len(rows) == 1:
        printed = rows[0] if baseline is None else rows[0]["baselines"][baseline]
        return units.error(printed["error"])
    typical = scored.rate_error if baseline is None else scored.baselines[baseline][0]
    return units.error(typical).removeprefix("+")


def _size(error: float) -> str:
    return units.error(error).removeprefix("+")


def _article(name: str) -> str:
    return f"a {name}" if name == "straight line" else f"the {name}"


def _what_if(sources: Sources) -> str:
    return " ".join(text for phase in evidence.forecast_phases(sources) if (text := _what_if_in(sources, phase)))


def _what_if_in(sources: Sources, phase: str) -> str:
    labels = evidence.what_if(sources, phase)
    ranks = evidence.largest_common(labels)
    if ranks is None or not any(evidence.is_alternative(f) for forecasts in labels.values() for f in forecasts):
        return ""
    at = {label: next(f for f in fs if evidence.ranks_of(f["placement"]) == ranks) for label, fs in labels.items()}
    base = at.get(evidence.AS_IT_IS)
    today = value_of(now := forecast_rate(base) if base else None)
    known = now is not None and not evidence.is_wide(now)
    texts = []
    if base and today is not None:
        texts.append(f"In {phase} at {units.ranks(ranks)} the system as it is would serve {_rate_with_interval(base)}.")
    ordered = sorted(
        (a for a in at if evidence.is_alternative(at[a])), key=lambda a: -(value_of(forecast_rate(at[a])) or 0)
    )
    for label in ordered:
        value = value_of(forecast_rate(at[label]))
        if value is not None:
            gain = "" if today else f" in {phase} at {units.ranks(ranks)}"
            if today and known and not evidence.is_wide(at[label]["quantities"]["rate"]):
                gain = f", {units.factor(value / today)} times as much"
            texts.append(f"With \u201c{label}\u201d it would serve {_rate_with_interval(at[label])}{gain}.")
    return " ".join(texts)


def _rate_span(rate: Ends | ScoredRow) -> str:
    """ "270 to 921 MB/s": the interval of a rate in its unit."""
    return units.span(units.rate(rate["low"], rate.get("unit")), units.rate(rate["high"], rate.get("unit")))


def _rate_with_interval(forecast: ForecastDocument) -> str:
    rate = forecast["quantities"]["rate"]
    text = units.rate(rate["value"], rate.get("unit"))
    if rate.get("low") is not None and rate.get("high") is not None:
        if too_wide(rate):
            return f"{_rate_span(rate)} ({roughly(text, rate)})"
        text += f" ({_rate_span(rate)})"
    return text


def _cards(
    sources: Sources, best: Comparison | None, scored: Score | None, checked: bool, compared: list[Comparison]
) -> list[Card]:
    cards: list[Card] = []
    if best is None or scored is None:
        return cards
    rate = best.row("rate")
    unseen = "on data it had not seen" if checked else "on data it was fitted to"
    if rate:
        unit = rate.get("unit")
        shown = roughly(units.rate(rate["forecast"], unit), rate)
        note = f"forecast {shown}, measured {units.rate(rate['measured'], unit)}"
        cards.append(
            Card(
                f"error of throughput, {best.phase}, {units.ranks(best.ranks)}{answers.times_fitted(sources, best)}",
                units.error(rate["error"]),
                note,
            )
        )
    if scored.quantile_error is not None:
        cards.append(Card(f"median error of {OF_QUANTILES}", _size(scored.quantile_error), unseen))
    if not scored.judged and sources.fitted and not _has_queues(sources):
        case = max(_cases(sources), key=lambda one: one[1], default=None)
        known = record.of_rates_alone(*case) if case else record.RATES_ALONE
        if known:
            note = f"{known.forecasts} {known.what}, 90{units.SPACE}% intervals"
            cards.append(Card("such intervals that held", units.share(known.inside), note))
        elif case:
            cards.append(Card("such intervals that held", "no record", record.sentence_of_rates_alone(*case)))
    if scored.judged:
        note = f"should hold {units.share(best.level)} of the time"
        cards.append(Card("intervals that held", f"{scored.inside} of {scored.judged}", note))
    if ruled := evidence.best_rule(compared):
        note = "error of throughput in the same place" if rate else "median error of throughput"
        cards.append(Card(f"the best simple rule ({ruled.name})", units.error(ruled.error), note))
    return cards


def _summary(sources: Sources, best: Comparison | None, scored: Score | None, checked: bool) -> dict[str, Any]:
    rate: Mapping[str, Any] = (best.row("rate") if best else None) or {}
    phases = [p for r in sources.runs for p in r.phases]
    return {
        "runs": len(sources.runs),
        "servers": servers.numbers(sources),
        "ranks": sorted({r.ranks for r in sources.runs}),
        "operations": sum(p.get("operations") or 0 for p in phases),
        "rates": [
            p["rate"] for r in evidence.focus_runs(sources) if (p := r.phase()) and p.get("rate")
        ],  # of the first of `phases` that a run has
        "largest_fitted_ranks": _largest_fitted(sources),
        "phases": sources.phases,
        "not_forecast": sources.missing,
        "warnings": warnings(sources),
        "targets": [
            {
                "phase": evidence.phase_of(f),
                "ranks": evidence.ranks_of(f["placement"]),
                "waiting_factor": evidence.waiting_factor(f),
                **(f["quantities"].get("rate") or {}),
            }
            for f in evidence.targets(sources)
        ],
        "compared_ranks": best.ranks if best else None,
        "compared_fitted_up_to": best.fitted_up_to if best else None,
        "compared_phase": best.phase if best else None,
        "unseen": checked,
        "rate": {
            k: rate.get(k) for k in ("measured", "measured_low", "measured_high", "forecast", "low", "high", "error")
        },
        "level": best.level if best else None,
        "rate_error_median": scored.rate_error if scored else None,
        "quantile_error_median": scored.quantile_error if scored else None,
        "intervals_inside": scored.inside if scored else None,
        "intervals_judged": scored.judged if scored else None,
        "baselines": {
            name: {"rate_error_median": r, "quantile_error_median": q}
            for name, (r, q) in (scored.baselines if scored else {}).items()
        },
        "what_if": [
            {
                "label": label,
                "phase": evidence.phase_of(f),
                "ranks": evidence.ranks_of(f["placement"]),
                **(f["quantities"].get("rate") or {}),
            }
            for label, forecasts in evidence.what_if(sources).items()
            for f in forecasts
        ],
        "noise": [v.get("summary", {}).get("noise") for v in sources.validations if v.get("summary", {}).get("noise")],
    }
