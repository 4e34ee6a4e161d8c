# SPDX-License-Identifier: Apache-2.0
"""How far platforms of the catalogue are off published numbers: kept up to date, and used by forecasts and studies."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from scipy.stats import binomtest

from iocast.errors import InputError
from iocast.training.fed import fed
from iocast.platforms.fitted import Fitted
from iocast.forecasts.answer import predict
from iocast.forecasts.cautions import far_beyond_published
from iocast.records.note import FarBeyondPublished
from iocast.wording.notes import sentence
from iocast.published import errors
from iocast.published.errors import Errors, Row, rows, spread, tells
from iocast.published.facts import BUDGET, read_facts, simulated
from iocast.published.serves import Serves, refuse_beyond

SMALL = {"datasets": "1", "objects": "20", "iterations": "10"}


def test_every_forecast_of_the_facts_is_among_the_errors_and_simulated_as_it_is_now() -> None:
    facts = {
        (fact.platform, fact.nodes * fact.ppn, fact.value): fact
        for fact in read_facts("mdworkbench2018")
        if tells(fact)
    }
    known = {(one.platform, one.ranks, one.value): one for one in rows()}
    assert facts.keys() <= known.keys()
    short = sorted((f for f in facts.values() if f.quantity != "max"), key=lambda f: min(f.iterations, BUDGET))
    platforms = list({fact.platform: fact for fact in reversed(short)}.values())
    for fact in platforms:  # of each platform the row that is simulated the fastest
        row = known[fact.platform, fact.nodes * fact.ppn, fact.value]
        assert simulated(fact) == pytest.approx(row.simulated, rel=0.05), (
            f"{fact.platform}: validation/published/errors.py writes platforms/facts/errors.csv anew"
        )


@pytest.mark.parametrize("kind", ["rate", "latency", "max"])
def test_intervals_hold_what_they_say_of_each_row_that_is_left_out(kind: str) -> None:
    mine = [one for one in rows() if one.kind == kind]
    inside = 0
    for left in mine:
        own = [one.error for one in mine if one.platform == left.platform and one is not left]
        foreign = [one for one in errors.of_several_nodes() if one.kind == kind and one.platform != left.platform]
        others = {one.platform: [o.error for o in foreign if o.platform == one.platform] for one in foreign}
        inside += abs(left.error) <= math.log(spread(own, list(others.values())).factor(0.9))
    share = binomtest(inside, len(mine)).proportion_ci(0.95, method="exact")
    assert share.low <= 0.9 <= share.high, f"{inside} of {len(mine)}"


def test_more_rows_and_smaller_errors_make_the_interval_narrower() -> None:
    others = [[0.5, -0.4], [0.3, 0.6]]
    few, many, worse = ([0.1, -0.1], [0.1, -0.1] * 10, [1.0, -1.0] * 10)
    assert spread(many, others).factor(0.9) < spread(few, others).factor(0.9) < spread([], others).factor(0.9)
    assert spread(worse, others).factor(0.9) > spread([], others).factor(0.9)
    assert spread(many, others).factor(0.5) < spread(many, others).factor(0.9) < spread(many, others).factor(0.99)


def test_a_forecast_by_a_platform_with_published_numbers_has_their_interval() -> None:
    platform = Fitted.open("cori")
    answer = predict(platform, "md-workbench-large", SMALL, 2, 1)
    rate, median = answer["quantities"]["rate"], answer["quantities"]["create.q50"]
    published = Errors.of(platform)
    assert published is not None
    assert rate["high"] / rate["value"] == pytest.approx(published.spread("rate").factor(0.9))
    assert median["high"] / median["low"] > rate["high"] / rate["low"]  # latencies are further off than rates
    assert answer["basis"] == [sentence(published.note)]
    assert "family" not in answer
    narrower = predict(platform, "md-workbench-large", SMALL, 2, 1, level=0.5)["quantities"]["rate"]
    assert rate["low"] < narrower["low"] < narrower["value"] == rate["value"]


def test_of_another_workload_and_of_a_template_nothing_is_known() -> None:
    for name, workload, settings in (("cori", "mdtest-easy", {"items": "10"}), ("lustre", "md-workbench-large", SMALL)):
        answer = predict(Fitted.open(name), workload, settings, 2, 1)
        assert answer["quantities"]["rate"]["low"] is None and answer["family"]["family"]


def test_a_platform_that_extends_one_has_its_errors_and_says_so(tmp_path: Path) -> None:
    mine = tmp_path / "mine.yaml"
    mine.write_text("schema_version: 1\nextends: cori\nstations: {metadata: {servers: 64}}\n")
    published = Errors.of(Fitted.open(str(mine)))
    assert published is not None and published.platform == "cori" and published.note.edited
    as_it_is = Errors.of(Fitted.open("cori"))
    assert as_it_is is not None and not as_it_is.note.edited


def test_far_beyond_the_published_numbers_there_is_a_caution_and_then_a_refusal() -> None:
    platform = Fitted.open("ime")
    serves = Serves.of(platform)
    nodes = serves.nodes
    assert far_beyond_published(serves, 4 * nodes, nodes) == []
    assert far_beyond_published(serves, 5 * nodes, nodes) == [FarBeyondPublished("ime", 5 * nodes, nodes, 5.0)]
    refuse_beyond(platform, 10 * nodes, 10 * nodes)
    with pytest.raises(InputError, match=r"11 times .* with --beyond"):
        refuse_beyond(platform, 11 * nodes, 11 * nodes)
    refuse_beyond(Fitted.open("lustre"), 10**6, 10**6)  # a template has no numbers to be beyond
    with pytest.raises(InputError, match="with --beyond"):
        fed(platform, "unet3d", {}, [88 * nodes])
    answer = predict(platform, "md-workbench-large", SMALL, 11 * nodes, 1, beyond=True)
    assert any("11 times" in text for text in answer["warnings"])


def test_intervals_widen_beyond_the_published_scales_and_not_within() -> None:
    published = Errors.of(Fitted.open("cori"))
    assert published is not None and errors.growth() > 0
    near, edge, far, farther = (published.around({"rate": 1.0}, 0.9, times)["rate"] for times in (0.1, 1, 4, 10))
    assert near == edge
    assert farther["low"] < far["low"] < edge["low"] < 1 < edge["high"] < far["high"] < farther["high"]
    answer = predict(Fitted.open("cori"), "md-workbench-large", SMALL, 40, 1)["quantities"]["rate"]
    assert answer["high"] / answer["value"] == pytest.approx(far["high"])


def test_errors_that_do_not_depend_on_the_scale_widen_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def made(slope: float) -> tuple[Row, ...]:
        return tuple(
            Row(f"p{i}", ranks, ranks, "rate", 1.0, math.exp(slope * sign * math.sqrt(math.log(ranks))), "a")
            for i, sign in enumerate((1, -1, 1, -1))
            for ranks in (1, 10, 100)
        )

    for slope in (0.0, 0.5):
        monkeypatch.setattr(errors, "rows", lambda slope=slope: made(slope))
        errors.growth.cache_clear()
        assert (errors.growth() > 0.01) == (slope > 0)
    errors.growth.cache_clear()


def test_an_unusual_platform_widens_those_with_few_rows_most(monkeypatch: pytest.MonkeyPatch) -> None:
    few, many = (Errors(name, False, errors.of_catalogue(name)) for name in ("ime", "mistral-1"))
    assert len(few.own("rate")) < len(many.own("rate"))
    before = [one.spread("rate").deviation for one in (few, many)]
    catalogue = rows()
    after = {}
    for nodes in (1, 2):  # one machine says nothing of other systems
        known = (*catalogue, *[Row("wild", nodes, nodes, "rate", 1.0, 100.0)] * 50)
        monkeypatch.setattr(errors, "rows", lambda known=known: known)
        after[nodes] = [one.spread("rate").deviation for one in (few, many)]
    assert after[1] == before
    assert after[2][0] / before[0] > after[2][1] / before[1] > 1
