# SPDX-License-Identifier: Apache-2.0
"""A measured workload is done again in simulations: calibrations, forecasts and validations know it by a name and
settings, and these must give the same workload."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from forked import Iocast
from programs import REPOSITORY

from iocast.calibrate.search import Target
from iocast.ground import binaries
from iocast.runs.question import definition_of
from iocast.runs.run_directory import Run, group
from iocast.runs.settings import is_of_a_file, name_for_programs, settings_of

CATALOGUE = sorted(file.stem for file in (REPOSITORY / "workload" / "catalogue").glob("*.yaml"))
NOISE = {"rate": 0.01, "q50": 0.01, "q75": 0.01, "q95": 0.01, "q99": 0.01, "max": 0.1, "mean": 0.01}


@pytest.mark.parametrize("name", CATALOGUE)
def test_name_and_settings_of_a_workload_give_it_again(name: str) -> None:
    workload = binaries.resolve_workload(name, {}, 2, 2)["workload"]
    again = binaries.resolve_workload(name_for_programs(workload), settings_of(workload), 2, 2)["workload"]
    assert (again["pattern"], again["parameters"]) == (workload["pattern"], workload["parameters"])
    assert definition_of(again) == definition_of(workload)
    assert not is_of_a_file(workload)


def test_a_fit_simulates_the_phases_that_were_measured(simulate: Callable[..., dict[str, Any]], tmp_path: Path) -> None:
    """Not those that the pattern 'application' has by itself."""
    sizes = ("--set", "per_process=1MiB", "--set", "transfer_size=256KiB")
    simulate("network", "--workload", "ior-easy", *sizes, "--out", tmp_path / "run")
    (point,) = group([Run(tmp_path / "run", "write")])
    name, settings, nodes, ranks = Target.of(point, NOISE).simulation({"extends": "network"})
    question = binaries.resolve_workload(name, settings, nodes, ranks)["workload"]
    measured = point.first.json["workload"]
    assert definition_of(question) == definition_of(measured)
    sized = {key: question["parameters"][key] for key in ("per_process", "transfer_size")}
    assert sized == {"per_process": 1 << 20, "transfer_size": 1 << 18}


def test_runs_of_a_workload_that_only_a_file_has_are_refused_by_a_fit_to_latencies(
    simulate: Callable[..., dict[str, Any]], iocast: Iocast, tmp_path: Path
) -> None:
    """Simulations would be of another workload, and whatever is fitted would explain that."""
    own = yaml.safe_load((REPOSITORY / "workload" / "catalogue" / "ior-easy.yaml").read_text())
    own["application"]["phases"] = own["application"]["phases"][:1]
    (tmp_path / "own.yaml").write_text(yaml.safe_dump(own))
    for ranks in (1, 2, 4):
        sizes = ("--ppn", str(ranks), "--set", "per_process=1MiB", "--set", "transfer_size=256KiB")
        simulate("network", "--workload", tmp_path / "own.yaml", *sizes, "--out", tmp_path / f"n{ranks}")
    runs = [tmp_path / f"n{ranks}" for ranks in (1, 2, 4)]
    done = iocast("calibrate", *runs, "--platform", "network", "--phase", "write", "--out", tmp_path / "fitted.yaml")
    assert done.returncode == 2 and "are those of no workload of the catalogue" in done.stderr, done.stderr
    assert not (tmp_path / "fitted.yaml").exists()
