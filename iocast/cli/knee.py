# SPDX-License-Identifier: Apache-2.0
"""`iocast knee`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from iocast.cli.app import verb
from iocast.cli.left_over import LeftOver
from iocast.cli.options import (
    FELL_SHORT,
    LOAD,
    OUTPUT,
    BackendName,
    BackendOptions,
    HostFile,
    Json,
    MaxObjects,
    MaxRate,
    MinFree,
    Nodes,
    Ppn,
    Seed,
    Sets,
    SoleUser,
    StopLatency,
    TakeOver,
    refuse_without_effect,
    settings_of,
    take_hosts,
    within,
)
from iocast.errors import InputError, RunError
from iocast.ground.files import duration
from iocast.ground.progress import Steps

if TYPE_CHECKING:
    from iocast.campaign.bench import SharedUse
    from iocast.knee.request import KneeSearch

QUESTION = "Question"
TO_PREDICT = (
    "It measures storage. The load that a platform keeps is found by forecasts at several loads: iocast predict "
    "PLATFORM --set rate=100/s, and create.response.q99 of each (docs/knee.md)."
)


@verb(
    epilog="Examples: iocast knee /scratch/me --slo 'p99(create) < 50 ms' --ppn 8 --budget 10min "
    "--out knees/scratch\n\n"
    "iocast knee /scratch/me --over waiting_factor --ppn 8 --out knees/power\n\n"
    "iocast knee /scratch/me --over accelerators --workload unet3d --slo 'au >= 90 %' --ppn 32 --out knees/fed",
    moved={"--platform": TO_PREDICT, "--platforms": TO_PREDICT},
)
def knee(
    directory: Annotated[
        Optional[Path], typer.Argument(help="Directory on the storage to be measured; its contents are left alone.")
    ] = None,
    slo: Annotated[
        Optional[list[str]],
        typer.Option(
            metavar="LEVEL",
            help="Level to keep, such as 'p99(create) < 50 ms'; may be repeated, then all must hold.  "
            "[default: none; the load of greatest throughput / response time]",
            rich_help_panel=QUESTION,
        ),
    ] = None,
    over: Annotated[
        str,
        typer.Option(
            help="What the load is: rate (open loop, response times from the intended start), "
            "waiting_factor (closed loop), or accelerators (of training; --ppn counts their readers).",
            rich_help_panel=QUESTION,
        ),
    ] = "rate",
    precision: Annotated[
        float,
        typer.Option(
            help="Stop when the knee's interval is narrower than this share of the load.",
            callback=within("a share", 0.01, 1.0, 0.1, ends=True),
            rich_help_panel=QUESTION,
        ),
    ] = 0.1,
    confidence: Annotated[
        float,
        typer.Option(
            help="Confidence level of that interval.",
            callback=within("a probability", 0.5, 1.0, 0.9),
            rich_help_panel=QUESTION,
        ),
    ] = 0.9,
    workload: Annotated[str, typer.Option(help="Workload.", rich_help_panel=LOAD)] = "md-workbench",
    phase: Annotated[str, typer.Option(help="Phase of the workload.", rich_help_panel=LOAD)] = "benchmark",
    sets: Sets = None,
    nodes: Nodes = 1,
    hosts: HostFile = None,
    ppn: Ppn = 1,
    threads_per_rank: Annotated[
        int, typer.Option(help="Ranks that are threads of one process.", min=1, rich_help_panel=LOAD)
    ] = 1,
    length: Annotated[str, typer.Option(help="Planned length of a run.", rich_help_panel=LOAD)] = "5s",
    budget: Annotated[
        str, typer.Option(help="Time after which no further run begins.", rich_help_panel=LOAD)
    ] = "10min",
    backend: BackendName = "posix",
    backend_option: BackendOptions = None,
    take_over: TakeOver = False,
    sole_user: SoleUser = False,
    max_rate: MaxRate = "",
    max_objects: MaxObjects = "",
    stop_latency: StopLatency = "",
    min_free: MinFree = "",
    sweep: Annotated[
        bool,
        typer.Option(
            "--sweep",
            help="Measure nothing: remove what this search, ended early, left on the storage.",
            rich_help_panel=LOAD,
        ),
    ] = False,
    out: Annotated[
        Path, typer.Option(help="Campaign directory; a search that it holds is continued.", rich_help_panel=OUTPUT)
    ] = Path("campaign"),
    seed: Seed = 0,
    json_: Json = False,
) -> None:
    """Search the highest load that keeps a service level.

    Each run's load follows from those before it. Inside a Slurm job runs are started with srun, and on several
    nodes outside of one on those of --hosts. Exit status 4 when
    not even an unloaded system keeps the levels."""
    from iocast.campaign.bench import SharedUse
    from iocast.campaign.launchers import Ended, Ending
    from iocast.campaign.places import left_in
    from iocast.knee import Search, check_levels
    from iocast.knee.probes import Probes
    from iocast.knee.request import KneeSearch
    from iocast.knee.words import knee_text
    from iocast.jobs.slurm import MARGIN, deadline
    from iocast.study.levels import parse_level

    take_hosts(hosts)
    try:
        levels = [parse_level(text) for text in slo or []]
    except InputError as error:
        raise InputError(f"--slo: {error}.") from error
    question = KneeSearch(
        None if directory is None else directory.resolve(),
        out,
        workload,
        settings_of(sets),
        nodes,
        ppn,
        over,
        phase,
        duration(length, "--length", 0.1, 86400),
        seed,
        backend,
        backend_option or [],
        threads_per_rank,
    )
    seconds = duration(budget, "--budget", 1, 30 * 86400)
    limit = deadline()
    use = SharedUse(max_rate, max_objects, stop_latency, min_free, take_over, sole_user)
    if over == "accelerators":
        refuse_without_effect("with --over accelerators", "phase", "confidence")
        _over_accelerators(question, slo or [], seconds, precision, use, sweep=sweep, json_=json_)
        return
    left = LeftOver()
    with Ending(None if limit is None else limit - MARGIN) as ending, Steps(interrupted=left.interrupted) as steps:
        probes = Probes(question, {"levels": [level.text for level in levels]}, ending, use=use)
        left.work = probes
        with left.named(*((Ended,) if sweep else (InputError, RunError))), probes:
            if sweep:
                probes.sweep()
            else:
                check_levels(levels, probes.operations)
                probes.check_extent(seconds)
                search = Search(probes, levels, budget=seconds, confidence=confidence, precision=precision)
                answer = search.run(steps)
    if sweep:
        if probes.scratch is not None and (stays := left_in(probes.scratch)):
            raise RunError(stays)
        print(json.dumps(probes.json) if json_ else f"Nothing of the search in {out} is left on the storage.")
        return
    text = f"{knee_text(answer)}\nWritten to {out}/knee.json; iocast report {out} makes a page of it."
    print(json.dumps(answer) if json_ else text)
    if answer["reason"] == "never met":
        raise typer.Exit(FELL_SHORT)


def _over_accelerators(
    question: KneeSearch, slo: Sequence[str], seconds: float, precision: float, use: SharedUse, *, sweep: bool,
    json_: bool,
) -> None:  # fmt: skip
    """Measures training with more and more accelerators until a level is missed."""
    from iocast.campaign.launchers import Ending
    from iocast.ground.files import write_json
    from iocast.knee.feeding import TRAIN, feeding_text, levels_of, measured
    from iocast.knee.probes import Probes
    from iocast.jobs.slurm import MARGIN, deadline

    if sweep:
        raise InputError(
            "A search over accelerators has a directory for each number of them below --out; remove what one left with "
            "iocast-bench --sweep."
        )
    levels = levels_of(slo, question.workload)
    limit = deadline()
    with Ending(None if limit is None else limit - MARGIN) as ending, Steps() as steps:
        answer = measured(
            replace(question, phase=TRAIN), levels,
            lambda own: Probes(own, {"levels": [level.text for level in levels]}, ending, use=use),
            budget=seconds, precision=precision, report=steps,
        )  # fmt: skip
    write_json(question.out / "fed.json", answer)
    text = (
        f"{feeding_text(answer)}\nWritten to {question.out}/fed.json; iocast report {question.out} makes a page of it."
    )
    print(json.dumps(answer) if json_ else text)
    if answer["answer"] is None:
        raise typer.Exit(FELL_SHORT)
