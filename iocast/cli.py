# SPDX-License-Identifier: Apache-2.0
"""The command line: thin functions that read arguments, call the library and print."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import traceback
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, Optional

import typer

from iocast import binaries
from iocast.errors import InputError, RunError
from iocast.files import read_json, write_json, write_text
from iocast.progress import Steps, keep_interrupts, stderr

if TYPE_CHECKING:  # each verb loads what it needs
    from iocast.workers import Workers

app = typer.Typer(
    help="Measure a storage system small, forecast it large, and see how wrong that was.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    epilog="Exit status: 0 done, 1 failed, 2 bad input, 4 validated and fell short or nothing was held out, compared and worse, or studied and no design meets the levels.",
)
FELL_SHORT = 4

Json = Annotated[bool, typer.Option("--json", help="One JSON object on standard output, all else on standard error.")]
Seed = Annotated[int, typer.Option(help="Seed of all random choices.", min=0)]
Sets = Annotated[Optional[list[str]], typer.Option("--set", help="A workload parameter, name=value; may be repeated.")]
WorkerCount = Annotated[int, typer.Option("--workers", help="Processes that compute, or jobs with --slurm; by default one a core.", min=0)]
Scheduler = Annotated[str, typer.Option(help="Address of a running Dask scheduler, such as tls://host:8786.")]
Secret = Annotated[Optional[Path], typer.Option("--scheduler-secret", help="The scheduler's certificate and key, one PEM file that nobody else can read.")]
Interface = Annotated[str, typer.Option(help="With --slurm: network interface that workers reach this host by, such as ib0.")]
WorkersInSlurm = Annotated[bool, typer.Option("--slurm", help="Start the workers as Slurm jobs.")]
WorkerOptions = Annotated[Optional[list[str]], typer.Option("--slurm-option", help="A further option of sbatch, such as --account=me; may be repeated.")]
Level = Annotated[float, typer.Option(help="Probability that an interval is meant to cover.")]


def _points(paths: list[Path], phase: str = "benchmark") -> Any:
    from iocast.run_directory import find_runs, group

    return group(find_runs(paths, phase)[0])


def _crew(workers: int, scheduler: str, secret: Path | None, slurm: bool, options: list[str] | None, interface: str, out: Path) -> AbstractContextManager[Workers | None]:
    """Who simulates, when somebody was named; what workers inside Slurm write lies beside `out`."""
    from iocast.workers import Workers

    if not (workers or scheduler or slurm or secret or interface):
        return nullcontext()
    return Workers(workers, scheduler, slurm, tuple(options or ()), out.with_name(f"{out.stem}.workers"), secret=secret, interface=interface)


def _settings(sets: list[str] | None) -> dict[str, str]:
    settings = {}
    for one in sets or []:
        name, equals, value = one.partition("=")
        if not equals:
            raise InputError(f"'{one}' is no setting; write --set name=value.")
        settings[name] = value
    return settings


def _refuse_existing(path: Path) -> None:
    if path.exists():
        raise InputError(f"The output '{path}' exists already; name a new one, nothing is overwritten.")


@app.command(
    epilog="Examples: iocast measure /scratch/me --campaign quick --out campaigns/scratch\n\n"
    "iocast measure /scratch/me --slo 'p99(create) < 50 ms' --ppn 8 --budget 10min --out knees/scratch\n\n"
    "iocast measure /scratch/me --find-knee --over waiting_factor --ppn 8 --out knees/t"
)
def measure(
    context: typer.Context,
    directory: Annotated[Optional[Path], typer.Argument(help="Directory on the storage to be measured; its contents are left alone.")] = None,
    campaign: Annotated[Optional[str], typer.Option(help="Campaign by name (campaigns/NAME.yaml) or a YAML file.  [default: quick]")] = None,
    out: Annotated[Path, typer.Option(help="Campaign directory; when it exists, what is missing in it is measured.")] = Path("campaign"),
    role: Annotated[Optional[str], typer.Option(help="Only the points of this role: fit or check.")] = None,
    nodes: Annotated[Optional[int], typer.Option(help="Client nodes, in place of the campaign's own.", min=1)] = None,
    sets: Sets = None,
    plan: Annotated[bool, typer.Option("--plan", help="Measure nothing: propose the runs of a campaign and write it to --out, or what to measure next for a fitted --platform.")] = False,
    platform: Annotated[str, typer.Option(help="Plan: the platform that will be calibrated, or was.")] = "local",
    asked: Annotated[str, typer.Option(help="Plan: placement that forecasts are wanted of, NODES or NODESxRANKS; by default ten times --nodes with --ppn.")] = "",
    find_knee: Annotated[bool, typer.Option("--find-knee", help="No campaign: search the load at which throughput / response time is greatest.")] = False,
    slo: Annotated[Optional[list[str]], typer.Option(help="No campaign: search the highest load that keeps this level, such as 'p99(create) < 50 ms'; may be repeated, then all must hold.")] = None,
    over: Annotated[str, typer.Option(help="Knee search: the load is the rate (open loop, response times from the intended start) or the waiting_factor (closed loop).")] = "rate",
    workload: Annotated[str, typer.Option(help="Plan and knee search: workload.")] = "md-workbench",
    ppn: Annotated[int, typer.Option(help="Plan: most ranks a node; knee search: ranks a node.", min=1)] = 1,
    threads_per_rank: Annotated[int, typer.Option(help="Knee search: ranks that are threads of one process.", min=1)] = 1,
    phase: Annotated[str, typer.Option(help="Plan: phase that will be calibrated; knee search: phase that is searched.")] = "benchmark",
    length: Annotated[str, typer.Option(help="Knee search: planned length of a run.")] = "5s",
    budget: Annotated[str, typer.Option(help="Plan: time for all runs; knee search: time after which no further run begins.")] = "10min",
    confidence: Annotated[float, typer.Option(help="Knee search: probability that the interval is meant to cover the knee.")] = 0.9,
    precision: Annotated[float, typer.Option(help="Knee search: width of the interval that is narrow enough, as a share of the load.")] = 0.1,
    backend: Annotated[str, typer.Option(help="Backend (see: iocast list backends); DIRECTORY is for posix and mpiio only.")] = "posix",
    backend_option: Annotated[Optional[list[str]], typer.Option(help="Option of the backend, --backend-option=--s3.endpoint=URL; may be repeated.")] = None,
    observe: Annotated[bool, typer.Option("--observe", help="Observe this machine during each run, and join that to it.")] = False,
    slurm: Annotated[bool, typer.Option("--slurm", help="Write a job script for each number of nodes into OUT/slurm, and submit them one after the other.")] = False,
    slurm_only_write: Annotated[bool, typer.Option("--slurm-only-write", help="Write the job scripts, submit nothing.")] = False,
    slurm_time: Annotated[str, typer.Option(help="Time limit of a job, in Slurm's notation.")] = "01:00:00",
    slurm_option: Annotated[Optional[list[str]], typer.Option(help="A further option of sbatch, --slurm-option=--partition=NAME; may be repeated.")] = None,
    take_over: Annotated[bool, typer.Option("--take-over", help="Continue a campaign whose owner on another host has given no sign of life for five minutes.")] = False,
    only_nodes: Annotated[Optional[int], typer.Option(hidden=True, help="Only the points of so many nodes.")] = None,
    seed: Seed = 0,
    json_: Json = False,
) -> None:
    """Makes the runs of a campaign, or of a search for the knee, with mpirun, or with srun inside a Slurm job.

    With --find-knee or --slo each run's load follows from those before it. Exit status 4 when not even an unloaded system keeps the levels."""
    from iocast.campaign import DROP_CACHES, POSIX, Backend, Campaign, Ending, check_backend, read_plan

    if plan:
        if find_knee or slo or campaign is not None or role is not None or observe or slurm or slurm_only_write or directory is not None:
            raise InputError("--plan measures nothing; leave DIRECTORY, --campaign, --role, --observe, --slurm and what is for a knee search out, and give them with the campaign it writes.")
        _plan(out if context.get_parameter_source("out").name == "COMMANDLINE" else Path("plan.yaml"), platform, asked, workload, phase, sets, nodes or 1, ppn, budget, seed, json_)
        return
    if find_knee or slo:
        if campaign is not None or role is not None or observe or slurm or slurm_only_write:
            raise InputError("A knee search plans its own runs; leave --campaign, --role, --observe and --slurm out. Inside a Slurm job it starts its runs with srun.")
        _find_knee(
            directory, out, slo or [], seed, json_, over=over, workload=workload, sets=sets, nodes=nodes or 1, ppn=ppn, threads_per_rank=threads_per_rank, phase=phase, length=length,
            budget=budget, confidence=confidence, precision=precision, backend=backend, backend_option=backend_option or [], take_over=take_over,
        )  # fmt: skip
        return
    storage = Backend(backend, tuple(backend_option or ()))
    storage.check_place(directory)
    searching = ("platform", "asked", "over", "workload", "ppn", "threads_per_rank", "phase", "length", "budget", "confidence", "precision")
    given = [f"--{name.replace('_', '-')}" for name in searching if (source := context.get_parameter_source(name)) and source.name == "COMMANDLINE"]
    if given:
        raise InputError(f"A campaign has its own plan; {', '.join(given)} {'is' if len(given) == 1 else 'are'} for --plan, --find-knee and --slo.")
    campaign = campaign or "quick"
    if role not in (None, "fit", "check"):
        raise InputError(f"There is no role '{role}'. Allowed: fit, check.")
    runs = read_plan(campaign, nodes=nodes, settings=_settings(sets))
    check_backend(storage, runs.workload, runs.settings)
    if slurm or slurm_only_write:
        arguments = [] if directory is None else [str(directory.resolve())]
        arguments += ["--campaign", str(runs.file.resolve()), "--out", str(out.resolve()), "--seed", str(seed)]
        for name, value in (("--role", role), ("--nodes", nodes)):
            arguments += [name, str(value)] if value is not None else []
        arguments += [a for one in sets or [] for a in ("--set", one)] + ["--observe"] * observe + ["--take-over"] * take_over
        arguments += [] if storage == POSIX else ["--backend", backend, *(f"--backend-option={option}" for option in storage.options)]
        _measure_by_slurm(runs, arguments, out, slurm_time, slurm_option or [], submit=not slurm_only_write, json_=json_)
        return
    from iocast.slurm import MARGIN, deadline

    limit = deadline()
    with Ending(None if limit is None else limit - MARGIN) as ending, Steps() as steps:
        work = Campaign(directory, runs, out, seed, backend=storage, observe=observe, only_nodes=only_nodes, ending=ending, take_over=take_over)
        with work:
            work.prepare()
            missing = work.missing(role)
            work.measure(role, lambda run, number, total: steps(f"measuring {run.ranks} ranks, T = {run.settings['waiting_factor']:g} ({run.name})", number, total))
    complete = sum(run.status == "complete" for run in work.runs)
    if missing and runs.drop_caches and not work.drops_caches:
        stderr.print(f"Caches were not dropped between these runs, as the campaign asks, since {DROP_CACHES} can't be written to: a run may have felt what the one before it left.", markup=False, soft_wrap=True)
    if json_:
        print(json.dumps(work.json))
    else:
        print(f"{complete} of {len(work.runs)} runs measured, in {out}.")


