# SPDX-License-Identifier: Apache-2.0
"""The analytic solver answers for the operations that the simulator carries out at the same placement."""

from pathlib import Path
from typing import Any

import pytest
from registry import described, listed

from iocast.ground import binaries
from iocast.runs import operations
from iocast.errors import InputError
from iocast.platforms.fitted import Fitted
from iocast.runs.operations import MOVES_DATA, is_solved, profile
from iocast.platforms.documents import find_platform
from iocast.forecasts.answer import predict

PLACES = [
    (3, 8),
    *(
        pytest.param(place, marks=pytest.mark.long("other placements of the same workloads; one runs always"))
        for place in ((4, 2), (2, 4), (8, 1))
    ),
]
SMALL = {
    entry["name"]: described("iocast-sim", entry["name"])["small"][0] for entry in listed("iocast-sim", "workloads")
}

SHARED = """\
schema_version: 1
pattern: application
application:
  files: {easy: {per: process}}
  every_access: {file: easy, layout: segmented, size: 1MB, requests: 5000MB / $ranks / 1MB}
  phases: [{name: write, operation: write}]
"""


def settings_of(workload: str) -> dict[str, str]:
    return dict(one.split("=", 1) for one in SMALL[workload].split())


def simulated(workload: str, settings: dict[str, str], nodes: int, ppn: int) -> dict[str, Any]:
    """By phase `{operation: [count, bytes of all]}` in all repeats, of phases that do anything."""
    run = binaries.simulate(find_platform("local"), workload, settings, nodes, ppn, 0)
    found: dict[str, Any] = {}
    for phase in run["phases"]:
        for op, row in phase["by_operation"].items():
            counts = found.setdefault(phase["name"], {}).setdefault(op, [0, 0])
            counts[0] += row["count"]
            counts[1] += row.get("bytes", 0) if op in MOVES_DATA else 0
    return found


def solved(workload: str, settings: dict[str, str], nodes: int, ppn: int) -> dict[str, Any]:
    return {
        name: {
            op: [n * of["repeats"], n * of["repeats"] * of["bytes"][op] * (op in MOVES_DATA)]
            for op, n in of["operations"].items()
        }
        for name, of in profile(workload, settings, nodes, ppn)["phases"].items()
    }


@pytest.mark.parametrize("place", PLACES, ids=str)
@pytest.mark.parametrize("workload", sorted(SMALL))
def test_the_solver_has_the_operations_and_bytes_of_the_simulator(workload: str, place: tuple[int, int]) -> None:
    settings = settings_of(workload)
    try:
        expected = simulated(workload, settings, *place)
    except InputError as refusal:
        with pytest.raises(InputError) as refused:
            profile(workload, settings, *place)
        assert str(refused.value) == str(refusal)
        return
    found = solved(workload, settings, *place)
    assert found.keys() == expected.keys()
    for phase, counts in expected.items():
        assert found[phase].keys() == counts.keys(), phase
        for op, row in counts.items():
            assert found[phase][op] == pytest.approx(row, rel=1e-9), (phase, op)


@pytest.mark.long("of all workloads; the placements and sizes of a few are tested always")
@pytest.mark.parametrize("workload", sorted(SMALL))
def test_some_ranks_stand_for_all_or_nothing_is_solved(workload: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 96 ranks 16 are counted. Chance of single ranks is left."""
    settings = settings_of(workload)
    whole = profile(workload, settings, 12, 8)["phases"]
    monkeypatch.setattr(operations, "MOST", 1)
    sampled = profile(workload, settings, 12, 8)["phases"]
    for name, of in sampled.items():
        if of["unknown"]:
            assert not is_solved(of)
            continue
        assert of["place"] == whole[name]["place"], name
        for op, count in whole[name]["operations"].items():
            assert of["operations"][op] == pytest.approx(count, rel=0.15), (name, op)
            if op in MOVES_DATA:
                assert of["bytes"][op] == pytest.approx(whole[name]["bytes"][op], rel=0.1), (name, op)
        for used in ("datasets", "objects"):
            assert of[used] == pytest.approx(whole[name][used], rel=0.3), (name, used)


def test_long_workloads_of_many_ranks_are_known_by_some_of_them() -> None:
    phases = profile("md-workbench", {}, 500, 48)["phases"]
    assert [is_solved(of) for of in phases.values()] == [True] * 3
    assert phases["benchmark"]["operations"] == dict.fromkeys(("create", "stat", "read", "unlink"), 24000 * 2000)
    assert phases["benchmark"]["datasets"] == 24000 * 10


@pytest.mark.parametrize("ppn", [2, 32])
def test_a_checkpoint_is_solved_with_the_sizes_of_its_placement(ppn: int, tmp_path: Path) -> None:
    """Half of each node's memory is written, by however many ranks."""
    settings = {"arrays": "1", "memory": "1GiB", "record": "1MiB"}
    answer = predict(Fitted.open("lustre"), "hpcs-07", settings, 4, ppn, phase="checkpoint", solver="analytic")
    write = answer["operations"]["pwrite"]
    written = write["bytes_per_second"]["value"] * answer["seconds"]["value"]
    assert written == pytest.approx(4 * 2**29, rel=1e-6)


def test_a_size_is_that_of_the_ranks_that_were_named(tmp_path: Path) -> None:
    """5000 MB are shared by 1000 ranks evenly, and not by six."""
    file = tmp_path / "shared.yaml"
    file.write_text(SHARED)
    phase = profile(str(file), {}, 100, 10)["phases"]["write"]
    assert phase["operations"]["pwrite"] == 5000
    with pytest.raises(InputError, match=r"833\.333, which is no whole number"):
        profile(str(file), {}, 3, 2)
