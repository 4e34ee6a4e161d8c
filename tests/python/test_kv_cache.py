# SPDX-License-Identifier: Apache-2.0
"""Hits of a key-value cache against an exact cache of the test's own, block by block."""

from __future__ import annotations

import json
import random
import subprocess
from collections import OrderedDict
from pathlib import Path

import pytest


def served(simulator: Path, *settings: str, ranks: int = 1) -> dict[str, int]:
    """Operations of the phase `serve`."""
    command = [str(simulator), "--platform", "local", "--workload", "kv-cache", "--json", "--brief"]
    command += ["--ppn", str(ranks), *(part for text in settings for part in ("--set", text))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    [phase] = [one for one in json.loads(done.stdout)["phases"] if one["name"] == "serve"]
    return {name: row["count"] for name, row in phase["by_operation"].items()}


def exact(requests: list[list[int]], capacity: int, pinned: int) -> tuple[int, int]:
    """Hits and misses of a least recently used cache in which a block stays in the priority that it came with."""
    low: OrderedDict[int, None] = OrderedDict()
    high: OrderedDict[int, None] = OrderedDict()
    hits = misses = 0
    for request in requests:
        for place, block in enumerate(request):
            holder = next((one for one in (low, high) if block in one), None)
            if holder is not None:
                hits += 1
                holder.move_to_end(block)
                continue
            misses += 1
            if len(low) + len(high) == capacity:
                (low or high).popitem(last=False)
            (high if place < pinned else low)[block] = None
    return hits, misses


@pytest.mark.parametrize(("capacity", "pinned", "ranks"), [(40, 0, 1), (40, 2, 1), (7, 1, 3), (1, 0, 1)])
def test_hits_of_a_trace_are_those_of_an_exact_cache(
    simulator: Path, tmp_path: Path, capacity: int, pinned: int, ranks: int
) -> None:
    draw = random.Random(3)
    requests = [
        [first := int(draw.paretovariate(0.8)) % 50, *(100 * first + i for i in range(draw.randrange(1, 6)))]
        for _ in range(600)
    ]
    file = tmp_path / "trace.jsonl"
    file.write_text(
        "".join(
            json.dumps({"timestamp": i, "input_length": 9, "output_length": 1, "hash_ids": request}) + "\n"
            for i, request in enumerate(requests)
        )
    )
    found = served(simulator, f"trace={file}", f"capacity={capacity}", f"pinned={pinned}", ranks=ranks)
    each = [exact(requests[rank::ranks], capacity, pinned) for rank in range(ranks)]
    assert (found.get("read", 0), found["create"]) == (sum(hits for hits, _ in each), sum(misses for _, misses in each))
    assert found["create"] - found.get("unlink", 0) <= capacity * ranks


def test_a_popular_conversation_is_kept(simulator: Path) -> None:
    """With 1,000 conversations that are alike a store of 100 blocks has one in ten; of popular ones it has more."""

    def share(zipf: float) -> float:
        found = served(
            simulator, "requests=20000", "conversations=1000", "turn_blocks=1", "capacity=100", f"zipf={zipf}"
        )
        return found["read"] / (found["read"] + found["create"])

    assert share(0) == pytest.approx(0.1, abs=0.012)  # 5 standard deviations
    assert share(0) < share(0.6) < share(1) < share(1.5)


def test_a_later_turn_finds_the_blocks_of_those_before(simulator: Path) -> None:
    """One conversation of three turns: of 1 + 2 + 3 blocks three are new."""
    found = served(simulator, "requests=30", "conversations=1", "turns=3", "turn_blocks=1", "capacity=100")
    assert (found["read"], found["create"]) == (30, 30)


def test_what_is_no_trace_is_refused_with_its_line(simulator: Path, tmp_path: Path) -> None:
    file = tmp_path / "trace.jsonl"
    for text in (
        '{"timestamp": 0, "hash_ids": [1]}\n{"timestamp": 0}\n',
        "\n[1]\n",
        '\n{"timestamp": -1, "hash_ids": []}\n',
    ):
        file.write_text(text)
        done = subprocess.run(
            [simulator, "--platform", "local", "--workload", "kv-cache", "--set", f"trace={file}"],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 2
        assert f"{file}:2: this is no request of a trace" in done.stderr


def test_a_trace_stands_alone_and_its_blocks_are_whole_numbers(simulator: Path, tmp_path: Path) -> None:
    trace = tmp_path / "trace.jsonl"
    command = [str(simulator), "--platform", "local", "--workload", "kv-cache", "--set", f"trace={trace}"]

    def refusal(*more: str) -> str:
        done = subprocess.run([*command, *more], capture_output=True, text=True, check=False)
        assert done.returncode == 2, done.stdout
        return done.stderr

    for blocks in ("[1, 1.5]", "[-1]"):
        trace.write_text(f'{{"timestamp": 0, "hash_ids": {blocks}}}\n')
        assert f"{trace}:1: " in refusal() and "no whole number" in refusal()
    trace.write_text('{"timestamp": 0, "hash_ids": [1, 2]}\n')
    for name in ("requests", "conversations", "zipf", "turns", "turn_blocks"):
        assert f"leave out {name}, or trace" in refusal("--set", f"{name}=2")
