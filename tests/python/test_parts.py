# SPDX-License-Identifier: Apache-2.0
"""Runs that tell whole operations only: where the parts are served must show in the data."""

import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from schedule import mostly_long

from iocast.ground import binaries
from iocast.calibrate import parts
from iocast.calibrate.fit import calibrate
from iocast.platforms.fitted import Fitted
from iocast.platforms.documents import dump
from iocast.forecasts.answer import predict
from iocast.runs.run_directory import Run, group

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path.append(str(REPOSITORY / "validation" / "blind"))
from probes import _as_imported  # noqa: E402

WAY = 80e-6
FAMILY: dict[str, Any] = yaml.safe_load("""
schema_version: 1
stations: {server: {servers: 4}, store: {servers: 2}}
demands:
  network: 5us
  make: 80us
  fetch: 80us
  look: {law: lognormal, mean: 60us, sigma: 0.5}
  bring: {law: lognormal, mean: 300us, sigma: 0.5}
operations:
  create: {open: [{delay: network}, {station: server, demand: make}, {delay: network}], write: [], close: []}
  stat: [{delay: network}, {station: server, demand: look}, {delay: network}]
  read:
    open: [{delay: network}, {station: server, demand: fetch}, {delay: network}]
    read: [{delay: network}, {station: store, demand: bring}, {delay: network}]
    close: []
  unlink: [{delay: network}, {station: server, demand: look}, {delay: network}]
  mkdir: []
  rmdir: []
calibration:
  laws: {make: create.open, look: stat, fetch: read.open, bring: read.read}
  fixed:
    operations.read.read: [{delay: read_way}, {station: store, demand: bring}, {delay: read_way}]
    operations.unlink: [{delay: network}, {station: server, demand: look}, {delay: network}]
  parameters:
    network: {path: demands.network, unit: s, low: 0.000001, high: 0.001, start: 0.00003,
      also: {demands.make.shift: -2, demands.look.shift: -2, demands.fetch.shift: -2}, within: {bring: read_way}}
  choices: {}
""")
LAW = {"law": "lognormal", "mean": "800us", "sigma": 0.6}
TRUTHS: dict[str, dict[str, Any]] = {
    parts.TOGETHER: {
        "demands": {"make": LAW, "look": LAW, "fetch": LAW, "network": f"{WAY}s"},
        "operations": {"read": {"read": []}},
    },
    parts.APART: {
        "demands": {
            "make": LAW,
            "look": LAW,
            "fetch": {"law": "lognormal", "mean": "100us", "sigma": 0.1},
            "bring": {"law": "lognormal", "mean": "1500us", "sigma": 0.6},
            "network": f"{WAY}s",
        }
    },
}


def _simulated(platform: Path, ranks: int, iterations: int, seed: int, out: Path | None = None) -> Any:
    command = [binaries.find("iocast-sim"), "--platform", str(platform), "--ppn", str(ranks), "--json"]
    command += ["--set", "datasets=1", "--set", f"objects={iterations}", "--set", f"iterations={iterations}"]
    return binaries.run_json([*command, "--seed", str(seed), *(["--out", str(out)] if out else [])])


@pytest.mark.parametrize("true", mostly_long(TRUTHS, list(TRUTHS)[:1], "a calibration each"))
def test_where_operations_go_must_show_in_the_measurements(true: str, tmp_path: Path) -> None:
    """The same family, whose reads go to a store too, and runs that don't tell parts: of a system with one server, and
    of one whose reads are mostly served by the store."""
    family, truth, runs = tmp_path / "family.yaml", tmp_path / "truth.yaml", tmp_path / "runs"
    family.write_text(yaml.safe_dump(FAMILY, sort_keys=False))
    truth.write_text(yaml.safe_dump({"schema_version": 1, "extends": "family.yaml", **TRUTHS[true]}))
    for n in (1, 2, 4, 8):
        for repeat in (1, 2):
            _simulated(truth, n, 400, 10 * n + repeat, runs / f"n{n}-{repeat}")
    _as_imported(runs)
    points = group([Run(path, "benchmark") for path in sorted(runs.iterdir())])
    document = calibrate(points, str(family), 0, lambda *_: None)
    fitted = document["fitted"]
    assert fitted["structure"][parts.CHOICE] == true
    assert [note for note in fitted["notes"] if "as a whole only" in note]
    if true == parts.TOGETHER:
        assert fitted["parameters"]["demands.network"]["value"] == pytest.approx(WAY, rel=0.5)
    file = tmp_path / "fitted.yaml"
    file.write_text(dump(document))
    answer = predict(Fitted.open(str(file)), None, {"iterations": "100", "objects": "100"}, 1, 64)["quantities"]
    phase = next(p for p in _simulated(truth, 64, 100, 1)["phases"] if p["name"] == "benchmark")
    assert answer["rate"]["value"] == pytest.approx(phase["rate"], rel=0.04)
    assert answer["read.q50"]["value"] == pytest.approx(phase["latency"]["read"]["q50"], rel=0.1)