def _plan(out: Path, platform: str, asked: str, workload: str, phase: str, sets: list[str] | None, nodes: int, ppn: int, budget: str, seed: int, json_: bool) -> None:
    from iocast import plan as planning
    from iocast.calibrate.reading import UNREPEATED
    from iocast.calibrate.search import Simulations
    from iocast.files import duration
    from iocast.fitted import Fitted
    from iocast.text import plan_text

    if out.suffix not in (".yaml", ".yml"):
        raise InputError(f"The plan is a campaign in YAML; name a file such as plan.yaml, not '{out}'.")
    _refuse_existing(out)
    seconds = duration(budget, "--budget", 1, 30 * 86400)
    fitted = Fitted.open(platform)
    target = planning.read_place(asked) if asked else planning.Place(10 * nodes, ppn)
    with Simulations(about=fitted.file) as simulations, Steps() as steps:
        steps("what could be true, and what measurements would tell of it", 0, 1)
        if fitted.fitted:
            ensemble = planning.of_fitted(simulations, fitted, seed)
            workload, settings = ensemble.pattern, planning.measured_settings(fitted)
        else:
            settings = _settings(sets)
            noise = dict.fromkeys(("rate", *planning.TOLD), UNREPEATED)
            ensemble = planning.of_family(simulations, platform, workload, settings, phase, noise, seed)
        planner = planning.Planner(ensemble, target, fitted.fitted)
        proposed, repeats = planner.campaign(planning.candidates(nodes, ppn, "" if ensemble.rates_alone else workload, settings), seconds)
    source = f"iocast measure --plan --platform {platform} --nodes {nodes} --ppn {ppn} --asked {target.nodes}x{target.ranks_per_node} --budget {budget}"
    if proposed:
        write_text(out, planning.campaign_file(proposed, planner, repeats, workload, settings, source))
    answer = {"asked": target.document(), "repeats": repeats, "seconds": planner.length, "points": [one.document() | {"purpose": one.purpose} for one in proposed]}
    print(json.dumps(answer) if json_ else plan_text(target, proposed, repeats, planner.length, str(out)))


