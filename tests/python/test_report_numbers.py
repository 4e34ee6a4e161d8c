# SPDX-License-Identifier: Apache-2.0
"""Every number that a report shows, in its figures, cards and sentences, is one of its files'."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import test_report_phases as inputs
import yaml
from study_inputs import SMALL, write
from test_identities import numbers

from iocast.report import units
from iocast.report.figures import all_figures
from iocast.report.sources import Sources, read_sources
from iocast.report.story import tell
from iocast.study import amounts
from iocast.study import run_study
from iocast.jobs.workers import Workers

WORKED_OUT = {
    "percentiles": "of latency.hlog",
    "ecdf": "of latency.hlog",
    "density": "of latency.hlog",
    "timeline.at": "number of a bin times its length",
    "course.at": "number of a bin times its length",
    "routes.place": "which step it is",
    "stations.seconds": "waits less those that other rows show",
    "sensitivity.value": "a factor less 1",
}
"""Figures and columns whose numbers are worked out of the files'. The first three have a test of their own."""
QUANTILES = {0.25: "q25", 0.5: "q50", 0.75: "q75", 0.95: "q95", 0.99: "q99", 0.999: "q999"}
OF_THE_PROJECT = "How often it held"
"""The paragraph on forecasts of other systems (iocast/report/record.py)."""
AMOUNT = re.compile(r"[-−+]?\d[\d,.]*\s(?:[GMk]?/s|[TGMk]?B/s|us|ms|s|%|times|ranks?|nodes?|clients)(?!\w)")
"""A number with its unit in a sentence."""


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory, simulate: Callable[..., Any]) -> tuple[Sources, dict[str, Any]]:
    """Measured runs, a forecast and a fitted platform; and all that is in the files, by name."""
    place = tmp_path_factory.mktemp("numbers")
    runs = [inputs.run(place / f"n{ranks}", ranks, list(inputs.RATES)) for ranks in (32, 64, 128)]
    others = [inputs.forecast(place / "f.json", "file-create", 1024), inputs.platform(place / "p.yaml", "file-create")]
    files = [*(run / "run.json" for run in runs), *others]
    return read_sources([*runs, *others]), {file.name: yaml.safe_load(file.read_text()) for file in files} | {
        f"{run.name}/run.json": json.loads((run / "run.json").read_text()) for run in runs
    }


@pytest.fixture(scope="module")
def simulated(tmp_path_factory: pytest.TempPathFactory, simulate: Callable[..., Any]) -> tuple[Sources, dict[str, Any]]:
    """A simulated run with its log of latencies."""
    run = tmp_path_factory.mktemp("numbers") / "run"
    settings = ("--set", "datasets=2", "--set", "objects=60", "--set", "iterations=60")
    simulate("lustre", "--ppn", "4", *settings, "--out", run)
    return read_sources([run]), {"run.json": json.loads((run / "run.json").read_text())}


@pytest.fixture(scope="module")
def studied(tmp_path_factory: pytest.TempPathFactory, simulator: Path) -> tuple[Sources, dict[str, Any]]:
    place = tmp_path_factory.mktemp("numbers")
    file = write(place, SMALL | {"search": {"replications": 4, "simulate": 2}})
    with Workers(1) as workers:
        run_study(file, place / "out", workers, lambda *_: None, [])
    return read_sources([place / "out"]), {"study.json": json.loads((place / "out" / "study.json").read_text())}


SOURCES = ["given", "simulated", "studied"]


@pytest.mark.parametrize("which", SOURCES)
def test_every_number_of_a_figure_is_in_the_files(which: str, request: pytest.FixtureRequest) -> None:
    sources, files = request.getfixturevalue(which)
    known, drawn, unknown = numbers(files), 0, []
    for figure in all_figures():
        for row in figure.data(sources) or []:
            drawn += 1
            unknown += [
                (figure.name, key, value)
                for key, value in row.items()
                if isinstance(value, int | float)
                and not isinstance(value, bool)
                and not {figure.name, f"{figure.name}.{key}"} & set(WORKED_OUT)
                and not {float(value), -float(value)} & known
            ]
    assert drawn > 5
    assert not unknown, unknown[:10]


def test_curves_of_latencies_are_those_of_the_run(simulated: tuple[Sources, dict[str, Any]]) -> None:
    sources, files = simulated
    rows = {figure.name: figure.data(sources) for figure in all_figures()}
    phases = {phase["name"]: phase["latency"] for phase in files["run.json"]["phases"]}
    compared = 0
    for name in ("percentiles", "ecdf"):
        for row in rows[name] or []:
            kind = next((kind for p, kind in QUANTILES.items() if abs(p - row["probability"]) < 1e-9), None)
            latency = phases[row.get("phase") or row["panel"].partition(",")[0]].get(row["operation"])
            if kind and latency:
                compared += 1
                assert row["seconds"] == pytest.approx(latency[kind], rel=2e-3), (name, row)
    assert compared >= 20
    counted: Counter[tuple[str, str]] = Counter()
    for row in rows["density"] or []:
        counted[row["series"], row["operation"]] += row["count"]
    assert counted
    for (phase, operation), count in counted.items():
        assert count == phases[phase][operation]["count"]


def margins(files: dict[str, Any]) -> set[float]:
    """How far the levels of designs are kept or missed, as a share of the limit."""
    rows = [level for design in files.get("study.json", {}).get("designs", []) for level in design["levels"]]
    return {level["value"] / level["limit"] - 1 for level in rows if level.get("value") and level.get("limit")}


def texts(content: Any) -> list[str]:
    """Every text in it."""
    if isinstance(content, dict | list):
        return [text for value in (content.values() if isinstance(content, dict) else content) for text in texts(value)]
    return [content] if isinstance(content, str) else []


def printed(known: set[float]) -> set[str]:
    """Every way in which a sentence may print one of these numbers."""
    found: set[str] = set()
    for value in known:
        plain = [units.count(value), f"{value:g}", units.factor(value), units.money(value), units.digits(value, 2)]
        found |= {units.rate(value), units.seconds(value), units.error(value), units.error(-value), units.chance(value)}
        found |= {units.share(value), units.bandwidth(value), amounts.amount("rate", value), amounts.amount("", value)}
        found |= {f"{one} {unit}" for one in plain for unit in ("times", "rank", "ranks", "node", "nodes", "clients")}
        found |= {f"{100 * abs(value):.3g} %", f"{100 * abs(value):.2g} %", amounts.amount("utilisation", value)}
    return {one.replace(units.SPACE, " ").lstrip("<>+−- ") for one in found}


@pytest.mark.parametrize("which", SOURCES)
def test_every_number_of_cards_and_sentences_is_in_the_files(which: str, request: pytest.FixtureRequest) -> None:
    sources, files = request.getfixturevalue(which)
    story = tell(sources)
    sentences = [story.headline, *(text for about, text in story.paragraphs if about != OF_THE_PROJECT)]
    sentences += [f"{text} |" for card in story.cards for text in (card.value, card.note)]
    amounts = [one.replace(units.SPACE, " ") for text in sentences for one in AMOUNT.findall(text)]
    known = printed(numbers(files) | margins(files)) | {
        one.lstrip("+−- ") for text in texts(files) for one in AMOUNT.findall(text)
    }
    assert len(amounts) >= 3
    assert not [one for one in amounts if one.lstrip("+−- ") not in known], sentences
