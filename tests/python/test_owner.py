# SPDX-License-Identifier: Apache-2.0
"""One owner of a campaign and of a measured directory, and what becomes of both when it is killed."""

import contextlib
import errno
import fcntl
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from types import FrameType
from typing import Any

import psutil
import pytest
from schedule import mostly_long
from ended import has_ended
from programs import REPOSITORY

sys.path.append(str(REPOSITORY / "validation" / "kills"))
from kills import LAUNCHERS, kill  # noqa: E402

from iocast.ground import claim  # noqa: E402
from iocast.campaign import places  # noqa: E402
from iocast.campaign.bench import failure  # noqa: E402
from iocast.campaign.directory import Campaign  # noqa: E402
from iocast.campaign.places import Owned, end_earlier, make_place  # noqa: E402
from iocast.campaign.plan import read_plan  # noqa: E402
from iocast.ground.claim import Claim  # noqa: E402
from iocast.errors import InputError, RunError  # noqa: E402

Iocast = Callable[..., CompletedProcess[str]]

PLAN = """schema_version: 1
workload: md-workbench
settings: {datasets: 1, objects: OBJECTS, iterations: OBJECTS}
repeats: 1
benchmark_repeats: 1
points: [{ranks: 1, waiting_factor: WAITING}]
"""


def plan_of(directory: Path, objects: int = 20, waiting: int = 0) -> Path:
    file = directory / f"plan-{objects}-{waiting}.yaml"
    file.write_text(PLAN.replace("OBJECTS", str(objects)).replace("WAITING", str(waiting)))
    return file


