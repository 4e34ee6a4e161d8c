# SPDX-License-Identifier: Apache-2.0
"""Campaign files: which runs to make, and in which order (docs/campaigns.md)."""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from iocast.ground import binaries
from iocast.errors import InputError
from iocast.ground.files import data_directory
from iocast.ground.names import ALLOWED, as_file_name, is_file_name
from iocast.ground.strict import is_whole
from iocast.ground.strict_yaml import Section, allowed_sentence

SCALINGS = ("weak", "strong")
CAMPAIGNS = data_directory("campaigns")
MAX_RUNS = 20_000
"""Runs of a campaign; each takes seconds, and a place in campaign.json."""
MIN_ITERATIONS, MAX_ITERATIONS = 5, 100_000
"""Bounds of the iterations that a pilot run chooses."""
PILOT_ITERATIONS = (50, 3200)
"""Iterations of the first pilot run and of the last."""
PILOT_GROWTH = 4
SEEDS_OF_REPEATS = 1000
"""Seeds of one campaign's repeats: its own seed times this, and those after it."""


@dataclass
class PlannedRun:
    name: str
    nodes: int
    ranks_per_node: int
    settings: dict[str, Any]
    role: str
    status: str = "planned"
    threads_per_rank: int = 1  # clients in a process
    group: str = ""  # runs of one group are steps on one data set, one after the other
    step: str = ""
    seed: int | None = None  # of the run; None: the campaign's
    mounts: int = 1  # mount points that ranks are spread over

    @property
    def ranks(self) -> int:
        return self.nodes * self.ranks_per_node

    @property
    def text(self) -> str:
        """ "8 ranks, T = 0"."""
        return f"{self.ranks:,} rank{'s' * (self.ranks != 1)}, T = {self.settings.get('waiting_factor', 0):g}"


@dataclass(frozen=True)
class PlannedPoint:
    nodes: int
    ranks_per_node: int
    waiting_factor: float
    role: str
    settings: tuple[tuple[str, Any], ...] = ()
    threads_per_rank: int = 1
    mounts: int | None = None  # None: all that are named

    @property
    def name(self) -> str:
        """ "n100x10-t0-d1-o10000-i2000-threads5": ranks, nodes, waiting factor, its own settings by their first
        letters, ranks of a process, mount points."""
        own = "".join(f"-{as_file_name(key[:1] + str(value))}" for key, value in self.settings)
        own += f"-threads{self.threads_per_rank}" if self.threads_per_rank > 1 else ""
        own += f"-mounts{self.mounts}" if self.mounts is not None else ""
        return (
            f"n{self.nodes * self.ranks_per_node}"
            + (f"x{self.nodes}" if self.nodes > 1 else "")
            + f"-t{self.waiting_factor:g}{own}"
        )


@dataclass(frozen=True)
class Step:
    name: str
    settings: dict[str, Any]
    role: str  # fit, check, beside, or empty for the point's


@dataclass
class Plan:
    """A campaign file, read and checked."""

    file: Path
    workload: str
    settings: dict[str, Any]
    seconds: float
    benchmark_repeats: int
    repeats: int
    scaling: str = "weak"  # "strong": ranks share what a rank alone does; "weak": each does as much
    drop_caches: bool = False  # before each run, or group of steps, where the user may
    points: list[PlannedPoint] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    overrides: dict[str, Any] = field(default_factory=dict)  # what the user changed of it
    mounts: int = 1  # mount points that are named for the campaign
    parameters: frozenset[str] | None = None  # see parameters_of
    yaml: Section | None = field(default=None, repr=False, compare=False)

    def of_role(self, role: str | None) -> list[PlannedPoint]:
        """Points with runs of this role; all without one. Others need no nodes."""
        roles = {step.role for step in self.steps}
        return [
            point
            for point in self.points
            if role is None or role in roles - {""} or (point.role == role and (not self.steps or "" in roles))
        ]