def _find_knee(
    directory: Path | None, out: Path, slo: list[str], seed: int, json_: bool, *, over: str, workload: str, sets: list[str] | None, nodes: int, ppn: int, threads_per_rank: int, phase: str,
    length: str, budget: str, confidence: float, precision: float, backend: str, backend_option: list[str], take_over: bool,
) -> None:  # fmt: skip
    from iocast.campaign import Ending
    from iocast.files import duration
    from iocast.knee import Search, check_levels
    from iocast.knee.probes import Asked, Probes
    from iocast.knee.words import knee_text
    from iocast.slurm import MARGIN, deadline
    from iocast.study.levels import parse_level

    if not 0.5 < confidence < 1:
        raise InputError(f"The confidence {confidence:g} is no probability between 0.5 and 1.")
    if not 0.01 <= precision <= 1:
        raise InputError(f"The precision {precision:g} is not between 0.01 and 1.")
    try:
        levels = [parse_level(text) for text in slo]
    except InputError as error:
        raise InputError(f"--slo: {error}.") from error
    asked = Asked(
        None if directory is None else directory.resolve(), out, workload, _settings(sets), nodes, ppn, over, phase, duration(length, "--length", 0.1, 86400), seed, backend, backend_option, threads_per_rank,
    )  # fmt: skip
    seconds = duration(budget, "--budget", 1, 30 * 86400)
    limit = deadline()
    with Ending(None if limit is None else limit - MARGIN) as ending, Steps() as steps:
        with Probes(asked, {"levels": [level.text for level in levels]}, ending, take_over=take_over) as probes:
            check_levels(levels, probes.operations)
            answer = Search(probes, levels, budget=seconds, confidence=confidence, precision=precision).run(steps)
    print(json.dumps(answer) if json_ else f"{knee_text(answer)}\nWritten to {out}/knee.json; iocast report {out} makes a page of it.")
    if answer["reason"] == "never met":
        raise typer.Exit(FELL_SHORT)


def _measure_by_slurm(plan: Any, arguments: list[str], out: Path, limit: str, options: list[str], *, submit: bool, json_: bool) -> None:
    from iocast.slurm import JobOptions, write_scripts
    from iocast.slurm import submit as hand_in

    scripts = write_scripts(plan, arguments, out, JobOptions(limit, options))
    jobs = hand_in(scripts) if submit else []
    if json_:
        print(json.dumps({"scripts": [str(script) for script in scripts], "jobs": jobs}))
        return
    for i, script in enumerate(scripts):
        print(f"Written {script}{f', submitted as job {jobs[i]}' if jobs else ''}.")


@app.command(
    epilog="Examples: iocast forecast 'results/mdtest-*.txt' --nodes 32,1000 --out forecast\n\niocast forecast campaigns/scratch --nodes 100 --out forecast"
)
def forecast(
    sources: Annotated[list[Path], typer.Argument(help="Results of other tools (files, directories, globs, archives), run directories, or campaigns.")],
    nodes: Annotated[str, typer.Option(help="Client nodes to forecast, such as 32 or 32,1000.")],
    ppn: Annotated[Optional[int], typer.Option(help="Ranks a node.  [default: those of the largest measurement]", min=1)] = None,
    phase: Annotated[Optional[str], typer.Option(help="Phase to forecast.  [default: all but set-up and clean-up]")] = None,
    platform: Annotated[Optional[str], typer.Option(help="Platform to fit.  [default: by the results; queue for rates alone]")] = None,
    out: Annotated[Path, typer.Option(help="Directory for runs, fitted platforms, forecasts and the report.")] = Path("forecast"),
    ranks_measured: Annotated[Optional[int], typer.Option("--ranks-measured", help="Ranks of the results, when the files don't say.")] = None,
    nodes_measured: Annotated[Optional[int], typer.Option("--nodes-measured", help="Client nodes of the results, when the files don't say.")] = None,
    level: Level = 0.9,
    workers: WorkerCount = 0,
    seed: Seed = 0,
    json_: Json = False,
) -> None:
    """Forecasts larger scales from your results, with a report."""
    from iocast.forecast import forecast as whole_way
    from iocast.forecast import forecasts_text

    targets = [int(one) for one in nodes.split(",") if one.strip().isdigit() and int(one) > 0]
    if not targets or len(targets) != len(nodes.split(",")):
        raise InputError(f"--nodes is '{nodes}'; it must be numbers of nodes of at least 1, such as 32 or 32,1000.")
    _refuse_existing(out)
    told = {"ranks": ranks_measured, "nodes": nodes_measured}
    with Steps() as steps, _crew(workers, "", None, False, None, "", out) as crew:
        answer = whole_way(
            sources, targets, out, ranks_per_node=ppn, platform=platform, phase=phase, told=told, level=level, seed=seed, report=steps, workers=crew
        )
    print(json.dumps(answer.document()) if json_ else forecasts_text(answer))


