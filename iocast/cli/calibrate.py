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
    Seed,
    WorkerOptions,
    measured_points,
    refuse_existing,
    refuse_without_effect,
    WORKER_OPTIONS,
)
from iocast.progress import CONTINUES, Steps

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
    seed: Seed = 0,
    json_: Json = False,
) -> None:
    """Fit a platform to measurements; test its largest scale.

    The test fits without the largest measured scale and forecasts that. The search's state lies beside the platform
    (fitted.search.jsonl); after an interruption the same command continues from there."""
    if look:
        refuse_without_effect("with --look, which fits nothing", "platform", "seed", *WORKER_OPTIONS)
        from iocast.calibrate.findings import findings
        from iocast.calibrate.phases import chosen_phases
        from iocast.wording.calibration import findings_text

        found = [
            one.document() | {"phase": name}
            for name in chosen_phases(sources, phase or [])
            for one in findings([point for point in measured_points(sources, name) if point.role == "fit"])
        ]
        print(json.dumps(found) if json_ else findings_text(found))
        return
    from iocast.api.calibrate import calibrate as fit

    refuse_existing(out)
    with Steps(interrupted=CONTINUES) as steps, computing.start_if_named(out) as crew:
        fitted = fit(
            sources, platform, phases=phase or [], seed=seed, progress=steps, workers=crew, file=out,
            trace=out.with_suffix(".search.jsonl"),
        )  # fmt: skip
    fitted.save(out)
    print(json.dumps(fitted.document()) if json_ else f"{fitted.text()}\nWritten to {out}.")
