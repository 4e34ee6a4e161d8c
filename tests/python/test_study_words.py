# SPDX-License-Identifier: Apache-2.0
"""A study's answer in words: no sentence contradicts another or a number, and none that says nothing."""

import itertools
import types
from dataclasses import replace
from typing import Any

import pytest

from iocast.wording.study import as_text

from iocast.study import amounts

from iocast.study import breaking, words
from iocast.study.questions import Point
from iocast.study.levels import parse_level


def row(level: str, value: float | None, scale: str = "full", **other: Any) -> dict[str, Any]:
    parsed = parse_level(level)
    times = None if value is None else value / parsed.limit
    judged = {
        "level": level,
        "quantity": parsed.quantity,
        "limit": parsed.limit,
        "upper": parsed.upper,
        "workload": "files",
        "scale": scale,
        "under": None,
    }
    return (
        judged
        | {"value": value, "margin": times and (1 / times if parsed.upper else times), "probability": 0.97}
        | other
    )


def answer(**changes: Any) -> dict[str, Any]:
    """A decision of two designs that differ on one axis and cost nothing."""
    designs = [
        {
            "id": name,
            "name": name,
            "cost": 0,
            "price": 0,
            "values": {"offer": name},
            "meets": True,
            "basis": "simulated",
            "first_failing": None,
            "levels": [
                row("p99(create) < 5 ms", 0.00491),
                row("rate(create) >= 60k/s", 68.4e3),
                row("p99(create) < 5 ms", 0.001, "half"),
            ],
            "breaks_at": {"ranks": 1045, "level": "p99(create) < 5 ms", "workload": "files", "beyond": 16384},
        }
        for name in ("A", "B")
    ]
    decided = {
        "decision": {"id": "A", "name": "A", "cost": 0, "price": 0, "values": {"offer": "A"}},
        "confidence": 0.97,
        "confidence_asked": 0.9,
        "designs": designs,
        "nearest_miss": None,
        "relaxations": [],
        "currency": "EUR",
        "years": 5,
        "stability": 1.0,
        "measurements": [],
        "study": {},
        "other_confidences": [
            {"confidence": c, "design": "A", "name": "A", "cost": 0} for c in (0.5, 0.8, 0.9, 0.95, 0.99)
        ],
        "levels": [{"level": "p99(create) < 5 ms", "rules_out": 0.0, "alone": 0.0}],
        "scales": [{"name": "half", "ranks": 512}, {"name": "full", "ranks": 1024}],
        "workloads": [{"name": "files"}],
        "axes": [{"name": "offer", "values": [{"name": "A", "platform": None}, {"name": "B", "platform": None}]}],
        "sensitivity": {
            "axes": [{"axis": "offer", "shares": {"worst margin": 1.0}, "values": [{}, {}]}],
            "uncertain": [],
        },
        "platform": {},
        "model_error": None,
        "search": {"designs": 2, "within_limits": 2, "explored": "full factorial", "simulated": 2, "replications": 4},
    }
    return decided | changes


def test_a_design_that_keeps_all_levels_does_not_break_at_that_scale() -> None:
    text = next(c["text"] for c in words.conclusions(answer()) if c["about"] == "Where it ends")
    assert "about 1,040 clients, 2 % beyond the largest scale of the study" in text