@app.command(epilog="Example: iocast calibrate campaigns/scratch --platform local --out fitted.yaml")
def calibrate(
    sources: Annotated[list[Path], typer.Argument(help="Campaign directories and run directories.")],
    platform: Annotated[str, typer.Option(help="Platform whose numbers are to be fitted (see: iocast list platforms).")] = "local",
    phase: Annotated[Optional[list[str]], typer.Option(help="A phase of the runs that is fitted; may be repeated.  [default: all but set-up and clean-up]")] = None,
    out: Annotated[Path, typer.Option(help="Platform file to write.")] = Path("fitted.yaml"),
    workers: WorkerCount = 0,
    scheduler: Scheduler = "",
    scheduler_secret: Secret = None,
    slurm: WorkersInSlurm = False,
    slurm_option: WorkerOptions = None,
    interface: Interface = "",
    look: Annotated[bool, typer.Option("--look", help="Say what the measurements show, and fit nothing.")] = False,
    seed: Seed = 0,
    json_: Json = False,
) -> None:
    """Fits a platform to measurements and forecasts its largest measured scale as a test. What was tried lies beside the platform
    (fitted.search.jsonl); after an interruption the same command goes on from there."""
    from iocast.calibrate import findings
    from iocast.calibrate.phases import calibrate_phases, chosen_phases
    from iocast.fitted import Fitted
    from iocast.plan import next_runs, telling
    from iocast.platform import dump

    if look:
        from iocast.text import findings_text

        found = [
            one.document() | {"phase": name}
            for name in chosen_phases(sources, phase or [])
            for one in findings([point for point in _points(sources, name) if point.role == "fit"])
        ]
        print(json.dumps(found) if json_ else findings_text(found))
        return
    _refuse_existing(out)
    with Steps() as steps, _crew(workers, scheduler, scheduler_secret, slurm, slurm_option, interface, out) as crew:
        document = calibrate_phases(sources, chosen_phases(sources, phase or []), platform, seed, steps, crew, out.with_suffix(".search.jsonl"))
        steps("what a further measurement would tell", 1, 1)
        fitted = document["fitted"]
        asked, proposed = next_runs(Fitted(out, fitted, [{key: value for key, value in document.items() if key != "fitted"}], []), seed=seed, workers=crew)
        fitted["next"] = {"asked": asked.document(), "runs": [one.document() for one in proposed]}
    write_text(out, "# SPDX-License-Identifier: Apache-2.0\n" + dump(document))
    if json_:
        print(json.dumps(document))
        return
    from iocast.text import calibration_text, next_text

    further = fitted.get("further_phases", {})
    if further:
        print(f"Phase {fitted['campaign']['phase']}")
    print(calibration_text(fitted))
    for name, one in further.items():
        print(f"\nPhase {name}\n{calibration_text(one['fitted'])}")
    print(next_text(fitted.get("open", {}), asked, telling(proposed)))
    print(f"Written to {out}.")


@app.command(epilog="Example: iocast predict fitted.yaml --nodes 100 --ppn 10 --set waiting_factor=4 --edit stations.mds.servers=32")
def predict(
    platform: Annotated[str, typer.Argument(help="Fitted platform, a platform that extends one, or a catalogue platform.")],
    workload: Annotated[Optional[str], typer.Option(help="Workload; by default the calibration's.")] = None,
    nodes: Annotated[int, typer.Option(help="Client nodes.")] = 1,
    ppn: Annotated[Optional[int], typer.Option(help="Ranks a node.  [default: those of the largest measurement, or 1]")] = None,
    phase: Annotated[Optional[str], typer.Option(help="Phase of the workload.  [default: the fitted one, or all but set-up and clean-up]")] = None,
    sets: Sets = None,
    edit: Annotated[Optional[list[str]], typer.Option(help="A change of the platform, path=value; may be repeated.")] = None,
    solver: Annotated[Optional[str], typer.Option(help="simulate or analytic.  [default: simulate; analytic for a platform fitted to rates alone]")] = None,
    level: Level = 0.9,
    label: Annotated[str, typer.Option(help="What to call the forecast in a report.")] = "",
    points_of: Annotated[Optional[Path], typer.Option(help="Forecast the points of this campaign that are yet to be measured, one file each in --out.")] = None,
    out: Annotated[Optional[Path], typer.Option(help="File for the whole forecast as JSON; a directory with --points-of.")] = None,
    seed: Seed = 0,
    json_: Json = False,
) -> None:
    """Forecasts throughput and latencies at a scale that was not measured."""
    from iocast.platform import parse_edit
    from iocast.fitted import Fitted
    from iocast.predict import predict as predict_

    if out is not None:
        _refuse_existing(out)
    fitted = Fitted.open(platform, [parse_edit(text) for text in edit or []])
    if points_of is not None:
        _predict_points(fitted, points_of, out, phase, solver, level, seed, json_)
        return
    answer = predict_(fitted, workload, _settings(sets), nodes, ppn, phase=phase, solver=solver, level=level, seed=seed, label=label)
    if out is not None:
        write_json(out, answer)
    if json_:
        print(json.dumps(answer))
        return
    from iocast.text import forecast_text

    print(forecast_text(answer))


def _predict_points(fitted: Any, campaign: Path, out: Path | None, phase: str | None, solver: str | None, level: float, seed: int, json_: bool) -> None:
    """Forecasts written before their measurement, each with a hash, so that nobody can say later that they were fitted to it."""
    from iocast.files import sha256
    from iocast.predict import predict_planned
    from iocast.text import forecast_text

    if out is None:
        raise InputError("Forecasts of a campaign's points need a directory to go to; name it with --out.")
    answers = []
    for path, answer in predict_planned(fitted, campaign, out, phase=phase, solver=solver, level=level, seed=seed):
        answers.append(answer)
        if not json_:
            print(forecast_text(answer))
            print(f"Written to {path}, sha256 {sha256(path)[:16]}.\n")
    if json_:
        print(json.dumps({"forecasts": answers}))


