# SPDX-License-Identifier: Apache-2.0
"""mdtest and source-tree on real directories: nested datasets, stat of directories, ranks that go on with what others
made."""

import json
from pathlib import Path

import pytest
from bench_runs import MANIFEST, Run, counts, expect_refusal, settings_arguments, total_counts

pytestmark = pytest.mark.usefixtures("launch_check")


@pytest.mark.parametrize("ranks", [1, 3])
@pytest.mark.parametrize(
    ("workload", "given"),
    [
        ("mdtest", "items=12 depth=2 branching=2 leaf_only=true write_size=5B read_size=5B stride=1 iterations=2"),
        ("mdtest", "items=6 unique_directory=true stride=1 random_order=true write_size=100B read_size=60B sync=true"
            " depth=1 branching=2"),
        ("source-tree", "directories=9 files=50 sources=15 headers=6 visits=4 pause=1us copies=2"
            " phases=make,chill,list,stat,browse,compile,remove"),
        ("source-tree", "tree=shared split=true directories=9 files=50 sources=15 headers=6 visits=4 pause=1us"
            " phases=make,list,browse,compile,remove"),
    ],
)  # fmt: skip
def test_trees_are_made_used_and_removed(run: Run, root: Path, workload: str, given: str, ranks: int) -> None:
    chosen = ["--workload", workload, *settings_arguments(given), "--json"]
    plan = run(*chosen, "--dry-run", ranks=ranks).json["footprint"]["operations"]
    done = run(*chosen, "--posix.root", str(root), ranks=ranks)
    assert done.code == 0, done.err
    assert total_counts(done.json) == {op: count for op, count in plan.items() if op != "think"}
    assert all(phase["errors"] == 0 for phase in done.json["phases"])
    assert list(root.iterdir()) == []


LIMITED = [
    "--workload",
    "mdtest",
    *settings_arguments("items=1000000 files_only=true stride=1 write_size=10B read_size=10B most_seconds=50ms"),
]


@pytest.fixture
def on_posix(root: Path) -> list[str]:
    # The dry count of a million files a rank doesn't fit everywhere, but 50 ms do.
    return [*LIMITED, "--posix.root", str(root), "--json"]


def test_after_a_time_limit_every_rank_has_made_as_many_as_the_furthest(
    run: Run, on_posix: list[str], root: Path
) -> None:
    done = run(*on_posix, ranks=3)
    assert done.code == 0, done.err
    by_name = {phase["name"]: phase for phase in done.json["phases"]}
    made = counts(by_name["file-create"]).get("create", 0) + counts(by_name["file-create-rest"]).get("create", 0)
    assert by_name["file-create"]["cut_ranks"] == 3
    assert made > 0 and made % 3 == 0
    for phase, op in (("file-stat", "stat"), ("file-read", "read"), ("file-remove", "unlink")):
        assert counts(by_name[phase]) == {op: made}
        assert by_name[phase]["errors"] == 0
    assert list(root.iterdir()) == []


def test_a_time_limit_that_is_over_with_the_last_operation_cuts_that_phase_only(run: Run) -> None:
    one = [
        "--workload",
        "mdtest",
        *settings_arguments("items=1 files_only=true write_size=10B read_size=10B most_seconds=50ms"),
        "--backend",
        "dummy",
    ]
    done = run(*one, "--dummy.delay", "200ms", "--json")
    assert done.code == 0, done.err
    made, rest, looked = done.json["phases"][1:4]
    assert [made["name"], rest["name"], looked["name"]] == ["file-create", "file-create-rest", "file-stat"]
    assert made["cut_ranks"] == 1 and counts(made)["create"] == 1 and counts(rest) == {} and counts(looked)["stat"] == 1


def test_later_runs_know_how_many_a_time_limit_left(run: Run, on_posix: list[str], root: Path) -> None:
    assert run(*on_posix, "--set", "phases=create", ranks=2).code == 0
    manifest = json.loads((root / MANIFEST).read_text())
    each = manifest["position"]["items_made"]
    assert manifest["state"] == "ready" and 0 < each < 1_000_000
    assert len(list((root / "mdtest_tree.0-0.0").iterdir())) == 2 * each
    expect_refusal(run(*on_posix, ranks=2), "leave create out of the phases", "phases=remove")
    done = run(*on_posix, "--set", "phases=stat,read", ranks=2)
    assert done.code == 0 and total_counts(done.json) == {"stat": 2 * each, "read": 2 * each}
    assert run(*on_posix, "--set", "phases=remove", ranks=2).code == 0
    assert list(root.iterdir()) == []


def test_a_missing_directory_is_named(run: Run, root: Path) -> None:
    base = [
        "--workload",
        "mdtest",
        *settings_arguments("items=3 directories_only=true"),
        "--posix.root",
        str(root),
        "--json",
    ]
    assert run(*base, "--set", "phases=create").code == 0
    (root / "mdtest_tree.0-0.0" / "dir.mdtest.1").rmdir()
    done = run(*base, "--set", "phases=stat")
    assert done.code == 1
    assert done.json["phases"][0]["errors_by_operation"] == {"stat": 1}
    assert len(done.messages) == 1 and "'mdtest_tree.0-0.0/dir.mdtest.1'" in done.messages[0]
