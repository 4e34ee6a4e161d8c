# SPDX-License-Identifier: Apache-2.0
"""What a lone rank measured has a place in every family that can be fitted to latencies."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from schedule import SOME_PLATFORMS, mostly_long

from iocast.ground import binaries
from iocast.calibrate.recipe import family_document, read_recipe
from iocast.calibrate.structure_search import Search
from iocast.calibrate.trace import Trace
from iocast.errors import InputError
from iocast.platforms.family import set_by_hand_to
from iocast.platforms.fitted import Fitted
from iocast.platforms.documents import PLATFORMS, dump, merge
from iocast.runs.run_directory import Point, Run, group

MIX = {"files": "400", "directories": "1", "operations": "4000", "size_median": "1KiB", "size_most": "1KiB"}
MIX |= dict.fromkeys(("stat", "read", "create", "unlink", "append", "readdir"), "1")
PROBE = {"objects": "1", "accesses": "40", "blocks": "1", "access_size": "4KiB"}
RUNS: list[tuple[str, str, dict[str, str]]] = [
    ("operation-mix", "benchmark", MIX),
    ("probe", "write", PROBE),
    ("probe", "read", PROBE),
]
WHOLE = ("stat", "unlink", "readdir", "open", "pwrite", "pread", "fsync", "close", "mkdir", "rmdir")
PARTS = {"create": ("open", "write", "close"), "read": ("open", "read", "close"), "append": ("open", "write", "close")}


def _families() -> list[str]:
    """All but measured systems, whose nodes differ in speed."""
    found = []
    for file in sorted(PLATFORMS.glob("*.yaml")):
        try:
            if read_recipe(file.stem).method == "quantiles" and set_by_hand_to(Fitted.open(file.stem)) is None:
                found.append(file.stem)
        except InputError:
            pass
    return found


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> list[Point]:
    """A lone rank's runs on a system that takes 3 ms and some more in each part of each operation, of another length in
    each."""
    place = tmp_path_factory.mktemp("lone")
    names = [*WHOLE, *(f"{op}.{part}" for op, parts in PARTS.items() for part in parts)]
    taken = {name: [{"delay": f"{3 + 0.1 * i:.1f}ms"}] for i, name in enumerate(names)}
    operations: dict[str, Any] = {name: taken[name] for name in WHOLE}
    operations |= {op: {part: taken[f"{op}.{part}"] for part in parts} for op, parts in PARTS.items()}
    (place / "truth.yaml").write_text(
        yaml.safe_dump({"schema_version": 1, "stations": {"idle": {"servers": 1}}, "operations": operations})
    )
    return [group([_run(place / "truth.yaml", *one, place / f"{one[0]}-{one[1]}")])[0] for one in RUNS]


def _run(platform: Path, workload: str, phase: str, settings: dict[str, str], out: Path) -> Run:
    sets = [f"--set={name}={value}" for name, value in settings.items()]
    command = [binaries.find("iocast-sim"), "--platform", str(platform), "--workload", workload, *sets]
    binaries.run_json([*command, "--nodes", "1", "--ppn", "1", "--out", str(out), "--json"])
    return Run(out, phase)


@pytest.mark.parametrize("family", mostly_long(_families(), SOME_PLATFORMS, "operations of the same parts"))
def test_each_part_that_a_lone_rank_measured_has_its_time_in_the_family(
    family: str, measured: list[Point], tmp_path: Path
) -> None:
    """From the laws alone, before anything else is fitted."""
    recipe = read_recipe(family)
    for point, (workload, phase, settings) in zip(measured, RUNS, strict=True):
        search = Search(recipe, [point], 0, lambda *_: None, Trace(None))
        options = search.options(search._begin())
        document = search.build(options, {p.name: p.start for p in search.active(options)})
        (tmp_path / "platform.yaml").write_text(dump(document))
        plain = merge(family_document(family), search.build([], {p.name: p.start for p in search.active([])}))
        others = {one.tag.partition(".")[0] for one in search.stand_ins}  # no structure looks at these
        looked_at, routes = (
            {op: route for op, route in of["operations"].items() if op not in others} for of in (search.family, plain)
        )
        assert looked_at == routes, "structures look at the routes that candidates have"
        run = _run(tmp_path / "platform.yaml", workload, phase, settings, tmp_path / f"{workload}-{phase}")
        for tag in point.first.tags():
            assert run.latencies(tag).moments()[0] == pytest.approx(
                point.first.latencies(tag).moments()[0], rel=0.02
            ), tag