@app.command(epilog="Example: iocast validate fitted.yaml campaigns/scratch --role check")
def validate(
    platform: Annotated[str, typer.Argument(help="Fitted platform.")],
    sources: Annotated[list[Path], typer.Argument(help="Run directories and campaigns with the measurements.")],
    role: Annotated[Optional[str], typer.Option(help="Only a campaign's points of this role: fit or check.")] = None,
    phase: Annotated[Optional[list[str]], typer.Option(help="A phase; may be repeated.  [default: all that the platform was fitted to]")] = None,
    forecast: Annotated[Optional[list[Path]], typer.Option(help="A forecast made earlier, judged instead of new ones; may be repeated.")] = None,
    most_rate_error: Annotated[float, typer.Option(help="Median throughput error that still passes.")] = 0.25,
    least_coverage: Annotated[float, typer.Option(help="Share of values inside their intervals that still passes.")] = 0.7,
    level: Level = 0.9,
    out: Annotated[Optional[Path], typer.Option(help="File for the whole validation as JSON.")] = None,
    workers: WorkerCount = 0,
    scheduler: Scheduler = "",
    scheduler_secret: Secret = None,
    slurm: WorkersInSlurm = False,
    slurm_option: WorkerOptions = None,
    interface: Interface = "",
    seed: Seed = 0,
    json_: Json = False,
) -> None:
    """Sets forecasts beside measurements, with errors, interval coverage and what simpler rules said."""
    from iocast.earlier import Earlier
    from iocast.fitted import Fitted
    from iocast.strict_yaml import allowed_sentence
    from iocast.text import validation_text
    from iocast.validate import validate as judge

    if out is not None:
        _refuse_existing(out)
    fitted = Fitted.open(platform)
    phases = phase or fitted.phases
    for name in phases:
        if name not in fitted.phases:
            raise InputError(f"The platform '{platform}' was not fitted to the phase '{name}'. {allowed_sentence(name, fitted.phases)}")
    points = [point for name in phases for point in _points(sources, name) if role is None or point.role == role]
    if not points:
        raise InputError(f"There is no measured point of the role '{role}' in {', '.join(map(str, sources))}.")
    with _crew(workers, scheduler, scheduler_secret, slurm, slurm_option, interface, out or Path("validation")) as crew:
        answer = judge(
            fitted, points, level=level, seed=seed, most_rate_error=most_rate_error, least_coverage=least_coverage,
            forecasts=[Earlier.open(path) for path in forecast or []], workers=crew,
        )  # fmt: skip
    if out is not None:
        write_json(out, answer)
    print(json.dumps(answer) if json_ else validation_text(answer))
    if not answer["passed"]:
        raise typer.Exit(FELL_SHORT)


@app.command(epilog="Example: iocast selftest --out results/self-test")
def selftest(
    out: Annotated[Path, typer.Option(help="Directory for all that the test measures, finds and forecasts.")] = Path("self-test"),
    truth: Annotated[str, typer.Option(help="Platform that the file system is: one visit to one station for each operation.")] = "queuefs",
    platform: Annotated[str, typer.Option(help="Platform that is calibrated.")] = "fuse",
    campaign: Annotated[str, typer.Option(help="Campaign by name (campaigns/NAME.yaml) or a YAML file.")] = "selftest",
    seed: Seed = 0,
    json_: Json = False,
) -> None:
    """Does the whole way work here? Mounts a file system whose metadata server is known exactly, measures it with up to 8 ranks, calibrates,
    forecasts 32, measures those, and sets it all beside the truth. Exit status 4 when something is further off than it should be."""
    from iocast.selftest import selftest as test
    from iocast.text import selftest_text

    _refuse_existing(out)
    with Steps() as steps:
        answer = test(out, truth, platform, campaign, seed, steps)
    print(json.dumps(answer) if json_ else selftest_text(answer))
    if not answer["passed"]:
        raise typer.Exit(FELL_SHORT)


@app.command(epilog="Example: iocast study examples/one-mds-or-dne/study.yaml --out results/dne && iocast report results/dne --out dne.html")
def study(
    file: Annotated[Path, typer.Argument(metavar="STUDY.yaml", help="What is asked: platform, workloads, scales, axes, prices, service levels.")],
    out: Annotated[Path, typer.Option(help="Directory for the answer. What it holds of an earlier run is used again: an edited study computes only what is new.")],
    workers: WorkerCount = 0,
    scheduler: Scheduler = "",
    scheduler_secret: Secret = None,
    slurm: WorkersInSlurm = False,
    slurm_option: WorkerOptions = None,
    interface: Interface = "",
    seed: Seed = 0,
    json_: Json = False,
) -> None:
    """Says which design to choose, how sure that is, and what would change it. Exit status 4 when no design meets the service levels."""
    from iocast.study import run_study
    from iocast.study.words import as_text
    from iocast.workers import Workers

    with Steps(every=5) as steps, Workers(workers, scheduler, slurm, tuple(slurm_option or ()), out / "workers", secret=scheduler_secret, interface=interface) as crew:
        answer = run_study(file, out, crew, steps, ["iocast", *sys.argv[1:]], seed, steps.tell)
    print(json.dumps(answer) if json_ else f"{as_text(answer)}\nWritten to {out}; iocast report {out} makes a page of it.")
    if answer["decision"] is None:
        raise typer.Exit(FELL_SHORT)


