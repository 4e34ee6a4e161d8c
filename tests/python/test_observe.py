# SPDX-License-Identifier: Apache-2.0
"""Observations: what is counted, how they end, and what they say of a run."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest
from programs import REPOSITORY

from iocast.calibrate.reading import observed_demands
from iocast.errors import InputError
from iocast.watching.observe import Observer
from iocast.platforms.fitted import Fitted
from iocast.forecasts.cautions import beyond_observed
from iocast.records.note import BeyondObserved
from iocast.report.page import write_numbers
from iocast.runs.run_directory import Run, group
from iocast.watching.utilisation import Observation, bounds, join, waits_in

Iocast = Callable[..., CompletedProcess[str]]
BURN = "import time, os\nend = time.process_time() + {seconds}\nwhile time.process_time() < end: pass\n"


def started(*arguments: str | Path) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    command = [sys.executable, "-c", "from iocast.cli import main; main()", "observe", *map(str, arguments)]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def wait_for_samples(path: Path, count: int = 3) -> None:
    until = time.monotonic() + 120
    while time.monotonic() < until:
        if path.is_file() and path.read_text().count("\n") > count:
            return
        time.sleep(0.02)
    raise AssertionError(f"{path} has too few samples after 120 s")


def test_processor_time_is_what_was_used(tmp_path: Path) -> None:
    """A process of a name of its own burns half a second of processor time and ends; another of that name follows."""
    program = tmp_path / "burner-for-test"
    program.symlink_to(sys.executable)
    with Observer(tmp_path / "o.jsonl", 0.05, ["burner-for-test"]):
        for _ in range(2):
            subprocess.run([program, "-S", "-c", BURN.format(seconds=0.5)], check=True)
    observation = Observation(tmp_path / "o.jsonl")
    (process,) = [r for r in observation.resources() if r.kind == "process"]
    (cpu,) = [r for r in observation.resources() if r.kind == "cpu"]
    # What a process does after its last sample is lost: at most one interval of each, and a clock tick.
    assert 1.0 - 2 * 0.07 - 0.2 < process.counter[-1] < 1.3
    assert cpu.counter[-1] - cpu.counter[0] > 0.8
    last = observation.samples[-1]["processes"]["burner-for-test"]
    assert last["count"] == 0 and process.counter == sorted(process.counter)


def test_samples_cost_little(tmp_path: Path) -> None:
    """Below 1 % of a core at one sample a second: less than 10 ms of processor time each, as the observer itself
    counts."""
    with Observer(tmp_path / "o.jsonl", 0.02, ["no-such-process"]):
        time.sleep(1.0)
    end = json.loads((tmp_path / "o.jsonl").read_text().splitlines()[-1])
    assert end["end"] and end["samples"] >= 10
    assert end["own_cpu"] / end["samples"] < 0.01


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signals_end_it_cleanly(tmp_path: Path, number: signal.Signals) -> None:
    observer = started("--out", tmp_path / "o.jsonl", "--every", "50ms")
    wait_for_samples(tmp_path / "o.jsonl")
    observer.send_signal(number)
    _, errors = observer.communicate(timeout=120)
    assert observer.returncode == 0 and "Traceback" not in errors, errors
    lines = [json.loads(line) for line in (tmp_path / "o.jsonl").read_text().splitlines()]
    assert lines[0]["kind"] == "observation" and lines[-1]["end"] and lines[-1]["samples"] == len(lines) - 2


def test_a_killed_observer_leaves_what_it_saw(tmp_path: Path) -> None:
    observer = started("--out", tmp_path / "o.jsonl", "--every", "20ms")
    wait_for_samples(tmp_path / "o.jsonl", 5)
    observer.kill()
    observer.communicate(timeout=120)
    with (tmp_path / "o.jsonl").open("a") as file:
        file.write('{"monotonic":1.0,"wa')  # as if it was killed within a line
    assert len(Observation(tmp_path / "o.jsonl").samples) >= 4


def test_the_command_gets_signals_and_its_status_is_kept(tmp_path: Path, iocast: Iocast) -> None:
    done = iocast("observe", "--out", tmp_path / "a", "--every", "50ms", "--", "sh", "-c", "exit 7")
    assert done.returncode == 7
    observer = started("--out", tmp_path / "b", "--every", "50ms", "--", "sleep", "60")
    wait_for_samples(tmp_path / "b")
    observer.terminate()
    observer.communicate(timeout=120)
    assert (
        observer.returncode == 128 + signal.SIGTERM and json.loads((tmp_path / "b").read_text().splitlines()[-1])["end"]
    )


def synthetic(
    directory: Path, *, start: float, phases: list[tuple[str, float, float, int]], hosts: list[str], ranks: int = 2
) -> Path:
    """A run directory that began at `start`; phases are (name, start, seconds, operations)."""
    directory.mkdir()
    run = {
        "schema_version": 1,
        "kind": "run",
        "source": "bench",
        "status": "complete",
        "label": "made",
        "placement": {"ranks": ranks, "nodes": 1, "ranks_per_node": ranks},
        "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(start)),
        "workload": {"name": "w", "pattern": "w", "parameters": {}},
        "environment": {"hosts": hosts},
        "phases": [
            {
                "name": name,
                "repeat": 0,
                "start_seconds": at,
                "seconds": seconds,
                "operations": n,
                "errors": 0,
                "rate": n / seconds,
                "latency": {},
            }
            for name, at, seconds, n in phases
        ],
    }
    (directory / "run.json").write_text(json.dumps(run))
    (directory / "latency.hlog").write_text("")
    ended = start + max(at + seconds for _, at, seconds, _ in phases)
    os.utime(directory / "latency.hlog", (ended, ended))
    return directory


def watched(
    path: Path,
    *,
    start: float,
    seconds: float,
    every: float,
    busy: Callable[[float], tuple[float, float]],
    host: str = "server",
    step: float = 0.0,
) -> Path:
    """An observation of a machine with two cores and a disk, whose counters are `busy(seconds since start)`."""
    header = {
        "schema_version": 1,
        "kind": "observation",
        "host": host,
        "cores": 2,
        "every_seconds": every,
        "processes": ["mds"],
        "memory_bytes": 1,
        "link_megabits": {"eth0": 1000},
    }
    lines = [header]
    for i in range(round(seconds / every) + 1):
        at = i * every
        cpu, disk = busy(at)
        wall = start + at + (step if at > seconds / 2 else 0)
        lines.append({
            "monotonic": 500 + at, "wall": wall, "cpu": [7 + cpu, 3.0], "steal": 0, "iowait": 0, "memory": {},
            "disks": {"sda": {"busy": disk}},
            "links": {"eth0": {"sent": 1e6 * at, "received": 0}}, "processes": {"mds": {"cpu": cpu / 2}},
        })  # fmt: skip
    path.write_text("\n".join(json.dumps(line) for line in lines) + "\n")
    return path


def test_the_utilisation_law(tmp_path: Path) -> None:
    """A server that works 60 % of one core's time during the benchmark, and its disk 25 %: known demands, an exact
    share of each phase."""
    start = 1_800_000_000.25
    run = synthetic(
        tmp_path / "run",
        start=start,
        phases=[("precreate", 0.5, 1.0, 1000), ("benchmark", 2.0, 10.0, 5000), ("cleanup", 12.5, 0.1, 10)],
        hosts=["client"],
    )
    # The observer's clock began 3 s before the run.
    observation = watched(
        tmp_path / "o.jsonl",
        start=start - 3,
        seconds=20,
        every=0.25,
        busy=lambda at: (0.6 * min(max(at - 5, 0), 10), 0.25 * min(max(at - 5, 0), 10)),
    )
    content = join(run, [observation])
    assert content["clock"]["start"] == pytest.approx(start, abs=1e-3)
    precreate, benchmark, cleanup = content["phases"]
    cpu = benchmark["resources"]["server cpu"]
    assert (
        cpu["busy"] == pytest.approx(6.0, rel=1e-6)
        and cpu["utilisation"] == pytest.approx(0.3)
        and cpu["demand"] == pytest.approx(6 / 5000)
    )
    assert benchmark["resources"]["server disk sda"]["utilisation"] == pytest.approx(0.25)
    assert benchmark["resources"]["server process mds"]["demand"] == pytest.approx(3 / 5000)
    # 1 MB/s on a link of 1 Gb/s
    assert benchmark["resources"]["server link eth0 sent"]["utilisation"] == pytest.approx(0.008)
    assert precreate["resources"]["server cpu"]["busy"] == pytest.approx(0)
    assert cleanup["resources"]["server cpu"]["busy"] is None and "Fewer than" in cleanup["note"]
    known = bounds(run)["server cpu"]
    assert known["rate_at_most"] == pytest.approx(2 * 5000 / 6)
    # The report and calibrations read it.
    write_numbers([run], tmp_path / "n.json")
    numbers = json.loads((tmp_path / "n.json").read_text())
    assert {row["resource"] for row in numbers["tables"]["demands"]["rows"]} >= {
        "server cpu",
        "server disk sda",
        "server process mds",
    }
    shares = [
        r["share"]
        for r in numbers["figures"]["utilisation"]["rows"]
        if r["resource"] == "server cpu" and r["kind"] == "used" and 3 < r["at"] < 11
    ]
    assert shares == pytest.approx([0.3] * len(shares), abs=1e-3) and len(shares) > 20
    observed = observed_demands(group([Run(run)]))
    assert observed["server cpu"] == pytest.approx(
        {"servers": 2, "demand": 6 / 5000, "utilisation": 0.3, "ranks": 2, "nodes": 1, "per_node": False}
    )
    fitted = Fitted(Path("x"), {"observed": observed}, [{}], [])
    fits, beyond = ({"value": rate, "low": 0.9 * rate, "high": 1.1 * rate} for rate in (1600.0, 1800.0))
    assert not beyond_observed(fitted, fits, nodes=4)
    (found,) = beyond_observed(fitted, beyond, nodes=4)
    assert isinstance(found, BeyondObserved) and found.resource == "server cpu" and found.allowed < found.rate.value
    assert not beyond_observed(
        Fitted(Path("x"), {"observed": {"client cpu": {**observed["server cpu"], "per_node": True}}}, [{}], []),
        beyond,
        nodes=4,
    )


def test_what_was_observed_in_repeats_counts_alike(tmp_path: Path) -> None:
    """Two runs of one point, in which an operation took 1.2 and .6 ms of the server's cores: .9 ms, in either order."""
    runs = []
    for name, share in (("first", 0.6), ("second", 0.3)):
        start = 1_800_000_000.0
        run = synthetic(tmp_path / name, start=start, phases=[("benchmark", 2.0, 10.0, 5000)], hosts=["client"])
        watch = watched(
            tmp_path / f"{name}.jsonl", start=start, seconds=20, every=0.25, busy=lambda at, s=share: (s * at, 0.1)
        )
        join(run, [watch])
        runs.append(Run(run))
    for order in (runs, runs[::-1]):
        observed = observed_demands(group(order))["server cpu"]
        assert observed["demand"] == pytest.approx(0.9e-3) and observed["utilisation"] == pytest.approx(0.225)


