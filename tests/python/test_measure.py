# SPDX-License-Identifier: Apache-2.0
"""Campaigns on real storage: plan, measure, resume, report."""

import json
import re
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from iocast.ground import binaries
from iocast.campaign import directory
from iocast.campaign.bench import Backend, SharedUse, run_bench
from iocast.campaign.directory import Campaign
from iocast.campaign.hosts import Hosts
from iocast.campaign.launchers import Ended, launcher
from iocast.campaign.plan import pilot_run, planned_runs, read_plan, settings_arguments
from iocast.calibrate.reading import check_runs
from iocast.errors import InputError, NothingThere
from iocast.runs.question import Question
from iocast.runs.run_directory import Run, find_runs, group
from programs import REPOSITORY
from schedule import mostly_long

Iocast = Callable[..., CompletedProcess[str]]

CAMPAIGN = """schema_version: 1
description: tiny
workload: md-workbench
settings: {datasets: 1, iterations: 20, objects: 20}
repeats: 2
benchmark_repeats: 2
points:
  - {ranks: [1, 2], waiting_factor: [0, 1]}
  - {ranks: 3, role: check}
"""


def test_a_campaign_is_measured_and_resumed(iocast: Iocast, tmp_path: Path) -> None:
    (tmp_path / "tiny.yaml").write_text(CAMPAIGN)
    root, out = tmp_path / "root", tmp_path / "campaign"
    root.mkdir()
    (root / "mine").write_text("stays")
    ask = ("measure", root, "--campaign", tmp_path / "tiny.yaml", "--out", out, "--json")

    done = iocast(*ask, "--role", "fit")
    assert done.returncode == 0, done.stderr
    campaign = json.loads(done.stdout)
    assert [p["status"] for p in campaign["points"] if p["role"] == "fit"] == ["complete"] * 8
    assert [p["status"] for p in campaign["points"] if p["role"] == "check"] == ["planned"] * 2
    assert [path.name for path in root.iterdir()] == ["mine"]
    (machine,) = campaign["machine"]
    assert "The machine is" in done.stderr and machine["busy"] is bool(machine["effects"])

    # As after a kill in the middle of a run: its directory is half written, its data set is still there.
    victim = campaign["points"][0]["name"]
    content = json.loads((out / "campaign.json").read_text())
    content["points"][0]["status"] = "planned"
    (out / "campaign.json").write_text(json.dumps(content))
    (out / "runs" / victim / "latency.hlog").unlink()
    kept = {p.name: (p / "run.json").read_bytes() for p in (out / "runs").iterdir() if p.name != victim}

    done = iocast(*ask)
    assert done.returncode == 0, done.stderr
    assert all(p["status"] == "complete" for p in json.loads(done.stdout)["points"])
    assert len(json.loads(done.stdout)["machine"]) == 2, "one look before each call's runs"
    assert all((out / "runs" / name / "run.json").read_bytes() == content for name, content in kept.items())
    assert (out / "runs" / f"{victim}.interrupted-1").is_dir()
    assert (out / "runs" / victim / "latency.hlog").is_file()

    # Another plan must not be mixed in.
    (tmp_path / "tiny.yaml").write_text(CAMPAIGN.replace("repeats: 2\nb", "repeats: 3\nb"))
    done = iocast(*ask)
    assert done.returncode == 2 and "another plan" in done.stderr


@pytest.mark.parametrize(
    ("workload", "settings"),
    [
        ("ior-easy", "{per_process: 64KiB, transfer_size: 16KiB}"),
        ("mix", "{small.workload: md-workbench, small.datasets: 1, small.objects: 9, small.iterations: 9}"),
    ],
)
def test_a_workload_without_iterations_has_sizes_of_its_own(
    iocast: Iocast, tmp_path: Path, workload: str, settings: str
) -> None:
    """No pilot run sizes it, and nothing is set that it lacks."""
    text = f"schema_version: 1\nworkload: {workload}\nsettings: {settings}\nrepeats: 1\npoints: [{{ranks: 2}}]\n"
    (tmp_path / "plan.yaml").write_text(text)
    (root := tmp_path / "root").mkdir()
    ask = ("measure", root, "--campaign", tmp_path / "plan.yaml", "--out", tmp_path / "out")
    dry = iocast(*ask, "--dry-run")
    assert dry.returncode == 0 and "1 runs of" in dry.stdout and "pilot" not in dry.stdout, dry.stderr
    done = iocast(*ask)
    assert done.returncode == 0 and "1 of 1 runs measured" in done.stdout, done.stderr
    assert list(root.iterdir()) == [] and [p.name for p in (tmp_path / "out" / "runs").iterdir()] == ["n2-t0-r1"]
    (tmp_path / "plan.yaml").write_text(text.replace("ranks: 2", "ranks: 2, settings: {iterations: 5}"))
    refused = iocast(*ask[:-1], tmp_path / "other")
    assert refused.returncode == 2 and "There is no parameter 'iterations'" in refused.stderr, refused.stderr


