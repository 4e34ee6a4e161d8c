# SPDX-License-Identifier: Apache-2.0
"""One platform file for all phases of a workload: fitted, forecast and validated phase by phase, with one number for
one question."""

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

from iocast.ground import binaries
from iocast.calibrate.phases import calibrate_phases, chosen_phases
from iocast.calibrate.storage import storage_of
from iocast.calibrate.search import whole_settings
from iocast.campaign.plan import settings_arguments
from iocast.runs.earlier import Earlier
from iocast.errors import InputError
from iocast.ground.files import write_json
from iocast.platforms.fitted import Fitted
from iocast.platforms.documents import dump
from iocast.forecasts.answer import predict
from iocast.runs.run_directory import Run, find_runs, group, measured_phases
from iocast.wording.checked import validation_text
from iocast.wording.forecast import forecast_text
from iocast.validate import validate

RATES = {"file-create": 900.0, "file-stat": 5000.0}
"""Of a node alone."""


def rate(phase: str, nodes: int) -> float:
    return RATES[phase] * nodes / (1 + nodes / 12)


def measured(path: Path, nodes: int) -> Path:
    """A run with 4 ranks on each node, of a tool that counts operations."""
    phases: list[dict[str, Any]] = [{"name": "tree-create", "operations": 1, "seconds": 1.0, "rate": 1.0}]
    phases += [
        {"name": name, "operations": round(10 * rate(name, nodes)), "seconds": 10.0, "rate": rate(name, nodes)}
        for name in RATES
    ]
    phases.append({"name": "file-create-rest", "operations": 0, "seconds": 0.0, "rate": 0.0})
    whole = [
        {"repeat": 0, "errors": 0, "latency": {"stat" if "stat" in p["name"] else "create": {"count": p["operations"]}}}
        | p
        for p in phases
    ]
    workload = {"name": "mdtest", "pattern": "mdtest", "parameters": {"items": 100}}
    place = {"ranks": 4 * nodes, "nodes": nodes, "ranks_per_node": 4}
    path.mkdir(parents=True)
    write_json(
        path / "run.json",
        {
            "schema_version": 1,
            "kind": "run",
            "source": "imported",
            "status": "complete",
            "seed": None,
            "workload": workload,
            "placement": place,
            "phases": whole,
        },
    )
    (path / "latency.hlog").write_text("")
    return path


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    place = tmp_path_factory.mktemp("phases")
    return [measured(place / f"n{nodes}", nodes) for nodes in (1, 2, 4, 8, 16)]


