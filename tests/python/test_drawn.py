# SPDX-License-Identifier: Apache-2.0
"""The drawn server of `./quickstart` without a directory: its seed, its mechanisms, and its truth beside forecasts."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from schedule import mostly_long
from programs import REPOSITORY

from iocast import drawn
from iocast.ground import binaries
from iocast.platforms.documents import dump
from iocast.report import cautions, story, units
from iocast.report.evidence import comparisons
from iocast.report.figures import beside
from iocast.report.sources import Sources
from iocast.report.tables import _beside

SEEDS = range(12)


def test_a_seed_draws_one_server() -> None:
    """One seed, one server; each has a mechanism outside the family, and each mechanism occurs."""
    documents = [drawn.draw(seed) for seed in SEEDS]
    assert documents == [drawn.draw(seed) for seed in SEEDS]
    assert len({json.dumps(document["demands"]) for document in documents}) == len(SEEDS)
    outside = [document["description"].partition("fuse: ")[2].split(", ") for document in documents]
    every = {one.value for one in drawn.Outside}
    assert all(names and set(names) <= every for names in outside)
    assert {name for names in outside for name in names} == every
    for document, names in zip(documents, outside, strict=True):
        assert ("journal" in document["stations"]) is (drawn.Outside.OWN_STATION.value in names)
        assert ("stalls" in document) is (drawn.Outside.STALLS.value in names)
        assert (document["demands"]["make"]["law"] == "mixture") is (drawn.Outside.TWO_KINDS.value in names)


@pytest.mark.parametrize("seed", mostly_long([0, 1, 2, 3], [0], "a server measured each"))
def test_the_server_can_be_what_is_drawn(seed: int, tmp_path: Path) -> None:
    """iocast-queuefs takes the platform; what it refuses here is the place to mount it on."""
    file = tmp_path / "truth.yaml"
    file.write_text(dump(drawn.draw(seed)))
    served = [binaries.find("iocast-queuefs"), "--platform", str(file), str(tmp_path / "nowhere")]
    done = subprocess.run(served, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "mount point of FUSE" in done.stderr
    resolved = binaries.resolve_platform(file)
    mean = resolved["operations"]["stat"][0]["steps"][0]["demand"]["mean"]
    low, high = drawn.MEANS_MS["getattr"]
    assert 0.9 * low <= 1e3 * mean <= 1.1 * high, "also the mean of a mixture lies in the range"


def validation(rate: float, inside: bool) -> dict[str, Any]:
    row = {"quantity": "rate", "measured": 1000.0, "forecast": rate, "low": rate / 1.2, "high": rate * 1.2}
    row |= {"error": rate / 1000 - 1, "inside": inside, "truth": 1100.0}
    point = {"name": "N=32 T=0", "role": "check", "phase": "benchmark", "waiting_factor": 0, "rows": [row]}
    return {"kind": "validation", "level": 0.9, "points": [point | {"placement": {"ranks": 32, "nodes": 1}}]}


def test_forecast_measurement_and_truth_stand_side_by_side() -> None:
    """In the terminal and in the report, a bad forecast as it is."""
    _, good = drawn.table(validation(1050, True))
    _, bad = drawn.table(validation(2500, False))
    assert [word in good for word in ("1.05 k/s", "1.00 k/s", "1.10 k/s", "+5 %")] == [
        True
    ] * 4 and "outside" not in good
    assert "+150 %, outside" in bad
    compared = comparisons(Sources(validations=[validation(2500, False)]))
    shown = _beside("checked", "", compared, folded=False)
    assert [column.title for column in shown.columns].count("truth") == 1 and shown.rows[0]["truth"] == 1100.0
    assert "the drawn server alone" in shown.note
    known = validation(2500, False)
    del known["points"][0]["rows"][0]["truth"]
    plain = _beside("checked", "", comparisons(Sources(validations=[known])), folded=False)
    assert "truth" not in [column.title for column in plain.columns] and "drawn" not in plain.note
    drawn_ones, others = (beside.data(Sources(validations=[one])) or [] for one in (validation(2500, False), known))
    assert [row["value"] for row in drawn_ones if row["series"] == "truth"] == [1100.0]
    assert not [row for row in others if row["series"] == "truth"]
    text = dict(story.tell(Sources(validations=[validation(2500, False)])).paragraphs)["Truth"].replace(
        units.SPACE, " "
    )
    assert (
        "1.10 k/s" in text
        and "32 ranks" in text
        and "Truth" not in dict(story.tell(Sources(validations=[known])).paragraphs)
    )


def test_a_report_says_that_it_is_no_disk() -> None:
    for kind, warned in (("fuse.iocast", True), ("ext4", False)):
        sources = Sources(campaigns=[{"name": "campaign", "filesystem": {"type": kind}}])
        assert any("no disk" in warning for warning in cautions.warnings(sources)) is warned


def test_the_seed_is_printed_and_repeats_the_server(tmp_path: Path) -> None:
    draw = [sys.executable, "-m", "iocast.drawn", "draw", "--out"]
    first = subprocess.run([*draw, tmp_path / "a.yaml"], capture_output=True, text=True, check=True, cwd=REPOSITORY)
    seed = first.stdout.partition(":")[0].removeprefix("Seed ")
    again = subprocess.run(
        [*draw, tmp_path / "b.yaml", "--seed", seed], capture_output=True, text=True, check=True, cwd=REPOSITORY
    )
    assert again.stdout == first.stdout and (tmp_path / "a.yaml").read_bytes() == (tmp_path / "b.yaml").read_bytes()


@pytest.mark.parametrize(
    ("program", "reason"),
    [("", "was not built"), ("echo 'iocast-queuefs: no /dev/fuse.' >&2; exit 1", "no /dev/fuse")],
    ids=["not built", "no FUSE"],
)
def test_quickstart_says_why_there_is_no_server(program: str, reason: str, tmp_path: Path) -> None:
    """Its function that starts the server fails with a sentence, and then a fresh directory is measured."""
    script = (REPOSITORY / "quickstart").read_text()
    functions = script[script.index("\nserver=\n") : script.index("\nsetup_packages ")]
    if program:
        (tmp_path / "build" / "bin").mkdir(parents=True)
        server = tmp_path / "build" / "bin" / "iocast-queuefs"
        server.write_text(f"#!/bin/sh\n{program}\n")
        server.chmod(0o755)
    (tmp_path / "data").mkdir()
    command = f"set -euo pipefail\nseed=1\n{functions}\nif mount_server . data; then echo mounted; else echo none; fi"
    done = subprocess.run(["bash", "-c", command], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and done.stdout == "none\n"
    assert "FUSE can not be used here" in done.stderr and reason in done.stderr and "truth is not known" in done.stderr
