# SPDX-License-Identifier: Apache-2.0
"""The pages that list keys of answers, beside real answers."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import report_inputs
import yaml
from programs import REPOSITORY
from typer.testing import CliRunner

from iocast.cli import app

EVERY_FILE = {"schema_version", "kind"}


def documented(page: str, heading: str) -> set[str]:
    """Words in backticks below a heading."""
    text = (REPOSITORY / "docs" / page).read_text()
    section = re.search(rf"^## {re.escape(heading)}.*?$(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    assert section, f"docs/{page} has no section '{heading}'"
    return set(re.findall(r"\w+", " ".join(re.findall(r"`([^`]*)`", section[1]))))


def check(page: str, heading: str, document: dict[str, Any]) -> None:
    missing = set(document) - EVERY_FILE - documented(page, heading)
    assert not missing, f"docs/{page}, '{heading}' says nothing of {', '.join(sorted(missing))}"


def printed(*arguments: object) -> Any:
    done = CliRunner().invoke(app, [str(one) for one in arguments])
    assert done.exit_code in (0, 4), done.output
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def forecast(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    out = tmp_path_factory.mktemp("answers") / "forecast"
    results = REPOSITORY / "examples" / "first-forecast" / "cirrus.csv"
    return out, printed("forecast", results, "--nodes", "16,128", "--out", out, "--json")


def test_keys_of_forecasts(forecast: tuple[Path, dict[str, Any]]) -> None:
    out, answer = forecast
    check("answers.md", "`kind: forecasts`", answer)
    for phase in answer["phases"]:
        check("answers.md", "`kind: forecasts`", phase)
        for one in phase["forecasts"]:
            check("answers.md", "`kind: forecast` ", one)
            check("answers.md", "`question`", one["question"])
    for file in (out / "fitted").glob("*.yaml"):
        check("answers.md", "`fitted:` in a platform file", yaml.safe_load(file.read_text())["fitted"])


def test_keys_of_a_report_and_a_dry_run(forecast: tuple[Path, dict[str, Any]], tmp_path: Path) -> None:
    out, _ = forecast
    made = printed(
        "report", *(out / "runs").iterdir(), "--out", tmp_path / "r.html", "--data", tmp_path / "d", "--json"
    )
    check("answers.md", "What each command writes and prints", made)
    report = json.loads((tmp_path / "d" / "report.json").read_text())
    check("answers.md", "`kind: report`", report)
    check("answers.md", "`kind: report`", report["summary"])
    check(
        "answers.md",
        "`kind: campaign-dry-run`",
        printed("measure", tmp_path, "--campaign", "quick", "--dry-run", "--json"),
    )


def test_keys_of_what_servers_counted(tmp_path: Path) -> None:
    file = REPOSITORY / "tests" / "samples" / "lustre" / "md_stats.txt"
    printed("import", file, "--out", tmp_path / "run", "--json")
    answer = printed("report", tmp_path / "run", "--text", "servers", "--json")
    check("answers.md", "`kind: servers`", answer)
    for rows in (answer["servers"], answer["requests"]):
        assert rows
        check("answers.md", "`kind: servers`", rows[0])


def test_keys_of_a_study_a_knee_and_a_run(tmp_path_factory: pytest.TempPathFactory) -> None:
    inputs = report_inputs.made(tmp_path_factory)
    check("studies.md", "The answer", json.loads((inputs.study / "study.json").read_text()))
    check("answers.md", "`kind: knee`", json.loads((inputs.campaign / "knee.json").read_text()))
    text = (REPOSITORY / "docs" / "run-directory.md").read_text()
    words = set(re.findall(r"\w+", " ".join(re.findall(r"`([^`]*)`", text))))
    run = json.loads((inputs.simulated / "run.json").read_text())
    assert set(run) | {key for phase in run["phases"] for key in phase} <= words