def test_waits_of_processes_are_reported_by_phase(tmp_path: Path) -> None:
    start = 1_800_000_000.5
    run = synthetic(
        tmp_path / "run",
        start=start,
        phases=[("precreate", 0.0, 5.0, 100), ("benchmark", 5.0, 5.0, 100), ("benchmark", 10.0, 5.0, 100)],
        hosts=["client"],
    )
    observation = watched(tmp_path / "o.jsonl", start=start, seconds=15, every=0.25, busy=lambda at: (at, 0.0))
    lines = [json.loads(line) for line in observation.read_text().splitlines()]
    for number, line in enumerate(lines[1:]):
        # Of four processes one waits for the journal in the first repeat, and two in the second; all sleep before.
        waits = {"idle": 4} if number < 20 else {"journal": 1 if number <= 40 else 2}
        line["processes"]["mds"] |= {"count": 4, "waits": waits}
    observation.write_text("\n".join(map(json.dumps, lines)) + "\n")
    precreate, *benchmarks = join(run, [observation])["phases"]
    assert (
        set(precreate["waits"]["server process mds"]) <= {"idle", "journal"}
        and precreate["waits"]["server process mds"]["idle"] > 0.9
    )
    assert [one["waits"]["server process mds"]["journal"] for one in benchmarks] == [
        pytest.approx(0.25),
        pytest.approx(0.5, abs=0.02),
    ]
    assert waits_in(run) == {"server process mds": {"journal": pytest.approx(0.375, abs=0.01)}}
    write_numbers([run], tmp_path / "n.json")
    (row,) = json.loads((tmp_path / "n.json").read_text())["tables"]["waits"]["rows"]
    assert row["where"] == "journal" and row["process"] == "server process mds"


