# SPDX-License-Identifier: Apache-2.0
"""Options that need to be seen in the measurements: when they are tried, and that they are found where they are
true."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from programs import REPOSITORY
from schedule import mostly_long

from iocast.ground import binaries
from iocast.calibrate import structures
from iocast.calibrate.evidence import EVIDENCE
from iocast.calibrate.fit import calibrate
from iocast.calibrate.recipe import PLAIN, family_document, read_recipe
from iocast.calibrate.search import Simulations, Target
from iocast.calibrate.structure_search import follow
from iocast.errors import RunError
from iocast.platforms.fitted import Fitted
from iocast.forecasts.answer import predict
from iocast.runs.measured import measured
from iocast.platforms.documents import dump, merge
from iocast.runs.question import Question
from iocast.runs.run_directory import Point, Run, group, switches

SMALL = ["--set", "datasets=1", "--set", "objects=400", "--set", "iterations=400", "--set", "object_size=4KiB"]
FAMILY = """
schema_version: 1
stations: {server: {servers: 16}, disks: {servers: 64}}
limits: {requests: {slots: 8, per: node}}
demands:
  make: {law: lognormal, mean: 400us, sigma: 0.1}
  look: {law: lognormal, mean: 200us, sigma: 0.1}
  fetch: {law: lognormal, mean: 300us, sigma: 0.1}
  drop: {law: lognormal, mean: 300us, sigma: 0.1}
operations:
  create: {open: [{limit: requests, steps: [{station: server, demand: make}]}], write: [], close: []}
  stat: [{station: server, demand: look}]
  read: {open: [], read: [{station: server, demand: fetch}], close: []}
  unlink: [{limit: requests, steps: [{station: server, demand: drop}]}]
  mkdir: []
  rmdir: []
calibration:
  laws: {make: create.open, look: stat, fetch: read.read, drop: unlink}
  choices:
    node: {many: {}, one: {needs: shared nodes, edit: {limits: {requests: {slots: 1}}}}}
    memory:
      none: {}
      cache:
        needs: slow reads
        edit:
          caches: {memory: {per: system, capacity: 1GiB, page: 64KiB}}
          demands: {disk: {law: exponential, mean: 5ms}}
        then:
          operations.read.read: [{cache: memory, miss: [{station: disks, demand: disk}]}]
          operations.create.write: [{cache: memory}]
        parameters:
          memory: {path: caches.memory.capacity, unit: B, low: 100000, high: 1000000000, start: 10000000}
          disk: {path: demands.disk.mean, unit: s, low: 0.0001, high: 0.1, start: 0.002}
    absorption:
      none: {}
      buffer:
        needs: slow writes
        edit: {buffers: {burst: {per: system, capacity: 1GiB, drain: [{delay: drain}]}}, demands: {drain: 1ms}}
        then: {operations.create.write: [{buffer: burst}]}
        parameters:
          burst: {path: buffers.burst.capacity, unit: B, low: 100000, high: 1000000000, start: 10000000}
          drain: {path: demands.drain, unit: s, low: 0.00001, high: 0.1, start: 0.001}