def begun(root: Path, plan: Path, out: Path) -> subprocess.Popen[str]:
    """A campaign whose data set is being worked on."""
    command = [
        sys.executable,
        "-m",
        "iocast",
        "measure",
        str(root),
        "--campaign",
        str(plan),
        "--out",
        str(out),
        "--json",
    ]
    process = subprocess.Popen(
        command,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    until = time.monotonic() + 120
    while not list(root.glob("*/*/iocast.manifest.json")):
        assert time.monotonic() < until and process.poll() is None, process.communicate()
        time.sleep(0.02)
    return process


def test_the_second_is_refused_and_harms_nothing(iocast: Iocast, tmp_path: Path) -> None:
    """Into the same campaign, and into another one in the same directory; the first ends without a failed operation."""
    (root := tmp_path / "root").mkdir()
    plan = plan_of(tmp_path, 400)  # no waiting: it would be as many times the pause below
    first = begun(root, plan, tmp_path / "out")
    (rank,) = (p for p in psutil.Process(first.pid).children(recursive=True) if p.name() == "iocast-bench")
    rank.suspend()  # for as long as this takes here
    for out, place in ((tmp_path / "out", tmp_path / "out"), (tmp_path / "other", root / "iocast-campaign")):
        done = iocast("measure", root, "--campaign", plan, "--out", out)
        assert (
            done.returncode == 2
            and f"'{place}' is in use by process {first.pid} on " in done.stderr
            and f"kill {first.pid}" in done.stderr
        ), done.stderr
    done = iocast(
        "knee",
        root,
        "--ppn",
        "1",
        "--budget",
        "1s",
        "--length",
        "200ms",
        "--set",
        "datasets=1",
        "--set",
        "objects=5",
        "--out",
        tmp_path / "knee",
    )
    assert done.returncode == 2 and f"in use by process {first.pid}" in done.stderr
    rank.resume()
    out, errors = first.communicate(timeout=120)
    assert first.returncode == 0, errors
    run = json.loads((tmp_path / "out" / "runs" / json.loads(out)["points"][0]["name"] / "run.json").read_text())
    assert [phase["errors"] for phase in run["phases"]] == [0] * len(run["phases"])
    assert not list(root.iterdir()) and not (tmp_path / "other").exists() and not (tmp_path / "knee").exists()
    assert {p.name for p in (tmp_path / "out").iterdir()} == {"campaign.json", "runs"}


@pytest.mark.parametrize("there", [None, f".{claim.NAME}.0123456789abcdef", f".{claim.NAME}.lock"])
def test_killed_before_its_claim_a_campaign_begins_again(tmp_path: Path, there: str | None) -> None:
    """Between the directory that it makes and the file that it makes there."""
    (root := tmp_path / "root").mkdir()
    (out := tmp_path / "out").mkdir()
    if there is not None:
        (out / there).touch()
    with Campaign(root, read_plan(str(plan_of(tmp_path))), out, 0) as work:
        assert work.out == out
    (out / "mine").touch()
    with pytest.raises(InputError, match="nothing is overwritten"):
        Campaign(root, read_plan(str(plan_of(tmp_path))), out, 0)


def _killed_at(step: int, work: Callable[[], None]) -> bool:
    """Does `work` in a child that is killed before line `step` of iocast/ground/claim.py. Whether it has one."""
    child = os.fork()
    if child == 0:
        left = step

        def count(frame: FrameType, event: str, _: object) -> object:
            nonlocal left
            if frame.f_code.co_filename != claim.__file__:
                return None
            left -= event == "line"
            if left < 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return count

        sys.settrace(count)  # type: ignore[arg-type]
        try:
            work()
        finally:
            os._exit(0)
    return os.waitpid(child, 0)[1] != 0


@pytest.mark.parametrize("apart", mostly_long([1, 4], [4], "every step; every fourth is tried always"))
def test_killed_at_any_moment_a_claim_leaves_nothing_for_good(tmp_path: Path, apart: int) -> None:
    """Whoever comes next takes both directories, one of them a dead owner's, and leaves them as empty as they were."""
    out, scratch = tmp_path / "out", tmp_path / "root" / "iocast-campaign"

    def work() -> None:
        Owned(out, scratch, take_over=False).release()

    step = 0
    while True:
        scratch.mkdir(parents=True)
        out.mkdir()
        (scratch / claim.NAME).write_text(json.dumps(another()))
        if not _killed_at(step, work):
            break
        work()
        assert not scratch.exists() and not list(out.iterdir()), f"killed at step {step}"
        out.rmdir()
        step += apart
    assert step > 40


def another(**changes: object) -> dict[str, object]:
    return claim._own("c", "another") | {"process": 2**22 + 1, "token": "other"} | changes


def test_a_dead_owner_is_succeeded_by_one(tmp_path: Path) -> None:
    """Of many that come at the same time, whether locks work there or not."""
    for number in range(6):
        (place := tmp_path / str(number)).mkdir()
        (place / claim.NAME).write_text(json.dumps(another()))
        won: list[Claim] = []
        refused: list[str] = []
        together = threading.Barrier(6)

        def come() -> None:
            together.wait()
            try:
                won.append(Claim(place, "c", "this"))
            except InputError as error:
                refused.append(str(error))

        threads = [threading.Thread(target=come) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(won) == 1 and len(refused) == 5 and all("in use by process" in text for text in refused)
        assert won[0].predecessor is not None and won[0].is_held()
        won[0].release()
        assert not list(place.iterdir())


def test_who_is_alive_is_known_by_more_than_a_number(tmp_path: Path) -> None:
    own = claim._own("c", "own")
    (tmp_path / claim.NAME).write_text(
        json.dumps(own | {"token": "x", "process_started": "1"})
    )  # a number that was used again
    Claim(tmp_path, "c", "this").release()
    (tmp_path / claim.NAME).write_text(json.dumps(another(boot="another", machine=own["machine"] or "m")))
    if own["machine"]:
        with pytest.raises(InputError, match="last sign of life was"):
            Claim(tmp_path, "c", "this", take_over=True)  # another machine of this name and number: it lives now
        assert "last sign of life" in claim.live_owner(tmp_path, True)
        os.utime(tmp_path / claim.NAME, (time.time() - claim._up() - 60,) * 2)
        assert not claim.live_owner(tmp_path)
        Claim(tmp_path, "c", "this").release()  # this machine was started again
    held = Claim(tmp_path, "c", "this")
    with pytest.raises(InputError, match="in use by process"):
        Claim(tmp_path, "c", "this", take_over=True)
    (tmp_path / claim.NAME).write_text(json.dumps(another()))
    assert not held.is_held()
    held.release()
    assert (tmp_path / claim.NAME).exists(), "it was another's by then"


@pytest.mark.parametrize("number", [-1, 0, True, 2**31, 10**30, "1", 1.5, None, {}])
def test_a_claim_without_a_process_is_nobody_s_near_here(tmp_path: Path, number: object) -> None:
    file = tmp_path / claim.NAME
    file.write_text(json.dumps(claim._own("c", "own") | {"token": "x", "process": number}))
    with pytest.raises(InputError, match="last sign of life was"):
        Claim(tmp_path, "c", "this", take_over=True)
    os.utime(file, (time.time() - claim.SILENCE - 5,) * 2)
    Claim(tmp_path, "c", "this", take_over=True).release()


def test_a_process_that_is_hidden_is_not_taken_for_dead(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """/proc may show each user their own processes alone, as on many login nodes."""

    def hidden(process: int, number: int) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    (tmp_path / claim.NAME).write_text(json.dumps(claim._own("c", "own") | {"token": "x", "process": 2**22 + 1}))
    with monkeypatch.context() as patched:
        patched.setattr(os, "kill", hidden)
        with pytest.raises(InputError, match="last sign of life was"):
            Claim(tmp_path, "c", "this", take_over=True)
        assert "last sign of life" in claim.live_owner(tmp_path, True)
    Claim(tmp_path, "c", "this").release()  # nobody has this number


def test_who_keeps_the_lock_stops_nobody_for_good(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Anybody who can read the file may lock it."""
    monkeypatch.setattr(claim, "_PATIENCE", 0.3)
    (tmp_path / claim.NAME).write_text(json.dumps(claim._own("c", "own") | {"token": "x", "process_started": "1"}))
    (lock := tmp_path / f".{claim.NAME}.lock").touch()
    with lock.open() as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(InputError, match=f"'{re.escape(lock.name)}' in it.*end it"):
            Claim(tmp_path, "c", "this")
        threading.Timer(0.1, other.close).start()
        Claim(tmp_path, "c", "this").release()


def test_another_host_is_given_five_minutes_and_a_word(tmp_path: Path) -> None:
    file = tmp_path / claim.NAME
    for content in (another(host="elsewhere", machine="m", boot="b", name_space="n"), {}):
        file.write_text(json.dumps(content))
        with pytest.raises(InputError, match="last sign of life was .* ago.*--take-over"):
            Claim(tmp_path, "c", "this", take_over=True)
        for seconds, last in ((-5 - claim.SILENCE, "without a sign of life for 30"), (9999, "in the future")):
            file.write_text(json.dumps(content))
            os.utime(file, (time.time() + seconds,) * 2)  # a clock may have been set back
            with pytest.raises(InputError, match=rf"{last}.*Make sure that it has ended.*--take-over"):
                Claim(tmp_path, "c", "this")
            Claim(tmp_path, "c", "this", take_over=True).release()
    (target := tmp_path / "victim").write_text("mine")
    file.symlink_to(target)
    with pytest.raises(InputError):
        Claim(tmp_path, "c", "this")
    assert target.read_text() == "mine" and target.stat().st_mtime > time.time() - 60


@pytest.mark.parametrize("links", [True, False])
def test_a_claim_that_can_not_be_written_whole_leaves_nothing(
    links: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk; with and without hard links."""

    def full(self: Claim, file: int) -> None:
        os.write(file, b"{")
        if links or (tmp_path / claim.NAME).exists():
            raise OSError(errno.EDQUOT, os.strerror(errno.EDQUOT))

    def no_link(*_: object, **__: object) -> None:
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    with monkeypatch.context() as patched:
        patched.setattr(Claim, "_write", full)
        if not links:
            patched.setattr(os, "link", no_link)
        with pytest.raises(RunError, match="can't be claimed: Disk quota exceeded"):
            Claim(tmp_path, "c", "this")
    assert list(tmp_path.iterdir()) == []
    Claim(tmp_path, "c", "this").release()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("sets_times", [True, False])
def test_an_owner_shows_that_it_lives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sets_times: bool) -> None:
    """Also where no file's time can be set, as over some FUSE file systems."""
    monkeypatch.setattr(claim, "BEAT", 0.02)
    held = Claim(tmp_path, "c", "this")
    os.utime(tmp_path / claim.NAME, (1, 1))
    if not sets_times:

        def refuse(*_: object, **__: object) -> None:
            raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))

        monkeypatch.setattr(claim.os, "utime", refuse)
        assert abs(claim._age(tmp_path / claim.NAME) - time.time()) < 60
    until = time.monotonic() + 120
    while (tmp_path / claim.NAME).stat().st_mtime < 2:
        assert time.monotonic() < until
        time.sleep(0.02)
    assert held.is_held()
    held.release()
    assert not (tmp_path / claim.NAME).exists()


@pytest.mark.parametrize("umask", [0o000, 0o002, 0o022, 0o077])
def test_nobody_else_can_put_anything_into_a_data_set(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        make_place(place := tmp_path / "place")
    finally:
        os.umask(before)
    assert place.stat().st_mode & 0o7777 == 0o700
    make_place(place)  # of steps, the next one works there


def test_a_foreign_link_in_the_directory_is_not_followed(iocast: Iocast, tmp_path: Path) -> None:
    (root := tmp_path / "root").mkdir()
    (other := tmp_path / "other").mkdir()
    (root / "iocast-campaign").symlink_to(other)
    done = iocast("measure", root, "--campaign", plan_of(tmp_path), "--out", tmp_path / "out")
    assert done.returncode == 2 and "a symbolic link" in done.stderr, done.stderr
    assert not list(other.iterdir()) and not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "left", mostly_long(["an empty place", "foreign files", "a data set"], ["foreign files"], "as with foreign files")
)
def test_what_a_dead_campaign_left_never_stops_the_next(iocast: Iocast, tmp_path: Path, left: str) -> None:
    """Killed between its directory and its manifest, or with files of others in it, or in the middle."""
    (root := tmp_path / "root").mkdir()
    plan, out = plan_of(tmp_path, 60, 200), tmp_path / "out"
    process = begun(root, plan, out)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    (place,) = (p for p in (root / "iocast-campaign").iterdir() if p.is_dir())
    until = time.monotonic() + 120
    while [p for p in psutil.process_iter() if any(str(place) in word for word in ended(p.cmdline))]:
        assert time.monotonic() < until, "ranks outlive their campaign"
        time.sleep(0.05)
    if left != "a data set":
        subprocess.run(["find", place, "-mindepth", "1", "-delete"], check=True)
    if left == "foreign files":
        (place / "mine").write_text("stays")
    done = iocast("measure", root, "--campaign", plan, "--out", out, "--json")
    assert done.returncode == 0, done.stderr
    assert [p["status"] for p in json.loads(done.stdout)["points"]] == ["complete"]
    if left == "foreign files":
        assert (place / "mine").read_text() == "stays" and f"'{place}' stays there" in done.stderr
    else:
        assert not list(root.iterdir())


def ended(question: Callable[[], list[str]]) -> list[str]:
    with contextlib.suppress(psutil.Error):
        return question()
    return []


def test_an_orphan_replaces_no_results(iocast: Iocast, tmp_path: Path) -> None:
    """iocast is killed while a rank hangs. What is left of it ends; if it did not, it would write elsewhere."""
    (root := tmp_path / "root").mkdir()
    plan, out = plan_of(tmp_path, 60, 200), tmp_path / "out"
    process = begun(root, plan, out)
    (rank,) = (p for p in psutil.Process(process.pid).children(recursive=True) if p.name() == "iocast-bench")
    rank.send_signal(signal.SIGSTOP)
    process.kill()
    process.communicate()
    done = iocast("measure", root, "--campaign", plan, "--out", out, "--json")
    assert done.returncode == 0, done.stderr
    assert has_ended(rank)
    (point,) = json.loads(done.stdout)["points"]
    (run,) = (p for p in (out / "runs").iterdir() if p.name == point["name"])
    content = json.loads((run / "run.json").read_text())
    assert content["status"] == "complete" and f"{point['name']}.attempt-2" in json.dumps(content["command"])


def test_what_was_killed_is_named(iocast: Iocast, tmp_path: Path) -> None:
    (root := tmp_path / "root").mkdir()
    for victims, words in (
        (LAUNCHERS, "The program mpirun, which starts the ranks, was killed (signal 9, SIGKILL)"),
        (("iocast-bench",), "Rank 0 of the benchmark on "),
    ):
        process = begun(root, plan_of(tmp_path, 60, 200), tmp_path / victims[0])
        (chosen,) = (p for p in psutil.Process(process.pid).children(recursive=True) if p.name() in victims)
        chosen.kill()
        _, errors = process.communicate(timeout=120)
        assert (
            process.returncode == 1 and words in errors and "the same command goes on" in errors and "SIGKILL" in errors
        ), errors
        done = iocast("measure", root, "--campaign", plan_of(tmp_path, 60, 200), "--out", tmp_path / victims[0])
        assert done.returncode == 0 and not list(root.iterdir()), done.stderr
    assert failure(["srun"], 137, "srun: error: n3: task 5: Killed\n").startswith(
        "Rank 5 of the benchmark on n3 was killed (Killed)"
    )
    lost = failure(["mpirun"], 255, "execvp error on file hydra_pmi_proxy\n")
    assert lost.startswith("The benchmark failed with exit code 255") and "hydra_pmi_proxy" in lost
    assert failure(["mpirun"], 1, "") == "The benchmark failed with exit code 1, and mpirun printed nothing."


def test_another_seed_is_refused_and_repeats_have_their_own(tmp_path: Path) -> None:
    (root := tmp_path / "root").mkdir()
    (tmp_path / "plan.yaml").write_text(
        PLAN.replace("OBJECTS", "5").replace("WAITING", "0").replace("repeats: 1\nb", "repeats: 2\nb")
    )
    plan = read_plan(str(tmp_path / "plan.yaml"))
    with Campaign(root, plan, tmp_path / "out", 3) as work:
        work.prepare()
        assert sorted(run.seed or 0 for run in work.runs) == [3000, 3001]
        work.measure(None, lambda *_: None)
        assert {json.loads(f.read_text())["seed"] for f in (tmp_path / "out" / "runs").glob("*/run.json")} == {
            3000,
            3001,
        }
        with pytest.raises(InputError, match="in use by process"):
            Campaign(root, plan, tmp_path / "out", 3)
    with pytest.raises(InputError, match="begun with --seed 3, not 4; repeat it"):
        Campaign(root, plan, tmp_path / "out", 4)
    with Campaign(root, plan, tmp_path / "out", 3) as work:
        assert not work.missing(None)


def test_who_lost_a_campaign_ends_there(tmp_path: Path) -> None:
    """Taken over after minutes in which it hung: it replaces nothing any more."""
    (root := tmp_path / "root").mkdir()
    with Campaign(root, read_plan(str(plan_of(tmp_path))), tmp_path / "out", 0) as work:
        work.prepare()
        before = (tmp_path / "out" / "campaign.json").read_bytes()
        (tmp_path / "out" / claim.NAME).write_text(json.dumps(another()))
        with pytest.raises(RunError, match="taken this campaign over"):
            work.measure(None, lambda *_: None)
        assert (tmp_path / "out" / "campaign.json").read_bytes() == before and not (tmp_path / "out" / "runs").exists()


def swapped(iocast: Iocast, tmp_path: Path, before: Callable[[Path, Path], None]) -> tuple[Any, Path]:
    """What a campaign into `out` prints, when `before(out, victim)` prepares; a directory of others' with what a
    campaign could remove or overwrite by name."""
    (root := tmp_path / "root").mkdir()
    victim = tmp_path / "victim"
    (victim / "pilot-study").mkdir(parents=True)
    (victim / "pilot-study" / "thesis").write_text("mine")
    before(tmp_path / "out", victim)
    done = iocast("measure", root, "--campaign", plan_of(tmp_path), "--out", tmp_path / "out")
    assert (victim / "pilot-study" / "thesis").read_text() == "mine", done.stderr
    assert sorted(p.name for p in victim.iterdir()) == ["pilot-study"], done.stderr
    return done, root


@pytest.mark.parametrize("which", ["out", "out/runs"])
def test_a_campaign_writes_through_no_link(iocast: Iocast, tmp_path: Path, which: str) -> None:
    def link(out: Path, victim: Path) -> None:
        path = out.parent / which
        path.parent.mkdir(exist_ok=True)
        path.symlink_to(victim)

    done, root = swapped(iocast, tmp_path, link)
    assert done.returncode == 2, done.stderr
    assert not list(root.iterdir())


@pytest.mark.needs("root")
@pytest.mark.parametrize("which", ["out", "out/runs", "root/iocast-campaign"])
@pytest.mark.parametrize("owner, mode, refusal", [(65534, 0o755, "belongs to the user"), (0, 0o777, "chmod go-w")])
def test_directories_that_others_can_change_are_refused(
    iocast: Iocast, tmp_path: Path, which: str, owner: int, mode: int, refusal: str
) -> None:
    def foreign(out: Path, _: Path) -> None:
        (path := out.parent / which).mkdir(parents=True)
        os.chown(path, owner, owner)
        path.chmod(mode)

    done, _ = swapped(iocast, tmp_path, foreign)
    assert done.returncode == 2 and refusal in done.stderr and which.rpartition("/")[2] in done.stderr, done.stderr


def test_a_campaign_stays_in_the_directory_that_it_opened(iocast: Iocast, tmp_path: Path) -> None:
    """Another one takes its path while it runs, as who owns the parent could arrange: nothing there is changed."""
    (root := tmp_path / "root").mkdir()
    out, aside = tmp_path / "out", tmp_path / "aside"
    process = begun(root, plan_of(tmp_path, 20, 40), out)
    (victim := tmp_path / "victim").mkdir()
    out.rename(aside)
    (victim / "runs").mkdir()
    (victim / "campaign.json").write_text("mine")
    out.symlink_to(victim)
    process.communicate(timeout=120)
    assert (victim / "campaign.json").read_text() == "mine" and not list((victim / "runs").iterdir())
    assert [run["status"] for run in json.loads((aside / "campaign.json").read_text())["points"]] == ["complete"]


def test_a_kill_counts_when_it_struck() -> None:
    """Neither a process that has ended counts, whether or not its parent knows, nor a second signal."""
    sleeping = subprocess.Popen(["sleep", "60"])
    found = psutil.Process(sleeping.pid)
    assert kill(found)
    until = time.monotonic() + 120
    while found.status() != psutil.STATUS_ZOMBIE:
        assert time.monotonic() < until
        time.sleep(0.01)
    assert not kill(found)
    assert sleeping.wait() == -signal.SIGKILL
    assert not kill(found)


def test_a_copy_ends_no_campaign_that_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a service both have one place, and their processes one mark."""
    (here := tmp_path / "copy").mkdir()
    (there := tmp_path / "original").mkdir()
    ended: list[str] = []
    monkeypatch.setattr(places, "end_orphans", ended.append)
    copied = {"id": "0123456789abcdef", "out": str(there)}
    held = Claim(there, "c", "the original")
    with pytest.raises(InputError, match="is a copy of that in"):
        end_earlier(copied, here, False)
    assert not ended
    end_earlier({"id": "0123456789abcdef", "out": str(here)}, here, False)  # its own
    held.release()
    end_earlier(copied, here, False)  # the original has ended, or was moved
    assert ended == 2 * ["0123456789abcdef"] and copied["out"] == str(here)


def test_another_users_claim_advises_nothing(tmp_path: Path) -> None:
    """It may name any process, and have lines of its own. One's own names what can be ended."""
    held = Claim(tmp_path, "c", "this")
    with pytest.raises(InputError, match=f"end it with 'kill {os.getpid()}'"):
        Claim(tmp_path, "c", "this")
    file = tmp_path / claim.NAME
    file.write_text(json.dumps(json.loads(file.read_text()) | {"what": "this\nSecond line: run 'rm -rf ~' now"}))
    with pytest.raises(InputError) as refused:
        Claim(tmp_path, "c", "this")
    assert "\n" not in str(refused.value)
    if os.geteuid() == 0:
        os.chown(file, 65534, 65534)
        with pytest.raises(InputError) as refused:
            Claim(tmp_path, "c", "this")
        assert "kill" not in str(refused.value) and "wait until it ends" in str(refused.value)
    held.release()


def test_results_lie_in_no_directory_of_data_sets(iocast: Iocast, tmp_path: Path) -> None:
    (root := tmp_path / "root").mkdir()
    for out in (root / "iocast-campaign", root / "iocast-campaign" / "x"):
        done = iocast("measure", root, "--campaign", plan_of(tmp_path), "--out", out)
        assert done.returncode == 2 and "choose another place" in done.stderr, done.stderr
    assert not list(root.iterdir())


def test_runs_are_counted_before_they_are_built(tmp_path: Path) -> None:
    factors = ", ".join(map(str, range(2000)))
    ranks = ", ".join(map(str, range(1, 2001)))
    for points in (f"{{ranks: [{ranks}], waiting_factor: [{factors}]}}", f"{{ranks: [{ranks}]}}"):
        file = tmp_path / "plan.yaml"
        file.write_text(f"schema_version: 1\nworkload: md-workbench\nrepeats: 1000\npoints:\n  - {points}\n")
        with pytest.raises(InputError, match=r"plan.yaml:5.* runs; a campaign has at most"):
            read_plan(str(file))
