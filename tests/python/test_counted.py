# SPDX-License-Identifier: Apache-2.0
"""A server's own counters beside a run: what an operation takes there, and the threads that follow from its waits."""

import json
import math
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from test_known import FAMILY, few_runs
from test_observe import synthetic

from iocast.calibrate import own_work
from iocast.calibrate.known import Known, holding
from iocast.calibrate.reading import counted_threads
from iocast.calibrate.recipe import Option, family_document, read_recipe
from iocast.calibrate.search import Fit
from iocast.calibrate.structure_search import Search
from iocast.calibrate.trace import Trace
from iocast.errors import InputError
from iocast.ground.files import SCHEMA_VERSION
from iocast.runs.run_directory import group
from iocast.watching.counted import Served, closed_wait, numbers_up_to, threads_of
from iocast.watching.utilisation import bounds, join, served
from iocast.wording.checked import utilisation_text
from iocast.wording.notes import sentence


@pytest.mark.parametrize(("customers", "servers"), [(4, 1), (4, 2), (6, 3), (3, 5)])
def test_waits_are_those_of_the_closed_queue(customers: int, servers: int) -> None:
    """Against the probabilities of its states: n at the server with rate min(n, c)/S, the others in a delay."""
    service, delay = 0.004, 0.003
    states = [1.0]
    for n in range(1, customers + 1):
        states.append(states[-1] * (customers - n + 1) / delay * service / min(n, servers))
    whole = sum(states)
    inside = sum(n * state for n, state in enumerate(states)) / whole
    rate = sum(min(n, servers) / service * state for n, state in enumerate(states)) / whole
    assert closed_wait(customers, service, delay, servers) == pytest.approx(inside / rate - service, abs=1e-12)


def at(ranks: int, threads: int, share: float, apart: bool) -> Served:
    """Counters of a server with these threads; `share` of the exponential wait."""
    wait = share * closed_wait(ranks, 0.004, 0.0005, threads)
    return Served(ranks, ranks / (0.0045 + wait), 0.004 + wait, wait if apart else None)


@pytest.mark.parametrize("apart", [False, True])
@pytest.mark.parametrize("share", [0.6, 1.0])
@pytest.mark.parametrize("threads", [1, 2])
def test_threads_follow_from_waits_of_four_ranks(threads: int, share: float, apart: bool) -> None:
    found = threads_of([at(ranks, threads, share, apart) for ranks in (1, 2, 4)])
    assert found is not None and found.likely == threads and found.service == pytest.approx(0.004)
    assert found.surprise(threads) == 0 < found.surprise(threads + 1) <= -2 * math.log(1e-3) + 1e-9


def test_threads_that_nobody_waited_for_are_at_least_as_many_as_ranks() -> None:
    """Eight threads and four ranks: three threads would show, and of more nothing is known."""
    found = threads_of([at(ranks, 8, 1.0, False) for ranks in (1, 2, 4)])
    assert found is not None and found.likely is None and found.at_least >= 3
    assert found.surprise(8) == found.surprise(10**6) == 0 < found.surprise(2)
    assert threads_of([at(4, 2, 1.0, False)]) is None, "without a lone rank the service is not known"
    assert threads_of([at(1, 2, 1.0, False)]) is None


@pytest.mark.parametrize("most", [16, 64, 1024])
def test_many_ranks_that_never_wait_leave_open_how_many_threads_there_are(most: int) -> None:
    delay = most * 0.001 / 4 - 0.001  # a quarter of the ranks is at the server, in the mean of at most 4 threads
    found = threads_of([Served(n, n / (delay + 0.001), 0.001) for n in (1, 2, most)])
    assert found is not None and found.likely is None and 4 <= found.at_least < most
    assert "at least" in sentence(found.note("server"))
    assert found.surprise(1) > found.surprise(most - 1) and found.surprise(1000 * most) == found.surprise(most)


def test_all_numbers_of_threads_are_near_one_that_is_tried() -> None:
    for most in (1, 2, 15, 16, 17, 18, 100, 4096):
        tried = numbers_up_to(most)
        assert tried == sorted(set(tried)) and tried[0] == 1 and tried[-1] == most
        assert all(later - one <= max(1, one / 8) for one, later in pairwise(tried)), most


BEGAN = 1_700_000_000.0


def pool(file: Path, seconds: float, rate: float, each: float, wait: float) -> Path:
    """SHOW STATS twice a second, of `rate` statements a second."""
    lines = []
    for n in range(round(2 * seconds) + 1):
        count = round(rate * n / 2)
        lines += [
            f"snapshot_time: {BEGAN + n / 2:.6f}",
            "database,total_query_count,total_query_time,total_wait_time",
            f"work,{count},{round(1e6 * count * each)},{round(1e6 * count * wait)}",
        ]
    file.write_text("\n".join([*lines, ""]))
    return file


