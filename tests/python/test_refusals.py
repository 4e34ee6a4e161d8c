# SPDX-License-Identifier: Apache-2.0
"""Bad input: one finished sentence, exit 2, and nothing lost."""

import json
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from iocast.ground import binaries
from iocast.errors import InputError
from iocast.platforms.fitted import Fitted
from iocast.forecast import forecast
from iocast.forecasts.answer import predict
from iocast.runs.run_directory import require_run_directory

Iocast = Callable[..., CompletedProcess[str]]
REPOSITORY = Path(__file__).parents[2]


def refused(done: CompletedProcess[str], *words: str) -> None:
    assert done.returncode == 2, (done.returncode, done.stdout, done.stderr)
    message = done.stderr.strip().splitlines()[-1]
    assert message.startswith("iocast: ") and message.endswith("."), message
    for word in words:
        assert word in message, (word, message)
    assert "Traceback" not in done.stderr


def refused_change(text: str, old: str, new: str, words: tuple[str, ...], simulator: Path, directory: Path) -> None:
    """The simulator reads this platform file, and refuses it with `new` in the place of `old` in one finished sentence
    that holds these words."""
    assert old in text
    file = directory / "p.yaml"
    command = [str(simulator), "--platform", str(file), "--print-platform"]
    file.write_text(text)
    subprocess.run(command, capture_output=True, check=True)
    file.write_text(text.replace(old, new, 1))
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2, done.stdout
    message = done.stderr.strip()
    assert len(message.splitlines()) == 1 and message.endswith("."), message
    for word in words:
        assert word in message, message


CAMPAIGN = (
    "schema_version: 1\nworkload: md-workbench\nsettings: {datasets: 1, iterations: 5, objects: 5}\nrepeats:"
    " 1\npoints:\n  - {ranks: 1}\n"
)


@pytest.mark.parametrize(
    "text, words",
    [
        (CAMPAIGN.replace("repeats", "repeets"), ("c.yaml:4", "repeets", "Did you mean 'repeats'")),
        (CAMPAIGN.replace("ranks: 1", "ranks: 0"), ("c.yaml:6", "0")),
        (CAMPAIGN.replace("ranks: 1", "ranks: -3"), ("c.yaml:6", "-3")),
        (CAMPAIGN.replace("ranks: 1", "ranks: 1000000"), ("1000000 ranks", "predict")),
        (CAMPAIGN.replace("ranks: 1", "ranks: 1, role: chek"), ("c.yaml:6", "Did you mean 'check'")),
        (CAMPAIGN.replace("schema_version: 1", "schema_version: 7"), ("c.yaml:1", "7")),
        ("points: [", ("c.yaml:1", "YAML")),
    ],
)
def test_campaign_files(iocast: Iocast, tmp_path: Path, text: str, words: tuple[str, ...]) -> None:
    (tmp_path / "c.yaml").write_text(text)
    (tmp_path / "root").mkdir()
    refused(iocast("measure", tmp_path / "root", "--campaign", tmp_path / "c.yaml", "--out", tmp_path / "out"), *words)
    assert not any((tmp_path / "root").iterdir())
    assert not (tmp_path / "out").exists()


def test_measure_refuses_roots_and_outputs(iocast: Iocast, tmp_path: Path) -> None:
    refused(iocast("measure", tmp_path / "none", "--out", tmp_path / "out"), "does not exist")
    (tmp_path / "file").write_text("x")
    refused(iocast("measure", tmp_path / "file", "--out", tmp_path / "out"), "not a directory")
    refused(iocast("measure", tmp_path, "--out", tmp_path / "file"), "exists already")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "notes").write_text("kept")
    refused(iocast("measure", tmp_path, "--out", tmp_path / "out"), "exists already")
    assert [(p.name, p.read_text()) for p in (tmp_path / "out").iterdir()] == [("notes", "kept")]
    refused(iocast("measure", tmp_path, "--campaign", "quik", "--out", tmp_path / "o"), "quik", "quick")


def test_calibrate_says_what_is_missing(iocast: Iocast, measured: Path, tmp_path: Path) -> None:
    refused(
        iocast("calibrate", measured / "n2-r1", measured / "n4-r1", measured / "n8-r1", "--out", tmp_path / "f"),
        "one rank",
    )
    refused(iocast("calibrate", measured / "n1-r1", measured / "n4-r1", "--out", tmp_path / "f"), "N = 1, 4", "2")
    (tmp_path / "f").write_text("kept")
    refused(iocast("calibrate", measured / "n1-r1", "--out", tmp_path / "f"), "exists already")
    assert (tmp_path / "f").read_text() == "kept"
    refused(iocast("calibrate", measured / "n1-r1", "--platform", "loca", "--out", tmp_path / "g"), "loca", "local")
    refused(
        iocast("calibrate", measured / "n1-r1", "--platform", "mistral2.yaml", "--out", tmp_path / "g"), "mistral2.yaml"
    )


