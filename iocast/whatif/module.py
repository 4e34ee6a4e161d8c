# SPDX-License-Identifier: Apache-2.0
"""The simulator as a module for pages, which `cmake --build build --target page` makes with emscripten."""

from __future__ import annotations

import base64
import gzip
import json
import os
import shutil
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from iocast.ground.binaries import CHECKOUT
from iocast.ground.files import data_directory, read_yaml

NAMES = ("iocast-page.js", "iocast-page.wasm")
HOW = (
    "This page has no simulator, which would answer further questions here. Build it with cmake --build build --target "
    "page (it needs emscripten), and write the page again."
)
WORKLOADS = "/iocast/workload/catalogue"
"""Where the module looks for the workloads of the catalogue."""


@dataclass(frozen=True)
class Module:
    """A built module: the script that emscripten makes, and the program; both gzipped, in base64."""

    glue: str
    wasm: str


def find() -> Path | None:
    """The directory with the module: of $IOCAST_BUILD, of the build directory beside this package, or of the installed
    iocast-sim; None where it was not built."""
    places = [Path(os.environ["IOCAST_BUILD"]) / "page"] if "IOCAST_BUILD" in os.environ else []
    places.append(CHECKOUT / "build" / "page")
    if program := shutil.which("iocast-sim"):
        places.append(Path(program).resolve().parents[1] / "share" / "iocast" / "page")
    return next((place for place in places if all((place / name).is_file() for name in NAMES)), None)


def load() -> Module | None:
    place = find()
    return None if place is None else _read(place, tuple((place / name).stat().st_mtime_ns for name in NAMES))


@cache
def _read(place: Path, changed: tuple[int, ...]) -> Module:
    """`changed`: when the files were, so that a new build is read again."""
    script, program = (place / name for name in NAMES)
    return Module(_packed(script), _packed(program))


def _packed(file: Path) -> str:
    return base64.b64encode(gzip.compress(file.read_bytes(), 9, mtime=0)).decode()


@cache
def workloads(name: str) -> dict[str, str]:
    """The catalogue's file of a workload as the module reads it, JSON by file; of a mix, whose members are workloads
    too, all of them. None of a pattern that the catalogue lacks."""
    documents = {file.stem: read_yaml(file) for file in data_directory("workload/catalogue").glob("*.yaml")}
    is_mix = documents.get(name, {"pattern": name}).get("pattern") == "mix"
    return {
        f"{WORKLOADS}/{stem}.yaml": json.dumps(document)
        for stem, document in sorted(documents.items())
        if is_mix or stem == name
    }
