# SPDX-License-Identifier: Apache-2.0
"""What weakens a study's answer."""

from __future__ import annotations

from typing import Any, TYPE_CHECKING

from iocast.forecasts.cautions import far_beyond_published, other_settings
from iocast.runs.operations import UNSOLVED
from iocast.study.documents import number
from iocast.study.words import systems_beside
from iocast.records.note import RestsOnFamily, RestsOnOnePhase
from iocast.records.study import StudyDocument
from iocast.wording.notes import sentence, sentences

if TYPE_CHECKING:
    from iocast.study.designs import Platform
    from iocast.study.search import Search

FAR = 4.0
"""Times the largest measured scale, from which an extrapolation is called far."""
STALL_PERIODS = 3
SHORT_STALL = 0.02
"""Share of the time below which a stall is nothing to rates and medians."""
SHOWN_CHANGE = 0.005
"""Relative change of the rate by simple rules, from which on it is named."""


def warnings(search: Search, answer: StudyDocument) -> list[str]:
    """Everything that must be known before the answer is believed."""
    study = search.study
    found: list[str] = []
    for platform in search.desk.platforms.values():
        name = platform.reference.rpartition("/")[2]
        serves = platform.serves
        found += filter(None, [serves.template])
        found += sentences(far_beyond_published(serves, study.largest.nodes, study.largest.ranks))
        if (errors := search.desk.published_errors(platform)) is not None:
            found.append(errors.sentence)
        elif not platform.fitted:
            error = (
                ""
                if study.model_error
                else ", and the study states no error of the model, so the confidence counts only what it calls "
                "uncertain"
            )
            by = platform.set_by_hand_to
            found.append(
                f"The platform '{name}' was never fitted by iocast: its author set its numbers by hand to measurements "
                f"of {by}{error}."
                if by
                else f"The platform '{name}' was never calibrated: its numbers are its author's{error}."
            )
        else:
            if rests := search.desk.unmeasured(platform):
                found.append(sentence(RestsOnFamily(rests, about=(name,))))
            phase = platform.fitted["campaign"].get("phase", "benchmark")
            others = [one for one in platform.phases if one != phase]
            foreign = [w for w in study.workloads if w not in search.desk.own_phases(platform)]
            if others and foreign:
                found.append(sentence(RestsOnOnePhase(phase, others, foreign)))
            largest = max(platform.fitted["campaign"]["ranks"])
            if study.largest.ranks > FAR * largest:
                found.append(
                    f"The study asks about {study.largest.ranks:,} clients, {study.largest.ranks / largest:.0f} times "
                    f"the {largest} that were measured: the answer rests on the model, and nothing new may happen in "
                    "between."
                )
            questions = [search.desk.question(name, study.largest, platform.fitted) for name in study.workloads]
            found += [text for one in questions for text in sentences(other_settings(platform.fitted, one))]
            found += platform.fitted.get("notes", [])
            found += beside_the_platform(search, platform)
    found += search.desk.not_simulated
    found += _measured_systems(answer)
    if not search.is_random:
        found.append(
            "Nothing in this study is uncertain but chance: name what is not known for sure under 'uncertainty', or "
            "the confidence says too much."
        )
    if answer["stability"] < 0.95:
        found.append(
            f"The decision is not settled: in {100 * (1 - answer['stability']):.0f} % of resampled replications it "
            "would be another; allow more replications."
        )
    placeholders = [p.name for p in study.parts.values() if "placeholder" in p.source.lower() or not p.source]
    if placeholders:
        found.append(f"Prices without a source, to be replaced by those of an offer: {', '.join(placeholders)}.")
    shares = [(w["name"], w["simulated_share"]) for w in answer["workloads"] if w["simulated_share"] < 1]
    for name, share in shares:
        found.append(
            f"Of the workload {name} at the largest scale {100 * share:.2g} % of the operations were simulated; a "
            "maximum over all of them would be longer."
        )
    found += _stall_warnings(search)
    shown = search.decision() or next(iter(search.tried), None)
    if shown is not None:
        name = search.desk.variants.platform_of(shown.design).reference.rpartition("/")[2].removesuffix(".yaml")
        found += [
            sentence.replace("'platform'", f"'{name}'")
            for result in shown.best.values()
            for sentence in result.get("model_limits", [])
        ]
    about = {name for level in study.levels for name in level.workloads}
    if idle := [name for name in study.workloads if name not in about]:
        found.append(f"No level is about {', '.join(idle)}: it is in the means of rate and q99, and decides nothing.")
    unscreened = [w["name"] for w in answer["workloads"] if not w["screened"]]
    if unscreened:
        found.append(
            f"The analytic solver does not know what {', '.join(unscreened)} does (ranks that {UNSOLVED}; or phases of "
            "a level of seconds that a time limit may end); its designs were screened by one simulation each."
        )
    return list(dict.fromkeys(found))


