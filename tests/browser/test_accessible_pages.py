# SPDX-License-Identifier: Apache-2.0
"""Pages for those who see no colours, hear the page, use a keyboard, a phone or paper: in Chromium, by its tree of
accessible names."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from pathlib import Path

import pytest
from chromium import Browser
from programs import find_program

sys.path.insert(0, str(Path(__file__).parents[1] / "python"))
import report_inputs  # noqa: E402

from iocast.report import write_report  # noqa: E402
from iocast.whatif import module  # noqa: E402
from iocast.whatif.platform import platform_page  # noqa: E402

pytestmark = pytest.mark.needs("browser")
NARROW, WIDE = (360, 740), (1280, 900)
READY = (
    "document.body && (document.body.dataset.drawn || ['done', 'failed'].includes(document.body.dataset.whatif)) || ''"
)
NAMES = ["report", "study", *(["platform"] if module.find() else [])]


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory):
    opened = Browser(tmp_path_factory.mktemp("profile"))
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("pages")
    inputs = report_inputs.made(tmp_path_factory)
    write_report(inputs.all, directory / "report.html")
    write_report([inputs.study], directory / "study.html")
    if module.find():
        simulator = find_program("iocast-sim")
        assert simulator is not None
        done = subprocess.run([simulator, "--describe", "nfs", "--json"], capture_output=True, check=True)
        (directory / "platform.html").write_text(platform_page(json.loads(done.stdout), "nfs")[0])
    return directory


@pytest.fixture(scope="module", params=NAMES)
def page(pages: Path, request: pytest.FixtureRequest) -> Path:
    return pages / f"{request.param}.html"


USED = {"button", "slider", "textbox", "link", "DisclosureTriangle", "progressbar", "image", "img", "graphics-document",
        "region", "table", "list box", "combobox"}  # fmt: skip
"""Roles that say nothing without a name."""


def test_all_that_is_used_or_looked_at_has_a_name(browser: Browser, page: Path) -> None:
    browser.look_at(page, WIDE, READY)
    nodes = browser.call("Accessibility.getFullAXTree")["nodes"]
    roles = [(one["role"]["value"], one.get("name", {}).get("value", "").strip())
             for one in nodes if not one.get("ignored") and "role" in one]  # fmt: skip
    nameless = [role for role, name in roles if role in USED - {"table"} and not name]
    assert nameless == []
    assert len([role for role, _ in roles if role in USED]) > 8, "there is something to be named"
    assert [role for role, _ in roles].count("main") == 1
    assert any(role == "status" for role, _ in roles) or page.stem == "report", "answers to changes are read out"


REFERENCES = """
[...document.querySelectorAll('[for], [aria-labelledby], [aria-describedby]')].flatMap(one =>
  ['for', 'aria-labelledby', 'aria-describedby'].flatMap(key => (one.getAttribute(key) || '').split(' '))
    .filter(id => id && !document.getElementById(id)))
