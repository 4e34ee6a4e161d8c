# SPDX-License-Identifier: Apache-2.0
"""What a platform file says has an effect, or is refused with the nearest word that has one."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from programs import REPOSITORY

CATALOGUE = sorted(file.stem for file in (REPOSITORY / "platforms").glob("*.yaml"))
OPERATIONS = "operations: {stat: [{station: s, demand: 1ms}], read: {read: [{station: s, demand: 1ms}]}}\n"


def answer(simulator: Path, file: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(simulator), "--platform", str(file), "--print-platform"], capture_output=True, text=True, check=False
    )


@pytest.fixture
def refused(simulator, tmp_path):
    """The sentence that refuses a platform file of this text."""

    def refuse(text: str) -> str:
        file = tmp_path / "platform.yaml"
        file.write_text("schema_version: 1\n" + text)
        done = answer(simulator, file)
        assert done.returncode == 2, (text, done.stdout[:200])
        assert f"{file}:" in done.stderr
        return done.stderr

    return refuse


def test_the_catalogue_is_read(simulator):
    assert len(CATALOGUE) > 20
    for name in CATALOGUE:
        done = subprocess.run([str(simulator), "--describe", name], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("text", "what", "match"),
    [
        ("stations: {MDS: {servers: 32}}", "the station 'MDS'", "mds"),
        ("limits: {rpc: {slots: 16}}", "the limit 'rpc'", "rpcs"),
        ("demands: {creat: 100us}", "the demand 'creat'", None),
        ("demands: {Getattr: 100us}", "the demand 'Getattr'", "getattr"),
        ("locks: {directories: {per: dataset}}", "the lock 'directories'", "directory"),
        ("caches: {memory: {per: system, objects: 10}}", "the cache 'memory'", None),
        ("buffers: {burst: {per: system, capacity: 1MiB, drain: [{delay: 1ms}]}}", "the buffer 'burst'", None),
        ("pools: {made: {size: 8, batch: 4, refill: [{station: mds, demand: 1ms}]}}", "the pool 'made'", None),
        ("operations: {creat: [{station: mds, demand: 1ms}]}", "there is no operation 'creat'", "create"),
    ],
)
def test_a_part_that_no_route_uses_is_refused(refused, text, what, match):
    sentence = refused("extends: lustre\n" + text)
    assert what in sentence
    assert match is None or f"Did you mean '{match}'?" in sentence


def test_a_part_that_a_route_of_the_same_file_uses_is_not(simulator, tmp_path):
    base = tmp_path / "base.yaml"
    base.write_text(
        "schema_version: 1\nstations: {s: {}, t: {}}\noperations: {stat: [{station: s, demand: 1ms}], read: {read:"
        " [{station: t, demand: 1ms}]}}\n"
    )
    file = tmp_path / "platform.yaml"
    # The base's station 't' is nobody's now, which is no mistake in this file.
    file.write_text(
        "schema_version: 1\nextends: base.yaml\nstations: {u: {servers: 2}}\noperations: {read: {read: [{station: u,"
        " demand: 1ms}]}}\n"
    )
    assert answer(simulator, file).returncode == 0


def test_below_an_edit_a_platform_is_held_to_it_as_well(simulator, tmp_path):
    (tmp_path / "site.yaml").write_text("schema_version: 1\nextends: lustre\nstations: {MDS: {servers: 32}}\n")
    file = tmp_path / "edited.yaml"
    file.write_text("schema_version: 1\nextends: site.yaml\nstations: {mds: {servers: 8}}\n")
    done = answer(simulator, file)
    assert done.returncode == 2
    assert "site.yaml:3" in done.stderr and "Did you mean 'mds'?" in done.stderr


@pytest.mark.parametrize(
    ("station", "key"),
    [
        ("{discipline: ps, crowding: 0.1}", "crowding"),
        ("{per: node, count: 4}", "count"),
        ("{per: node, spread: object}", "spread"),
        ("{count: 4, spread: object, stripe_size: 1MiB}", "stripe_size"),
        ("{count: 4, stripe_count: 2}", "stripe_count"),
        ("{quantum: 3ms}", "quantum"),
        ("{discipline: ps, quantum: 3ms}", "quantum"),
        ("{wakeup: queues}", "wakeup"),
    ],
)
def test_a_key_without_effect_is_refused(refused, station, key):
    assert f"'{key}' has no effect" in refused(f"stations: {{s: {station}}}\n{OPERATIONS}")


@pytest.mark.parametrize("clients", ["slow_nodes: {share: 0.5, factor: 3}", "speed_sigma: 0.1"])
def test_nodes_that_differ_where_they_have_nothing_of_their_own_are_refused(refused, clients):
    text = f"clients: {{{clients}}}\nstations: {{s: {{STATION}}}}\n{OPERATIONS}"
    assert f"'{clients.partition(':')[0]}' has no effect" in refused(text.replace("{STATION}", "{}"))


def test_words_of_others_are_not_named_as_allowed(refused):
    text = f"stations: {{s: {{count: 4, redundancy: {{copies: 2, unit: 4KiB}}}}}}\n{OPERATIONS}"
    assert refused(text).rpartition("Allowed: ")[2].strip() == "copies, data."


@pytest.mark.parametrize("key", ["lock_share: 0.5", "lock_mode: shared"])
def test_the_share_of_no_lock_is_refused(refused, key):
    assert "this step takes none" in refused(
        f"stations: {{s: {{}}}}\noperations: {{stat: [{{station: s, demand: 1ms, {key}}}]}}\n"
    )


def test_an_inherited_key_that_lost_its_effect_is_not(simulator, tmp_path):
    """Of a family's station that is served otherwise now: the file does not say what its base does."""
    file = tmp_path / "platform.yaml"
    file.write_text("schema_version: 1\nextends: local\nstations: {cpu: {discipline: ps}}\n")
    assert answer(simulator, file).returncode == 0


@pytest.mark.parametrize(
    ("text", "ours"),
    [
        ("stations: {mds: {threads: 32}}", "servers"),
        ("stations: {mds: {cores: 32}}", "servers"),
        ("nodes: 4", "--nodes"),
        ("limits: {rpcs: {threads: 4}}", "slots"),
    ],
)
def test_other_words_lead_to_ours(refused, text, ours):
    assert f"write {ours}" in refused("extends: lustre\n" + text)


def test_an_empirical_law_holds_times_above_zero(refused):
    law = "{law: empirical, probabilities: [0, 0.5, 1], values: [0s, 1ms, 2ms]}"
    assert "above 0" in refused(f"stations: {{s: {{}}}}\noperations: {{stat: [{{station: s, demand: {law}}}]}}\n")


def test_servers_without_number_that_share_are_no_matter_of_memory(simulate, tmp_path):
    """Processor sharing with more servers than clients: as many as one likes, to the same answer."""
    rates = []
    for servers in ("64", "2000000000"):
        file = tmp_path / f"{servers}.yaml"
        file.write_text(
            f"schema_version: 1\nstations: {{s: {{discipline: ps, servers: {servers}, contention:"
            f" 0.01}}}}\n{OPERATIONS}"
        )
        arguments = (
            "--workload md-workbench --set read_only=true --set phases=benchmark --set datasets=1 --set "
            "objects=20 --set iterations=20 --brief"
        ).split()
        rates.append(simulate(file, *arguments, "--nodes", "32")["phases"][-1]["rate"])
    assert rates[0] == rates[1]
