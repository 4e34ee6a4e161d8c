# SPDX-License-Identifier: Apache-2.0
"""The desk between a study and its workers: turns questions about designs into requests, looks them up, has the rest
computed."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from typing import Any, cast


from iocast.records.note import MeasuredNotSimulated, Note
from iocast.calibrate.search import OVERLOADED, only
from iocast.platforms.content import content_hash
from iocast.forecasts.draws import LENGTHS
from iocast.errors import InputError, RunError
from iocast.platforms.fitted import Fitted
from iocast.runs.measured import is_called, measured_workload, speaks_of
from iocast.runs.operations import READS, UNSOLVED, WRITES, ProfiledPhase, is_solved
from iocast.runs.phases import first_phase, main_phases, phase_sentences
from iocast.platforms.documents import Document, find_platform, get_path
from iocast.platforms.platform_names import check_file
from iocast.forecasts.simulated import SEEDS
from iocast.forecasts.structures import middle_of, tied_choices
from iocast.published.errors import Errors
from iocast.published.serves import refuse_beyond
from iocast.runs.question import Question, mounts_of
from iocast.records.quantities import ACCELERATORS
from iocast.rules.residuals import Residuals
from iocast.rules.applied import Quantities, Rules, changes_of
from iocast.ground.strict_yaml import allowed_sentence
from iocast.study import carried, over_links
from iocast.study.questions import Ask, Point
from iocast.study.designs import Design, Designs, Platform, Variants
from iocast.study.documents import Down, edited
from iocast.study.edits import checked_edits, short
from iocast.study.evaluate import Request, Result, What, evaluate, evaluate_all, key_of, pooled, without_place
from iocast.study.levels import ALL, ANY, Level
from iocast.study.places import refused, refused_level, refused_workload
from iocast.study.spec import MODEL, NORMAL, Scale, Study, Workload
from iocast.study.store import Store
from iocast.jobs.workers import Workers

Report = Callable[[str, int, int], None]
SCREENING_POINTS = 2048
DOWN: Result = {"down": True}


class Desk:
    """@raises InputError when the study asks for something that its platform or its workloads don't have"""

    def __init__(
        self, study: Study, store: Store, workers: Workers, report: Report, seed: int = 0, *, beyond: bool = False
    ) -> None:
        """beyond: also at scales far beyond the published numbers of a platform"""
        self.beyond = beyond
        self.study, self.store, self.workers, self.report, self.seed = study, store, workers, report, seed
        self.designs = Designs(study)
        self.platforms = self._open_platforms()
        self.variants = Variants(study, self.platforms)
        self._profiles_at: dict[tuple[str, int, int], Result] = {}
        self._unmeasured: dict[tuple[str, str], dict[str, list[str]]] = {}
        self.profiles = {w.name: self._profile(w, study.scales[w.scales[0]]) for w in study.workloads.values()}
        """What each workload does at the first of its scales, with all that is the same at each."""
        self._take_phases()
        self.levels = [self._checked(level) for level in study.levels]
        self._check_measurements()
        self.not_simulated: list[Note] = []
        """Sentences on measured systems that simple rules can't be applied to."""
        self.links_of: dict[tuple[int, Point], list[Note]] = {}
        """By design and point what its links carry, where that is less than the platform does."""
        self.found = 0
        self.before_computing: Callable[[], None] | None = None
        """Called once, when something must be computed."""
        self._down: dict[tuple[int, str], bool] = {}
        self._keys: dict[Ask, str] = {}
        self._residuals: dict[tuple[str, str], Residuals | None] = {}
        self._changes: dict[tuple[str, str, int, int], dict[str, float]] = {}

    # Questions to a platform -------------------------------------------------------------------------------------

    def _open_platforms(self) -> dict[str, Platform]:
        names = dict.fromkeys(
            [self.study.platform, *(v.platform for axis in self.study.axes for v in axis.values if v.platform)]
        )
        result = {}
        for name in names:
            find_platform(name)
            fitted = Fitted.open(name)
            scales = self.study.scales.values()
            fitted.require_nodes(max(scale.nodes for scale in scales))
            if not self.beyond:
                refuse_beyond(fitted, max(one.nodes for one in scales), max(one.ranks for one in scales))
            if fitted.rates_alone:
                raise refused(
                    self.study.file,
                    f"the platform '{short(name)}' was fitted to rates alone, so that a study has nothing to simulate; "
                    "iocast predict forecasts such rates, with --edit for what-ifs. Or calibrate a family with "
                    "latencies (iocast list platforms).",
                    "platform" if name == self.study.platform else "axes",
                )
            check_file(fitted)
            platform = Platform(name, fitted, [])
            document, key = platform.best
            resolved = self._one({"what": "resolve", "platform": document, "platform_key": key})
            result[name] = platform.with_defaults(checked_edits(self.study, name, document, resolved, self._resolved))
        return result

    def _resolved(self, document: Document) -> Result:
        """A platform as the simulator understands it."""
        return self._one({"what": "resolve", "platform": document, "platform_key": content_hash(document)})

    def _profile(self, workload: Workload, scale: Scale) -> Result:
        """What the workload does, from its own operation streams; `phase` and `settings` are those to be used."""
        reference, settings = self._as_measured(workload)
        request: Request = {
            "what": "profile",
            "platform": {},
            "workload": reference,
            "settings": settings,
            "nodes": scale.nodes,
            "ranks_per_node": scale.ranks_per_node,
        }
        try:
            profile = self._one(request)
            wanted = [workload.phase] if workload.phase else main_phases(profile["phases"])
            chosen = only(wanted, profile["pattern"], self._systems) | settings
            if chosen != settings:  # others need not be simulated
                settings = chosen
                profile = self._one(request | {"settings": settings})
        except InputError as error:
            raise refused_workload(self.study.file, workload.name, "settings", without_place(str(error))) from error
        phases = profile["phases"]
        named = workload.phase or first_phase({name: sum(of["operations"].values()) for name, of in phases.items()})
        if named not in phases:
            known = phase_sentences(named, {name: of["operations"] for name, of in phases.items()})
            raise refused_workload(self.study.file, workload.name, "phase", f"there is no phase '{named}'. {known}")
        return profile | {"phase": named, "settings": settings, **phases[named]}

    @cached_property
    def _systems(self) -> list[Document]:
        """Documents in which all memory is that designs may have: of each platform and its draws, and the platform with
        the edits of each value and scenario, alone and together."""
        changes = [value.edits for axis in self.study.axes for value in axis.values]
        changes += [scenario.edits for scenario in self.study.scenarios.values()]
        changes.append(tuple(edit for edits in changes for edit in edits))
        found = []
        for platform in self.platforms.values():
            found += [platform.best[0], *(document for document, _ in platform.draws)]
            for edits in filter(None, changes):
                with suppress(Down):
                    found.append(edited(platform.best[0], edits))
        return found

    def _as_measured(self, workload: Workload) -> tuple[str, dict[str, str]]:
        """The workload and its settings as iocast predict takes them: what is not given of a platform's measured
        workload is as it was measured."""
        for platform in self.platforms.values():
            if known := measured_workload(platform.fitted, workload.reference):
                return known[0], known[1] | workload.settings
        return workload.reference, dict(workload.settings)

    def profile_at(self, workload: str, scale: Scale) -> Result:
        """What the workload does at this scale. @raises InputError where it can't be there"""
        key = (workload, scale.nodes, scale.ranks_per_node)
        if key not in self._profiles_at:
            self._profiles_at[key] = self._profile(self.study.workloads[workload], scale)
        return self._profiles_at[key]

    def own_phases(self, platform: Platform) -> dict[str, str]:
        """By workload its phase, of those that the platform was fitted to."""
        found = {}
        for w in self.study.workloads.values():
            phase = self.profiles[w.name]["phase"]
            if phase in platform.phases and is_called(platform.fitted, w.reference):
                found[w.name] = phase
        return found

    def unmeasured(self, platform: Platform, workload: str = "") -> dict[str, list[str]]:
        """By operation of the workload, or of all, the platform's numbers that nothing measured."""
        if (platform.reference, workload) not in self._unmeasured:
            found: dict[str, list[str]] = {}
            for name in [workload] if workload else self.study.workloads:
                profile, question = self.profiles[name], self.question(name, self.study.largest, platform.fitted)
                operations = [op for op, count in profile["operations"].items() if count]
                found |= platform.unmeasured(operations, question, self.designs.settled, profile["bytes"])
            self._unmeasured[platform.reference, workload] = found
        return self._unmeasured[platform.reference, workload]

    def published_errors(self, platform: Platform, workload: str = "") -> Errors | None:
        """What published numbers say of a platform of the catalogue under this workload, or under each one."""
        errors = platform.errors
        patterns = [
            self.profiles[name]["workload"]["pattern"] for name in ([workload] if workload else self.study.workloads)
        ]
        return errors if errors is not None and all(map(errors.speaks_of, patterns)) else None

    def _take_phases(self) -> None:
        """Of a platform that was fitted phase by phase takes the one that the study asks about. @raises InputError when
        it asks about several"""
        for name, platform in self.platforms.items():
            if len(platform.phases) < 2:
                continue
            own = self.own_phases(platform)
            if len(set(own.values())) > 1:
                raise refused(
                    self.study.file,
                    f"the platform '{short(name)}' has a fit of its own for each phase, and the workloads "
                    f"{' and '.join(own)} ask for {' and '.join(dict.fromkeys(own.values()))}; ask for one phase in "
                    "each study.",
                    "workloads",
                )
            if own:
                self.platforms[name] = platform.for_phase(next(iter(own.values())))

    def _checked(self, level: Level) -> Level:
        """The level at those of its places that have its operation. @raises InputError when there is none, or none for
        a scale or workload that the study names"""
        subject, tasks = level.subject, self.study.tasks
        what = level.quantity.rpartition(".")[2]
        places = level.places
        if level.quantity in ("seconds", "rate", *ACCELERATORS) or subject == ANY:
            pass
        elif what == "bandwidth":
            places = tuple(place for place in places if self._moves(place, subject))
        elif what == "utilisation":
            stations = set().union(*(get_path(p.best[0], "stations") or {} for p in self.platforms.values()))
            if subject not in stations:
                what = f"is about a station that no platform here has. {allowed_sentence(subject, sorted(stations))}"
                raise refused_level(self.study.file, level.text, what)
        else:
            needed = set(tasks.get(subject, {subject: 1}))
            places = tuple(place for place in places if needed <= set(self._profile_of(place)["operations"]))
            self._check_phases(level, needed)
        if not places:
            has = sorted(
                {op for place in level.places for op in self._profile_of(place)["operations"]} | set(tasks) | {ANY, ALL}
            )
            about = f"the workload{'s' if len(level.workloads) > 1 else ''} {', '.join(level.workloads)}"
            does = "does" if len(level.workloads) == 1 else "do"
            what = f"is about '{subject}', which {about} never {does}. {allowed_sentence(subject, has)}"
            raise refused_level(self.study.file, level.text, what)
        found = replace(level, places=places)
        if without := found.named_without_place():
            having = "; ".join(f"{w} does at {', '.join(s for o, s in places if o == w)}" for w in found.workloads)
            what = (
                f"names the {without[0]} '{without[1]}', where nothing does '{subject}' ({having}); leave that name "
                "out."
            )
            raise refused_level(self.study.file, level.text, what)
        return found

    def _profile_of(self, place: tuple[str, str]) -> Result:
        """Of a workload at a scale, by their names."""
        return self.profile_at(place[0], self.study.scales[place[1]])

    def _check_phases(self, level: Level, needed: set[str]) -> None:
        """@raises InputError for a workload that names no phase, and whose main phases with the level's operation are
        several, or another than is looked at"""
        for workload in (w for w in self.study.workloads.values() if w.name in level.workloads and not w.phase):
            profile = self.profiles[workload.name]
            having = [
                name for name in main_phases(profile["phases"]) if needed <= set(profile["phases"][name]["operations"])
            ]
            if having and having != [profile["phase"]]:
                what = (
                    f"is about '{level.subject}', which the workload '{workload.name}' does in {' and '.join(having)}; "
                    f"name the phase with workloads.{workload.name}.phase, or list the workload once for each."
                )
                raise refused_level(self.study.file, level.text, what)

    def _moves(self, place: tuple[str, str], direction: str) -> bool:
        kinds = WRITES if direction == "write" else READS
        return any(self._profile_of(place)["bytes"].get(kind, 0) > 0 for kind in kinds)

    def _check_measurements(self) -> None:
        known = [
            *self.study.uncertainty,
            *(path for p in self.platforms.values() for path in p.fitted.get("parameters", {})),
            MODEL,
        ]
        for measurement in self.study.measurements:
            for reported in measurement.tells:
                if reported not in known:
                    text = (
                        f"in measurements.{measurement.name}, nothing uncertain is called '{reported}'. "
                        f"{allowed_sentence(reported, known)}"
                    )
                    raise refused(self.study.file, text, "measurements", measurement.name)

    # Points ------------------------------------------------------------------------------------------------------

    def points(self) -> list[Point]:
        """Everything a design is looked at for: normal service everywhere, each scenario where a level asks."""
        found = [
            Point(NORMAL, w.name, s) for w in self.study.workloads.values() for s in self.study.scales if s in w.scales
        ]
        for level in self.levels:
            if level.under != NORMAL:
                found += [p for _, p in self.conditions_of(level)]
        return list(dict.fromkeys(found))

    def conditions_of(self, level: Level) -> list[tuple[Level, Point]]:
        """The level at each point where it must hold."""
        return [(level, Point(level.under, w, s)) for w, s in level.places]

    def conditions(self) -> list[tuple[Level, Point]]:
        return [condition for level in self.levels for condition in self.conditions_of(level)]

    def scale(self, ask: Ask) -> Scale:
        return ask.at or self.study.scales[ask.point.scale]

    # Evaluations -------------------------------------------------------------------------------------------------

    def can_screen(self, workload: str) -> bool:
        """Whether the analytic solver knows what this workload does, and for a level of seconds how long it lasts."""
        scales = [self.study.scales[name] for name in self.study.workloads[workload].scales]
        profiles = [self.profile_at(workload, scale) for scale in scales]
        if any(level.quantity == "seconds" and workload in level.workloads for level in self.study.levels):
            names = list(self.profiles[workload]["phases"])
            before = names[: names.index(self.profiles[workload]["phase"]) + 1]
            if any(self.profiles[workload]["phases"][name]["most_seconds"] > 0 for name in before):
                return False
        return all(is_solved(cast(ProfiledPhase, one)) for one in profiles)

    def gather(self, asks: Iterable[Ask], label: str) -> dict[Ask, Result]:
        """All results; what the store lacks is computed, and kept at once."""
        wanted = list(dict.fromkeys(asks))
        result = self._stored(wanted)
        self.found += sum("down" not in r for r in result.values())
        missing = [a for a in wanted if a not in result]
        if missing:
            if self.before_computing:
                call, self.before_computing = self.before_computing, None
                call()
            self._compute(missing, result, label)
        return {a: self._shifted(a, result[a]) for a in wanted}  # in the requested order, whichever was ready first

    def question(self, workload: str, scale: Scale, fitted: Mapping[str, Any]) -> Question:
        """The question of a workload at a scale, with the mount points of a platform's calibration."""
        place = {"ranks": scale.ranks, "nodes": scale.nodes, "ranks_per_node": scale.ranks_per_node}
        profile = self.profiles[workload]
        mounts = mounts_of((fitted.get("campaign") or {}).get("environment"))
        return Question.of(profile["workload"], place, profile["phase"], mounts=mounts)

    def residuals(self, design: Design, workload: str) -> Residuals | None:
        """What the design's platform misses of this workload; None where nothing measured speaks of it."""
        platform = self.variants.platform_of(design)
        key = (platform.reference, workload)
        if key not in self._residuals:
            question = self.question(workload, self.study.largest, platform.fitted)
            known = bool(platform.fitted) and speaks_of(platform.fitted, question)
            self._residuals[key] = Residuals.of_fitted(platform.fitted, question) if known else None
        return self._residuals[key]

    def _shifted(self, ask: Ask, result: Result) -> Result:
        """As a forecast of the same question is."""
        design, scale = self.designs.at(ask.design), self.scale(ask)
        residuals = self.residuals(design, ask.point.workload)
        if residuals is None:
            return result
        fitted = self.variants.platform_of(design).fitted
        found = carried.shifted(result, residuals, self.question(ask.point.workload, scale, fitted))
        changes = self.changes(design, ask.point.workload, scale)
        return over_links.limited(self, ask, carried.changed(found, changes) if changes else found)

    def rules(self, design: Design, workload: str, scale: Scale) -> Rules | None:
        """What is known of the measured system at this scale beside the design's platform; None where the platform was
        not fitted to the workload, or nothing is known."""
        given = self.profiles[workload]["given"]
        if self.residuals(design, workload) is None or float(given.get("rate", 0)) > 0:
            return None  # rules know closed systems
        fitted = self.variants.platform_of(design).fitted
        return Rules.of(fitted, self.question(workload, scale, fitted))

    def changes(self, design: Design, workload: str, scale: Scale) -> dict[str, float]:
        """By fitted quantity the factor that simple rules and the ceiling have for the measured system at this scale,
        by which a forecast changes an edited one too; empty where there is none."""
        platform = self.variants.platform_of(design)
        key = (platform.reference, workload, scale.nodes, scale.ranks_per_node)
        if key not in self._changes:
            rules = self.rules(design, workload, scale)
            measured = {} if rules is None else self._measured_system(platform, workload, scale)
            applied = rules.apply(measured, 0.5)[0] if rules is not None and measured else {}
            self._changes[key] = changes_of(applied)
        return self._changes[key]

    def _measured_system(self, platform: Platform, workload: str, scale: Scale) -> Quantities:
        """What a forecast of the platform without an edit says before rules: values without intervals. Empty where work
        of others piles up in it, or it can't serve the workload without an edit; `not_simulated` says so then."""
        residuals = self._residuals[platform.reference, workload]
        assert residuals is not None
        structures = platform.fitted.get("draw_structures") or []
        tied = platform.undecided or bool(tied_choices(structures))  # then draws may have the value
        systems = [(seed, platform.best) for seed in range(SEEDS)] + (list(enumerate(platform.draws)) if tied else [])
        try:
            results = self._every(
                [
                    self._simulation(workload, scale, content_hash([key, []]), self.seed + seed)
                    | {"platform": document}
                    for seed, (document, key) in systems
                ]
            )
        except (InputError, RunError) as error:
            if isinstance(error, RunError) and error.code != OVERLOADED:
                raise
            self.not_simulated.append(
                MeasuredNotSimulated(short(platform.reference), workload, scale.ranks, without_place(str(error)))
            )
            return {}
        question = self.question(workload, scale, platform.fitted)
        best, *draws = [
            carried.shifted(one, residuals, question) for one in (pooled(results[:SEEDS]), *results[SEEDS:])
        ]
        names = [name for name in best["quantities"] if carried.fitted_name(name) == name]
        values = middle_of(
            platform.fitted,
            platform.undecided,
            {name: best["quantities"][name] for name in names},
            {name: [one["quantities"][name] for one in draws] for name in names},
            structures,
        )
        return {name: {"value": value, "low": None, "high": None} for name, value in values.items()}

    def is_as_measured(self, design: Design, point: Point) -> bool:
        """Whether the design's platform was fitted to this workload, and is not edited here."""
        platform = self.variants.platform_of(design)
        return (
            self.residuals(design, point.workload) is not None
            and not platform.edited
            and not self.variants.edits(design, point.scenario, 0)
        )

    def known(self, asks: Iterable[Ask]) -> dict[Ask, Result]:
        """What need not be computed: what the store has, and systems that are down."""
        return {ask: self._shifted(ask, one) for ask, one in self._stored(asks).items()}

    def _stored(self, asks: Iterable[Ask]) -> dict[Ask, Result]:
        """The same as computed, without what the platform misses."""
        wanted = list(asks)
        result: dict[Ask, Result] = {a: DOWN for a in wanted if self._is_down(a)}
        result |= {a: {"unsolved": why} for a in wanted if a not in result and (why := self._unsolved(a))}
        keys = {a: self._key(a) for a in wanted if a not in result}
        stored = self.store.get(keys.values())
        return result | {a: stored[key] for a, key in keys.items() if key in stored}

    def _key(self, ask: Ask) -> str:
        if ask not in self._keys:
            self._keys[ask] = key_of(self._request(ask))
        return self._keys[ask]

    def _compute(self, missing: list[Ask], result: dict[Ask, Result], label: str) -> None:
        requests = {a: self._request(a) for a in missing}
        tasks: dict[object, list[Ask]] = {}
        for ask in missing:
            # Analytic answers of one platform share its resolution; a simulation is long enough to be a task of its
            # own.
            key = (ask.what, requests[ask]["platform_key"]) if ask.what == "analytic" else ask
            tasks.setdefault(key, []).append(ask)
        # The longest first, so that nobody waits for one at the end.
        ordered = sorted(
            tasks.values(),
            key=lambda group: (-max(self.scale(a).ranks for a in group), group[0].design, group[0].replication),
        )
        documents = [
            [
                requests[a]
                | {
                    "about": self.variants.platform_of(self.designs.at(a.design)).reference,
                    "platform": self.variants.document(
                        self.designs.at(a.design), a.point.scenario, a.replication, _dict(a.factors)
                    ),
                }
                for a in group
            ]
            for group in ordered
        ]
        done, total = 0, len(missing)
        self.report(label, done, total)
        try:
            for number_, results in self.workers.map(evaluate_all, documents):
                for ask, one in zip(ordered[number_], results, strict=True):
                    self.store.put(self._key(ask), one)
                    result[ask] = one
                done += len(results)
                self.report(label, done, total)
        except InputError as error:
            text = f"a design of this study makes no platform that can be simulated: {without_place(str(error))}"
            raise refused(self.study.file, text, "axes") from error

    def _request(self, ask: Ask) -> Request:
        design, scale = self.designs.at(ask.design), self.scale(ask)
        key = self.variants.key(design, ask.point.scenario, ask.replication, _dict(ask.factors))
        if ask.what == "simulate":
            seed = self.seed + ask.again + self.variants.seed_of(design, ask.replication)
            return self._simulation(ask.point.workload, scale, key, seed)
        profile = self.profile_at(ask.point.workload, scale)
        given: dict[str, str] = profile["given"]
        question: Request = {
            "mix": profile["operations"], "place": profile["place"], "bytes": profile["bytes"],
            "blocks": profile["blocks"], "datasets": profile["datasets"], "objects": profile["objects"],
            "points": SCREENING_POINTS, "waiting_factor": float(given.get("waiting_factor", 0)),
            "think_time": float(given.get("think_time", 0)),
        }  # fmt: skip
        return {**self._question(ask.what, ask.point.workload, scale, key), **question}

    def _question(self, what: What, workload: str, scale: Scale, key: str) -> Request:
        profile = self.profiles[workload]
        return {
            "what": what, "platform_key": key, "nodes": scale.nodes, "ranks_per_node": scale.ranks_per_node,
            "phase": profile["phase"],
        }  # fmt: skip

    def _simulation(self, workload: str, scale: Scale, key: str, seed: int) -> Request:
        reference, settings = self._as_measured(self.study.workloads[workload])[0], self.settings(workload, scale)
        own: Request = {"workload": reference, "settings": settings, "seed": seed}
        return {**self._question("simulate", workload, scale, key), **own}

    def measured(self, system: str, workload: str, scale: Scale) -> Result:
        """One simulation of a measured system of the catalogue. @raises InputError, RunError where it has no answer"""
        document, key = Platform(system, Fitted.open(system), []).best
        ask = self._simulation(workload, scale, key, self.seed)
        return self._one(ask | {"platform": document})

    def settings(self, workload: str, scale: Scale) -> dict[str, str]:
        """The workload's settings, with a shorter run where it would simulate more operations than the study allows."""
        profile = self.profiles[workload]
        settings, share = dict(profile["settings"]), self.share(workload, scale)
        if share < 1:
            length = _length(profile)
            settings[length] = str(max(1, math.floor(float(profile["given"][length]) * share)))
        return settings

    def share(self, workload: str, scale: Scale) -> float:
        """Of its operations that a simulation does."""
        profile = self.profile_at(workload, scale)
        operations = sum(profile["operations"].values())
        length = _length(profile)
        if operations <= self.study.most_operations or not length:
            return 1.0
        full = float(profile["given"][length])
        return float(max(1, math.floor(full * self.study.most_operations / operations)) / full)

    def _unsolved(self, ask: Ask) -> str:
        """Why the analytic solver has no model of this workload at this scale; "" where it has, or for a
        simulation."""
        if ask.what != "analytic":
            return ""
        try:
            profile = self.profile_at(ask.point.workload, self.scale(ask))
        except InputError as error:
            return str(error)  # a placement between the study's scales, that the workload can't have
        return "" if is_solved(cast(ProfiledPhase, profile)) else f"Ranks {UNSOLVED}."

    def _is_down(self, ask: Ask) -> bool:
        if ask.point.scenario == NORMAL:
            return False
        key = (ask.design, ask.point.scenario)
        if key not in self._down:
            self._down[key] = self.variants.is_down(self.designs.at(ask.design), ask.point.scenario)
        return self._down[key]

    def routes(self, design: Design) -> Any:
        """The ways of the operations through the design's platform, as the simulator understands them."""
        document, key = self.variants.document(design, NORMAL, 0), self.variants.key(design, NORMAL, 0)
        return self._one({"what": "resolve", "platform": document, "platform_key": key})["operations"]

    def _every(self, requests: list[Request]) -> list[Result]:
        """Results in the order of the requests; what the store lacks is computed by the workers, and kept."""
        keys = [key_of(request) for request in requests]
        found = self.store.get(keys)
        missing = [(key, request) for key, request in zip(keys, requests, strict=True) if key not in found]
        for number_, (result,) in self.workers.map(evaluate_all, [[request] for _, request in missing]):
            key = missing[number_][0]
            self.store.put(key, result)
            found[key] = result
        return [found[key] for key in keys]

    def _one(self, request: Request) -> Result:
        """A short evaluation that is not worth a worker."""
        key = key_of(request)
        found = self.store.get([key])
        if key not in found:
            found[key] = evaluate(request)
            self.store.put(key, found[key])
        result: Result = found[key]
        return result


def _length(profile: Result) -> str:
    """The parameter to which the number of operations is in proportion; "" when there is none."""
    return next((name for name in LENGTHS if float(profile["given"].get(name) or 0) > 0), "")


def _dict(factors: tuple[tuple[str, float], ...] | None) -> dict[str, float] | None:
    return None if factors is None else dict(factors)
