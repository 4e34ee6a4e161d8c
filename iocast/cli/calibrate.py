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
from iocast.files import write_text
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
    from iocast.calibrate.findings import findings
    from iocast.calibrate.phases import calibrate_phases, chosen_phases
    from iocast.fitted import Fitted
    from iocast.plan import next_runs
    from iocast.proposed import telling
    from iocast.platform import dump

    if look:
        refuse_without_effect("with --look, which fits nothing", "platform", "seed", *WORKER_OPTIONS)
        from iocast.wording.calibration import findings_text

        found = [
            one.document() | {"phase": name}
            for name in chosen_phases(sources, phase or [])
            for one in findings([point for point in measured_points(sources, name) if point.role == "fit"])
        ]
        print(json.dumps(found) if json_ else findings_text(found))
        return
    refuse_existing(out)
    with Steps(interrupted=CONTINUES) as steps, computing.start_if_named(out) as crew:
        document = calibrate_phases(
            sources, chosen_phases(sources, phase or []), platform, seed, steps, crew, out.with_suffix(".search.jsonl")
        )
        steps("what a further measurement would tell", 1, 1)
        fitted = document["fitted"]
        requested, proposed = next_runs(
            Fitted(out, fitted, [{key: value for key, value in document.items() if key != "fitted"}], []),
            seed=seed,
            workers=crew,
        )
        fitted["next"] = {"target": requested.document(), "runs": [one.document() for one in proposed]}
    write_text(out, "# SPDX-License-Identifier: Apache-2.0\n" + dump(document))
    if json_:
        print(json.dumps(document))
        return
    from iocast.wording.calibration import calibration_text, next_text

    further = fitted.get("further_phases", {})
    if further:
        print(f"Phase {fitted['campaign']['phase']}")
    print(calibration_text(fitted))
    for name, one in further.items():
        print(f"\nPhase {name}\n{calibration_text(one['fitted'])}")
    print(next_text(fitted.get("open", {}), requested, telling(proposed)))
    print(f"Written to {out}.")