def test_a_dry_run_of_a_campaign_without_runs_is_of_all_of_them(iocast: Iocast, tmp_path: Path) -> None:
    """As one that ended in its pilot run leaves it."""
    (tmp_path / "plan.yaml").write_text(CAMPAIGN)
    (root := tmp_path / "root").mkdir()
    plan = read_plan(str(tmp_path / "plan.yaml"))
    with Campaign(root, plan, tmp_path / "out", 0) as work:
        work._save()
    done = iocast("measure", root, "--campaign", tmp_path / "plan.yaml", "--out", tmp_path / "out", "--dry-run")
    assert done.returncode == 0 and "10 runs of md-workbench" in done.stdout, done.stdout


@pytest.fixture
def mounted_twice(tmp_path: Path) -> Iterator[tuple[Path, Path]]:
    """A directory, and where it is mounted again."""
    (root := tmp_path / "root").mkdir()
    (other := tmp_path / "other").mkdir()
    subprocess.run(["mount", "--bind", root, other], check=True)
    yield root, other
    subprocess.run(["umount", other], check=True)


@pytest.mark.needs("mounts")
def test_ranks_go_through_several_mount_points(
    iocast: Iocast, mounted_twice: tuple[Path, Path], tmp_path: Path
) -> None:
    """As many as a point says, all where it says nothing; runs of other numbers are no repeats of one question."""
    text = "schema_version: 1\nworkload: md-workbench\nsettings: {datasets: 1, iterations: 9, objects: 9}\nrepeats: 1\n"
    (tmp_path / "plan.yaml").write_text(f"{text}points: [{{ranks: [1, 2, 4], mounts: [1, 2]}}, {{ranks: 3}}]\n")
    (root, other), out = mounted_twice, tmp_path / "out"

    def measured(place: object, *more: str) -> CompletedProcess[str]:
        return iocast("measure", str(place), "--campaign", tmp_path / "plan.yaml", "--out", out, *more)

    lacking = measured(root)
    assert lacking.returncode == 2 and "2 mount points are wanted, and 1 named" in lacking.stderr, lacking.stderr
    for wrong, why in ((f"{root},{root}", "named twice"), (f"{root},{tmp_path}/nowhere", "does not exist")):
        assert (refused := measured(wrong)).returncode == 2 and why in refused.stderr, refused.stderr
    dry = measured(f"{root},{other}", "--dry-run", "--json")
    assert {(one["ranks_per_node"], one["mounts"]) for one in json.loads(dry.stdout)["points"]} == {
        *((ranks, mounts) for ranks in (1, 2, 4) for mounts in (1, 2)),
        (3, 2),
    }
    done = measured(f"{root},{other}")
    assert done.returncode == 0 and "7 of 7 runs measured" in done.stdout, done.stderr
    assert list(root.iterdir()) == []
    changed = measured(other)
    assert changed.returncode == 2 and "2 mount points are wanted" in changed.stderr, changed.stderr
    ways = {
        name: len(json.loads((out / "runs" / name / "run.json").read_text())["environment"].get("mounts", []))
        for name in ("n2-t0-mounts1-r1", "n2-t0-mounts2-r1", "n3-t0-r1")
    }
    assert list(ways.values()) == [0, 2, 2], ways
    runs, _ = find_runs([out], "benchmark")
    assert {(run.question.placement.ranks, run.question.mounts) for run in runs} == {
        *((ranks, mounts) for ranks in (1, 2, 4) for mounts in (1, 2)),
        (3, 2),
    }
    one, two = (Run(out / "runs" / f"n2-t0-mounts{mounts}-r1").question for mounts in (1, 2))
    assert one.differences(two) == ["1 mount point, not 2"] and Question.read(two.document()) == two
    with pytest.raises(InputError, match=r"go through 1 and 2 mount points.*-mounts2-"):
        check_runs(group(runs))
    check_runs(group([run for run in runs if run.mounts == 2]))


def test_a_role_that_no_point_has_is_refused(iocast: Iocast, tmp_path: Path) -> None:
    """With steps a run has the role of its step, where that has one."""
    fit = CAMPAIGN.replace("  - {ranks: 3, role: check}\n", "")
    steps = fit + "steps: [{name: a, role: beside}, {name: b}]\n"
    (root := tmp_path / "root").mkdir()
    for text, role in ((fit, "check"), (fit.replace("waiting_factor: [0, 1]", "role: check"), "fit"), (steps, "check")):
        (tmp_path / "plan.yaml").write_text(text)
        for more in ((), ("--dry-run",)):
            ask = ("measure", root, "--campaign", tmp_path / "plan.yaml", "--out", tmp_path / "out", "--role", role)
            done = iocast(*ask, *more)
            assert done.returncode == 2 and f"no point of the role '{role}'" in done.stderr, done.stdout
    assert not (tmp_path / "out").exists()


