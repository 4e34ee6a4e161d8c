# SPDX-License-Identifier: Apache-2.0
"""Files of earlier states of iocast are read, or refused with a sentence that names the remedy, as docs/answers.md says
("Files of earlier versions"). Those in tests/earlier were written by commit c9d7ba1."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest
import yaml
from programs import REPOSITORY

from iocast.compare import compare
from iocast.runs.earlier import Earlier
from iocast.errors import InputError
from iocast.export import rows_of
from iocast.platforms.fitted import Fitted
from iocast.forecasts.answer import predict
from iocast.report.sources import read_sources
from iocast.report.story import tell
from iocast.report.tables import all_tables
from iocast.ground.files import read_campaign
from iocast.runs.run_directory import Run, find_runs, group

EARLIER = REPOSITORY / "tests" / "earlier"
FITTED = REPOSITORY / "examples" / "tutorial" / "fitted.yaml"
"""Of c9d7ba1 as well."""


def tables_of(*sources: Path) -> dict[str, list[dict[str, Any]]]:
    return {table.name: table.rows for table in all_tables(read_sources(list(sources)))}


def test_a_forecast_without_its_question_is_shown_and_not_judged() -> None:
    file = EARLIER / "forecast.json"
    rate = json.loads(file.read_text())["quantities"]["rate"]["value"]
    assert [row["rate"] for row in tables_of(file)["forecasts"]] == [rate]
    assert "298" in tell(read_sources([file])).headline
    with pytest.raises(InputError, match="earlier version of iocast.*Forecast again with iocast predict"):
        Earlier.open(file)


def test_a_validations_rows_are_shown_and_its_summary_is_not_used(tmp_path: Path) -> None:
    file = EARLIER / "validation.json"
    document = json.loads(file.read_text())
    rows = [row for point in document["points"] for row in point["rows"]]
    shown = tables_of(file)
    listed = [row for table in ("checked", "refitted") for row in shown.get(table, [])]
    assert sorted(row["forecast"] for row in listed) == sorted(row["forecast"] for row in rows)
    story = tell(read_sources([file]))
    for key in document["summary"]:
        document["summary"][key] = None
    (tmp_path / file.name).write_text(json.dumps(document))
    changed = tell(read_sources([tmp_path / file.name]))
    assert (story.headline, story.paragraphs, story.cards) == (changed.headline, changed.paragraphs, changed.cards)


def test_a_studys_answer_is_shown() -> None:
    document = json.loads((EARLIER / "study.json").read_text())
    assert tell(read_sources([EARLIER / "study.json"])).headline == document["headline"]
    assert {row["id"] for row in tables_of(EARLIER / "study.json")["designs"]} == {d["id"] for d in document["designs"]}


def test_no_command_reads_a_comparison(iocast: Callable[..., CompletedProcess[str]], tmp_path: Path) -> None:
    file = EARLIER / "comparison.json"
    for command in (("report", file, "--out", tmp_path / "r.html"), ("compare", file, file)):
        done = iocast(*command)
        assert done.returncode == 2 and "comparison" in done.stderr


def test_a_fitted_platform_forecasts_with_its_own_rules(simulator: Path) -> None:
    """Without `noise_basis`, `holdout.scales`, `runs` in rows, `think_time` and nodes of points."""
    platform = Fitted.open(str(FITTED))
    assert "noise_basis" not in platform.fitted and "scales" not in platform.fitted["holdout"]
    assert "runs" not in platform.fitted["fit"][0] and "nodes" not in platform.fitted["campaign"]["points"][0]
    answer = predict(platform, None, {"objects": "50", "iterations": "50"}, 1, 8, solver="analytic")
    rate = answer["quantities"]["rate"]
    assert rate["low"] < rate["value"] < rate["high"]
    row = next(r for r in platform.fitted["fit"] if r["quantity"] == "rate" and r["point"] == "N=8 T=0")
    assert rate["value"] == pytest.approx(row["measured"], rel=0.05)
    assert tables_of(FITTED)["parameters"]


def test_a_run_without_single_operations_is_read(simulate: Callable[..., dict[str, Any]], tmp_path: Path) -> None:
    runs = []
    for seed in (1, 2):
        runs.append(tmp_path / f"r{seed}")
        simulate("local", "--seed", seed, "--set", "objects=30", "--set", "iterations=30", "--out", runs[-1])
        document = json.loads((runs[-1] / "run.json").read_text())
        for phase in document["phases"]:
            del phase["by_operation"]
        (runs[-1] / "run.json").write_text(json.dumps(document))
    rate = Run(runs[0]).rate
    assert rate == next(p["rate"] for p in document_of(runs[0])["phases"] if p["name"] == "benchmark")
    assert any(row.value == rate for row in rows_of(runs[0]))
    assert tables_of(runs[0])["runs"]
    assert compare(*runs)["points"][0]["rows"][0]["quantity"] == "rate"


def document_of(run: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((run / "run.json").read_text())
    return found


@pytest.mark.parametrize("name", ["forecast.json", "validation.json", "study.json", "fitted.yaml"])
def test_a_file_of_a_newer_version_is_refused(name: str, tmp_path: Path) -> None:
    source = FITTED if name == "fitted.yaml" else EARLIER / name
    document = yaml.safe_load(source.read_text()) | {"schema_version": 2}
    (tmp_path / name).write_text(yaml.safe_dump(document) if name == "fitted.yaml" else json.dumps(document))
    with pytest.raises(InputError, match="schema version 2, but this iocast reads up to 1"):
        read_sources([tmp_path / name])
    if name == "fitted.yaml":
        with pytest.raises(InputError, match=r"schema.version"):
            Fitted.open(str(tmp_path / name))


LATER = EARLIER / "5239cee"
"""One of each file that this commit wrote, of runs of a second and small simulations."""


def test_files_of_5239cee_are_read_and_shown() -> None:
    runs, _ = find_runs([LATER / "campaign"])
    (point,) = group(runs)
    assert point.value("rate") == pytest.approx(math.prod(run.rate for run in runs) ** 0.5)
    assert len(read_campaign(LATER / "campaign", planned=True)["points"]) == len(runs) == 2
    assert read_campaign(LATER / "knee")["search"]
    assert Run(LATER / "simulated").parameters["objects"] == 5
    assert Run(LATER / "imported", phase="copy").imported
    assert Fitted.open(str(LATER / "fitted.yaml")).fitted["fit"]
    assert Earlier.open(LATER / "forecast.json").document["question"]["placement"]["ranks"] == 16
    names = ["campaign", "simulated", "imported", "fitted.yaml", "forecast.json", "validation.json", "study"]
    shown = tables_of(*(LATER / name for name in names))
    assert {"runs", "parameters", "forecasts", "checked", "designs"} <= set(shown)
