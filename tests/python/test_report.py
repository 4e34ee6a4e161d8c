# SPDX-License-Identifier: Apache-2.0
"""The report: what it reads, what it says, and that its page, tables and JSON hold the same numbers."""

from __future__ import annotations

import csv
import html
import json
import math
import re
import shutil
from typing import Any
from html.parser import HTMLParser
from pathlib import Path

import pytest
import report_inputs
from programs import REPOSITORY
from shared import shared

from iocast.errors import InputError
from iocast.importers import import_files
from iocast.whatif.page_file import GENERATOR
from iocast.report import answers
from iocast.report import (
    evidence, figures, record, story, tables, units, write_numbers, write_report
)  # fmt: skip
from iocast.report.figures import percentiles, study_front, style, throughput, whatif
from iocast.report.sources import Sources, read_sources
from iocast.report.table import Column
from iocast.study import words
from iocast.wording.text import interval, one_sided
from iocast.wording.forecast import rule_of

FIGURES = figures.all_figures()


@pytest.fixture(scope="session")
def inputs(tmp_path_factory):
    return report_inputs.made(tmp_path_factory)


@pytest.fixture(scope="session")
def everything(inputs) -> Sources:
    return read_sources(inputs.all)


@pytest.fixture(scope="session")
def page(inputs, tmp_path_factory):
    """The report on everything, as text and as its JSON."""

    def make(directory: Path) -> None:
        write_report(inputs.all, directory / "report.html")
        write_numbers(inputs.all, directory / "report.json")

    directory = shared(tmp_path_factory, "page", make)
    return (directory / "report.html").read_text(), json.loads((directory / "report.json").read_text())


