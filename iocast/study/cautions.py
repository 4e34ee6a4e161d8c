# SPDX-License-Identifier: Apache-2.0
"""What weakens a study's answer."""

from __future__ import annotations

from typing import Any, TYPE_CHECKING

from iocast.forecasts.cautions import far_beyond_published, other_settings
from iocast.records import note
from iocast.records.codes import notes_of_fit
from iocast.records.note import Note
from iocast.records.study import StudyDocument
from iocast.study.documents import number
from iocast.study.words import systems_beside

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


def cautions(search: Search, answer: StudyDocument) -> list[Note]:
    """Everything that must be known before the answer is believed."""
    study = search.study
    found: list[Note] = []
    for platform in search.desk.platforms.values():
        name = platform.reference.rpartition("/")[2]
        serves = platform.serves
        found += [serves.template] if serves.template else []
        found += far_beyond_published(serves, study.largest.nodes, study.largest.ranks)
        if (errors := search.desk.published_errors(platform)) is not None:
            found.append(errors.note)
        elif not platform.fitted:
            found.append(note.NeverFitted(name, bool(study.model_error), platform.set_by_hand_to or ""))
        else:
            if rests := search.desk.unmeasured(platform):
                found.append(note.RestsOnFamily(rests, platform.in_place(rests), about=(name,)))
            phase = platform.fitted["campaign"].get("phase", "benchmark")
            others = [one for one in platform.phases if one != phase]
            foreign = [w for w in study.workloads if w not in search.desk.own_phases(platform)]
            if others and foreign:
                found.append(note.RestsOnOnePhase(phase, others, foreign))
            largest = max(platform.fitted["campaign"]["ranks"])
            if study.largest.ranks > FAR * largest:
                found.append(note.StudyFarBeyondMeasured(study.largest.ranks, largest))
            questions = [search.desk.question(name, study.largest, platform.fitted) for name in study.workloads]
            found += [one for question in questions for one in other_settings(platform.fitted, question)]
            found += notes_of_fit(platform.fitted)
            found += beside_the_platform(search, platform)
    found += search.desk.not_simulated
    found += _measured_systems(answer)
    if not search.is_random:
        found.append(note.NothingUncertain())
    if answer["stability"] < 0.95:
        found.append(note.Unsettled(answer["stability"]))
    placeholders = [p.name for p in study.parts.values() if "placeholder" in p.source.lower() or not p.source]
    if placeholders:
        found.append(note.PricesWithoutSource(placeholders))
    found += [
        note.PartSimulated(w["name"], w["simulated_share"]) for w in answer["workloads"] if w["simulated_share"] < 1
    ]
    found += _short_for_stalls(search)
    shown = search.decision() or next(iter(search.tried), None)
    if shown is not None:
        name = search.desk.variants.platform_of(shown.design).reference.rpartition("/")[2].removesuffix(".yaml")
        found += [
            note.ModelLimit(kind, sentence.replace("'platform'", f"'{name}'"))
            for result in shown.best.values()
            for sentence, kind in result.get("model_limits", {}).items()
        ]
        of_links = search.desk.links_of
        found += [one for point in search.points for one in of_links.get((shown.design.number, point), [])]
    about = {name for level in study.levels for name in level.workloads}
    if idle := [name for name in study.workloads if name not in about]:
        found.append(note.NoLevelAbout(idle))
    if unscreened := [w["name"] for w in answer["workloads"] if not w["screened"]]:
        found.append(note.NotScreened(unscreened))
    return found


def _measured_systems(answer: StudyDocument) -> list[Note]:
    """What the values of measured systems beside the levels are, and what they miss."""
    family = answer["family"]
    if not family:
        return []
    by = sorted({system["by"] for system in family["systems"]})
    return [
        note.SystemsBeside(family["family"], systems_beside(answer), by),
        *(note.SystemWithoutAnswer(text) for text in family["refused"]),
    ]


def beside_the_platform(search: Search, platform: Platform) -> list[Note]:
    """That the measured system's numbers are blended with simple rules or held below the ceiling, as a forecast's are,
    by how much at the largest scale, and what that leaves out."""
    name, found = platform.reference.rpartition("/")[2], list[Note]()
    designs = [c.design for c in search.tried if search.desk.variants.platform_of(c.design) is platform]
    for workload in search.study.workloads.values() if designs else ():
        scale = search.study.scales[[s for s in search.study.scales if s in workload.scales][-1]]
        changes = search.desk.changes(designs[0], workload.name, scale)
        if abs(changes.get("rate", 1.0) - 1) < SHOWN_CHANGE:
            continue
        rules = search.desk.rules(designs[0], workload.name, scale)
        assert rules is not None
        found.append(note.RulesChangeDesigns(name, workload.name, scale.ranks, changes["rate"], rules.note))
    return found


def _short_for_stalls(search: Search) -> list[Note]:
    """Simulations shorter than a few periods of a stall know it badly."""
    best = search.decision() or next(iter(search.tried), None)
    if best is None:
        return []
    document = search.desk.variants.document(best.design, "", 0)
    tails = any(level.kind in ("q99", "max") for level in search.desk.levels)
    found: list[Note] = []
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
                seconds = result["quantities"]["seconds"]
                where = point.workload, point.scale
                found.append(note.ShorterThanStalls(*where, seconds, STALL_PERIODS, name, capped))
                break
    return found


def _seconds(value: Any) -> float:
    found = number(value)
    return (
        0.0
        if found is None
        else found[0] * {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "min": 60.0, "h": 3600.0}.get(found[1], 1.0)
    )