"""
TRUTHS: dict[str, dict[str, object]] = {
    "many none none": {},
    "one none none": {"limits": {"requests": {"slots": 1}}},
    "many cache none": {
        "caches": {"memory": {"per": "system", "capacity": "10MB", "page": "64KiB"}},
        "demands": {"disk": {"law": "exponential", "mean": "3ms"}},
        "operations": {
            "read": {
                "read": [
                    {"station": "server", "demand": "fetch"},
                    {"cache": "memory", "miss": [{"station": "disks", "demand": "disk"}]},
                ]
            },
            "create": {"write": [{"cache": "memory"}]},
        },
    },
    "many none buffer": {
        "buffers": {"burst": {"per": "system", "capacity": "2MB", "drain": [{"delay": "drain"}]}},
        "demands": {"drain": "300us"},
        "operations": {"create": {"write": [{"buffer": "burst"}]}},
    },
}


@pytest.fixture
def family(tmp_path: Path) -> Path:
    (tmp_path / "family.yaml").write_text(FAMILY)
    return tmp_path / "family.yaml"


def simulated(truth: Path, ranks: int, nodes: int, out: Path, *settings: str) -> Run:
    seed = str(1000 * nodes + ranks + len(out.name))
    binaries.run_json([
        binaries.find("iocast-sim"), "--platform", str(truth), *SMALL, *settings, "--nodes", str(nodes), "--ppn",
        str(ranks // nodes), "--seed", seed, "--out", str(out), "--json",
    ])  # fmt: skip
    return Run(out, "benchmark")


def campaign(truth: Path, out: Path) -> list[Point]:
    return group(
        [
            simulated(truth, ranks, nodes, out / f"n{ranks}x{nodes}")
            for ranks, nodes in ((1, 1), (2, 1), (4, 1), (8, 1), (8, 2), (16, 1))
        ]
    )


@pytest.mark.parametrize("truth", mostly_long(TRUTHS, list(TRUTHS)[:2], "a calibration of 10 to 60 s each"))
def test_what_is_true_is_found_and_forecast(family: Path, tmp_path: Path, truth: str) -> None:
    """Twice the clients on twice the nodes, on which neither memory nor room for writes is enough: within 8 %."""
    file = tmp_path / "truth.yaml"
    file.write_text(yaml.safe_dump({"schema_version": 1, "extends": "family.yaml", **TRUTHS[truth]}))
    points = campaign(file, tmp_path)
    fitted = calibrate(points, str(family), 0, lambda *_: None)
    structure = fitted["fitted"]["structure"]
    assert structure.pop(structures.CHOICE, PLAIN) == PLAIN, "nothing beyond the family's own"
    assert " ".join(structure.values()) == truth
    (tmp_path / "fitted.yaml").write_text(dump(fitted))
    requested = simulated(file, 32, 2, tmp_path / "requested")
    printed = predict(Fitted.open(str(tmp_path / "fitted.yaml")), None, {}, 2, 16)["quantities"]
    assert printed["rate"]["value"] == pytest.approx(requested.rate, rel=0.08)
    assert printed["read.q75"]["value"] == pytest.approx(requested.quantity("read", "q75"), rel=0.08)
    assert printed["create.q75"]["value"] == pytest.approx(requested.quantity("create", "q75"), rel=0.08)


def test_a_cache_is_as_cold_in_a_fit_as_it_was(family: Path, tmp_path: Path) -> None:
    """Short runs are averaged with more repeats, but not of a platform that remembers: there the next repeat finds
    a colder cache. Of four ranks, reads of later repeats took 2.3 times as long (e^0.85) as those of the first."""
    file = tmp_path / "truth.yaml"
    truth = {"schema_version": 1, "extends": str(family), **TRUTHS["many cache none"]}
    file.write_text(yaml.safe_dump(truth))
    point = Point([simulated(file, 4, 1, tmp_path / "run")])
    noise = dict.fromkeys(("rate", "q50", "q75", "q95", "q99", "max", "mean"), 0.01)
    target = Target.of(point, noise)
    of_reads = target.names.index("read.mean")
    plain: dict[str, object] = {"schema_version": 1, "extends": str(family)}
    assert [target.simulation(document)[1]["repeats"] for document in (plain, truth)] == ["3", "1"]
    assert [len(target.simulations(document, 0)) for document in (plain, truth)] == [1, 3]
    with Simulations() as simulations:
        ((found,),) = simulations.at_targets([truth], [target], 7)
        assert simulations.count == 3
    assert found[of_reads] == pytest.approx(target.logs[of_reads], abs=0.2)
    point.first.record.workload.parameters.pop("repeats")  # as of another program, which didn't write it down
    unstated = Target.of(point, noise)
    assert unstated.simulation(truth)[1]["repeats"] == str(len(point.first.phases)) == "1"


def test_evidence(family: Path, tmp_path: Path) -> None:
    """Of each truth, and that nothing else is seen in it."""
    shown = {
        "many none none": set(),
        "one none none": set(),
        "many cache none": {"slow reads"},
        "many none buffer": {"slow writes"},
    }
    for truth, expected in shown.items():
        file = tmp_path / f"{truth}.yaml"
        file.write_text(yaml.safe_dump({"schema_version": 1, "extends": "family.yaml", **TRUTHS[truth]}))
        points = campaign(file, tmp_path / truth)
        assert {name for name, seen in EVIDENCE.items() if seen(points)} == expected | {"shared nodes"}
    alone = [point for point in points if point.first.placement[1] == 1]
    assert not EVIDENCE["shared nodes"](alone)


@pytest.mark.parametrize(("servers", "seen"), [(1, True), (64, False)])
def test_closes_that_wait_for_a_server_are_seen(family: Path, servers: int, seen: bool, tmp_path: Path) -> None:
    close = {"create": {"close": [{"station": "disks", "demand": "2ms"}]}}
    document = {"extends": "family.yaml", "stations": {"disks": {"servers": servers}}, "operations": close}
    (tmp_path / "truth.yaml").write_text(yaml.safe_dump({"schema_version": 1, **document}))
    assert EVIDENCE["slow closes"](campaign(tmp_path / "truth.yaml", tmp_path / "runs")) == seen


@pytest.mark.parametrize(
    ("station", "fetch", "seen"), [("server", 5, True), ("disks", 5, False), ("server", 300, False)]
)
def test_data_that_wait_behind_longer_requests_are_seen(
    family: Path, station: str, fetch: int, seen: bool, tmp_path: Path
) -> None:
    """Two servers, which reads visit for 5 us and all else for 200 to 400; where reads go elsewhere, or take as long as
    all else does, nothing is to be seen."""
    law = {"law": "lognormal", "mean": f"{fetch}us", "sigma": 0.1}
    document = {
        "extends": "family.yaml",
        "stations": {"server": {"servers": 2}},
        "demands": {"fetch": law},
        "operations": {"read": {"read": [{"station": station, "demand": "fetch"}]}},
    }
    (tmp_path / "truth.yaml").write_text(yaml.safe_dump({"schema_version": 1, **document}))
    assert EVIDENCE["data behind others"](campaign(tmp_path / "truth.yaml", tmp_path / "runs")) == seen


class Means:
    """A point of which means are known, by operation and part in microseconds."""

    waiting_factor = 0.0

    def __init__(self, ranks: int, means: dict[str, float]) -> None:
        self.ranks, self.means = ranks, means
        self.first = SimpleNamespace(operations=[name for name in means if "." not in name])

    def has(self, quantity: str) -> bool:
        return quantity.removesuffix(".mean") in self.means

    def value(self, quantity: str) -> float:
        return self.means[quantity.removesuffix(".mean")]


@pytest.mark.parametrize(
    ("read", "write", "stat", "seen"),
    [
        (3000, 2000, 1500, True),  # all wait alike
        (3000, 10, 1500, False),  # a cold cache
        (100, 2000, 1500, False),  # a full buffer
        (20000, 2000, 62, False),  # both, at a server that nobody else waits for
        (20000, 20000, 1500, False),
    ],
)
def test_a_cold_cache_or_a_full_buffer_is_no_server_of_all(read: float, write: float, stat: float, seen: bool) -> None:
    def means(*of: float) -> dict[str, float]:
        return dict(zip(("read", "read.read", "create", "create.write", "stat"), of, strict=True))

    points: list[Any] = [
        Means(1, means(160, 100, 70, 10, 60)),
        Means(16, means(read + 60, read, write + 60, write, stat)),
    ]
    assert EVIDENCE["data behind others"](points) == seen


@pytest.mark.long("a calibration of a minute")
def test_one_server_for_data_and_all_else_is_found(tmp_path: Path) -> None:
    """As of a file system in user space whose daemon has two threads: twice the clients, within 8 %."""
    law = {"law": "lognormal", "sigma": 0.3}
    demands = {name: {**law, "mean": "2ms"} for name in ("getattr", "open", "make", "remove")}
    demands |= {name: {**law, "mean": "40us"} for name in ("ost_read", "cached_write")}
    truth = {
        "extends": "fuse",
        "stations": {"mds": {"servers": 2}},
        "demands": demands,
        "operations": {
            "create": {"write": [{"station": "mds", "demand": "cached_write"}]},
            "read": {"read": [{"station": "mds", "demand": "ost_read"}]},
        },
    }
    (tmp_path / "truth.yaml").write_text(yaml.safe_dump({"schema_version": 1, **truth}))
    fitted = calibrate(campaign(tmp_path / "truth.yaml", tmp_path / "runs"), "fuse", 0, lambda *_: None)
    assert fitted["fitted"]["structure"]["data"] == "together"
    assert fitted["fitted"]["structure"]["threads"] == "2"
    (tmp_path / "fitted.yaml").write_text(dump(fitted))
    requested = simulated(tmp_path / "truth.yaml", 32, 2, tmp_path / "requested")
    printed = predict(Fitted.open(str(tmp_path / "fitted.yaml")), None, {}, 2, 16)["quantities"]
    for name in ("rate", "read.q50", "create.q50", "stat.q50"):
        operation, _, kind = name.rpartition(".")
        expected = requested.quantity(operation, kind) if operation else requested.rate
        assert printed[name]["value"] == pytest.approx(expected, rel=0.08), name


FAMILIES = [
    path.stem
    for path in sorted((REPOSITORY / "platforms").glob("*.yaml"))
    if set(yaml.safe_load(path.read_text()).get("calibration") or {}) - {"measured_system"}
]
WITH_STEPS = [
    (family, choice, option.name)
    for family in FAMILIES
    for choice, options in read_recipe(family).choices.items()
    for option in options
    if option.then or (option.needs and "operations" in option.edit)
]


@pytest.mark.parametrize(("family", "choice", "option"), WITH_STEPS)
def test_options_of_families_are_platforms(family: str, choice: str, option: str, tmp_path: Path) -> None:
    """What an option adds to routes fits the family's own, for operations that were not measured as well."""
    chosen = next(one for one in read_recipe(family).choices[choice] if one.name == option)
    document = merge({"schema_version": 1, "extends": family}, chosen.edit)
    follow(document, chosen.then, family_document(family))
    for parameter in chosen.parameters:
        parameter.write(document, parameter.start)
    (tmp_path / "with.yaml").write_text(dump(document))
    for workload in ("md-workbench", "ior-easy", "ior-hard"):
        binaries.run_json(
            [
                binaries.find("iocast-sim"),
                "--platform",
                str(tmp_path / "with.yaml"),
                "--workload",
                workload,
                "--nodes",
                "2",
                "--ppn",
                "2",
                "--json",
                *TINY[workload],
            ]
        )


