# SPDX-License-Identifier: Apache-2.0
"""Edits name what a platform has: every misspelt name is refused with the nearest one, by `predict --edit` and by
studies alike."""

from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest
import yaml
from study_inputs import changed, write

from iocast.ground import binaries
from iocast.calibrate.phases import calibrate_phases
from iocast.platforms.content import whole
from iocast.errors import InputError
from iocast.platforms.fitted import Fitted
from iocast.platforms.platform_names import UNKNOWN_KEY, check_edits, known_paths, missing
from iocast.platforms.documents import PLATFORMS, Document, get_path
from iocast.forecasts.answer import predict
from iocast.study import run_study
from iocast.jobs.workers import Workers

PLATFORM_NAMES = ("lustre", "local", "ime")


def refused(document: Document) -> Document:
    error = InputError("Nothing has such a key.")
    error.code = UNKNOWN_KEY
    raise error


@pytest.mark.parametrize("name", PLATFORM_NAMES)
def test_every_misspelt_name_is_refused_with_the_right_one(name: str, simulator: Path) -> None:
    """Each name on the way to each value gets a letter too many, or capitals."""
    document = whole({"extends": name})
    known = known_paths(document, binaries.resolve_platform(PLATFORMS / f"{name}.yaml"))
    assert len(known) > 20
    for path in sorted(known):
        assert missing(path, known, document, refused, 1) is None
        parts = path.split(".")
        for number, part in enumerate(parts):
            if part.isdigit():
                continue
            for wrong in (f"{part}x", part.upper()):
                misspelt = ".".join([*parts[:number], wrong, *parts[number + 1 :]])
                if misspelt in known:
                    continue
                why = missing(misspelt, known, document, refused, 1)
                assert why is not None, misspelt
                near = why.partition("'")[2].partition("'")[0]
                assert near in known, (misspelt, why)


@pytest.mark.parametrize(
    ("edit", "value", "near"),
    [
        ("stations.MDS.servers", 32, "stations.mds.servers"),
        ("limits.rpc.slots", 64, "limits.rpcs.slots"),
        ("stations.mds.threads", 32, "stations.mds.servers"),
        ("stations.mds.cores", 32, "stations.mds.servers"),
        ("stations.mds.nodes", 2, "stations.mds.count"),
        ("stations.mds.discpline", "ps", "stations.mds.discipline"),
        ("demands.getatr", "5us", "demands.getattr"),
        ("network.latencies", "5us", "network.latency"),
        ("station.mds.servers", 3, "stations.mds.servers"),
        ("operations.stat.7.station", "mds", "operations.stat"),
    ],
)
def test_an_edit_of_what_is_not_there_is_refused(edit: str, value: object, near: str) -> None:
    with pytest.raises(InputError, match=f"--edit {edit}={value}: the platform 'lustre' has nothing at .* '{near}"):
        check_edits(Fitted.open("lustre", [(edit, value)]))


@pytest.mark.parametrize("before", [[], [("stations.mds.servers", 32)]])
@pytest.mark.parametrize(
    ("edit", "value", "why"),
    [
        ("stations.mds.servers", 0, "0 is outside its range"),
        ("network.node_bandwidth", 50, "'50' lacks a unit"),
        ("operations.stat", [{"station": "nowhere"}], "there is no station 'nowhere'"),
    ],
)
def test_what_an_edit_breaks_is_the_edits_fault_and_not_the_files(
    before: list[tuple[str, object]], edit: str, value: object, why: str
) -> None:
    with pytest.raises(InputError) as refused:
        check_edits(Fitted.open("lustre", [*before, (edit, value)]))
    assert str(refused.value).startswith("--edit ")
    assert f"in {edit}" in str(refused.value) and why in str(refused.value)
    assert ".yaml" not in str(refused.value)


def test_a_section_without_entries_is_called_empty() -> None:
    with pytest.raises(InputError, match="nothing at 'background.jobs.rate'. Its 'background' is empty.$"):
        check_edits(Fitted.open("lustre", [("background.jobs.rate", "2/s")]))


@pytest.mark.parametrize("edit", ["demands.ost_read.mean", "demands.cached_write"])
def test_an_edit_of_what_no_route_uses_is_refused(edit: str) -> None:
    """The burst buffer's family has a time of its object servers that no operation of its own ever takes."""
    with pytest.raises(InputError, match=f"no operation of the platform 'ime' uses '{edit}'"):
        check_edits(Fitted.open("ime", [(edit, "5ms")]))
    check_edits(Fitted.open("lustre", [(edit, "5ms")]))


def test_edits_of_what_is_there_reach_the_platform() -> None:
    """Also where only a family that is extended writes it, where it is a default, an entry of a route, or a whole new
    part."""
    edits = [
        ("stations.mds.servers", 3), ("stations.oss.speed", 2.0), ("demands.getattr.scale", 2),
        ("locks.directory.hand_over", "1us"),
        ("network.latency", "9us"), ("operations.stat.0.station", "mds"),
        ("stalls.second", {"station": "mds", "every": "1s", "length": "1ms", "operations": ["stat"]}),
        ("stalls.second.length", "2ms"),
    ]  # fmt: skip
    platform = Fitted.open("lustre", edits)
    check_edits(platform)
    document = platform.best()
    for path, value in edits[:-2] + edits[-1:]:
        assert get_path(document, path) == value, path
    assert "commit" not in Fitted.open("lustre", [("stalls.commit", None)]).best()["stalls"]


