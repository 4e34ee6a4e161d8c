# SPDX-License-Identifier: Apache-2.0
"""A null takes away what a file extends: in the file, in the document that forecasts and studies make of it, and in
candidates of a calibration."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from iocast.ground import binaries
from iocast.calibrate.recipe import Option
from iocast.platforms.content import whole
from iocast.platforms.fitted import Fitted
from iocast.platforms.documents import Document, dump, get_path, laid_over, merge, set_path

FITTED = "demands: {make: {law: lognormal, mean: 190us, sigma: 0.5}}\nfitted: {campaign: {phase: benchmark}}\n"
NO_STALLS = "stalls: null\n"
UPON = [
    NO_STALLS,
    "stalls: {commit: null}\n",
    "stations: {mds: {contention: null, crowding: null}}\n",
    "network: {latency: null}\n",
    "network: null\n",
    "serves: null\n",
]
OWN_STALL = "stalls: {mine: {station: oss, every: 3s, length: 20ms, operations: [stat]}}\n"
PROSE = ("name", "file", "description", "source")


def meaning(file: Path) -> Any:
    return {key: value for key, value in binaries.resolve_platform(file).items() if key not in PROSE}


def chain_of(folder: Path, *texts: str) -> Path:
    """Files each upon the one before, the first upon lustre."""
    base = "lustre"
    for number, text in enumerate(texts):
        file = folder / f"file-{number}.yaml"
        file.write_text(f"schema_version: 1\nextends: {base}\n{text}")
        base = file.name
    return file


def merged(folder: Path, file: Path) -> Path:
    one = folder / "merged.yaml"
    one.write_text(dump(Fitted.open(str(file)).best()))
    return one


@pytest.mark.parametrize("below", ["", NO_STALLS], ids=["", "stalls: null below"])
@pytest.mark.parametrize("upon", UPON)
def test_files_upon_a_fitted_platform_are_the_same_merged(tmp_path: Path, below: str, upon: str) -> None:
    file = chain_of(tmp_path, FITTED + below, upon)
    assert meaning(merged(tmp_path, file)) == meaning(file)


def test_what_is_put_in_the_place_of_something_taken_away_stands_alone(tmp_path: Path) -> None:
    """With the null in the fitted file, or in one of two files upon it."""
    for texts in ((FITTED + NO_STALLS, OWN_STALL), (FITTED, NO_STALLS, OWN_STALL)):
        file = chain_of(tmp_path, *texts)
        now = meaning(merged(tmp_path, file))
        assert now == meaning(file)
        assert list(now["stalls"]) == ["mine"]


def test_draws_lose_what_is_taken_away(tmp_path: Path) -> None:
    draws = FITTED.replace("}}\n", "}, draws: [{demands: {open: 90us}}, {stations: {mds: {servers: 3}}}]}\n")
    platform = Fitted.open(str(chain_of(tmp_path, draws, NO_STALLS)))
    assert len(platform.draws()) == 2
    for document in (*platform.draws(), platform.best()):
        assert "stalls" not in whole(document)


def test_an_option_of_a_calibration_takes_away_what_the_family_has(tmp_path: Path) -> None:
    edit: Document = {"stalls": None, "stations": {"mds": {"servers": 3, "contention": None}}}
    option = Option("none", edit=edit)
    candidate = laid_over({"schema_version": 1, "extends": "lustre"}, option.edit)
    family = whole({"extends": "lustre"})
    assert whole(candidate) == merge(family, option.edit) != family
    set_path(candidate, "stations.mds.servers", 4)
    set_path(candidate, "network.latency", None, keep_null=True)
    assert get_path(edit, "stations.mds.servers") == 3
    assert "latency" in family["network"] and "latency" not in whole(candidate)["network"]
