# SPDX-License-Identifier: Apache-2.0
"""Slots handed to last comers or split by target, tokens that stay while they are hot, write-back after evictions, and
stalls that grow with the work done: each in a system whose course can be computed by hand."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from iocast.analytic import solve
from iocast.ground.binaries import resolve_platform

Run = Callable[..., dict[str, Any]]
READS = (
    "--workload md-workbench --set datasets=1 --set read_only=true --set phases=benchmark "
    "--set objects={0} --set iterations={0}"
)


@pytest.fixture
def reads(simulate: Run, tmp_path: Path) -> Callable[..., dict[str, Any]]:
    """The benchmark phase of stats and reads in turn on a platform."""

    def run(body: str, iterations: int, nodes: int = 1, ppn: int = 1) -> dict[str, Any]:
        file = tmp_path / "p.yaml"
        file.write_text(f"schema_version: 1\n{body}")
        settings = READS.format(iterations).split()
        return simulate(file, *settings, "--nodes", str(nodes), "--ppn", str(ppn))["phases"][-1]

    return run


def one_slot(barging: float) -> str:
    step = "{limit: m, steps: [{delay: 1ms}]}"
    return (
        f"stations: {{s: {{}}}}\nlimits: {{m: {{slots: 1, barging: {barging}}}}}\noperations:\n"
        f"  stat: [{step}]\n  read: {{open: [{step}]}}\n"
    )


@pytest.mark.parametrize("barging", [0, 0.75, 0.99])
def test_whoever_gets_a_slot_the_rate_is_the_same(reads, barging):
    """N ranks of a node that hold its slot for h: 1 / h operations a second. The median is N h in order of arrival.
    With unfair turns it is 2 h, as who gives the slot up comes back while the next one has it, and others wait long."""
    ranks, iterations = 8, 250
    found = reads(one_slot(barging), iterations, ppn=ranks)
    assert found["seconds"] == pytest.approx(ranks * 2 * iterations * 1e-3)
    stat = found["latency"]["stat"]
    assert stat["q50"] == pytest.approx(ranks * 1e-3 if barging == 0 else 2e-3, rel=0.01)
    assert (stat["max"] > 2 * ranks * 1e-3) is (barging > 0)


def by_target(of: str, wait: str = "limit") -> str:
    visit = "{station: s, demand: 1ms}"
    step = f"{{limit: m, steps: [{visit}]}}" if wait == "limit" else visit
    return (
        f"stations: {{s: {{count: 4, spread: object}}}}\nlimits: {{m: {{slots: 1, per: system{of}}}}}\noperations:\n"
        f"  stat: [{step}]\n  read: {{open: [{step}]}}\n"
    )


def test_slots_of_a_target_are_those_of_nobody_else(reads):
    """A slot for each single server takes the place of its queue, and nothing else changes."""
    ranks, iterations = 16, 100
    split, queues = (reads(by_target(", of: s", wait), iterations, ppn=ranks) for wait in ("limit", "queue"))
    assert split["seconds"] == pytest.approx(queues["seconds"], rel=0.02)
    waits = [found["stations"]["s"]["operations"]["stat"]["wait"] for found in (split, queues)]
    assert waits[0] == 0 < waits[1]
    assert reads(by_target(""), iterations, ppn=ranks)["seconds"] == pytest.approx(ranks * 2 * iterations * 1e-3)


def token(hot: str) -> str:
    step = "{station: s, demand: 1ms, lock: l}"
    return (
        f"stations: {{s: {{servers: 100}}}}\nlocks: {{l: {{per: system, hand_over: 10ms{hot}}}}}\noperations:\n"
        f"  stat: [{step}]\n  read: {{open: [{step}]}}\n"
    )


@pytest.mark.parametrize(
    ("hot", "other"),
    [("", 10e-3), (", hot: 900us, message: 500us", 10e-3), (", hot: 20ms, message: 500us", 0.5e-3)],
    ids=["always moves", "moves when cold", "stays while hot"],
)
def test_a_token_moves_unless_it_is_hot(reads, hot, other):
    """Two nodes in turn, 1 ms each: a move for each use, or one and then a message for each use by the node that
    doesn't have it."""
    iterations = 200
    found = reads(token(hot), iterations, nodes=2)
    uses = 2 * 2 * iterations
    extra = uses * other if other == 10e-3 else uses / 2 * other
    assert found["seconds"] == pytest.approx(uses * 1e-3 + extra, abs=11e-3)


@pytest.mark.parametrize(("instances", "iterations", "objects"), [(1, 300, 100), (1, 300, 1000), (65536, 60000, 4096)])
def test_what_does_not_fit_is_written_back_one_for_one(reads, instances, iterations, objects):
    """Each object beyond the capacity has another one removed, which takes a millisecond. A cache that follows only
    some of its keys, as each of very many does, answers for the others."""
    found = reads(
        f"stations: {{s: {{count: {instances}, spread: dataset}}}}\ncaches: {{c: {{station: s, objects: {objects}}}}}\n"
        "operations:\n  stat: [{delay: 1us}]\n  read: {open: [{cache: c, evict: [{delay: 1ms}]}, {delay: 1us}]}\n",
        iterations,
    )
    evicted = max(0, iterations - objects)
    exact = found["caches"]["c"].get("known", 1) == 1
    assert exact is (instances == 1)
    # an estimate takes a thousand known keys to learn that a cache has become full
    assert found["seconds"] == pytest.approx(2e-6 * iterations + 1e-3 * evicted, rel=1e-6 if exact else 0.15)


