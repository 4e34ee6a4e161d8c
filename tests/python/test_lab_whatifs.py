# SPDX-License-Identifier: Apache-2.0
"""Changes of a laboratory's servers, which validation/lab/whatifs.py forecasts and makes."""

from __future__ import annotations

import sys

import pytest

from iocast.lab import servers
from iocast.platforms.fitted import Fitted
from iocast.platforms.platform_names import check_edits
from programs import REPOSITORY

sys.path.append(str(REPOSITORY / "validation" / "lab"))
import whatifs  # noqa: E402


@pytest.mark.parametrize("name", sorted(servers.all_servers()))
def test_every_server_has_changes_that_laboratory_and_platform_know(name: str) -> None:
    kind = servers.find(name)
    changes = whatifs.changes_of(kind)
    assert len(changes) >= 4 and len({one.name for one in changes}) == len(changes)
    station = {"servers": 4, "speed": 1.0, "count": 1}
    for change in changes:
        made = kind.settings_of(change.made(kind))
        assert 1 <= change.nodes <= whatifs.NODES and kind.nodes_of(made) >= 1
        edits = [tuple(edit.split("=")) for edit in change.edits_of("server", station)]
        check_edits(Fitted.open("network", edits))
        # What is made and what is forecast are one change: a setting's factor is that of the station.
        for setting, key, power in (("threads", "servers", 1), ("service", "speed", -1)):
            if factor := change.settings.get(setting):
                assert change.edits[key](station) == pytest.approx(station[key] * factor**power)
        assert bool(change.settings) == bool(change.edits)
    if any(kind.nodes_of({**kind.defaults, count: "2"}) > kind.nodes_of(kind.defaults) for count in kind.counts):
        assert any("count" in change.edits for change in changes)


@pytest.mark.parametrize(
    ("setting", "factor", "text"), [("4ms", 0.5, "2ms"), ("2", 2, "4"), ("1.5GB", 2, "3GB"), ("10us", 0.1, "1us")]
)
def test_a_setting_keeps_its_unit(setting: str, factor: float, text: str) -> None:
    assert whatifs.times(setting, factor) == text


@pytest.mark.parametrize(
    ("title", "station", "why"),
    [
        ("half the threads", {"servers": 1}, "servers stays 1"),
        ("half the threads", {"servers": 2}, ""),
        ("twice the threads", {"servers": 1}, ""),
        ("half the service time", {}, ""),
        ("a node lost", {"servers": 1}, ""),
    ],
)
def test_a_change_that_the_fitted_platform_has_already_is_no_forecast(
    title: str, station: dict[str, float], why: str
) -> None:
    change = next(one for one in whatifs.CHANGES if one.title == title)
    assert change.idle(station) == why


def test_the_table_names_what_is_not_forecast_and_counts_the_others() -> None:
    base = {"quantities": {"rate": {"value": 100.0, "low": 90.0, "high": 110.0}}}
    half = {"quantities": {"rate": {"value": 50.0, "low": 45.0, "high": 55.0}}}
    rates = {"as-it-is": 100.0, "half-the-threads": 52.0, "twice-the-service-time": 50.0}
    by_title = {one.title: one for one in whatifs.CHANGES}
    rows = [
        whatifs.row_of("x", by_title["half the threads"], base, {"idle": "servers stays 1"}, rates),
        whatifs.row_of("x", by_title["twice the service time"], base, half, rates),
    ]
    lines = whatifs.table(rows)
    assert lines[2] == "| x | half the threads | - | -48 % | not forecast: servers stays 1 | - | - | - | 52 /s | - |"
    summary = " ".join(lines[lines.index("") + 1 :])
    assert summary.startswith("Direction right in 1 of 1 forecasts of 2 changes; 1 changes nothing in the fitted")
    assert "Of 1 rates 1 lie within" in summary
    # half the threads of 100 /s are 50 where 52 came; half the speed is exact
    assert summary.endswith("A rule of proportion: 2 of 2 directions, 2.0 % in the median.")
    alone = whatifs.table(rows[1:])
    assert alone[alone.index("") + 1].startswith("Direction right in 1 of 1; size off by 0.0 %")


def test_a_rule_of_proportion_knows_capacity_and_no_links() -> None:
    wanted = {
        "twice the threads": 2,
        "half the threads": 0.5,
        "half the service time": 2,
        "twice the service time": 0.5,
    }
    for change in (*whatifs.CHANGES, *whatifs.further_servers(servers.find("glusterfs"))):
        assert change.proportion == wanted.get(change.title, 2 if "more of" in change.title else 1)
    rows = [
        {"link": True, "proportion": 0.0, "measured gain": -0.5, "error": 0.25},
        {"link": False, "proportion": 1.0, "measured gain": 1.0, "error": 0.5},
    ]
    found = whatifs.by_proportion(rows)
    assert found.endswith("1 of 2 directions, 50.0 % in the median; on links 100 % in the mean, forecasts 25 %.")


def test_a_direction_is_wrong_only_beyond_what_repeats_differ_by() -> None:
    assert whatifs.noise_of([[100.0, 100.0, 100.0], [50.0, 50.0, 50.0]]) == 0
    alike = [
        [100.0, 110.0, 105.0],
        [50.0, 55.0, 52.5],
    ]  # each by 4.8 %; of three numbers half have a variance below 0.69
    noise = whatifs.noise_of(alike)
    assert noise == pytest.approx(0.0477 * (2 / 3 / 0.693) ** 0.5, rel=0.01)
    assert whatifs.noise_of([*alike, [10.0, 20.0, 10.0]]) == pytest.approx(noise), "one slow run"
    assert whatifs.noise_of([*alike, [10.0]]) == 0, "not known"
    assert [whatifs.direction(0.0, gain, noise) for gain in (0.02, -0.07, -0.2)] == ["right", "within noise", "wrong"]
    assert whatifs.direction(0.0, -0.05, 0.0) == "wrong"
    assert whatifs.direction(0.5, -0.02, noise) == "within noise"
    assert whatifs.direction(-0.5, 0.2, noise) == "wrong"
