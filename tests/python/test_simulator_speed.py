# SPDX-License-Identifier: Apache-2.0
"""validation/speed/simulator.py measures. Here: each figure comes from a run of the requested size, a missed target is
reported, and the network beside SimGrid's actors is the same one."""

import json
import os
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[2] / "validation" / "speed" / "simulator.py"


def test_every_figure_is_taken(simulator: Path) -> None:
    environment = {**os.environ, "IOCAST_BUILD": str(simulator.parents[1]), "PYTHONPATH": str(SCRIPT.parents[2])}
    sizes = [
        "--platform",
        "lustre",
        "local",
        "--clients",
        "20",
        "10000",
        "--operations",
        "2000",
        "--actors",
        "100",
        "--actor-operations",
        "20000",
        "--runs",
        "1",
    ]
    done = subprocess.run(
        [sys.executable, str(SCRIPT), *sizes, "--json"],
        capture_output=True,
        text=True,
        env=environment,
        timeout=300,
        check=False,
    )
    reported = json.loads(done.stdout)  # which says what is wrong when the two networks' rates differ by 5 %
    assert [one["platform"] for one in reported["families"]] == ["lustre", "local"]
    for one in reported["families"]:
        few, many = one["sizes"]
        assert few["operations"] >= 2000 and many["operations"] >= 6 * 10_000 and many["events_per_operation"] > 1
        rates = [size["operations_per_second"]["median"] for size in (few, many)]
        assert one["bars"]["growth of an operation's cost"]["value"] == rates[0] / rates[1]
        assert one["bars"]["least requests a second"]["value"] == min(
            rate * size["requests_per_operation"] for rate, size in zip(rates, (few, many))
        )
        # On lustre an operation asks the metadata server, and those with contents an object server as well; local has
        # no servers.
        assert (
            1 < few["requests_per_operation"] < 2 if one["platform"] == "lustre" else few["requests_per_operation"] == 1
        )
    (beside,) = reported["actors"]
    assert (
        beside["clients"] == 100
        and beside["factor"]["median"] == beside["requests_per_second"] / beside["with_actors"] > 1
    )
    bars = [bar for one in reported["families"] for bar in one["bars"].values()] + [reported["bulk"]["seconds"]]
    assert reported["met"] == all(bar["met"] for bar in bars) and done.returncode == (0 if reported["met"] else 4), (
        done.stderr
    )
