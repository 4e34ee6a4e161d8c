# SPDX-License-Identifier: Apache-2.0
"""`iocast measure --dry-run`: its numbers are those of the runs that follow, and it touches nothing."""

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

from iocast.campaign.bench import POSIX, SharedUse
from iocast.campaign.plan import MAX_ITERATIONS, read_plan
from iocast.ground.claim import Claim
from iocast.errors import InputError
from iocast.campaign.dry_run import OWN_INODES, Extent, _stops, dry_run, dry_run_text

Iocast = Callable[..., CompletedProcess[str]]

FIXED = """schema_version: 1
workload: md-workbench
settings: {datasets: 2, iterations: 5, objects: 10}
repeats: 2
benchmark_repeats: 1
points:
  - {ranks: [1, 2], waiting_factor: 0}
  - {ranks: 4, threads_per_rank: 2, role: check}
"""
PILOT = FIXED.replace("iterations: 5, objects: 10", "most_seconds: 5s")
STEPS = (
    FIXED
    + """steps:
  - {name: precreate, settings: {phases: precreate}, role: beside}
  - {name: benchmark, settings: {phases: benchmark}}
  - {name: cleanup, settings: {phases: cleanup}, role: beside}
"""
)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "root").mkdir()
    return tmp_path / "root"


def extent(
    root: Path, text: str, *, out: Path | None = None, role: str | None = None, max_rate: str = "", **settings: str
) -> dict[str, Any]:
    (root.parent / "plan.yaml").write_text(text)
    plan = read_plan(str(root.parent / "plan.yaml"), settings=settings)
    return dry_run(
        root, plan, out or root.parent / "campaign", 0, backend=POSIX, role=role, limits=SharedUse(max_rate).limits
    )


def test_it_has_the_numbers_of_the_runs_that_follow(iocast: Iocast, root: Path, tmp_path: Path) -> None:
    (tmp_path / "plan.yaml").write_text(FIXED.replace("repeats: 2", "repeats: 1"))
    ask = ("measure", root, "--campaign", tmp_path / "plan.yaml", "--out", tmp_path / "out", "--json")
    before = root.stat()
    done = iocast(*ask, "--dry-run")
    assert done.returncode == 0, done.stderr
    forecast = json.loads(done.stdout)
    assert (
        not (tmp_path / "out").exists() and not list(root.iterdir()) and root.stat().st_mtime_ns == before.st_mtime_ns
    )
    done = iocast(*ask)
    assert done.returncode == 0, done.stderr
    rows = {(one["nodes"] * one["ranks_per_node"]): one for one in forecast["points"]}
    runs = [json.loads(path.read_text()) for path in (tmp_path / "out" / "runs").glob("*/run.json")]
    assert len(runs) == forecast["runs"] == sum(one["runs"] for one in forecast["points"]) == 3
    for run in runs:
        row = rows[run["placement"]["ranks"]]
        operations = sum(phase["operations"] for phase in run["phases"])
        assert row["operations"] == operations and row["threads_per_rank"] == run["placement"]["threads_per_rank"]
    after = json.loads(iocast(*ask, "--dry-run").stdout)
    assert after["runs"] == 0 and after["complete"] == 3 and after["points"] == []


def test_sizes_of_a_pilot_run_are_for_a_rate_and_then_those_that_it_found(
    iocast: Iocast, root: Path, tmp_path: Path
) -> None:
    before = extent(root, PILOT)
    assert before["rate"] == {"value": 1000.0, "source": "reference"}
    assert before["pilot"]["at_most"]["files"] >= 2 * 4 * MAX_ITERATIONS and before["pilot"]["own"]["files"] > 0
    text = dry_run_text(before)
    assert (
        "a pilot run decides them" in text and "1,000 operations a second alone" in text and "time limit of 5 s" in text
    )

    out = tmp_path / "campaign"
    (tmp_path / "plan.yaml").write_text(
        PILOT.replace("most_seconds: 5s", "datasets: 1, most_seconds: 5s")
        .replace("datasets: 2, ", "")
        .replace("repeats: 2", "repeats: 1")
        + "seconds: 0.05\n"
    )
    done = iocast("measure", root, "--campaign", tmp_path / "plan.yaml", "--role", "check", "--out", out)
    assert done.returncode == 0, done.stderr
    found = json.loads((out / "campaign.json").read_text())
    plan = read_plan(str(tmp_path / "plan.yaml"))
    after = dry_run(root, plan, out, 0, backend=POSIX)
    assert after["rate"] == {"value": found["pilot"]["rate"], "source": "pilot run"} and "pilot" not in after
    assert after["complete"] == 1 and after["runs"] == 2
    assert "measured by the pilot run" in dry_run_text(after)


