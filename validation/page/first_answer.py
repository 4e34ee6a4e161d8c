#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How long a page takes to its first answer after each change: python validation/page/first_answer.py [PAGE]

PAGE is an HTML file with the simulator; without one that of the platform lustre. Doubles every control of the page one
by one in Chromium, and the number of nodes to 1,000. Prints user seconds of the browser until the first answer, those
until the simulation of the setting has ended, and the wall clock's until the first; exits with 1 where a first answer
takes more than a second of user time."""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path

from engines import user_seconds

from iocast.ground import binaries
from iocast.whatif.platform import write_platform_page

from chromium import SIZES, Browser

LATEST = 1.0
"""Seconds."""
ANSWERED = "document.body.dataset.firstAnswer || document.body.dataset.whatif === 'failed' || ''"
SIMULATED = "document.body && ['answered', 'done', 'failed'].includes(document.body.dataset.whatif) || ''"


def main() -> int:
    with tempfile.TemporaryDirectory() as scratch:
        page = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(scratch) / "lustre.html"
        if len(sys.argv) == 1:
            simulator = binaries.find("iocast-sim")
            write_platform_page(binaries.run_json([simulator, "--describe", "lustre", "--json"]), "lustre", page)
        browser = Browser(Path(scratch) / "profile")
        late = 0
        try:
            browser.open(page, SIZES["desk"], SIMULATED)
            controls = json.loads(browser.evaluate("document.getElementById('whatif-data').textContent"))["controls"]
            settings = [f"{one['path']}={2 * one['value']:.6g}" for one in controls if not one["idle"] and one["value"]]
            for setting in [*settings, "nodes=1000"]:
                before = user_seconds(browser.process)
                browser.evaluate(
                    f"(() => {{ delete document.body.dataset.whatif; location.hash = '#set:{setting}'; }})()"
                )
                first = _until(browser, ANSWERED) - before
                wall = float(browser.evaluate("document.body.dataset.firstAnswer"))
                whole = _until(browser, SIMULATED) - before
                late += first > LATEST
                print(f"{setting:40} {first:.2f} s to the first answer, {whole:.2f} s to the simulated one, {wall:.0f} "
                      f"ms by the clock{', LATE' * (first > LATEST)}", flush=True)  # fmt: skip
        finally:
            browser.close()
    return 1 if late else 0


def _until(browser: Browser, ready: str) -> float:
    """User seconds when the expression has become true."""
    while not browser.evaluate(ready):
        time.sleep(0.005)
    return user_seconds(browser.process)


if __name__ == "__main__":
    sys.exit(main())