def test_clients_may_be_threads(iocast: Iocast, tmp_path: Path) -> None:
    plan = (
        CAMPAIGN.split("points:")[0].replace("repeats: 2\nb", "repeats: 1\nb")
        + "points:\n  - {ranks: 6, threads_per_rank: 3}\n"
    )
    (tmp_path / "threads.yaml").write_text(plan)
    (tmp_path / "root").mkdir()
    done = iocast("measure", tmp_path / "root", "--campaign", tmp_path / "threads.yaml", "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    (run,) = (json.loads(file.read_text()) for file in (tmp_path / "out").glob("runs/*/run.json"))
    assert run["placement"] == {"ranks": 6, "nodes": 1, "ranks_per_node": 6, "threads_per_rank": 3}
    (tmp_path / "threads.yaml").write_text(plan.replace("ranks: 6", "ranks: [6, 8]"))
    done = iocast("measure", tmp_path / "root", "--campaign", tmp_path / "threads.yaml", "--out", tmp_path / "other")
    assert done.returncode == 2 and re.search(r"threads\.yaml:\d+: .*8 clients a node.*3 threads", done.stderr), (
        done.stderr
    )


def test_nodes_that_a_campaign_does_not_fit_name_the_way_out(tmp_path: Path) -> None:
    (tmp_path / "tiny.yaml").write_text(CAMPAIGN)
    with pytest.raises(InputError, match=r"1 ranks can't be spread evenly over 2 nodes.*iocast plan --nodes 2 --ppn N"):
        read_plan(str(tmp_path / "tiny.yaml"), nodes=2)
    with pytest.raises(InputError, match="which --nodes puts in place of the campaign's own. Leave --nodes out"):
        read_plan(str(tmp_path / "tiny.yaml"), nodes=2)


def test_points_of_another_role_need_no_nodes(tmp_path: Path) -> None:
    """A laboratory of four nodes measures what the campaign for eight fits."""
    plan = read_plan("laboratory")
    assert {role: max(point.nodes for point in plan.of_role(role)) for role in (None, "fit", "check")} == {
        None: 8, "fit": 4, "check": 8,
    }  # fmt: skip
    hosts = tmp_path / "hosts"
    hosts.write_text("a\nb\nc\nd\n")
    for role, enough in (("fit", True), ("check", False), (None, False)):
        with (
            nullcontext()
            if enough
            else pytest.raises(InputError, match="needs 8 nodes, but .* has 4 hosts.* --role fit")
        ):
            Hosts(hosts, ("a", "b", "c", "d")).first(max(point.nodes for point in plan.of_role(role)))


@pytest.mark.parametrize("number", mostly_long([signal.SIGTERM, signal.SIGINT], [signal.SIGTERM], "the other signal"))
def test_an_ended_campaign_says_what_stays_and_how_it_is_removed(
    iocast: Iocast, tmp_path: Path, number: signal.Signals
) -> None:
    """In the middle of a run that would take minutes; the command that it prints removes what stays."""
    (tmp_path / "root").mkdir()
    slow = CAMPAIGN.replace("iterations: 20, objects: 20", "iterations: 300, objects: 300").replace(
        "ranks: [1, 2], waiting_factor: [0, 1]", "ranks: [2, 4], waiting_factor: [2000]"
    )
    (tmp_path / "slow.yaml").write_text(slow)
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    command = [
        sys.executable,
        "-m",
        "iocast",
        "measure",
        str(tmp_path / "root"),
        "--campaign",
        str(tmp_path / "slow.yaml"),
        "--out",
        str(tmp_path / "out"),
    ]
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    until = time.monotonic() + 120
    while not any('"in progress"' in m.read_text() for m in (tmp_path / "root").glob("*/*/iocast.manifest.json")):
        assert time.monotonic() < until and process.poll() is None
        time.sleep(0.05)
    process.send_signal(number)
    _, errors = process.communicate(timeout=120)
    why = "Ended because SIGTERM came" if number == signal.SIGTERM else "Interrupted; what was measured"
    assert process.returncode == 1 and why in errors and "Traceback" not in errors, errors
    printed = " ".join(errors.split())
    left = tmp_path / "root" / "iocast-campaign"
    assert left.is_dir() and re.search(rf"'{left}' still holds [1-9][\d,]* files and directories", printed), errors
    (command,) = re.findall(r"without measuring: iocast (measure .* --sweep)", printed)
    swept = iocast(*shlex.split(command))
    assert swept.returncode == 0 and "Nothing of the campaign" in swept.stdout, swept.stderr
    assert list((tmp_path / "root").iterdir()) == [], "nothing of iocast stays"
    assert {p["status"] for p in json.loads((tmp_path / "out" / "campaign.json").read_text())["points"]} <= {
        "planned",
        "complete",
    }
    if number == signal.SIGTERM:
        (interrupted,) = [
            p
            for p in (tmp_path / "out" / "runs").iterdir()
            if json.loads((p / "run.json").read_text())["status"] != "complete"
        ]
        assert json.loads((interrupted / "run.json").read_text())["status"] == "interrupted"


CLEAN, FAR, OTHER = (
    "The bucket is empty; there is nothing to sweep.",
    "The service does not answer.",
    "It holds a data set with objects = 3.",
)


@pytest.mark.parametrize(
    ("sized", "answers", "remains"),
    [
        (False, [CLEAN], ""),
        (False, [FAR], FAR),
        (True, [CLEAN], ""),
        (True, [FAR], FAR),
        (True, [OTHER, OTHER, ""], ""),
        (True, [OTHER, OTHER], OTHER),
    ],
)
def test_a_service_that_can_not_be_swept_is_not_called_clean(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, sized: bool, answers: list[str], remains: str
) -> None:
    """`answers`: refusals of the benchmark, "" for none, one for each run that was begun; the last again and again."""
    (tmp_path / "plan.yaml").write_text(CAMPAIGN if sized else CAMPAIGN.replace("iterations: 20, objects: 20", ""))

    def end(*_: object, **__: object) -> None:
        raise Ended("SIGTERM came")

    def sweep(*_: object, **__: object) -> None:
        if says := left.pop(0) if len(left) > 1 else left[0]:
            raise (NothingThere if says == CLEAN else InputError)(says)

    for name, function in (("check_backend", lambda *_: None), ("run_bench", end), ("sweep", sweep)):
        monkeypatch.setattr(directory, name, function)
    service, left = Backend("s3", ("--s3.bucket=mine",)), list(answers)

    def opened() -> Campaign:
        plan = read_plan(str(tmp_path / "plan.yaml"))
        return Campaign(None, plan, tmp_path / "out", 0, backend=service)

    with opened() as work, pytest.raises(Ended, match=r"^Ended because SIGTERM came[,;] .*\.$"):
        work.prepare()
        work.json["attempts"] = {run.name: 1 for run in work.runs[: len(answers) - 1]}
        work.measure(None, lambda *_: None)
    with opened() as work:
        assert work.left_over()
        if remains:
            with pytest.raises(InputError, match=re.escape(remains)):
                work.sweep()
        else:
            work.sweep()


@pytest.mark.parametrize("objects", [None, 7, 700, 10**6])
def test_a_pilot_run_keeps_to_the_objects_that_the_campaign_sets(tmp_path: Path, objects: int | None) -> None:
    """No run is refused for more iterations than objects."""
    (tmp_path / "plan.yaml").write_text(
        CAMPAIGN.replace("iterations: 20, objects: 20", f"objects: {objects}" if objects else "")
    )
    plan = read_plan(str(tmp_path / "plan.yaml"))
    pilot = pilot_run(plan, 3200)
    runs = [pilot, *planned_runs(plan, 0, 2369)]
    assert all(run.settings["iterations"] <= run.settings["objects"] for run in runs)
    assert {run.settings["objects"] for run in runs} == {objects} if objects else runs[0].settings["objects"] == 3200
    wanted = [3200, 2369] if objects is None else [min(3200, objects), min(2369, objects)]
    assert wanted[0] == pilot.settings["iterations"] and wanted[1] in {run.settings["iterations"] for run in runs[1:]}


def test_a_sweep_may_have_another_rate_than_what_was_measured(iocast: Iocast, tmp_path: Path) -> None:
    (tmp_path / "plan.yaml").write_text(CAMPAIGN)
    (root := tmp_path / "root").mkdir()
    command = ("measure", root, "--campaign", tmp_path / "plan.yaml", "--out", tmp_path / "out")
    done = iocast(*command, "--max-rate", "20000/s")
    assert done.returncode == 0, done.stderr
    other = iocast(*command, "--max-rate", "30000/s")
    assert other.returncode == 2 and "was begun with another --max-rate" in other.stderr
    for rate in ((), ("--max-rate", "30000/s")):
        swept = iocast(*command, *rate, "--sweep")
        assert swept.returncode == 0 and "Nothing of the campaign" in swept.stdout, swept.stderr
    assert iocast(*command, "--max-rate", "20000/s").returncode == 0, "the campaign's own rate stays"


def test_a_sweep_leaves_what_the_campaign_did_not_begin(iocast: Iocast, tmp_path: Path) -> None:
    """Neither another campaign's data set of the same name is touched, nor is a wrong --out called clean."""
    (tmp_path / "plan.yaml").write_text(CAMPAIGN)
    (root := tmp_path / "root").mkdir()
    command = ("measure", root, "--campaign", tmp_path / "plan.yaml", "--sweep", "--out")
    none = iocast(*command, tmp_path / "wrong")
    assert none.returncode == 2 and "There is no campaign in" in none.stderr and not none.stdout, none.stderr
    assert list(root.iterdir()) == [] and not (tmp_path / "wrong").exists()

    with Campaign(root, read_plan(str(tmp_path / "plan.yaml")), tmp_path / "mine", 0) as work:
        work.prepare()
    run = next(run for run in work.runs if run.ranks == 1)
    (theirs := root / "iocast-campaign" / run.name).mkdir(parents=True)
    making = [
        binaries.find("iocast-bench"),
        "--workload",
        "md-workbench",
        "--posix.root",
        str(theirs),
        "--seed",
        str(run.seed),
    ]
    making += settings_arguments(run.settings | {"phases": "precreate"})
    subprocess.run([*making, "--out", str(tmp_path / "theirs")], check=True, capture_output=True)
    before = sorted(theirs.rglob("*"))
    swept = iocast(*command, tmp_path / "mine")
    assert swept.returncode == 1 and "still holds" in swept.stderr, swept.stderr
    assert sorted(theirs.rglob("*")) == before and len(before) > 20


def test_a_campaign_removes_no_data_set_but_its_own(
    simulator: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither another ended campaign's of the same name and settings, nor what a symbolic link in its place leads
    to."""
    monkeypatch.setenv("IOCAST_BUILD", str(simulator.parents[1]))
    (tmp_path / "plan.yaml").write_text(CAMPAIGN)
    plan = read_plan(str(tmp_path / "plan.yaml"))
    (root := tmp_path / "root").mkdir()

    def files(place: Path) -> list[str]:
        return sorted(str(file.relative_to(place)) for file in place.rglob("*"))

    with Campaign(root, plan, tmp_path / "theirs", 0) as work:
        work.prepare()
        run = next(run for run in work.runs if run.ranks == 1)
        _, theirs = work._begin(run, run.name)
        assert theirs is not None
        run_bench(
            replace(run, settings=run.settings | {"phases": "precreate"}),
            "md-workbench", work.backend, theirs, tmp_path / "made", run.seed or 0,
        )  # fmt: skip
    before = files(theirs)
    assert len(before) > 20
    for _ in range(2):  # begun, and begun again by a second process
        with Campaign(root, plan, tmp_path / "mine", 0) as work:
            work.prepare()
            mine = work._begin(run, run.name)[1]
        assert files(theirs) == before and mine is not None and mine != theirs
    theirs.rename(tmp_path / "aside")
    theirs.symlink_to(tmp_path / "aside")
    with Campaign(root, plan, tmp_path / "theirs", 0) as work:
        work.prepare()
        again = work._begin(run, run.name)[1]
        assert files(tmp_path / "aside") == before and again is not None and again != theirs
        again.symlink_to(tmp_path / "aside")  # between its choice and its use
        with pytest.raises(InputError, match="is a symbolic link, which iocast did not make"):
            run_bench(run, "md-workbench", work.backend, again, tmp_path / "more", 0)
    assert theirs.is_symlink() and files(tmp_path / "aside") == before
    assert f"'{theirs}' stays there" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("verb", "more"),
    [
        ("measure", ("--campaign", "plan.yaml")),
        ("knee", ("--slo", "p99(any) < 9s", "--set", "datasets=1", "--set", "objects=40", "--length", "200ms")),
    ],
)
def test_work_that_ends_by_a_failed_run_says_what_stays_and_how_it_is_removed(
    iocast: Iocast, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verb: str, more: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("plan.yaml").write_text(CAMPAIGN)
    (root := tmp_path / "root").mkdir()
    done = iocast(verb, root, *more, "--out", tmp_path / "out", "--stop-latency", "any:1us")
    printed = " ".join(done.stderr.split())
    assert done.returncode == 1 and "of --stop-latency" in printed, done.stderr
    assert re.search(rf"'{root / 'iocast-campaign'}' still holds [1-9][\d,]* files and directories\.", printed)
    (command,) = re.findall(rf"without measuring: iocast ({verb} .* --sweep)", printed)
    swept = iocast(*shlex.split(command))
    assert swept.returncode == 0 and "is left on the storage" in swept.stdout, swept.stderr
    assert list(root.iterdir()) == []


@pytest.mark.parametrize(
    ("verb", "more"),
    [
        ("measure", ("--campaign", "plan.yaml", "--min-free", "999TiB")),
        ("knee", ("--slo", "p99(any) < 9s", "--set", "datasets=1", "--length", "200ms", "--min-free", "999TiB")),
    ],
)
def test_work_that_is_refused_names_nothing_of_other_campaigns(
    iocast: Iocast, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verb: str, more: tuple[str, ...]
) -> None:
    """Its --sweep would not remove it."""
    monkeypatch.chdir(tmp_path)
    Path("plan.yaml").write_text(CAMPAIGN)
    (theirs := tmp_path / "root" / "iocast-campaign" / "1x1-r1.0123456789abcdef").mkdir(parents=True)
    (theirs / "file").write_text("x")
    done = iocast(verb, tmp_path / "root", *more, "--out", tmp_path / "out")
    assert done.returncode in (1, 2) and "999.0 TiB of --min-free" in done.stderr, done.stderr
    assert "still holds" not in done.stderr and "--sweep" not in done.stderr, done.stderr
    assert (theirs / "file").exists()


def test_a_knee_search_says_again_what_stays_until_it_is_gone(
    iocast: Iocast, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (root := tmp_path / "root").mkdir()
    search = ("knee", root, "--slo", "p99(any) < 9s", "--set", "datasets=1", "--set", "objects=40", "--length", "200ms")
    assert iocast(*search, "--out", tmp_path / "out", "--stop-latency", "any:1us").returncode == 1
    (place,) = [one for one in (root / "iocast-campaign").iterdir() if one.is_dir()]
    (manifest,) = place.rglob("*manifest*")
    whole = manifest.read_bytes()
    manifest.write_bytes(b"{")
    for _ in range(2):
        swept = iocast(*search, "--out", tmp_path / "out", "--sweep")
        assert swept.returncode == 1 and f"'{place}' stays there" in " ".join(swept.stderr.split()), swept.stderr
    manifest.write_bytes(whole)
    swept = iocast(*search, "--out", tmp_path / "out", "--sweep")
    assert swept.returncode == 0 and list(root.iterdir()) == [], swept.stderr


def test_what_keeps_nothing_has_nothing_to_sweep(iocast: Iocast, tmp_path: Path) -> None:
    (tmp_path / "plan.yaml").write_text(CAMPAIGN)
    command = ("measure", "--backend", "dummy", "--campaign", tmp_path / "plan.yaml", "--out", tmp_path / "out")
    assert iocast(*command, "--role", "check", "--json").returncode == 0
    swept = iocast(*command, "--sweep", "--json")
    assert swept.returncode == 0 and json.loads(swept.stdout)["points"], swept.stderr


@pytest.mark.long("a campaign of many runs")
def test_ranks_share_what_a_rank_alone_does_where_scaling_is_strong(iocast: Iocast, tmp_path: Path) -> None:
    plan = (
        "schema_version: 1\nworkload: md-workbench\nsettings: {datasets: 1}\nseconds: 0.1\nbenchmark_repeats:"
        " 1\nrepeats: 1\n"
    )
    plan += "points: [{ranks: [1, 2, 4], waiting_factor: [0, 1]}]\n"
    did = {}
    for scaling in ("", "scaling: weak\n", "scaling: strong\n"):
        (tmp_path / "plan.yaml").write_text(plan + scaling)
        out = tmp_path / f"out{len(did)}"
        done = iocast(
            "measure",
            "--backend",
            "dummy",
            "--backend-option=--dummy.delay=50us",
            "--campaign",
            tmp_path / "plan.yaml",
            "--out",
            out,
            "--json",
        )
        assert done.returncode == 0, done.stderr
        points = json.loads(done.stdout)["points"]
        settings = {(p["ranks_per_node"], p["settings"]["waiting_factor"]): p["settings"] for p in points}
        assert all(own["iterations"] == own["objects"] >= 5 for own in settings.values())
        did[scaling] = {where: own["iterations"] / settings[1, 0]["iterations"] for where, own in settings.items()}
    weak = {(n, t): 1 / (4 if t else 1) for n in (1, 2, 4) for t in (0, 1)}
    # Whole iterations; the pilot finds more than a hundred.
    assert did[""] == pytest.approx(weak, abs=0.01) and did["scaling: weak\n"] == pytest.approx(weak, abs=0.01)
    assert did["scaling: strong\n"] == pytest.approx({(n, t): share / n for (n, t), share in weak.items()}, abs=0.01)
    (tmp_path / "plan.yaml").write_text(plan.replace("waiting_factor: [0, 1]", "settings: {objects: 700}"))
    changed = read_plan(str(tmp_path / "plan.yaml"))
    with Campaign(None, changed, tmp_path / "own", 0, backend=Backend("dummy")) as work:
        work.prepare()
    assert [run.settings["objects"] for run in work.runs] == [700] * 3
    (tmp_path / "plan.yaml").write_text(plan + "scaling: strnog\n")
    done = iocast("measure", "--backend", "dummy", "--campaign", tmp_path / "plan.yaml", "--out", tmp_path / "other")
    assert done.returncode == 2 and re.search(r"plan\.yaml:8: .*strnog.*strong", done.stderr), done.stderr


STEPS = """schema_version: 1
workload: md-workbench
settings: {datasets: 1, objects: 5, iterations: 5}
benchmark_repeats: 1
repeats: 1
drop_caches: DROP
steps: [{name: make, settings: {phases: precreate}}, {name: use, settings: {phases: "benchmark,cleanup"}}]
points: [{ranks: 1}]
"""


@pytest.mark.parametrize(("drop", "before_first"), [("true", "run"), ("false", False)])
def test_caches_are_dropped_before_runs_where_the_campaign_says_so(
    iocast: Iocast, tmp_path: Path, drop: str, before_first: object
) -> None:
    may = os.access("/proc/sys/vm/drop_caches", os.W_OK)
    (tmp_path / "plan.yaml").write_text(STEPS.replace("DROP", drop))
    (tmp_path / "root").mkdir()
    done = iocast("measure", tmp_path / "root", "--campaign", tmp_path / "plan.yaml", "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert ("Caches were not dropped" in done.stderr) == (drop == "true" and not may)
    dropped = {
        run.parent.name: json.loads(run.read_text())["caches_dropped"]
        for run in (tmp_path / "out" / "runs").glob("*/run.json")
    }
    assert dropped == {"n1-t0-r1-make": before_first if may else False, "n1-t0-r1-use": False}, (
        "a step goes on with what the one before it left, caches too"
    )


@pytest.mark.needs("caches")
@pytest.mark.needs("mounts")
def test_a_user_who_may_not_drop_caches_measures_and_is_warned(tmp_path: Path) -> None:
    (tmp_path / "plan.yaml").write_text(STEPS.replace("DROP", "true"))
    (tmp_path / "root").mkdir()
    protect = 'mount --bind /proc/sys/vm /proc/sys/vm && mount -o remount,ro,bind /proc/sys/vm && exec "$@"'
    ask = [
        sys.executable,
        "-m",
        "iocast",
        "measure",
        tmp_path / "root",
        "--campaign",
        tmp_path / "plan.yaml",
        "--out",
        tmp_path / "out",
    ]
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", protect, "sh", *map(str, ask)],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0 and "Caches were not dropped" in done.stderr, done.stderr
    again = subprocess.run(
        ["unshare", "--mount", "sh", "-c", protect, "sh", *map(str, ask)],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert again.returncode == 0 and "Caches" not in again.stderr, "nothing was left to measure"
    assert [
        json.loads(run.read_text())["caches_dropped"] for run in (tmp_path / "out" / "runs").glob("*/run.json")
    ] == [False, False]


def test_whether_to_drop_caches_is_yes_or_no(iocast: Iocast, tmp_path: Path) -> None:
    (tmp_path / "plan.yaml").write_text(STEPS.replace("DROP", "sometimes"))
    done = iocast("measure", tmp_path, "--campaign", tmp_path / "plan.yaml", "--out", tmp_path / "out")
    assert done.returncode == 2 and re.search(r"plan\.yaml:6: .*drop_caches.*true or false.*sometimes", done.stderr), (
        done.stderr
    )
    assert not (tmp_path / "out").exists()


def test_every_verb_explains_itself(iocast: Iocast) -> None:
    for verb in (
        "measure",
        "calibrate",
        "predict",
        "validate",
        "study",
        "report",
        "import",
        "export",
        "compare",
        "observe",
        "list",
        "describe",
    ):
        done = iocast(verb, "--help")
        assert done.returncode == 0
        assert "--json" in done.stdout and re.search("Examples?: iocast", done.stdout), verb


def test_lists(iocast: Iocast) -> None:
    for what in ("workloads", "patterns", "backends", "platforms", "primitives", "campaigns", "formats"):
        listed = json.loads(iocast("list", what, "--json").stdout)[what]
        assert listed, what
    assert iocast("list", "platfroms").returncode == 2
    assert json.loads(iocast("describe", "posix", "--json").stdout)["kind"] == "backend"


def test_a_campaign_of_a_backend_without_a_directory(iocast: Iocast, tmp_path: Path) -> None:
    (tmp_path / "tiny.yaml").write_text(CAMPAIGN)
    out = tmp_path / "campaign"
    ask = (
        "measure",
        "--backend",
        "dummy",
        "--backend-option=--dummy.delay=50us",
        "--campaign",
        tmp_path / "tiny.yaml",
        "--out",
        out,
        "--json",
    )
    done = iocast(*ask, "--role", "fit")
    assert done.returncode == 0, done.stderr
    campaign = json.loads(done.stdout)
    assert campaign["backend"] == {"name": "dummy", "options": ["--dummy.delay=50us"]} and campaign["root"] == ""
    run = json.loads((out / "runs" / campaign["points"][0]["name"] / "run.json").read_text())
    assert run["backend"]["name"] == "dummy" and run["phases"][1]["latency"]["stat"]["q50"] > 50e-6

    for other, says in (
        (("measure", tmp_path, *ask[1:]), "works in no directory"),
        (("measure", "--backend", "dummy", *ask[4:]), "was begun with another --backend or --backend-option"),
        (("measure", tmp_path, *ask[4:]), f"measures '', not '{tmp_path}'"),
        (("measure", *ask[4:]), "needs the directory to be measured"),
    ):
        refused = iocast(*other)
        assert refused.returncode == 2 and says in refused.stderr, refused.stderr
    done = iocast(*ask)
    assert done.returncode == 0 and all(p["status"] == "complete" for p in json.loads(done.stdout)["points"])


def test_limits_on_a_system_that_others_use(iocast: Iocast, tmp_path: Path) -> None:
    """They are refused before anything is made, hold for every run of the campaign, and are the campaign's."""
    plan, root, out = tmp_path / "slow.yaml", tmp_path / "root", tmp_path / "out"
    plan.write_text(CAMPAIGN.split("repeats: 2\n")[0] + "repeats: 1\nbenchmark_repeats: 1\npoints: [{ranks: 2}]\n")
    root.mkdir()
    ask = ("measure", root, "--campaign", plan, "--out", out)
    for option, words in (
        (("--max-rate", "200"), "--max-rate"), (("--stop-latency", "creat:5s"), "Did you mean 'create'"),
        (("--max-objects", "39"), "40 objects"), (("--min-free", "much"), "--min-free"),
    ):  # fmt: skip
        done = iocast(*ask, *option)
        assert done.returncode == 2 and words in done.stderr, done.stderr
        assert list(root.iterdir()) == []
    limits = ("--max-rate", "2000/s", "--max-objects", "40", "--stop-latency", "any:1h", "--min-free", "1KiB")
    done = iocast(*ask, *limits, "--take-over")
    assert done.returncode == 0, done.stderr
    (run,) = (json.loads(file.read_text()) for file in out.glob("runs/*/run.json"))
    assert (run["brake"]["max_rate"], run["brake"]["max_objects"], run["brake"]["min_free"]) == (2000, 40, 1024)
    assert "--take-over" in run["command"]
    done = iocast(*ask, *limits[2:])
    assert done.returncode == 2 and "--max-rate" in done.stderr, done.stderr
    done = iocast("calibrate", out, "--out", tmp_path / "fitted.yaml")
    assert done.returncode == 2 and "held back by --max-rate (2000/s)" in done.stderr, done.stderr
    done = iocast("compare", out, out, "--json")
    (warning,) = json.loads(done.stdout)["points"][0]["warnings"]
    assert warning.startswith("2 of 2 runs were held back by --max-rate") and "2000/s" in warning
    done = iocast(*ask[:-1], tmp_path / "other", "--stop-latency", "any:1us")
    assert done.returncode == 1 and "of --stop-latency" in done.stderr, done.stderr


def test_limits_are_judged_by_the_runs_of_the_campaign(iocast: Iocast, tmp_path: Path) -> None:
    """And not by the workload's defaults, of 1,000 objects a rank; --dry-run judges as the run does."""
    plan, root = tmp_path / "small.yaml", tmp_path / "root"
    plan.write_text(
        "schema_version: 1\nworkload: md-workbench\nsettings: {datasets: 1}\nrepeats: 1\nbenchmark_repeats: 1\n"
        "points: [{ranks: 2, settings: {objects: 20, iterations: 20}}]\n"
    )
    root.mkdir()
    ask = ("measure", root, "--campaign", plan, "--out", tmp_path / "out")
    for option in (["--dry-run"], []):
        done = iocast(*ask, "--max-objects", "39", *option)
        assert done.returncode == 2 and "up to 40 objects" in done.stderr, done.stderr
        done = iocast(*ask, "--max-objects", "40", *option)
        assert done.returncode == 0, done.stderr
    done = iocast(*ask[:-1], tmp_path / "other", "--max-objects", "60", "--set", "objects=30", "--dry-run")
    assert done.returncode == 0, done.stderr


def test_job_scripts_keep_the_limits(iocast: Iocast, tmp_path: Path) -> None:
    (tmp_path / "tiny.yaml").write_text(CAMPAIGN)
    limits = ("--max-rate=200/s", "--stop-latency=any:10s", "--take-over", "--sole-user")
    done = iocast(
        "measure",
        tmp_path,
        "--campaign",
        tmp_path / "tiny.yaml",
        "--out",
        tmp_path / "out",
        "--slurm-only-write",
        *limits,
    )
    assert done.returncode == 0, done.stderr
    (script,) = (tmp_path / "out" / "slurm").glob("*.sbatch")
    assert " ".join(limits) in script.read_text()


@pytest.mark.parametrize(
    ("version", "options"),
    [
        ("mpirun (Open MPI) 5.0.7", ["--oversubscribe", "--bind-to", "none", "--mca", "mpi_yield_when_idle", "1"]),
        ("HYDRA build details:\\n    Version: 4.0.2", []),
        ("Intel(R) MPI Library for Linux* OS, Version 2021.14", []),
    ],
    ids=["Open MPI", "MPICH", "Intel MPI"],
)
def test_mpirun_gets_options_that_it_has(
    version: str, options: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Others than Open MPI end with an error at its options."""
    (tmp_path / "mpirun").write_text(f"#!/bin/sh\n[ \"$*\" = --version ] && printf '{version}\\n'\n")
    (tmp_path / "mpirun").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    assert launcher(1, 2) == ["mpirun", *options, "-n", "2"]


def test_what_removes_an_earlier_attempt_keeps_to_the_rate() -> None:
    """And stops for nothing else: a file system that is full is made emptier."""
    use = SharedUse(max_rate="200/s", max_objects="9", stop_latency="any:1s", min_free="1GiB", take_over=True)
    assert use.pace == ["--max-rate=200/s"] and SharedUse().pace == []
