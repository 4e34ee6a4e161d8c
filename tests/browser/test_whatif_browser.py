# SPDX-License-Identifier: Apache-2.0
"""A page with the simulator in headless Chromium, and in Firefox where the system has it: what it computes offline, and
what poisoned names can't do."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
import yaml
from chromium import SIZES, Browser
from firefox import Firefox
from firefox import program as firefox
from programs import find_program

from iocast.whatif import module
from iocast.whatif.platform import NODES, RANKS_PER_NODE, write_platform_page

pytestmark = pytest.mark.needs("browser")
DONE = (
    "document.body && ['done', 'failed'].includes(document.body.dataset.whatif) && document.body.dataset.whatif || ''"
)
LARGEST = 1_200_000
"""Bytes that the simulator adds to a page."""
POISON = "</script><img src=x onerror=\"document.body.dataset.poisoned='yes'\">"
PLATFORM = {
    "schema_version": 1, "extends": "lustre", "description": POISON, "source": POISON,
    "limits": {POISON: {"slots": 4, "per": "system"}},
    "operations": {"stat": [{"limit": POISON, "steps": [{"station": "mds", "demand": "getattr"}]}]},
}  # fmt: skip


@pytest.fixture(scope="module", params=[Browser, *([Firefox] if firefox() else [])])
def browser(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest):
    opened = request.param(tmp_path_factory.mktemp("profile"))
    yield opened
    opened.close()


def set_to(browser: Browser | Firefox, setting: str) -> list[str]:
    """What the page answered one after the other when its address was given this setting."""
    browser.evaluate(
        "(() => { const answer = document.querySelector('.whatif-answer'); const seen = [];"
        " new MutationObserver(() => { if (answer.textContent !== 'Simulating …') seen.push(answer.textContent);"
        " document.body.dataset.seen = JSON.stringify(seen); }).observe(answer, {childList: true});"
        f" delete document.body.dataset.whatif; location.hash = '#set:{setting}'; }})()"
    )
    browser.wait(DONE)
    return list(json.loads(browser.evaluate("document.body.dataset.seen")))


def native(arguments: list[str]) -> dict:
    program = find_program("iocast-sim")
    assert program is not None, "iocast-sim is not built; run ./check"
    done = subprocess.run([program, *arguments, "--json"], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of a platform whose words would run, and whose limit has such a name."""
    directory = tmp_path_factory.mktemp("page")
    file = directory / "poisoned.yaml"
    file.write_text(yaml.safe_dump(PLATFORM))
    described = native(["--describe", str(file)])
    assert write_platform_page(described, str(file), directory / "page.html")
    return directory / "page.html"


def test_a_setting_of_a_link_is_simulated_to_the_last_digit(
    browser: Browser | Firefox, page: Path, tmp_path: Path
) -> None:
    """The page reads a link's setting, simulates it in a worker under its policy, and asks nobody. The same platform
    with the same change is simulated by iocast-sim."""
    browser.open(page, SIZES["phone"], DONE)
    assert browser.complaints() == [] and browser.evaluate(DONE) == "done"
    as_it_is = browser.evaluate("document.body.dataset.rate")
    answers = set_to(browser, "stations.mds.servers=4&iterations=3")
    assert "a first approximation, from" in answers[0] and "approximation" not in answers[-1]
    rate = browser.evaluate("document.body.dataset.rate")
    edited = tmp_path / "edited.yaml"
    platform = str(page.with_name("poisoned.yaml"))
    edited.write_text(yaml.safe_dump({"schema_version": 1, "extends": platform, "stations": {"mds": {"servers": 4}}}))
    run = native(
        ["--platform", str(edited), "--nodes", str(NODES), "--ppn", str(RANKS_PER_NODE), "--set", "phases=benchmark",
         "--set", "iterations=3"]
    )  # fmt: skip
    assert float(rate) == run["phases"][0]["rate"] != float(as_it_is)
    assert browser.complaints() == [], "a worker of the page itself, and no address beyond"
    shown = browser.evaluate("document.querySelector('.whatif-answer').textContent")
    assert "times “as it is”" in shown and "10 nodes" in shown
    assert browser.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert "mds: servers 4 instead of 1" in browser.evaluate("document.querySelector('.whatif-answers').textContent")
    assert browser.evaluate("document.body.dataset.poisoned || ''") == ""
    browser.evaluate(
        "(() => { delete document.body.dataset.whatif; document.querySelector('.whatif-actions button').click(); })()"
    )
    browser.wait(DONE)
    assert browser.evaluate("document.body.dataset.rate") == as_it_is, "one click leads back"


def test_what_can_not_be_is_refused_beside_the_control(browser: Browser | Firefox, page: Path) -> None:
    browser.open(page, SIZES["desk"], DONE)
    rate = browser.evaluate("document.body.dataset.rate")
    browser.evaluate(
        "(() => { const box = document.querySelector('.control input'); box.value = 'many'; box.dispatchEvent(new"
        " Event('change')); })()"
    )
    assert "Write a number" in browser.evaluate("document.querySelector('.control').textContent")
    assert browser.evaluate("document.querySelector('.control input').getAttribute('aria-invalid')") == "true"
    assert browser.evaluate("document.body.dataset.rate") == rate


def test_a_page_without_the_module_says_how_to_get_it(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "find", lambda: None)
    described = native(["--describe", "lustre"])
    assert not write_platform_page(described, "lustre", tmp_path / "plain.html")
    text = (tmp_path / "plain.html").read_text()
    assert module.HOW in text and 500_000 < os.path.getsize(page) - len(text) < LARGEST