@pytest.mark.parametrize(
    ("text", "old", "new"),
    [
        (FIXED, "benchmark_repeats: 1", "benchmark_repeats: 3"),
        (FIXED, "benchmark_repeats: 1\n", ""),
        (FIXED.replace("benchmark_repeats: 1\n", ""), "objects: 10", "objects: 10, repeats: 2"),
        (FIXED, "ranks: 4,", "ranks: 4, settings: {repeats: 2},"),
        (FIXED, "waiting_factor: 0", "waiting_factor: 1"),
        (PILOT, "workload:", "seconds: 4\nworkload:"),
        (PILOT, "workload:", "scaling: strong\nworkload:"),
        (PILOT, "benchmark_repeats: 1", "benchmark_repeats: 3"),
        # refused
        (FIXED, "objects: 10", "objects: 10, repeats: 2"),
        (FIXED, "objects: 10", "objects: 10, waiting_factor: 2"),
        (FIXED, "ranks: 4,", "ranks: 4, settings: {waiting_factor: 2},"),
        (FIXED, "workload:", "seconds: 4\nworkload:"),
        (FIXED, "workload:", "scaling: strong\nworkload:"),
        (
            FIXED.replace("md-workbench", "mdtest").replace("datasets: 2, iterations: 5, objects", "items"),
            "repeats: 2",
            "repeats: 1",
        ),
    ],
)
def test_each_key_of_a_campaign_changes_its_runs_or_is_refused(root: Path, text: str, old: str, new: str) -> None:
    assert old in text

    def answer(campaign: str) -> str:
        try:
            found = extent(root, campaign)
        except InputError as refusal:
            return str(refusal)
        return json.dumps([found["points"], found["minutes"]])

    before, after = answer(text), answer(text.replace(old, new, 1))
    assert before != after or "no effect" in after
    assert after.startswith("[") or re.search(r"plan\.yaml:\d+: .*(no effect|key of points|are one number)", after)


def test_what_the_user_sets_takes_the_place_of_the_campaigns(root: Path) -> None:
    plain, more = extent(root, FIXED), extent(root, FIXED, repeats="3")
    assert [one["operations"] for one in plain["points"]] < [one["operations"] for one in more["points"]]
    timed = FIXED.replace("iterations: 5, ", "") + "seconds: 2\nscaling: strong\n"
    assert extent(root, timed, iterations="5")["points"][0]["operations"] == plain["points"][0]["operations"]
    with pytest.raises(InputError, match="--set can't change the waiting factor: .*plan.yaml"):
        extent(root, FIXED, waiting_factor="2")


def test_a_changed_plan_changes_the_numbers(root: Path) -> None:
    plain, doubled = extent(root, FIXED), extent(root, FIXED, objects="20")
    own = [one["inodes"] - one["files"] for one in plain["points"]]
    assert all(value > OWN_INODES for value in own)
    assert [2 * one["files"] for one in plain["points"]] == [one["files"] for one in doubled["points"]]
    assert (
        doubled["peak"]["bytes"] == 2 * plain["peak"]["bytes"]
        and doubled["minutes"]["ranks_share_the_rate"] > plain["minutes"]["ranks_share_the_rate"]
    )
    thinking = extent(root, FIXED.replace("waiting_factor: 0}", "waiting_factor: 3}"))
    assert (
        thinking["total"] == plain["total"]
        and thinking["minutes"]["ranks_share_the_rate"] > plain["minutes"]["ranks_share_the_rate"]
    )
    assert extent(root, FIXED, role="check")["runs"] == 2
    assert plain["peak"] | {"files": 0, "inodes": 0, "bytes": 0} == {
        "nodes": 1,
        "ranks": 4,
        "processes": 2,
        "files": 0,
        "inodes": 0,
        "bytes": 0,
    }


def test_minutes_follow_from_operations_and_rate(root: Path) -> None:
    answer = extent(root, FIXED)
    assert answer["minutes"]["ranks_share_the_rate"] == pytest.approx(answer["total"]["operations"] / 1000 / 60)
    alone = sum(one["runs"] * one["operations"] / (one["nodes"] * one["ranks_per_node"]) for one in answer["points"])
    assert answer["minutes"]["ranks_as_fast_as_alone"] == pytest.approx(alone / 1000 / 60)


def test_no_run_is_faster_than_its_limit(root: Path) -> None:
    plain, limited = extent(root, FIXED), extent(root, FIXED, max_rate="0.1/ms")
    assert "at_most" not in plain["rate"] and limited["rate"]["at_most"] == 100
    for minutes in limited["minutes"].values():
        assert minutes == pytest.approx(limited["total"]["operations"] / 100 / 60)
    assert "--max-rate allows 100 in all" in dry_run_text(limited) and "--max-rate" not in dry_run_text(plain)
    assert extent(root, FIXED, max_rate="1000000/s")["minutes"] == plain["minutes"]


