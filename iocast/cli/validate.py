# SPDX-License-Identifier: Apache-2.0
"""`iocast validate`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Optional

import typer

from iocast.cli.app import verb
from iocast.cli.options import (
    FELL_SHORT,
    HERE,
    AnswerFile,
    Json,
    Level,
    Seed,
    WorkerOptions,
    refuse_existing,
    refuse_without_effect,
    within,
    WORKER_OPTIONS,
)
from iocast.errors import InputError
from iocast.ground.files import write_json
from iocast.ground.progress import PATIENCE, Steps

MEASUREMENTS = "Measurements and forecasts"
TARGETS = "Targets"


@verb(
    epilog="Examples: iocast validate fitted.yaml campaigns/scratch --role check\n\niocast validate --published "
    "hpcs2012"
)
def validate(
    platform: Annotated[Optional[str], typer.Argument(help="Fitted platform.")] = None,
    sources: Annotated[
        Optional[list[Path]], typer.Argument(help="Run directories and campaigns with the measurements.")
    ] = None,
    published: Annotated[
        bool,
        typer.Option(
            "--published",
            help="No measurements: simulate and judge published statements. Arguments are names of sources, all "
            "without.",
            rich_help_panel=MEASUREMENTS,
        ),
    ] = False,
    role: Annotated[
        Optional[str],
        typer.Option(help="Only a campaign's points of this role: fit or check.", rich_help_panel=MEASUREMENTS),
    ] = None,
    phase: Annotated[
        Optional[list[str]],
        typer.Option(
            help="A phase; may be repeated.  [default: those of the runs that the platform was fitted to, or of "
            "another workload all but set-up and clean-up]",
            rich_help_panel=MEASUREMENTS,
        ),
    ] = None,
    forecast: Annotated[
        Optional[list[Path]],
        typer.Option(
            help="A forecast made earlier, judged instead of new ones; may be repeated.", rich_help_panel=MEASUREMENTS
        ),
    ] = None,
    most_rate_error: Annotated[
        float,
        typer.Option(
            help="Median throughput error that still passes.",
            callback=within("an error", 0.0, 1.0, 0.25, ends=True),
            rich_help_panel=TARGETS,
        ),
    ] = 0.25,
    least_coverage: Annotated[
        float,
        typer.Option(
            help="Share of values inside their intervals that still passes.",
            callback=within("a share", 0.0, 1.0, 0.7, ends=True),
            rich_help_panel=TARGETS,
        ),
    ] = 0.7,
    level: Level = 0.9,
    out: AnswerFile = None,
    computing: WorkerOptions = HERE,
    seed: Seed = 0,
    json_: Json = False,
) -> None:
    """Compare forecasts with measurements and simpler rules.

    The answer has errors, interval coverage, and the errors of simple rules. Exit status 4 when a target is missed, a
    simple rule is better by more than noise, or no measurement was kept from the calibration."""
    from iocast.api.validate import validate as judge

    if out is not None:
        refuse_existing(out)
    if seed and (published or forecast):
        fixed = "Published statements have a seed of their own" if published else "Earlier forecasts stay as they are"
        raise InputError(f"{fixed}; leave out --seed.")
    if published:
        refuse_without_effect(
            "on published statements",
            *("role", "phase", "forecast", "most_rate_error", "least_coverage", "level"),
            *WORKER_OPTIONS,
        )
        _judge_published([name for name in (platform, *map(str, sources or [])) if name], out, json_)
        return
    if platform is None or not sources:
        raise InputError("Name a fitted platform and measurements: iocast validate FITTED CAMPAIGN; or --published.")
    with Steps(after=PATIENCE) as steps, computing.start_if_named(out or Path("validation")) as crew:
        answer = judge(
            platform, sources, role=role, phases=phase or [], forecasts=forecast or [], level=level,
            most_rate_error=most_rate_error, least_coverage=least_coverage, seed=seed, progress=steps, workers=crew,
        )  # fmt: skip
    if out is not None:
        write_json(out, answer.document())
    print(json.dumps(answer.document()) if json_ else answer.text())
    if not answer.passed:
        raise typer.Exit(FELL_SHORT)


def _judge_published(names: list[str], out: Path | None, json_: bool) -> None:
    from iocast.published import as_text, validate_published

    with Steps(every=5) as steps:
        answer = validate_published(names, steps)
    if out is not None:
        write_json(out, answer)
    print(json.dumps(answer) if json_ else as_text(answer))
    if not answer["passed"]:
        raise typer.Exit(FELL_SHORT)
