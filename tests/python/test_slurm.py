# SPDX-License-Identifier: Apache-2.0
"""Job scripts, and campaigns measured by them on a real Slurm of this one machine."""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from subprocess import CompletedProcess

import pytest
from programs import REPOSITORY, find_program
from slurm_cluster import PARTITION, Cluster

from iocast.jobs import slurm
from iocast.campaign.plan import read_plan
from iocast.errors import InputError, RunError
from iocast.jobs.slurm import JobOptions, write_scripts
from iocast.jobs.workers import Workers

Iocast = Callable[..., CompletedProcess[str]]

SMALL = """schema_version: 1
workload: md-workbench
settings: {datasets: 1, objects: 50, iterations: 50}
repeats: 1
benchmark_repeats: 1
points:
  - {nodes: 1, ranks: [1, 3]}
"""
LONG = SMALL.replace("objects: 50, iterations: 50", "objects: 400, iterations: 400").replace(
    "ranks: [1, 3]", "ranks: 2, waiting_factor: [500]"
)


@pytest.mark.parametrize(
    "text, minutes",
    [
        ("90", 90),
        ("5:03", 5.05),
        ("1:30:00", 90),
        ("2-0", 2880),
        ("1-12:30", 2190),
        ("1-12:30:30", 2190.5),
        ("UNLIMITED", None),
        ("", None),
        ("1:2:3:4", None),
    ],
)
def test_times_as_slurm_writes_them(text: str, minutes: float | None) -> None:
    assert slurm._minutes(text) == minutes


def test_scripts_one_for_each_number_of_nodes(tmp_path: Path, iocast: Iocast) -> None:
    (tmp_path / "c.yaml").write_text(
        SMALL.replace("{nodes: 1, ranks: [1, 3]}", "{nodes: [1, 4], ranks_per_node: [2, 8]}")
    )
    (tmp_path / "root").mkdir()
    ask = (
        "measure",
        tmp_path / "root",
        "--campaign",
        tmp_path / "c.yaml",
        "--out",
        tmp_path / "out",
        "--slurm-only-write",
        "--json",
    )
    done = iocast(
        *ask, "--slurm-time", "2:00:00", "--slurm-option=--partition=compute", "--set", "objects=70", "--seed", "3"
    )
    assert done.returncode == 0, done.stderr
    printed = json.loads(done.stdout)
    assert printed["jobs"] == [] and [Path(s).name for s in printed["scripts"]] == ["c-1.sbatch", "c-4.sbatch"]
    text = Path(printed["scripts"][1]).read_text()
    for line in ("--nodes=4", "--exclusive", "--time=2:00:00", "--partition=compute", "--signal=B:USR1@60"):
        assert f"#SBATCH {line}\n" in text
    assert "--set objects=70" in text and "--seed 3" in text and text.rstrip().endswith("--only-nodes 4")
    subprocess.run(["bash", "-n", printed["scripts"][1]], check=True)
    assert not (tmp_path / "out" / "campaign.json").exists()
    for wrong, words in (
        (("--slurm-time", "soon"), "no time limit"),
        (("--slurm-option", "partition=x"), "no option of sbatch"),
    ):
        done = iocast(*ask, *wrong)
        assert done.returncode == 2 and words in done.stderr


