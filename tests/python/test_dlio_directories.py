# SPDX-License-Identifier: Apache-2.0
"""Output directories of DLIO: what single accelerators wrote, and files that are not of one run."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from iocast.errors import InputError
from iocast.importers import import_files
from iocast.importers.series import import_series

SAMPLES = Path(__file__).resolve().parents[1] / "samples" / "dlio"


def imported(directory: Path, out: Path) -> Any:
    (made,) = import_series([directory], out)
    return json.loads((made / "run.json").read_text())


def copy(name: str, place: Path) -> Path:
    return Path(shutil.copytree(SAMPLES / name, place / name))


def change(file: Path, edit: Callable[[Any], Any]) -> None:
    document = json.loads(file.read_text())
    edit(document)
    file.write_text(json.dumps(document, indent=1))


def test_numbers_of_single_accelerators_agree_with_the_summary(tmp_path: Path) -> None:
    """Computation over time, samples over time and the steps' number are in both, each by its own way."""
    for name in ("training-2023", "training-2.0"):
        for phase in imported(SAMPLES / name, tmp_path / name)["phases"]:
            of = phase["accelerators"]
            assert of["utilisation"] == pytest.approx(of["compute_seconds"] / of["count"] / phase["seconds"])
            assert phase["operations"] / phase["seconds"] == pytest.approx(phase["rate"], rel=0.03)
            assert phase["latency"]["load"]["count"] == 8
            assert phase["seconds"] == pytest.approx(max(phase["rank_seconds"]), rel=0.15)


def test_a_directory_without_summary_has_the_same_utilisation_and_rate(tmp_path: Path) -> None:
    place = copy("training-2023", tmp_path)
    whole = imported(place, tmp_path / "whole")
    (place / "summary.json").unlink()
    alone = imported(place, tmp_path / "alone")
    for key in ("samples_per_second", "utilisation_after_first_step", "compute_seconds", "stall_share"):
        for one, other in zip(whole["phases"], alone["phases"], strict=True):
            assert one["accelerators"].get(key) == pytest.approx(other["accelerators"].get(key)), key
    assert alone["placement"]["ranks"] == 2 and alone["environment"] == {"hosts": ["node1"]}


def test_a_checkpoint_stalls_for_its_share_of_the_time(tmp_path: Path) -> None:
    first, second = imported(SAMPLES / "training-2023", tmp_path / "run")["phases"]
    assert "stall_share" not in first["accelerators"]
    assert second["accelerators"]["stall_share"] == pytest.approx(0.75 / (0.75 + second["seconds"]))


def test_each_checkpoint_is_a_phase_with_the_slowest_accelerators_time(tmp_path: Path) -> None:
    run = imported(SAMPLES / "checkpoint-2025", tmp_path / "run")
    found = [(one["name"], one["repeat"], one["seconds"], one["rank_seconds"]) for one in run["phases"]]
    assert found == [
        ("checkpoint", 1, 8, [8, 7.875]), ("checkpoint", 2, 7.5, [7.5, 7.375]),
        ("restore", 1, 4, [4, 3.875]), ("restore", 2, 4.25, [4.25, 4.125]),
    ]  # fmt: skip
    assert all(one["bytes_per_second"] == pytest.approx(24.5 * 2**30 / one["seconds"]) for one in run["phases"])
    assert run["workload"]["parameters"]["workload"] == "llama3-8b"


def test_times_of_steps_alone_are_steps(tmp_path: Path) -> None:
    run = imported(SAMPLES / "training-2022", tmp_path / "run")
    assert [(one["operations"], one["seconds"], one["rate"]) for one in run["phases"]] == [(6, 4.25, 6 / 4.25)] * 2
    assert "an operation is a step" in run["imported"]["missing"]["phases[].accelerators.samples_per_second"]


def test_a_missing_accelerator_leaves_the_summary(tmp_path: Path) -> None:
    place = copy("training-2023", tmp_path)
    (place / "1_output.json").unlink()
    run = imported(place, tmp_path / "run")
    assert any("lacks 1_output.json" in one and "1 of 2 accelerators" in one for one in run["warnings"])
    assert all("compute_seconds" not in one["accelerators"] and not one["latency"] for one in run["phases"])


def of_two_runs(place: Path) -> list[tuple[str, Callable[[], Any]]]:
    """Sentences of refusals, each with the damage that causes it."""
    first, third, summary = place / "0_output.json", place / "2_output.json", place / "summary.json"
    stats = place / "per_epoch_stats.json"
    return [
        ("2_output.json:1: this is the output of accelerator 2", lambda: shutil.copy(first, third)),
        ("1_output.json is missing, and 2_output.json", lambda: [
            summary.unlink(), shutil.move(place / "1_output.json", third)]),
        ("it has 1 epoch, 1_output.json has 2", lambda: change(first, lambda d: d.pop("2"))),
        ("of different runs", lambda: change(first, lambda d: d["1"]["au"].update(block1=50.0))),
        ("the utilisation of epoch 1 is 150 %", lambda: change(first, lambda d: d["1"]["au"].update(block1=150.0))),
        ("no list of seconds", lambda: change(first, lambda d: d["1"]["proc"].update(block1=[1, 2, "x", 4]))),
        ("has 3 steps (proc) and computes in 4", lambda: change(first, lambda d: d["1"]["proc"]["block1"].pop())),
        ("has no times of its steps", lambda: change(first, lambda d: d["1"].pop("load"))),
        ("not whole JSON", lambda: first.write_text(first.read_text()[:500])),
        ("has no end: the run did not finish", lambda: change(stats, lambda d: d["2"]["block1"].pop("end"))),
        ("has the time 'noon'", lambda: change(stats, lambda d: d["1"]["block1"].update(start="noon"))),
        ("ends before it begins", lambda: change(stats, lambda d: d["1"]["block1"].update(end="2020-01-01T00:00:00"))),
        ("times of 1 epoch", lambda: change(stats, lambda d: d.pop("2"))),
        ("summary.json is there, too", lambda: shutil.copy(summary, place / "1_summary.json")),
        ("it is of 8 accelerators", lambda: (place / "training_metadata.json").write_text('{"num_processes": 8}')),
    ]  # fmt: skip


@pytest.mark.parametrize("number", range(15))
def test_what_is_not_of_one_run_is_refused_with_file_and_reason(number: int, tmp_path: Path) -> None:
    place = copy("training-2023", tmp_path)
    sentence, damage = of_two_runs(place)[number]
    damage()
    with pytest.raises(InputError) as refused:
        import_files([place], tmp_path / "run")
    assert sentence in str(refused.value) and str(place) in str(refused.value) and str(refused.value).endswith(".")
    assert len(of_two_runs(place)) == 15


def test_an_output_alone_names_its_directory() -> None:
    with pytest.raises(InputError, match="the output of one accelerator; name the directory"):
        import_files([SAMPLES / "training-2023" / "0_output.json"], Path("out"))


@pytest.mark.parametrize("content", ["{}", "[]", '{"num_accelerators": 2}'])
def test_a_summary_without_results_is_named(tmp_path: Path, content: str) -> None:
    """It counts as absent: the numbers are those of the accelerators' outputs."""
    place = copy("training-2023", tmp_path)
    (place / "summary.json").unlink()
    absent = imported(place, tmp_path / "absent")
    (place / "summary.json").write_text(content)
    found = imported(place, tmp_path / "found")
    further = [one for one in found["warnings"] if one not in absent["warnings"]]
    assert len(further) == 1 and "summary.json has no results" in further[0]
    assert [p["accelerators"] for p in found["phases"]] == [p["accelerators"] for p in absent["phases"]]