@pytest.mark.parametrize("scale", [7, 96, 128, 1000, 1024, 99_999])
def test_a_rounded_scale_stays_on_its_side_of_every_scale(scale: int) -> None:
    decided = answer(scales=[{"name": "half", "ranks": scale // 2}, {"name": "full", "ranks": scale}])
    for ranks in {*range(max(1, scale - 60), scale + 60), scale // 2, scale // 2 + 1, 3 * scale, 16 * scale - 1}:
        shown = words.break_count(decided, ranks)
        assert all((shown > s["ranks"]) == (ranks > s["ranks"]) for s in decided["scales"])
        assert abs(shown - ranks) <= 0.06 * ranks


def test_each_level_stands_with_value_limit_and_margin_where_it_is_tightest() -> None:
    decided = answer()
    tightest = amounts.tightest(amounts.reference(decided)["levels"])
    assert [(r["level"], r["scale"]) for r in tightest] == [
        ("p99(create) < 5 ms", "full"),
        ("rate(create) >= 60k/s", "full"),
    ]
    assert [amounts.margin(r) for r in tightest] == ["2 % to spare", "14 % to spare"]
    text = as_text(
        decided
        | {"headline": "", "conclusions": [], "warnings": []}
        | {"designs": [d | {"probability": 0.9, "rate": 1, "tail": 1, "front": True} for d in decided["designs"]]}
    )
    for shown in ("4.91 ms", "at most 5.00 ms", "2 % to spare", "68.4 k/s", "at least 60.0 k/s", "at 1,024 clients"):
        assert shown in text, shown


@pytest.mark.parametrize(
    ("level", "value", "margin"),
    [
        ("p99(create) < 5 ms", 0.0051, "missed by 2 %"),
        ("p99(create) < 5 ms", 0.0499, "10 times worse than needed"),
        ("rate(create) >= 60k/s", 59_900.0, "missed by 0.2 %"),
        ("rate(create) >= 60k/s", 600_000.0, "10 times better than needed"),
        ("p99(create) < 5 ms", None, "does not serve"),
        ("p99(create) < 5 ms", 0.005, "0.0 % to spare"),
    ],
)
def test_margins_say_which_side_and_how_far(level: str, value: float | None, margin: str) -> None:
    assert amounts.margin(row(level, value)) == margin


def conclusions_of(**changes: Any) -> str:
    return " ".join(c["text"] for c in words.conclusions(answer(**changes)))


def cheaper(name: str, cost: float, probability: float, *values: tuple[str, float | None, float]) -> dict[str, Any]:
    """A design of answer() that fails. values: level, forecast, and the probability that it is kept."""
    levels = [row(level, value, probability=kept) for level, value, kept in values]
    failing = min(levels, key=lambda r: r["probability"]) | {"ranks": 1024}
    why = {"station": "mds", "part": "utilisation", "share": 0.96}
    return answer()["designs"][1] | {
        "id": name, "name": name, "cost": cost, "probability": probability, "meets": False, "levels": levels,
        "first_failing": failing | {"why": why},
    }  # fmt: skip


P99, RATE = "p99(create) < 5 ms", "rate(create) >= 60k/s"
MISSES: list[tuple[str, list[dict[str, Any]], list[str]]] = [
    (
        "none has a chance: margins decide, and not order or price",
        [
            cheaper("C", 100, 0.001, (P99, 0.05, 0.0), (RATE, 61e3, 0.6)),
            cheaper("D", 200, 0.0, (P99, 0.0055, 0.01), (RATE, 51e3, 0.0)),
            cheaper("E", 300, 0.0, (P99, 0.02, 0.0), (RATE, 61e3, 0.6)),
        ],
        ["Of 3 cheaper designs “D” comes nearest", "save 800 EUR", "with less than 1 % where 90 % are required",
         f"misses {RATE} by 15 % at 1,024 clients (51.0 k/s); misses {P99} by 10 % at 1,024 clients (5.50 ms)",
         "At 1,024 clients mds is in use 96 %"],
    ),
    (
        "the likeliest, though another's worst margin is better",
        [
            cheaper("C", 100, 0.4, (P99, 0.0052, 0.4), (RATE, 80e3, 0.99)),
            cheaper("D", 200, 0.3, (P99, 0.0049, 0.3), (RATE, 80e3, 0.99)),
        ],
        ["“C” comes nearest", f"It misses {P99} by 4 % at 1,024 clients (5.20 ms). At"],
    ),
    (
        "kept by best estimate",
        [cheaper("C", 100, 0.4, (P99, 0.0048, 0.4), (RATE, 80e3, 0.99))],
        ["The only cheaper design is “C”", f"keeps {P99} with 40 % only at 1,024 clients (best estimate 4.80 ms, 4 %"],
    ),
    (
        "down, and far off",
        [cheaper("C", 100, 0.0, (P99, None, 0.0), (RATE, 20e3, 0.0))],
        [f"does not serve at 1,024 clients ({P99})", "by a factor of 3 at 1,024 clients (20.0 k/s)"],
    ),
]  # fmt: skip


@pytest.mark.parametrize("designs, says", [case[1:] for case in MISSES], ids=[case[0] for case in MISSES])
@pytest.mark.parametrize("order", [1, -1])
def test_the_nearest_cheaper_design_stands_with_what_it_misses_and_by_how_much(
    designs: list[dict[str, Any]], says: list[str], order: int
) -> None:
    chosen = answer()["designs"][0] | {"cost": 1000, "price": 1000, "probability": 0.97}
    decision = answer()["decision"] | {"cost": 1000, "price": 1000}
    decided = answer(designs=[*designs[::order], chosen], decision=decision)
    text = next(c["text"] for c in words.conclusions(decided) if c["about"] == "Why not cheaper")
    for one in says:
        assert one in text, text
    nearest = words.rivals(decided)[-1]
    assert f"“{nearest['name']}”" in text and nearest["why"] in text
    missed = {"design": nearest["name"], "name": nearest["name"], "probability": 0.0, "cost": 5, "needed": []}
    undecided = answer(designs=designs[::order], decision=None, nearest_miss=missed)
    about = {c["about"]: c["text"] for c in words.conclusions(undecided)}
    assert nearest["why"] in about["What came nearest"] and "No change of the limits" in about["What came nearest"]
    assert "Why not cheaper" not in about


@pytest.mark.parametrize("required", [0.5, 0.9, 0.95, 0.99, 0.995])
def test_a_probability_stays_on_its_side_of_the_required_one(required: float) -> None:
    """The nearest design was reported with 99 % where 99 % were required and no design had them."""
    for off in (-0.3, -0.01, -0.004, -0.0004, 0.0, 0.0004, 0.004):
        probability = min(1.0, required + off)
        shown = amounts.chance(probability, required)
        number = float(shown.removeprefix("more than ").removesuffix(" %"))
        assert (number >= 100 * required) == (probability >= required), (probability, shown)
    assert (
        amounts.chance(0.972, 0.9) == amounts.chance(0.972) == "97 %" and amounts.chance(1.0, 0.9) == "more than 99 %"
    )


@pytest.mark.parametrize(("value", "side"), [(0.0048, "missed"), (0.0052, "kept")])
@pytest.mark.parametrize("decided", [True, False])
def test_an_uncertain_input_turns_a_level_to_its_other_side(value: float, side: str, decided: bool) -> None:
    """Without a decision a level that the best estimate keeps is missed at the turn, and not kept."""
    designs = answer()["designs"]
    designs[0] |= {"levels": [row(P99, value)], "probability": 0.4, "first_failing": None}
    turn = {
        "name": "x",
        "level": P99,
        "workload": "files",
        "scale": "full",
        "turns_at": 1.4,
        "factor": 1.2,
        "effect": 1.1,
    }
    changes: dict[str, Any] = {"sensitivity": {"axes": [], "uncertain": [turn]}, "designs": designs}
    if not decided:
        miss = {"design": "A", "name": "A", "cost": 0, "probability": 0.4, "needed": []}
        changes |= {"decision": None, "nearest_miss": miss}
    assert f"{P99} is {side}." in " ".join(words.changes(answer(**changes)))


def test_prices_that_nobody_asks_are_not_mentioned() -> None:
    text = conclusions_of(
        measurements=[
            {"name": "knowing x exactly", "price": None, "value": 0.01, "net": None, "tells": ["x"], "exact": True}
        ]
    )
    assert "“B” also keeps all levels." in text
    for empty in ("prices", "EUR", "costs", "worth", "cheaper"):
        assert empty not in text, text


def test_a_free_decision_is_not_cheaper_if_prices_move() -> None:
    designs = answer()["designs"]
    designs[1] |= {"cost": 5000, "price": 5000}
    text = conclusions_of(designs=designs)
    assert "costs 5,000 EUR more." in text and "prices move" not in text


def test_a_single_axis_is_not_what_matters_most_and_two_are_compared() -> None:
    assert "explains by itself" not in conclusions_of()
    axes = [
        {"axis": name, "shares": {"worst margin": share}, "values": [{}, {}]}
        for name, share in (("offer", 0.7), ("network", 0.2))
    ]
    assert "“offer” 70 %, “network” 20 %" in conclusions_of(sensitivity={"axes": axes, "uncertain": []})


def test_a_value_that_swaps_the_whole_system_says_so() -> None:
    axes = [{"name": "offer", "values": [{"name": "A", "platform": "mistral"}, {"name": "B", "platform": None}]}]
    text = conclusions_of(axes=axes)
    assert "Offer: A (another system: the platform “mistral”)." in text and "swap the whole system" in text


def test_the_stated_error_of_the_model_is_shown_with_its_source() -> None:
    assert "within a factor of 1.2 for rate in 90 of 100 cases (a round number)" in conclusions_of(
        model_error={"factors": {"rate": 1.2}, "source": "a round number"}
    )


@pytest.mark.parametrize("margins", list(itertools.product((-0.5, 0.5), repeat=3)))
def test_the_curve_of_margins_agrees_with_the_simulated_scales(margins: tuple[float, ...]) -> None:
    """Simulations at three scales, between and beyond them an analytic curve that says otherwise."""
    scales = {"a": 100, "b": 200, "c": 400}
    level = replace(parse_level("p99(create) < 5 ms"), places=tuple(("files", name) for name in scales))
    search = types.SimpleNamespace(
        study=types.SimpleNamespace(
            scales={name: types.SimpleNamespace(ranks=ranks) for name, ranks in scales.items()}
        ),
        read=lambda result, point, quantity: result,
    )
    values = {
        Point("", "files", name): level.limit / 2.718281828**margin
        for name, margin in zip(scales, margins, strict=True)
    }
    curve = [(50, 1.0), (100, -1.0), (150, -1.0), (200, 1.0), (300, -1.0), (400, -1.0), (800, -1.0)]
    crossing = breaking._crossing(
        breaking._with_simulated(search, types.SimpleNamespace(best=values), level, "files", curve)
    )
    alone = breaking._with_simulated(search, types.SimpleNamespace(best=values), level, "files", [])
    assert (breaking._crossing(alone) is None) == (margins[-1] > 0)  # of a level that the solver doesn't know
    kept = [ranks for ranks, margin in zip(scales.values(), margins, strict=True) if margin > 0]
    assert crossing is not None
    found, already = crossing
    assert not (already and kept)
    assert all(found > ranks for ranks in kept)
    if margins[-1] < 0:
        assert found <= 400


@pytest.mark.parametrize(
    ("own", "shown"),
    [
        ("", ""),
        ("What do\nwe buy?", "What do we buy? "),
        ("What do we buy", "What do we buy? "),
        ("Jobs grow. (What is due?)", "Jobs grow. (What is due?) "),
    ],
)
def test_the_authors_question_and_the_counted_one_are_two_sentences(own: str, shown: str) -> None:
    assert words.question(answer(question=own)).startswith(
        f"{shown}Which of 2 designs keeps its service level at up to"
    )


@pytest.mark.parametrize("missed", [None, 200])
def test_levels_that_the_solver_does_not_know_have_no_end_beyond_their_simulations(missed: int | None) -> None:
    end = {
        "ranks": missed,
        "beyond": 400,
        "level": "time(job) < 60 s",
        "workload": "job",
        "unsolved": ["time(job) < 60 s"],
    }
    made = answer()
    made["designs"][0]["breaks_at"] = end
    text = words._ends(made)
    assert "doesn't know time(job) < 60 s" in text and ("up to 400 clients" in text) == (missed is None)


def test_a_level_that_is_missed_from_the_first_breaks_nowhere_in_particular() -> None:
    """The number would be the study's own scale."""
    made = answer()
    made["designs"][0]["breaks_at"] |= {"ranks": 2048, "already": True}
    text = words._ends(made)
    assert "missed at 2,048 clients, the fewest that were looked at" in text and "breaks at" not in text


def test_designs_that_miss_by_nearly_the_same_are_equally_near() -> None:
    made = answer()
    for design, margin in zip(made["designs"], (0.101, 0.097), strict=True):
        design |= {"id": design["name"], "cost": 0}
        design["levels"][0]["margin"] = margin
    text = words._as_near(made, made["designs"][0])
    assert "No model tells it from" in text and "“B” (4 % farther off), which comes as near" in text
    made["designs"][1]["levels"][0]["margin"] = 0.05
    assert words._as_near(made, made["designs"][0]) == ""


def test_the_numbers_that_must_hold_are_those_of_the_designs_own_platform() -> None:
    made = answer()
    made["platform"] = {"name": "base", "calibrated": False}
    for calibrated, shown in ((False, ", if the numbers of “vendorA” hold: nobody calibrated it"), (True, "")):
        offers = [{"name": n, "platform": f"vendor{n}", "calibrated": calibrated, "note": None} for n in "AB"]
        assert words.if_it_holds(made | {"axes": [{"name": "offer", "values": offers}]}) == shown
    plain = made | {"axes": [{"name": "offer", "values": [{"name": n, "platform": None} for n in "AB"]}]}
    assert "the numbers of “base” hold" in words.if_it_holds(plain)


@pytest.mark.parametrize(("first", "second"), [(5_750.0, 6_235.0), (6_235.0, 7_050.0), (1_234_567.0, 1_239_876.0)])
def test_a_difference_of_prices_is_that_of_those_beside_it(first: float, second: float) -> None:
    def shown(value: float) -> int:
        return int(amounts.money(value, "EUR").removesuffix(" EUR").replace(",", ""))

    assert shown(second) - shown(first) == shown(second - first)