@pytest.mark.parametrize(
    ("length", "per_change", "absorbed"), [(10, 0, 0), (10, 0.1, 0), (10, 0.1, 400), (0, 0.1, 4000)]
)
def test_a_stall_is_as_long_as_the_work_before_it(reads, length, per_change, absorbed):
    """One rank, 1 ms a stat: in a period n = every - stall stats begin, and the stall is L0 + c max(0, n - n0) ms."""
    growth = f", per_change: {1000 * per_change:g}us, absorbed: {absorbed}" if per_change else ""
    step = "{station: s, demand: 1ms}"
    iterations = 10_000
    found = reads(
        f"stations: {{s: {{}}}}\nstalls: {{c: {{station: s, every: 1s, length: {length}ms, operations: [stat, read]"
        f"{growth}}}}}\noperations:\n  stat: [{step}]\n  read: {{open: [{step}]}}\n",
        iterations,
    )
    n = 1000 - length if absorbed > 1000 else (1000 - length + per_change * absorbed) / (1 + per_change)
    share = (1000 - n) / 1000
    assert found["seconds"] == pytest.approx(2 * iterations * 1e-3 / (1 - share), rel=0.01)


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("limits: {m: {slots: 1, of: c}}", "is of the client nodes"),
        ("limits: {m: {slots: 1, barging: 2}}", "barging"),
        ("locks: {l: {per: dataset, hot: 1ms, message: 1us}}", "give the lock 'l' a hand_over"),
        ("locks: {l: {per: dataset, hand_over: 1ms, message: 1us}}", "for how long with 'hot'"),
        ("locks: {l: {per: dataset, hand_over: 1ms, hot: 1ms}}", "message"),
        ("locks: {l: {per: object, hand_over: 1ms, extent: 4KiB, hot: 1ms, message: 1us}}", "leave out 'hot'"),
        ("stalls: {x: {station: s, every: 1s, length: 1ms, absorbed: 9, operations: [stat]}}", "'per_change'"),
        (
            "caches: {k: {objects: 1}}\nroute: {cache: k, miss: [{cache: k}], evict: [{delay: 1us}]}",
            "put other caches before",
        ),
    ],
)
def test_what_would_have_no_effect_is_refused(simulator: Path, tmp_path: Path, body: str, why: str) -> None:
    body, _, route = body.partition("\nroute: ")
    (tmp_path / "p.yaml").write_text(
        f"schema_version: 1\nstations: {{s: {{}}, c: {{per: node}}}}\n{body}\noperations:\n"
        f"  stat: [{route or '{delay: 1us}'}]\n"
    )
    done = subprocess.run(
        [str(simulator), "--platform", str(tmp_path / "p.yaml"), "--print-platform"], capture_output=True, text=True
    )
    assert done.returncode != 0 and why in done.stderr


def test_the_resolved_platform_has_them(simulator: Path, tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text(
        "schema_version: 1\nstations: {s: {count: 2}}\nlimits: {m: {slots: 1, of: s, barging: 0.5}, n: {slots: 1}}\n"
        "locks: {l: {hand_over: 1ms, hot: 2ms, message: 1us}}\ncaches: {k: {objects: 1}}\n"
        "stalls: {c: {station: s, every: 1s, length: 1ms, per_change: 1us, absorbed: 5, operations: [stat]}}\n"
        "operations:\n  stat: [{cache: k, evict: [{delay: 1us}]}, {limit: m, steps: [{station: s, demand: 1us}]}]\n"
    )
    done = subprocess.run(
        [str(simulator), "--platform", str(tmp_path / "p.yaml"), "--print-platform"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    found = json.loads(done.stdout)
    assert found["limits"]["m"] == {"slots": 1, "per": "node", "of": "s", "barging": 0.5}
    assert found["limits"]["n"] == {"slots": 1, "per": "node"}
    assert found["locks"]["l"]["hot"] == 0.002 and found["locks"]["l"]["message"]["mean"] == pytest.approx(1e-6)
    assert (found["stalls"]["c"]["per_change"], found["stalls"]["c"]["absorbed"]) == (1e-6, 5)
    assert found["operations"]["stat"][0]["steps"][0]["evict"][0]["delay"]["mean"] == pytest.approx(1e-6)


@pytest.mark.parametrize(("per_change", "absorbed"), [(0, 0), (100, 0), (100, 400)])
def test_the_solver_has_the_same_stalls_and_slots(reads, tmp_path: Path, per_change: int, absorbed: int) -> None:
    """Rates of the analytic solver beside the simulator's; what it leaves out of unfair turns it says."""
    growth = f", per_change: {per_change}us, absorbed: {absorbed}" if per_change else ""
    step = "{limit: m, steps: [{station: s, demand: 1ms}]}"
    iterations = 2000
    found = reads(
        f"stations: {{s: {{}}}}\nlimits: {{m: {{slots: 1, barging: 0.75}}}}\nstalls: {{c: {{station: s, every: 1s, "
        f"length: 10ms, operations: [stat, read]{growth}}}}}\noperations:\n"
        f"  stat: [{step}]\n  read: {{open: [{step}]}}\n",
        iterations,
        ppn=4,
    )
    solution = solve(resolve_platform(tmp_path / "p.yaml"), {"stat": 1, "read": 1}, 1, 4, 0, 8 * iterations)
    assert solution.rate == pytest.approx(found["rate"], rel=0.02)
    assert any("last comers" in one for one in solution.left_out)
