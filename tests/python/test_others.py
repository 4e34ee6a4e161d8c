# SPDX-License-Identifier: Apache-2.0
"""Work of others at a station: by rate or by share of its time, and more of it than the station can do."""

from pathlib import Path

import pytest

from iocast import binaries
from iocast.calibrate.search import Simulations
from iocast.errors import InputError, RunError

SETTINGS = {"datasets": "1", "objects": "50", "iterations": "50", "phases": "benchmark"}


def platform(directory: Path, work: str) -> Path:
    file = directory / "mine.yaml"
    file.write_text(f"schema_version: 1\nextends: lustre\ndemands: {{getattr: 50us}}\nbackground:\n  others: {{station: mds, demand: getattr, {work}}}\n")
    return file


def test_a_share_is_a_rate_of_all_servers(tmp_path: Path) -> None:
    resolved = binaries.resolve_platform(platform(tmp_path, "share: 0.25"))
    assert resolved["background"]["others"]["rate"] == pytest.approx(0.25 * 16 / 50e-6)


def test_a_share_and_a_rate(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"mine\.yaml:5.*not both"):
        binaries.resolve_platform(platform(tmp_path, "share: 0.25, rate: 10/s"))
    with pytest.raises(InputError, match=r"mine\.yaml:5"):
        binaries.resolve_platform(platform(tmp_path, "share: 1.5"))


def test_what_piles_up_ends_and_is_told_from_other_failures(tmp_path: Path) -> None:
    with Simulations() as simulations:
        quiet = (platform(tmp_path, "share: 0.25"), "md-workbench", SETTINGS, 2, 2, 1)
        assert simulations.run([quiet])[0]["phases"]
        crowd = (platform(tmp_path, "rate: 10000000/s"), *quiet[1:])
        assert simulations.run_those_that_settle([crowd]) == [None]
        with pytest.raises(RunError, match="others.*mds.*faster than it is served.*Lower its rate"):
            simulations.run([crowd])
        with pytest.raises(InputError):
            simulations.run_those_that_settle([(crowd[0], "no-such-workload", *crowd[2:])])


def test_many_that_are_served_at_once_do_not_pile_up(tmp_path: Path) -> None:
    """20,000 servers in use by others all the time."""
    file = platform(tmp_path, "share: 0.5")
    file.write_text(file.read_text().replace("getattr: 50us", "getattr: 500ms") + "stations: {mds: {servers: 40000}}\n")
    assert binaries.simulate(file, "md-workbench", SETTINGS, 2, 2, 1)["phases"]