def read_plan(
    name_or_file: str, *, nodes: int | None = None, settings: dict[str, str] | None = None, mounts: int = 1
) -> Plan:
    """`nodes` and `settings` take the place of the file's own, in every point; `mounts` are how many mount points there
    are for ranks to be spread over.

    @raises InputError: with file, line and the nearest match"""
    file = Path(name_or_file)
    if not name_or_file.endswith((".yaml", ".yml")):
        file = CAMPAIGNS / f"{name_or_file}.yaml"
        if not file.is_file():
            known = sorted(p.stem for p in CAMPAIGNS.glob("*.yaml"))
            allowed = allowed_sentence(name_or_file, known)[:-1]
            raise InputError(f"There is no campaign '{name_or_file}'. {allowed}; or name a YAML file.")
    yaml = Section.load(file, "campaign")
    yaml.value("description", "")
    yaml.value("source", "")
    plan = Plan(
        file,
        workload=yaml.text("workload"),
        settings={**yaml.map("settings"), **(settings or {})},
        seconds=yaml.number("seconds", 2, low=0.01, high=86400),
        benchmark_repeats=int(yaml.number("benchmark_repeats", 3, low=1, high=1000)),
        repeats=int(yaml.number("repeats", 2, low=1, high=1000)),
        scaling=yaml.choice("scaling", SCALINGS, "weak"),
        drop_caches=yaml.flag("drop_caches", False),
        overrides={k: v for k, v in (("nodes", nodes), ("settings", settings)) if v},
        mounts=mounts,
        yaml=yaml,
    )
    _refuse_place(yaml, "settings", plan.settings, set(settings or {}))
    for point in yaml.sections("points"):
        _read_points(plan, point, nodes, settings or {})
    if "steps" in yaml:
        for step in yaml.sections("steps"):
            role = step.choice("role", ("fit", "check", "beside"), "") if "role" in step else ""
            name = step.text("name")
            if not is_file_name(name):
                step.fail("name", f"the step {name[:80]!r} names a directory, which has {ALLOWED}")
            plan.steps.append(Step(name, step.map("settings"), role))
            step.finish()
    yaml.finish()
    if not plan.points:
        yaml.fail("points", "a campaign needs at least one point")
    if (planned := len(plan.points) * plan.repeats * max(1, len(plan.steps))) > MAX_RUNS:
        yaml.fail("steps", f"with these steps there are {planned:,} runs; a campaign has at most {MAX_RUNS:,}")
    if len({step.name for step in plan.steps}) < len(plan.steps):
        yaml.fail("steps", "two steps have the same name")
    return plan


def _refuse_place(section: Section, key: str, settings: Mapping[str, Any], overrides: Collection[str]) -> None:
    """Refuses settings that a campaign has keys of its own for, which would count in their place."""
    if "waiting_factor" in settings:
        sentence = "'waiting_factor' is a key of points, not one of their settings"
        if "waiting_factor" in overrides:
            raise InputError(f"--set can't change the waiting factor: {sentence}. Change it in {section.file}.")
        section.fail(key, sentence)


def _refuse_without_effect(plan: Plan) -> None:
    """Refuses keys of the file that change nothing, since it or its workload decides in another way. What the user sets
    in place of the file's own may do so.

    @raises InputError, RunError with the benchmark's own sentence"""
    if plan.yaml is None:
        return
    own = {name: value for name, value in plan.settings.items() if name not in plan.overrides.get("settings", {})}
    without = ""
    if not has_sizes(plan):
        without = f"the workload '{plan.workload}' has sizes of its own, which no pilot run decides"
    elif all("iterations" in {**own, **dict(point.settings)} for point in plan.points):
        without = "'iterations' under settings decides the size of each run"
    for key in ("seconds", "scaling"):
        if without and key in plan.yaml:
            plan.yaml.fail(key, f"'{key}' has no effect, since {without}; leave it out")
    if "benchmark_repeats" in plan.yaml and "repeats" not in parameters_of(plan):
        plan.yaml.fail(
            "benchmark_repeats",
            f"'benchmark_repeats' has no effect, since the workload '{plan.workload}' has no 'repeats'; leave it out",
        )
    if "benchmark_repeats" in plan.yaml and "repeats" in own:
        plan.yaml.fail("benchmark_repeats", "'benchmark_repeats' and 'repeats' under settings are one number")