def test_steps_share_a_data_set(root: Path) -> None:
    answer = extent(root, STEPS)
    assert answer["runs"] == 18 and answer["steps"] == ["precreate", "benchmark", "cleanup"]
    assert {one["name"] for one in answer["points"]} >= {"n1-t0-precreate", "n1-t0-benchmark", "n1-t0-cleanup"}
    assert "the steps of a point share one data set" in dry_run_text(answer)


def test_every_number_of_the_text_is_in_the_answer(root: Path) -> None:
    answer = extent(root, FIXED)
    text = dry_run_text(answer)
    for key in ("files", "inodes"):
        assert f"{answer['peak'][key]:,}" in text
    assert str(root / "iocast-campaign") in text and "ranks:   at most 4 in 2 processes on 1 node" in text
    assert len(re.findall(r"^n\d", text, flags=re.MULTILINE)) == len(answer["points"]) == 3


def test_more_than_is_free_is_a_warning(root: Path) -> None:
    answer = extent(root, FIXED)
    assert "WARNING" not in dry_run_text(answer)
    answer["free"]["bytes"] = answer["peak"]["bytes"] - 1
    assert "WARNING: more bytes are needed than are free" in dry_run_text(answer)


@pytest.mark.parametrize(("min_free", "free", "stops"), [(0, 1, 0), (0, 3, 0), (1, 1, 1), (1, 2, 1), (1, 4, 0)])
def test_only_min_free_stops_for_want_of_space(tmp_path: Path, min_free: int, free: int, stops: int) -> None:
    """Of a run of 2 TB, in TB; without the limit the table warns."""
    run = Extent("a", 1, 1, 1, 1, 1, 1, 1, 2 * 10**12, 0, 2 * 10**12, 0.0, 0.0, min_free=min_free * 1e12)
    assert ["of --min-free" in one for one in _stops(tmp_path, tmp_path, [run], free * 1e12, False)] == [True] * stops


def test_what_would_stop_the_campaign_stops_this(iocast: Iocast, root: Path, tmp_path: Path) -> None:
    for arguments, says in (
        ((root / "none",), "does not exist"),
        ((root, "--set", "datasts=1"), "datasets"),
        ((root, "--campaign", "quik"), "quick"),
        ((root, "--backend", "dummy"), "works in no directory"),
    ):
        done = iocast("measure", *arguments, "--dry-run", "--out", tmp_path / "c")
        assert done.returncode == 2 and says in done.stderr, done.stderr
        assert not (tmp_path / "c").exists()
    done = iocast(
        "measure", "--backend", "dummy", "--dry-run", "--out", tmp_path / "c", "--json", "--set", "iterations=5"
    )
    assert (
        done.returncode == 0 and json.loads(done.stdout)["place"] == "dummy" and "free" not in json.loads(done.stdout)
    )


def test_refused_runs_are_in_the_table_and_named(iocast: Iocast, root: Path, tmp_path: Path) -> None:
    (tmp_path / "plan.yaml").write_text(FIXED)
    ask = ("measure", root, "--campaign", tmp_path / "plan.yaml", "--out", tmp_path / "c", "--dry-run")
    largest = extent(root, FIXED)["peak"]["files"]
    done = iocast(*ask, f"--max-objects={largest - 1}")
    assert done.returncode == 2 and "would be refused" in done.stderr and f"{largest} objects" in done.stderr
    assert len(re.findall(r"^n\d", done.stdout, flags=re.MULTILINE)) == 3 and "Leave out --dry-run" not in done.stdout
    for limit, says in (("1x", "not a whole number"), ("0", "--max-objects")):
        done = iocast(*ask, f"--max-objects={limit}")
        assert done.returncode == 2 and not done.stdout and says in done.stderr, done.stderr


