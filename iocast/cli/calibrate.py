# SPDX-License-Identifier: Apache-2.0
"""`iocast calibrate`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Optional

import typer

from iocast.cli.app import verb
from iocast.cli.options import (
    HERE,
    OUTPUT,
    Json,
    KnownNumbers,
    Seed,
    WorkerOptions,
    measured_points,
    refuse_existing,
    refuse_without_effect,
    WORKER_OPTIONS,
)
from iocast.ground.progress import CONTINUES, Steps

FIT = "Fit"


@verb(epilog="Example: iocast calibrate campaigns/scratch --platform local --out fitted.yaml")
def calibrate(
    sources: Annotated[list[Path], typer.Argument(help="Campaign directories and run directories.")],
    platform: Annotated[
        Optional[str],
        typer.Option(
            help="Platform whose numbers are to be fitted (see: iocast list platforms).  [default: queue for rates "
            "without latencies, else the family of the measured file system]",
            rich_help_panel=FIT,
        ),
    ] = None,
    phase: Annotated[
        Optional[list[str]],
        typer.Option(
            help="A phase of the runs that is fitted; may be repeated.  [default: all but set-up and clean-up]",
            rich_help_panel=FIT,
        ),
    ] = None,
    out: Annotated[Path, typer.Option(help="Platform file to write.", rich_help_panel=OUTPUT)] = Path("fitted.yaml"),
    computing: WorkerOptions = HERE,
    look: Annotated[
        bool, typer.Option("--look", help="Say what the measurements show, and fit nothing.", rich_help_panel=FIT)
    ] = False,
    fit: Annotated[
        Optional[list[str]],
        typer.Option(
            metavar="PATH",
            help="Of published numbers: a demand to be fitted, such as demands.getattr; may be repeated.  [default: "
            "those on the routes that explain the numbers best]",
            rich_help_panel=FIT,
        ),
    ] = None,
    known: KnownNumbers = None,
    seed: Seed = 0,
    json_: Json = False,
) -> None:
    """Fit a platform to measurements; test its largest scale.

    The test fits without the largest measured scale and forecasts that. The search's state lies beside the platform
    (fitted.search.jsonl); after an interruption the same command continues from there. A table of published numbers,
    FACTS.csv, is fitted without runs: a demand for two numbers, each of which is left out once."""
    if len(sources) == 1 and sources[0].suffix == ".csv" and platform is not None:
        refuse_without_effect("of a table of published numbers", "phase", "look", "known", "seed", *WORKER_OPTIONS)
        _calibrate_facts(sources[0], platform, fit or [], out, json_)
        return
    if fit:
        refuse_without_effect("of measured runs, whose family says what is fitted", "fit")
    if look:
        refuse_without_effect("with --look, which fits nothing", "platform", "known", "seed", *WORKER_OPTIONS)
        from iocast.calibrate.findings import findings
        from iocast.calibrate.phases import chosen_phases
        from iocast.wording.calibration import findings_text

        found = [
            {**one.document(), "phase": name}
            for name in chosen_phases(sources, phase or [])
            for one in findings([point for point in measured_points(sources, name) if point.role == "fit"])
        ]
        print(json.dumps(found) if json_ else findings_text(str(one["text"]) for one in found))
        return
    from iocast.api.calibrate import calibrate as fit_runs

    refuse_existing(out)
    with Steps(interrupted=CONTINUES) as steps, computing.start_if_named(out) as crew:
        fitted = fit_runs(
            sources, platform, phases=phase or [], seed=seed, progress=steps, workers=crew, file=out,
            trace=out.with_suffix(".search.jsonl"), known=known or [],
        )  # fmt: skip
    fitted.save(out)
    print(json.dumps(fitted.document()) if json_ else f"{fitted.text()}\nWritten to {out}.")


def _calibrate_facts(file: Path, platform: str, paths: list[str], out: Path, json_: bool) -> None:
    from iocast.api.calibrate_facts import calibrate_facts

    refuse_existing(out)
    with Steps() as steps:
        fitted = calibrate_facts(file, platform, paths=paths, progress=steps)
    fitted.save(out)
    print(json.dumps(fitted.document()) if json_ else f"{fitted.text()}\nWritten to {out}.")
