# SPDX-License-Identifier: Apache-2.0
"""The site of the manual in headless Chromium, read from files: no request beyond them, no error, nothing wider than
the window."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from chromium import SIZES, Browser
from programs import REPOSITORY, find_program

from iocast.whatif import module

pytestmark = pytest.mark.needs("browser")

READY = "document.readyState === 'complete' && document.querySelector('main h1') !== null"
LONGEST_BUILD = 40  # seconds of a processor; 15 to 20 of a slow one, with 2.0 s for ten million additions of Python
# A page with wide tables, one with long lines of code, one with figures, and the longest ones.
PAGES = [
    "index",
    "study-tutorial",
    "background",
    "patterns",
    "reference/workloads",
    "reference/commands",
    "reference/python",
]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As docs/build makes it, with the programs that are tested."""
    simulator = find_program("iocast-sim")
    assert simulator is not None, "iocast-sim is not built; run ./check"
    out = tmp_path_factory.mktemp("site") / "site"
    command = next(line for line in (REPOSITORY / "docs" / "build").read_text().splitlines() if "mkdocs" in line)
    assert command == '.venv/bin/python -m mkdocs build --strict --site-dir "$out"'
    began = os.times()
    done = subprocess.run(
        [sys.executable, *command.split()[1:-1], str(out)], cwd=REPOSITORY,
        env={**os.environ, "IOCAST_BUILD": str(simulator.parents[1])},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0 and "WARNING" not in done.stderr, done.stdout + done.stderr
    took = os.times()
    # Processor time: the cores may be shared.
    assert took.children_user + took.children_system - began.children_user - began.children_system < LONGEST_BUILD
    return out


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory):
    opened = Browser(tmp_path_factory.mktemp("profile"))
    yield opened
    opened.close()


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("page", PAGES)
def test_a_page_is_whole_without_a_network(site: Path, browser: Browser, page: str, size: str) -> None:
    browser.open(site / f"{page}.html", SIZES[size], READY)
    assert browser.complaints() == []
    assert browser.evaluate("document.documentElement.scrollWidth") <= SIZES[size][0]
    assert browser.evaluate("[...document.images].every(i => i.complete && i.naturalWidth > 0 && i.alt)")
    menu = "getComputedStyle(document.querySelector('nav')).display"
    assert browser.evaluate(menu) == ("block" if size == "desk" else "none")
    if size == "phone":
        browser.evaluate("document.querySelector('.menu').click()")
        assert browser.evaluate(menu) == "block"


def test_search_leads_to_the_section(site: Path, browser: Browser) -> None:
    browser.open(site / "reference" / "workloads.html", SIZES["desk"], READY)
    browser.evaluate(
        "(() => { const q = document.getElementById('query'); q.value = 'hpcs-14 backwards'; q.dispatchEvent(new"
        " Event('input')); })()"
    )
    address = browser.evaluate("document.querySelector('#found a').href")
    assert address == (site / "reference" / "workloads.html").as_uri() + "#hpcs-14"
    browser.evaluate("document.querySelector('#found a').click()")
    until = time.monotonic() + 120
    while browser.evaluate("Math.abs(document.getElementById('hpcs-14').getBoundingClientRect().top - 64) > 200"):
        assert time.monotonic() < until, "the section does not come into view"
        time.sleep(0.1)


def test_the_site_has_a_platform_to_try_out(site: Path, browser: Browser) -> None:
    """Led to from the manual; where its simulator was not built, it says how to get it."""
    browser.open(site / "what-if-page.html", SIZES["desk"], READY)
    address = browser.evaluate("[...document.querySelectorAll('main a')].map(a => a.href).find(a => /to-try/.test(a))")
    assert address == (site / "lustre-to-try.html").as_uri()
    if module.find() is None:
        assert module.HOW in (site / "lustre-to-try.html").read_text()
        return
    browser.open(site / "lustre-to-try.html", SIZES["phone"], "document.body && document.body.dataset.rate || ''")
    assert float(browser.evaluate("document.body.dataset.rate")) > 0 and browser.complaints() == []


def test_the_reference_has_what_there_is(site: Path) -> None:
    program = find_program("iocast-sim")
    assert program is not None
    for what in ("workloads", "patterns", "platforms", "primitives"):
        page = (site / "reference" / f"{what}.html").read_text()
        listed = json.loads(
            subprocess.run([str(program), "--list", what, "--json"], capture_output=True, check=True).stdout
        )[what]
        assert len(listed) > 2 and all(f'id="{entry["name"]}"' in page for entry in listed)
    commands = (site / "reference" / "commands.html").read_text()
    reported = subprocess.run([str(program), "--help"], capture_output=True, text=True, check=True).stdout
    options = {line.split()[0] for line in reported.splitlines() if line.startswith("  --")}
    assert len(options) > 10 and all(f"<code>{option}" in commands for option in options)