class Page(HTMLParser):
    """What the tests ask about: attributes of all elements, cells by table, and the JSON in the page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.cells: dict[str, list[list[tuple[str, str, str]]]] = {}
        self.texts: dict[str, str] = {}
        self._table = self._id = ""
        self._cell: list[str] | None = None
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        known = dict(attrs)
        self.elements.append((tag, known))
        if tag == "table":
            self._table = known.get("data-table") or ""
            self.cells[self._table] = []
        if tag == "tr" and self._table:
            self.cells[self._table].append([])
        if tag == "td" and "data-key" in known:
            self._cell = [known["data-key"] or "", known["data-value"] or "", ""]
        self._id = known.get("id") or ""

    def handle_data(self, data):
        if self._cell is not None:
            self._cell[2] += data
        if self._id in ("numbers", "charts"):
            self.texts[self._id] = self.texts.get(self._id, "") + data

    def handle_endtag(self, tag):
        self._id = ""
        if tag == "td" and self._cell is not None:
            self.cells[self._table][-1].append(tuple(self._cell))
            self._cell = None
        if tag == "table":
            self._table = ""


def test_page_is_one_small_file_that_refers_to_nothing_outside(page):
    text, _ = page
    assert len(text.encode()) < 5_000_000
    found = Page(text)
    for tag, attributes in found.elements:
        for name in ("src", "srcset", "data", "poster", "background", "action", "formaction", "ping"):
            assert name not in attributes, f"<{tag} {name}> would fetch something"
        address = attributes.get("href")
        assert address is None or address.startswith(("#", "data:")), f"<{tag} href={address}> points outside"
    css = re.search(r"<style>(.*?)</style>", text, re.S).group(1)
    assert "@import" not in css and "url(" not in css
    own = (Path(figures.__file__).parents[1] / "page.js").read_text()
    assert not re.search(r"fetch\(|XMLHttp|import\(|WebSocket|sendBeacon|https?:", own)
    policy = next(
        a["content"] for t, a in found.elements if t == "meta" and a.get("http-equiv") == "Content-Security-Policy"
    )
    assert policy.startswith("default-src 'none'") and "http" not in policy and "unsafe-eval" not in policy


def test_page_holds_the_same_json_as_write_numbers(page):
    text, numbers = page
    assert json.loads(Page(text).texts["numbers"]) == numbers
    assert numbers["kind"] == "report" and numbers["schema_version"] == 1


def test_every_figure_that_has_data_is_drawn(page):
    text, numbers = page
    drawn = [f for f in FIGURES if not f.of_study and not f.of_servers and f.name != "routes"]  # routes are a model's
    assert set(numbers["figures"]) == {f.name for f in drawn}, "the inputs have data for every figure"
    found = Page(text)
    charts = json.loads(found.texts["charts"])
    for figure in drawn:
        assert f'id="figure-{figure.name}"' in text
        places = [a["id"] for t, a in found.elements if a.get("data-figure") == figure.name]
        assert places and set(places) <= set(charts)
    assert len(charts) == sum("data-figure" in a for _, a in found.elements)


SCALES = {"k/s": 1e3, "M/s": 1e6, "/s": 1, "s": 1, "ms": 1e-3, "us": 1e-6, "ns": 1e-9, "%": 0.01}


def test_cells_of_tables_are_the_numbers_of_the_json(page):
    text, numbers = page
    cells = Page(text).cells
    compared = 0
    for name, table in numbers["tables"].items():
        rows = [row for row in cells[name] if row]
        assert len(rows) == len(table["rows"])
        for row, raw in zip(rows, table["rows"], strict=True):
            for key, value, shown in row:
                assert value == ("" if raw[key] is None else str(raw[key]))
                match = re.fullmatch(r"([+−]?[\d.,]+)\s(\S+)", shown)
                if match and match.group(2) in SCALES and isinstance(raw[key], float):
                    read = float(match.group(1).replace("−", "-").replace(",", "")) * SCALES[match.group(2)]
                    assert read == pytest.approx(raw[key], rel=0.006, abs=0.006 if match.group(2) == "%" else 0)
                    compared += 1
    assert compared > 100


def test_runs_on_several_nodes_tell_the_balance_of_these(page):
    rows = page[1]["tables"]["runs"]["rows"]
    assert {row["nodes"] > 1 for row in rows} == {True, False}
    assert all((row["nodes"] > 1) == (row["node_balance"] is not None) for row in rows)
    assert all(0 < row["node_balance"] <= 1 for row in rows if row["nodes"] > 1)


def test_table_of_the_check_is_the_validation(page, inputs):
    _, numbers = page
    validation = json.loads(inputs.validation.read_text())
    point = next(p for p in validation["points"] if p["role"] == "check")
    rows = {r["quantity"]: r for r in numbers["tables"]["checked"]["rows"]}
    assert len(rows) == len(point["rows"]) == 1 + 5 * len(report_inputs.OPERATIONS)
    for printed in point["rows"]:
        for key in ("measured", "forecast", "low", "high", "error"):
            assert rows[printed["quantity"]][key] == pytest.approx(printed[key], rel=1e-6)
        assert rows[printed["quantity"]]["inside"] is printed["inside"]


def test_first_screen_tells_the_errors_on_unseen_data(inputs):
    reported = story.tell(read_sources(inputs.all))
    validation = json.loads(inputs.validation.read_text())
    rows = next(p["rows"] for p in validation["points"] if p["role"] == "check")
    rate = next(r for r in rows if r["quantity"] == "rate")
    largest = json.loads(inputs.forecasts[-1].read_text())["placement"]["ranks"]
    target = next(
        f
        for f in map(json.loads, (f.read_text() for f in inputs.forecasts))
        if f["placement"]["ranks"] == largest and not f["platform"]["edits"]
    )
    printed = units.rate(target["quantities"]["rate"]["value"])
    assert reported.headline.startswith(f"Forecast for {units.ranks(largest)}: benchmark {printed}")
    times = target["extrapolation"]
    assert reported.reach == (
        f"Ranges are {units.share(0.9)} intervals. It reaches {units.factor(times)} times the largest measured scale, "
        f"{units.ranks(round(largest / times))}."
    )
    assert reported.question == "How fast is benchmark on 64 nodes with 4 ranks each?"
    (grid,) = reported.grids
    (row,) = grid.rows
    check = evidence.checks(read_sources(inputs.all))
    best = evidence.best_rule(check)
    rule = rule_of(evidence.with_best_rule(target, check))
    assert rule is not None and best is not None and rule.name == best.name
    ends = [target["quantities"]["rate"][end] for end in ("low", "high")]
    assert row == [
        "benchmark",
        "64 × 4",
        printed,
        units.span(*map(units.rate, ends)),
        f"{units.rate(rule.rate)} ({rule.text})",
        f"{units.error(rate['error'])} at {units.ranks(64)}, {units.factor(2)} times the fitted",
    ]
    cards = {card.label: card for card in reported.cards}
    where = f"64{units.SPACE}ranks, {units.factor(2)} times the fitted"
    assert cards[f"error of throughput, benchmark, {where}"].value == units.error(rate["error"])
    assert cards[f"the best simple rule ({best.name})"].value == units.error(rate["baselines"][best.name]["error"])
    assert f"best of the simple rules, the {best.name}" in dict(reported.paragraphs)["Simple rules"]
    assert reported.summary["intervals_inside"] == sum(r["inside"] for r in rows)
    about = dict([*reported.facts, *reported.paragraphs])
    assert [name for name, _ in reported.facts] == ["How wrong it was", "What limits it"], "the first screen"
    assert list(about)[2:] == ["How often it held", "Simple rules", "What if", "Measured", "Forecast"]
    assert about["How wrong it was"].startswith(f"For 64{units.SPACE}ranks the forecast of benchmark was ")
    assert about["How often it held"] == record.sentence(record.CALIBRATED)
    assert "On data it had not seen" in about["How wrong it was"]
    assert "faster metadata server" in about["What if"] and "twice the threads" in about["What if"]
    assert any("times the largest scale" in w for w in reported.warnings)
    assert "The measurements can't tell 16 from 32 threads; a run of 128 ranks would." in reported.warnings


@pytest.mark.parametrize(
    ("known", "section", "row", "columns"),
    [
        (record.RATES_ALONE, "## Published systems", "every row", {"forecasts": 1, "inside": 6, "error": 3}),
        (record.CALIBRATED, "## Unknown systems", "all", {"forecasts": 3, "inside": 12, "error": 4}),
    ],
)
def test_the_record_is_that_of_the_scoreboard(
    known: record.Record, section: str, row: str, columns: dict[str, int]
) -> None:
    text = (report_inputs.ROOT / "docs" / "scoreboard.md").read_text().partition(section)[2]
    line = re.search(rf"^\| {row} \|.*$", text, flags=re.MULTILINE)
    assert line, f"docs/scoreboard.md has no row '{row}'"
    cells = [cell.strip() for cell in line[0].split("|")[1:-1]]
    shown = {
        "forecasts": f"{known.forecasts}",
        "inside": f"{100 * known.inside:.0f} %",
        "error": f"{100 * known.error:.2g} %",
    }
    assert {name: cells[column] for name, column in columns.items()} == shown, "write it to iocast/report/record.py"


def test_the_record_by_distance_is_that_of_the_scoreboard() -> None:
    text = (report_inputs.ROOT / "docs" / "scoreboard.md").read_text().partition("<!-- published by distance -->")[2]
    rows = [[c.strip() for c in line.split("|")[1:-1]] for line in text.splitlines() if line.startswith("| ")][1:]
    rows = rows[: len(record.BY_DISTANCE)]
    shown = {(r[0], r[1]): (int(r[2]), int(r[5][:-2]) / 100, int(r[3][:-2]) / 100) for r in rows}
    assert shown == record.BY_DISTANCE, "write it to iocast/report/record.py"
    assert sum(forecasts for forecasts, _, _ in shown.values()) <= record.RATES_ALONE.forecasts


@pytest.mark.parametrize("scales", [1, 2, 3, 5])
@pytest.mark.parametrize("beyond", [1.0, 2.0, 9.0, 100.0])
def test_the_record_beside_a_forecast_is_of_its_own_case(scales: int, beyond: float) -> None:
    ranks = [8 * 2**n for n in range(scales)]
    known = sources_of({"phase": "create", "placement": {"ranks": round(max(ranks) * beyond)}, "level": 0.9,
                        "quantities": {"rate": {"value": 9.0, "low": 1.0, "high": 90.0}}})  # fmt: skip
    known.fitted.append({"name": "p", "fitted": {"method": "rates", "campaign": {"phase": "create", "ranks": ranks}}})
    text = dict(story.tell(known).paragraphs)["How often it held"]
    case = record.cell(scales, beyond)
    assert f"for {case[1]} times" in text and f"from {case[0]} scale" in text
    assert ("no record" in text) == (case not in record.BY_DISTANCE)


def test_a_rule_that_was_nearer_is_named_on_the_first_screen(inputs, tmp_path):
    """The same one in the table, the card and the sentences, whatever the calibration's own held-out scale says."""
    validation = json.loads(inputs.validation.read_text())
    (point,) = [p for p in validation["points"] if p["role"] == "check"]
    validation["points"] = [point]
    rate = next(row for row in point["rows"] if row["quantity"] == "rate")
    rate.update(forecast=1.05 * rate["measured"], error=0.05)
    for name, row in rate["baselines"].items():
        row["error"] = -0.02 if name == "last value" else -0.6
    (tmp_path / "v.json").write_text(json.dumps(validation))
    target = json.loads(inputs.forecasts[-1].read_text())
    target["platform"]["edits"] = {}
    target["rule"] = {"name": "universal scalability law", "error": -0.001}
    target["baselines"] |= {"universal scalability law": {"rate": 19.6}, "last value": {"rate": 1200.0}}
    (tmp_path / "f.json").write_text(json.dumps(target))
    reported = story.tell(read_sources([tmp_path / "v.json", tmp_path / "f.json"]))
    assert any("last value: 2.0" in text and "nearer than the forecast" in text for text in reported.missing)
    assert any("(last value, -2 %)" in cell for cell in reported.grids[0].rows[0])
    assert [card.label for card in reported.cards if "simple rule" in card.label] == [
        "the best simple rule (last value)"
    ]
    assert "worse than it" in dict(reported.paragraphs)["Simple rules"]