def test_broken_run_directories(iocast: Iocast, measured: Path, tmp_path: Path) -> None:
    def copy(name: str) -> Path:
        return Path(shutil.copytree(measured / "n1-r1", tmp_path / name))

    def edit(run: Path, **changes: object) -> Path:
        content = json.loads((run / "run.json").read_text())
        (run / "run.json").write_text(json.dumps(content | changes))
        return run

    cut = copy("cut")
    (cut / "run.json").write_text((cut / "run.json").read_text()[:1000])
    refused(iocast("calibrate", cut, "--out", tmp_path / "f"), "cut/run.json", "cut off")
    log = copy("log")
    (log / "latency.hlog").write_text((log / "latency.hlog").read_text()[:-400])
    refused(
        iocast("calibrate", log, measured / "n2-r1", measured / "n4-r1", "--out", tmp_path / "f"),
        "latency.hlog:",
        "cut off",
    )
    refused(iocast("calibrate", edit(copy("newer"), schema_version=2), "--out", tmp_path / "f"), "schema version 2")
    refused(iocast("calibrate", edit(copy("killed"), status="running"), "--out", tmp_path / "f"), "killed")
    refused(iocast("calibrate", tmp_path / "nowhere", "--out", tmp_path / "f"), "nowhere")
    refused(iocast("calibrate", tmp_path, "--out", tmp_path / "f"), "run.json")


PLATFORM = """schema_version: 1
extends: local
stations:
  cpu: {servers: 2}
demands:
  stat: 2us
operations:
  stat:
    - {station: cpu, demand: stat}
"""


