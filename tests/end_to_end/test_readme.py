# SPDX-License-Identifier: Apache-2.0
"""The README, run: its first screen as a new user would type it, then its list of commands."""

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml
from pages import BRIEF, PYTHON_PATH, blocks_of
from programs import REPOSITORY

MINUTES = 60


def blocks() -> list[str]:
    return [block.content for block in blocks_of("README.md") if block.language == "sh"]


@contextmanager
def memory(otherwise: Path) -> Iterator[Path]:
    """An empty directory in memory, where there is some, so that the test does not depend on a disk's mood."""
    with tempfile.TemporaryDirectory(
        prefix="iocast-test-", dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else otherwise
    ) as directory:
        yield Path(directory)


@pytest.fixture(scope="module")
def storage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with memory(tmp_path_factory.mktemp("storage")) as directory:
        yield directory


def small_campaign(seconds: float, fit: list[int], check: int, repeats: int) -> str:
    """Like campaigns/quick.yaml, but shorter, and kinder to what else runs on this machine."""
    quick = yaml.safe_load((REPOSITORY / "campaigns" / "quick.yaml").read_text())
    (fitted, checked) = quick["points"]
    return yaml.safe_dump(
        quick
        | {
            "seconds": seconds,
            "repeats": repeats,
            "drop_caches": False,
            "points": [fitted | {"ranks": fit}, checked | {"ranks": check}],
        }
    )


@pytest.fixture(scope="module")
def results(storage: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What ./quickstart DIR leaves behind."""
    campaign = tmp_path_factory.mktemp("campaign") / "short.yaml"
    campaign.write_text(small_campaign(1, fit=[1, 2, 4], check=16, repeats=1))
    first = [line.split("#")[0].strip() for line in blocks()[1].splitlines()]
    assert first == ["./quickstart", "./check", "docs/build"], (
        "the second is what runs this test, the third has one of its own (test_site.py)"
    )
    assert len(blocks()) == 3, "test_the_forecast runs the first, test_the_commands the third"
    built = (REPOSITORY / "build" / "bin" / "iocast-sim").stat().st_mtime
    environment = {**os.environ, "CAMPAIGN": str(campaign), "PYTHONPATH": BRIEF, "IOCAST_PAGE": "no"}
    done = subprocess.run(
        ["./quickstart", str(storage)],
        cwd=REPOSITORY,
        env=environment,
        capture_output=True,
        text=True,
        timeout=20 * MINUTES,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert (REPOSITORY / "build" / "bin" / "iocast-sim").stat().st_mtime == built, "a second run rebuilt the simulator"
    assert not any(storage.iterdir())
    (page,) = re.findall(r"Open (\S+) in a browser", done.stdout)
    return (REPOSITORY / page).parent


def test_quickstart_forecasts_and_then_measures(results: Path) -> None:
    validation = json.loads((results / "validation.json").read_text())
    assert {point["name"] for point in validation["points"]} == {"N=16 T=0", "N=16 T=1"}
    for point in validation["points"]:
        assert point["role"] == "check" and len(point["runs"]) == 1
        wanted = {
            "rate",
            *(f"{op}.{q}" for op in ("stat", "read", "unlink", "create") for q in ("q50", "q75", "q95", "q99", "max")),
        }
        assert {row["quantity"] for row in point["rows"]} == wanted
        for row in point["rows"]:
            assert row["low"] <= row["forecast"] <= row["high"]
            # A line that falls to nothing before 16 ranks says nothing there.
            assert {"closed M/M/c", "universal scalability law"} <= set(row["baselines"]) or row["quantity"] != "rate"
    # The forecasts are older than what they are judged by.
    forecasts = list((results / "forecasts").glob("*.json"))
    measured = [
        results / "campaign" / "runs" / run / "run.json" for point in validation["points"] for run in point["runs"]
    ]
    assert len(forecasts) == 2
    assert max(f.stat().st_mtime for f in forecasts) < min(m.stat().st_mtime for m in measured)


def test_quickstart_answers_what_if(results: Path) -> None:
    rates = {
        (path.stem.rsplit("-", 1)[0], int(path.stem.rsplit("-", 1)[1])): json.loads(path.read_text())["quantities"][
            "rate"
        ]["value"]
        for path in (results / "what-if").glob("*.json")
    }
    assert len(rates) == 9
    for clients in (80, 800, 8000):
        assert rates["more-servers", clients] > rates["fitted", clients]
        assert rates["faster-servers", clients] > rates["fitted", clients]


def test_quickstart_writes_one_offline_page(results: Path) -> None:
    page = (results / "report.html").read_text()
    assert 100_000 < len(page) < 5_000_000
    assert not re.search(r"<(script|link|img)[^>]*(src|href)=[\"']https?:", page)


def test_the_forecast(tmp_path: Path) -> None:
    """The first thing that a reader sees, to the letter."""
    command = (
        blocks()[0].strip().replace("results/cirrus", str(tmp_path / "cirrus")).replace(".venv/bin/iocast", "iocast")
    )
    page = next(block for block in blocks_of("README.md") if block.answer)
    source = REPOSITORY / "examples" / "first-forecast" / "cirrus.csv"
    assert f"{source.relative_to(REPOSITORY)}" in command
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    done = subprocess.run(
        [sys.executable, "-m", *command.split()],
        cwd=REPOSITORY,
        env=environment,
        capture_output=True,
        text=True,
        timeout=10 * MINUTES,
        check=True,
    )
    assert done.stdout.startswith(page.content.removesuffix("...\n"))


@pytest.mark.long("a minute of commands that have tests of their own")
def test_the_commands(tmp_path: Path) -> None:
    with memory(tmp_path) as storage:
        run_the_commands(storage, tmp_path)


def run_the_commands(storage: Path, tmp_path: Path) -> None:
    names = {
        "DIR": storage,
        "RUN": tmp_path / "run",
        "SIMULATED": tmp_path / "simulated",
        "CAMPAIGN": tmp_path / "campaign",
    }
    (tmp_path / "small.yaml").write_text(small_campaign(0.5, fit=[1, 2, 4], check=8, repeats=1))
    names["quick"] = tmp_path / "small.yaml"
    names |= {
        "FITTED.yaml": tmp_path / "fitted.yaml",
        "REPORT.html": tmp_path / "report.html",
        "RUN.parquet": tmp_path / "run.parquet",
    }
    names |= {name: tmp_path / name.lower() for name in ("PLAN.yaml", "KNEE", "OBSERVED", "OBSERVED.jsonl", "IMPORTED")}
    script = blocks()[2].replace("\\\n", " ")
    for name, path in names.items():
        script = re.sub(rf"(?<=\s){re.escape(name)}(?=\s)", str(path), script)
    environment = {**os.environ, "PYTHONPATH": PYTHON_PATH}
    exports = next(line for line in script.splitlines() if line.startswith("export "))
    for line in script.splitlines():
        if not line.strip() or line.startswith(("#", "export ")):
            continue
        done = subprocess.run(
            ["bash", "-c", f"{exports}\n{line}"],
            cwd=REPOSITORY,
            env=environment,
            capture_output=True,
            text=True,
            timeout=10 * MINUTES,
            check=False,
        )
        allowed = (0, 4) if "validate" in line or "iocast knee" in line else (0,)  # a slow disk may keep no level
        assert done.returncode in allowed, line + "\n" + done.stdout[-2000:] + done.stderr[-2000:]
    assert (tmp_path / "report.html").stat().st_size > 100_000
