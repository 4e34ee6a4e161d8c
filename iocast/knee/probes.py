# SPDX-License-Identifier: Apache-2.0
"""The runs of a knee search: a campaign directory whose runs are planned one after the other, on one data set if the
workload allows it."""

from __future__ import annotations

import contextlib
import json
import math
import os
import secrets
import subprocess
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, replace
from glob import escape
from pathlib import Path
from typing import Any, cast

from iocast.ground import binaries, claim
from iocast.runs.arrivals import number
from iocast.watching.busy import report_activity
from iocast.campaign.bench import ALONE, Backend, SharedUse, call_bench, check_backend, failure
from iocast.campaign.launchers import Ended, Ending, bench_command, bench_environment, launcher
from iocast.campaign.places import (
    BY_CAMPAIGN,
    MAY_BE_LEFT,
    Owned,
    SCRATCH,
    end_earlier,
    left_in,
    make_place,
    mark_of_places,
    own_place,
    remove_if_empty,
)
from iocast.campaign.plan import PlannedRun, settings_arguments
from iocast.errors import InputError, NothingThere, RunError
from iocast.ground.files import SCHEMA_VERSION, read_campaign, read_json, write_json
from iocast.knee.extent import FAST, Extent
from iocast.knee.guard import BudgetSpent, Guard, TooLong
from iocast.knee.request import KneeSearch
from iocast.runs.operations import phase_operations
from iocast.runs.phases import phase_sentences
from iocast.ground.progress import stderr
from iocast.wording.text import quantity
from iocast.records.extent import BenchmarkDryRun
from iocast.records.campaign import CampaignDocument, PointDocument

SIZES = {
    "md-workbench": ("iterations", "objects"),
    "operation-mix": ("operations", None),
    "postmark": ("transactions", None),
}
"""By pattern the parameter that says how much a benchmark phase does, and the one that bounds it."""
MAX_REPEATS = 10
"""Of the phase in one run, where the data set is too small for its length: between two of them ranks meet, and what had
piled up is gone."""
PILOT = 50
"""Operations of a rank in the run that only says how long operations take."""
DATA_SET_SHARE = 0.25
"""Share of the budget that making the data set may take on such a system."""
ROOM = 5.0
"""Times by which a proposed run is smaller than the largest that is allowed: at low loads it takes longer."""
FEW_RUNS = 20
"""Runs in the budget that a search should have at the lowest load, where the search can't set their length."""
GUARD = (4.0, 20.0)
"""Multiple of the planned length, and seconds in addition, after which a run is ended: its load is too much."""


