# SPDX-License-Identifier: Apache-2.0
"""`iocast selftest`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from iocast.cli.app import verb
from iocast.cli.options import FELL_SHORT, Json, Seed, refuse_existing
from iocast.ground.progress import Steps


@verb(epilog="Example: iocast selftest --out results/self-test")
def selftest(
    out: Annotated[Path, typer.Option(help="Directory for all that the test measures, finds and forecasts.")] = Path(
        "self-test"
    ),
    truth: Annotated[
        str, typer.Option(help="Platform that the file system is: one visit to one station for each operation.")
    ] = "queuefs",
    platform: Annotated[str, typer.Option(help="Platform that is calibrated.")] = "fuse",
    campaign: Annotated[str, typer.Option(help="Campaign by name (campaigns/NAME.yaml) or a YAML file.")] = "selftest",
    seed: Seed = 0,
    json_: Json = False,
) -> None:
    """Test all steps on a file system that is known exactly.

    Mounts a file system with a known metadata server, measures it with up to 8 ranks, calibrates, forecasts 32 ranks,
    measures those, and compares everything with the truth. Exit status 4 when an error is larger than allowed."""
    from iocast.selftest import selftest as test
    from iocast.wording.calibration import selftest_text

    refuse_existing(out)
    with Steps() as steps:
        answer = test(out, truth, platform, campaign, seed, steps)
    print(json.dumps(answer) if json_ else selftest_text(answer))
    if not answer["passed"]:
        raise typer.Exit(FELL_SHORT)
