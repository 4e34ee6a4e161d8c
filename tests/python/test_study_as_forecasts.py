# SPDX-License-Identifier: Apache-2.0
"""A study asks and answers as forecasts do: which phases are simulated, what limits a design, and when the measured
system has no answer."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from schedule import mostly_long
from study_inputs import changed, write

from iocast.records.note import MeasuredNotSimulated
from iocast.calibrate.search import OVERLOADED
from iocast.errors import InputError, RunError
from iocast.platforms.fitted import Fitted
from iocast.forecasts.answer import predict
from iocast.forecasts.request import workload_of
from iocast.study import run_study
from iocast.study.desk import Desk
from iocast.study.evaluate import Result
from iocast.study.spec import read_study
from iocast.study.store import Store
from iocast.jobs.workers import Workers

MAKE, LOOK = ({"station": "mds", "demand": name} for name in ("make", "look"))
PLACE = {"nodes": 2, "ranks_per_node": 4}
BARE: dict[str, Any] = {
    "schema_version": 1, "description": "one server without memory", "source": "made up",
    "stations": {"mds": {"servers": 4}}, "demands": {"make": "100us", "look": "50us"},
    "operations": {"create": {"open": [MAKE], "write": [MAKE], "close": [MAKE]}, "stat": [LOOK]},
}  # fmt: skip
CACHE = {
    "caches": {"inodes": {"objects": 1000}},
    "operations": {
        "create": {"open": [MAKE, {"cache": "inodes"}], "write": [MAKE], "close": [MAKE]},
        "stat": [{"cache": "inodes", "miss": [LOOK]}],
    },
}


@pytest.fixture(autouse=True)
def _built(simulator: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IOCAST_BUILD", str(simulator.parents[1]))


@pytest.fixture
def workers() -> Iterator[Workers]:
    with Workers(1) as made:
        yield made


def desk_of(directory: Path, workers: Workers, **changes: Any) -> Desk:
    study = changed(scales={"one": PLACE}, uncertainty=None, levels=["rate(all) >= 1/s"], **changes)
    return Desk(read_study(write(directory, study)), Store(directory / "store").__enter__(), workers, lambda *_: None)


WORKLOADS = ["md-workbench", "mdtest-easy", "mdtest-hard", "ior-easy", "unet3d", "llama3-8b", "file-server", "ls-lR"]


@pytest.mark.parametrize("platform", mostly_long(["lustre", "nfs"], ["lustre"], "another platform, as the first"))
def test_a_study_simulates_the_phases_that_a_forecast_does(tmp_path: Path, workers: Workers, platform: str) -> None:
    """Of workloads whose phase nobody names: the main ones."""
    workloads = {name: {"workload": name} for name in WORKLOADS}
    desk = desk_of(tmp_path, workers, platform=platform, axes={"x": {"plain": {}}}, workloads=workloads)
    for name in WORKLOADS:
        forecast = workload_of(Fitted.open(platform), name, {}, None, *PLACE.values())
        assert desk.profiles[name]["settings"] == forecast.settings, name
    assert any(one["settings"] for one in desk.profiles.values()), "some workload has phases that are left out"


@pytest.mark.parametrize("together", [True, False])
def test_memory_that_designs_add_counts_where_phases_are_chosen(
    tmp_path: Path, workers: Workers, together: bool
) -> None:
    """By one value of an axis, or by values of two."""
    file = write(tmp_path / "bare", BARE)
    mix = {"mix": {"workload": "md-workbench"}}
    parts = [CACHE] if together else [{key: value} for key, value in CACHE.items()]
    added = {f"axis {place}": {"plain": {}, "more": {"add": part}} for place, part in enumerate(parts)}
    phases = [
        desk_of(tmp_path / name, workers, platform=str(file), axes=axes, workloads=mix)
        .profiles["mix"]["settings"]["phases"].split(",")
        for name, axes in (("without", {"none": {"plain": {}}}), ("with", added))
    ]  # fmt: skip
    assert phases == [["benchmark"], ["precreate", "benchmark"]]


def overloaded() -> RunError:
    error = RunError("The work of others piles up.")
    error.code = OVERLOADED
    return error


@pytest.mark.parametrize(
    ("error", "known"),
    [(overloaded(), True), (InputError("The platform has no route for fsync."), True), (RunError("It broke."), False)],
)
def test_a_measured_system_without_an_answer_says_why(
    tmp_path: Path, workers: Workers, monkeypatch: pytest.MonkeyPatch, error: Exception, known: bool
) -> None:
    """Only where its work piles up, or it can't serve the workload without an edit; what breaks, breaks the study."""
    desk = desk_of(tmp_path, workers)

    def fails(_: Any) -> list[Result]:
        raise error

    monkeypatch.setattr(desk, "_every", fails)
    platform, scale = desk.platforms["lustre"], desk.study.largest
    monkeypatch.setitem(desk._residuals, ("lustre", "mix"), object())
    if not known:
        with pytest.raises(RunError, match=str(error)):
            desk._measured_system(platform, "mix", scale)
        return
    assert desk._measured_system(platform, "mix", scale) == {}
    assert desk.not_simulated == [MeasuredNotSimulated("lustre", "mix", 8, str(error))]


LIMITS: dict[str, dict[str, Any]] = {
    "disks": {"stations.oss.count": 1, "stations.oss.disk.write": "20MB/s"},
    "cards": {"network.node_bandwidth": "50MB/s"},
    "threads": {"stations.oss.servers": 1, "stations.oss.count": 1, "demands.ost_pwrite": "100ms"},
    "nothing full": {"network.node_bandwidth": "500GB/s", "network.server_bandwidth": "500GB/s"},
}


def test_what_limits_a_design_is_what_its_forecast_finds(tmp_path: Path, workers: Workers) -> None:
    """Of levels on rates, lengths and bytes a second, which all miss."""
    settings = {"per_process": "16MiB", "transfer_size": "1MiB"}
    study = changed(
        scales={"one": PLACE}, uncertainty=None, platform="lustre", parts=None, base=None, currency=None,
        workloads={"stream": {"workload": "ior-easy", "settings": settings, "phase": "write"}},
        axes={"limit": {name: {"edit": edits} for name, edits in LIMITS.items()}},
        levels=["time(stream) < 1 us"], search={"replications": 4, "simulate": len(LIMITS)},
    )  # fmt: skip
    answer = run_study(write(tmp_path, study), tmp_path / "answer", workers, lambda *_: None, [])
    found = {}
    for design in answer["designs"]:
        edits = LIMITS[design["values"]["limit"]]
        platform = Fitted.open("lustre", list(edits.items()))
        forecast = predict(platform, "ior-easy", settings, *PLACE.values(), phase="write", solver="simulate")
        why = design["first_failing"]["why"]
        assert why["part"] == "limit" and why["limited_by"] == forecast["limited_by"]
        assert why["text"].split(",")[0] == forecast["bottleneck"].split(",")[0]
        found[design["values"]["limit"]] = why["limited_by"]
    assert found["disks"] == found["cards"] == "links" and len(set(found.values())) >= 3
