# SPDX-License-Identifier: Apache-2.0
"""Which structure a calibration finds, when the truth is one of the family's."""

from pathlib import Path

import yaml

from iocast import binaries
from iocast.calibrate import calibrate
from iocast.run_directory import Run, group

FAMILY = """
schema_version: 1
stations: {server: {servers: 16}}
demands: {make: 2ms, look: {law: lognormal, mean: 1ms, sigma: 0.1}, fetch: {law: lognormal, mean: 3ms, sigma: 0.1}, drop: 1500us}
operations:
  create: {open: [{station: server, demand: make}], write: [], close: []}
  stat: [{station: server, demand: look}]
  read: {open: [{station: server, demand: fetch}], read: [], close: []}
  unlink: [{station: server, demand: drop}]
  mkdir: []
  rmdir: []
calibration:
  laws: {make: create.open, look: stat, fetch: read.open, drop: unlink}
  choices:
    threads: {16: {}, 1: {edit: {stations: {server: {servers: 1}}}}, 2: {edit: {stations: {server: {servers: 2}}}}, 4: {edit: {stations: {server: {servers: 4}}}}}
    slowdown:
      contention: {parameters: {contention: {path: stations.server.contention, low: 0.0001, high: 1, start: 0.01}}}
      none: {}
    order: {none: {}, turns: {edit: {stations: {server: {discipline: ps}}}}}
"""


def test_two_threads_that_take_turns_are_told_from_many_that_contend(tmp_path: Path) -> None:
    """With many threads, contention makes all operations longer in proportion, much as turns do: from there no single step leads to the truth."""
    (tmp_path / "family.yaml").write_text(FAMILY)
    truth = tmp_path / "truth.yaml"
    truth.write_text(yaml.safe_dump({"schema_version": 1, "extends": "family.yaml", "stations": {"server": {"servers": 2, "discipline": "ps"}}}))
    runs = []
    for ranks in (1, 2, 4, 8):
        for repeat in (1, 2):
            out = tmp_path / f"n{ranks}-{repeat}"
            sets = ["--set", "datasets=1", "--set", "objects=400", "--set", "iterations=400"]
            binaries.run_json([binaries.find("iocast-sim"), "--platform", str(truth), *sets, "--ppn", str(ranks), "--seed", str(10 * ranks + repeat), "--out", str(out), "--json"])
            runs.append(Run(out, "benchmark"))
    fitted = calibrate(group(runs), str(tmp_path / "family.yaml"), 0, lambda *_: None)["fitted"]
    assert (fitted["structure"]["threads"], fitted["structure"]["order"]) == ("2", "turns")
    assert not [note for note in fitted["notes"] if note.startswith(("Misfit", "Alarm"))]