class Probes:
    """Makes runs and knows those that were made. The directory `out` is a campaign: campaign.json and runs/<name>/. Use
    as a context manager: until its end this process owns that directory, and DIR/iocast-campaign."""

    def __init__(
        self, request: KneeSearch, question: dict[str, Any], ending: Ending, *, use: SharedUse = ALONE
    ) -> None:
        request.check()
        self.search, self.ending, self.use = request, ending, use
        self.backend = Backend(request.backend, request.backend_options)
        self.backend.check_place(request.directory)
        if request.directory is not None and not request.directory.is_dir():
            raise InputError(
                f"'{request.directory}' is not a directory; name the directory whose storage is to be measured."
            )
        launcher(request.nodes, request.ranks_per_node // request.threads_per_rank)
        self._inspect()
        check_backend(self.backend, request.workload, request.settings | self._smallest(), use.limits)
        self.max_rate = self._checked_max_rate(question)
        if (
            request.out.exists()
            and not (request.out / "campaign.json").is_file()
            and not all(claim.NAME in p.name for p in request.out.iterdir())
        ):
            raise InputError(
                f"The output directory '{request.out}' exists already and holds no campaign; name a new one, nothing "
                "is overwritten."
            )
        self.scratch = None if request.directory is None else request.directory.resolve() / SCRATCH
        self._owned = Owned(request.out, self.scratch, use.take_over)
        try:
            self._open(request.identity | question | ({"max_rate": use.max_rate} if use.max_rate else {}))
        except BaseException:
            self._owned.release()
            raise
        self._looked = False  # whether the machine was busy before the first run of this process
        self.fresh = False  # whether the data set that lies there was made by this process
        self.seconds = sum(self._length_of(run) for run in self.runs)
        self.slowest = 0.0  # wall clock seconds of one run, of those made by this process

    def __enter__(self) -> Probes:
        return self

    def __exit__(self, *_: object) -> None:
        self._owned.release()

    def _open(self, identity: dict[str, Any]) -> None:
        """Reads what there is of the search, and ends what an earlier process of it left running."""
        requested = self.search
        if not (self._owned.out.at / "campaign.json").is_file():
            self.json: CampaignDocument = {
                "schema_version": SCHEMA_VERSION,
                "kind": "campaign",
                "id": secrets.token_hex(8),
                "places": BY_CAMPAIGN,
                "out": str(requested.out.resolve()),
                "workload": requested.workload,
                "root": str(requested.directory or ""),
            }
            self.json |= {
                "plan": "",
                "plan_sha256": "",
                "overrides": {},
                "seed": requested.seed,
                "search": identity,
                "data_set": False,
                "attempt": 0,
            }
            self.runs: list[PlannedRun] = []
            return
        with self._owned.out.named():
            self.json = read_campaign(self._owned.out.at, planned=True)
        if self.json.get("search") != identity:
            was = self.json.get("search") or {}
            differs = [key for key in was | identity if was.get(key) != identity.get(key)]
            raise InputError(
                f"The campaign in '{requested.out}' is another search (it differs in {', '.join(differs)}); repeat its "
                "options, or choose another --out."
            )
        earlier: CampaignDocument = {"id": secrets.token_hex(8), "attempt": 0, "data_set": False}
        self.json = earlier | self.json  # of before searches had them
        self.runs = [PlannedRun(**point) for point in self.json["points"]]
        end_earlier(self.json, requested.out, self.use.take_over)

    # ---- what the workload is -----------------------------------------------------------------------------------

    def _inspect(self) -> None:
        """Operations of the phase, whether it can be run by itself on one data set, and how to size it."""
        a = self.search
        described = (
            {}
            if a.workload.endswith((".yaml", ".yml"))
            else binaries.run_json([binaries.find("iocast-bench"), "--describe", a.workload, "--json"])
        )
        pattern = (
            described.get("pattern")
            or (described.get("name") if described.get("kind") == "pattern" else None)
            or self._dry_run({})["workload"]["pattern"]
        )
        self.size, bound = SIZES.get(str(pattern), ("", None))
        if self.size in a.settings or "repeats" in a.settings:
            self.size = ""
        whole = self._dry_run(self._smallest())
        known = whole["workload"]["parameters"]
        names = list(dict.fromkeys(p["name"] for p in whole["phases"]))
        if a.phase not in names:
            raise InputError(
                f"The workload '{a.workload}' has no phase '{a.phase}'; name one with --phase. "
                f"{phase_sentences(a.phase, self._operations_of(names))}"
            )
        self.reuses, self.before, self.after = False, [], []
        here = whole
        if "phases" in known and "phases" not in a.settings and len(names) > 1:
            try:
                alone = self._dry_run({"phases": a.phase} | self._smallest())
            except InputError:
                alone = whole
            counts = alone["footprint"]["operations"]
            if not counts.get("mkdir") and not counts.get("rmdir"):
                place = names.index(a.phase)
                self.reuses, self.before, self.after, here = True, names[:place], names[place + 1 :], alone
        self.operations = [kind for kind, count in here["footprint"]["operations"].items() if count]
        if not self.reuses:
            self.size = ""
        if self.size:
            ones, twos = (
                sum(self._dry_run({"phases": a.phase, self.size: n})["footprint"]["operations"].values()) / a.ranks
                for n in (1, 2)
            )
            self.each = twos - ones
            self.bound = int(known[bound]) if bound else 0
        else:
            self.extent = self._extent(self._alone)

    @property
    def _alone(self) -> dict[str, Any]:
        """Settings of a run of the search beside its load."""
        return {"phases": self.search.phase} if self.reuses else {}

    def _extent(self, settings: dict[str, Any]) -> Extent:
        found = self._dry_run(settings)
        footprint, phases = found["footprint"], found["phases"]
        return Extent(
            sum(footprint["operations"].values()) / self.search.ranks,
            (footprint["bytes_written"] + footprint["bytes_read"]) / self.search.ranks,
            footprint["peak_objects"],
            max((p["most_seconds"] for p in phases if p["name"] == self.search.phase), default=0.0),
            len(phases),
        )

    def check_extent(self, budget: float) -> None:
        """@raises InputError for runs whose length is the workload's own and far above the planned one, and for a data
        set that takes the time of the search"""
        a = self.search
        if not self.size:
            seconds = min(a.length, budget)
            self._check_extent(
                f"A search can't set the length of phase '{a.phase}' of '{a.workload}' here. Each run, the pilot too,",
                self._alone,
                seconds,
                "--length" if a.length < budget else "--budget",
            )
        if self.before:
            self._check_extent(
                f"The data set of '{a.workload}'",
                {"phases": ",".join(self.before)} | self.sized(PILOT),
                DATA_SET_SHARE * budget,
                "a quarter of --budget",
            )

    def _check_extent(self, what: str, settings: dict[str, Any], seconds: float, allowed: str) -> None:
        extent, ranks = self._extent(settings), self.search.ranks
        if extent.fits(seconds):
            return
        smaller = self._smaller(settings, seconds / ROOM / extent.fast, seconds)
        raise InputError(
            f"{what} makes {extent.operations * ranks:,.0f} operations, with up to {extent.files:,} files at a time. "
            f"That takes {quantity('', extent.fast)} even at {FAST:,.0f} operations or 1 GB a second and rank; "
            f"{allowed} allows {seconds:g} s. Make it smaller {smaller}."
        )

    def smaller_run(self, share: float) -> str:
        """How a run whose length the search doesn't set comes down to about this share, after "make it smaller"."""
        return self._smaller(self._alone, share, self.search.length)

    def _smaller(self, settings: dict[str, Any], share: float, seconds: float) -> str:
        """Which parameters do that, each by itself. A time limit of a phase is `seconds`."""
        own = self._dry_run(settings)["workload"]["parameters"]
        before, found = self._extent(settings), []
        for name, value in own.items():
            if isinstance(value, bool) or not isinstance(value, int) or value < 2 or name in ("seed", *settings):
                continue
            wanted = value * share
            if wanted < 1:
                continue
            in_twos = value & (value - 1) == 0  # a size in bytes, which others must divide
            less = 2 ** int(math.log2(wanted)) if in_twos else int(float(f"{wanted:.1g}"))
            for text in (str(less), f"{less}B"):
                with contextlib.suppress(InputError):
                    if self._extent(settings | {name: text}).fast <= ROOM * share * before.fast:
                        found.append(f"--set {name}={text}")
                        break
        bounded = {"most_seconds": f"{seconds:g}s"}
        if "most_seconds" in own and self._extent(settings | bounded).most_seconds > 0:
            found.append(f"--set most_seconds={seconds:g}s")
        return (
            f"with {' or '.join(found[:3])}"
            if found
            else f"with its parameters (iocast describe {self.search.workload})"
        )

    def _operations_of(self, names: Sequence[str]) -> Mapping[str, Collection[str]]:
        """By phase its operations; none where the simulator, which counts them, is not built."""
        a = self.search
        if not binaries.is_built("iocast-sim"):
            return {name: () for name in names}
        return phase_operations(a.workload, a.settings | self._smallest(), a.nodes, a.ranks_per_node)

    def _smallest(self) -> dict[str, Any]:
        """Settings of the smallest run, where the search sizes its runs."""
        return {self.size: 1} if self.size else {}

    def _checked_max_rate(self, question: dict[str, Any]) -> float:
        """Highest rate of all ranks that is tried, in operations a second; inf without --max-rate.

        The benchmark's own limit holds back set-up and pilot only. In a run of the search it would delay operations
        beyond their intended starts, and the limit's delays would pass for the storage's.

        @raises InputError where the limit would set what is searched"""
        if not self.use.max_rate:
            return math.inf
        if self.search.over != "rate" or not question.get("levels") or not self.reuses:
            raise InputError(
                f"--max-rate {self.use.max_rate} would hold back the runs of this search, and their figures would be "
                "the limit's. It goes with --over rate, with an --slo, and with a phase that runs on a data set made "
                "before it. Use fewer ranks (--ppn) in its place."
            )
        limited = replace(ALONE, max_rate=self.use.max_rate).limits
        return float(self._dry_run(self._smallest(), limited)["brake"]["max_rate"])

    def _dry_run(self, settings: dict[str, Any], limits: Sequence[str] = ()) -> BenchmarkDryRun:
        a = self.search
        command = [
            *bench_command(a.nodes, a.ranks_per_node, a.threads_per_rank),
            "--workload",
            a.workload,
            "--dry-run",
            "--json",
            *settings_arguments(a.settings | settings),
            *limits,
        ]
        done = subprocess.run(command, capture_output=True, text=True, env=bench_environment(), check=False)
        if done.returncode:
            raise (InputError if done.returncode == 2 else RunError)(failure(command, done.returncode, done.stderr))
        found: BenchmarkDryRun = json.loads(done.stdout)
        return found

    def sized(self, operations: float) -> dict[str, Any]:
        """Settings with which each rank does about this many operations in the phase; none where the workload has no
        such setting."""
        if not self.size:
            return {}
        units = max(1, round(operations / self.each))
        repeats = min(MAX_REPEATS, math.ceil(units / self.bound)) if self.bound else 1
        return {self.size: min(math.ceil(units / repeats), self.bound or units)} | (
            {"repeats": repeats} if repeats > 1 else {}
        )

    # ---- runs ---------------------------------------------------------------------------------------------------

    def made(self, *steps: str) -> list[PlannedRun]:
        """Runs of these steps that say something: complete ones, and ("failed") those that were ended because they took
        far too long."""
        return [
            run for run in self.runs if run.step.partition(" ")[0] in steps and run.status in ("complete", "failed")
        ]

    def path(self, run: PlannedRun) -> Path:
        return self.search.out / "runs" / run.name

    def make(
        self,
        step: str,
        settings: dict[str, Any],
        *,
        role: str = "fit",
        seconds: float | None = None,
        within: float | None = None,
    ) -> PlannedRun:
        """One more run; `seconds`: its planned length, with which it is ended when it takes far longer. `within`: time
        for the data set, and for a run without a planned length, after which the search is ended.

        @raises RunError when that time is over"""
        run = next((r for r in self.runs if r.status == "planned" and r.step == step and r.settings == settings), None)
        if run is None:
            self.runs = [r for r in self.runs if r.status != "planned"]
            word = step.replace(" ", "-")
            load = "".join(
                f"-{letter}{number(settings, name):.4g}"
                for name, letter in (("rate", "r"), ("waiting_factor", "t"))
                if name in settings
            )
            run = PlannedRun(
                f"{len(self.runs) + 1:03d}-{word}{load}",
                self.search.nodes,
                self.search.ranks_per_node,
                settings,
                role,
                threads_per_rank=self.search.threads_per_rank,
                step=step,
            )
            self.runs.append(run)
        self._save()
        if not self._looked:
            self._looked = True
            self.json.setdefault("machine", []).append(
                report_activity(self.scratch and self.scratch.parent, run.ranks_per_node, run.nodes)
            )
        begun = time.monotonic()
        try:
            if self.reuses:
                self._make_data_set(within)
            self._bench(run, run.settings | ({"phases": self.search.phase} if self.reuses else {}), seconds, within)
            run.status = "complete"
        except TooLong:
            run.status = "failed"
        except BudgetSpent as error:
            self._sweep()
            self._save()
            raise RunError(f"{error} What it made was removed.") from error
        except Ended as error:
            self._save()
            raise Ended(f"Ended because {error}; what was measured is kept. The same command goes on.") from error
        self.seconds += time.monotonic() - begun
        if "filesystem" not in self.json and run.status == "complete":
            self.json["filesystem"] = (
                read_json(self.path(run) / "run.json", "run").get("environment", {}).get("filesystem", {})
            )
        self._save()
        return run

    def _bench(
        self, run: PlannedRun, settings: dict[str, Any], seconds: float | None, within: float | None = None
    ) -> None:
        """The run's results take its name when it has ended, well or by its guard: what an earlier process left running
        writes elsewhere."""
        runs = self._owned.make("runs")
        final = runs / run.name
        for old in [
            final,
            *sorted(runs.glob(f"{escape(run.name)}.attempt-*")),
        ]:  # from a killed search: kept, but out of the way
            if old.exists():
                old.rename(
                    final.with_name(
                        f"{run.name}.interrupted-{len(list(runs.glob(f'{escape(run.name)}.interrupted-*'))) + 1}"
                    )
                )
        if not self.reuses:
            self._sweep()
            self._new_place()
        out = final.with_name(f"{run.name}.attempt-{secrets.token_hex(4)}")
        shown = self.path(run).with_name(out.name)
        begun = time.monotonic()
        guard = Guard(self.ending, within if seconds is None else GUARD[0] * seconds + GUARD[1])
        try:
            with guard:
                self._call(
                    [*settings_arguments(self.search.settings | settings), "--out", str(shown), "--label", run.name],
                    limits=self._limits_of(run),
                    seed=self.search.seed + 1 + int(run.name.partition("-")[0]),
                )
        except RunError as error:
            if guard.struck and not isinstance(error, Ended):
                self.fresh = False
                if seconds is None:
                    raise BudgetSpent(
                        f"The run '{run.name}' was ended when the budget was spent. Give a larger --budget"
                        + ("." if self.size else f", or make the run smaller {self.smaller_run(1 / FEW_RUNS)}.")
                    ) from error
                if out.exists():
                    out.rename(final)
                raise TooLong from error
            raise
        self.slowest = max(self.slowest, time.monotonic() - begun)
        if not self.reuses:
            self.json["data_set"] = False
            remove_if_empty(self._place())
        with self._owned.out.named():
            found = read_json(out / "run.json", "run")["placement"]["ranks"]
        if found != self.search.ranks:
            raise RunError(
                f"The launcher started {found} ranks in place of {self.search.ranks}; its MPI support does not fit the "
                "benchmark's MPI library."
            )
        self._owned.require_held()
        out.rename(final)

    def _limits_of(self, run: PlannedRun) -> list[str]:
        """Arguments of a run that measures. One whose rate the search has set is not held back by --max-rate."""
        use = replace(self.use, max_rate="") if "rate" in run.settings else self.use
        return use.limits

    def _call(self, arguments: list[str], *, limits: Sequence[str] = (), seed: int | None = None) -> None:
        a = self.search
        place = self._place()
        make_place(place)
        command = [
            *bench_command(a.nodes, a.ranks_per_node, a.threads_per_rank),
            "--workload",
            a.workload,
            *self.backend.arguments(place),
            *arguments,
            *limits,
            *self.use.claims,
        ]
        call_bench([*command, "--seed", str(a.seed if seed is None else seed)], self.ending, self.json["id"])

    def _place(self) -> Path | None:
        """The data set's own directory, another one for each data set."""
        name = f"knee-{self.json['attempt']}" if self.json["attempt"] else "knee"
        return own_place(self.scratch, name, mark_of_places(self.json))

    def _new_place(self) -> None:
        """Notes that a data set is about to lie there."""
        self.json["attempt"] += 1
        while (place := self._place()) is not None and os.path.lexists(place):
            self.json["attempt"] += 1
        self.json["data_set"] = True
        self._save()

    def _make_data_set(self, within: float | None = None) -> None:
        """Once for all runs of this process; what an earlier one left was left in the middle of something."""
        if self.fresh:
            return
        self._sweep()
        self._new_place()
        made = settings_arguments(self.search.settings | {"phases": ",".join(self.before)} | self.sized(PILOT))
        guard = Guard(self.ending, within)
        try:
            with guard:
                self._call(made, limits=self.use.limits)
        except RunError as error:
            if not guard.struck or isinstance(error, Ended):
                raise
            raise BudgetSpent(
                "The data set was not yet made when the budget was spent. Give a larger --budget, or fewer files."
            ) from error
        self.fresh = True

    def _sweep(self) -> InputError | None:
        """Removes the data set of an earlier process. An empty place is clean.

        @return why nothing was removed; None otherwise"""
        if not self.json["data_set"]:
            return None
        refused = None
        place = self._place()
        if not remove_if_empty(place):
            try:
                self._call(
                    [*settings_arguments(self.search.settings | self.sized(PILOT)), "--sweep"], limits=self.use.pace
                )
            except InputError as error:
                refused = error
                if place is not None:
                    stderr.print(
                        f"What an earlier process left in '{place}' stays there, look at it and remove it: {error}",
                        markup=False,
                        soft_wrap=True,
                    )
                # a service where nothing was left
            remove_if_empty(place)
        self.json["data_set"] = False
        return refused

    def sweep(self) -> None:
        """Removes what an ended search left, and measures nothing.

        @raises InputError, RunError when something stays, or may stay"""
        if not self.runs and not self.json["data_set"]:
            raise InputError(f"There is no search in '{self.search.out}' that could have left anything; see --out.")
        try:
            refused = self._sweep()
        except Ended as error:
            raise Ended(f"Ended because {error}, while it removed what was left.") from error
        if refused and self.scratch is None and not isinstance(refused, NothingThere):
            raise InputError(f"What the search left on the service may still be there: {refused}")
        if refused and self.scratch is not None:
            self.json["data_set"] = True  # so that --sweep says the same again until it is gone
        self._save()

    def left_over(self) -> str:
        """What an ended search left on the storage, as a sentence; "" for nothing."""
        if not self.backend.keeps_data:
            return ""
        if self.scratch is None:
            return MAY_BE_LEFT if self.json["data_set"] else ""
        return left_in(self.scratch, mark_of_places(self.json))

    def leave(self) -> None:
        """Removes the data set."""
        if self.fresh and self.reuses:
            last = settings_arguments(self.search.settings | {"phases": ",".join(self.after)} | self.sized(PILOT))
            self._call(last, limits=self.use.pace)
            self.json["data_set"] = False
            self.fresh = False
            remove_if_empty(self._place())
        self._save()

    def write(self, name: str, content: Mapping[str, Any]) -> None:
        """A file of the campaign's directory."""
        self._owned.require_held()
        with self._owned.out.named():
            write_json(self._owned.out.at / name, content)

    def _length_of(self, run: PlannedRun) -> float:
        """Seconds that an earlier process spent on it: what its phases took."""
        try:
            phases = read_json(self.path(run) / "run.json", "run")["phases"]
        except InputError:
            return 0.0
        return float(max((p["start_seconds"] + p["seconds"] for p in phases), default=0.0))

    def _save(self) -> None:
        self.json["points"] = cast(list[PointDocument], [asdict(run) for run in self.runs])
        self._owned.require_held()
        with self._owned.out.named():
            write_json(self._owned.out.at / "campaign.json", self.json, secret=bool(self.backend.options))