def test_counters_are_joined_to_each_phase_of_a_run(tmp_path: Path) -> None:
    """By the utilisation law: 100 statements a second beside 50 operations, 6 ms each, of which 2 ms are a wait."""
    phases = [("precreate", 1.0, 4.0, 400), ("benchmark", 6.0, 10.0, 500)]
    run = synthetic(tmp_path / "run", start=BEGAN, phases=phases, hosts=["a"])
    content = join(run, [pool(tmp_path / "pool.csv", 20, 100, 0.006, 0.002)])
    [before, found] = [one["resources"] for one in content["phases"]]
    query = found["postgresql pool work query"]
    assert query["demand"] == pytest.approx(2 * 0.006) and query["requests"] == pytest.approx(2)
    assert query["busy"] == pytest.approx(100 * 10 * 0.006) and query["utilisation"] is None
    assert before["postgresql pool work query"]["demand"] == pytest.approx(0.006)
    assert found["postgresql pool work query.wait"]["kind"] == "waiting"
    assert served(run) == pytest.approx((0.012, 0.004, False)) and bounds(run) == {}
    assert "postgresql pool work query" in utilisation_text(content)


def test_a_server_is_counted_where_it_was_observed_whole_and_by_itself(tmp_path: Path) -> None:
    """Of two repeats one was observed. The same statements of the database behind the pool are no further ones."""

    def use(busy: float | None, kind: str = "requests") -> dict[str, Any]:
        return {"servers": None, "unit": "seconds", "utilisation": None, "demand": None, "kind": kind, "busy": busy}

    def phase(repeat: int, whole: bool) -> dict[str, Any]:
        seen = {"pool query": 0.4, "pool query.wait": 0.1, "pg_stat_statements select": 0.3}
        resources = {
            f"postgresql {name}": use(busy if whole else None, "waiting" if "wait" in name else "requests")
            for name, busy in seen.items()
        }
        return {"name": "benchmark", "repeat": repeat, "seconds": 1.0, "operations": 100, "resources": resources}

    def of(*phases: dict[str, Any]) -> tuple[float, float | None] | None:
        (tmp_path / "utilisation.json").write_text(
            json.dumps(
                {
                    "schema_version": SCHEMA_VERSION,
                    "kind": "utilisation",
                    "phases": phases,
                    "observations": [],
                    "timeline": {},
                    "notes": [],
                }
            )
        )
        return served(tmp_path)

    assert of(phase(0, True)) == of(phase(0, True), phase(1, False)) == pytest.approx((0.004, 0.001, False))
    assert of(phase(1, False)) is None


def test_counters_in_another_order_are_the_same_and_those_that_fell_are_refused(tmp_path: Path) -> None:
    phases = [("benchmark", 6.0, 10.0, 500)]
    run = synthetic(tmp_path / "run", start=BEGAN, phases=phases, hosts=["a"])
    file = pool(tmp_path / "pool.csv", 20, 100, 0.006, 0.002)
    lines = file.read_text().splitlines(keepends=True)
    as_written = join(run, [file])["phases"][0]["resources"]
    file.write_text("".join(lines[60:] + lines[:60]))
    assert join(run, [file])["phases"][0]["resources"] == as_written
    file.write_text("".join([*lines[:60], lines[60], lines[61], lines[2], *lines[63:]]))
    with pytest.raises(InputError, match=r"pool.csv:63: query of pool work counts less than in line 60"):
        join(run, [file])


def test_snapshots_without_times_or_of_another_time_are_not_joined(tmp_path: Path) -> None:
    run = synthetic(tmp_path / "run", start=BEGAN, phases=[("benchmark", 6.0, 10.0, 500)], hosts=["a"])
    file = pool(tmp_path / "pool.csv", 20, 100, 0.006, 0.002)
    text = file.read_text()
    file.write_text(text.replace("snapshot_time", "time"))
    with pytest.raises(InputError, match=r"pool.csv:\d+: this snapshot has no time, .*snapshot_time"):
        join(run, [file])
    file.write_text("".join(text.splitlines(keepends=True)[:3]))
    with pytest.raises(InputError, match=r"pool.csv:3: there are fewer than two snapshots"):
        join(run, [file])
    late = synthetic(tmp_path / "late", start=BEGAN + 900, phases=[("benchmark", 0.0, 5.0, 9)], hosts=["a"])
    with pytest.raises(InputError, match="don't overlap"):
        join(late, [pool(file, 20, 100, 0.006, 0.002)])


