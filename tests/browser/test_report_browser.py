# SPDX-License-Identifier: Apache-2.0
"""The report in headless Chromium: it draws offline, asks the network for nothing, sorts, and its hover tells the
JSON's numbers."""

from __future__ import annotations

import json
import math
import random
import re
import sys
import time
from pathlib import Path

import pytest
from chromium import SIZES, Browser

sys.path.insert(0, str(Path(__file__).parents[1] / "python"))
import report_inputs  # noqa: E402

from iocast.report import study_controls, units, write_report  # noqa: E402
from iocast.study.amounts import nearness  # noqa: E402
from iocast.study.designs import Design  # noqa: E402
from iocast.study.levels import parse_level  # noqa: E402
from iocast.study.search import Candidate, _order  # noqa: E402

pytestmark = pytest.mark.needs("browser")
DRAWN = "document.body && (document.body.dataset.drawn || document.body.dataset.failed) || ''"


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    opened = Browser(tmp_path_factory.mktemp("profile"))
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """A page on measurements and forecasts, and one on a study."""
    directory = tmp_path_factory.mktemp("report")
    inputs = report_inputs.made(tmp_path_factory)
    write_report(inputs.all, directory / "report.html")
    write_report([inputs.study], directory / "study.html")
    return directory


@pytest.fixture(scope="module")
def report(pages):
    return pages / "report.html"


@pytest.fixture(scope="module", params=["report", "study"])
def page(pages, request):
    return pages / f"{request.param}.html"


@pytest.mark.parametrize("size", SIZES)
def test_page_draws_offline_without_a_request_or_an_error(browser, page, size, tmp_path):
    browser.open(page, SIZES[size], DRAWN)
    charts = browser.evaluate("document.querySelectorAll('.chart').length")
    assert browser.evaluate("document.body.dataset.failed || ''") == ""
    assert int(browser.evaluate("document.body.dataset.drawn")) == charts > 9
    assert browser.evaluate(
        "[...document.querySelectorAll('.chart')].every(c => c.querySelector('svg path, svg text'))"
    )
    entries = [e["params"]["request"]["url"] for e in browser.events if e.get("method") == "Network.requestWillBeSent"]
    outside = [url for url in entries if not url.startswith("data:")]
    assert outside == [page.as_uri()], "nothing but the page itself is loaded"
    rows = [
        e["params"]
        for e in browser.events
        if e.get("method") in ("Runtime.exceptionThrown", "Log.entryAdded", "Runtime.consoleAPICalled")
    ]
    assert rows == [], "the console is silent"
    browser.screenshot(tmp_path / f"{size}.png")
    assert (tmp_path / f"{size}.png").stat().st_size > 50_000


@pytest.fixture(scope="module", params=SIZES)
def size(request):
    """The page's, for tests that look at one page after the other."""
    return request.param


def test_nothing_is_wider_than_the_page(browser, page, size):
    browser.look_at(page, SIZES[size], DRAWN)
    width = SIZES[size][0]
    assert browser.evaluate("document.documentElement.scrollWidth") <= width
    wide = browser.evaluate(
        "[...document.querySelectorAll('.chart svg')].filter(s => s.getBoundingClientRect().right > innerWidth +"
        " 1).length"
    )
    assert wide == 0


OVERLAPS = """
[...document.querySelectorAll('.chart')].flatMap(chart =>
 [...chart.querySelectorAll('.role-axis-label')].flatMap(axis => {
  const boxes = [...axis.querySelectorAll('text')].filter(t => t.textContent && getComputedStyle(t).opacity !== '0')
    .map(t => [t.textContent, t.getBoundingClientRect()]);
  return boxes.flatMap(([text, a], i) => boxes.slice(i + 1)
    .filter(([_, b]) => a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 2 && b.top < a.bottom - 2)
    .map(([other]) => chart.id + ': ' + text + ' / ' + other));
}))
"""


def test_labels_of_axes_do_not_overlap(browser, page, size):
    browser.look_at(page, SIZES[size], DRAWN)
    assert browser.evaluate("document.querySelectorAll('.role-axis-label text').length") > 50
    assert browser.evaluate(OVERLAPS) == []


def column(browser, table: str, key: str) -> list[float]:
    values = browser.evaluate(
        f"[...document.querySelectorAll('#table-{table} td[data-key=\"{key}\"]')].map(c => c.dataset.value)"
    )
    return [float(v) for v in values]