"""
LEVELS = "[...document.querySelectorAll('h1, h2, h3, h4')].map(one => Number(one.tagName[1]))"


def test_headings_references_and_tables_are_in_order(browser: Browser, page: Path) -> None:
    browser.look_at(page, WIDE, READY)
    assert browser.evaluate("document.documentElement.lang") == "en"
    assert browser.evaluate(REFERENCES) == []
    ids = browser.evaluate("[...document.querySelectorAll('[id]')].map(one => one.id)")
    assert len(ids) == len(set(ids))
    levels = browser.evaluate(LEVELS)
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in zip(levels, levels[1:], strict=False)), levels
    assert browser.evaluate("[...document.querySelectorAll('table')].every(one => one.querySelector('th[scope=col]'))")


SHAPES = """
[...document.querySelectorAll('.legend, .whatif-legend')].filter(list => !list.closest('#figure-routes')).map(list =>
  [...list.querySelectorAll('li svg')].map(one => {
    const style = getComputedStyle(one.querySelector('path, rect, circle, g'));
    const colour = [style.fill, style.stroke].find(paint => paint !== 'none').match(/[\\d.]+/g).map(Number);
    return [one.innerHTML.replaceAll(/#[0-9a-fA-F]{3,6}/g, ''), style.strokeDasharray, colour];
  }))
"""


def lightness(colour: list[float]) -> float:
    """Of a colour on a grey print: its relative luminance, with 0.05 for what paper reflects."""
    linear = [v / 255 / 12.92 if v / 255 <= 0.03928 else ((v / 255 + 0.055) / 1.055) ** 2.4 for v in colour[:3]]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2] + 0.05


def test_without_colours_every_series_of_a_legend_looks_another_way(browser: Browser, page: Path) -> None:
    """By its shape, its dashes, or how light it is. Routes are left out: their bars bear names."""
    browser.look_at(page, WIDE, READY)
    legends = [one for one in browser.evaluate(SHAPES) if len(one) > 1]
    assert legends or page.stem == "platform", "which shows one series until something is changed"
    for marks in legends:
        for (shape, dashes, a), (other, others, b) in itertools.combinations(marks, 2):
            ratio = max(lightness(a), lightness(b)) / min(lightness(a), lightness(b))
            assert (shape, dashes) != (other, others) or ratio > 1.25, (shape, a, b)


CONTRAST = """
(() => {
  const parts = (text) => (text.match(/[\\d.]+/g) || []).map(Number);
  const light = ([r, g, b]) => {
    const [x, y, z] = [r, g, b].map(v => v / 255).map(v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  const behind = (one) => {
    for (; one; one = one.parentElement) {
      const colour = parts(getComputedStyle(one).backgroundColor);
      if (colour.length === 3 || colour[3] > 0) return colour;
    }
    return [255, 255, 255];
  };
  const pale = new Set();
  for (const one of document.querySelectorAll('main *:not(svg, svg *)')) {
    const own = [...one.childNodes].some(node => node.nodeType === 3 && node.textContent.trim());
    if (!own || one.disabled || !one.checkVisibility()) continue;
    const [a, b] = [light(parts(getComputedStyle(one).color)), light(behind(one))];
    if ((Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05) < 4.5) pale.add(one.outerHTML.slice(0, 90));
  }
  return [...pale];
})()
"""


def test_text_stands_out_from_what_is_behind_it(browser: Browser, page: Path) -> None:
    """By the ratio 4.5 of WCAG 2.1, 1.4.3."""
    browser.look_at(page, WIDE, READY)
    assert browser.evaluate(CONTRAST) == []


def test_a_narrow_phone_needs_no_scrolling_sideways(browser: Browser, page: Path) -> None:
    browser.look_at(page, NARROW, READY)
    assert browser.evaluate("document.documentElement.scrollWidth") <= NARROW[0]


def test_every_control_is_reached_by_keyboard_and_shows_it(browser: Browser, page: Path) -> None:
    browser.open(page, WIDE, READY)
    usable = (
        "[...document.querySelectorAll('a[href], summary, button, input, [tabindex=\"0\"]')]"
        ".filter(one => one.checkVisibility() && !one.disabled)"
    )
    wanted = browser.evaluate(f"{usable}.length")
    browser.evaluate("window.reached = new Set(); window.hidden = []; document.activeElement.blur()")
    look = (
        "(() => { const e = document.activeElement; const s = getComputedStyle(e); window.reached.add(e);"
        " if (s.outlineStyle === 'none' && s.boxShadow === 'none') window.hidden.push(e.outerHTML.slice(0, 80)); })()"
    )
    for _ in range(wanted):
        for kind in ("rawKeyDown", "keyUp"):
            browser.call("Input.dispatchKeyEvent", type=kind, key="Tab", code="Tab", windowsVirtualKeyCode=9)
        browser.evaluate(look)
    missed = browser.evaluate(
        f"{usable}.filter(one => !window.reached.has(one)).map(one => one.outerHTML.slice(0, 80))"
    )
    assert wanted > 10 and missed == []
    assert browser.evaluate("window.hidden") == [], "who looks sees where the focus is"


def test_the_first_screen_of_a_report_is_half_as_long_as_it_was(browser: Browser, pages: Path) -> None:
    """The quick start's page had 4,310 words in sight."""
    for name in ("report", "study"):
        browser.open(pages / f"{name}.html", WIDE, READY)
        assert 50 < browser.evaluate("document.body.innerText.split(/\\s+/).length") < 4310 / 2


def test_paper_says_what_was_changed(browser: Browser, pages: Path) -> None:
    """Controls are not printed: what was turned by them is."""
    browser.open(pages / "study.html", WIDE, READY)
    browser.call("Emulation.setEmulatedMedia", media="print")
    try:
        shown = "document.getElementById('turn-answer').checkVisibility()"
        assert not browser.evaluate(shown), "at rest the headline says it"
        browser.evaluate(
            "(() => { const one = document.getElementById('turn-1'); one.value = 0.5; one.dispatchEvent(new"
            " Event('input')); })()"
        )
        assert browser.evaluate(shown)
        label = browser.evaluate("document.querySelector('label[for=turn-1]').textContent")
        assert label in browser.evaluate("document.getElementById('turn-answer').textContent")
        assert not browser.evaluate("document.getElementById('turn-1').checkVisibility()")
    finally:
        browser.call("Emulation.setEmulatedMedia", media="")
