# SPDX-License-Identifier: Apache-2.0
"""Calibration of a family on operations on open objects: the truth is a platform of that family, measured by
simulation."""

import json
from pathlib import Path
from unittest.mock import ANY

import msgspec
import pytest
import yaml
from iocast.ground import binaries
from iocast.calibrate.fit import calibrate
from iocast.calibrate.recipe import read_recipe
from iocast.platforms.fitted import Fitted
from iocast.forecasts.answer import predict
from iocast.runs.run_directory import Run, group

SIMULATOR = binaries.find("iocast-sim")


def measured(truth: Path, directory: Path, phase: str, settings: dict[str, str]) -> list[Run]:
    runs = []
    for ranks in (1, 2, 4, 8):
        out = directory / f"{phase}-{ranks}"
        sets = [f"--set={name}={value}" for name, value in settings.items()]
        binaries.run_json(
            [
                SIMULATOR,
                "--platform",
                str(truth),
                "--workload",
                "probe",
                *sets,
                "--nodes",
                "1",
                "--ppn",
                str(ranks),
                "--seed",
                str(ranks),
                "--out",
                str(out),
                "--json",
            ]
        )
        runs.append(Run(out, phase))
    return runs


@pytest.mark.parametrize(("phase", "laws"), [("write", {"open", "pwrite", "fsync", "close"})])
def test_accesses_are_fitted(tmp_path: Path, phase: str, laws: set[str]) -> None:
    truth = tmp_path / "truth.yaml"
    truth.write_text(
        yaml.safe_dump(
            {
                "schema_version": 1,
                "extends": "local",
                "stations": {"cpu": {"servers": 2, "contention": 0.2}},
                "demands": {
                    "pwrite": {"law": "lognormal", "mean": "20us", "sigma": 0.4},
                    "pread": {"law": "lognormal", "mean": "12us", "sigma": 0.4},
                },
            }
        )
    )
    runs = measured(truth, tmp_path, phase, {"objects": "1", "accesses": "2000", "blocks": "1", "access_size": "4KiB"})
    for run in runs:
        environment = {"cpus_per_node": 2, "timeslice_seconds": 0.003}
        run.record = msgspec.structs.replace(run.record, environment=environment)
    document = calibrate(group(runs), "local", 0, lambda *_: None)
    # What the runs' node tells of itself is not fitted.
    assert document["stations"]["cpu"] | {"servers": 2, "quantum": "0.003s"} == document["stations"]["cpu"]
    assert (
        "stations.cpu.quantum" not in document["fitted"]["parameters"]
        and "stations.cpu.contention" in document["fitted"]["parameters"]
    )
    assert laws <= set(document["demands"])
    assert not {"create.open", "readdir"} & set(document["demands"])
    # What was measured holds the bytes; what was not is left as the family has it.
    access = "pwrite" if phase == "write" else "pread"
    assert document["operations"][access] == [{"station": "cpu", "demand": access}]
    assert "readdir" not in document["operations"]
    held_out = {row["quantity"]: row for row in document["fitted"]["holdout"]["rows"]}
    assert abs(held_out[f"{access}.q50"]["error"]) < 0.15
    (tmp_path / "fitted.yaml").write_text(yaml.safe_dump(json.loads(json.dumps(document))))
    # Forecasts are of that phase, too.
    forecast = predict(Fitted.open(str(tmp_path / "fitted.yaml")), None, {}, 1, 8)
    assert forecast["phase"] == phase and {"rate", f"{access}.q99"} <= set(forecast["quantities"])
    resolved = binaries.run_json([SIMULATOR, "--platform", str(tmp_path / "fitted.yaml"), "--print-platform"])
    assert resolved["operations"][access][0]["steps"][0]["bandwidth"] == 0


@pytest.mark.parametrize("family", ["beegfs", "cephfs", "lustre"])
def test_what_a_clients_cache_answers_goes_no_way(family: str) -> None:
    """A lone rank's times are kept whatever time the network gets, also of requests that take less than that."""
    recipe = read_recipe(family)
    (network,) = [p for p in recipe.parameters if p.within]
    for law, way in network.within:
        assert [{"delay": way}, {"station": ANY, "demand": law}, {"delay": way}] in recipe.fixed.values()
    for there, allowed in ((1e-6, 1e-6), (200e-6, 5.05e-6)):
        measured = {"law": "empirical", "probabilities": [0.0, 1.0], "values": ["0.00001s", "0.000012s"]}
        document = {"demands": {law: dict(measured) for law, _ in network.within}}
        network.write(document, there)
        for law, way in network.within:
            assert float(document["demands"][way].removesuffix("s")) == pytest.approx(allowed)
            assert float(document["demands"][law]["shift"].removesuffix("s")) == pytest.approx(-2 * allowed)
