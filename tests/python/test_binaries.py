# SPDX-License-Identifier: Apache-2.0
"""How the toolkit runs the simulator: started once, queried many times, with the answers of a process of its own."""

import json
import os
import pickle
import signal
import subprocess
from pathlib import Path
from types import FrameType

import pytest
from iocast.ground import binaries
from iocast.errors import InputError, RunError

SMALL = {"datasets": 1, "objects": 20, "iterations": 20, "phases": "benchmark"}
MEASURED = ("requests_per_second", "wall_seconds", "peak_rss_bytes")


def small(platform: str = "lustre") -> dict[str, object]:
    reported = binaries.simulate(platform, "md-workbench", SMALL, 2, 2, 7)
    return {key: value for key, value in reported.items() if key not in MEASURED}


def test_the_answer_is_that_of_a_process_of_its_own() -> None:
    settings = [word for name, value in SMALL.items() for word in ("--set", f"{name}={value}")]
    command = [
        binaries.find("iocast-sim"),
        "--json",
        "--platform",
        "lustre",
        "--workload",
        "md-workbench",
        "--seed",
        "7",
    ]
    command += ["--nodes", "2", "--ppn", "2", "--beyond", *settings]
    alone = json.loads(subprocess.run([*command[:2], "--brief", *command[2:]], capture_output=True, check=True).stdout)
    assert small() == small() == {key: value for key, value in alone.items() if key not in MEASURED}

    # Brief is the same without what is long.
    full = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    del full["platform"]
    for phase in full["phases"]:
        for long_one in ("timeline", "slowest", "rank_seconds", "node_seconds"):
            del phase[long_one]
    assert alone["phases"] == full["phases"]
    assert set(alone) == set(full)


@pytest.mark.parametrize("arguments", [["--brief"], ["--brief", "--json", "--out", "never"]])
def test_brief_is_of_what_is_printed(arguments: list[str]) -> None:
    with pytest.raises(InputError, match=r"^--brief shortens what --json prints"):
        binaries.run_json([binaries.find("iocast-sim"), "--platform", "lustre", *arguments])


def test_a_platform_that_has_changed_is_read_again(tmp_path: Path) -> None:
    """Its own file, or one that it extends; the server keeps the last one that it has read."""
    base, mine = tmp_path / "base.yaml", tmp_path / "mine.yaml"
    rates = []
    for latency in ("1ms", "2ms", "3ms"):
        base.write_text(f"schema_version: 1\nextends: lustre\nnetwork: {{latency: {latency}}}\n")
        if not mine.exists():
            mine.write_text("schema_version: 1\nextends: base.yaml\n")
        rates.append(small(str(mine))["phases"][0]["rate"])
        assert small(str(mine))["phases"][0]["rate"] == rates[-1]
    assert rates[0] > rates[1] > rates[2]
    mine.write_text("schema_version: 1\nextends: base.yaml\nnetwork: {latency: 1ms}\n")
    assert small(str(mine))["phases"][0]["rate"] == rates[0]
    mine.write_text("schema_version: 1\nextends: bas.yaml\n")
    with pytest.raises(InputError, match=r"bas\.yaml"):
        small(str(mine))


def test_files_are_found_from_where_the_caller_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = small()
    for name in ("here", "there"):
        (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / name)
        Path("mine.yaml").write_text("schema_version: 1\nextends: lustre\n")
        assert small("mine.yaml")["phases"] == expected["phases"]
        Path("mine.yaml").unlink()
        with pytest.raises(InputError, match=r"mine\.yaml"):
            small("mine.yaml")


def test_bad_input_is_refused_in_the_simulators_words() -> None:
    with pytest.raises(InputError, match=r"^There is no .*'lustr'.*Did you mean 'lustre'\?"):
        small("lustr")
    assert small()


def test_one_that_was_killed_is_started_again() -> None:
    expected = small()
    os.kill(binaries._simulators.simulator._process.pid, signal.SIGKILL)
    binaries._simulators.simulator._process.wait()
    assert small() == expected