@pytest.fixture(scope="module")
def file(runs: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("fitted") / "fitted.yaml"
    out.write_text(dump(calibrate_phases(runs[:4], chosen_phases(runs[:4], []), "queue", 0, lambda *_: None)))
    return out


def test_all_phases_but_set_up_and_clean_up_are_fitted_once(runs: list[Path], file: Path) -> None:
    assert list(measured_phases(runs)) == list(RATES)
    assert chosen_phases(runs, []) == ["file-stat", "file-create"]  # the one with most operations first
    assert chosen_phases(runs, ["file-create", "file-create"]) == ["file-create"]
    assert Fitted.open(str(file)).phases == ["file-stat", "file-create"]


def test_each_phase_is_forecast_and_judged_by_its_own_fit(runs: list[Path], file: Path) -> None:
    platform = Fitted.open(str(file))
    answer = predict(platform, None, {}, 16)
    assert answer["placement"]["ranks_per_node"] == 4, "as measured"
    document = {one["phase"]: one for one in (answer, *answer["further_phases"])}
    assert list(document) == ["file-stat", "file-create"]
    for phase, one in document.items():
        alone = predict(platform, None, {}, 16, phase=phase)
        assert alone["further_phases"] == []
        assert {key: alone[key] for key in ("quantities", "baselines", "question")} == {
            key: one[key] for key in ("quantities", "baselines", "question")
        }
        assert one["quantities"]["rate"]["value"] == pytest.approx(rate(phase, 16), rel=0.25)
        assert f"phase {phase} " in forecast_text(answer)
    points = [point for phase in platform.phases for point in group(find_runs(runs, phase)[0])]
    validation = validate(platform, points)
    judged = {(p["phase"], p["placement"]["nodes"]): p for p in validation["points"]}
    assert {key: p["role"] for key, p in judged.items()} == {
        (phase, n): "check" if n == 16 else "fit" for phase in RATES for n in (1, 2, 4, 8, 16)
    }
    for phase, one in document.items():
        (row,) = judged[phase, 16]["rows"]
        assert row["forecast"] == one["quantities"]["rate"]["value"]
    given = validate(platform, points, forecasts=[Earlier.of_document(json.loads(json.dumps(answer)))])
    assert [(p["phase"], p["placement"]["nodes"]) for p in given["points"]] == [
        ("file-stat", 16),
        ("file-create", 16),
    ], "no other than the given ones"
    assert given["passed"] and "does not say when it began" in validation_text(given)


def test_results_a_hundred_times_as_large_do_not_pass(runs: list[Path], file: Path) -> None:
    platform = Fitted.open(str(file))
    points = group(find_runs(runs, "file-stat")[0])
    document = json.loads(json.dumps(predict(platform, None, {}, 16, phase="file-stat")))
    assert validate(platform, points, forecasts=[Earlier.of_document(document)])["passed"]
    for printed in document["quantities"].values():
        for end in ("value", "low", "high"):
            printed[end] = printed[end] and 100 * printed[end]
    judged = validate(platform, points, forecasts=[Earlier.of_document(document)])
    assert not judged["passed"]
    assert judged["summary"]["rate_error_median"] > 50 and judged["summary"]["coverage"] == 0


def test_the_fitted_placements_forecast_is_its_fit(file: Path) -> None:
    platform = Fitted.open(str(file))
    for phase in platform.phases:
        own = platform.for_phase(phase)
        for row in own.fitted["fit"]:
            (point,) = [p for p in own.fitted["campaign"]["points"] if p["name"] == row["point"]]
            printed = predict(platform, None, {}, point["nodes"], phase=phase)["quantities"]["rate"]["value"]
            assert printed == pytest.approx(row["forecast"], rel=1e-9)


def test_rates_of_one_workload_are_no_forecast_of_another(file: Path) -> None:
    platform = Fitted.open(str(file))
    for workload in ("postmark", "ior-easy", "mdtest-easy"):
        with pytest.raises(
            InputError, match=f"rates of the phase file-stat alone; what operations of {workload} take is not known"
        ):
            predict(platform, workload, {}, 2)
    assert predict(platform, "mdtest", {}, 2)["quantities"] == predict(platform, None, {}, 2)["quantities"]


def test_what_was_not_fitted_is_refused(
    runs: list[Path], file: Path, iocast: Callable[..., CompletedProcess[str]], tmp_path: Path
) -> None:
    with pytest.raises(InputError, match="tree-remove"):
        predict(Fitted.open(str(file)), None, {}, 4, phase="tree-remove")
    refused = iocast("validate", file, *runs, "--phase", "file-stta")
    assert refused.returncode == 2 and "Did you mean 'file-stat'" in refused.stderr
    (tmp_path / "other").mkdir()
    write = {"name": "write", "repeat": 0, "seconds": 5.0, "operations": 5, "errors": 0, "rate": 1.0, "latency": {}}
    write_json(tmp_path / "other" / "run.json", json.loads((runs[0] / "run.json").read_text()) | {"phases": [write]})
    with pytest.raises(InputError, match="No phase is in all of these runs"):
        measured_phases([runs[0], tmp_path / "other"])


def test_order_and_names_of_files_change_nothing(runs: list[Path], file: Path, tmp_path: Path) -> None:
    renamed = [shutil.copytree(run, tmp_path / name) for run, name in zip(reversed(runs[:4]), "dbca", strict=True)]
    other = tmp_path / "another name.yaml"
    other.write_text(dump(calibrate_phases(renamed, ["file-create"], "queue", 0, lambda *_: None)))
    a, b = Fitted.open(str(file)).for_phase("file-create"), Fitted.open(str(other))
    assert a.fitted["parameters"] == b.fitted["parameters"]
    assert predict(a, None, {}, 64)["quantities"] == predict(b, None, {}, 64)["quantities"]


def test_a_table_of_several_phases_is_one_platform_and_one_answer(
    iocast: Callable[..., CompletedProcess[str]], tmp_path: Path
) -> None:
    """A table has a run for each line. No option is needed, and `iocast forecast` gives the same numbers."""
    lines = [f"{n},4,{rate(phase, n)},{phase},create" for n in (1, 2, 4, 8) for phase in RATES]
    table, series, out = tmp_path / "table.csv", tmp_path / "series", tmp_path / "fitted.yaml"
    table.write_text("\n".join(["nodes,ppn,rate,phase,operation", *lines, ""]))
    assert iocast("import", table, "--out", series).returncode == 0
    done = iocast("calibrate", series, "--out", out, "--workers", "1")
    assert done.returncode == 0, done.stderr
    fitted = Fitted.open(str(out))
    assert sorted(fitted.phases) == sorted(RATES)
    done = iocast("forecast", table, "--nodes", "16", "--out", tmp_path / "all", "--json", "--workers", "1")
    assert done.returncode == 0, done.stderr
    by_phase = {one["phase"]: one["forecasts"][0] for one in json.loads(done.stdout)["phases"]}
    assert sorted(by_phase) == sorted(RATES)
    for phase, one in by_phase.items():
        alone = json.loads(json.dumps(predict(fitted, None, {}, 16, phase=phase)))
        assert (alone["quantities"], alone["question"]) == (one["quantities"], one["question"])


@pytest.mark.parametrize(
    ("environment", "latency", "families"),
    [
        ({"filesystem": {"type": "ext2/ext3"}}, True, ["local"]),
        ({"filesystem": {"type": "tmpfs"}}, True, ["local"]),
        ({"filesystem": {"type": "lustre"}}, True, ["lustre"]),
        ({"filesystem": {"type": "ceph"}}, True, ["cephfs"]),
        ({"filesystem": {"type": "nfs4"}}, True, ["nfs"]),
        ({"filesystem": {"type": "nfs4", "client": "libnfs"}}, True, ["network"]),
        ({"filesystem": {"type": "fuse.glusterfs"}}, True, ["fuse"]),
        ({"service": {"type": "CephFS"}}, True, ["cephfs"]),
        ({"service": {"type": "S3"}}, True, ["service"]),
        ({"filesystem": {"type": "gpfs"}}, True, ["network", "lustre"]),
        ({"filesystem": {"type": "wekafs"}}, True, ["network", "lustre"]),
        ({"filesystem": {"type": "unknown"}}, True, ["network", "lustre"]),
        ({}, True, ["network", "lustre"]),
        ({"filesystem": {"type": "lustre"}}, False, ["queue"]),
    ],
)
def test_without_a_platform_the_measured_file_systems_family_is_fitted(
    environment: dict[str, Any], latency: bool, families: list[str], runs: list[Path], tmp_path: Path
) -> None:
    run = shutil.copytree(runs[0], tmp_path / "run")
    document = json.loads((run / "run.json").read_text()) | {"environment": environment}
    if latency:
        for phase in document["phases"]:
            for one in phase["latency"].values():
                one |= {"mean": 1e-3, **dict.fromkeys(("min", "q25", "q50", "q75", "q95", "q99", "q999", "max"), 1e-3)}
    write_json(run / "run.json", document)
    points = group(find_runs([run], "file-stat")[0])
    storage = storage_of(points)
    assert storage.families == tuple(families)
    # Nothing says whether a further node brings storage where neither the storage nor two numbers of nodes tell.
    if len(families) > 1 or families == ["service"]:
        with pytest.raises(InputError, match="There is no value for 40 nodes: all measurements ran on 1 node"):
            storage.require_nodes(points, 40)
    else:
        storage.require_nodes(points, 40)
    storage.require_nodes(points, 1)


def test_a_mix_is_simulated_with_its_members(simulator: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A calibration simulates the run's own workload: members with their workloads, shares and sizes."""
    monkeypatch.setenv("IOCAST_BUILD", str(simulator.parents[1]))
    members = {
        "small.workload": "md-workbench", "small.datasets": "1", "small.objects": "20", "small.iterations": "20",
        "mail.workload": "postmark", "mail.number": "20", "mail.transactions": "40", "mail.ranks": "1",
    }  # fmt: skip
    command = [simulator, "--platform", "local", "--ppn", "3", "--workload", "mix", "--out", tmp_path / "run"]
    subprocess.run([*command, *settings_arguments(members)], check=True, capture_output=True)
    run = Run(tmp_path / "run")
    settings = whole_settings(run)
    assert members.items() <= settings.items()
    again = binaries.simulate("local", "mix", settings, 1, 3, 0)
    assert [p["operations"] for p in again["phases"] if p["name"] == "benchmark"] == [run.phases[0].operations]


def test_a_mix_whose_lone_rank_does_other_phases_is_not_fitted_to_their_clean_up(tmp_path: Path) -> None:
    """A lone rank of a mix is one of its members; what it has in common with more ranks says nothing of the mix."""
    simulator, workload = binaries.find("iocast-sim"), "mix-small-files-and-stream"
    small = ("small.datasets=2", "small.objects=5", "small.iterations=5", "stream.per_process=4MiB")
    settings = [word for one in small for word in ("--set", one)]
    places = [tmp_path / str(ranks) for ranks in (1, 4)]
    for place in places:
        command = [simulator, "--platform", "lustre", "--workload", workload, "--ppn", place.name, *settings]
        subprocess.run([*command, "--nodes", "1", "--out", str(place)], check=True, capture_output=True)
    with pytest.raises(InputError, match=r"'1' has benchmark; '4' has benchmark\+write.*A mix with fewer ranks"):
        chosen_phases(places, [])
    assert chosen_phases(places[1:], [])[0] == "benchmark+write"
    assert chosen_phases(places, ["cleanup"]) == ["cleanup"]
