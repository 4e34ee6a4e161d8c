# SPDX-License-Identifier: Apache-2.0
"""Which structure a calibration finds, when the truth is one of the family's."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import yaml

from iocast import binaries
from iocast.calibrate import calibrate
from iocast.calibrate.fit import USUAL_MISFIT, _Search
from iocast.calibrate.recipe import Option, Parameter
from iocast.calibrate.search import Fit
from iocast.run_directory import Run, group

FAMILY = """
schema_version: 1
stations: {server: {servers: 16}}
demands:
  make: 2ms
  look: {law: lognormal, mean: 1ms, sigma: 0.1}
  fetch: {law: lognormal, mean: 3ms, sigma: 0.1}
  drop: 1500us
operations:
  create: {open: [{station: server, demand: make}], write: [], close: []}
  stat: [{station: server, demand: look}]
  read: {open: [{station: server, demand: fetch}], read: [], close: []}
  unlink: [{station: server, demand: drop}]
  mkdir: []
  rmdir: []
calibration:
  laws: {make: create.open, look: stat, fetch: read.open, drop: unlink}
  choices:
    threads:
      16: {}
      1: {edit: {stations: {server: {servers: 1}}}}
      2: {edit: {stations: {server: {servers: 2}}}}
      4: {edit: {stations: {server: {servers: 4}}}}
    slowdown:
      contention: {parameters: {contention: {path: stations.server.contention, low: 0.0001, high: 1, start: 0.01}}}
      none: {}
    order: {none: {}, turns: {edit: {stations: {server: {discipline: ps}}}}}
"""


def test_two_threads_that_take_turns_are_distinguished_from_many_that_contend(tmp_path: Path) -> None:
    """With many threads, contention makes all operations longer in proportion, much as turns do."""
    (tmp_path / "family.yaml").write_text(FAMILY)
    truth = tmp_path / "truth.yaml"
    truth.write_text(
        yaml.safe_dump(
            {"schema_version": 1, "extends": "family.yaml", "stations": {"server": {"servers": 2, "discipline": "ps"}}}
        )
    )
    runs = []
    for ranks in (1, 2, 4, 8):
        for repeat in (1, 2):
            out = tmp_path / f"n{ranks}-{repeat}"
            sets = ["--set", "datasets=1", "--set", "objects=400", "--set", "iterations=400"]
            binaries.run_json(
                [
                    binaries.find("iocast-sim"),
                    "--platform",
                    str(truth),
                    *sets,
                    "--ppn",
                    str(ranks),
                    "--seed",
                    str(10 * ranks + repeat),
                    "--out",
                    str(out),
                    "--json",
                ]
            )
            runs.append(Run(out, "benchmark"))
    fitted = calibrate(group(runs), str(tmp_path / "family.yaml"), 0, lambda *_: None)["fitted"]
    assert (fitted["structure"]["threads"], fitted["structure"]["order"]) == ("2", "turns")
    assert not [note for note in fitted["notes"] if note.startswith(("Misfit", "Alarm"))]


@pytest.mark.parametrize(
    ("at_the_trap", "finds"),
    [(10 * USUAL_MISFIT, ("2", "none", "turns")), (0.9 * USUAL_MISFIT, ("16", "contention", "none"))],
)
def test_a_misfit_is_left_for_a_second_search(at_the_trap: float, finds: tuple[str, ...]) -> None:
    """Costs by structure, where from the first one no single step is for the better. A good fit is not left: most
    systems are of their family."""
    costs = {
        ("16", "contention", "none"): at_the_trap,
        ("16", "contention", "turns"): at_the_trap,
        ("2", "none", "turns"): 0.1,
        ("2", "none", "none"): 12 * USUAL_MISFIT,
    }
    search = _Search.__new__(_Search)
    names = {"threads": ["16", "2", "4"], "slowdown": ["contention", "none"], "order": ["none", "turns"]}
    search.choices = {choice: [Option(name, {}) for name in options] for choice, options in names.items()}
    search.report = lambda *_: None
    search.targets = [SimpleNamespace(logs=np.zeros(800))]  # type: ignore[list-item]

    def fit(_: object, structure: dict[str, str], *__: object) -> Fit:
        return Fit(structure, [], [], {}, costs.get(tuple(structure.values()), 20 * USUAL_MISFIT), np.zeros((0, 0)), 1)

    search._fit = fit  # type: ignore[method-assign, assignment]
    best = search.explore(None)[0]  # type: ignore[arg-type]
    assert tuple(best.structure.values()) == finds
    assert all(any(rival.structure == best.structure for rival in rivals) for rivals in search.rivals.values()), (
        "alternatives are those about the best"
    )


def test_options_that_were_fitted_apart_bring_every_number_that_they_need_together() -> None:
    """Nothing crowds where requests share the servers: two that did so each lack a number that the two together
    need."""
    crowding = Parameter("crowding", "stations.server.crowding", 1e-3, 10.0, 0.1)
    search = _Search.__new__(_Search)
    search.recipe = SimpleNamespace(parameters=())  # type: ignore[assignment]
    search.shown, search.thinking = {}, False
    turns, fair = Option("none", {}), Option("turns", {"stations": {"server": {"discipline": "ps"}}})
    slow, fast = Option("crowding", {}, parameters=(crowding,)), Option("none", {})
    search.choices = {"order": [turns, fair], "slowdown": [fast, slow]}

    def fit(order: Option, slowdown: Option, values: dict[str, float]) -> Fit:
        known = [crowding] if values else []
        return Fit(
            {"order": order.name, "slowdown": slowdown.name},
            [order, slowdown],
            known,
            values,
            0.0,
            np.eye(len(known)),
            1,
        )

    best, without, with_it = fit(fair, fast, {}), fit(turns, fast, {}), fit(fair, slow, {})
    for rivals, held in (
        (([best, without, with_it]), 0.1),
        ([best, without, with_it, fit(turns, slow, {"crowding": 5.0})], 5.0),
    ):
        search.rivals = {"order": rivals, "slowdown": rivals}
        _, values = search._together({"order": without, "slowdown": with_it}, best, np.random.default_rng(1))
        assert crowding.low <= values["crowding"] <= crowding.high and (values["crowding"] == 0.1) == (held == 0.1)
