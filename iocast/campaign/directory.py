# SPDX-License-Identifier: Apache-2.0
"""A campaign's directory: campaign.json, and its runs, made or swept (docs/answers.md, `kind: campaign`)."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import shutil
from collections.abc import Callable, Sequence
from dataclasses import asdict
from glob import escape as glob_escape
from pathlib import Path
from typing import cast

from iocast.watching.busy import report_activity
from iocast.campaign.bench import (
    ALONE,
    Backend,
    POSIX,
    SharedUse,
    can_drop_caches,
    check_backend,
    check_root,
    observed,
    require_few_objects,
    run_bench,
    sweep,
)
from iocast.campaign.launchers import Ended, Ending, launcher
from iocast.campaign.places import (
    BY_CAMPAIGN,
    MAY_BE_LEFT,
    Owned,
    SCRATCH,
    check_out,
    end_earlier,
    left_in,
    mark_of_places,
    own_place,
)
from iocast.campaign.plan import (
    MAX_ITERATIONS,
    MIN_ITERATIONS,
    PILOT_GROWTH,
    PILOT_ITERATIONS,
    Plan,
    PlannedRun,
    missing_of,
    pilot_run,
    planned_runs,
    repeats_of_benchmark,
    settings_of_a_run,
    sized_by_a_pilot,
)
from iocast.errors import InputError, NothingThere, RunError
from iocast.ground.files import SCHEMA_VERSION, read_campaign, read_json, sha256, write_json
from iocast.ground.progress import stderr
from iocast.records.campaign import CampaignDocument, PointDocument


def root_text(mounts: Sequence[Path]) -> str:
    """`root` of campaign.json: the measured directory, through each of its mount points."""
    return ",".join(map(str, mounts))


def check_same(
    campaign: CampaignDocument, plan: Plan, out: Path, mounts: Sequence[Path], backend: Backend, seed: int
) -> None:
    """@raises InputError when the campaign in `out` was begun with something else"""
    place = root_text(mounts)
    for key, now, what in (
        ("plan_sha256", sha256(plan.file), f"was made from another plan than '{plan.file}'; choose another --out"),
        (
            "overrides",
            plan.overrides,
            f"was begun with other --nodes or --set ({campaign.get('overrides', {})}); repeat them, or choose another "
            "--out",
        ),
        ("root", place, f"measures '{campaign.get('root')}', not '{place}'; choose another --out"),
        (
            "backend",
            backend.document().get("backend"),
            "was begun with another --backend or --backend-option; repeat them, or choose another --out",
        ),
        ("seed", seed, f"was begun with --seed {campaign.get('seed')}, not {seed}; repeat it, or choose another --out"),
    ):
        if campaign.get(key, {} if key == "overrides" else None) != now:
            raise InputError(f"The campaign in '{out}' {what}.")


class Campaign:
    """A campaign directory: campaign.json and runs/<name>/. Opening one again goes on with what is missing. Use as a
    context manager: until it is closed this process owns the directory, and DIR/iocast-campaign. `sweeps`: it is opened
    to be swept, at any rate."""

    def __init__(
        self,
        root: Path | None,
        plan: Plan,
        out: Path,
        seed: int,
        *,
        backend: Backend = POSIX,
        observe: bool = False,
        only_nodes: int | None = None,
        ending: Ending | None = None,
        use: SharedUse = ALONE,
        sweeps: bool = False,
        role: str | None = None,
    ) -> None:
        """role: of the points that will be measured; the others need no nodes here"""
        self.mounts = check_root(backend, root)
        for point in plan.of_role(role):
            if only_nodes in (None, point.nodes):
                launcher(point.nodes, point.ranks_per_node // point.threads_per_rank)
        check_backend(backend, plan.workload, settings_of_a_run(plan), use.limits)
        self.root = self.mounts[0] if self.mounts else None
        self.plan, self.out, self.seed, self.observe = plan, out, seed, observe
        self.scratch = self.root and self.root / SCRATCH
        check_out(out, self.scratch)
        self.only_nodes, self.ending = only_nodes, ending
        self.backend, self.use, self._sweeps = backend, use, sweeps
        self.drops_caches = plan.drop_caches and can_drop_caches()
        self._owned = Owned(out, self.scratch, use.take_over)
        self._looked = False
        try:
            self._open()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Campaign:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Lets others have the directories."""
        self._owned.release()

    def _open(self) -> None:
        """Reads what there is of the campaign, and ends what an earlier process of it left running."""
        plan, out, backend, place = self.plan, self.out, self.backend, root_text(self.mounts)
        if not (self._owned.out.at / "campaign.json").is_file():
            self.json: CampaignDocument = {
                "schema_version": SCHEMA_VERSION,
                "kind": "campaign",
                "id": secrets.token_hex(8),
                "places": BY_CAMPAIGN,
                "out": str(out.resolve()),
                "workload": plan.workload,
                "root": place,
            }
            self.json |= backend.document()
            self.json |= {
                "plan": str(plan.file),
                "plan_sha256": sha256(plan.file),
                "overrides": plan.overrides,
                "seed": self.seed,
            }
            if self.use.max_rate:
                self.json["max_rate"] = self.use.max_rate
            self.runs: list[PlannedRun] = []
            return
        with self._owned.out.named():
            self.json = read_campaign(self._owned.out.at, planned=True)
        check_same(self.json, plan, out, self.mounts, backend, self.seed)
        self.json.setdefault("id", secrets.token_hex(8))  # of before campaigns had one
        self.runs = [PlannedRun(**point) for point in self.json["points"]]
        # A sweep may be faster or slower than what was measured.
        if not self._sweeps and self.json.get("max_rate", "") != self.use.max_rate:
            if any(run.status == "complete" for run in self.runs):
                raise InputError(
                    f"The campaign in '{out}' was begun with another --max-rate, or with none; repeat it, or choose "
                    "another --out."
                )
            self.json["max_rate"] = self.use.max_rate
        end_earlier(self.json, out, self.use.take_over)

    def _save(self) -> None:
        self._owned.require_held()
        self.json["points"] = cast(list[PointDocument], [asdict(run) for run in self.runs])
        with self._owned.out.named():
            write_json(self._owned.out.at / "campaign.json", self.json, secret=bool(self.backend.options))

    def prepare(self) -> None:
        """Sizes the runs by a pilot of one rank where the plan leaves that to it, and orders them."""
        if self.runs:
            return
        points = self.plan.points
        self._look_at_the_machine(max(point.ranks_per_node for point in points), max(point.nodes for point in points))
        try:
            alone = self._sized() if sized_by_a_pilot(self.plan) else 0
        except Ended as error:
            raise Ended(f"Ended because {error}, in the pilot run; the same command begins again.") from error
        self.runs = planned_runs(self.plan, self.seed, alone)
        self._save()

    def _sized(self) -> int:
        """Iterations with which a rank alone takes the seconds that are aimed at, by a pilot run."""
        datasets = int(self.plan.settings.get("datasets", 10))
        iterations, seconds = PILOT_ITERATIONS[0], 0.0
        number = 0
        while True:
            number += 1
            run = pilot_run(self.plan, iterations)
            attempt, place = self._begin(run, f"pilot-{number}")
            out = self.out / "runs" / f"pilot.attempt-{attempt}"
            runs = self._owned.make("runs")
            for old in runs.glob("pilot*"):
                shutil.rmtree(old)
            run_bench(
                run,
                self.plan.workload,
                self.backend,
                place,
                out,
                self.seed,
                kept=runs / out.name,
                drop_caches=self.drops_caches,
                ending=self.ending,
                mark=self.json["id"],
                use=self.use,
            )
            with self._owned.out.named():
                phases = read_json(runs / out.name / "run.json", "run")["phases"]
            phase = next((p for p in phases if p["name"] == "benchmark"), None)
            if phase is None:
                raise InputError(
                    f"The workload '{self.plan.workload}' has no phase 'benchmark' that a pilot run could time; set "
                    f"its size with 'iterations' under settings in {self.plan.file}."
                )
            shutil.rmtree(runs / out.name)
            seconds = phase["seconds"]
            done = int(run.settings["iterations"])
            if seconds > 0.05 or iterations >= PILOT_ITERATIONS[1] or done < iterations:
                break
            iterations *= PILOT_GROWTH
        wanted = self.plan.seconds / repeats_of_benchmark(self.plan)
        iterations = max(MIN_ITERATIONS, min(MAX_ITERATIONS, round(done * wanted / max(float(seconds), 1e-6))))
        self.json["pilot"] = {"rate": phase["rate"], "datasets": datasets}
        return iterations

    def _place(self, key: str, attempt: int) -> Path | None:
        """A directory of its own for each attempt: what an earlier one may still do there, wherever it runs, disturbs
        nobody."""
        return own_place(self.scratch, key if attempt == 1 else f"{key}.attempt-{attempt}", mark_of_places(self.json))

    def _sweep_attempts(self, run: PlannedRun, key: str) -> InputError | None:
        """Removes what earlier attempts at a run, or at a group of steps, left. What can't be recognised is reported,
        and stays.

        @return why nothing was removed from a service; None otherwise"""
        refused = None
        before = self.json.get("attempts", {}).get(key, 0)
        seed = self.seed if run.seed is None else run.seed
        places: list[Path | None] = (
            [self._place(key, n) for n in range(1, before + 1)] if self.scratch is not None else [None] * (before > 0)
        )
        for place in places:
            if place is not None and not os.path.lexists(place):
                continue
            try:
                sweep(
                    run,
                    self.plan.workload,
                    self.backend,
                    place,
                    seed,
                    ending=self.ending,
                    mark=self.json["id"],
                    use=self.use,
                )
            except InputError as error:
                if place is None:  # a service says so when nothing is there; what else is wrong stops the run itself
                    refused = error
                elif os.path.lexists(place):
                    stderr.print(
                        f"What an earlier attempt left in '{place}' stays there, look at it and remove it: {error}",
                        markup=False,
                        soft_wrap=True,
                    )
        return refused

    def _begin(self, run: PlannedRun, key: str) -> tuple[int, Path | None]:
        """Number and place of a new attempt at a run, or at a group of steps; what earlier ones left is removed.

        @raises RunError when that fails. What can't be recognised is reported, and stays."""
        attempts = self.json.setdefault("attempts", {})
        before = attempts.get(key, 0)
        self._sweep_attempts(run, key)
        attempt = before + 1
        while (fresh := self._place(key, attempt)) is not None and os.path.lexists(fresh):
            attempt += 1
        attempts[key] = attempt
        self._save()
        return attempt, fresh

    def _set_aside(self, name: str) -> None:
        """What earlier attempts at this run wrote is kept, but out of the way."""
        runs = self._owned.out.at / "runs"
        for old in [runs / name, *sorted(runs.glob(f"{glob_escape(name)}.attempt-*"))]:
            if old.exists():
                number = 1 + len(list(runs.glob(f"{glob_escape(name)}.interrupted-*")))
                while (aside := runs / f"{name}.interrupted-{number}").exists():
                    number += 1
                old.rename(aside)

    def _attempted(self) -> dict[str, PlannedRun]:
        """Runs that were begun and may have left something, the last first, by the key of their attempts. An earlier
        attempt at a complete run may have: while nobody could see whether it was dead, its directory stayed."""
        attempts = self.json.get("attempts", {})
        of = self.missing(None) if self.scratch is None else self.runs
        begun = {key: run for run in reversed(of) if (key := run.group or run.name) in attempts}
        if self.runs and self.scratch is None:
            return begun  # pilot runs are over, and had the place that the runs have
        pilots = {}
        for key in attempts:
            if found := re.fullmatch(r"pilot-([1-9])", key):
                iterations = min(PILOT_ITERATIONS[0] * PILOT_GROWTH ** (int(found[1]) - 1), PILOT_ITERATIONS[1])
                pilots[key] = pilot_run(self.plan, iterations)
        return begun | pilots

    def sweep(self) -> None:
        """Removes what ended attempts of this campaign left, and measures nothing.

        @raises InputError, RunError when something stays, or may stay"""
        if "attempts" not in self.json and not self.runs:
            raise InputError(f"There is no campaign in '{self.out}' that could have left anything; see --out.")
        if not self.backend.keeps_data:
            return
        try:
            answers = [self._sweep_attempts(run, key) for key, run in self._attempted().items()]
        except Ended as error:
            raise Ended(f"Ended because {error}, while it removed what was left.") from error
        # Runs have one place in a service: what one of them removed there is no longer in the way of another.
        if answers and all(answers) and not any(isinstance(answer, NothingThere) for answer in answers):
            raise InputError(f"What the campaign left on the service may still be there: {answers[-1]}")

    def left_over(self) -> str:
        """What ended attempts left on the storage, as a sentence; "" for nothing."""
        if not self.backend.keeps_data:
            return ""
        if self.scratch is None:
            return MAY_BE_LEFT if self._attempted() else ""
        return left_in(self.scratch, mark_of_places(self.json))

    def missing(self, role: str | None) -> list[PlannedRun]:
        """Runs to make, in order."""
        return missing_of(self.runs, role, self.only_nodes)

    def measure(self, role: str | None, report: Callable[[PlannedRun, int, int], None]) -> None:
        """Makes the missing runs of this role (all when None). `report` is called before each with its number and their
        count."""
        todo = self.missing(role)
        if self.use.max_objects:
            require_few_objects(self.plan.workload, todo, self.use.max_objects, self.ending)
        if todo:
            self._look_at_the_machine(max(run.ranks_per_node for run in todo), max(run.nodes for run in todo))
        for run in todo:
            run.status = "planned"
        group, attempt, place = "", 0, None
        for number, run in enumerate(todo, start=1):
            report(run, number, len(todo))
            goes_on, group = bool(run.group) and run.group == group, run.group
            try:
                if not goes_on:
                    attempt, place = self._begin(run, run.group or run.name)
                self._set_aside(run.name)
                self._make(run, attempt, place, goes_on)
                run.status = "complete"
            except Ended as error:
                run.status = "planned"
                self._save()
                left = len(self.missing(role))
                raise Ended(
                    f"Ended because {error}; what was measured is kept, and {left} "
                    f"run{'s are' if left != 1 else ' is'} left. The same command goes on with them."
                ) from error
            except (InputError, RunError):
                run.status = "failed"
                self._save()
                raise
            if "filesystem" not in self.json:
                with self._owned.out.named():
                    environment = read_json(self._owned.out.at / "runs" / run.name / "run.json", "run")["environment"]
                self.json["filesystem"] = environment.get("filesystem") or environment.get("service") or {}
            self._save()

    def _look_at_the_machine(self, clients: int, nodes: int) -> None:
        """Reports whether this machine is busy, once before this process's first run, and keeps that."""
        if self._looked:
            return
        self._looked = True
        self.json.setdefault("machine", []).append(report_activity(self.root, clients, nodes))

    def _ways(self, place: Path, root: Path, mounts: int) -> list[Path]:
        """A place of the first mount point, as the others of this number lead to it."""
        return [other / place.relative_to(root) for other in self.mounts[1:mounts]]

    def _make(self, run: PlannedRun, attempt: int, place: Path | None, goes_on: bool) -> None:
        """One run. Its results take its name when they are whole, and only while this process owns the campaign."""
        final = self.out / "runs" / run.name
        out = final.with_name(f"{run.name}.attempt-{attempt}")
        seed = self.seed if run.seed is None else run.seed
        try:
            runs = self._owned.make("runs")
            with (
                observed(runs / out.name, self._owned.make("observations") / f"{run.name}.jsonl")
                if self.observe
                else contextlib.nullcontext()
            ):
                run_bench(
                    run,
                    self.json["workload"],
                    self.backend,
                    place,
                    out,
                    seed,
                    kept=runs / out.name,
                    goes_on=goes_on,
                    drop_caches=self.drops_caches,
                    ending=self.ending,
                    mark=self.json["id"],
                    use=self.use,
                    ways=[] if place is None or self.root is None else self._ways(place, self.root, run.mounts),
                )
            self._owned.require_held()
            (runs / out.name).rename(runs / final.name)
        except OSError as error:
            raise RunError(f"The results of '{run.name}' can't be kept in '{final}': {error.strerror}.") from error