@pytest.mark.parametrize(
    ("stations", "edit", "whose"),
    [
        ("{}", "stations.mds.servers=many", "--edit stations.mds.servers=many: in stations.mds.servers"),
        ("{mds: {servers: many}}", "stations.mds.servers=3", "FILE:1: in stations.mds.servers"),
    ],
)
def test_the_edit_or_the_users_file_is_named_and_no_temporary_one(
    stations: str, edit: str, whose: str, iocast: Callable[..., CompletedProcess[str]], tmp_path: Path
) -> None:
    file = tmp_path / "site.yaml"
    file.write_text(f"{{schema_version: 1, extends: lustre, stations: {stations}}}")
    done = iocast("predict", file, "--solver", "analytic", "--edit", edit)
    assert done.returncode == 2
    assert whose.replace("FILE", str(file)) in done.stderr
    assert "candidate" not in done.stderr and "iocast-" not in done.stderr.replace("iocast-sim", "")


def test_a_study_refuses_the_same_names_with_its_line(
    iocast: Callable[..., CompletedProcess[str]], tmp_path: Path
) -> None:
    file = write(tmp_path, changed(axes={"servers": {"one": {"edit": {"stations.mds.threads": 1}}}}))
    done = iocast("study", file, "--out", tmp_path / "out", "--workers", "1")
    line = next(n for n, text in enumerate(file.read_text().splitlines(), 1) if "one:" in text)
    assert done.returncode == 2
    assert f"{file}:{line}:" in done.stderr and "Did you mean 'stations.mds.servers'?" in done.stderr


NO_EFFECT = "schema_version: 1\nextends: lustre\nstations: {mds: {stripe_size: 1MiB}}\n"


@pytest.mark.parametrize("verb", ["predict", "overlay of a fitted platform", "study", "calibrate"])
def test_keys_without_effect_are_refused_by_every_verb(verb: str, simulator: Path, tmp_path: Path) -> None:
    """Programs are given documents that extend the user's file, so that its keys would pass as inherited ones."""
    (tmp_path / "site.yaml").write_text(NO_EFFECT)
    fitted = {"campaign": {"points": [], "ranks": [1, 2]}, "fit": [], "draws": []}
    (tmp_path / "fitted.yaml").write_text(yaml.safe_dump({"schema_version": 1, "extends": "lustre", "fitted": fitted}))
    study = {
        "schema_version": 1, "platform": "site.yaml", "workloads": {"w": {"workload": "md-workbench"}},
        "scales": {"s": {"nodes": 1, "ranks_per_node": 1}}, "axes": {"a": {"one": {}}}, "levels": ["rate(all) >= 1/s"],
    }  # fmt: skip
    (tmp_path / "study.yaml").write_text(yaml.safe_dump(study))
    with pytest.raises(InputError, match=r"site\.yaml:3: in stations\.mds\.stripe_size, 'stripe_size' has no effect"):
        if verb == "predict":
            predict(Fitted.open(str(tmp_path / "site.yaml")), "md-workbench", {}, 1, 1)
        elif verb == "study":
            with Workers(1) as workers:
                run_study(tmp_path / "study.yaml", tmp_path / "out", workers, lambda *_: None, [])
        elif verb == "calibrate":
            calibrate_phases([], [], str(tmp_path / "site.yaml"), 0, lambda *_: None)
        else:
            (tmp_path / "site.yaml").write_text(NO_EFFECT.replace("lustre", "fitted.yaml"))
            predict(Fitted.open(str(tmp_path / "site.yaml")), "md-workbench", {}, 1, 1)


@pytest.mark.parametrize("name", ["of two halves \U0001f600", "no letter\u2028of ours", "\u00e9t\u00e9", "a: b #c"])
def test_a_path_and_its_prose_may_have_any_characters(name: str, simulator: Path, tmp_path: Path) -> None:
    """They are in every candidate that is written for the simulator."""
    (tmp_path / name).mkdir()
    file = tmp_path / name / f"{name}.yaml"
    file.write_text(
        yaml.safe_dump(
            {"schema_version": 1, "extends": "network", "description": name, "source": name}, allow_unicode=True
        )
    )
    sizes = {"objects": "20", "iterations": "20"}
    forecast, plain = (predict(Fitted.open(one), None, sizes, 2, 1) for one in (str(file), "network"))
    assert forecast["quantities"]["rate"]["value"] == plain["quantities"]["rate"]["value"]


def test_a_date_is_refused_as_any_other_word(simulator: Path, tmp_path: Path) -> None:
    """YAML reads it as one; where it is prose, it is no matter."""
    with pytest.raises(InputError, match="2024-05-01"):
        predict(Fitted.open("lustre", [("stations.mds.servers", yaml.safe_load("2024-05-01"))]), None, {}, 1, 1)
    (tmp_path / "dated.yaml").write_text("{schema_version: 1, extends: network, source: 2024-05-01}")
    assert predict(Fitted.open(str(tmp_path / "dated.yaml")), None, {"iterations": "20"}, 2, 1)["quantities"]
