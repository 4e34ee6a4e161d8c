# SPDX-License-Identifier: Apache-2.0
"""iocast/published/claims: every source's claims are well made, and the page shows those of all."""

import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from iocast.errors import InputError
from iocast.published import SOURCES, Unexpected, as_text, judged, source_of, validate_published
from iocast.published import claims as all_claims
from iocast.published.claims.mdworkbench2018 import stall_length
from iocast.published.experiment import Claim, phase

REPOSITORY = Path(__file__).resolve().parents[2]
PUBLISHED = REPOSITORY / "validation" / "published"


@pytest.fixture
def evidence(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    for directory in (PUBLISHED.parent, PUBLISHED):
        monkeypatch.syspath_prepend(str(directory))
    import evidence

    yield evidence
    for name in [name for name in sys.modules if name in ("evidence", "scoreboard")]:
        sys.modules.pop(name)


@pytest.mark.parametrize("source", SOURCES)
def test_claims_are_sentences_with_a_place_and_a_range(source: str) -> None:
    name, claims = source_of(source)
    assert name and claims
    assert len({claim.text for claim in claims}) == len(claims)
    for claim in claims:
        assert claim.text.endswith(".") and claim.place, claim.text
        assert claim.low < claim.high and "|" not in claim.text + claim.why_not, claim.text


@pytest.mark.parametrize("source", SOURCES)
def test_the_page_shows_each_claim(source: str) -> None:
    page = (REPOSITORY / "docs" / "evidence.md").read_text()
    shown = page.partition(f"<!-- {source} -->")[2].partition(f"<!-- end of {source} -->")[0]
    name, claims = source_of(source)
    assert name in shown
    for claim in claims:
        assert f"| {claim.text} |" in shown, claim.text


def test_the_page_says_what_the_simulator_says(evidence: Any) -> None:
    """Of the source that is simulated in the least time."""
    name, claims = source_of("chasapis2014")
    lines = evidence.table(name, [judged(claim) for claim in claims])
    assert "\n".join(lines) in (REPOSITORY / "docs" / "evidence.md").read_text()


def test_claims_see_whole_phases() -> None:
    """Some ask for time lines."""
    found = phase("lustre", "md-workbench", "benchmark", 1, 2, {"objects": 20, "iterations": 20})
    assert 0 < stall_length(found) == max(found["timeline"]["create"]["max"]) <= found["latency"]["create"]["max"]


def claim(value: float, why_not: str = "") -> Claim:
    return Claim(f"It is {value:g}.", "page 1", 1, 2, lambda: value, why_not=why_not)


def test_a_claim_out_of_its_range_is_not_met(evidence: Any) -> None:
    good, bad = judged(claim(1.5)), judged(claim(2.5))
    assert good["met"] and not bad["met"]
    assert evidence.table("A source", [good, bad])[-1].endswith("| no |")


@pytest.mark.parametrize(
    ("value", "why_not", "unexpected"),
    [
        (1.5, "", None),
        (2.5, "", Unexpected.MISSED.value),
        (2.5, "A reason.", None),
        (1.5, "A reason.", Unexpected.STALE.value),
    ],
    ids=["met", "missed", "missed with a reason", "met although"],
)
def test_each_outcome_is_as_its_file_has_it_or_not(
    value: float, why_not: str, unexpected: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A miss needs a reason, and a reason needs a miss; else the answer is "no"."""
    made = types.SimpleNamespace(SOURCE="A paper", CLAIMS=[claim(1.2), claim(value, why_not)])
    monkeypatch.setitem(sys.modules, f"{all_claims.__name__}.chasapis2014", made)
    answer = validate_published(["chasapis2014"])
    assert answer["sources"]["chasapis2014"]["claims"][1]["unexpected"] == unexpected
    assert answer["passed"] is (unexpected is None)
    assert answer["summary"]["claims"] == 2
    assert (f"  {unexpected}: It is" in as_text(answer)) is (unexpected is not None)
    assert ("Reason: A reason." in as_text(answer)) is bool(why_not)


def test_an_unknown_source_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(InputError, match="no published source 'chasapis'.*chasapis2014"):
        validate_published(["chasapis"])


def test_misses_are_counted_by_reason_and_forecasts_alone(evidence: Any) -> None:
    row = {"role": "forecast", "quantity": "q75", "met": False, "why_not": "It waits."}
    rows = [row, row, row | {"quantity": "rate"}, row | {"met": True, "why_not": ""}, row | {"role": "fitted"}]
    lines = evidence.misses(rows)
    assert "| third quartiles | 1 of 3 | 33 % | 75 % |" in lines and "| all | 1 of 4 | 25 % | 80 % |" in lines
    assert lines[-1] == "| 3 | 1 rates, 2 third quartiles | It waits. |"