def test_no_name_gets_out_of_a_job_script(tmp_path: Path, iocast: Iocast) -> None:
    """Names of the plan, of the output directory and of the measured place, with quotes, blanks, patterns of sbatch and
    commands in them."""
    hostile = "c\ntouch PWNED\n$(touch PWNED)';touch PWNED;\"%j"
    (tmp_path / f"{hostile}.yaml").write_text(SMALL)
    root, out = tmp_path / f"r $(touch PWNED) {hostile}", tmp_path / 'o $(touch PWNED) "%x'
    root.mkdir()
    done = iocast(
        "measure", root, "--campaign", tmp_path / f"{hostile}.yaml", "--out", out, "--slurm-only-write", "--json"
    )
    assert done.returncode == 0, done.stderr
    (script,) = map(Path, json.loads(done.stdout)["scripts"])
    assert script.stat().st_mode & 0o777 == 0o700
    lines = [line for line in script.read_text().splitlines() if line.startswith("#SBATCH")]
    assert (
        "#SBATCH --job-name=iocast-c_touch_PWNED_" in lines[0]
        and f'#SBATCH --output="{out.parent}/o $(touch PWNED) \\"%%x/slurm/%x-%j.log"' in lines
    )
    # Run with something that prints its arguments in place of Python: they are those of the campaign, whole.
    speaking = tmp_path / "speak"
    speaking.write_text('#!/bin/sh\nprintf "%s\\0" "$@"\n')
    speaking.chmod(0o755)
    script.write_text(script.read_text().replace(f"exec {sys.executable}", f"exec {speaking}"))
    printed = subprocess.run(
        ["bash", str(script)], cwd=tmp_path, capture_output=True, text=True, check=True
    ).stdout.split("\0")
    assert str(root) in printed and str(out) in printed and str(tmp_path / f"{hostile}.yaml") in printed
    assert not list(tmp_path.rglob("PWNED*"))
    done = iocast(
        "measure", root, "--campaign", tmp_path / f"{hostile}.yaml", "--out", tmp_path / "a\nb", "--slurm-only-write"
    )
    assert done.returncode == 2 and "choose another --out" in done.stderr and not (tmp_path / "a\nb").exists(), (
        done.stderr
    )


def test_without_slurm_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "c.yaml").write_text(SMALL)
    scripts = write_scripts(read_plan(str(tmp_path / "c.yaml")), ["x"], tmp_path, JobOptions())
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RuntimeError, match="sbatch is not installed"):
        slurm.submit(scripts)
    with pytest.raises(InputError, match="no time limit"):
        JobOptions("1 h").check()


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster() as running:
        yield running


@pytest.fixture
def ask(cluster: Cluster, tmp_path: Path) -> Callable[..., CompletedProcess[str]]:
    """iocast measure --slurm, in the cluster's environment."""
    build = find_program("iocast-bench")
    assert build is not None, "iocast-bench is not built; run ./check"
    (tmp_path / "root").mkdir()
    environment = {**cluster.environment, "PYTHONPATH": str(REPOSITORY), "IOCAST_BUILD": str(build.parents[1])}

    def call(campaign: str, *arguments: str) -> CompletedProcess[str]:
        (tmp_path / "c.yaml").write_text(campaign)
        command = [
            sys.executable,
            "-m",
            "iocast",
            "measure",
            str(tmp_path / "root"),
            "--campaign",
            str(tmp_path / "c.yaml"),
            "--out",
            str(tmp_path / "out"),
            "--slurm",
        ]
        return subprocess.run(
            [*command, *arguments], env=environment, capture_output=True, text=True, check=False, timeout=120
        )

    return call


def log_of(out: Path) -> str:
    return "\n".join(p.read_text() for p in sorted((out / "slurm").glob("*.log")))


@pytest.mark.needs("slurm")
def test_a_campaign_is_measured_by_a_job(
    cluster: Cluster, ask: Callable[..., CompletedProcess[str]], tmp_path: Path
) -> None:
    done = ask(SMALL, "--json")
    assert done.returncode == 0, done.stderr
    (job,) = json.loads(done.stdout)["jobs"]
    assert job.isdigit()
    cluster.wait_for_jobs()
    campaign = json.loads((tmp_path / "out" / "campaign.json").read_text())
    assert {p["name"]: p["status"] for p in campaign["points"]} == {"n1-t0-r1": "complete", "n3-t0-r1": "complete"}, (
        log_of(tmp_path / "out")
    )
    run = json.loads((tmp_path / "out" / "runs" / "n3-t0-r1" / "run.json").read_text())
    # One MPI program of three ranks, not three programs of one.
    assert (
        run["placement"]["ranks"] == 3
        and len(run["phases"][0]["rank_seconds"]) == 3
        and run["phases"][0]["errors"] == 0
    )
    assert not any((tmp_path / "root").iterdir())
    refused = ask(SMALL, "--slurm-option=--partition=none-such")
    assert (
        refused.returncode == 1
        and "did not take the job script" in refused.stderr
        and "Traceback" not in refused.stderr
    )


