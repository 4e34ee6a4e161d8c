# SPDX-License-Identifier: Apache-2.0
"""Campaigns on several hosts without Slurm. Every host that mpirun starts is a UTS namespace of this machine."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest
from named_hosts import hosts_of

from iocast.campaign import launchers
from iocast.campaign.hosts import NAMED, Hosts
from iocast.errors import InputError

Iocast = Callable[..., CompletedProcess[str]]
CAMPAIGN = """schema_version: 1
workload: md-workbench
settings: {datasets: 2, objects: 5, iterations: 5}
repeats: 1
points:
  - {nodes: 1, ranks_per_node: 2, role: fit}
  - {nodes: 2, ranks_per_node: 2, role: fit}
"""


@pytest.mark.usefixtures("launch_check")
@pytest.mark.needs("clocks")
def test_a_campaign_runs_on_the_hosts_of_a_file(
    iocast: Iocast, mpi_environment: dict[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    hosts, plan, out = (tmp_path / name for name in ("hosts", "plan.yaml", "out"))
    plan.write_text(CAMPAIGN)
    (tmp_path / "store").mkdir()
    own = hosts_of(tmp_path, "# of a cloud\na slots=8\nb:8\n")
    for name, value in (mpi_environment | own).items():
        monkeypatch.setenv(name, value)
    done = iocast("measure", tmp_path / "store", "--campaign", plan, "--hosts", hosts, "--out", out)
    assert "2 of 2 runs measured" in done.stdout, done.stderr
    runs = [json.loads(file.read_text()) for file in out.glob("runs/*/run.json")]
    assert {run["placement"]["nodes"]: run["environment"]["hosts"] for run in runs} == {1: ["a"], 2: ["a", "b"]}
    assert not list((tmp_path / "store").glob("iocast/*"))


def test_hosts_are_named_once_in_their_order_whatever_the_launcher_writes(tmp_path: Path) -> None:
    file = tmp_path / "hosts"
    for text in ("a\nb\n", "a slots=4 max_slots=8\nb slots=4\n", "a:4\nb:4\n", "a\na\nb\nb\n", "\n# c\na # d\nb"):
        file.write_text(text)
        assert Hosts.read(file).names == ("a", "b")
    file.write_text("fe80::1\nfe80::2\n")
    assert Hosts.read(file).names == ("fe80::1", "fe80::2")


def test_files_that_name_no_host_or_too_few_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "hosts"
    with pytest.raises(InputError, match="can't be read"):
        Hosts.read(file)
    file.write_text("# nobody\n")
    with pytest.raises(InputError, match="names no host"):
        Hosts.read(file)
    file.write_text("a\n")
    with pytest.raises(InputError, match="needs 2 nodes, but .* has 1 host"):
        Hosts.read(file).first(2)


def test_a_job_of_another_batch_system_names_its_hosts_and_the_option_stands_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("of-job", "named"):
        (tmp_path / name).write_text(f"{name}-1\n{name}-2\n")
    for variable in ("PBS_NODEFILE", "LSB_DJOB_HOSTFILE", "OAR_NODEFILE"):
        found = Hosts.find({variable: str(tmp_path / "of-job"), "HOME": "/"})
        assert found is not None and found.names == ("of-job-1", "of-job-2")
    both = {"PBS_NODEFILE": str(tmp_path / "of-job"), NAMED: str(tmp_path / "named")}
    found = Hosts.find(both)
    assert found is not None and found.names[0] == "named-1"
    assert Hosts.find({}) is None
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    monkeypatch.setenv("PBS_NODEFILE", str(tmp_path / "of-job"))
    monkeypatch.setattr(launchers, "_is_open_mpi", lambda: True)
    command = launchers.launcher(2, 4)
    assert "of-job-1:4,of-job-2:4" in command and "ppr:4:node" in command
    handed = launchers.on_other_hosts(command, {"AWS_ACCESS_KEY_ID": "me", "HOME": "/", "IOCAST_CAMPAIGN": "x"})
    assert handed[1:5] == ["-x", "AWS_ACCESS_KEY_ID", "-x", "IOCAST_CAMPAIGN"] and handed[5:] == command[1:]
    monkeypatch.setattr(launchers, "_is_open_mpi", lambda: False)
    assert launchers.launcher(2, 4)[1:5] == ["-hosts", "of-job-1,of-job-2", "-ppn", "4"]
    assert launchers.on_other_hosts(command, {"AWS_ACCESS_KEY_ID": "me"}) == command


def test_hosts_of_a_slurm_job_are_not_named(iocast: Iocast, tmp_path: Path) -> None:
    (tmp_path / "hosts").write_text("a\n")
    for option in ("--slurm", "--slurm-only-write"):
        done = iocast("measure", tmp_path, "--hosts", tmp_path / "hosts", option, "--out", tmp_path / "out")
        assert done.returncode == 2 and "leave out --hosts" in done.stderr
    assert not (tmp_path / "out").exists()
