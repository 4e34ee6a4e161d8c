# SPDX-License-Identifier: Apache-2.0
"""The held-out error is that of a calibration without that scale, in every part: structure, start values, noise."""

from pathlib import Path

import pytest
import yaml

from iocast.ground import binaries
from iocast.calibrate.fit import calibrate
from iocast.calibrate.recipe import read_recipe
from iocast.calibrate.search import whole_settings
from iocast.platforms.fitted import Fitted
from iocast.platforms.documents import dump
from iocast.forecasts.answer import predict
from iocast.runs.run_directory import Point, Run, group
from iocast.records.note_of_measurements import ALARMS

FAMILY = """
schema_version: 1
stations: {server: {servers: 32}}
demands: {look: {law: lognormal, mean: 1ms, sigma: 0.3}}
operations:
  stat: [{station: server, demand: look}]
  create: {open: [{station: server, demand: look}], write: [], close: []}
  read: {open: [{station: server, demand: look}], read: [], close: []}
  unlink: [{station: server, demand: look}]
  mkdir: []
  rmdir: []
calibration:
  laws: {look: stat}
  choices:
    threads:
      32: {}
      2: {edit: {stations: {server: {servers: 2}}}}
      6: {edit: {stations: {server: {servers: 6}}}}
    slowdown:
      none: {}
      contention: {parameters: {contention: {path: stations.server.contention, low: 0.0001, high: 1, start: 0.01}}}
"""
SERVERS = 6
SCALES = (1, 2, 4, 8)


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Point]]:
    """A system of SERVERS servers, two short runs at each scale: where it saturates only the largest shows."""
    place = tmp_path_factory.mktemp("measured")
    (place / "family.yaml").write_text(FAMILY)
    truth = {"schema_version": 1, "extends": "family.yaml", "stations": {"server": {"servers": SERVERS}}}
    (place / "truth.yaml").write_text(yaml.safe_dump(truth))
    runs = []
    for ranks in SCALES:
        for repeat in (1, 2):
            out = place / f"n{ranks}-{repeat}"
            command = [binaries.find("iocast-sim"), "--platform", str(place / "truth.yaml"), "--ppn", str(ranks)]
            command += ["--set", "datasets=1", "--set", "objects=60", "--set", "iterations=60"]
            binaries.run_json([*command, "--seed", str(10 * ranks + repeat), "--out", str(out), "--json"])
            runs.append(Run(out, "benchmark"))
    return place / "family.yaml", group(runs)


def test_the_held_out_forecast_is_that_of_a_calibration_without_that_scale(
    measured: tuple[Path, list[Point]], tmp_path: Path
) -> None:
    family, points = measured
    largest = max(points, key=lambda point: point.ranks)
    whole = calibrate(points, str(family), 0, lambda *_: None)["fitted"]
    smaller = calibrate([point for point in points if point is not largest], str(family), 0, lambda *_: None)
    (tmp_path / "smaller.yaml").write_text(dump(smaller))
    settings = {name: value for name, value in whole_settings(largest.first).items() if name != "phases"}
    forecast = predict(Fitted.open(str(tmp_path / "smaller.yaml")), None, settings, 1, largest.ranks)["quantities"]
    rows = {row["quantity"]: row for row in whole["holdout"]["rows"]}
    alone = {name: one.get("calibrated", one["value"]) for name, one in forecast.items()}
    assert {name: rows[name]["forecast"] for name in alone} == pytest.approx(alone)
    assert (whole["holdout"]["structure"], whole["structure"]["threads"]) == (smaller["fitted"]["structure"], "6")
    # Four ranks don't show that there are six servers. They leave it open, and eight settle it.
    assert 0.05 < rows["rate"]["error"] < 2 * rows["rate"]["spread"]
    assert not {one["code"] for one in whole["cautions"]} & ALARMS
    assert [whole["blend"][group]["because"] for group in ("rate", "latency")] == [None, None]


def test_simulations_of_smaller_scales_are_made_once(
    measured: tuple[Path, list[Point]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the same candidate and scale, by the search of all measurements and by that of the smaller ones."""
    family, points = measured
    made: list[tuple[str, tuple[object, ...]]] = []
    simulate = binaries.simulate

    def counted(platform: Path, *question: object) -> object:
        made.append((platform.read_text(), tuple(map(str, question))))
        return simulate(platform, *question)  # type: ignore[arg-type]

    monkeypatch.setattr(binaries, "simulate", counted)
    calibrate(points, str(family), 0, lambda *_: None)
    searched = [one for one in made if one[1][-1] == "0"]
    assert len(read_recipe(str(family)).choices) == 2 and len(searched) > 50
    assert len(set(searched)) > 0.9 * len(searched)