@pytest.mark.parametrize(
    "old, new, words",
    [
        ("servers: 2", "servers: 0", ("p.yaml:4", "0")),
        ("servers: 2", "servers: -1", ("p.yaml:4", "-1")),
        ("servers: 2", "serverz: 2", ("p.yaml:4", "Did you mean 'servers'")),
        ("stat: 2us", "stat: 2", ("p.yaml:6", "unit")),
        ("stat: 2us", "stat: 2uz", ("p.yaml:6", "uz")),
        ("stat: 2us", "stat: -2us", ("p.yaml:6", "-2us")),
        ("stat: 2us", "stat: 1e300s", ("p.yaml:6",)),
        ("- {station: cpu", "- {station: cpo", ("p.yaml:9", "Did you mean 'cpu'")),
        ("demand: stat}", "demand: stad}", ("p.yaml:9", "Did you mean 'stat'")),
        ("  stat:\n    -", "  stad:\n    -", ("p.yaml:", "Did you mean 'stat'")),
        ("extends: local", "extends: locel", ("p.yaml:2", "Did you mean 'local'")),
        ("extends: local", f"extends: {'local' * 60}", ("p.yaml:2", "There is no platform")),
        ("extends: local", "extends: p.yaml", ("p.yaml:1", "extends itself")),
        ("schema_version: 1", "schema_version: 3", ("p.yaml:1", "3")),
        ("stations:\n  cpu: {servers: 2}", "stations: [", ("p.yaml:", "YAML")),
    ],
)
def test_platform_files(simulator: Path, tmp_path: Path, old: str, new: str, words: tuple[str, ...]) -> None:
    (tmp_path / "p.yaml").write_text(PLATFORM.replace(old, new))
    done = subprocess.run(
        [str(simulator), "--platform", str(tmp_path / "p.yaml"), "--out", str(tmp_path / "run")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2, done.stderr
    message = done.stderr.strip()
    assert len(message.splitlines()) == 1 and message.endswith("."), message
    for word in words:
        assert word in message, message
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("base", ["locel", "gone.yaml", "p.yaml"])
def test_what_a_platform_extends_is_refused_by_the_file_that_says_so(tmp_path: Path, base: str) -> None:
    """In the toolkit, too, and where another file extends that one."""
    (tmp_path / "p.yaml").write_text(f"schema_version: 1\nextends: {base}\n")
    (tmp_path / "above.yaml").write_text("schema_version: 1\nextends: p.yaml\n")
    for file in ("p.yaml", "above.yaml"):
        with pytest.raises(InputError, match=re.escape(str(tmp_path / "p.yaml"))):
            Fitted.open(str(tmp_path / file))


BUFFERED = """schema_version: 1
stations:
  disk: {servers: 1}
  cpu: {per: node, servers: 4}
limits:
  rpcs: {slots: 8}
buffers:
  b: {capacity: 1GiB, unit: 1MiB, at_once: 2, drain: [{station: disk, demand: 1ms}]}
  far: {per: system, capacity: 1GiB, drain: [{station: disk, demand: 1ms}]}
operations:
  stat: []
  pwrite: [{buffer: b}]
  fsync: [{flush: b, of: all}]
"""


@pytest.mark.parametrize(
    "old, new, words",
    [
        ("b: {capacity: 1GiB", "b: {capacity: 0B", ("p.yaml:8", "0B")),
        ("b: {capacity: 1GiB", "b: {capacity: 1000", ("p.yaml:8", "unit")),
        ("b: {capacity: 1GiB,", "b: {", ("p.yaml:8", "capacity")),
        ("unit: 1MiB", "unit: 2GiB", ("p.yaml:8", "no room for a unit of 2GiB", "1GiB")),
        ("unit: 1MiB", "linger: 1s", ("p.yaml:8", "'unit'")),
        ("at_once: 2", "at_once: 0", ("p.yaml:8", "0")),
        ("at_once: 2", "at_ones: 2", ("p.yaml:8", "Did you mean 'at_once'")),
        ("at_once: 2", "resume: 1.5", ("p.yaml:8", "1.5")),
        ("at_once: 2", "per: dataset", ("p.yaml:8", "system, node")),
        ("at_once: 2", "station: dist", ("p.yaml:8", "Did you mean 'disk'")),
        ("at_once: 2", "station: cpu", ("p.yaml:8", "per: node")),
        ("at_once: 2", "station: disk, per: node", ("p.yaml:8", "not both")),
        ("at_once: 2, drain: [{station: disk, demand: 1ms}]", "drain: []", ("p.yaml:8", "no step")),
        ("at_once: 2, drain: [{station: disk,", "drain: [{station: dask,", ("p.yaml:8", "Did you mean 'disk'")),
        ("at_once: 2, drain: [{", "drain: [{buffer: far}, {", ("p.yaml:8", "no earlier buffer 'far'")),
        ("at_once: 2, drain: [{", "drain: [{flush: b}, {", ("p.yaml:8", "what a buffer drains goes through")),
        ("at_once: 2, drain: [{", "drain: [{transfer: read, station: disk}, {", ("p.yaml:8", "written, not read")),
        ("at_once: 2, drain: [{", "drain: [{per: block, ", ("p.yaml:8", "no blocks")),
        (
            "per: system, capacity: 1GiB, drain: [{",
            "per: system, capacity: 1GiB, drain: [{transfer: write, station: disk}, {",
            ("p.yaml:9", "no place"),
        ),
        (
            "per: system, capacity: 1GiB, drain: [{",
            "station: disk, capacity: 1GiB, drain: [{transfer: write, station: disk}, {",
            ("p.yaml:9", "already"),
        ),
        (
            "per: system, capacity: 1GiB, drain: [{",
            "per: system, capacity: 1GiB, drain: [{station: cpu, demand: 1ms}, {",
            ("p.yaml:9", "is no node's"),
        ),
        (
            "per: system, capacity: 1GiB, drain: [{",
            "per: system, capacity: 1GiB, drain: [{buffer: b}, {",
            ("p.yaml:9", "is no node's"),
        ),
        (
            "capacity: 1GiB, drain: [{station: disk, demand: 1ms}]",
            "capacity: 1GiB, drain: [{limit: rpcs, steps: []}]",
            ("p.yaml:9", "is no node's"),
        ),
        ("stat: []", "stat: [{buffer: b}]", ("p.yaml:11", "stat writes nothing", "pwrite")),
        ("[{buffer: b}]", "[{buffer: bb}]", ("p.yaml:12", "there is no buffer 'bb'", "Did you mean 'b'")),
        ("of: all", "of: rank", ("p.yaml:13", "all, object, everywhere, elsewhere")),
        ("of: all", "off: all", ("p.yaml:13", "Did you mean 'of'")),
        (
            "at_once: 2, drain: [{station: disk, demand: 1ms}]}",
            "drain: [{limit: rpcs, steps: [{station: disk, demand: 1ms}]}]}\n  # [",
            ("p.yaml:13", "'rpcs'", "wait for itself"),
        ),
    ],
)
def test_buffers_of_platform_files(simulator: Path, tmp_path: Path, old: str, new: str, words: tuple[str, ...]) -> None:
    text = BUFFERED.replace(old, new)
    if "itself" in words[-1]:
        text = text.replace("[{buffer: b}]", "[{limit: rpcs, steps: [{buffer: b}]}]")
    assert text != BUFFERED
    (tmp_path / "p.yaml").write_text(text)
    done = subprocess.run(
        [str(simulator), "--platform", str(tmp_path / "p.yaml"), "--print-platform"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2, done.stdout
    message = done.stderr.strip()
    assert len(message.splitlines()) == 1 and message.endswith("."), message
    for word in words:
        assert word in message, message


def test_a_platform_with_buffers_is_taken(simulator: Path, tmp_path: Path) -> None:
    """The one that the refused ones differ from."""
    (tmp_path / "p.yaml").write_text(BUFFERED)
    subprocess.run(
        [str(simulator), "--platform", str(tmp_path / "p.yaml"), "--print-platform"], capture_output=True, check=True
    )


CACHED = """schema_version: 1
stations:
  mds: {servers: 1}
  cpu: {per: node, servers: 4}
caches:
  inodes: {station: mds, objects: 100}
  pages: {capacity: 1GiB, page: 1MiB}
buffers:
  b: {per: system, capacity: 1GiB, drain: [{station: mds, demand: 1ms}, {cache: inodes}]}
operations:
  stat: [{cache: inodes, hit: [{station: mds, demand: 1ms}]}]
  pread: [{cache: pages, miss: [{station: mds, demand: 1ms}]}]
  unlink: [{forget: pages}]
  wake: [{station: cpu, demand: 1ms}]
"""


@pytest.mark.parametrize(
    "old, new, words",
    [
        ("objects: 100", "objects: 0", ("p.yaml:6", "0")),
        (", objects: 100", "", ("p.yaml:6", "caches.inodes", "one of these keys", "capacity, objects")),
        ("objects: 100", "objects: 100, capacity: 1GiB", ("p.yaml:6", "one of these keys", "capacity, objects")),
        ("objects: 100", "objects: 100, page: 1MiB", ("p.yaml:6", "'page' has no effect without 'capacity'")),
        ("objects: 100", "objets: 100", ("p.yaml:6", "Did you mean 'objects'", "capacity, objects")),
        ("station: mds, objects", "station: mdt, objects", ("p.yaml:6", "Did you mean 'mds'")),
        ("station: mds, objects", "station: cpu, objects", ("p.yaml:6", "per: node")),
        (
            "station: mds, objects",
            "station: mds, per: node, objects",
            ("p.yaml:6", "a cache has an owner (per: system or rank or node)", "not both"),
        ),
        ("station: mds, objects", "per: dataset, objects", ("p.yaml:6", "system, rank, node")),
        (", page: 1MiB", "", ("p.yaml:7", "page")),
        ("page: 1MiB", "page: 2GB", ("p.yaml:7", "2GB")),
        ("capacity: 1GiB, page", "capacity: 1KiB, page", ("p.yaml:7", "no room for a page of 1MiB", "1KiB")),
        ("capacity: 1GiB, page", "capacity: 0B, page", ("p.yaml:7", "0B")),
        ("{cache: inodes}", "{cache: pages}", ("p.yaml:9", "is no node's", "the cache of one")),
        ("{cache: inodes}", "{forget: pages}", ("p.yaml:9", "is no node's", "the cache of one")),
        ("station: mds, objects", "per: rank, objects", ("p.yaml:9", "no rank's", "the cache of one")),
        (
            "stat: [{cache: inodes",
            "stat: [{cache: inode",
            ("p.yaml:11", "there is no cache 'inode'", "Did you mean 'inodes'"),
        ),
        (
            "stat: [{cache: inodes",
            "stat: [{cache: pages",
            ("p.yaml:11", "stat moves no bytes", "Allowed: create, read"),
        ),
        (
            "hit: [{station: mds, demand: 1ms}]",
            "hit: [{station: mds, demand: 1ms, bandwidth: 1GB/s}]",
            ("p.yaml:11", "stat moves no bytes", "give the time as 'demand'"),
        ),
        ("hit: [{station: mds", "hit: [{station: msd", ("p.yaml:11", "Did you mean 'mds'")),
        ("hit: [", "hits: [", ("p.yaml:11", "Did you mean 'hit'")),
        ("{forget: pages}", "{forget: page}", ("p.yaml:13", "there is no cache 'page'")),
        ("{forget: pages}", "{forget: pages, hit: []}", ("p.yaml:13", "hit")),
        ("wake: [{station: cpu, demand: 1ms}]", "wake: [{cache: inodes}]", ("p.yaml:14", "of no object")),
    ],
)
def test_caches_of_platform_files(simulator: Path, tmp_path: Path, old: str, new: str, words: tuple[str, ...]) -> None:
    refused_change(CACHED, old, new, words, simulator, tmp_path)


def test_caches_are_simulated_only(iocast: Iocast, tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text(
        "schema_version: 1\nextends: queue\ncaches: {c: {objects: 9}}\noperations: {stat: [{cache: c, miss: [{delay:"
        " 1ms}]}]}\n"
    )
    predict = ("predict", tmp_path / "p.yaml", "--solver", "analytic", "--workload")
    refused(iocast(*predict, "operation-mix", "--set", "files=9"), "stat", "cache 'c'", "use the simulator")
    assert iocast(*predict, "md-workbench").returncode == 0  # no object is looked up twice


AHEAD = """schema_version: 1
stations:
  oss: {count: 2, spread: stripe}
  mds: {servers: 4}
  cpu: {per: node}
limits:
  rpcs: {slots: 8}
  threads: {slots: 8, per: system}
locks:
  l: {per: object, hand_over: 1ms}
buffers:
  b: {capacity: 1GiB, drain: [{station: oss, demand: 1ms}]}
caches:
  server: {station: mds, capacity: 1GiB, page: 1MiB, ahead: 4MiB, \
fetch: [{station: mds, demand: 1ms}, {limit: threads, steps: []}]}
  pages: {capacity: 64MiB, page: 1MiB, ahead: 8MiB, unit: 4MiB, at_once: 2, \
fetch: [{limit: rpcs, steps: [{delay: 1ms}]}, {cache: server}, {transfer: read, station: oss}]}
operations:
  pread: [{cache: pages, miss: [{station: oss, demand: 1ms}]}]
  stat: [{forget: pages, of: elsewhere}, {limit: rpcs, steps: [{delay: 1ms}]}]
"""


@pytest.mark.parametrize(
    "old, new, words",
    [
        ("ahead: 8MiB", "ahead: 0B", ("p.yaml:15", "0B")),
        ("ahead: 8MiB", "ahead: 2MiB", ("p.yaml:15", "a piece of 4MiB is more than is fetched ahead, 2MiB")),
        ("ahead: 8MiB, unit: 4MiB", "ahead: 64KiB", ("p.yaml:15", "a piece of 1MiB is more")),
        ("ahead: 8MiB", "ahead: 61MiB", ("p.yaml:15", "'pages' has no room for so much", "64MiB")),
        ("ahead: 8MiB, ", "", ("p.yaml:15", "no effect without 'ahead'")),
        ("ahead: 8MiB, unit", "ahed: 8MiB, unit", ("p.yaml:15", "no effect without 'ahead'")),
        ("unit: 4MiB", "unit: 3000KiB", ("p.yaml:15", "whole pages, of 1MiB", "3000KiB is not a multiple")),
        ("at_once: 2", "at_once: 0", ("p.yaml:15", "0")),
        ("capacity: 64MiB, page: 1MiB", "objects: 10", ("p.yaml:15", "'ahead' has no effect without 'capacity'")),
        (
            "capacity: 64MiB, page: 1MiB",
            "capacity: 1TiB, page: 4KiB",
            ("p.yaml:15", "268435456", "the most is 16777216"),
        ),
        (
            "fetch: [{limit: rpcs, steps: [{delay: 1ms}]}, {cache: server}, {transfer: read, station: oss}]",
            "station: oss, fetch: [{delay: 1ms}]",
            ("p.yaml:15", "'oss' has only stripes"),
        ),
        ("pages: {capacity", "pages: {per: system, capacity", ("p.yaml:15", "'pages' is no node's")),
        ("server: {station: mds, ", "server: {per: rank, ", ("p.yaml:14", "a node's, not a rank's")),
        (
            "fetch: [{limit: rpcs, steps: [{delay: 1ms}]}, {cache: server}, {transfer: read, station: oss}]",
            "fetch: []",
            ("p.yaml:15", "no step"),
        ),
        (
            ", fetch: [{limit: rpcs, steps: [{delay: 1ms}]}, {cache: server}, {transfer: read, station: oss}]",
            "",
            ("p.yaml:15", "fetch"),
        ),
        ("{cache: server}", "{cache: pages}", ("p.yaml:15", "no earlier cache 'pages'", "server")),
        ("{cache: server}", "{buffer: b}", ("p.yaml:15", "what a cache fetches goes through")),
        ("{cache: server}", "{flush: b}", ("p.yaml:15", "what a cache fetches goes through")),
        ("{cache: server}", "{take: b}", ("p.yaml:15", "not what goes on in the background")),
        ("{cache: server}", "{station: mds, demand: 1ms, per: block}", ("p.yaml:15", "no blocks")),
        ("transfer: read", "transfer: write", ("p.yaml:15", "is read, not written")),
        (
            "fetch: [{station: mds",
            "fetch: [{transfer: read, station: oss}, {station: mds",
            ("p.yaml:14", "by the bandwidth of a visit"),
        ),
        (
            "fetch: [{station: mds",
            "fetch: [{station: cpu",
            ("p.yaml:14", "'server' is no node's", "station of the client nodes"),
        ),
        (
            "fetch: [{station: mds, demand: 1ms",
            "fetch: [{station: mds, demand: 1ms, lock: l",
            ("p.yaml:14", "is no node's", "lock"),
        ),
        ("{limit: threads, steps: []}", "{limit: rpcs, steps: []}", ("p.yaml:14", "is no node's", "a slot of one")),
        (
            "pread: [{cache: pages, miss: [{station: oss, demand: 1ms}]}]",
            "pread: [{limit: rpcs, steps: [{cache: pages}]}]",
            ("p.yaml:17", "cache 'pages' needs the limit 'rpcs' to fetch", "wait for itself"),
        ),
        (
            "pread: [{cache: pages, miss: [{station: oss, demand: 1ms}]}]",
            "pread: [{limit: threads, steps: [{cache: pages}]}]",
            ("p.yaml:17", "cache 'server' needs the limit 'threads'"),
        ),
        ("of: elsewhere", "of: elswhere", ("p.yaml:18", "'elswhere'", "Did you mean 'elsewhere'")),
        ("{forget: pages", "{forget: server", ("p.yaml:18", "'server' is no node's", "elsewhere")),
        ("of: elsewhere", "recall: [{delay: 1ms}]", ("p.yaml:18", "only what others have is called back")),
        ("{forget: pages", "{forgets: pages", ("p.yaml:18", "no key of this step", "Did you mean 'forget'")),
        ("{delay: 1ms}]}]\n", "{}]}]\n", ("p.yaml:18", "a step is empty")),
        ("of: elsewhere", "of: elsewhere, recals: []", ("p.yaml:18", "'recals'", "Did you mean 'recall'")),
        (
            "of: elsewhere",
            "of: elsewhere, delays: 1ms",
            ("p.yaml:18", "'delays' is unknown", "Allowed: forget, of, recall"),
        ),
        ("mds, capacity: 1GiB", "mds, capcity: 1GiB", ("p.yaml:14", "no key 'capcity'", "Did you mean 'capacity'")),
        ("mds, capacity: 1GiB, page: 1MiB, ahead: 4MiB, fetch", "mds, fetch", ("p.yaml:14", "needs one of these keys")),
        ("of: elsewhere", "of: everywhere, recall: [{delay: 1ms}]", ("p.yaml:18", "write 'of: elsewhere'")),
    ],
)
def test_caches_that_read_ahead_of_platform_files(
    simulator: Path, tmp_path: Path, old: str, new: str, words: tuple[str, ...]
) -> None:
    refused_change(AHEAD, old, new, words, simulator, tmp_path)


def test_what_is_fetched_ahead_is_simulated_only(iocast: Iocast, tmp_path: Path) -> None:
    cache = "caches: {c: {capacity: 1GiB, page: 1MiB, ahead: 4MiB, fetch: [{delay: 1ms}]}}"
    (tmp_path / "p.yaml").write_text(
        f"schema_version: 1\nextends: lustre\n{cache}\noperations: {{pread: [{{cache: c}}]}}\n"
    )
    options = ("--workload", "ior-easy", "--solver", "analytic")
    refused(iocast("predict", tmp_path / "p.yaml", *options), "pread", "cache 'c'", "use the simulator")


POOLED = """schema_version: 1
stations:
  oss: {count: 2, spread: stripe, stripe_count: 2}
  cpu: {per: node, servers: 4}
limits:
  threads: {slots: 8, per: system}
  rpcs: {slots: 8}
locks:
  directory: {per: dataset}
caches:
  c: {per: system, objects: 10}
pools:
  p: {station: oss, size: 64, batch: 32, low: 16, refill: [{station: oss, demand: 1ms}, {limit: threads, steps: []}]}
operations:
  create: {open: [{limit: rpcs, steps: [{take: p}]}]}
  wake: [{station: cpu, demand: 1ms}]
"""


@pytest.mark.parametrize(
    "old, new, words",
    [
        ("size: 64", "size: 0", ("p.yaml:13", "0")),
        ("size: 64", "size: 16", ("p.yaml:13", "no room for a batch of 32", "16")),
        ("batch: 32, ", "", ("p.yaml:13", "batch")),
        ("batch: 32", "batch: 0", ("p.yaml:13", "0")),
        ("low: 16", "low: 33", ("p.yaml:13", "when 33 are left", "the most is 32")),
        ("low: 16", "lo: 16", ("p.yaml:13", "Did you mean 'low'")),
        ("low: 16", "at_once: 0", ("p.yaml:13", "0")),
        ("{station: oss, size", "{station: ost, size", ("p.yaml:13", "Did you mean 'oss'")),
        ("{station: oss, size", "{station: cpu, size", ("p.yaml:13", "per: node")),
        ("{station: oss, size", "{per: object, size", ("p.yaml:13", "system, node")),
        ("refill: [{station: oss, demand: 1ms}, {limit: threads, steps: []}]", "refill: []", ("p.yaml:13", "no step")),
        ("refill: [", "refill: [{transfer: write, station: oss}, ", ("p.yaml:13", "through delays")),
        ("refill: [", "refill: [{cache: c}, ", ("p.yaml:13", "through delays")),
        ("refill: [", "refill: [{take: p}, ", ("p.yaml:13", "only an operation has the step 'take'")),
        ("refill: [", "refill: [{station: cpu, demand: 1ms}, ", ("p.yaml:13", "is no node's")),
        ("refill: [", "refill: [{limit: rpcs, steps: []}, ", ("p.yaml:13", "is no node's")),
        ("demand: 1ms}, {limit", "demand: 1ms, per: block}, {limit", ("p.yaml:13", "no blocks")),
        ("demand: 1ms}, {limit", "demand: 1ms, bandwidth: 1GB/s}, {limit", ("p.yaml:13", "no bytes")),
        ("demand: 1ms}, {limit", "demand: 1ms, stripes: spanned}, {limit", ("p.yaml:13", "no bytes")),
        ("demand: 1ms}, {limit", "demand: 1ms, lock: directory}, {limit", ("p.yaml:13", "of no dataset")),
        ("{take: p}", "{take: q}", ("p.yaml:15", "there is no pool 'q'")),
        ("{take: p}", "{take: p, count: 2}", ("p.yaml:15", "count")),
        (
            "limit: rpcs, steps: [{take",
            "limit: threads, steps: [{take",
            ("p.yaml:15", "'p' needs the limit 'threads' to refill", "wait for itself"),
        ),
        ("wake: [{station: cpu, demand: 1ms}]", "wake: [{take: p}]", ("p.yaml:16", "waking up")),
    ],
)
def test_pools_of_platform_files(simulator: Path, tmp_path: Path, old: str, new: str, words: tuple[str, ...]) -> None:
    refused_change(POOLED, old, new, words, simulator, tmp_path)


def test_pools_are_simulated_only(iocast: Iocast, tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text(
        "schema_version: 1\nextends: queue\npools: {c: {size: 9, batch: 1, refill: [{delay: 1ms}]}}\noperations: {stat:"
        " [{take: c}]}\n"
    )
    refused(iocast("predict", tmp_path / "p.yaml", "--solver", "analytic"), "stat", "take: c", "use the simulator")


FAILING = "schema_version: 1\nextends: lustre\nfailures:\n  oss3: {station: oss, instance: 3, at: 1s, length: 10s}\n"


def test_failures_are_simulated_only_and_whole(simulator: Path, iocast: Iocast, tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text(FAILING)
    refused(iocast("predict", tmp_path / "p.yaml", "--solver", "analytic"), "failures (oss3)", "use the simulator")
    command = [str(simulator), "--platform", str(tmp_path / "p.yaml")]
    done = subprocess.run([*command, "--until", "rate:5%"], capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "'oss3'" in done.stderr and "happens once" in done.stderr, done.stderr
    (tmp_path / "p.yaml").write_text(FAILING.replace("instance: 3", "instance: 16"))
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "p.yaml:4" in done.stderr and "0 to 15, not 16" in done.stderr, done.stderr


@pytest.mark.parametrize(
    "arguments, words",
    [
        (("--nodes", "0"), ("0 nodes",)),
        (("--nodes", "-2"), ("-2 nodes",)),
        (("--nodes", "9999999999"), ("billion",)),
        (("--set", "iteratons=5"), ("Did you mean 'iterations'",)),
        (("--set", "object_size=3901"), ("unit",)),
        (("--set", "object_size=3901X"), ("'X'",)),
        (("--set", "iterations=-1"), ("-1",)),
        (("--set", "iterations=2000"), ("2000 iterations",)),
        (("--set", "phases=benchmrk"), ("Did you mean 'benchmark'",)),
        (("--set", "iterations"), ("name=value",)),
        (("--workload", "md-workbensh"), ("Did you mean 'md-workbench'",)),
        (("--workload", "none.yaml"), ("none.yaml",)),
        (("--list", "platform"), ("Did you mean 'platforms'",)),
        (("--describe", "statiom"), ("Did you mean 'station'",)),
        (("--nosuch",), ("nosuch",)),
    ],
)
def test_simulator_arguments(simulator: Path, arguments: tuple[str, ...], words: tuple[str, ...]) -> None:
    done = subprocess.run(
        [str(simulator), "--platform", "local", *arguments], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2, (done.returncode, done.stderr)
    for word in words:
        assert word in done.stderr, done.stderr


def test_simulator_keeps_an_existing_output(simulator: Path, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "precious").write_text("kept")
    done = subprocess.run(
        [str(simulator), "--platform", "local", "--out", str(tmp_path / "run")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2 and "exists already" in done.stderr
    assert (tmp_path / "run" / "precious").read_text() == "kept"


RANGES = """schema_version: 1
stations:
  oss: {count: 2, spread: stripe}
  ost: {count: 2, spread: object}
  cpu: {per: node}
locks:
  l: {per: object, hand_over: 2ms, extent: 4KiB, grow: 1MiB, station: oss}
  whole: {per: object, hand_over: 2ms}
  directory: {per: dataset}
operations:
  pwrite: [{station: ost, demand: 1ms, lock: l, recall: [{delay: 1ms}]}]
"""


@pytest.mark.parametrize(
    "old, new, words",
    [
        ("extent: 4KiB", "extent: 0B", ("p.yaml:7", "0")),
        ("extent: 4KiB", "extent: 4", ("p.yaml:7", "extent")),
        ("extent: 4KiB", "extend: 4KiB", ("p.yaml:7", "'grow' is of locks on ranges", "'extent'")),
        ("extent: 4KiB, grow: 1MiB", "extend: 4KiB", ("p.yaml:7", "'station' is of locks on ranges")),
        ("extent: 4KiB, grow: 1MiB, station: oss", "extend: 4KiB", ("p.yaml:7", "Did you mean 'extent'")),
        ("grow: 1MiB", "grow: -1B", ("p.yaml:7", "-1")),
        (
            "per: object, hand_over: 2ms, extent",
            "per: dataset, hand_over: 2ms, extent",
            ("p.yaml:7", "only objects have ranges", "per: dataset"),
        ),
        ("hand_over: 2ms, extent", "extent", ("p.yaml:7", "give the lock 'l' a hand_over")),
        ("station: oss}", "station: oss9}", ("p.yaml:7", "no station 'oss9'", "Did you mean 'oss'")),
        ("station: oss}", "station: ost}", ("p.yaml:7", "striped", "'ost' is spread by object")),
        ("station: oss}", "station: cpu}", ("p.yaml:7", "'cpu' is of the client nodes")),
        ("lock: l, ", "", ("p.yaml:11", "is called back")),
        ("lock: l, ", "lock: directory, ", ("p.yaml:11", "is called back")),
        ("lock: l, ", "lock: l, lock_share: 0, ", ("p.yaml:11", "is called back")),
        ("recall: [{delay: 1ms}]", "recall: [{delay: 1}]", ("p.yaml:11",)),
        ("recall:", "recal:", ("p.yaml:11", "Did you mean 'recall'")),
    ],
)
def test_locks_on_ranges_of_platform_files(
    simulator: Path, tmp_path: Path, old: str, new: str, words: tuple[str, ...]
) -> None:
    refused_change(RANGES, old, new, words, simulator, tmp_path)


def test_locks_on_ranges_are_simulated_only(iocast: Iocast, tmp_path: Path) -> None:
    lock = "locks: {l: {per: object, hand_over: 1ms, extent: 4KiB}}\n"
    (tmp_path / "p.yaml").write_text(
        f"schema_version: 1\nextends: queue\nstations: {{q: {{}}}}\n{lock}operations: {{stat: [{{station: q, demand:"
        " 1ms, lock: l}]}\n"
    )
    refused(
        iocast("predict", tmp_path / "p.yaml", "--solver", "analytic"),
        "stat",
        "lock 'l' on ranges",
        "use the simulator",
    )


@pytest.mark.parametrize("arguments", [("--workload",), ("--list",), ("--describe",)])
def test_a_refusal_lists_each_name_once(simulator: Path, arguments: tuple[str, ...]) -> None:
    """Names come from several places: patterns, files of the catalogue, primitives."""
    command = [str(simulator), "--platform", "local", *arguments, "qqqq"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2 and done.stderr.count("Allowed: ") == 1, done.stderr
    names = done.stderr.strip().rstrip(".").split("Allowed: ")[1].split(", ")
    assert len(names) > 3 and len(names) == len(set(names)), names


def test_what_a_verb_lacks_is_named_with_its_meaning(iocast: Iocast) -> None:
    """Of every verb with something that it can't do without."""
    from iocast.cli.app import app

    assert app.registered_commands
    lacking = 0
    for command in app.registered_commands:
        name = str(command.name or getattr(command.callback, "__name__", ""))
        if name in ("measure", "knee", "plan", "selftest", "validate", "manual", "observe", "list"):
            continue  # with a default for everything, or a sentence of its own
        lacking += 1
        refused(iocast(name), f"iocast {name} needs ", ": ")
    assert lacking > 8
    refused(iocast("forecast", "results.csv"), "iocast forecast needs --nodes: client nodes", "32,1000")


@pytest.mark.parametrize("verb", ["calibrate", "export", "report", "forecast"])
def test_the_directory_of_a_forecast_names_its_runs(iocast: Iocast, tmp_path: Path, verb: str) -> None:
    """As a directory of runs is what is meant."""
    table = REPOSITORY / "examples" / "first-forecast" / "cirrus.csv"
    assert iocast("import", table, "--out", tmp_path / "made" / "runs").returncode == 0
    more = {"export": ["--format", "csv"], "forecast": ["--nodes", 9]}.get(verb, [])
    done = iocast(verb, tmp_path / "made", *more, "--out", tmp_path / "out")
    refused(done, f"Runs lie in '{tmp_path / 'made' / 'runs'}'.")


def test_a_file_in_the_place_of_a_run_names_the_import(iocast: Iocast, tmp_path: Path) -> None:
    table = REPOSITORY / "examples" / "first-forecast" / "cirrus.csv"
    refused(iocast("calibrate", table, "--out", tmp_path / "f.yaml"), "is a file", f"iocast import {table}")


@pytest.mark.parametrize("place", ["platform", "workload"])
def test_what_exists_and_is_no_platform_or_workload(iocast: Iocast, tmp_path: Path, place: str) -> None:
    (tmp_path / "notes.txt").write_text("x")
    for path, what in ((tmp_path, "a directory"), (tmp_path / "notes.txt", "a file")):
        given = (path, "md-workbench") if place == "platform" else ("local", path)
        refused(iocast("simulate", *given), f"'{path}' is {what}, and no {place} file", ".yaml")


def test_compare_names_the_argument_that_is_wrong(iocast: Iocast, measured: Path, tmp_path: Path) -> None:
    run = measured / "n1-r1"
    (tmp_path / "notes.txt").write_text("x")
    for pair in ((run, tmp_path / "notes.txt"), (tmp_path / "notes.txt", run)):
        refused(iocast("compare", *pair), f"iocast: '{tmp_path / 'notes.txt'}' is nothing that can be compared")
    refused(iocast("compare", run, "offer.yaml"), f"'{run}' is a measurement", "two of a kind")


def test_a_misspelt_key_stands_before_the_one_that_it_stands_for(tmp_path: Path) -> None:
    """Each key that a study or a campaign needs, without its last letter."""
    from iocast.campaign.plan import read_plan
    from iocast.errors import InputError
    from iocast.study.spec import read_study

    example = REPOSITORY / "examples" / "one-mds-or-dne" / "study.yaml"
    for text, keys, read in (
        (example.read_text(), ("scales", "workloads", "levels", "platform"), read_study),
        (CAMPAIGN, ("workload", "points"), lambda file: read_plan(str(file))),
    ):
        for key in keys:
            file = tmp_path / "f.yaml"
            file.write_text(re.sub(rf"^{key}:", f"{key[:-1]}:", text, count=1, flags=re.MULTILINE))
            line = next(n for n, one in enumerate(file.read_text().splitlines(), 1) if one.startswith(f"{key[:-1]}:"))
            with pytest.raises(InputError, match=rf":{line}: the key '{key[:-1]}' is unknown .*; write '{key}'\."):
                read(file)


def test_no_settings_to_choose_by(iocast: Iocast, tmp_path: Path) -> None:
    table = REPOSITORY / "examples" / "first-forecast" / "cirrus.csv"
    done = iocast("forecast", table, "--nodes", 9, "--only", "a=1", "--out", tmp_path / "out")
    refused(done, "leave --only out")


@pytest.mark.parametrize("program", ["iocast-sim", "iocast-bench"])
def test_programs_name_the_option_that_was_meant(simulator: Path, program: str) -> None:
    for words, sentence in (
        (["--workloda", "md-workbench"], "Did you mean '--workload'?"),
        (["--describe", "md-workbenhc"], "Did you mean 'md-workbench'?"),
    ):
        done = subprocess.run([simulator.parent / program, *words], capture_output=True, text=True, check=False)
        assert done.returncode == 2 and sentence in done.stderr, done.stderr
        allowed = done.stderr.strip().removesuffix(".").split("Allowed: ")[1].split(", ")
        assert len(allowed) == len(set(allowed))


def test_sizes_in_bits_are_not_taken_for_bytes(iocast: Iocast) -> None:
    for unit in ("Mb", "Gbit", "kb"):
        done = iocast("simulate", "local", "ior-easy", "--set", f"per_process=128{unit}")
        refused(done, f"'128{unit}' is in bits")
        assert "Did you mean" not in done.stderr


def test_an_empty_list_of_allowed_names_is_a_sentence() -> None:
    from iocast.ground.strict_yaml import allowed_sentence

    assert allowed_sentence("x", []) == "Nothing is allowed here."


def test_forecasts_of_more_ranks_than_there_can_be_are_refused(tmp_path: Path) -> None:
    for nodes, each in ((10**20, 1), (1, 10**9), (10**5, 10**5)):
        with pytest.raises(InputError, match="100,000,000 ranks"):
            predict(Fitted.open("lustre"), None, {}, nodes, each)
        with pytest.raises(InputError, match="100,000,000 ranks"):  # before the file is looked for
            forecast([Path("none.csv")], [nodes], tmp_path / "out", ranks_per_node=each, report=lambda *_: None)


def test_a_simulation_beyond_the_memory_says_so() -> None:
    """The address space is bounded, as batch systems do."""
    command = [str(binaries.find("iocast-sim")), "--platform", "lustre", "--workload", "md-workbench"]
    bounded = ["prlimit", f"--as={2**30}", *command, "--nodes", "100000000", "--ppn", "1"]
    done = subprocess.run(bounded, capture_output=True, text=True, timeout=120)
    assert done.returncode == 1 and "There is not enough memory for this simulation" in done.stderr, done.stderr


def test_a_second_platform_in_the_place_of_runs_is_named(tmp_path: Path) -> None:
    (second := tmp_path / "b.yaml").write_text("schema_version: 1\n")
    with pytest.raises(InputError, match="b.yaml' is a YAML file, .* Name one platform, and then the runs"):
        require_run_directory(second)
    (other := tmp_path / "b.csv").write_text("rate\n")
    with pytest.raises(InputError, match="iocast import"):
        require_run_directory(other)