def test_a_simulation_that_a_signal_ends_is_an_error(tmp_path: Path) -> None:
    """And not an answer, nor the end of those after it."""
    expected = small()
    server = binaries._simulators.simulator._process.pid

    def kill(_signal: int, _frame: FrameType | None) -> None:
        children = subprocess.run(
            ["ps", "-o", "pid=", "--ppid", str(server)], capture_output=True, text=True, check=True
        ).stdout.split()
        os.kill(int(children[0]), signal.SIGKILL)

    with after(0.3, kill), pytest.raises(RunError, match="exit code 137"):
        long()
    assert small() == expected


def test_who_does_not_wait_for_an_answer_does_not_get_it_later() -> None:
    expected = small()

    def interrupt(_signal: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    with after(0.3, interrupt), pytest.raises(KeyboardInterrupt):
        long()
    assert small() == expected


def long() -> None:
    """A few seconds."""
    binaries.simulate("lustre", "md-workbench", SMALL | {"objects": 3000, "iterations": 3000}, 20, 20, 7)


class after:
    """Calls something a while after the block began."""

    def __init__(self, seconds: float, what: object) -> None:
        self.seconds, self.what = seconds, what

    def __enter__(self) -> None:
        self.before = signal.signal(signal.SIGALRM, self.what)  # type: ignore[arg-type]
        signal.setitimer(signal.ITIMER_REAL, self.seconds)

    def __exit__(self, *_: object) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, self.before)


OVERLOADED = """schema_version: 1
extends: local
stations: {busy: {servers: 1}}
background: {others: {station: busy, rate: 2000/s, demand: {law: constant, value: 1ms}}}
operations: {stat: [{station: busy, demand: {law: constant, value: 1ms}}]}
"""


RATE = "rate: 2000/s, demand: {law: constant, value: 1ms}"


@pytest.mark.parametrize(
    ("text", "error", "code"),
    [
        (OVERLOADED, RunError, "work-piles-up"),
        (OVERLOADED.replace(RATE, "share: 0.5, demand: {law: constant, value: 0ms}"), InputError, "no-demand-left"),
        (OVERLOADED.replace("servers: 1", "servers: none"), InputError, "bad-input"),
        (OVERLOADED.replace("servers: 1", "serves: 1"), InputError, "unknown-key"),
    ],
    ids=["work piles up", "no demand left", "bad input", "unknown key"],
)
def test_outcomes_have_codes(text: str, error: type[Exception], code: str, tmp_path: Path) -> None:
    """The same code from a process of its own and from one that serves; the words are for people alone."""
    (tmp_path / "p.yaml").write_text(text)
    settings = {"datasets": "1", "objects": "20000", "iterations": "20000", "phases": "benchmark"}
    with pytest.raises(error) as met:
        binaries.simulate(tmp_path / "p.yaml", "md-workbench", settings, 1, 1, 1)
    assert met.value.code == code  # type: ignore[attr-defined]
    assert pickle.loads(pickle.dumps(met.value)).code == code, "workers send it"
    sets = [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]
    command = [binaries.find("iocast-sim"), "--platform", tmp_path / "p.yaml", *sets, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    outcome = json.loads(done.stdout)["error"]
    assert outcome["code"] == code and done.stderr == f"iocast-sim: {outcome['message']}\n"
    assert done.returncode == (1 if error is RunError else 2)


FEW = ["--set", "datasets=1", "--set", "objects=5", "--set", "iterations=5"]


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["--platform", "locall", "--print-platform"], "bad-input"),
        (["--workload", "md-workbench", "--set", "object=3", "--print-workload"], "bad-input"),
        (["--sed", "3", "--json"], "bad-input"),
        (["--platform", "local", "--json", *FEW, "--out", "/proc/nowhere"], "failed"),
    ],
    ids=["platform", "workload", "option", "output"],
)
def test_every_answer_for_programs_has_a_code(words: list[str], code: str) -> None:
    done = subprocess.run([binaries.find("iocast-sim"), *words], capture_output=True, text=True, check=False)
    (line,) = done.stdout.splitlines()
    assert json.loads(line)["error"]["code"] == code and json.loads(line)["error"]["message"]
    assert done.returncode == {"bad-input": 2, "failed": 1}[code] and done.stderr