TINY = {"md-workbench": SMALL, "ior-easy": ["--set", "per_process=4MiB"], "ior-hard": ["--set", "segments=10"]}


def test_what_would_come_by_the_million_is_not_simulated() -> None:
    """Others' work that takes a share of servers, of whose demand next to nothing is left: as requests that were
    simulated it would take hours."""
    law = {"law": "empirical", "probabilities": [0, 0.999, 1], "values": ["50us", "60us", "1ms"], "shift": "-59.99us"}
    document = {
        "schema_version": 1,
        "extends": "lustre",
        "demands": {"getattr": law},
        "background": {"others": {"station": "mds", "share": 0.3, "demand": "getattr"}},
    }
    with Simulations() as simulations:
        job = (
            simulations.write(document),
            "md-workbench",
            {"datasets": "1", "objects": "20", "iterations": "20", "phases": "benchmark"},
            1,
            1,
            0,
        )
        law["shift"] = "-20us"
        usual = (simulations.write(document), *job[1:])
        found = simulations.run_those_that_settle([job, usual, job])
        assert found[0] is found[2] is None and found[1]["phases"][0]["rate"] > 0 and simulations.count == 1
        with pytest.raises(RunError, match="by the million"):
            simulations.run([job])


def like(points: list[Point], **settings: Any) -> list[str]:
    """Names of the points that speak of the workload of the last one with these settings."""
    workload = points[-1].first.json["workload"]
    entries = [
        {"name": point.name, "ranks": point.ranks, "switches": own}
        for point, own in zip(points, switches(points), strict=True)
    ]
    question = Question.of(workload | {"parameters": workload["parameters"] | settings}, {"ranks": 1}, "benchmark")
    return [one.name for one in measured({"campaign": {"workload": workload, "points": entries}}, question)]


