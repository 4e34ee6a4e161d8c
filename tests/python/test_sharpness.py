# SPDX-License-Identifier: Apache-2.0
"""Statistical tests record the smallest error that they detect (tests/sharpness.py), and that is what they say."""

import ast
import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import sharpness
from programs import REPOSITORY
from scipy.stats import binom

STATISTICS = re.compile(r"\b(?:binom\.(?:ppf|isf|sf)|kstest|confidence_interval|student\.ppf)\(")
"""What a test that compares with a computed interval calls."""
RECORDS = re.compile(r"\bsharpness\.(?:record|shift|more_than|fewer_than)\(")
ELSEWHERE = {"sharpness.py", "test_sharpness.py", "test_dry_run.py"}


def functions(file: Path) -> list[tuple[str, str]]:
    """Name and source of each function of the file."""
    text = file.read_text()
    found = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef)]
    return [(node.name, ast.get_source_segment(text, node) or "") for node in found]


def test_every_statistical_test_records_its_sharpness() -> None:
    folders = (REPOSITORY / "tests", REPOSITORY / "validation" / "theory")
    files = [file for folder in folders for file in folder.rglob("*.py") if file.name not in ELSEWHERE]
    silent = [
        f"{file.relative_to(REPOSITORY)}::{name}"
        for file in files
        for name, text in functions(file)
        if STATISTICS.search(text) and not RECORDS.search(text)
    ]
    assert silent == []


def test_every_statistical_unit_test_records_its_sharpness() -> None:
    """Where a bound is a number of standard errors, `expect_within` or `expect_at_least` stands, and not a macro."""
    bound = re.compile(r"EXPECT_(?:NEAR|LT|LE|GE)\(.*?\b[3-9] [*/] .*?std::sqrt|boost::math::quantile")
    files = [file for folder in ("unit", "contract") for file in (REPOSITORY / "tests" / folder).glob("*.cpp")]
    assert [(file.name, line) for file in files for line in file.read_text().splitlines() if bound.search(line)] == []


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("IOCAST_SHARPNESS", str(tmp_path / "sharpness.jsonl"))
    return tmp_path / "sharpness.jsonl"


def test_an_error_of_the_recorded_size_is_detected_nine_times_in_ten(kept: Path) -> None:
    """By definition for shares, and in 4000 draws for a mean: 90 % within five standard errors."""
    sharpness.more_than("alarms", 20, 200)
    sharpness.fewer_than("coverage", 170, 200)
    sharpness.shift("mean", 4 * 0.1, 0.1)
    alarms, coverage, mean = sharpness.recorded(kept)
    assert binom.sf(20, 200, alarms["smallest"]) == pytest.approx(0.9, abs=1e-6)
    assert binom.cdf(169, 200, coverage["smallest"]) == pytest.approx(0.9, abs=1e-6)
    draws = mean["smallest"] + 0.1 * np.random.default_rng(1).standard_normal(4000)
    error = np.sqrt(0.9 * 0.1 / 4000)
    sharpness.shift("share detected", 5 * error, error)
    assert np.mean(np.abs(draws) > 0.4) == pytest.approx(0.9, abs=5 * error)


def test_one_command_prints_the_table(kept: Path) -> None:
    """The last record of a test and quantity counts; of many the largest are shown."""
    for smallest in (0.5, 0.25):
        sharpness.record("share", smallest, "of tries")
    table = [sys.executable, str(REPOSITORY / "tests" / "sharpness.py")]
    printed = subprocess.run(table, capture_output=True, text=True, check=True).stdout
    assert (
        "test_one_command_prints_the_table" in printed and "share: 0.25 of tries" in printed and "0.5 of" not in printed
    )
    for number in range(9):
        sharpness.record(f"quantity {number}", number + 1)
    printed = subprocess.run(table, capture_output=True, text=True, check=True).stdout
    assert "quantity 8: 9" in printed and "... and 6 smaller ones, the smallest 0.25" in printed
    found = subprocess.run([*table, "--json"], capture_output=True, text=True, check=True).stdout
    assert len(json.loads(found)["tests"]) == 10