def _measured_systems(answer: StudyDocument) -> list[str]:
    """What the values of measured systems beside the levels are, and what they miss."""
    family = answer["family"]
    if not family:
        return []
    by = " and ".join(sorted({system["by"] for system in family["systems"]}))
    sentence = (
        f"Beside the levels stand the catalogue's measured systems of the family {family['family']} "
        f"({', '.join(systems_beside(answer))}), as models that were set to measurements of {by}: this is the range of "
        "what such systems reached."
    )
    return [sentence, *family["refused"]]


def beside_the_platform(search: Search, platform: Platform) -> list[str]:
    """That the measured system's numbers are blended with simple rules or held below the ceiling, as a forecast's are,
    by how much at the largest scale, and what that leaves out."""
    name, found = platform.reference.rpartition("/")[2], []
    designs = [c.design for c in search.tried if search.desk.variants.platform_of(c.design) is platform]
    for workload in search.study.workloads.values() if designs else ():
        scale = search.study.scales[[s for s in search.study.scales if s in workload.scales][-1]]
        changes = search.desk.changes(designs[0], workload.name, scale)
        if abs(changes.get("rate", 1.0) - 1) < SHOWN_CHANGE:
            continue
        rules = search.desk.rules(designs[0], workload.name, scale)
        assert rules is not None
        text = (
            sentence(rules.note)
            if rules.note
            else "The measured scales set a ceiling: throughput grows no steeper than between the last two."
        )
        found.append(
            f"Of {name}, as iocast predict forecasts it: {text} It changes the rate of {workload.name} at "
            f"{scale.ranks:,} clients by {100 * (changes['rate'] - 1):+.0f} % for every design of this platform, and "
            "latencies likewise; chances count the calibrated platform's own uncertainty about the changed values."
        )
    return found


def _stall_warnings(search: Search) -> list[str]:
    """Simulations shorter than a few periods of a stall know it badly."""
    best = search.decision() or next(iter(search.tried), None)
    if best is None:
        return []
    document = search.desk.variants.document(best.design, "", 0)
    tails = any(level.kind in ("q99", "max") for level in search.desk.levels)
    found = []
    for name, stall in (document.get("stalls") or {}).items():
        period, share = (
            _seconds(stall.get("every")),
            _seconds(stall.get("length")) / max(_seconds(stall.get("every")), 1e-9),
        )
        if share < SHORT_STALL and not tails:
            continue
        for point in search.points:
            result = best.best[point]
            if "down" not in result and period and result["quantities"]["seconds"] < STALL_PERIODS * period:
                capped = search.desk.share(point.workload, search.study.scales[point.scale]) < 1
                more = "raise 'most_operations' of the study" if capped else "give the workload more iterations"
                found.append(
                    f"The simulation of {point.workload} at {point.scale} lasted {result['quantities']['seconds']:.2g} "
                    f"s, less than {STALL_PERIODS} periods of the stall {name}: {more}."
                )
                break
    return found


def _seconds(value: Any) -> float:
    found = number(value)
    return (
        0.0
        if found is None
        else found[0] * {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "min": 60.0, "h": 3600.0}.get(found[1], 1.0)
    )
