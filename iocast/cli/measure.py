# SPDX-License-Identifier: Apache-2.0
"""`iocast measure`."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Annotated, Any, Optional

import typer

from iocast.cli.app import verb
from iocast.cli.left_over import LeftOver
from iocast.cli.options import (
    OUTPUT,
    SLURM,
    BackendName,
    BackendOptions,
    HostFile,
    Json,
    MaxObjects,
    MaxRate,
    MinFree,
    Seed,
    SoleUser,
    StopLatency,
    TakeOver,
    settings_of,
    take_hosts,
    refuse_without_effect,
)
from iocast.errors import InputError, RunError
from iocast.ground.progress import Steps, stderr

RUNS = "Runs"
TO_PLAN = "Runs are proposed by: iocast plan --target NODESxRANKS."
TO_KNEE = "A load is searched by: iocast knee DIRECTORY."
TO_BOTH = "It is an option of iocast plan and iocast knee; a campaign file has it as a key (docs/campaigns.md)."
MOVED = {
    "--plan": TO_PLAN,
    "--asked": "The scale to forecast is --target of iocast plan.",
    "--target": TO_PLAN,
    "--platform": TO_PLAN,
    "--find-knee": TO_KNEE,
    "--slo": "A level is kept by: iocast knee DIRECTORY --slo LEVEL.",
    "--over": TO_KNEE,
    "--length": TO_KNEE,
    "--confidence": TO_KNEE,
    "--precision": TO_KNEE,
    "--threads-per-rank": TO_KNEE,
    "--workload": TO_BOTH,
    "--ppn": TO_BOTH,
    "--phase": TO_BOTH,
    "--budget": TO_BOTH,
}


@verb(
    epilog="Examples: iocast measure /scratch/me --campaign quick --dry-run\n\n"
    "iocast measure /scratch/me --campaign quick --out campaigns/scratch\n\n"
    "iocast measure /scratch/me --campaign plan.yaml --out campaigns/planned",
    moved=MOVED,
)
def measure(
    directory: Annotated[
        Optional[Path],
        typer.Argument(
            help="Directory on the storage to be measured; its contents are left alone. Through several mount points: "
            "A,B,C, over which ranks are spread."
        ),
    ] = None,
    campaign: Annotated[
        str, typer.Option(help="Campaign by name (campaigns/NAME.yaml) or a YAML file.", rich_help_panel=RUNS)
    ] = "quick",
    role: Annotated[
        Optional[str], typer.Option(help="Only the points of this role: fit or check.", rich_help_panel=RUNS)
    ] = None,
    nodes: Annotated[
        Optional[int], typer.Option(help="Client nodes, in place of the campaign's own.", min=1, rich_help_panel=RUNS)
    ] = None,
    hosts: HostFile = None,
    sets: Annotated[
        Optional[list[str]],
        typer.Option(
            "--set", metavar="NAME=VALUE", help="A workload parameter; may be repeated.", rich_help_panel=RUNS
        ),
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            help="Measure nothing: print runs, place, files, bytes, inodes, ranks and minutes.",
            rich_help_panel=RUNS,
        ),
    ] = False,
    sweep: Annotated[
        bool,
        typer.Option(
            "--sweep",
            help="Measure nothing: remove what ended runs of this campaign left on the storage.",
            rich_help_panel=RUNS,
        ),
    ] = False,
    observe: Annotated[
        bool,
        typer.Option(
            "--observe", help="Sample this machine during each run, and join that to it.", rich_help_panel=RUNS
        ),
    ] = False,
    backend: BackendName = "posix",
    backend_option: BackendOptions = None,
    take_over: TakeOver = False,
    sole_user: SoleUser = False,
    max_rate: MaxRate = "",
    max_objects: MaxObjects = "",
    stop_latency: StopLatency = "",
    min_free: MinFree = "",
    slurm: Annotated[
        bool,
        typer.Option(
            "--slurm",
            help="Write a job script for each number of nodes into OUT/slurm, and submit them one after the other.",
            rich_help_panel=SLURM,
        ),
    ] = False,
    slurm_only_write: Annotated[
        bool, typer.Option("--slurm-only-write", help="Write the job scripts, submit nothing.", rich_help_panel=SLURM)
    ] = False,
    slurm_time: Annotated[
        str, typer.Option(help="Time limit of a job, in Slurm's notation.", rich_help_panel=SLURM)
    ] = "01:00:00",
    slurm_option: Annotated[
        Optional[list[str]],
        typer.Option(
            metavar="OPTION",
            help="A further option of sbatch, --slurm-option=--partition=NAME; may be repeated.",
            rich_help_panel=SLURM,
        ),
    ] = None,
    out: Annotated[
        Path,
        typer.Option(
            help="Campaign directory; when it exists, what is missing in it is measured.", rich_help_panel=OUTPUT
        ),
    ] = Path("campaign"),
    only_nodes: Annotated[
        Optional[int], typer.Option(hidden=True, help="Only the points with this many nodes.")
    ] = None,
    seed: Seed = 0,
    json_: Json = False,
) -> None:
    """Run a measurement campaign on a storage system.

    Runs are started with mpirun, or with srun inside a Slurm job. Several nodes outside Slurm are those of --hosts, on
    which mpirun must be able to start processes. The same command resumes after whatever ended it."""
    from iocast.campaign.bench import Backend, DROP_CACHES, POSIX, SharedUse, check_backend
    from iocast.campaign.directory import Campaign
    from iocast.campaign.hosts import Hosts
    from iocast.campaign.launchers import Ended, Ending
    from iocast.campaign.places import left_in, mount_points
    from iocast.campaign.plan import Step, read_plan, settings_of_a_run

    if not (slurm or slurm_only_write):
        refuse_without_effect("without --slurm or --slurm-only-write", "slurm_time", "slurm_option")
    if hosts is not None and (slurm or slurm_only_write):
        raise InputError("A Slurm job has nodes of its own; leave out --hosts, or --slurm and --slurm-only-write.")
    take_hosts(hosts)
    if sweep and (dry_run or slurm or slurm_only_write):
        raise InputError("--sweep measures nothing; leave out --dry-run, --slurm and --slurm-only-write.")
    storage = Backend(backend, tuple(backend_option or ()))
    use = SharedUse(max_rate, max_objects, stop_latency, min_free, take_over, sole_user)
    storage.check_place(directory)
    if role not in (None, "fit", "check"):
        raise InputError(f"There is no role '{role}'. Allowed: fit, check.")
    ways = mount_points(directory)
    runs = read_plan(campaign, nodes=nodes, settings=settings_of(sets), mounts=max(1, len(ways)))
    if (named := None if slurm or slurm_only_write or "SLURM_JOB_ID" in os.environ else Hosts.find()) is not None:
        named.first(max((point.nodes for point in runs.of_role(role)), default=1))
    roles = {step.role or point.role for point in runs.points for step in runs.steps or [Step("", {}, "")]}
    if role is not None and role not in roles:
        raise InputError(f"The campaign '{runs.file}' has no point of the role '{role}'; leave --role out.")
    if dry_run:
        from iocast.campaign.dry_run import dry_run as extent_of
        from iocast.campaign.dry_run import dry_run_text, refusal_of, without_object_limit

        check_backend(storage, runs.workload, settings_of_a_run(runs), without_object_limit(use.limits))
        extent = extent_of(
            directory, runs, out, seed, backend=storage, role=role, limits=use.limits, take_over=take_over
        )
        print(json.dumps(extent) if json_ else dry_run_text(extent))
        if refusal := refusal_of(extent):
            raise InputError(refusal)
        return
    check_backend(storage, runs.workload, settings_of_a_run(runs), use.limits)
    if slurm or slurm_only_write:
        arguments = [",".join(str(way.resolve()) for way in ways)] if ways else []
        arguments += ["--campaign", str(runs.file.resolve()), "--out", str(out.resolve()), "--seed", str(seed)]
        for name, value in (("--role", role), ("--nodes", nodes)):
            arguments += [name, str(value)] if value is not None else []
        arguments += [a for one in sets or [] for a in ("--set", one)]
        arguments += ["--observe"] * observe + use.limits + use.claims
        if storage != POSIX:
            arguments += ["--backend", backend, *(f"--backend-option={option}" for option in storage.options)]
        submit = not slurm_only_write
        _measure_by_slurm(runs, arguments, out, slurm_time, slurm_option or [], submit=submit, json_=json_)
        return
    from iocast.jobs.slurm import MARGIN, deadline

    def name_run(steps: Steps) -> Any:
        return lambda run, number, total: steps(f"measuring {run.text} ({run.name})", number, total)

    limit = deadline()
    left = LeftOver()
    with Ending(None if limit is None else limit - MARGIN) as ending, Steps(interrupted=left.interrupted) as steps:
        work = Campaign(
            directory, runs, out, seed,
            backend=storage, observe=observe, only_nodes=only_nodes, ending=ending, use=use, sweeps=sweep, role=role,
        )  # fmt: skip
        left.work = work
        with left.named(*((Ended,) if sweep else (InputError, RunError))), work:
            if sweep:
                work.sweep()
            else:
                work.prepare()
                missing = work.missing(role)
                work.measure(role, name_run(steps))
    if sweep:
        if work.scratch is not None and (stays := left_in(work.scratch)):
            raise RunError(stays)
        print(json.dumps(work.json) if json_ else f"Nothing of the campaign in {out} is left on the storage.")
        return
    complete = sum(run.status == "complete" for run in work.runs)
    if missing and runs.drop_caches and not work.drops_caches:
        stderr.print(
            f"Caches were not dropped between these runs, as the campaign asks, since {DROP_CACHES} can't be "
            "written to: a run may have felt what the one before it left.",
            markup=False,
            soft_wrap=True,
        )
    if json_:
        print(json.dumps(work.json))
    else:
        print(f"{complete} of {len(work.runs)} runs measured, in {out}.")


def _measure_by_slurm(
    plan: Any, arguments: list[str], out: Path, limit: str, options: list[str], *, submit: bool, json_: bool
) -> None:
    from iocast.jobs.slurm import JobOptions, write_scripts
    from iocast.jobs.slurm import submit as hand_in

    scripts = write_scripts(plan, arguments, out, JobOptions(limit, options))
    jobs = hand_in(scripts) if submit else []
    if json_:
        print(json.dumps({"scripts": [str(script) for script in scripts], "jobs": jobs}))
        return
    for i, script in enumerate(scripts):
        print(f"Written {script}{f', submitted as job {jobs[i]}' if jobs else ''}.")