def test_joining_refuses_and_notes(tmp_path: Path, iocast: Iocast) -> None:
    start = 1_800_000_000.5
    run = synthetic(tmp_path / "run", start=start, phases=[("benchmark", 0.0, 10.0, 100)], hosts=["client"])
    other = watched(tmp_path / "other", start=start + 3600, seconds=5, every=1, busy=lambda at: (at, at))
    with pytest.raises(InputError, match="don't overlap"):
        join(run, [other])
    assert not (run / "utilisation.json").exists()
    half = watched(tmp_path / "half", start=start + 5, seconds=5, every=0.5, busy=lambda at: (at, at), step=120.0)
    content = join(run, [half])
    assert any("does not cover" in note for note in content["notes"]) and any(
        "was set" in note for note in content["notes"]
    )
    assert content["phases"][0]["resources"]["server cpu"]["busy"] is None
    copied = synthetic(tmp_path / "copied", start=start, phases=[("benchmark", 0.0, 10.0, 100)], hosts=["client"])
    os.utime(copied / "latency.hlog")
    assert any("known to 0.5 s only" in note for note in join(copied, [half])["notes"])
    # Half a second within the second that is all that is known of the start.
    short = synthetic(tmp_path / "short", start=start, phases=[("benchmark", 0.0, 0.1, 100)], hosts=["client"])
    os.utime(short / "latency.hlog")
    join(short, [watched(tmp_path / "tight", start=start + 0.25, seconds=0.2, every=0.05, busy=lambda at: (at, at))])
    for text, words in (
        ("", ":1: the file is empty"),
        ('{"kind": "run"}\n', ":1: this is no observation"),
        ("{\n{\n", ":1: this is not valid JSON"),
        (json.dumps({"kind": "observation", "schema_version": 1, "host": "h"}), "fewer than two samples"),
    ):
        (tmp_path / "bad").write_text(text)
        with pytest.raises(InputError, match=words):
            join(run, [tmp_path / "bad"])
    done = iocast("observe", "--join", run)
    assert done.returncode == 2 and "--join RUN FILE" in done.stderr
    done = iocast("observe", "--out", tmp_path / "half", "--", "true")
    assert done.returncode == 2 and "exists already" in done.stderr
    done = iocast("observe", "--out", tmp_path / "new", "--", "no-such-program")
    assert done.returncode == 2 and "can't be started" in done.stderr and not (tmp_path / "new").exists()
    for text in ("1", "5us", "0s", "2h", "-1s", "..s"):
        done = iocast("observe", "--out", tmp_path / "new", "--every", text, "--", "true")
        assert done.returncode == 2 and f"--every can't be '{text}'" in done.stderr