def test_warnings_of_one_extrapolation_are_one(inputs):
    """Beyond FAR_BEYOND the forecast warns itself; up to it, and beyond FAR, the report does."""
    forecast = json.loads(inputs.forecasts[1].read_text())  # of the largest scale
    own = "288 ranks are 9 times what was measured (32)."
    far = forecast | {"extrapolation": 9.0, "warnings": [own]}
    assert [w for w in story.warnings(Sources(forecasts=[far])) if "times" in w] == [own]
    near = forecast | {"extrapolation": 8.0, "warnings": []}
    assert len([w for w in story.warnings(Sources(forecasts=[near])) if "times" in w]) == 1


def test_a_forecast_that_was_too_sure_and_worse_than_a_ruler_is_called_so(inputs, tmp_path):
    validation = json.loads(inputs.validation.read_text())
    validation["points"] = [p for p in validation["points"] if p["role"] == "check"]
    for row in validation["points"][0]["rows"]:
        row.update(
            forecast=row["measured"] * 3, low=row["measured"] * 2.9, high=row["measured"] * 3.1, error=2.0, inside=False
        )
        row["baselines"] = {"straight line": {"value": row["measured"], "error": 0.0}}
    validation.update(passed=False, criterion="The median throughput error is at most 10 %.")
    (tmp_path / "v.json").write_text(json.dumps(validation))
    reported = story.tell(read_sources([tmp_path / "v.json"]))
    about = dict([*reported.facts, *reported.paragraphs])
    assert "too sure of itself" in about["How wrong it was"]
    assert about["Simple rules"].count("worse than it") == 2
    assert (
        "The validation fell short of its criterion: The median throughput error is at most 10 %." in reported.warnings
    )


def test_without_a_validation_forecasts_are_matched_with_runs(inputs):
    found = evidence.checks(read_sources([inputs.campaign, *inputs.forecasts]))
    assert [(c.ranks, c.runs, c.origin) for c in found] == [(64, 3, "forecast beside runs")]
    expected = evidence.checks(read_sources([inputs.validation]))[0]
    assert found[0].row("rate")["measured"] == pytest.approx(expected.row("rate")["measured"])


def test_the_held_out_scale_of_a_calibration_is_a_check(inputs):
    found = evidence.checks(read_sources([inputs.fitted]))
    assert [(c.ranks, c.origin, c.fitted_up_to) for c in found] == [(32, "held out by the calibration", 16)]
    reported = story.tell(read_sources([inputs.fitted]))
    assert reported.headline.endswith("that was measured and held back from the fit.")
    assert (
        f"runs of up to 16{units.SPACE}ranks and forecast 32{units.SPACE}ranks" in dict(reported.paragraphs)["Forecast"]
    )


def test_answers_that_no_logarithmic_axis_can_show_stay_in_the_table_only(page):
    _, numbers = page
    table = {r["quantity"]: r for r in numbers["tables"]["checked"]["rows"]}
    assert table["create.q50"]["universal scalability law"] == -1
    drawn = numbers["figures"]["beside"]["rows"]
    assert all(r[key] is None or r[key] > 0 for r in drawn for key in ("value", "low", "high"))
    assert not any(
        r["operation"] == "create" and r["what"] == "q50" and r["series"] == "universal scalability law" for r in drawn
    )


@pytest.mark.parametrize("figure", FIGURES, ids=lambda f: f.name)
def test_figure_contract(figure, inputs, everything, tmp_path):
    """Names, captions and needs are checked where a figure is made."""
    assert figure.data(Sources()) is None
    sources = read_sources([inputs.study]) if figure.of_study or figure.name == "routes" else everything
    if figure.of_servers:
        mount = REPOSITORY / "tests" / "samples" / "nfs" / "mountstats.txt"
        sources = read_sources(import_files([mount], tmp_path / "mount", None, {}))
    rows = figure.data(sources)
    assert rows
    rows = json.loads(json.dumps(rows, allow_nan=False))
    drawing = figure.draw(rows)
    assert drawing.panels and drawing.legend
    for panel in drawing.panels:
        chart = panel.chart.to_dict(validate=True)
        assert chart["width"] == "container" and len(chart["description"]) > 20
        assert not re.search(r"https?:", json.dumps({k: v for k, v in chart.items() if k != "$schema"}))


def test_a_new_file_is_a_new_figure(tmp_path, monkeypatch):
    text = (Path(figures.__file__).parent / "balance.py").read_text()
    (tmp_path / "another.py").write_text(text.replace('name="balance"', 'name="another"'))
    monkeypatch.setattr(figures, "__path__", [*figures.__path__, str(tmp_path)])
    assert {f.name for f in figures.all_figures()} == {f.name for f in FIGURES} | {"another"}


def test_colours_have_a_second_sign_for_grey_prints():
    marks = figures.style.cycle("abcdefgh")
    assert len({m.shape for m in marks}) == len({m.dash for m in marks}) == len({m.colour for m in marks}) == 8


@pytest.mark.parametrize("spread", [0.0, 1e-9, 1e-6, 5e-5, 1.1e-4, 0.01, 0.09, 0.3])
@pytest.mark.parametrize("value", [95.9986, 96.0, 0.01234567, 7.43e9])
def test_a_logarithmic_axis_has_a_label_however_alike_its_values(value: float, spread: float) -> None:
    values = [value, value * (1 + spread)]
    ticks = figures.style.log_ticks(values)
    low, high = figures.style.log_scale(values).to_dict().get("domain", values)
    assert any(low <= tick <= high for tick in ticks), (ticks, low, high)


@pytest.mark.parametrize("spread", [0.0, 1e-4, 0.01, 0.5, 3, 40])
@pytest.mark.parametrize("largest", [0.03, 1.0, 100.4, 106.13, 9999.0])
def test_labels_of_an_axis_that_does_not_begin_at_zero_differ(spread, largest):
    """The step between two labels is at least a tenth of the range of the values."""
    ends = [largest - spread, largest]
    form = figures.style.digits([*ends, None])
    assert form.endswith("~r") and int(form[1:-2]) >= 3
    step = 10.0 ** math.floor(math.log10(spread / 4)) if spread else 0.0
    labels = [f"{round(largest / step) * step - number * step:{form[:-2]}g}" for number in range(5)] if spread else []
    assert len(set(labels)) == len(labels), labels