def test_caches_are_named_where_the_campaign_drops_them(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain, dropping = extent(root, FIXED), extent(root, FIXED + "drop_caches: true\n")
    assert "drop_caches" not in plain and "caches:" not in dry_run_text(plain)
    assert "drop their caches" in dry_run_text(dropping | {"drop_caches": True})
    assert "stay, though the campaign drops them" in dry_run_text(dropping | {"drop_caches": False})
    assert isinstance(dropping["drop_caches"], bool)
    monkeypatch.setattr("iocast.campaign.bench.DROP_CACHES", root / "none")
    assert extent(root, FIXED + "drop_caches: true\n")["drop_caches"] is False


def test_at_most_holds_for_every_size_that_a_pilot_run_may_decide(root: Path) -> None:
    answer = extent(root, PILOT)
    text = dry_run_text(answer)
    most = max(answer["peak"]["files"], *(answer["pilot"][key]["files"] for key in ("own", "at_most")))
    assert [int(n.replace(",", "")) for n in re.findall(r"files: +at most ([\d,]+)", text)] == [most]
    answer["free"]["bytes"] = answer["pilot"]["at_most"]["bytes"] - 1
    assert "if the pilot run decides so" in dry_run_text(answer)


def test_a_limit_that_the_sizes_of_a_pilot_run_may_exceed_is_a_warning(
    iocast: Iocast, root: Path, tmp_path: Path
) -> None:
    (tmp_path / "plan.yaml").write_text(PILOT)
    most = extent(root, PILOT)["pilot"]["at_most"]["files"]
    for limit in (most, most - 1):
        done = iocast(
            "measure", root, "--campaign", tmp_path / "plan.yaml", "--out", tmp_path / "c", "--dry-run",
            f"--max-objects={limit}",
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert (f"--max-objects allows {limit:,} objects" in done.stdout) == (limit < most)


@pytest.mark.parametrize(
    ("state", "option", "stopped"),
    [
        ("", ("--min-free", "900TiB"), "free, less than the 990 TB"),
        ("", ("--min-free", "1KiB"), ""),
        ("filling", ("--min-free", "1GiB"), "leaves less than the 1.07 GB"),
        ("link", (), "is no directory of iocast's but a symbolic link"),
        ("owner", (), "is in use by process"),
        ("dead owner", (), ""),
        ("owner of the results", (), "is in use by process"),
        ("owner elsewhere", (), "last sign of life was"),
        ("owner elsewhere", ("--take-over",), "last sign of life was"),
        ("silent owner elsewhere", (), "then give --take-over"),
        ("silent owner elsewhere", ("--take-over",), ""),
        ("damaged owner", ("--take-over",), "last sign of life was"),
    ],
)
def test_it_names_what_would_stop_the_campaign_now(
    iocast: Iocast, root: Path, tmp_path: Path, state: str, option: tuple[str, ...], stopped: str
) -> None:
    """As the campaign itself is stopped then, before or in its first run."""
    free = os.statvfs(root).f_bavail * os.statvfs(root).f_frsize
    size = f"settings: {{datasets: 1, iterations: 1, objects: 1, object_size: {int(free - 2**29)}B}}"
    text = re.sub("settings: .*", size, FIXED) if state == "filling" else FIXED
    (tmp_path / "plan.yaml").write_text(text)
    scratch = root / "iocast-campaign"
    if state == "link":
        scratch.symlink_to(tmp_path)
    elif state:
        scratch.mkdir()
    claimed = tmp_path / "out" if state == "owner of the results" else scratch
    if claimed != scratch:
        claimed.mkdir()
    held = Claim(claimed, "theirs", "a campaign") if "owner" in state else None
    if held is not None:
        others = {"host": "elsewhere", "machine": "m", "boot": "b", "name_space": "n"}
        changed = {"dead": {"process_started": "1"}, "elsewhere": others}
        content = held.content | next((more for word, more in changed.items() if word in state), {})
        owner_file = claimed / "iocast.owner.json"
        owner_file.unlink()  # else the holder's thread would touch it
        owner_file.write_text("{}" if state == "damaged owner" else json.dumps(content))
        if "silent" in state:
            os.utime(owner_file, (1, 1))
    before = sorted(root.rglob("*"))
    ask = ("measure", root, "--campaign", tmp_path / "plan.yaml", "--out", tmp_path / "out", *option)
    done = iocast(*ask, "--dry-run")
    assert done.returncode == (2 if stopped else 0), done.stderr
    assert stopped in done.stderr and "place:" in done.stdout
    assert ("Leave out --dry-run to measure" in done.stdout) == (not stopped)
    assert sorted(root.rglob("*")) == before and not (tmp_path / "out" / "campaign.json").exists()
    if stopped and state != "filling":
        really = iocast(*ask)
        assert really.returncode == 2 and not list((tmp_path / "out").glob("runs/*/run.json")), really.stderr
    if held is not None:
        held.release()


def test_free_space_is_no_limit_of_a_service(iocast: Iocast, tmp_path: Path) -> None:
    (tmp_path / "plan.yaml").write_text(FIXED)
    ask = ("measure", "--backend", "dummy", "--campaign", tmp_path / "plan.yaml", "--out", tmp_path / "out")
    for more in ((), ("--dry-run",)):
        done = iocast(*ask, "--min-free", "1GiB", *more)
        assert done.returncode == 2 and "the backend 'dummy' works in none" in done.stderr, done.stderr