def test_a_run_says_its_start_to_the_millisecond(tmp_path: Path) -> None:
    start = 1_800_000_000.5
    run = synthetic(tmp_path / "run", start=start, phases=[("benchmark", 0.0, 0.1, 100)], hosts=["client"])
    document = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps({**document, "started": document["started"].replace("Z", ".500Z")}))
    os.utime(run / "latency.hlog")  # copied since
    content = join(run, [watched(tmp_path / "o", start=start - 0.1, seconds=0.3, every=0.01, busy=lambda at: (at, at))])
    assert content["clock"]["start"] == pytest.approx(start, abs=1e-6) and not content["notes"]
    assert content["phases"][0]["resources"]["server cpu"]["utilisation"] == pytest.approx(0.5, rel=1e-4)


def test_a_benchmark_is_observed_and_joined(
    bench: Path, mpirun: Callable[[int], list[str]], mpi_environment: dict[str, str], tmp_path: Path
) -> None:
    """From the command line, on what is really here."""
    settings = [a for s in ("datasets=2", "objects=3000", "iterations=3000") for a in ("--set", s)]
    (tmp_path / "root").mkdir()
    command = [
        *mpirun(2),
        str(bench),
        "--workload",
        "md-workbench",
        "--posix.root",
        str(tmp_path / "root"),
        "--out",
        str(tmp_path / "run"),
        *settings,
    ]
    environment = {**mpi_environment, "PYTHONPATH": str(REPOSITORY)}
    observe = [
        sys.executable,
        "-c",
        "from iocast.cli import main; main()",
        "observe",
        "--out",
        str(tmp_path / "o.jsonl"),
        "--every",
        "20ms",
        "--process",
        "iocast-bench",
        "--json",
        "--",
    ]
    done = subprocess.run(
        [*observe, *command], capture_output=True, text=True, env=environment, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    content: dict[str, Any] = json.loads((tmp_path / "run" / "utilisation.json").read_text())
    (benchmark,) = [p for p in content["phases"] if p["name"] == "benchmark"]
    (name,) = [n for n in benchmark["resources"] if n.endswith("process iocast-bench")]
    cpu = benchmark["resources"][name]
    assert cpu["busy"] is not None and 0 < cpu["utilisation"] <= 1.1
    # Two ranks that never think can use no more than two cores' time, nor more than the machine did.
    (machine,) = [r for r in benchmark["resources"].values() if r["kind"] == "cpu"]
    assert cpu["busy"] <= 2 * benchmark["seconds"] * 1.1 + 0.1 and cpu["busy"] <= machine["busy"] + 0.2
    assert cpu["demand"] == pytest.approx(cpu["busy"] / benchmark["operations"])


def test_campaigns_are_observed(iocast: Iocast, tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text(
        "schema_version: 1\nworkload: md-workbench\nsettings: {datasets: 1, iterations: 3000, objects: 3000}\nrepeats:"
        " 1\nbenchmark_repeats: 1\npoints:\n  - {ranks: 2}\n"
    )
    (tmp_path / "root").mkdir()
    done = iocast(
        "measure", tmp_path / "root", "--campaign", tmp_path / "c.yaml", "--out", tmp_path / "out", "--observe"
    )
    assert done.returncode == 0, done.stderr
    (run,) = (tmp_path / "out" / "runs").iterdir()
    assert (
        json.loads((run / "utilisation.json").read_text())["kind"] == "utilisation"
        and (tmp_path / "out" / "observations" / f"{run.name}.jsonl").is_file()
    )
