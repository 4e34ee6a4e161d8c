# SPDX-License-Identifier: Apache-2.0
"""Bad input: exit code 2, one finished sentence that names the thing, and nothing touched."""

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from bench_runs import MANIFEST, SMALL, Run, expect_refusal, tree

pytestmark = pytest.mark.usefixtures("launch_check")

BAD_OPTIONS = [
    (["--set", "objets=3"], "'objets'", "objects"),
    (["--set", "object_size=3901"], "'3901'", "unit"),
    (["--set", "object_size=3901X"], "'3901X'", "unit"),
    (["--set", "objects=-1"], "'objects'", "between"),
    (["--set", "objects=1.5"], "'1.5'", "whole number"),
    (["--set", "objects"], "'objects'", "name=value"),
    (["--set", "iterations=21"], "21", "20"),
    (["--set", "phases=precreat"], "'precreat'", "precreate"),
    (["--workload", "md-workbanch"], "'md-workbanch'", "md-workbench"),
    (["--workload", "none.yaml"], "none.yaml", "read"),
    (["--backend", "posic"], "'posic'", "posix"),
    (["--posix.rot", "x"], "--posix.rot", "--posix.root"),
    (["--dummy.delay", "1ms"], "--dummy.delay", "--backend dummy"),
    (["--backend", "dummy", "--dummy.delay", "1"], "--dummy.delay", "unit"),
    (["--backend", "dummy", "--dummy.fail", "create"], "'create'", "create:100"),
    (["--seed", "one"], "'one'", "whole number"),
    (["stray"], "'stray'", "option"),
    (["--list", "backend"], "'backend'", "backends"),
    (["--describe", "posixx"], "'posixx'", "posix"),
]


@pytest.mark.parametrize("options, thing, hint", BAD_OPTIONS, ids=[" ".join(case[0]) for case in BAD_OPTIONS])
def test_bad_options(run: Run, root: Path, tmp_path: Path, options: list[str], thing: str, hint: str) -> None:
    posix = [] if "dummy" in options else ["--posix.root", str(root)]
    done = run(*SMALL, *posix, "--out", str(tmp_path / "out"), *options, ranks=2)
    expect_refusal(done, thing, hint)
    assert list(root.iterdir()) == []
    assert not (tmp_path / "out").exists()


def test_yaml_errors_have_a_place(run: Run, root: Path, tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("schema_version: 1\npattern: md-workbench\nparameters:\n  objets: 3\n")
    done = run("--workload", str(file), "--posix.root", str(root), ranks=2)
    expect_refusal(done, "mine.yaml:4", "'objets'", "objects")


@pytest.fixture
def bad_place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Path, list[str]]]:
    """A place that can't be used, and words that the refusal must have."""
    kind = request.param
    place = tmp_path / "place"
    words = [str(place)]
    if kind == "missing":
        words += ["does not exist; make it first."]
    elif kind == "file":
        place.write_text("precious")
        words += ["not a directory"]
    elif kind == "not empty":
        place.mkdir()
        (place / "precious").write_text("precious")
        words += ["not empty", MANIFEST]
    elif kind == "broken manifest":
        place.mkdir()
        (place / MANIFEST).write_text("{")
        words += [MANIFEST]
    elif kind == "newer manifest":
        place.mkdir()
        (place / MANIFEST).write_text('{"schema_version": 2}')
        words += ["version is 2"]
    elif kind == "read-only":
        place.mkdir()
        words += ["can't be written to"]
        if os.geteuid() == 0:  # root may write anywhere but on a read-only mount
            subprocess.run(["mount", "-t", "tmpfs", "-o", "ro,size=1m", "none", place], check=True)
        else:
            place.chmod(0o555)
    elif kind in ("full", "few inodes"):
        place.mkdir()
        words += ["free"]
        limits = "size=128k" if kind == "full" else "size=64m,nr_inodes=10"
        subprocess.run(["mount", "-t", "tmpfs", "-o", limits, "none", place], check=True)
    try:
        yield place, words
    finally:
        if kind in ("read-only", "full", "few inodes") and os.geteuid() == 0:
            subprocess.run(["umount", place], check=True)