@pytest.mark.needs("slurm")
def test_workers_that_slurm_refuses_are_not_waited_for(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in cluster.changed.items():
        monkeypatch.setenv(name, value)
    with Workers(2, slurm=True, slurm_options=("--partition=nowhere",)) as workers, pytest.raises(RunError) as refused:
        list(workers.map(len, [[]]))
    assert "does not take the workers' jobs" in str(refused.value) and "nvalid partition" in str(refused.value)


@pytest.mark.needs("slurm")
def test_a_near_time_limit_begins_nothing(
    cluster: Cluster, ask: Callable[..., CompletedProcess[str]], tmp_path: Path
) -> None:
    """A job of one minute is within a minute of its limit from the start."""
    assert ask(SMALL, "--slurm-time", "1").returncode == 0
    cluster.wait_for_jobs()
    assert "the time limit of the job is near" in log_of(tmp_path / "out") and "2 runs are left" in log_of(
        tmp_path / "out"
    )
    campaign = json.loads((tmp_path / "out" / "campaign.json").read_text())
    assert [p["status"] for p in campaign["points"]] == ["planned", "planned"]
    # The same command with more time goes on.
    assert ask(SMALL).returncode == 0
    cluster.wait_for_jobs()
    assert [p["status"] for p in json.loads((tmp_path / "out" / "campaign.json").read_text())["points"]] == [
        "complete"
    ] * 2, log_of(tmp_path / "out")


@pytest.mark.needs("slurm")
def test_the_signal_before_the_limit_keeps_what_was_measured(
    cluster: Cluster, ask: Callable[..., CompletedProcess[str]], tmp_path: Path
) -> None:
    """The signal that announces the limit, in the middle of a long run: the ranks end together, and all is kept and
    reported."""
    done = ask(LONG, "--json", f"--slurm-option=--partition={PARTITION}")
    assert done.returncode == 0, done.stderr
    (job,) = json.loads(done.stdout)["jobs"]
    until = time.monotonic() + 120
    while not any(
        manifest.read_text().count('"in progress"') for manifest in (tmp_path / "root").glob("*/*/iocast.manifest.json")
    ):
        assert time.monotonic() < until, log_of(tmp_path / "out") + cluster.logs()
        time.sleep(0.05)
    cluster.client("scancel", "--batch", "--signal=USR1", job)
    cluster.wait_for_jobs(60)
    (run,) = (tmp_path / "out" / "runs").iterdir()
    assert json.loads((run / "run.json").read_text())["status"] == "interrupted", log_of(tmp_path / "out")
    assert [p["status"] for p in json.loads((tmp_path / "out" / "campaign.json").read_text())["points"]] == ["planned"]
    assert (
        "time limit of the job is near" in log_of(tmp_path / "out")
        and "1 run is left" in log_of(tmp_path / "out")
        and "Traceback" not in log_of(tmp_path / "out")
    )


@pytest.mark.needs("slurm")
def test_the_example_job_script(cluster: Cluster, bench: Path, tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    environment = {
        **cluster.environment,
        "PATH": f"{bench.parent}:{cluster.environment['PATH']}",
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
    }
    words = [
        "sbatch",
        "--parsable",
        str(REPOSITORY / "packaging" / "iocast.sbatch"),
        str(tmp_path / "root"),
        "--set",
        "objects=20",
        "--set",
        "iterations=20",
    ]
    job = subprocess.run(
        words, env=environment, cwd=tmp_path, capture_output=True, text=True, check=True
    ).stdout.strip()
    cluster.wait_for_jobs()
    log = (tmp_path / f"iocast-{job}.log").read_text()
    run = json.loads((tmp_path / f"iocast-{job}" / "run.json").read_text())
    assert run["status"] == "complete" and run["placement"]["ranks"] == 2, log
    assert run["environment"]["scheduler"]["name"] == "Slurm" and run["environment"]["scheduler"]["job"] == job
    assert not any((tmp_path / "root").iterdir())
