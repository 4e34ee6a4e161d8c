# SPDX-License-Identifier: Apache-2.0
"""What every member of a registry must do; new members are covered at once."""

import hashlib
import json
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from programs import find_program

SIMULATOR = find_program("iocast-sim")
assert SIMULATOR is not None, "iocast-sim is not built; run ./check"


def ask(*arguments: str | Path) -> Any:
    done = subprocess.run([str(SIMULATOR), *map(str, arguments), "--json"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def names(what: str) -> list[str]:
    return [entry["name"] for entry in ask("--list", what)[what]]


SMALL = ["--set", "objects=20", "--set", "iterations=20", "--set", "datasets=2"]


@pytest.mark.parametrize("what", ["workloads", "patterns", "platforms", "primitives"])
def test_every_member_has_a_summary_and_a_description(what: str) -> None:
    for entry in ask("--list", what)[what]:
        assert entry["summary"], entry
        assert ask("--describe", entry["name"])["name"] == entry["name"]


@pytest.mark.parametrize("name", [*names("workloads"), *names("patterns")])
def test_workloads_describe_their_parameters(name: str) -> None:
    described = ask("--describe", name)
    assert described["source"]
    for parameter in described["parameters"]:
        assert parameter["meaning"] and parameter["unit"], parameter


class Asked(NamedTuple):
    """One line of --dump-ops."""

    kind: str
    dataset: int
    object: int
    size: int
    offset: int
    count: int
    stride: int
    flags: int


def streams(workload: str, settings: str, ranks: int, directory: Path) -> list[list[Asked]]:
    chosen = [argument for setting in settings.split() for argument in ("--set", setting)]
    ask("--platform", "local", "--workload", workload, *chosen, "--ppn", ranks, "--dump-ops", directory)
    lines = [(directory / f"ops.{rank}").read_text().splitlines() for rank in range(ranks)]
    return [[Asked(kind, *map(int, rest)) for kind, *rest in (line.split() for line in stream)] for stream in lines]


SMALL_WORKLOADS = [
    pytest.param(name, settings, id=f"{name}-{number}")
    for name in [*names("patterns"), *names("workloads")]
    for number, settings in enumerate(ask("--describe", name)["small"])
]


@pytest.mark.parametrize("name", [*names("workloads"), *names("patterns")])
def test_workloads_name_small_settings(name: str) -> None:
    assert ask("--describe", name)["small"]


@pytest.mark.parametrize("ranks", [1, 3, 8])
@pytest.mark.parametrize(("workload", "settings"), SMALL_WORKLOADS)
def test_workloads_touch_only_what_exists(workload: str, settings: str, ranks: int, tmp_path: Path) -> None:
    """Phase by phase, whatever the order of the ranks within it: nothing is read or deleted that was not made in an earlier phase or
    by the rank itself before, nothing is made or deleted twice, and nothing is left."""
    every = streams(workload, settings, ranks, tmp_path / "a")
    assert every == streams(workload, settings, ranks, tmp_path / "b")
    phases = [[i for i, op in enumerate(stream) if op.kind == "phase"] + [len(stream)] for stream in every]
    assert len({len(p) for p in phases}) == 1
    objects: set[tuple[int, int]] = set()
    datasets: set[int] = set()
    for number in range(len(phases[0]) - 1):
        created: list[tuple[int, int]] = []
        deleted: list[tuple[int, int]] = []
        before, sets_before = set(objects), set(datasets)
        for stream, starts in zip(every, phases, strict=True):
            own: set[tuple[int, int]] = set()
            own_sets: set[int] = set()
            gone: set[tuple[int, int]] = set()
            for kind, dataset, item, *_ in stream[starts[number] + 1 : starts[number + 1]]:
                if kind == "mkdir":
                    own_sets.add(dataset)
                    datasets.add(dataset)
                elif kind == "rmdir":
                    datasets.remove(dataset)
                else:
                    assert dataset in sets_before | own_sets
                    if kind == "create":
                        own.add((dataset, item))
                        created.append((dataset, item))
                    else:
                        assert (dataset, item) in (before | own) - gone, (kind, dataset, item)
                        if kind == "unlink":
                            gone.add((dataset, item))
                            deleted.append((dataset, item))
        assert max(Counter(created).values(), default=1) == 1
        assert max(Counter(deleted).values(), default=1) == 1
        assert not set(created) & before
        objects = (objects | set(created)) - set(deleted)
    assert not objects and not datasets


@pytest.mark.parametrize("platform", names("platforms"))
def test_platforms_serve_every_operation(platform: str) -> None:
    run = ask("--platform", platform, *SMALL, "--nodes", 2, "--ppn", 3)
    assert {phase["name"] for phase in run["phases"]} == {"precreate", "benchmark", "cleanup"}
    for phase in run["phases"]:
        assert phase["rate"] > 0 and phase["errors"] == 0
        for station in phase["stations"].values():
            assert 0 <= station["utilisation"] <= 1 + 1e-9
        # Ranks that never think are inside an operation all the time that they run.
        assert phase["responding_seconds"] == pytest.approx(sum(phase["rank_seconds"]), rel=1e-6)


@pytest.mark.parametrize("platform", names("platforms"))
def test_same_seed_same_bytes_other_seed_other_bytes(platform: str, tmp_path: Path) -> None:
    def digest(name: str, seed: int) -> str:
        ask("--platform", platform, *SMALL, "--nodes", 2, "--ppn", 3, "--seed", seed, "--out", tmp_path / name)
        content = json.loads((tmp_path / name / "run.json").read_text())
        del content["command"], content["seed"]
        return hashlib.sha256(json.dumps(content).encode() + (tmp_path / name / "latency.hlog").read_bytes()).hexdigest()

    assert digest("a", 1) == digest("b", 1) != digest("c", 2)


@pytest.mark.parametrize("platform", names("platforms"))
def test_waiting_factor_makes_concurrency(platform: str) -> None:
    """Q = N/(1+T) path by path, when sleeps last as long as asked and waking costs nothing; else a little less."""
    resolved = ask("--describe", platform)
    run = ask("--platform", platform, *SMALL, "--nodes", 2, "--ppn", 4, "--set", "waiting_factor=3", "--set", "phases=benchmark")
    phase = run["phases"][0]
    inside = phase["responding_seconds"] / (phase["responding_seconds"] + phase["think_actual_seconds"])
    if resolved["clients"]["think_overshoot"] == 0 and "wake" not in resolved["operations"]:
        assert inside == pytest.approx(1 / 4, rel=1e-6)
    else:
        assert inside < 1 / 4