@pytest.mark.parametrize(
    "name, table, key, title", [("report", "checked", "error", "error"), ("study", "designs", "tail", "q99")]
)
def test_tables_sort_by_click_and_by_keyboard(browser, pages, name, table, key, title):
    browser.open(pages / f"{name}.html", SIZES["desk"], DRAWN)
    browser.unfold(f"#table-{table}")
    before = column(browser, table, key)
    head = f"[...document.querySelectorAll('#table-{table} th button')].find(b => b.textContent === '{title}')"
    browser.evaluate(f"{head}.click()")
    assert column(browser, table, key) == sorted(before) != before
    assert browser.evaluate(f"{head}.closest('th').getAttribute('aria-sort')") == "ascending"
    browser.evaluate(f"{head}.focus()")
    browser.press("Enter", 13, "\r")
    assert column(browser, table, key) == sorted(before, reverse=True)
    assert browser.evaluate(f"{head}.closest('th').getAttribute('aria-sort')") == "descending"


def hovered(browser, chart: str, colour: str) -> str:
    """What the tooltip of the chart's only mark of this colour says."""
    browser.unfold(f"#{chart}")
    browser.wait(f"document.querySelector('#{chart} .mark-symbol path') !== null")
    browser.evaluate("document.documentElement.style.scrollBehavior = 'auto'")
    place = (
        f"(() => {{ const chart = document.getElementById('{chart}'); chart.scrollIntoView();"
        "const marks = [...chart.querySelectorAll('.mark-symbol path')]"
        f".filter(p => p.getAttribute('fill') === '{colour}');"
        "const b = marks[0].getBoundingClientRect(); return [marks.length, b.x + b.width / 2, b.y + b.height / 2]; })()"
    )
    until = time.monotonic() + 120
    while not (shown := browser.evaluate("document.querySelector('#vg-tooltip-element.visible')?.textContent || ''")):
        assert time.monotonic() < until, "no tooltip came up"
        dot = browser.evaluate(place)  # anew: what is above may still be drawn
        assert dot[0] == 1
        browser.move(dot[1] - 40, dot[2])
        browser.move(dot[1], dot[2])
        time.sleep(0.1)
    return shown


def test_hover_tells_the_number_of_the_json(browser, pages):
    browser.open(pages / "report.html", SIZES["desk"], DRAWN)
    numbers = json.loads(browser.evaluate("document.getElementById('numbers').textContent"))
    row = next(r for r in numbers["figures"]["beside"]["rows"] if r["what"] == "rate" and r["series"] == "forecast")
    value = float(re.search(r"value\s*([\d.]+) k/s", hovered(browser, "beside-0", "#0072B2")).group(1)) * 1e3
    assert value == pytest.approx(row["value"], rel=1e-3)
    assert units.rate(row["value"]).split(units.SPACE)[1] == "k/s"


def test_hover_over_the_decision_tells_its_numbers(browser, pages):
    browser.open(pages / "study.html", SIZES["desk"], DRAWN)
    numbers = json.loads(browser.evaluate("document.getElementById('numbers').textContent"))
    row = next(r for r in numbers["figures"]["front"]["rows"] if r["state"] == "the decision")
    shown = hovered(browser, "front-1", "#D55E00")
    assert row["name"] in shown and row["design"] in shown
    rate = re.search(r"rate\s*([\d.]+) k/s", shown)
    assert float(rate.group(1)) * 1e3 == pytest.approx(row["rate"], rel=5e-3)
    cost = re.search(r"cost\s*([\d,]+) EUR", shown)
    assert float(cost.group(1).replace(",", "")) == pytest.approx(row["cost"], rel=5e-3)


def test_the_download_is_the_json(browser, report):
    browser.open(report, SIZES["desk"], DRAWN)
    assert browser.evaluate(
        "(() => { const a = document.getElementById('download'); return"
        " decodeURIComponent(a.href.split(',').slice(1).join(',')) === document.getElementById('numbers').textContent"
        " && a.href.startsWith('data:application/json'); })()"
    )


