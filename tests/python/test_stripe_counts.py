# SPDX-License-Identifier: Apache-2.0
"""Where Lustre's objects lie: stripe counts as a setting of a run, and allocation in turn or by name."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest


def ran(simulator: Path, platform: str | Path, workload: str, *options: str) -> subprocess.CompletedProcess[str]:
    command = [str(simulator), "--platform", str(platform), "--workload", workload, "--json", "--brief", *options]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def share(run: subprocess.CompletedProcess[str], phase: str) -> Any:
    [found] = [one for one in json.loads(run.stdout)["phases"] if one["name"] == phase]
    return found["network"]["shares"]["oss"]["share"]


def test_a_shared_file_is_on_as_many_servers_as_it_has_stripes(simulator: Path) -> None:
    hard = ("--nodes", "4", "--ppn", "4", "--set", "segments=357")  # 256 stripes of 1 MiB
    rates = []
    for count in (1, 4, 16):
        run = ran(simulator, "lustre", "ior-hard", *hard, "--stripe-count", str(count))
        assert share(run, "write") == pytest.approx(1 / count, rel=0.02)
        rates.append(json.loads(run.stdout)["phases"][1]["rate"])
    assert rates[0] < rates[1] < rates[2]
    usual = json.loads(ran(simulator, "lustre", "ior-hard", *hard).stdout)["phases"]
    set_to_it = json.loads(ran(simulator, "lustre", "ior-hard", *hard, "--stripe-count", "1").stdout)["phases"]
    assert usual == set_to_it


def test_objects_allocated_in_turn_lie_evenly(simulator: Path, tmp_path: Path) -> None:
    by_name = tmp_path / "by-name.yaml"
    by_name.write_text("schema_version: 1\nextends: lustre\nstations: {oss: {allocation: by-name}}\n")
    easy = ("--nodes", "8", "--ppn", "4", "--set", "per_process=4MiB")
    assert share(ran(simulator, "lustre", "ior-easy", *easy), "write") == pytest.approx(1 / 16)
    assert share(ran(simulator, by_name, "ior-easy", *easy), "write") > 1.4 / 16


def test_weighted_allocation_follows_what_is_free(simulator: Path, tmp_path: Path) -> None:
    """512 files: those on the emptiest of 16 servers are of a binomial law, and none are on a full one."""
    easy = ("--nodes", "64", "--ppn", "8", "--set", "per_process=2MiB")
    file = tmp_path / "weighted.yaml"
    for free, chance in ((["4TB"] + ["1TB"] * 15, 4 / 19), (["1TB", "1TB"] + ["0B"] * 14, 1 / 2)):
        file.write_text(
            "schema_version: 1\nextends: lustre\n"
            f"stations: {{oss: {{allocation: weighted, free: [{', '.join(free)}]}}}}\n"
        )
        deviation = (chance * (1 - chance) / 512) ** 0.5
        assert share(ran(simulator, file, "ior-easy", *easy), "write") == pytest.approx(chance, abs=4 * deviation)


def test_what_a_stripe_count_cannot_be_is_refused(simulator: Path, tmp_path: Path) -> None:
    for platform, count, sentence in (
        ("lustre", "17", "17 is outside its range, 1 to 16"),
        ("nfs", "2", "No station of"),
        ("lustre", "0", "--stripe-count"),
    ):
        done = ran(simulator, platform, "ior-hard", "--stripe-count", count)
        assert done.returncode == 2 and sentence in done.stderr, done.stderr
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text("schema_version: 1\nextends: lustre\nstations: {oss: {allocation: round-robbin}}\n")
    done = ran(simulator, wrong, "ior-hard")
    assert done.returncode == 2 and "wrong.yaml:3" in done.stderr and "round-robin" in done.stderr