@app.command(epilog="Example: iocast report campaigns/scratch fitted.yaml forecast.json validation.json --out report.html")
def report(
    sources: Annotated[list[Path], typer.Argument(help="Run directories, campaigns, fitted platforms, forecasts, validations, a study's directory.")],
    out: Annotated[Optional[Path], typer.Option(help="HTML file to write (report.html); it needs nothing else and no network.")] = None,
    title: Annotated[Optional[str], typer.Option(help="Title of the page.")] = None,
    text: Annotated[Optional[str], typer.Option(help="Text on standard output in place of the page: paper-tables, the two tables of the MDWorkbench paper.")] = None,
    figures: Annotated[Optional[Path], typer.Option(help="Directory for every figure as PDF and PNG.")] = None,
    data: Annotated[Optional[Path], typer.Option(help="Directory for every number of the page as JSON and CSV.")] = None,
    seed: Seed = 0,
    json_: Json = False,
) -> None:
    """Writes one self-contained page with figures for a board to read."""
    from iocast.report import write_data, write_figures, write_report

    del seed  # a report draws nothing at random; every verb takes it
    if text is not None:
        from iocast.report.paper_tables import paper_tables, paper_tables_text
        from iocast.report.sources import read_sources

        if text != "paper-tables":
            raise InputError(f"There is no text '{text}'. Allowed: paper-tables.")
        tables = paper_tables(read_sources(sources))
        print(json.dumps(tables) if json_ else paper_tables_text(tables))
        if out is None:
            return
    out = out or Path("report.html")
    write_report(sources, out, title)
    files = [*(write_figures(sources, figures) if figures else []), *(write_data(sources, data) if data else [])]
    if text is not None:
        return
    if json_:
        print(json.dumps({"report": str(out), "bytes": out.stat().st_size, "files": [str(f) for f in files]}))
    else:
        print(f"Written to {out}" + (f", and {len(files)} files beside it." if files else "."))


@app.command("import", epilog="Example: iocast import fio.json --out runs/fio; iocast import results/ 'logs/mdtest-*.txt' submission.tar.gz --out runs/site; iocast import --explain ior.txt")
def import_(
    files: Annotated[list[Path], typer.Argument(help="Files of one call of one tool, or a result directory (see: iocast list formats); directories, globs and archives with anything in them.")],
    out: Annotated[Optional[Path], typer.Option(help="Run directory to write; with several runs, a directory of run directories, which every verb takes.")] = None,
    format_: Annotated[Optional[str], typer.Option("--format", help="The tool; by default recognised by content.")] = None,
    ranks: Annotated[Optional[int], typer.Option(help="Ranks, when the files don't say.")] = None,
    nodes: Annotated[Optional[int], typer.Option(help="Client nodes, when the files don't say.")] = None,
    label: Annotated[Optional[str], typer.Option(help="What to call the run in a report.")] = None,
    explain: Annotated[bool, typer.Option("--explain", help="For each imported number print the file and line that it comes from; without --out nothing is written.")] = False,
    seed: Seed = 0,
    json_: Json = False,
) -> None:
    """Turns other tools' results into run directories; what they don't say is null and named as missing. A Darshan log becomes
    a trace for the pattern replay: iocast import darshan LOG --out ops.h5."""
    import tempfile

    from iocast.importers import darshan_log

    del seed  # nothing is drawn at random; every verb takes it
    if str(files[0]) == "darshan" and not files[0].exists():
        format_, files = "darshan", files[1:]
    if format_ is None and len(files) == 1 and files[0].is_file() and darshan_log.recognises(files[0]):
        format_ = "darshan"
    if out is None and not (explain and format_ != "darshan"):
        raise InputError("An import needs --out DIRECTORY, where it is written; --explain alone shows what would be imported.")
    with tempfile.TemporaryDirectory() as scratch:
        target = out if out is not None else Path(scratch) / "run"
        if format_ == "darshan":
            _import_darshan(files, target, json_)
        else:
            _import_results(files, target, format_, {"ranks": ranks, "nodes": nodes, "label": label}, explain, json_)


def _import_results(files: list[Path], out: Path, format_: str | None, told: dict[str, Any], explain: bool, json_: bool) -> None:
    from iocast.importers import import_files
    from iocast.importers.record import explained
    from iocast.importers.series import import_series, is_series

    if format_ is None and is_series(files):
        written = import_series(files, out, told)
    else:
        written = import_files(files, out, format_, told)
    documents = [read_json(directory / "run.json", "run") for directory in written]
    series = read_json(out / "series.json", "series") if (out / "series.json").is_file() else {}
    if json_:
        runs = [{"path": str(path), "imported": d["imported"], "warnings": d["warnings"]} for path, d in zip(written, documents, strict=True)]
        print(json.dumps({"runs": runs} | ({"series": series} if series else {})))
        return
    for path, document in zip(written, documents, strict=True):
        where = document["placement"]
        nodes = f" on {where['nodes']} node{'s' * (where['nodes'] != 1)}" if where["nodes"] else ""
        print(f"{path if str(path).startswith(str(out)) and not explain else path.name}: {len(document['phases'])} phases of {document['tool']['name']}, {where['ranks']} ranks{nodes}.")
    for curve, scaling in series.get("scaling", {}).items():
        print(f"  {curve}: {scaling} scaling, as much work {'a rank' if scaling == 'weak' else 'in all'} at each placement.")
    for one in series.get("contradictions", []):
        print(f"  ALARM: {one['sentence']}")
    for sentence in series.get("left_out", []):
        print(f"  left out: {sentence}")
    if series.get("files_without_results"):
        print(f"  {series['files_without_results']} files are no results of a known tool.")
    for warning in dict.fromkeys(w for d in documents for w in d["warnings"]):
        print(f"  {warning}")
    if explain:
        for path, document in zip(written, documents, strict=True):
            print(f"Numbers of {path.name}, and where they stand:")
            for key, value, origin in explained(document):
                print(f"  {key:40} {value:>14}  {origin}")
    else:
        for key, why in {k: v for d in documents for k, v in d["imported"]["missing"].items()}.items():
            print(f"  missing: {key}. {why}")


def _import_darshan(files: list[Path], out: Path, json_: bool) -> None:
    from iocast.importers.darshan_log import import_log

    if len(files) != 1:
        raise InputError(f"One trace is made of one Darshan log; {len(files)} are named.")
    made = import_log(files[0], out)
    print(json.dumps(made | {"trace": str(out)}) if json_ else "\n  ".join([f"{out}: {made['operations']} operations of {made['ranks']} ranks.", *made["notes"]]))


