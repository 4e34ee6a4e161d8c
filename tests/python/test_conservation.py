# SPDX-License-Identifier: Apache-2.0
"""Platforms and topologies at random: no station is busier than it can be, no time is negative, and the simulator's own
checks at the end of a run (Little's law at each station, bytes in and out, nothing held) let it pass. More of them:
python tests/python/test_conservation.py 0 1000."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

PLATFORMS = 60
SERVERS = ("mds", "oss", "dev")  # stations of the system
Steps = list[dict[str, Any]]
LINKS = {"uplinks": 2, "bandwidth": "300MB/s"}
TOPOLOGIES: list[dict[str, Any]] = [
    {},
    {"topology": "fat-tree", "leaf": {"nodes": 2} | LINKS, "routing": "hashed"},
    {"topology": "fat-tree", "leaf": {"nodes": 2} | LINKS, "pod": {"leaves": 2} | LINKS},
    {"topology": "islands", "leaf": {"nodes": 2} | LINKS, "island": {"leaves": 2} | LINKS},
    {
        "topology": "dragonfly",
        "groups": {"routers": 2, "nodes": 1, "local": "300MB/s"},
        "global": {"links": 1, "bandwidth": "200MB/s"},
        "minimal": 0.5,
    },
    {"topology": "torus", "torus": {"dimensions": [4, 4], "bandwidth": "300MB/s"}},
]
SPEEDS = {"read": "400MB/s", "write": "200MB/s"}
DISKS: list[dict[str, Any]] = [
    {},
    {"disk": SPEEDS},
    {"disk": SPEEDS | {"together": "500MB/s"}},
    {"disk": SPEEDS | {"discipline": "fifo", "overhead": "50us"}},
]


def a_law(r: random.Random) -> Any:
    mixture = {
        "law": "mixture",
        "parts": [
            {"weight": 3, "law": "constant", "value": "100us"},
            {"weight": 1, "law": "exponential", "mean": "5ms"},
        ],
    }
    return r.choice(
        [
            "1ms",
            {"law": "exponential", "mean": "1ms"},
            {"law": "lognormal", "mean": "500us", "sigma": 1.2},
            "0us",
            mixture,
        ]
    )


def a_station(r: random.Random, name: str) -> dict[str, Any]:
    per_node = name == "cpu"
    station: dict[str, Any] = {
        "servers": r.choice([1, 2, 16]),
        "discipline": r.choice(["fcfs", "ps"] + ["timeslice"] * (name != "oss")),
    }
    station |= {"per": "node"} if per_node else {"count": r.choice([1, 2, 4])}
    if name == "oss":
        station |= {
            "spread": "stripe",
            "stripe_size": r.choice(["4KiB", "16KiB", "1MiB"]),
            "stripe_count": r.randint(1, station["count"]),
        }
    elif not per_node:
        station["spread"] = r.choice(["dataset", "object", "round-robin"])
    if station["discipline"] == "timeslice":
        station |= {"quantum": r.choice(["100us", "3ms"]), "wakeup": r.choice(["preempts", "queues"])}
    if station["discipline"] == "fcfs" and not per_node and r.random() < 0.4:
        station["priority"] = r.choice([[["stat", "open"], "rest", ["drain", "background"]], ["background", "rest"]])
    if r.random() < 0.3:
        station["contention"] = 0.05
    if station["discipline"] != "ps" and r.random() < 0.3:
        station["crowding"] = 0.2
    return station


class Routes:
    def __init__(self, r: random.Random, later: random.Random, stations: dict[str, Any]) -> None:
        self.r, self.later, self.stations = r, later, stations

    def visit(self, name: str, op: str = "", locks: bool = True) -> dict[str, Any]:
        r, station = self.r, self.stations[name]
        step = {"station": name, "demand": a_law(r)}
        if locks and station["discipline"] == "fcfs" and r.random() < 0.4:
            step |= {
                "lock": r.choice(["dir", "obj", "sys"] + ["rng"] * (op in ("pread", "pwrite"))),
                "lock_share": r.choice([1, 0.5, 0.1]),
            }
            step |= {"lock_mode": "shared"} if r.random() < 0.5 else {}
        elif name == "oss" and op in ("pread", "pwrite", "create", "read") and r.random() < 0.5:
            step |= {"stripes": "spanned", "bandwidth": "200MB/s"}
        elif name != "cpu" and station["count"] > 1 and station["discipline"] != "timeslice" and r.random() < 0.3:
            step["stripes"] = station["count"]
        return step

    def steps(self, op: str) -> Steps:
        r = self.r
        found: Steps = []
        for _ in range(r.randint(1, 3)):
            kind = r.random()
            if kind < 0.5:
                found.append(self.visit(r.choice(list(self.stations)), op))
            elif kind < 0.65:
                found.append(
                    {
                        "limit": r.choice(["rpc", "thr"]),
                        "steps": [self.visit(r.choice(["mds", "oss"]), op), {"delay": "30us"}],
                    }
                )
            elif kind < 0.75 and op in ("create", "pwrite", "append", "read", "pread"):
                found.append(
                    {"transfer": "read" if op in ("read", "pread") else "write", "station": "oss"}
                    | r.choice([{}, {"stripes": "spanned"}])
                )
            elif kind < 0.85 and op in ("create", "read", "append", "pwrite", "pread"):
                found.append(
                    {"cache": "pages", "miss": [self.visit("mds", op, False)], "hit": [{"delay": "5us"}]}
                    | self.later.choice([{}, {"evict": [{"delay": "40us"}]}])
                )
            elif op in ("create", "append", "pwrite"):
                found.append({"buffer": "dirty"})
            elif op in ("fsync", "close"):
                found.append({"flush": "dirty", "of": r.choice(["all", "object", "everywhere"])})
            elif op == "open":
                found.append({"take": "pre"})
        return found or [{"delay": "1us"}]


def a_platform(seed: int) -> dict[str, Any]:
    r, later = random.Random(seed), random.Random(-1 - seed)
    stations = {name: a_station(r, name) for name in ("cpu", *SERVERS)}
    routes = Routes(r, later, stations)
    kept = {"hand_over": "300us"} if r.random() < 0.5 else {}
    platform: dict[str, Any] = {
        "schema_version": 1,
        "serves": {"node_local": "all"},
        "stations": stations,
        "limits": {
            "rpc": {"slots": r.choice([1, 2, 8])} | later.choice([{}, {"of": "mds"}, {"barging": 0.7}]),
            "thr": {"slots": r.choice([1, 4, 32]), "per": "system"} | later.choice([{}, {"of": "oss", "barging": 0.3}]),
        },
        "locks": {
            "dir": {"per": "dataset"} | kept | (later.choice([{}, {"hot": "2ms", "message": "50us"}]) if kept else {}),
            "obj": {"per": "object"},
            "sys": {"per": "system"},
            "rng": {"per": "object", "hand_over": "200us", "extent": "4KiB"}
            | r.choice([{}, {"grow": "64KiB"}, {"station": "oss"}]),
        },
        "network": {
            "latency": "20us",
            "node_bandwidth": "1GB/s",
            "server_bandwidth": "500MB/s",
            "never_limited": r.choice(["16KiB", "1MiB", "1GiB"]),
        },
        "caches": {
            "pages": {"per": "node", "capacity": r.choice(["64KiB", "1MiB"]), "page": "4KiB"}
            | r.choice(
                [
                    {},
                    {
                        "ahead": "32KiB",
                        "unit": "8KiB",
                        "at_once": 2,
                        "fetch": [routes.visit("mds", locks=False), {"delay": "100us"}],
                    },
                ]
            )
        },
        "buffers": {
            "dirty": {
                "per": r.choice(["node", "system"]),
                "capacity": r.choice(["64KiB", "1MiB"]),
                "unit": "16KiB",
                "linger": r.choice(["0us", "2ms"]),
                "at_once": r.choice([1, 4]),
                "drain": [routes.visit("dev", locks=False), {"delay": "50us"}],
            }
        },
        "pools": {
            "pre": {
                "per": r.choice(["node", "system"]),
                "size": 8,
                "batch": 4,
                "refill": [{"station": "dev", "demand": "1ms"}],
            }
        },
    }
    if r.random() < 0.5:
        platform["stalls"] = {
            "c": {
                "station": r.choice(SERVERS),
                "every": "50ms",
                "length": "5ms",
                "sigma": 0.5,
                "operations": ["create", "unlink", "pwrite"],
            }
            | later.choice([{}, {"per_change": "20us", "absorbed": 100}])
        }
    ways = random.Random(-1_000_000 - seed)  # of bytes, so that all else stays what it was
    platform["network"] |= ways.choice(TOPOLOGIES)
    stations["oss"] |= ways.choice(DISKS)
    requests = {"size": ways.choice(["4KiB", "16KiB"]), "in_flight": ways.choice([1, 2, 8])}
    stations["oss"] |= ways.choice([{}, {"rpc": requests}])
    failing = [name for name in SERVERS if stations[name]["discipline"] != "timeslice"]
    if failing and r.random() < 0.5:
        name = r.choice(failing)
        failure = {
            "station": name,
            "at": f"{r.choice([5, 20, 100])}ms",
            "length": f"{r.choice([2, 20])}ms",
            "timeout": f"{r.choice([0, 1, 30])}ms",
        }
        failure |= {"instance": 0} | (
            {"to": 1, "takeover": "1ms"} if stations[name]["count"] > 1 and r.random() < 0.6 else {}
        )
        platform["failures"] = {"f": failure | r.choice([{}, {"every": "1s", "sigma": 0.4}])}
    if r.random() < 0.4:
        platform["background"] = {
            "o": {
                "station": r.choice(SERVERS),
                "share": 0.2,
                "demand": {
                    "law": "exponential",
                    "mean": "2ms" if "failures" in platform else r.choice(["2ms", "50ms"]),
                },
            }
        }
    operations: dict[str, Any] = {
        op: routes.steps(op) for op in ("mkdir", "rmdir", "stat", "unlink", "open", "pwrite", "pread", "fsync", "close")
    }
    operations |= {
        "create": {"open": routes.steps("stat"), "write": routes.steps("create"), "close": []},
        "append": {"open": [], "write": routes.steps("append"), "close": []},
    }
    operations |= {"read": {"open": [], "read": routes.steps("read"), "close": []}}
    if "rpc" in stations["oss"]:  # transfers whose requests take a thread are trains
        for part in [operations["pwrite"], operations["pread"], *operations["create"].values()]:
            for step in part:
                step |= {"demand": "150us"} if "transfer" in step else {}
    # All parts are in use, by an operation that the workload has none of.
    everything = [{"station": name, "demand": "1us"} for name in stations] + [
        {"limit": name, "steps": [{"delay": "1us"}]} for name in ("rpc", "thr")
    ]
    fcfs = next((name for name, station in stations.items() if station["discipline"] == "fcfs"), None)
    if fcfs is None:
        stations["mds"]["discipline"] = fcfs = "fcfs"
        for key in ("quantum", "wakeup"):
            stations["mds"].pop(key, None)
        fcfs = "mds"
    everything += [{"station": fcfs, "demand": "1us", "lock": lock} for lock in platform["locks"]] + [
        {"flush": "dirty"},
        {"take": "pre"},
    ]
    operations["readdir"] = [*everything, {"forget": "pages"}]
    return platform | {"operations": operations}


def run(simulator: Path, file: Path, seed: int) -> dict[str, Any]:
    r = random.Random(seed * 7 + 1)
    file.write_text(yaml.safe_dump(a_platform(seed), sort_keys=False))
    command = [
        str(simulator),
        "--platform",
        str(file),
        "--nodes",
        str(r.choice([1, 3, 5])),
        "--ppn",
        str(r.choice([1, 4])),
        "--workload",
        "probe",
        "--seed",
        str(seed),
    ]
    settings = {
        "objects": 8,
        "accesses": 12,
        "access_size": r.choice(["4KiB", "10000B", "64KiB"]),
        "sharing": r.choice([0, 1, 2]),
        "waiting_factor": r.choice([0, 0, 1]),
    }
    command += [
        "--json",
        "--brief",
        *(part for name, value in settings.items() for part in ("--set", f"{name}={value}")),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, (seed, done.stderr)
    return json.loads(done.stdout)


def check(document: dict[str, Any], seed: int) -> None:
    for phase in document["phases"]:
        for name, station in phase["stations"].items():
            place = (seed, phase["name"], name)
            assert 0 <= station["utilisation"] <= 1 + 1e-9, place
            assert station["requests"] >= 0, place
            for operation, times in station["operations"].items():
                assert min(times[key] for key in ("wait", "service", "lock_wait", "stall")) >= -1e-9, (
                    *place,
                    operation,
                    times,
                )


@pytest.mark.parametrize("first", range(0, PLATFORMS, 20))
def test_time_and_bytes_add_up_on_platforms_at_random(simulator, tmp_path, first):
    for seed in range(first, first + 20):
        check(run(simulator, tmp_path / "platform.yaml", seed), seed)


CROWDED = """\
schema_version: 1
stations: {dev: {servers: %s}}
background: {o: {station: dev, share: 0.5, demand: {law: exponential, mean: %s}}}
operations:
  mkdir: []
  rmdir: []
  unlink: []
  create: {}
  stat: [{station: dev, demand: 1ms}]
  read: {open: [{station: dev, demand: 1ms}]}