def test_points_of_one_place_have_names_of_their_own(family: Path, tmp_path: Path) -> None:
    runs = [
        simulated(family, ranks, 1, tmp_path / f"{ranks}-{mode}", "--set", f"read_only={mode}")
        for ranks in (1, 4)
        for mode in ("false", "true")
    ]
    runs.append(simulated(family, 8, 1, tmp_path / "8"))
    points = group(runs)
    names = [point.name for point in points]
    assert names == [
        "N=1 T=0 read_only=false",
        "N=1 T=0 read_only=true",
        "N=4 T=0 read_only=false",
        "N=4 T=0 read_only=true",
        "N=8 T=0",
    ]
    reported = switches(points)
    assert [one["read_only"] for one in reported] == ["false", "true", "false", "true", "false"]
    assert like(points, read_only=True) == names[1:4:2]
    assert like(points) == like(points, read_only="false") == [names[0], names[2], names[4]]
    assert switches(group(runs[:1])) == [{}], "one alone differs from nothing"


def test_numbers_that_tell_points_of_one_place_apart_are_switches(family: Path, tmp_path: Path) -> None:
    runs = [simulated(family, 4, 1, tmp_path / f"4-{offset}", "--set", f"offset={offset}") for offset in (0, 1)]
    runs += [simulated(family, ranks, 1, tmp_path / str(ranks), "--set", f"objects={500 * ranks}") for ranks in (1, 2)]
    points = group(runs)
    reported = switches(points)
    assert [one["offset"] for one in reported] == ["1", "1", "0", "1"], "sizes of runs are none"
    assert all(one.keys() == {"offset"} for one in reported)
    assert like(points, offset="0") == ["N=4 T=0 offset=0"]
    assert len(like(points)) == len(like(points, objects=7)) == 3
    assert like(points, offset=7) == [], "where none is like it none speaks of it"


@pytest.mark.parametrize(
    ("kept", "requested"),
    [("65536", "64KiB"), ("0.01", "10ms"), ("65536.0", "65536"), ("md5", "md5"), ("true", "true")],
)
def test_settings_mean_the_same_however_they_are_written(kept: str, requested: str) -> None:
    points = [{"name": name, "ranks": 1, "switches": {"x": x}} for name, x in (("other", "none"), ("this", kept))]
    workload = {"pattern": "none of iocast's", "parameters": {}}
    fitted = {"campaign": {"workload": workload, "points": points}}
    question = Question.of(workload | {"parameters": {"x": requested}}, {"ranks": 1}, "benchmark")
    assert [one.name for one in measured(fitted, question)] == ["this"]
