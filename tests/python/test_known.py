# SPDX-License-Identifier: Apache-2.0
"""What the owner of a system knows of it: held by a fit, and refused where nothing has such a number."""

from pathlib import Path

import pytest
from schedule import mostly_long

from iocast.ground import binaries
from iocast.calibrate.fit import calibrate
from iocast.calibrate.known import Known, families_with, holding
from iocast.calibrate.recipe import read_recipe
from iocast.errors import InputError
from iocast.platforms.fitted import Fitted
from iocast.forecasts.answer import predict
from iocast.platforms.documents import dump
from iocast.runs.run_directory import Run, group

FAMILY = """
schema_version: 1
stations: {server: {servers: 16}}
demands:
  way: 50us
  make: {law: lognormal, mean: 2ms, sigma: 0.3}
  look: {law: lognormal, mean: 1ms, sigma: 0.3}
operations:
  create: {open: [{delay: way}, {station: server, demand: make}], write: [], close: []}
  stat: [{delay: way}, {station: server, demand: look}]
  read: {open: [{station: server, demand: look}], read: [], close: []}
  unlink: [{station: server, demand: look}]
  mkdir: []
  rmdir: []
calibration:
  laws: {make: create.open, look: stat}
  parameters:
    way: {path: demands.way, unit: s, low: 0.000001, high: 0.001, start: 0.00005,
      also: {demands.make.shift: -1, demands.look.shift: -1}}
  choices:
    threads: {unlimited: {unlimited: server}, 1: {edit: {stations: {server: {servers: 1}}}},
      2: {edit: {stations: {server: {servers: 2}}}}}
"""


def few_runs(platform: Path, place: Path) -> list[Run]:
    """Simulated runs of one, two and four ranks of the platform."""
    runs = []
    for n in (1, 2, 4):
        command = [binaries.find("iocast-sim"), "--platform", str(platform), "--ppn", str(n), "--json"]
        settings = [word for name in ("objects", "iterations") for word in ("--set", f"{name}=200")]
        binaries.run_json([*command, *settings, "--seed", str(n), "--out", str(place / str(n))])
        runs.append(Run(place / str(n), "benchmark"))
    return runs


def test_a_known_number_of_servers_decides_what_measurements_leave_open(tmp_path: Path) -> None:
    """Four ranks never wait at 4 servers or more, so that only the owner can say how many there are."""
    family = tmp_path / "family.yaml"
    family.write_text(FAMILY)
    runs = few_runs(family, tmp_path)
    rates = {}
    for servers in (4, 8):
        known = [Known.of(f"server.threads={servers}"), Known.of("way=100us")]
        document = calibrate(group(runs), str(family), 0, lambda *_: None, known=known)
        fitted = document["fitted"]
        assert fitted["structure"]["threads"] == str(servers)
        assert document["demands"]["way"] == "0.0001s" and not fitted["parameters"]
        assert fitted["known"] == [{"name": "server.threads", "value": servers}, {"name": "way", "value": "100us"}]
        file = tmp_path / f"{servers}.yaml"
        file.write_text(dump(document))
        forecast = predict(Fitted.open(str(file)), None, {"objects": "100", "iterations": "100"}, 1, 64)
        rates[servers] = forecast["quantities"]["rate"]["value"]
    assert rates[8] / rates[4] == pytest.approx(2, rel=0.02)


@pytest.mark.parametrize("servers", mostly_long([2, 16], [16], "fewer than there are; more are known always"))
def test_what_is_known_stays_whatever_a_structure_says(tmp_path: Path, servers: int) -> None:
    """Requests that lie on one of four servers each look like that, though sixteen threads of one were stated."""
    (tmp_path / "family.yaml").write_text(FAMILY)
    (tmp_path / "truth.yaml").write_text(
        "schema_version: 1\nextends: family.yaml\nstations: {server: {servers: 1, count: 4, spread: object}}\n"
    )
    runs = []
    for ranks in (1, 2, 4, 16):
        out = tmp_path / f"n{ranks}"
        command = [binaries.find("iocast-sim"), "--platform", str(tmp_path / "truth.yaml"), "--ppn", str(ranks)]
        command += ["--set", "datasets=1", "--set", "objects=60", "--set", "iterations=60", "--seed", str(ranks)]
        binaries.run_json([*command, "--out", str(out), "--json"])
        runs.append(Run(out, "benchmark"))
    known = [Known.of(f"server.servers={servers}")]
    document = calibrate(group(runs), str(tmp_path / "family.yaml"), 0, lambda *_: None, known=known)
    assert document["stations"]["server"]["servers"] == servers


def test_a_prior_moves_where_a_fit_begins_and_what_a_structure_is_worth() -> None:
    recipe = holding(read_recipe("lustre"), [Known.of("network=20us~1.5"), Known.of("mds.servers=8~2")])
    (network,) = recipe.parameters
    assert (network.start, network.held) == (pytest.approx(20e-6), False) and 0 < network.spread < 0.5
    assert recipe.priors["stations.mds.servers"][0] == 8
    assert len(recipe.choices["threads"]) == len(read_recipe("lustre").choices["threads"])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("mds.servrs=512", "Did you mean 'mds.servers'?"),
        ("mds.servers", "write NAME=VALUE"),
        ("mds.servers=512~0.5", "a factor above 1"),
        ("mds.servers=many", "it must be a whole number"),
        ("network=3h", "it must be a time"),
        ("mds.count=-3", "it must be a whole number"),
        ("rpcs.slots=4~2", "state it as a fact: rpcs.slots=4"),
    ],
)
def test_what_nothing_has_is_refused_in_words(text: str, words: str) -> None:
    with pytest.raises(InputError) as caught:
        known = [Known.of(text)]
        holding(read_recipe(families_with(known, ("network", "lustre"))[0]), known)
    assert words in str(caught.value)


def test_one_number_has_one_value() -> None:
    known = [Known.of("mds.servers=4"), Known.of("stations.mds.servers=8")]
    with pytest.raises(InputError, match="one number, which has one value"):
        holding(read_recipe("lustre"), known)


def test_only_families_that_have_what_is_known_are_fitted() -> None:
    assert families_with([Known.of("mds.servers=4")], ("network", "lustre")) == ("lustre",)
    assert families_with([Known.of("server.servers=4")], ("network", "lustre")) == ("network",)
    with pytest.raises(InputError, match="No family has all"):
        families_with([Known.of("mds.servers=4"), Known.of("server.servers=4")], ("network", "lustre"))


def test_rates_alone_hold_no_number() -> None:
    with pytest.raises(InputError, match="rates alone are continued by curves"):
        holding(read_recipe("queue"), [Known.of("server.servers=2")])
