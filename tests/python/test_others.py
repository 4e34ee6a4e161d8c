# SPDX-License-Identifier: Apache-2.0
"""Work of others at a station: by rate or by share of its time, and more of it than the station can do."""

import json
from pathlib import Path

import pytest

from iocast.ground import binaries
from iocast.calibrate.recipe import NO_LIMIT
from iocast.calibrate.search import Simulations
from iocast.errors import InputError, RunError
from iocast.platforms.fitted import Fitted
from iocast.forecasts.answer import predict

SETTINGS = {"datasets": "1", "objects": "50", "iterations": "50", "phases": "benchmark"}


def platform(directory: Path, work: str) -> Path:
    file = directory / "mine.yaml"
    file.write_text(
        "schema_version: 1\nextends: lustre\ndemands: {getattr: 50us}\nbackground:\n  others: {station: mds,"
        f" demand: getattr, {work}}}\n"
    )
    return file


def test_a_share_is_a_rate_of_all_servers(tmp_path: Path) -> None:
    resolved = binaries.resolve_platform(platform(tmp_path, "share: 0.25"))
    assert resolved["background"]["others"]["rate"] == pytest.approx(0.25 * 16 / 50e-6)


def test_a_share_and_a_rate(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"mine\.yaml:5.*not two"):
        binaries.resolve_platform(platform(tmp_path, "share: 0.25, rate: 10/s"))
    with pytest.raises(InputError, match=r"mine\.yaml:5"):
        binaries.resolve_platform(platform(tmp_path, "share: 1.5"))


def test_a_share_of_a_station_without_limit_has_no_size(tmp_path: Path) -> None:
    """A rate does; and so has a share of any limit."""
    for servers, refused in ((NO_LIMIT - 1, False), (NO_LIMIT, True)):
        file = platform(tmp_path, "share: 0.1")
        file.write_text(file.read_text() + f"stations: {{mds: {{servers: {servers}}}}}\n")
        if refused:
            with pytest.raises(InputError, match=r"mine\.yaml:5.*1000000 servers, which is no limit.*state a rate"):
                binaries.resolve_platform(file)
            file.write_text(file.read_text().replace("share: 0.1", "rate: 100/s"))
        assert binaries.resolve_platform(file)["background"]["others"]["rate"] > 0


def test_a_queue_without_bound_ends_and_is_distinguished_from_other_failures(tmp_path: Path) -> None:
    with Simulations() as simulations:
        quiet = (platform(tmp_path, "share: 0.25"), "md-workbench", SETTINGS, 2, 2, 1)
        assert simulations.run([quiet])[0]["phases"]
        crowd = (platform(tmp_path, "rate: 10000000/s"), *quiet[1:])
        assert simulations.run_those_that_settle([crowd]) == [None]
        with pytest.raises(RunError, match="others.*mds.*faster than it is served.*Lower its rate"):
            simulations.run([crowd])
        with pytest.raises(InputError):
            simulations.run_those_that_settle([(crowd[0], "no-such-workload", *crowd[2:])])


def test_a_candidate_that_leaves_nothing_of_others_work_is_no_failure_of_the_search(tmp_path: Path) -> None:
    file = platform(tmp_path, "share: 0.25")
    file.write_text(file.read_text().replace("getattr: 50us", "getattr: {law: constant, value: 50us, shift: -60us}"))
    with Simulations() as simulations:
        assert simulations.run_those_that_settle([(file, "md-workbench", SETTINGS, 2, 2, 1)]) == [None]


def test_many_that_are_served_at_once_do_not_pile_up(tmp_path: Path) -> None:
    """20,000 servers in use by others all the time."""
    file = platform(tmp_path, "share: 0.5")
    file.write_text(file.read_text().replace("getattr: 50us", "getattr: 500ms") + "stations: {mds: {servers: 40000}}\n")
    assert binaries.simulate(file, "md-workbench", SETTINGS, 2, 2, 1)["phases"]


def test_a_forecast_is_of_those_draws_in_which_nothing_piles_up(tmp_path: Path) -> None:
    """With 16 clients the server slows down until others' work is more than it can do; in half of the draws it doesn't
    slow down."""
    slow = {"extends": "lustre", "stations": {"mds": {"servers": 4, "contention": 1.0}}}
    others = {
        "background": {"others": {"station": "mds", "share": 0.4, "demand": {"law": "exponential", "mean": "1ms"}}}
    }
    kinds = ("rate", "q50", "q75", "q95", "q99", "max")
    draws = [others | {"stations": {"mds": {"servers": 4, "contention": contention}}} for contention in (1.0, 0.01) * 4]
    campaign = {
        "ranks": [1, 2],
        "waiting_factors": [0],
        "points": [],
        "workload": {"name": "md-workbench", "pattern": "md-workbench", "parameters": {}},
    }
    fitted = {
        "campaign": campaign,
        "draws": draws,
        "discrepancy": dict.fromkeys(kinds, 0.1),
        "noise": dict.fromkeys(kinds, 0.01),
        "holdout": {},
        "notes": [],
    }
    file = tmp_path / "fitted.yaml"
    file.write_text(json.dumps({"schema_version": 1, **slow, **others, "fitted": fitted}))
    answer = predict(Fitted.open(str(file)), None, {"datasets": "1", "objects": "100", "iterations": "100"}, 16, 1)
    assert answer["cautions"][0]["code"] == "others-pile-up" and answer["quantities"]["rate"]["value"] > 0
    fitted["draws"] = draws[::2]
    file.write_text(json.dumps({"schema_version": 1, **slow, **others, "fitted": fitted}))
    with pytest.raises(RunError, match="faster than it is served"):
        predict(Fitted.open(str(file)), None, {"datasets": "1", "objects": "100", "iterations": "100"}, 16, 1)