def test_what_is_folded_stands_on_paper(browser, page):
    """But for tables of numbers, which fill pages."""
    browser.open(page, next(iter(SIZES.values())), DRAWN)
    closed = "[...document.querySelectorAll('details:not([open])')].filter(d => !d.querySelector('table')).length"
    before = browser.evaluate(closed)
    browser.evaluate(f"addEventListener('beforeprint', () => {{ document.body.dataset.closed = {closed}; }})")
    browser.call("Page.printToPDF")
    assert before > 0 and browser.evaluate("document.body.dataset.closed") == "0"
    assert browser.evaluate(closed) == before


TURN = (
    "(([number, value]) => { const one = document.getElementById('turn-' + number); one.value = value;"
    " one.dispatchEvent(new Event('input')); return document.body.dataset.chosen; })"
)


def decided(study, limits, prices):
    """The cheapest design that keeps all levels, from the samples of the answer: with factors on limits and prices."""
    best = None
    for design in study["designs"]:
        if design["basis"] != "simulated":
            continue
        shifts = []
        for row in design["levels"]:
            factor = limits.get(row["level"], 1.0)
            shifts.append(math.log(factor if row["upper"] else 1 / factor))
        kept = [all(m / 1000 + s >= 0 for m, s in zip(one, shifts, strict=True)) for one in design["possible_margins"]]
        parts = study["study"]["parts"]
        more = sum(design["parts"].get(part, 0) * parts[part]["price"] * (f - 1) for part, f in prices.items())
        if sum(kept) / len(kept) >= study["confidence_asked"] and (best is None or design["cost"] + more < best[0]):
            best = (design["cost"] + more, design["id"])
    return best[1] if best else ""


def test_sliders_of_a_study_choose_what_its_samples_choose(browser, pages, tmp_path_factory):
    study = json.loads((report_inputs.made(tmp_path_factory).study / "study.json").read_text())
    browser.open(pages / "study.html", SIZES["phone"], DRAWN)
    assert browser.evaluate("document.body.dataset.chosen") == study["decision"]["id"]
    names = browser.evaluate("JSON.parse(document.getElementById('study-desk').textContent).sliders")
    places = {(one["kind"], one["name"]): number for number, one in enumerate(names, 1)}
    chosen = set()
    for level in study["levels"]:
        for exponent in (-1, -0.5, 0.5, 1):
            found = browser.evaluate(f"{TURN}([{places['level', level['level']]}, {exponent}])")
            assert found == decided(study, {level["level"]: 4.0**exponent}, {})
            chosen.add(found)
        browser.evaluate(f"{TURN}([{places['level', level['level']]}, 0])")
    for part in study["study"]["parts"]:
        for exponent in (-1, 1):
            found = browser.evaluate(f"{TURN}([{places['price', part]}, {exponent}])")
            assert found == decided(study, {}, {part: 4.0**exponent})
            chosen.add(found)
        browser.evaluate(f"{TURN}([{places['price', part]}, 0])")
    assert len(chosen) > 1, "another question has another answer"
    assert browser.evaluate("document.body.dataset.chosen") == study["decision"]["id"]


@pytest.mark.parametrize("seed", range(20))
def test_prices_lead_to_no_design_beyond_the_budget(browser, seed):
    """What they bring within it was not simulated, and is counted."""
    randomly = random.Random(seed)
    answer = answer_of(randomly, [10.0, 20.0, 30.0, 40.0], [0.5, 0.9, 0.95, 1.0])
    answer["study"]["limits"] = {"budget": randomly.choice([20.0, 30.0, 50.0]), "watts": 100}
    answer["study"]["parts"]["core"]["price"] = 1.0
    budget = answer["study"]["limits"]["budget"]
    for one in answer["designs"]:
        one |= {"watts": randomly.choice([50, 200]), "rack_units": 1}
        one["basis"] = "beyond limits" if one["cost"] > budget or one["watts"] > 100 else "simulated"
    price = randomly.choice([0.1, 1.0, 3.0])
    costs = {one["id"]: one["cost"] + (price - 1.0) * one["parts"]["core"] for one in answer["designs"]}
    within = [one for one in answer["designs"] if costs[one["id"]] <= budget]
    kept = [one for one in within if one["basis"] == "simulated" and one["probability"] >= 0.9]
    cheapest = min(
        kept, key=lambda one: (costs[one["id"]], -one["probability"], int(one["id"][1:])), default={"id": ""}
    )
    values = [price if one.kind == "price" else one.value for one in study_controls.sliders(answer)]
    chosen, nearest, unsimulated = decided_in(browser, answer, values, "a.unsimulated")
    assert chosen == cheapest["id"] and (not nearest or costs[nearest] <= budget)
    assert unsimulated == sum(one["basis"] != "simulated" and one["watts"] <= 100 for one in within)