@app.command(epilog="Example: iocast export runs/a runs/b --format parquet --out runs.parquet")
def export(
    runs: Annotated[list[Path], typer.Argument(help="Run directories.")],
    format_: Annotated[str, typer.Option("--format", help="csv, parquet, openmetrics, or md-workbench (the text that its scripts parse).")],
    out: Annotated[Path, typer.Option(help="File to write.")],
    seed: Seed = 0,
    json_: Json = False,
) -> None:
    """Writes every number of runs, histograms and time lines included, for other programs."""
    from iocast.export import export as write

    del seed  # nothing is drawn at random; every verb takes it
    write(runs, format_, out)
    print(json.dumps({"export": str(out), "bytes": out.stat().st_size}) if json_ else f"Written to {out}.")


@app.command(
    epilog="Examples: iocast compare runs/before runs/after --fail-on 10% --fail-on create.q99=25%\n\n"
    "iocast compare results/dne:d4 results/dne:d6\n\niocast compare offer-a.yaml offer-b.yaml --study tender.yaml"
)
def compare(
    a: Annotated[str, typer.Argument(help="Run directory or campaign: before. Or a design of a study (DIRECTORY:DESIGN, DIRECTORY for its decision), or with --study an offer (a platform file).")],
    b: Annotated[str, typer.Argument(help="Of the same kind: after, or what to set beside it.")],
    phase: Annotated[Optional[str], typer.Option(help="Measurements: phase to compare; by default the benchmark.")] = None,
    fail_on: Annotated[Optional[list[str]], typer.Option(help="Measurements: exit with 4 when something is worse by more than this beyond noise: 10% or QUANTITY=10%; may be repeated.")] = None,
    alpha: Annotated[float, typer.Option(help="Measurements: chance of one false alarm or more among all quantities.")] = 0.05,
    study: Annotated[Optional[Path], typer.Option(help="Offers: the study whose workloads, scales and levels they are compared under.")] = None,
    workers: Annotated[int, typer.Option(help="Offers: processes that compute; by default one a core.", min=0)] = 0,
    level: Level = 0.9,
    out: Annotated[Optional[Path], typer.Option(help="File for the whole comparison as JSON.")] = None,
    seed: Seed = 0,
    json_: Json = False,
) -> None:
    """Says what changed from one measurement to another beyond their noise, or sets two designs beside each other with intervals."""
    from iocast.compare import Threshold, is_measurement
    from iocast.compare import compare as judge
    from iocast.study import compare as designs

    if out is not None:
        _refuse_existing(out)
    if is_measurement(Path(a)) and is_measurement(Path(b)):
        answer = judge(Path(a), Path(b), phase=phase, alpha=alpha, seed=seed, fail_on=[Threshold.parse(text) for text in fail_on or []])
    else:
        for argument in (a, b):
            if not designs.is_design(argument):
                raise InputError(
                    f"'{argument}' is nothing that can be compared: no run directory, no directory of run directories and no campaign (it has no run.json and no campaign.json), "
                    "no design of a study (DIRECTORY:DESIGN), no platform file."
                )
        answer = _compare_designs(a, b, study, workers, level, seed)
    if out is not None:
        write_json(out, answer)
    from iocast.text import comparison_text

    if json_:
        print(json.dumps(answer))
    else:
        print(designs.as_text(answer) if "sides" in answer else comparison_text(answer))
    if answer.get("failed"):
        raise typer.Exit(FELL_SHORT)


def _compare_designs(a: str, b: str, study: Path | None, workers: int, level: float, seed: int) -> dict[str, Any]:
    from iocast.study.compare import compare as beside
    from iocast.workers import Workers

    if not 0 < level < 1:
        raise InputError(f"The level {level:g} is no probability between 0 and 1.")
    if study is None and a.endswith((".yaml", ".yml")):
        raise InputError("Two offers are compared under a study; name it with --study.")
    with Steps(every=5) as steps, Workers(workers) as crew:
        return beside(a, b, study, crew, steps, level, seed)


@app.command(epilog="Example: iocast observe --out obs.jsonl --process iocast-bench -- mpirun -n 8 iocast-bench ... --out runs/a; iocast observe --join runs/a mds.jsonl")
def observe(
    words: Annotated[Optional[list[str]], typer.Argument(metavar="[-- COMMAND...] | FILE...", help="Command to run and observe; or with --join, observations.")] = None,
    out: Annotated[Optional[Path], typer.Option(help="File for the observation, one JSON object a line.")] = None,
    process: Annotated[Optional[list[str]], typer.Option(help="Also count the CPU time of the processes of this name; may be repeated.")] = None,
    waits: Annotated[bool, typer.Option("--waits", help="Also look where in the kernel those processes sleep.")] = False,
    every: Annotated[str, typer.Option(help="Time between samples, with unit.")] = "1s",
    join: Annotated[Optional[Path], typer.Option(help="Run directory that observations are joined to.")] = None,
    seed: Seed = 0,
    json_: Json = False,
) -> None:
    """Samples CPU, processes, memory, block devices and network beside a measurement, and joins them to its run directory."""
    from iocast.observe import observe as watch
    from iocast.observe import parse_duration, run_directories_of
    from iocast.text import utilisation_text
    from iocast.utilisation import join as join_to

    del seed  # nothing is drawn at random; every verb takes it
    if join is not None:
        if not words or out is not None:
            raise InputError("Say which observations to join: iocast observe --join RUN FILE...")
        content = join_to(join, [Path(word) for word in words])
        print(json.dumps(content) if json_ else utilisation_text(content))
        return
    if out is None:
        raise InputError("Name the file for the observation with --out, or join some to a run with --join RUN FILE...")
    if waits and not process:
        raise InputError("Say with --process which processes --waits is about.")
    status = watch(out, parse_duration(every), process or [], words or [], waits)
    joined = []
    for run in run_directories_of(words or []) if status == 0 else []:
        content = join_to(run, [out])
        joined.append(str(run))
        if not json_:
            stderr.print(f"Joined to {run}.", markup=False)
            print(utilisation_text(content))
    if json_:
        print(json.dumps({"observation": str(out), "joined": joined, "status": status}))
    elif not joined:
        stderr.print(f"Written to {out}.", markup=False)
    if status:
        raise typer.Exit(status)


