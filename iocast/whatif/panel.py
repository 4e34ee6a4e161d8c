# SPDX-License-Identifier: Apache-2.0
"""What a page needs to simulate: the module, the platform and the workload, and what a reader may change."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

from markupsafe import Markup

from iocast.ground import binaries
from iocast.calibrate.search import only
from iocast.platforms.content import whole
from iocast.forecasts.draws import LENGTHS
from iocast.runs.operations import phase_operations
from iocast.runs.phases import main_phases
from iocast.platforms.documents import PLATFORMS, Document, chain, find_platform
from iocast.whatif import module
from iocast.whatif.controls import controls

HERE = Path(__file__).parent
POLICY = (
    "default-src 'none'; script-src 'unsafe-inline' 'wasm-unsafe-eval'; worker-src blob:; style-src 'unsafe-inline'; "
    "img-src data:"
)
"""Of pages with the module: nothing is loaded from anywhere, and the worker is a script of the page itself."""
CATALOGUE, OWN = "/iocast/platforms", "/here"
"""Where the module finds platforms of the catalogue, and those of this page."""
UNREAD = ("fitted", "calibration")
"""Sections of a platform that no simulation reads."""


@dataclass(frozen=True)
class Setting:
    """What is simulated while nobody has changed anything."""

    platform: str
    """The file of `files` that a simulation is of."""
    files: dict[str, str]
    """JSON by file of the module."""
    document: Document
    """The platform with all that it extends."""
    resolved: Mapping[str, Any]
    workload: str
    settings: dict[str, str]
    nodes: int
    ranks_per_node: int
    phase: str = ""
    """The phase that answers; without one that with most operations."""
    seed: int = 0


@dataclass(frozen=True)
class Beside:
    """What stands beside a simulation: points of ranks and rate, forecasts with low, high and the model's own value."""

    as_it_is: str = "As it is"
    """The words for the setting before any change."""
    measured: Sequence[Mapping[str, float]] = ()
    forecasts: Sequence[Mapping[str, float]] = ()
    rules: Sequence[Mapping[str, float]] = ()
    draws: int = 0
    """Platforms that the data would also allow, as files draw-0.yaml, ... of the setting."""
    level: str = "90 %"
    notes: Sequence[str] = field(default_factory=list)


@dataclass(frozen=True)
class Panel:
    """The parts of a page, ready to stand inside script elements."""

    data: Markup
    glue: Markup
    worker: Markup
    module: Markup
    script: Markup


def file_in_module(path: Path) -> str:
    """Where the module has a platform file. Those of the catalogue are of its catalogue too: other rules hold there."""
    return f"{CATALOGUE}/{path.name}" if path.resolve().parent == PLATFORMS.resolve() else f"{OWN}/{path.name}"


def platform_files(path: Path) -> dict[str, str]:
    """The file and all that it extends, as the module has them; itself first."""
    files = {}
    for file, document in chain(path):
        kept = {key: value for key, value in document.items() if key not in UNREAD}
        if "extends" in kept:
            kept["extends"] = file_in_module(find_platform(str(kept["extends"]), file.parent))
        files[file_in_module(file)] = json.dumps(kept)
    return files


def setting_of(name_or_file: str, workload: str, settings: dict[str, str], nodes: int, ranks_per_node: int) -> Setting:
    """A platform under a workload of the catalogue, without its set-up and clean-up."""
    path = find_platform(name_or_file)
    document = whole({"extends": str(path.resolve())})
    names = list(
        dict.fromkeys(p["name"] for p in binaries.resolve_workload(workload, settings, nodes, ranks_per_node)["phases"])
    )
    return Setting(
        platform=file_in_module(path),
        files=platform_files(path),
        document=document,
        resolved=binaries.resolve_platform(path),
        workload=workload,
        settings=only(main_phases(names), workload, [document]) | settings,
        nodes=nodes,
        ranks_per_node=ranks_per_node,
    )


def panel(setting: Setting, beside: Beside) -> Panel | None:
    """None where the module was not built."""
    built = module.load()
    if built is None:
        return None
    place = (setting.nodes, setting.ranks_per_node)
    operations = phase_operations(setting.workload, setting.settings, *place)
    known = controls(
        setting.document, setting.resolved, setting.workload, setting.settings,
        {op for phase in operations.values() for op in phase}, *place,
    )  # fmt: skip
    lengths = {one["path"] for one in known if one["kind"] == "setting"}
    data = {
        "platform": setting.platform,
        "files": module.workloads(setting.workload) | setting.files,
        "workload": setting.workload,
        "settings": setting.settings,
        "phase": setting.phase,
        "seed": setting.seed,
        "length": next((name for name in LENGTHS if name in lengths), None),
        "controls": known,
        "as_it_is": beside.as_it_is,
        "measured": list(beside.measured),
        "forecasts": list(beside.forecasts),
        "rules": list(beside.rules),
        "draws": beside.draws,
        "level": beside.level,
        "notes": list(beside.notes),
    }
    return Panel(
        data=in_script(data),
        glue=Markup(built.glue),
        worker=in_script((HERE / "worker.js").read_text(encoding="utf-8")),
        module=Markup(built.wasm),
        script=Markup("\n".join((HERE / name).read_text(encoding="utf-8") for name in ("amounts.js", "panel.js"))),
    )


def in_script(value: Any) -> Markup:
    """JSON that can stand inside a script element: no "<" can end it."""
    return Markup(json.dumps(value, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c"))


def version() -> str:
    """Of iocast, as pages name it."""
    try:
        return metadata.version("iocast")
    except metadata.PackageNotFoundError:
        return "from its source tree"