@pytest.mark.parametrize("low", [1.0, 2.0, 3.1, 7.7])
@pytest.mark.parametrize("widest", [1.02, 1.1, 1.5, 3, 4.5, 7, 10, 40, 400, 1e6])
def test_labels_of_a_logarithmic_axis_do_not_touch(low: float, widest: float) -> None:
    """Of two that do, one is left out, and its line has none: 18 of 200 pixels are a label's height and gap."""
    ticks = style.log_ticks([low, low * widest])
    places = [math.log(tick / low) / math.log(widest) for tick in ticks]
    assert len(ticks) >= 2 and min(b - a for a, b in zip(places, places[1:])) >= 0.085, ticks


@pytest.mark.parametrize("widest", [1.0, 1.02, 1.1, 1.5, 3, 10, 400, 1e6])
def test_a_logarithmic_axis_has_labels_however_little_it_spans(widest):
    for step in range(60):
        low = 1e-6 * 10 ** (step / 7)
        ticks = style.log_ticks([low, low * widest])
        # A single value has a single place on its axis, where several labels would lie on each other.
        assert (2 if widest > 1 else 1) <= len(ticks) <= (7 if widest > 1 else 1)
        assert all(low / 1.021 <= tick <= low * widest * 1.021 for tick in ticks)
        assert len({f"{tick:.3g}" for tick in ticks}) == len(ticks)


def test_one_simulated_run_is_a_report(inputs, tmp_path):
    write_report([inputs.simulated], tmp_path / "one.html", title="One run")
    text = (tmp_path / "one.html").read_text()
    numbers = json.loads(Page(text).texts["numbers"])
    assert numbers["no_data"] == ["beside", "load", "throughput", "utilisation", "whatif", "course"]
    assert text.count("no data. It needs") == len(numbers["no_data"])
    assert "<title>One run</title>" in text and "In simulation, 64" in text