@app.command("list", epilog="Example: iocast list platforms")
def list_(
    what: Annotated[str, typer.Argument(help="workloads, patterns, backends, platforms, primitives, campaigns or formats.")],
    markdown: Annotated[bool, typer.Option("--markdown", help="Workloads or patterns as a table in Markdown.")] = False,
    into: Annotated[Optional[Path], typer.Option(help="With --markdown: put the table into this file, where it was before.")] = None,
    seed: Seed = 0,
    json_: Json = False,
) -> None:
    """Lists what there is."""
    del seed
    if markdown:
        from iocast import listing

        table = listing.table(what)
        if into:
            write_text(into, listing.replaced(into, what, table))
        else:
            print(table, end="")
        return
    if into:
        raise InputError("--into needs --markdown.")
    if what in ("campaigns", "formats"):
        from iocast import listing

        entries = listing.entries(what)
        for entry in entries if what == "campaigns" else []:
            listing.described(what, entry["name"])  # a file that can't be read is not listed as if it could
        more = {entry["name"]: f"; name {entry['takes']}" if "takes" in entry else "" for entry in entries}
        print(json.dumps({what: entries}) if json_ else "\n".join(f"{e['name']}  {e['summary']}{more[e['name']]}" for e in entries))
        return
    from iocast.listing import program_of

    _pass_through([binaries.find(program_of(what)), "--list", what, *(["--json"] if json_ else [])])


@app.command(epilog="Example: iocast describe lustre --svg lustre.svg")
def describe(
    name: Annotated[str, typer.Argument(help="A workload, pattern, backend, platform (or its file) or primitive.")],
    svg: Annotated[Optional[Path], typer.Option(help="Platform: draw the route of every operation into this SVG file.")] = None,
    backend: Annotated[bool, typer.Option("--backend", help="The backend of this name, not the platform.")] = False,
    seed: Seed = 0,
    json_: Json = False,
) -> None:
    """Describes one thing in full: parameters, units, defaults, source; of a platform its stations and the route of every operation."""
    from iocast.drawing import platform_text
    from iocast.listing import describer_of, names_of
    from iocast.strict_yaml import allowed_sentence

    del seed
    if backend:
        binaries.find("iocast-bench")  # or there is none that could be described
    known = {what: names_of(what) for what in ("backends", "platforms")}
    is_backend = name in known["backends"] and (backend or name not in known["platforms"])
    if backend and not is_backend:
        raise InputError(f"There is no backend '{name}'. {allowed_sentence(name, sorted(known['backends']))}")
    command = [binaries.find("iocast-bench" if is_backend else describer_of(name)), "--describe", name]
    described = binaries.run_json([*command, "--json"])
    if svg is not None:
        if described["kind"] != "platform":
            raise InputError(f"Only a platform has routes to draw; '{name}' is a {described['kind']}. Leave out --svg.")
        from iocast.report.page import write_routes

        write_routes(described, svg)
    if described["kind"] != "platform" or json_:
        _pass_through([*command, *(["--json"] if json_ else [])])
        return
    print(platform_text(described))
    if name in known["backends"]:
        print(f"\nThere is a backend of this name, too: iocast describe {name} --backend")


@app.command(epilog="Example: iocast manual --out ~/.local/share/man && man iocast-bench")
def manual(
    out: Annotated[Path, typer.Option(help="Directory of manual pages; those of iocast in it are replaced.")],
    seed: Seed = 0,
    json_: Json = False,
) -> None:
    """Writes the manual pages of all programs, verbs, workloads, backends and platforms."""
    from iocast.manual import write_manual

    del seed  # nothing is drawn at random; every verb takes it
    pages = write_manual(typer.main.get_command(app), out)
    print(json.dumps({"pages": [str(page) for page in pages]}) if json_ else f"{len(pages)} pages written to {out}; read them with man -M {out} iocast.")


def _pass_through(command: list[str]) -> None:
    sys.stdout.flush()
    done = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        message = done.stderr.strip()
        for program in ("iocast-sim: ", "iocast-bench: "):
            message = message.removeprefix(program)
        raise (InputError if done.returncode == 2 else RunError)(message)


def _fail(message: str, code: int) -> NoReturn:
    stderr.print(f"iocast: {message}", markup=False, soft_wrap=True)
    sys.exit(code)


def main() -> None:
    keep_interrupts()
    try:
        app(prog_name="iocast")
    except InputError as error:
        _fail(str(error), 2)
    except RunError as error:
        _fail(str(error), 1)
    except Exception as error:
        if os.environ.get("IOCAST_DEBUG"):
            raise
        _fail(*_unexpected(error))


def _unexpected(error: Exception) -> tuple[str, int]:
    """Message and exit status of what nobody foresaw. After a file was read its content is the likely reason."""
    from iocast.strict import last_files, shown

    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "iocast" in Path(frame.filename).parts]
    where = f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else "its libraries"
    what = f"{type(error).__name__} {shown(str(error))} in {where}"
    files = last_files()
    if isinstance(error, OSError):
        named = f" '{error.filename}'" if error.filename else ""
        return f"The file{named} can't be used: {error.strerror or error}.", 1
    again = "IOCAST_DEBUG=1 in the environment shows where; please report it"
    if files and isinstance(error, ValueError | TypeError | LookupError | AttributeError | ArithmeticError | RecursionError | MemoryError):
        return f"The content of '{files[0]}' can't be used, or iocast has a defect ({what}). Check that file{' and ' + repr(str(files[1])) if files[1:] else ''}; if it is right, {again}.", 2
    return f"iocast has a defect ({what}); {again}.", 1