@pytest.mark.parametrize(
    ("level", "least", "most"), [("utilisation(mds) < 80 %", "20 %", "100 %"), ("au >= 90 %", "69.2 %", "97.3 %")]
)
def test_no_slider_leads_beyond_all_of_the_time(browser, level, least, most, tmp_path, tmp_path_factory):
    study = json.loads((report_inputs.made(tmp_path_factory).study / "study.json").read_text())
    parsed = parse_level(level)
    study["levels"][0] |= {"level": level, "quantity": parsed.quantity, "limit": parsed.limit, "upper": parsed.upper}
    (tmp_path / "study.json").write_text(json.dumps(study))
    write_report([tmp_path / "study.json"], tmp_path / "page.html")
    browser.open(tmp_path / "page.html", SIZES["desk"], DRAWN)
    for end, shown in ((-1, least), (1, most)):
        browser.evaluate(f"{TURN}([1, {end}])")
        text = browser.evaluate("document.getElementById('turn-1').getAttribute('aria-valuetext')")
        assert text.replace("\u00a0", " ") == shown


@pytest.mark.parametrize("now", [0.8, 0.93, 0.99])
@pytest.mark.parametrize("seed", range(5))
def test_a_turned_share_of_time_is_judged_as_the_study_judges_it(browser, seed, now):
    """By its odds: the page keeps a level where a study with that limit does."""
    randomly = random.Random(seed)
    answer = answer_of(randomly, [0.0], [0.95])
    stated, turned = parse_level("au >= 90 %"), parse_level(f"au >= {100 * now:g} %")
    answer["levels"] = [{"level": "au", "quantity": "au", "limit": stated.limit, "upper": False}]
    kept = {}
    for one in answer["designs"]:
        value = randomly.uniform(0.7, 0.995)
        one["levels"] = [{"level": "au", "margin": math.exp(stated.margin(value))}]
        one["possible_margins"] = [[math.floor(1000 * stated.margin(value))]]
        kept[one["id"]] = stated.margin(value) - stated.margin(turned.limit) >= 0
        assert kept[one["id"]] == (turned.margin(value) >= 0)
    values = [now if one.kind == "level" else one.value for one in study_controls.sliders(answer)]
    chosen, _ = decided_in(browser, answer, values)
    assert chosen == next((name for name in kept if kept[name]), "")


def decided_in(browser, answer, values, *more):
    """The id of the design that a page chooses with its sliders at these values, and of that which comes nearest; and
    further expressions of the decision `a`."""
    source = (Path(study_controls.__file__).parent / "study_decision.js").read_text()
    call = f"decided({json.dumps(study_controls.desk(answer))}, {json.dumps(values)})"
    stated = ", ".join(["a.chosen?.id ?? ''", "a.nearest?.id ?? ''", *more])
    return browser.evaluate(f"(() => {{ {source}; const a = {call}; return [{stated}]; }})()")


def answer_of(randomly, costs, probabilities):
    """Those keys of a study's answer that a page decides from: designs of few different costs and chances."""
    designs = []
    for number in range(1, randomly.randint(2, 13)):
        margins = [randomly.choice([None, 0.7, 0.9, 1.2]) for _ in range(2)]
        designs.append({
            "id": f"d{number}", "name": str(number), "cost": randomly.choice(costs), "basis": "simulated",
            "parts": {"core": number}, "probability": randomly.choice(probabilities), "possible_margins": [[0, 0]],
            "levels": [{"level": str(i), "margin": margin} for i, margin in enumerate(margins)],
        })  # fmt: skip
    levels = [{"level": str(i), "quantity": "rate", "limit": 1.0, "upper": False} for i in range(2)]
    study = {"parts": {"core": {"price": 1}}}
    return {
        "designs": designs, "levels": levels, "study": study, "platform": {}, "currency": "", "confidence_asked": 0.9,
    }  # fmt: skip


def as_searched(answer):
    """Candidates of a search with the costs and probabilities of an answer's designs, by id."""
    found = {}
    for one in answer["designs"]:
        number = int(one["id"][1:])
        design = Design(number, (), one["name"], (), one["cost"], one["cost"], 0.0, 0.0, ())
        found[one["id"]] = Candidate(design, probability=one["probability"])
    return found