@pytest.mark.parametrize(
    "missing", ["latency.hlog", "slowest", "timeline", "rank_seconds", "latency", "phases", "workload", "environment"]
)
def test_a_run_without_some_part_still_makes_a_report(missing, inputs, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(sorted((inputs.campaign / "runs").iterdir())[0], run)
    if missing == "latency.hlog":
        (run / missing).unlink()
    else:
        document = json.loads((run / "run.json").read_text())
        document.pop(missing, None)
        for phase in document.get("phases", []):
            phase.pop(missing, None)
        (run / "run.json").write_text(json.dumps(document))
    write_report([run], tmp_path / "r.html")
    assert "no data. It needs" in (tmp_path / "r.html").read_text()


def test_time_at_stations_that_is_more_than_the_response_has_no_share():
    """Stripes of an operation are served at the same time: 8 s at the servers within 1 s are no 100 %."""
    assert (
        answers.largest_part({"oss": {"service": 8.0}}, 1.0) == "most of it being served at oss, several visits at once"
    )
    assert answers.largest_part({"oss": {"service": 0.8}}, 1.0).replace("\u00a0", " ") == "80 % being served at oss"


def test_a_page_is_no_source(tmp_path):
    (tmp_path / "report.html").write_text("<!DOCTYPE html>\n<html></html>")
    with pytest.raises(InputError, match=r"report.html is a page or another file with tags, perhaps a report itself\."):
        read_sources([tmp_path / "report.html"])


def test_a_run_that_does_not_say_its_nodes_is_not_one_of_one_node(inputs, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(inputs.simulated, run)
    document = json.loads((run / "run.json").read_text())
    document["placement"] |= {"nodes": None, "ranks_per_node": None}
    (run / "run.json").write_text(json.dumps(document))
    write_report([run], tmp_path / "r.html")
    text = (tmp_path / "r.html").read_text().replace("\u202f", " ").replace("\u00a0", " ")
    assert "with 64 ranks in simulation?" in text and "In simulation, 64 ranks do" in text
    assert answers._where(document["placement"]).replace("\u00a0", " ") == "64 ranks (nodes not stated)"
    assert "1 node" not in text and "1 ×" not in text
    rows = json.loads(Page(text).texts["numbers"])["tables"]["runs"]["rows"]
    assert [row["nodes"] for row in rows] == [None] * len(rows)


def test_a_forecast_alone_says_that_nothing_checked_it(inputs, tmp_path):
    document = json.loads(inputs.forecasts[0].read_text())
    for key in (
        "baselines",
        "distributions",
        "stations",
        "bottleneck",
        "alternatives",
        "warnings",
        "extrapolation",
        "workload",
    ):
        document.pop(key)
    document["quantities"] = {"rate": {"value": 12345.0}}
    (tmp_path / "f.json").write_text(json.dumps(document))
    write_report([tmp_path / "f.json"], tmp_path / "r.html")
    text = (tmp_path / "r.html").read_text()
    assert "12.3\N{NO-BREAK SPACE}k/s, and no measurement has checked it here" in text


def test_interrupted_runs_and_failed_operations_are_warnings(inputs, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(sorted((inputs.campaign / "runs").iterdir())[0], run)
    document = json.loads((run / "run.json").read_text())
    document["status"] = "interrupted"
    document["phases"][1]["errors"] = 7
    (run / "run.json").write_text(json.dumps(document))
    warned = story.warnings(read_sources([run]))
    assert "The run run is interrupted and not complete." in warned
    assert any("7 operations failed" in w for w in warned)


def test_a_studys_page_begins_with_its_decision(inputs, tmp_path):
    reported = json.loads((inputs.study / "study.json").read_text())
    write_report([inputs.study], tmp_path / "r.html")
    text = (tmp_path / "r.html").read_text()
    found = Page(text)
    numbers = json.loads(found.texts["numbers"])
    assert {f.name for f in FIGURES if f.of_study} <= set(numbers["figures"])
    assert f"<h1>{html.escape(reported['headline'])}</h1>" in text
    decision = next(d for d in reported["designs"] if d["id"] == reported["decision"]["id"])
    row = next(r for r in numbers["tables"]["designs"]["rows"] if r["id"] == decision["id"])
    for key in ("cost", "price", "watts", "rack_units", "probability", "rate", "tail"):
        assert row[key] == pytest.approx(decision[key], rel=1e-6)
    assert [r["id"] for r in numbers["tables"]["designs"]["rows"]] == [d["id"] for d in reported["designs"]]
    assert sum(a.get("class") == "chosen" for t, a in found.elements if t == "tr") == 1
    screen = text[: text.index('id="more"')]
    for c in reported["conclusions"]:
        if c["about"] == "What would change it":  # a list, a sentence each
            assert all(html.escape(one) in screen for one in words.changes(reported))
            continue
        assert f"<dt>{c['about']}</dt>" in screen
    for warning in reported["warnings"][:6]:
        assert html.escape(warning) in screen.replace("&#39;", "&#x27;").replace("&#34;", "&quot;")
    for part in reported["study"]["parts"].values():
        assert part["source"] in text


def test_figures_and_numbers_are_files_too(inputs, tmp_path):
    write_numbers([inputs.study], tmp_path / "numbers.json")
    numbers = json.loads((tmp_path / "numbers.json").read_text())
    directories = {"data": tmp_path / "data", "figures": tmp_path / "figures"}
    written = write_report([inputs.study], tmp_path / "page.html", **directories)
    data, files = ([one for one in written if one.parent.name == name] for name in ("data", "figures"))
    assert json.loads((tmp_path / "data" / "report.json").read_text()) == numbers
    assert len(data) == 1 + len(numbers["tables"]) + len(numbers["figures"])
    for kind, name in (("tables", "designs"), ("figures", "front")):
        with (tmp_path / "data" / f"{kind[:-1]}-{name}.csv").open() as file:
            rows = list(csv.DictReader(file))
        known = numbers[kind][name]["rows"]
        assert [r["cost"] for r in rows] == [str(r["cost"]) for r in known] and [r["rate"] for r in rows] == [
            str(r["rate"]) for r in known
        ]
    assert {f.name.rpartition("-")[0] for f in files} == set(numbers["figures"])
    for file in files:
        assert (
            file.read_bytes()[:4] == (b"%PDF" if file.suffix == ".pdf" else b"\x89PNG") and file.stat().st_size > 3000
        )
    for name, there in (("data", "figure-front.csv"), ("figures", "front-0.png")):
        (tmp_path / "own" / name).mkdir(parents=True)
        own = _write(tmp_path / "own" / name / there, "mine")
        with pytest.raises(InputError, match=f"{there}' exists already"):
            write_report([inputs.study], tmp_path / "other.html", **{name: own.parent})
        assert own.read_text() == "mine" and list(own.parent.iterdir()) == [own]
    assert not (tmp_path / "other.html").exists()


@pytest.mark.parametrize(
    ("margins", "kept", "state"),
    [([1.2, 1.01], True, "keeps all levels"), ([1.2, 1.01], False, "kept, not surely enough"),
     ([1.2, 0.99], False, "misses a level"), ([1.2, None], False, "misses a level")],
)  # fmt: skip
def test_a_design_that_is_not_surely_kept_misses_no_level(margins, kept, state, inputs):
    sources = read_sources([inputs.study])
    design = next(d for d in sources.study["designs"] if d["basis"] == "simulated")
    design |= {"meets": kept, "levels": [{"margin": margin} for margin in margins]}
    sources.study["decision"] = None
    row = next(r for r in study_front.data(sources) if r["design"] == design["id"])
    assert row["state"] == state and state in {mark.label for mark in study_front.MARKS}


@pytest.mark.parametrize(
    ("places", "where"),
    [([(1, 1)], "on 1 node with 1 rank"), ([(1, 2)], "on 1 node with 2 ranks"),
     ([(1, 2), (4, 2)], "on 1 and 4 nodes with 2 ranks each"), ([(4, 1)], "on 4 nodes with 1 rank each")],
)  # fmt: skip
def test_a_question_names_nodes_and_ranks(places, where):
    assert answers._placements([{"nodes": n, "ranks": n * each} for n, each in places]) == where


@pytest.mark.parametrize(
    ("of", "reach"),
    [
        ({"extrapolation": 1.0, "platform": {"name": "lustre", "numbers": "own"}}, ""),
        ({"extrapolation": 0.5, "platform": {"name": "x", "numbers": "fitted"}}, "It lies within the measured scales."),
        (
            {"extrapolation": 6.4},
            f"It reaches {units.factor(6.4)} times the largest measured scale, {units.ranks(10)}.",
        ),
    ],
)
def test_the_line_below_the_headline_is_of_the_records(of, reach, inputs, tmp_path):
    """Of a platform that was never calibrated no scale was measured, and of a value without ends there is no range."""
    document = json.loads(inputs.forecasts[0].read_text()) | {"level": 0.8} | of
    ends = document["quantities"]["rate"]
    for known in (True, False):
        document["quantities"]["rate"] = ends if known else ends | {"low": None, "high": None}
        file = _write(tmp_path / f"{known}.json", json.dumps(document))
        range_ = f"Ranges are {units.share(0.8)} intervals." if known else ""
        assert story.tell(read_sources([file])).reach == f"{range_} {reach}".strip()
        write_report([file], tmp_path / "page.html")
        assert ('<p class="reach">' in (tmp_path / "page.html").read_text()) == bool(range_ or reach)


def _write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def test_odd_sources_are_refused_with_the_file_and_what_is_allowed(inputs, tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "campaign" / "runs").mkdir(parents=True)
    _write(tmp_path / "campaign" / "campaign.json", '{"schema_version": 1, "kind": "campaign", "points": []}')
    cases = [
        (tmp_path / "nowhere", "does not exist"),
        (tmp_path / "empty", "without run.json or campaign.json"),
        (tmp_path / "campaign", "a campaign without any run"),
        (_write(tmp_path / "empty.json", ""), "is empty"),
        (_write(tmp_path / "cut.json", '{"kind": "forecast", "quant'), "cut.json:1: this is not valid JSON"),
        (_write(tmp_path / "list.json", "[1, 2]"), "holds a list where a map is needed"),
        (_write(tmp_path / "kind.json", '{"kind": "story"}'), "has the kind 'story'"),
        (_write(tmp_path / "study.json", '{"kind": "study"}'), "a study without designs or headline"),
        (_write(tmp_path / "p.yaml", "stations: {}"), "neither a kind nor a part fitted"),
        (_write(tmp_path / "odd.yaml", "a: [1, 2"), "odd.yaml:1: this is not valid YAML"),
        (_write(tmp_path / "new.json", '{"kind": "forecast", "schema_version": 2}'), "schema version 2"),
        (_write(tmp_path / "bare.json", '{"kind": "forecast"}'), "a forecast without quantities"),
        (_write(tmp_path / "v.json", '{"kind": "validation"}'), "a validation without points"),
    ]
    binary = tmp_path / "binary"
    binary.write_bytes(b"\x89HDF\r\n\x1a\n\xff\xfe")
    cases.append((binary, "binary:1: this is no text in UTF-8"))
    for path, part in cases:
        with pytest.raises(InputError) as caught:
            write_report([inputs.validation, path], tmp_path / "r.html")
        assert part in str(caught.value) and str(path) in str(caught.value) and str(caught.value).endswith(".")
    with pytest.raises(InputError, match="No source was given"):
        write_report([], tmp_path / "r.html")
    assert not (tmp_path / "r.html").exists()


def test_a_damaged_histogram_log_is_named(inputs, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(sorted((inputs.campaign / "runs").iterdir())[0], run)
    file = run / "latency.hlog"
    file.write_text(file.read_text()[:-300].replace("HISTFAAA", "HISTFAAB"))
    with pytest.raises(InputError, match="latency.hlog is damaged"):
        write_report([run], tmp_path / "r.html")


def test_the_file_is_written_whole_or_not_at_all(inputs, tmp_path):
    old = f'{GENERATOR}0.0">the old page'
    out = _write(tmp_path / "r.html", old)
    with pytest.raises(InputError):
        write_report([tmp_path / "nowhere"], out)
    assert out.read_text() == old
    write_report([inputs.validation], out)
    assert out.read_text().startswith("<!DOCTYPE html>") and [p.name for p in tmp_path.iterdir()] == ["r.html"]
    with pytest.raises(InputError, match="is a directory"):
        write_report([inputs.validation], tmp_path)
    with pytest.raises(InputError, match="is not a directory"):
        write_report([inputs.validation], tmp_path / "no" / "r.html")


def test_what_users_wrote_is_never_markup(inputs, tmp_path):
    document = json.loads(inputs.forecasts[-1].read_text())
    document["label"] = "</script><b>bold & 'quoted'"
    (tmp_path / "f.json").write_text(json.dumps(document))
    write_report([*inputs.forecasts[:-1], tmp_path / "f.json"], tmp_path / "r.html", title="<i>title</i>")
    text = (tmp_path / "r.html").read_text()
    assert "</script><b>" not in text and "<i>title" not in text
    assert text.count("</script>") == 4


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        (units.seconds(12.34e-6), "12.3 us"), (units.seconds(4.561e-3), "4.56 ms"), (units.seconds(0.99996), "1.00 s"),
        (units.seconds(999.9e-6), "1.00 ms"), (units.seconds(1.234), "1.23 s"), (units.seconds(5e-9), "5.00 ns"),
        (units.seconds(0.0), "0 s"), (units.seconds(123.4), "123 s"), (units.seconds(None), "–"),
        (units.rate(12345), "12.3 k/s"), (units.rate(456), "456 /s"), (units.rate(1.234e6), "1.23 M/s"),
        (units.rate(0.5), "0.500 /s"),
        (units.error(0.12), "+12 %"), (units.error(-0.034), "−3.4 %"), (units.error(0), "0.0 %"),
        (units.error(28.5), "× 30"),
        (units.error(0.0996), "+10 %"), (units.error(9.5), "+950 %"), (units.count(1234567), "1,234,567"),
        (units.span(units.rate(11000), units.rate(13000)), "11.0 to 13.0 k/s"),
        (units.span(units.seconds(9e-4), units.seconds(2e-3)), "900 us to 2.00 ms"),
        (units.ranks(1), "1 rank"), (units.ranks(1024), "1,024 ranks"),
    ],
)  # fmt: skip
def test_numbers_are_written_for_people(shown, expected):
    assert shown.replace(units.SPACE, " ") == expected


def sources_of(*targets: dict[str, Any]) -> Sources:
    return Sources(forecasts=list(targets))


def test_a_target_stands_beside_the_simple_rule() -> None:
    target = {
        "phase": "benchmark",
        "placement": {"ranks": 256, "nodes": 64, "ranks_per_node": 4},
        "level": 0.9,
        "waiting_factor": 0,
        "quantities": {"rate": {"value": 1000.0, "low": 900.0, "high": 1100.0}},
    }

    def rule() -> str:
        (grid,) = answers.grids(sources_of(target))
        return dict(zip(grid.header, grid.rows[0], strict=True))["simple rule"]

    assert rule() == units.NOTHING
    target["baselines"] = {"last value": {"rate": 700.0}, "closed M/M/c": {"rate": 800.0}}
    assert rule() == f"{units.rate(700.0)} (last value)"


def test_the_models_line_begins_at_the_smallest_fitted_scale() -> None:
    target = {"phase": "create", "placement": {"ranks": 256, "nodes": 64, "ranks_per_node": 4}, "level": 0.9,
              "waiting_factor": 0, "quantities": {"rate": {"value": 1000.0, "low": 900.0, "high": 1100.0}}}  # fmt: skip
    scales = {4: 50.0, 8: 90.0}
    points = [{"name": f"N={ranks} T=0", "ranks": ranks, "nodes": 1, "waiting_factor": 0.0} for ranks in scales]
    fit = [{"point": f"N={ranks} T=0", "quantity": "rate", "forecast": rate} for ranks, rate in scales.items()]
    known = sources_of(target)
    known.fitted.append({"name": "p", "fitted": {"campaign": {"phase": "create", "points": points}, "fit": fit}})
    rows = [r for r in throughput.data(known) or [] if r["series"] == "forecast"]
    assert [(r["ranks"], r["value"], r["fitted"]) for r in rows] == [
        (4, 50.0, True), (8, 90.0, True), (256, 1000.0, False),
    ]  # fmt: skip
    assert whatif.data(known) is None, "one point is no line"


@pytest.mark.parametrize("waiting_factor", [0.0, 2.0])
def test_a_line_of_the_throughput_figure_is_of_one_fit(waiting_factor: float) -> None:
    """A held-out forecast, and the rules beside it, know less than the fit whose line goes past them."""
    held_out, final, largest = 63.6e3, 52.5e3, 128
    where = f"N={largest} T={waiting_factor:g}"
    known = sources_of(
        {
            "phase": "file-create",
            "placement": {"ranks": 512, "nodes": 32, "ranks_per_node": 16},
            "level": 0.9,
            "waiting_factor": waiting_factor,
            "quantities": {"rate": {"value": 81.9e3, "low": 60e3, "high": 90e3}},
            "baselines": {"last value": {"rate": 52e3}},
        }
    )
    row = {"point": where, "phase": "file-create", "quantity": "rate", "measured": 52e3}
    held = row | {"forecast": held_out, "low": 50e3, "high": 70e3, "baselines": {"last value": {"value": 30e3}}}
    point = {"name": where, "ranks": largest, "nodes": 8, "waiting_factor": waiting_factor}
    fitted = {"campaign": {"phase": "file-create", "points": [point]}, "fit": [row | {"forecast": final}]}
    fitted["holdout"] = {"ranks": largest, "nodes": 8, "fitted_up_to": 64, "rows": [held]}
    known.fitted.append({"name": "p", "fitted": fitted})
    rows = throughput.data(known) or []
    drawn = {(r["series"], r["ranks"], r["held_out"]): r["value"] for r in rows}
    assert drawn == {
        ("measured", largest, False): 52e3,
        ("forecast", largest, False): final,
        ("forecast", 512, False): 81.9e3,
        ("held-out forecast", largest, True): held_out,
        ("last value", largest, True): 30e3,
        ("last value", 512, False): 52e3,
    }
    made = throughput.draw(rows)
    assert [mark.label for mark in made.legend[:3]] == ["measured", "forecast", "held-out forecast"]
    (panel,) = made.panels
    layers = panel.chart.to_dict()["layer"]
    joined = [layer for layer in layers if layer["mark"]["type"] in ("line", "area")]
    assert joined
    for layer in joined:
        condition = str(layer["transform"])
        assert "!datum.held_out" in condition or '!(datum["series"] === "forecast")' not in condition, condition


def test_errors_of_one_sign_are_named_where_chance_does_not_explain_them() -> None:
    """Two-sided sign test: 2 / 2^6 = 3 % for six of six, 2 * 7 / 2^6 = 22 % for five of six."""
    assert one_sided([0.1] * 6).startswith("6 of 6 forecasts were above the measurement (by chance: 3 %)")
    assert "too low" in one_sided([-0.1] * 9 + [0.2])
    assert not one_sided([0.1] * 5) and not one_sided([0.1] * 5 + [-0.1]) and not one_sided([])


def test_chance_is_a_number_that_can_be_read():
    for count in range(6, 60):
        assert re.search(r"by chance: (less than )?[0-9.]+ %", one_sided([0.1] * count)), count


def test_targets_of_the_same_ranks_differ_in_their_names():
    """By their nodes; forecasts of two systems for one placement by their labels."""

    def target(nodes: int, rate: float, label: str = "site") -> dict[str, Any]:
        return {"phase": "benchmark", "placement": {"ranks": 128, "nodes": nodes, "ranks_per_node": 128 // nodes},
                "label": label, "waiting_factor": 0,
                "quantities": {"rate": {"value": rate, "low": rate / 2, "high": rate * 2}}}  # fmt: skip

    for others, names in (
        ([target(16, 1000), target(32, 2000)], ("on 16 nodes: benchmark", "on 32 nodes: benchmark")),
        ([target(16, 1000), target(16, 2000, "offer")], ("128 ranks: benchmark (site)", ", benchmark (offer)")),
        ([target(16, 1000)], ("128 ranks: benchmark 1",)),
    ):
        shown = story.tell(sources_of(*others))
        headline = shown.headline.replace(units.SPACE, " ")
        assert all(name in headline for name in names), headline
        (grid,) = shown.grids
        assert len({tuple(row[:2]) for row in grid.rows}) == len(others), grid.rows


def test_two_platforms_as_they_are_have_labels_of_their_own() -> None:
    """Neither is called as the other; two of one name have their content beside it."""

    def one(name: str, content: str, ranks: int = 4) -> dict[str, Any]:
        return {"phase": "benchmark", "placement": {"ranks": ranks, "nodes": 1, "ranks_per_node": ranks},
                "platform": {"name": name, "content_hash": f"sha256:{content}", "edits": {}},
                "quantities": {"rate": {"value": 1.0, "low": 0.5, "high": 2.0}}}  # fmt: skip

    def labels(*forecasts: dict[str, Any]) -> list[str]:
        found = evidence.what_if(sources_of(*forecasts))
        rows = next(t for t in tables.all_tables(sources_of(*forecasts)) if t.name == "forecasts").rows
        assert list(found) == list(dict.fromkeys(row["system"] for row in rows))
        return list(found)

    assert labels(one("site", "a"), one("site", "a", 8)) == ["as it is"]
    assert labels(one("site", "a"), one("offer", "b")) == ["site as it is", "offer as it is"]
    assert labels(one("site", "a"), one("site", "b")) == ["site (a) as it is", "site (b) as it is"]
    edited = one("site", "a") | {"platform": {"name": "site", "edits": {"x": 1}}, "label": "twice"}
    assert labels(edited, one("site", "a")) == ["as it is", "twice"]


@pytest.mark.parametrize("measured", [False, True])
def test_forecasts_of_other_settings_are_no_line_with_what_was_measured(measured: bool) -> None:
    """Each workload is a series of its own; the measured one goes on the model's line. Lengths tell none apart."""

    def one(ranks: int, settings: dict[str, Any]) -> dict[str, Any]:
        placement = {"ranks": ranks, "nodes": 1, "ranks_per_node": ranks}
        question = {"workload": {"name": "of my own", "pattern": "mine", "definition": ""},
                    "settings": settings, "placement": placement, "waiting_factor": 0,
                    "phase": "benchmark"}  # fmt: skip
        return {"phase": "benchmark", "placement": placement, "question": question,
                "platform": {"name": "site", "content_hash": "sha256:a", "edits": {}},
                "distributions": {"stat": {"probability": [0.5, 0.9], "seconds": [1.0, 2.0]}},
                "quantities": {"rate": {"value": 9.0 * ranks, "low": 1.0, "high": 999.0}}}  # fmt: skip

    mixed, readers = {"read_only": "false", "objects": 3}, {"read_only": "true", "objects": 3}
    sources = sources_of(one(8, mixed), one(8, readers), one(64, mixed | {"objects": 5}), one(64, readers))
    if measured:
        workload = {"name": "of my own", "pattern": "mine", "parameters": {**mixed, "objects": 9}}
        point = {"name": "N=4 T=0", "ranks": 4, "nodes": 1, "rate": 30.0, "latency": {}, "waiting_factor": 0.0}
        fit = [{"point": "N=4 T=0", "quantity": "rate", "forecast": 31.0}]
        campaign = {"phase": "benchmark", "workload": workload, "points": [point]}
        sources.fitted.append({"name": "site", "fitted": {"campaign": campaign, "fit": fit}})
    expected = {
        "" if measured else "read_only=false": {8, 64} | ({4} if measured else set()),
        "read_only=true": {8, 64},
    }
    rows = throughput.data(sources) or []
    found = {name: {row["ranks"] for row in rows if row["system"] == name} for name in {row["system"] for row in rows}}
    assert found == expected
    named = {row["series"].partition("ranks")[2].strip(", ") for row in percentiles.data(sources) or []}
    assert named and named <= set(expected)
    assert evidence.series_of(sources_of(one(8, mixed)), one(8, mixed)) == ""


@pytest.mark.parametrize(
    ("places", "lines"),
    [
        ([(1, 1), (2, 1), (8, 1)], [""] * 3),
        ([(1, 1), (1, 2), (1, 8)], [""] * 3),
        ([(1, 1), (2, 1), (8, 1), (1, 8)], ["1 a node"] * 3 + ["on 1"]),
        ([(1, 4), (4, 2), (1, 64)], ["on 1", "2 a node", "on 1"]),
    ],
)
def test_a_line_joins_placements_that_grow_in_one_direction(places: list[tuple[int, int]], lines: list[str]) -> None:
    """8 ranks on 8 nodes and on one are two points, and never one line."""

    def one(nodes: int, each: int) -> dict[str, Any]:
        placement = {"ranks": nodes * each, "nodes": nodes, "ranks_per_node": each}
        return {"phase": "benchmark", "placement": placement, "platform": {"name": "site", "edits": {}},
                "quantities": {"rate": {"value": 9.0 * nodes * each, "low": 1.0, "high": 999.0}}}  # fmt: skip

    rows = throughput.data(sources_of(*(one(*place) for place in places))) or []
    found = {(row["nodes"], row["ranks"] // row["nodes"]): row["line"] for row in rows}
    assert found == dict(zip(places, lines, strict=True)) and len(rows) == len(places)


def test_only_forecasts_have_intervals_that_may_be_wide(inputs):
    by_name = {table.name: table for table in tables.all_tables(read_sources(inputs.all))}
    for name, table in by_name.items():
        wide = [key for row in table.numbers() for key in row if key.endswith("_wide")]
        assert bool(wide) == (name == "forecasts"), name


def test_the_middle_of_a_wide_interval_is_about_right_wherever_it_stands():
    """Upper over lower end beyond a factor 30: in the grid, in sentences and in tables."""
    value = 1234.5
    wide = {
        "phase": "benchmark",
        "placement": {"ranks": 256, "nodes": 64, "ranks_per_node": 4},
        "level": 0.9,
        "waiting_factor": 0,
        "quantities": {"rate": {"value": value, "low": value / 6, "high": value * 6}},
    }
    (grid,) = answers.grids(sources_of(wide))
    roughly = f"about {units.rate(value)}"
    assert grid.rows[0][2] == roughly and units.rate(value * 6) in grid.rows[0][3]
    reported = story.tell(sources_of(wide))
    assert f"({roughly})" in reported.headline
    assert "iocast plan" in grid.note
    table = next(one for one in tables.all_tables(sources_of(wide)) if one.name == "forecasts")
    (row,) = table.rows
    cells = [column.text(row) for column in table.columns]
    assert roughly in cells and units.rate(value) not in cells and "iocast plan" in table.notes
    assert table.numbers()[0]["rate"] == value and table.numbers()[0]["rate_wide"]
    known = sources_of(wide)
    held = {
        "quantity": "rate",
        "measured": 2 * value,
        "forecast": value,
        "low": value / 6,
        "high": value * 6,
        "error": -0.5,
    }
    holdout = {"ranks": 64, "fitted_up_to": 32, "rows": [held]}
    known.fitted.append({"name": "p", "fitted": {"campaign": {"phase": "benchmark"}, "holdout": holdout}})
    checked = story.tell(known)
    sentences = [checked.headline, *(text for _, text in checked.paragraphs), *(card.note for card in checked.cards)]
    assert all(text.count(units.rate(value)) == text.count(roughly) for text in sentences)
    assert sum(text.count(roughly) for text in sentences) > 1
    drawn = [row for figure in figures.all_figures() for row in figure.data(known) or [] if row.get("value") == value]
    assert len(drawn) >= 3 and all(row["wide"] for row in drawn), "figures leave the value out"
    moving = wide | {
        "seconds": {"value": 7.5},
        "operations": {"write": {"bytes_each": 1, "bytes_per_second": {"value": 2e9}}},
    }
    for phase in ("write", "read"):
        other = [moving | {"phase": phase}, moving]
        (grid,) = answers.grids(sources_of(*other))
        texts = [cell for cells in grid.rows for cell in cells] + [story.tell(sources_of(*other)).headline]
        for shown in (units.seconds(7.5), units.bandwidth(2e9)):
            assert any(shown in text for text in texts)
            assert all(text.count(shown) == text.count(f"about {shown}") for text in texts), texts
    edited = {"label": "twice", "platform": {"edits": {"stations.mds.servers": 2}}}
    for times in (5, 7):  # the factor between two values that are hardly known is no answer
        rate = {"value": 2 * value, "low": 2 * value / times, "high": 2 * value * 5}
        shown = " ".join(text for _, text in story.tell(sources_of(
            wide | {"quantities": {"rate": {"value": value, "low": value / times, "high": value * 5}}},
            wide | edited | {"quantities": {"rate": rate}})).paragraphs)  # fmt: skip
        assert "twice" in shown and ("times as much" in shown) == (times == 5), shown
    row = {"quantity": "rate", "forecast": value, "low": value / 6, "high": value * 6}
    column = Column("forecast", "forecast", "quantity")
    shown = units.quantity("rate", value)
    assert column.text(row) == f"about {shown}" and column.text(row | {"low": value / 5}) == shown


@pytest.mark.parametrize(
    ("times", "words", "rules"),
    [
        (6, "about 1.00 k/s", "200 /s .. 7.20 k/s (all rules)"),
        (20, "about 1.00 k/s", "rules disagree: 200 /s (last value) .. 80.0 k/s (closed M/M/c)"),
        (2e3, "not known", "rules disagree: 200 /s (last value) .. 800 M/s (closed M/M/c)"),
    ],
)
def test_a_value_in_a_wide_interval_is_about_right_or_not_known(times: float, words: str, rules: str) -> None:
    """On the terminal and the page alike. A rule that says 0 says nothing."""
    rate = {"value": 1000.0, "low": 1000 / times, "high": 1000 * times}
    made = {
        "phase": "benchmark",
        "placement": {"ranks": 256, "nodes": 64, "ranks_per_node": 4},
        "level": 0.9,
        "waiting_factor": 0,
        "quantities": {"rate": rate},
        "baselines": {
            "straight line": {"rate": 0.0},
            "last value": {"rate": 200.0},
            "closed M/M/c": {"rate": 200 * times**2},
        },
    }
    assert interval("rate", rate)[0] == words
    (grid,) = answers.grids(sources_of(made))
    cells = dict(zip(grid.header, (cell.replace(units.SPACE, " ") for cell in grid.rows[0]), strict=True))
    assert cells["forecast"] == words and cells["simple rule"] == rules
    assert f"({words})" in story.tell(sources_of(made)).headline.replace(units.SPACE, " ")
    (table,) = [one for one in tables.all_tables(sources_of(made)) if one.name == "forecasts"]
    assert words in [column.text(table.rows[0]).replace(units.SPACE, " ") for column in table.columns]


@pytest.mark.parametrize("points", [["n1"], [None], 7, "n1"])
def test_a_campaign_whose_points_are_no_maps_is_refused(tmp_path: Path, points: Any) -> None:
    campaign = {"schema_version": 1, "kind": "campain", "points": points}  # whose kind no reader checks
    (tmp_path / "campaign.json").write_text(json.dumps(campaign))
    with pytest.raises(InputError, match="its points are no list of maps"):
        read_sources([tmp_path])
