# SPDX-License-Identifier: Apache-2.0
"""What runs the module for pages: node, Chromium, Firefox. Each gives a run's JSON and the user time that it took."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from iocast.whatif import module
from iocast.whatif.panel import POLICY

sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "browser"))
from chromium import Browser
from firefox import Firefox

NAMES = ("node", "chromium", "firefox")
Run = Callable[[dict[str, Any]], tuple[dict[str, Any], float]]
"""From {"files": ..., "requests": [one]} to the run and seconds."""
SCRIPT = Path(__file__).with_name("run.js")
PAGE = """<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>The module</title>
<meta http-equiv="Content-Security-Policy" content="{policy}"></head><body>
<textarea id="request"></textarea><textarea id="result"></textarea>
<script type="text/plain" id="module">{wasm}</script><script>{glue}</script><script>{script}</script></body></html>"""


@contextmanager
def engine(name: str) -> Iterator[Run]:
    """One of NAMES, started."""
    place = module.find()
    if place is None:
        sys.exit("There is no module: cmake --build build --target page")
    with TemporaryDirectory() as scratch:
        if name == "node":
            with _node(place) as run:
                yield run
            return
        browser = (Browser if name == "chromium" else Firefox)(Path(scratch) / "profile")
        page = Path(scratch) / "page.html"
        page.write_text(PAGE.format(
            policy=POLICY, wasm=base64.b64encode((place / module.NAMES[1]).read_bytes()).decode(),
            glue=(place / module.NAMES[0]).read_text(), script=SCRIPT.read_text(),
        ))  # fmt: skip
        try:
            browser.open(page, (800, 600), "document.body && document.body.dataset.ready || ''")
            yield lambda given: _in_browser(browser, given)
        finally:
            browser.close()


@contextmanager
def _node(place: Path) -> Iterator[Run]:
    def run(given: dict[str, Any]) -> tuple[dict[str, Any], float]:
        done = subprocess.run(
            ["node", SCRIPT, place.resolve()],
            input=json.dumps(given) + "\n", capture_output=True, text=True, check=True,
        )  # fmt: skip
        answer = json.loads(done.stdout)
        return answer["step"], answer["seconds"]

    yield run


def _in_browser(browser: Any, given: dict[str, Any]) -> tuple[dict[str, Any], float]:
    before = user_seconds(browser.process)
    browser.evaluate(
        "(() => { const field = document.getElementById('request'); document.getElementById('result').value = '';"
        f" field.value = {json.dumps(json.dumps(given))}; field.dispatchEvent(new Event('change')); }})()"
    )
    browser.wait("document.getElementById('result').value !== ''")
    answer = json.loads(browser.evaluate("document.getElementById('result').value"))
    return answer, user_seconds(browser.process) - before


def user_seconds(process: int) -> float:
    """User time of a process and of all that it started."""
    parents, times = {}, {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = entry.read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it has ended
        parents[int(entry.parent.name)] = int(fields[1])
        times[int(entry.parent.name)] = int(fields[11])
    total, family = 0, {process}
    while family:
        total += sum(times.get(one, 0) for one in family)
        family = {one for one, parent in parents.items() if parent in family}
    return total / os.sysconf("SC_CLK_TCK")