@pytest.mark.parametrize("seed", range(20))
def test_a_page_with_untouched_sliders_chooses_as_the_search_does(browser, seed):
    """At equal costs, which is each study without prices, and at equal chances, too."""
    randomly = random.Random(seed)
    answer = answer_of(randomly, [0.0] if seed % 2 else [0.0, 5.0], [0.005, 0.01, 0.5, 0.9, 0.95, 1.0])
    candidates = as_searched(answer)
    kept = [one for one in candidates.values() if one.probability >= answer["confidence_asked"]]
    ordered = sorted(answer["designs"], key=lambda one: (one["cost"], int(one["id"][1:])))
    values = [one.value for one in study_controls.sliders(answer)]
    assert decided_in(browser, answer, values) == [
        min(kept, key=_order).design.id if kept else "", max(ordered, key=nearness)["id"],
    ]  # fmt: skip


def test_a_slider_of_a_study_moves_the_chart_by_keyboard_and_one_button_leads_back(browser, pages):
    browser.open(pages / "study.html", SIZES["desk"], DRAWN)
    marks = (
        "[...document.querySelectorAll('#front-0 .mark-symbol path')].map(one => one.getAttribute('transform')).join()"
    )
    before, sentence = browser.evaluate(marks), browser.evaluate("document.getElementById('turn-answer').textContent")
    headline = browser.evaluate("document.querySelector('h1').textContent")
    assert sentence.split("\u201d")[0].split("\u201c")[1] in headline
    browser.evaluate("document.getElementById('turn-1').focus()")
    for _ in range(3):
        browser.press("PageUp", 33)
    browser.wait(f"{marks} !== {json.dumps(before)}")
    assert "samples" in browser.evaluate("document.getElementById('turn-answer').textContent")
    assert browser.evaluate("document.getElementById('turn-1').getAttribute('aria-valuetext')")
    browser.evaluate("document.getElementById('turn-back').click()")
    browser.wait(f"{marks} === {json.dumps(before)}")
    assert browser.evaluate("document.getElementById('turn-answer').textContent") == sentence
    assert browser.evaluate("document.activeElement.id") == "turn-1"


def test_without_scripts_the_first_figure_is_there(browser, page):
    browser.call("Emulation.setScriptExecutionDisabled", value=True)
    try:
        browser.call("Page.navigate", url=page.as_uri())
        browser.wait("document.readyState === 'complete'")
        seen = "[...document.querySelectorAll('noscript svg')].some(one => one.getBoundingClientRect().height > 150)"
        assert browser.evaluate(seen)
        assert browser.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert not browser.evaluate("[...document.querySelectorAll('input')].some(one => one.checkVisibility())")
    finally:
        browser.call("Emulation.setScriptExecutionDisabled", value=False)


POISON = "</script><img src=x onerror=\"document.body.dataset.poisoned='yes'\">"


def poisoned(value, names):
    """The document with words after each of these names that would run if they were taken as a page's."""
    if isinstance(value, dict):
        return {poisoned(key, names): poisoned(one, names) for key, one in value.items()}
    if isinstance(value, list):
        return [poisoned(one, names) for one in value]
    return value + POISON if isinstance(value, str) and value in names else value


def test_names_of_a_study_run_nothing(browser, tmp_path, tmp_path_factory):
    study = json.loads((report_inputs.made(tmp_path_factory).study / "study.json").read_text())
    names = {study["title"], study["question"], study["headline"], study["currency"], *study["warnings"]}
    names |= {name for one in study["designs"] for name in (one["name"], *one["parts"])}
    names |= {one["level"] for one in study["levels"]} | {one["text"] for one in study["conclusions"]}
    (tmp_path / "study.json").write_text(json.dumps(poisoned(study, names - {""})))
    write_report([tmp_path / "study.json"], tmp_path / "page.html")
    browser.open(tmp_path / "page.html", SIZES["desk"], DRAWN)
    browser.evaluate(f"{TURN}([1, 0.5])")
    assert POISON in browser.evaluate("document.getElementById('turn-answer').textContent")
    browser.evaluate(f"{TURN}([1, 0])")
    assert POISON in hovered(browser, "front-1", "#D55E00")
    assert browser.evaluate("document.body.dataset.poisoned || ''") == "" and browser.complaints() == []
