# SPDX-License-Identifier: Apache-2.0
"""Headless Firefox, as tests drive it."""

from __future__ import annotations

import base64
import json
import shutil
import socket
import subprocess
import time
from pathlib import Path
from typing import Any

PATIENCE = 120  # seconds; a busy machine is no failure
PREFERENCES = {
    "marionette.port": 0,  # any that is free; Firefox writes which one into its profile
    "network.proxy.type": 1,
    "network.proxy.http": "127.0.0.1",
    "network.proxy.http_port": 9,  # where nobody answers
    "network.proxy.ssl": "127.0.0.1",
    "network.proxy.ssl_port": 9,
    "network.captive-portal-service.enabled": False,
    "network.connectivity-service.enabled": False,
    "app.update.enabled": False,
    "browser.shell.checkDefaultBrowser": False,
    "datareporting.policy.dataSubmissionEnabled": False,
    "toolkit.telemetry.enabled": False,
}


def program() -> str | None:
    return shutil.which("firefox-esr") or shutil.which("firefox")


class Firefox:
    """Firefox behind its protocol Marionette: JSON messages over a socket, each after its length in bytes."""

    def __init__(self, profile: Path) -> None:
        found = program()
        assert found, "firefox is not on PATH: install Debian's package firefox-esr to test pages in it, too."
        profile.mkdir(parents=True, exist_ok=True)
        lines = [f"user_pref({json.dumps(name)}, {json.dumps(value)});\n" for name, value in PREFERENCES.items()]
        (profile / "user.js").write_text("".join(lines))
        self._process = subprocess.Popen(
            [found, "--headless", "--marionette", "--no-remote", "--profile", str(profile), "about:blank"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        port = profile / "MarionetteActivePort"
        until = time.monotonic() + PATIENCE
        while not (port.is_file() and port.read_text().strip()):
            assert self._process.poll() is None and time.monotonic() < until, "Firefox did not start."
            time.sleep(0.1)
        self._socket = socket.create_connection(("127.0.0.1", int(port.read_text())), PATIENCE)
        self._number, self._buffer = 0, b""
        self._receive()
        self.call("WebDriver:NewSession")
        self.call("WebDriver:SetTimeouts", script=1000 * PATIENCE, pageLoad=1000 * PATIENCE)

    @property
    def process(self) -> int:
        return self._process.pid

    def call(self, command: str, **parameters: Any) -> Any:
        self._number += 1
        message = json.dumps([0, self._number, command, parameters]).encode()
        self._socket.sendall(str(len(message)).encode() + b":" + message)
        _, _, error, result = self._receive()
        assert error is None, error
        return result.get("value") if isinstance(result, dict) and "value" in result else result

    def _receive(self) -> Any:
        while b":" not in self._buffer:
            self._more()
        length, _, self._buffer = self._buffer.partition(b":")
        while len(self._buffer) < int(length):
            self._more()
        message, self._buffer = self._buffer[: int(length)], self._buffer[int(length) :]
        return json.loads(message)

    def _more(self) -> None:
        chunk = self._socket.recv(1 << 20)
        assert chunk, "Firefox ended by itself."
        self._buffer += chunk

    def evaluate(self, expression: str) -> Any:
        """Of the document and the window; variables of the page's scripts are not seen."""
        script = f"Promise.resolve({expression}).then(arguments[0])"
        return self.call("WebDriver:ExecuteAsyncScript", script=script, args=[])

    def open(self, file: Path, size: tuple[int, int], ready: str) -> None:
        """Load the page and wait until the expression `ready` is true."""
        self.call("WebDriver:SetWindowRect", width=size[0], height=size[1])
        self.call("WebDriver:Navigate", url=file.as_uri())
        self.wait(ready)

    def wait(self, ready: str) -> None:
        """Until the expression is true."""
        until = time.monotonic() + PATIENCE
        while not self.evaluate(ready):
            assert time.monotonic() < until, f"This did not come true in time: {ready}"
            time.sleep(0.1)

    def complaints(self) -> list[str]:
        """Every address that the page requested since it was opened, but for those of itself."""
        return [
            one
            for one in self.evaluate("performance.getEntriesByType('resource').map(one => one.name)")
            if not one.startswith(("data:", "blob:"))
        ]

    def screenshot(self, file: Path) -> None:
        file.write_bytes(base64.b64decode(self.call("WebDriver:TakeScreenshot", full=True)))

    def close(self) -> None:
        self.call("Marionette:Quit", flags=["eForceQuit"])
        self._socket.close()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