@pytest.mark.parametrize("work", ["postgresql a query", "lustre mdt.fs-MDT0000 stat"])
def test_a_calibration_takes_threads_from_counters_unless_the_owner_knows(work: str, tmp_path: Path) -> None:
    """Runs of many threads, whose latencies show no wait, with counters that show two."""
    family = tmp_path / "family.yaml"
    family.write_text(FAMILY)
    runs = few_runs(family, tmp_path)
    for n, run in zip((1, 2, 4), runs, strict=True):
        operations = sum(phase.operations or 0 for phase in run.phases)
        wait = closed_wait(n, 0.0015, 0.0001, 2)
        seconds = sum(phase.seconds or 0.0 for phase in run.phases)
        use = {"servers": None, "unit": "seconds", "utilisation": None, "demand": None}
        waiting = {**use, "kind": "waiting", "busy": operations * wait}
        if "lustre" in work:  # the waits are counted by the service, beside the work
            work_use = {**use, "kind": "handling", "busy": operations * 0.0015}
            resources = {work: work_use, "lustre mds.MDS.mdt request.wait": waiting}
        else:
            resources = {
                work: {**use, "kind": "requests", "busy": operations * (0.0015 + wait)},
                f"{work}.wait": waiting,
            }
        phase = {"name": "benchmark", "repeat": 0, "seconds": seconds, "operations": operations, "resources": resources}
        document = {
            "schema_version": 1, "kind": "utilisation", "observations": [], "notes": [], "phases": [phase],
            "clock": {"start": BEGAN, "uncertainty_seconds": 0.0, "how": "stated"}, "timeline": {},
        }  # fmt: skip
        (run.path / "utilisation.json").write_text(json.dumps(document))
    points = group(runs)
    seen = counted_threads(points)
    assert seen is not None and seen.likely == 2 and seen.service == pytest.approx(0.0015)
    search = Search(read_recipe(str(family)), points, 0, lambda *_: None, Trace(None))
    assert search.counted == "server" and any(
        "own counters show 2 threads of 'server'" in sentence(note) for note in search.notes
    )
    fits = {
        name: Fit({"threads": name}, [option], [], {}, 0.0, np.zeros((0, 0)), 0)
        for name, option in named(search).items()
    }
    assert search.score(fits["2"]) < min(search.score(fits["1"]), search.score(fits["unlimited"]))
    known = holding(read_recipe(str(family)), [Known.of("server.threads=8")])
    assert Search(known, points, 0, lambda *_: None, Trace(None)).counted == ""


def named(search: Search) -> dict[str, Option]:
    return {option.name: option for option in search.choices["threads"]}


def test_parts_are_elsewhere_only_where_most_of_the_service_waits(tmp_path: Path) -> None:
    """Two ranks at sixteen threads: a part of a tenth of the time that doubled by chance is no crowd, so that a part
    which came out shorter stays at the server."""
    family = tmp_path / "family.yaml"
    family.write_text(FAMILY)
    recipe, whole = read_recipe(str(family)), family_document(str(family))
    single, double = (Means(ranks, means) for ranks, means in ((1, {"make": 2e-3, "look": 2e-4}), (2, MEANS)))
    assert own_work.routes([single, double], single, recipe, whole) == {}  # type: ignore[list-item,arg-type]
    crowd = Means(2, {"make": 1.9e-2, "look": 2e-4})
    found = own_work.routes([single, crowd], single, recipe, whole)  # type: ignore[list-item,arg-type]
    assert list(found) == ["operations.stat"]


def test_who_doesn_t_wait_behind_a_limit_says_that_the_server_is_free(tmp_path: Path) -> None:
    """Operations that wait elsewhere, such as reads for a disk behind a cache, are no crowd at a server where creates,
    behind a limit that has room, don't wait. Creates that wait may wait for the limit, and tell nothing."""
    family = yaml.safe_load(FAMILY)
    family["limits"] = {"requests": {"slots": 8}}
    family["operations"]["create"]["open"] = [{"limit": "requests", "steps": family["operations"]["create"]["open"]}]
    family["operations"]["unlink"] = [{"station": "server", "demand": "drop"}]
    family["demands"]["drop"] = "1ms"
    family["calibration"]["laws"]["drop"] = "unlink"
    (tmp_path / "family.yaml").write_text(yaml.safe_dump(family))
    named = str(tmp_path / "family.yaml")
    recipe, whole = read_recipe(named), family_document(named)
    single = Means(1, {"make": 2e-3, "look": 2e-4, "drop": 1e-3})
    for create, elsewhere in ((2e-3, []), (2e-2, ["operations.stat"])):
        most = Means(8, {"make": create, "look": 2e-4, "drop": 5e-3})
        found = own_work.routes([single, most], single, recipe, whole)  # type: ignore[list-item,arg-type]
        assert list(found) == elsewhere


MEANS = {"make": 1.9e-3, "look": 5e-4}


class Means:
    """A point of which means alone are known."""

    waiting_factor = 0.0

    def __init__(self, ranks: int, means: dict[str, float]) -> None:
        self.ranks = ranks
        tags = {"make": "create.open", "look": "stat", "drop": "unlink"}
        self.means = {f"{tags[demand]}.mean": mean for demand, mean in means.items()}

    def has(self, name: str) -> bool:
        return name in self.means

    def value(self, name: str) -> float:
        return self.means[name]