def _read_points(plan: Plan, point: Section, nodes: int | None, settings: dict[str, str]) -> None:
    """The product of all lists of one entry of `points`."""
    counts = [nodes] if nodes is not None else point.numbers("nodes", 1, low=1, high=1e6)
    point.value("nodes", 1)
    role = point.choice("role", ("fit", "check"), "fit")
    factors = point.numbers("waiting_factor", 0, low=0, high=1e6)
    own = point.value("settings", {})
    variants = own if isinstance(own, list) else [own]
    if not all(
        isinstance(variant, dict)
        and all(isinstance(name, str) and not isinstance(value, list | dict | set) for name, value in variant.items())
        for variant in variants
    ):
        point.fail("settings", "'settings' must be a map of parameters and their values, or a list of such maps")
    for variant in variants:
        _refuse_place(point, "settings", variant, set(settings))
    threads = int(point.number("threads_per_rank", 1, low=1, high=4096))
    of_mounts: list[int | None] = [None]
    if "mounts" in point:
        of_mounts = [int(one) for one in point.numbers("mounts", low=1, high=1024)]
        if (most := max(one for one in of_mounts if one)) > plan.mounts:
            point.fail(
                "mounts",
                f"{most} mount points are wanted, and {plan.mounts} named; name them, separated by commas: "
                "iocast measure /mnt/a/me,/mnt/b/me",
            )
    if ("ranks" in point) == ("ranks_per_node" in point):
        point.fail(None, "exactly one of 'ranks' and 'ranks_per_node' is needed")
    key = "ranks" if "ranks" in point else "ranks_per_node"
    of_ranks = point.numbers(key, low=1, high=1e9 if key == "ranks" else 1e6)
    combinations = len(counts) * len(of_ranks) * len(variants) * len(factors) * len(of_mounts)
    if (runs := (len(plan.points) + combinations) * plan.repeats) > MAX_RUNS:
        point.fail(None, f"with this entry there are {runs:,} runs; a campaign has at most {MAX_RUNS:,}")
    for count in counts:
        for ranks in of_ranks if key == "ranks" else [n * count for n in of_ranks]:
            if ranks % count:
                way_out = (
                    ", which --nodes puts in place of the campaign's own. Leave --nodes out; with --role fit the nodes "
                    "of points for checks are not needed. A campaign for other nodes is made by: "
                    f"iocast plan --nodes {count:g} --ppn N"
                    if nodes is not None
                    else ""
                )
                point.fail(
                    "ranks" if nodes is None else None,
                    f"{ranks:g} ranks can't be spread evenly over {count:g} nodes{way_out}",
                )
            if ranks // count % threads:
                point.fail(
                    "threads_per_rank",
                    f"{int(ranks // count)} clients a node can't be processes of {threads} threads each",
                )
            for variant in variants:
                kept = tuple((k, v) for k, v in variant.items() if k not in settings)
                plan.points += [
                    PlannedPoint(int(count), int(ranks // count), float(factor), role, kept, threads, mounts)
                    for factor in factors
                    for mounts in of_mounts
                ]
    point.finish()
    # Points that differed only by what the user set are one.
    plan.points = list(dict.fromkeys(plan.points))


def settings_arguments(settings: dict[str, Any]) -> list[str]:
    """As arguments."""
    return [word for name, value in binaries.as_settings(settings).items() for word in ("--set", f"{name}={value}")]


def _unique(names: list[str]) -> list[str]:
    """The names, those that are there already with a number behind."""
    found: list[str] = []
    for name in names:
        number, fresh = 1, name
        while fresh in found:
            number += 1
            fresh = f"{name}-{number}"
        found.append(fresh)
    return found


def sized_by_a_pilot(plan: Plan) -> bool:
    """Whether some point leaves its iterations to a pilot run."""
    lacking = any("iterations" not in {**plan.settings, **dict(point.settings)} for point in plan.points)
    return lacking and has_sizes(plan)


def has_sizes(plan: Plan) -> bool:
    """Whether a pilot run can decide the sizes of the plan's workload: iterations on as many objects. Others have sizes
    of their own, which the plan sets or leaves."""
    return {"iterations", "objects"} <= parameters_of(plan)


def parameters_of(plan: Plan) -> frozenset[str]:
    """Names of the parameters that the plan's workload has.

    @raises InputError, RunError with the benchmark's own sentence"""
    if plan.parameters is None:
        point = plan.points[0]
        step = plan.steps[0].settings if plan.steps else {}
        ranks = point.nodes * point.ranks_per_node
        command = [binaries.find("iocast-bench"), "--backend", "dummy", "--workload", plan.workload]
        given = {**plan.settings, **dict(point.settings), **step}
        if "iterations" not in given:  # the workload's own may be more than these objects; the campaign's will not
            given.pop("objects", None)
        command += settings_arguments(given)
        command += ["--dry-run", "--json", "--ranks", str(ranks), "--ranks-per-node", str(point.ranks_per_node)]
        plan.parameters = frozenset(binaries.run_json(command)["workload"]["parameters"])
    return plan.parameters


def repeats_of_benchmark(plan: Plan) -> int:
    """How often a run without think times repeats its benchmark phase."""
    return int(plan.settings.get("repeats", plan.benchmark_repeats))


def settings_of_a_run(plan: Plan) -> dict[str, Any]:
    """Settings of a planned run, with the least size that a pilot run may have where one decides."""
    return planned_runs(plan, 0, PILOT_ITERATIONS[0] if sized_by_a_pilot(plan) else 0)[0].settings


def planned_runs(plan: Plan, seed: int, alone: int) -> list[PlannedRun]:
    """All runs of a campaign in their order: every repeat visits all points, shuffled, so that scale is not confounded
    with the time of day.

    @param alone iterations that a pilot run found for a rank alone; 0 where the plan has all sizes"""
    _refuse_without_effect(plan)
    shuffled = random.Random(seed)
    names = _unique([point.name for point in plan.points])
    runs: list[PlannedRun] = []
    for repeat in range(1, plan.repeats + 1):
        points = list(zip(plan.points, names, strict=True))
        shuffled.shuffle(points)
        for point, name in points:
            factor, repeats = point.waiting_factor, plan.benchmark_repeats
            given = {**plan.settings, **dict(point.settings)}
            sizes = {"objects": alone} if alone else {}
            if "iterations" not in given and has_sizes(plan):
                share = float(point.nodes * point.ranks_per_node if plan.scaling == "strong" else 1)
                if factor > 0:
                    # A thinking rank takes at least 1 + T times as long, so it gets one phase with half of its share of
                    # the work.
                    repeats = 1
                    share *= 2 * (1 + factor)
                iterations = max(MIN_ITERATIONS, round(alone / share))
                sizes = {"iterations": _within_objects(iterations, given), "objects": iterations}
            own = {**sizes, "waiting_factor": factor, "repeats": repeats, **given}
            # What the plan does not set is left out where the workload lacks it; a think time that it sets is refused.
            kept = given.keys() | parameters_of(plan) | ({"waiting_factor"} if factor else set())
            own = {name: value for name, value in own.items() if name in kept}
            runs += _steps(plan, point, own, f"{name}-r{repeat}", seed * SEEDS_OF_REPEATS + repeat - 1)
    return runs


def pilot_run(plan: Plan, iterations: int) -> PlannedRun:
    """A rank alone, with objects for its iterations where the campaign sets none."""
    sizes = {"objects": iterations} | plan.settings
    return PlannedRun("pilot", 1, 1, sizes | {"iterations": _within_objects(iterations, sizes)}, "fit")


def _within_objects(iterations: int, settings: dict[str, Any]) -> int:
    """At most as many as the objects that a campaign sets: beyond them a rank reads what nobody made yet."""
    objects = str(settings.get("objects", ""))
    return min(iterations, int(objects)) if is_whole(objects) else iterations


def _steps(plan: Plan, point: PlannedPoint, settings: dict[str, Any], name: str, seed: int) -> list[PlannedRun]:
    """The runs of one repeat of a point. Steps work on one data set and so have one seed."""
    if not plan.steps:
        return [
            PlannedRun(
                name,
                point.nodes,
                point.ranks_per_node,
                settings,
                point.role,
                threads_per_rank=point.threads_per_rank,
                seed=seed,
                mounts=point.mounts or plan.mounts,
            )
        ]
    return [
        PlannedRun(
            f"{name}-{step.name}",
            point.nodes,
            point.ranks_per_node,
            {**settings, **step.settings},
            step.role or point.role,
            threads_per_rank=point.threads_per_rank,
            group=name,
            step=step.name,
            seed=seed,
            mounts=point.mounts or plan.mounts,
        )
        for step in plan.steps
    ]


def missing_of(runs: list[PlannedRun], role: str | None, only_nodes: int | None = None) -> list[PlannedRun]:
    """Runs to make, in order. A group of steps is made as a whole: nobody knows what an unfinished one left in its data
    set."""
    unfinished = {run.group for run in runs if run.group and run.status != "complete"}
    of_role = {run.group for run in runs if run.group and (role is None or run.role == role)}
    return [
        run
        for run in runs
        if (
            run.group in unfinished & of_role
            if run.group
            else run.status != "complete" and (role is None or run.role == role)
        )
        and only_nodes in (None, run.nodes)
    ]