PLACES = ["missing", "file", "not empty", "broken manifest", "newer manifest"]
NEEDS_MOUNTS = pytest.mark.needs("mounts")
PLACES += [pytest.param(kind, marks=NEEDS_MOUNTS) for kind in ("full", "few inodes")]
PLACES += [pytest.param("read-only", marks=[NEEDS_MOUNTS] if os.geteuid() == 0 else [])]  # others can't write to 0555


@NEEDS_MOUNTS
def test_results_without_room_leave_nothing_in_their_way(run: Run, root: Path, tmp_path: Path) -> None:
    """The same command measures once there is room."""
    (full := tmp_path / "full").mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=128k", "none", full], check=True)
    try:
        command = [*SMALL, "--posix.root", str(root), "--out", str(full / "out")]
        done = run(*command)
        assert done.code == 1 and "no room for the results" in done.messages[0], done.err
        assert list(full.iterdir()) == [] == list(root.iterdir())
        subprocess.run(["mount", "-o", "remount,size=4m", full], check=True)
        assert run(*command).code == 0
    finally:
        subprocess.run(["umount", full], check=True)


@pytest.mark.parametrize("bad_place", PLACES, indirect=True)
def test_bad_places(run: Run, bad_place: tuple[Path, list[str]], tmp_path: Path) -> None:
    place, words = bad_place
    before = tree(tmp_path)
    done = run(*SMALL, "--posix.root", str(place), "--out", str(tmp_path / "out"), ranks=2)
    expect_refusal(done, *words)
    assert tree(tmp_path) == before
    assert not (tmp_path / "out").exists()


def test_a_place_is_needed(run: Run) -> None:
    expect_refusal(run(*SMALL, ranks=2), "--posix.root")


def test_an_output_directory_that_exists_is_refused_before_anything_happens(
    run: Run, root: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    expect_refusal(run(*SMALL, "--posix.root", str(root), "--out", str(out), ranks=2), str(out), "exists")
    assert list(root.iterdir()) == [] and list(out.iterdir()) == []


@pytest.mark.parametrize("option", ["--out", "--dump-ops"])
def test_an_output_directory_within_the_root_is_refused(run: Run, root: Path, option: str) -> None:
    inside = root / "deep" / "out"
    expect_refusal(run(*SMALL, "--posix.root", str(root), option, str(inside)), option, str(inside), str(root))
    assert list(root.iterdir()) == []


MISMATCHES = [
    (["datasets=3", "phases=benchmark"], 2, ["datasets = 2 (requested: 3)"]),
    (["object_size=1kB", "phases=cleanup"], 2, ["object_size = 3901 (requested: 1000)"]),
    (["phases=benchmark"], 3, ["ranks = 2 (requested: 3)"]),
    (["start_index=5", "phases=benchmark"], 2, ["start_index = 0", "start_index = 5"]),
    (["phases=precreate"], 2, ["holds a data set already", "phases=cleanup"]),
    ([], 2, ["holds a data set already", "leave precreate out of the phases"]),
]


@pytest.fixture(scope="module")
def data_set(
    bench: Path,
    mpirun: Callable[[int], list[str]],
    mpi_environment: dict[str, str],
    tmp_path_factory: pytest.TempPathFactory,
) -> Path:
    """A data set of two ranks that no test may change."""
    directory = tmp_path_factory.mktemp("data-set")
    command = [*mpirun(2), str(bench), *SMALL, "--posix.root", str(directory), "--set", "phases=precreate"]
    subprocess.run(command, check=True, capture_output=True, env=mpi_environment)
    return directory


@pytest.mark.parametrize(
    "settings, ranks, words", MISMATCHES, ids=[" ".join(case[0]) or "all phases" for case in MISMATCHES]
)
def test_a_data_set_that_does_not_match(
    run: Run, data_set: Path, settings: list[str], ranks: int, words: list[str]
) -> None:
    before = tree(data_set)
    sets = [part for setting in settings for part in ("--set", setting)]
    expect_refusal(run(*SMALL, *sets, "--posix.root", str(data_set), ranks=ranks), str(data_set), *words)
    assert tree(data_set) == before


@pytest.mark.parametrize("phases", ["benchmark", "cleanup", "benchmark,cleanup"])
def test_no_data_set(run: Run, root: Path, phases: str) -> None:
    done = run(*SMALL, "--set", f"phases={phases}", "--posix.root", str(root), ranks=2)
    expect_refusal(done, str(root), "phases=precreate")