"""


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize(
    "station", [("1, crowding: 0.2", "5ms"), ("1, discipline: timeslice, quantum: 3ms, wakeup: preempts", "50ms")]
)
def test_visits_of_others_that_outlast_a_phase_have_no_negative_times(simulate, tmp_path, seed, station):
    file = tmp_path / "crowded.yaml"
    file.write_text(CROWDED % station)
    settings = "--workload md-workbench --set datasets=1 --set objects=4 --set iterations=2 --set repeats=8".split()
    check(simulate(file, *settings, "--nodes", "4", "--seed", str(seed)), seed)


def test_utilisation_and_queue_length_are_those_of_the_closed_form(simulate, tmp_path):
    """Machine repair: N clients that think for Z at a server of mean S; by the response time law X = N / (R + Z),
    utilisation X S, and X R requests are there."""
    file = tmp_path / "repair.yaml"
    file.write_text(
        "schema_version: 1\nserves: {node_local: [read]}\nstations: {s: {servers: 1}}\noperations:\n  stat: [{delay:"
        " 2ms}, {station: s, demand: {law: exponential, mean: 1ms}}]\n  read: {read: [{delay: 1ms}]}\n"
    )
    arguments = (
        "--workload md-workbench --set read_only=true --set phases=benchmark --set datasets=1 --set "
        "objects=2000 --set iterations=2000"
    ).split()
    phase = simulate(file, *arguments, "--nodes", "4")["phases"][-1]
    there, visits, seconds = phase["stations"]["s"], phase["stations"]["s"]["visits"], phase["seconds"]
    times = there["operations"]["stat"]
    assert there["utilisation"] == pytest.approx(visits * times["service"] / seconds, rel=1e-6)
    assert there["requests"] == pytest.approx(visits * (times["service"] + times["wait"]) / seconds, rel=1e-6)


def test_stalled_requests_keep_no_server_of_those_that_share(simulate, tmp_path):
    file = tmp_path / "stalls.yaml"
    file.write_text(
        "schema_version: 1\nstations: {s: {discipline: ps}}\nstalls: {c: {station: s, every: 50ms, length: 20ms,"
        " operations: [stat]}}\noperations:\n  stat: [{station: s, demand: 1ms}]\n  read: {read: [{station: s, demand:"
        " 1ms}]}\n"
    )
    arguments = (
        "--workload md-workbench --set read_only=true --set phases=benchmark --set datasets=1 --set "
        "objects=200 --set iterations=200"
    ).split()
    there = simulate(file, *arguments, "--nodes", "16")["phases"][-1]["stations"]["s"]
    assert 0.5 < there["utilisation"] < 1


def main() -> None:
    from programs import find_program

    first, last = map(int, sys.argv[1:3])
    for seed in range(first, last):
        try:
            check(run(find_program("iocast-sim"), Path(f"/tmp/conservation-{first}.yaml"), seed), seed)
        except AssertionError as error:
            print(seed, str(error)[:300])


def test_no_server_is_in_use_for_more_than_the_time(simulate: Callable[..., Any], tmp_path: Path) -> None:
    """Of crowded cores, on which ranks go to sleep after a phase's last answer: utilisation and 1 by eight seeds."""
    platform = tmp_path / "cores.yaml"
    platform.write_text(
        "schema_version: 1\nextends: local\ndemands: {wake: 12us}\nclients: {wake_slowdown: 1.3}\n"
        "stations: {cpu: {servers: 2, quantum: 5ms, contention: 0.05, wakeup: queues}}\n"
    )
    work = ("--workload", "md-workbench", "--nodes", "1", "--ppn", "32", "--set", "datasets=4", "--set", "objects=40")
    work += ("--set", "iterations=40", "--set", "waiting_factor=1", "--set", "phases=benchmark")
    for seed in range(8):
        run = simulate(platform, *work, "--seed", str(seed), "--out", tmp_path / str(seed))
        used = [one["utilisation"] for phase in run["phases"] for one in phase["stations"].values()]
        assert 0.9 < max(used) <= 1, seed


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    main()
