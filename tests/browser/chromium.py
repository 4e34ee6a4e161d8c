# SPDX-License-Identifier: Apache-2.0
"""Headless Chromium, as tests drive it."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path

PATIENCE = 120  # seconds; a busy machine is no failure
SIZES = {"desk": (1280, 900), "phone": (390, 844)}


class Browser:
    """Chromium behind its remote debugging pipe: one JSON message each way, ended by a zero byte."""

    def __init__(self, profile: Path) -> None:
        program = shutil.which("chromium") or shutil.which("chromium-browser")
        assert program, "chromium is not on PATH: install Debian's package chromium to test the report in a browser."
        to_read, self._write = os.pipe()
        self._read, to_write = os.pipe()
        flags = [
            "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync", "--disable-dev-shm-usage", "--no-first-run", "--hide-scrollbars",
            "--remote-debugging-pipe",
            f"--user-data-dir={profile}", "about:blank",
        ]  # fmt: skip
        start = (
            "import os, sys; os.dup2(int(sys.argv[1]), 3); os.dup2(int(sys.argv[2]), 4); os.execv(sys.argv[3],"
            " sys.argv[3:])"
        )
        self._process = subprocess.Popen(
            [sys.executable, "-c", start, str(to_read), str(to_write), program, *flags],
            pass_fds=(to_read, to_write), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(to_read)
        os.close(to_write)
        self._number, self._buffer, self.events = 0, b"", []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = None
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    _session: str | None = None
    _unfolded: tuple[Path, tuple[int, int]] | None = None

    @property
    def process(self) -> int:
        return self._process.pid

    def call(self, method: str, **parameters):
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            answer = self._receive(until)
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                return answer["result"]
            self.events.append(answer)
        raise AssertionError(f"Chromium did not answer {method} in {PATIENCE} s.")

    def _receive(self, until: float):
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._read], [], [], max(0.0, until - time.monotonic()))
            assert ready, f"Chromium sent nothing for {PATIENCE} s."
            chunk = os.read(self._read, 1 << 20)
            assert chunk, "Chromium ended by itself."
            self._buffer += chunk
        message, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(message)

    def evaluate(self, expression: str):
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def open(self, file: Path, size: tuple[int, int], ready: str) -> None:
        """Load the page and wait until the expression `ready` is true."""
        self.events.clear()
        self._unfolded = None
        width, height = size
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 500
        )
        self.call("Page.navigate", url=file.as_uri())
        self.wait(ready)

    def look_at(self, file: Path, size: tuple[int, int], ready: str) -> None:
        """The page with all that can be folded in sight, for tests that change nothing: loaded once for those that
        follow each other. To draw all of a report takes seconds."""
        if self._unfolded != (file, size):
            self.open(file, size, ready)
            self.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true; })")
            self._unfolded = (file, size)

    def unfold(self, selector: str) -> None:
        """Whatever this element is folded in."""
        self.evaluate(
            f"(() => {{ for (let one = document.querySelector({json.dumps(selector)}); one; one = one.parentElement)"
            " if (one.tagName === 'DETAILS') one.open = true; })()"
        )

    def wait(self, ready: str) -> None:
        """Until the expression is true."""
        until = time.monotonic() + PATIENCE
        while not self.evaluate(ready):
            assert time.monotonic() < until, f"This did not come true in time: {ready}"
            time.sleep(0.1)

    def complaints(self) -> list[str]:
        """Errors that were logged since the page was opened, and every address that it requested outside this machine's
        files."""
        entries = [str(e["params"]) for e in self.events if e.get("method") == "Runtime.exceptionThrown"]
        entries += [
            str(e["params"]["entry"])
            for e in self.events
            if e.get("method") == "Log.entryAdded" and e["params"]["entry"]["level"] == "error"
        ]
        urls = [e["params"]["request"]["url"] for e in self.events if e.get("method") == "Network.requestWillBeSent"]
        return entries + [url for url in urls if not url.startswith(("file:", "data:", "blob:", "about:"))]

    def move(self, x: float, y: float) -> None:
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def press(self, key: str, code: int, text: str = "") -> None:
        for kind in ("keyDown", "keyUp"):
            more = {"text": text} if text and kind == "keyDown" else {}
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code, **more)

    def screenshot(self, file: Path) -> None:
        answer = self.call("Page.captureScreenshot", captureBeyondViewport=True, format="png")
        file.write_bytes(base64.b64decode(answer["data"]))

    def close(self) -> None:
        os.close(self._write)
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._read)
