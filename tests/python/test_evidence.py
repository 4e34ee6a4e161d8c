# SPDX-License-Identifier: Apache-2.0
"""validation/published/claims: every source's claims are well made, and the page shows those of all."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
PUBLISHED = REPOSITORY / "validation" / "published"
SOURCES = sorted(file.stem for file in (PUBLISHED / "claims").glob("*.py"))


@pytest.fixture
def evidence(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    for directory in (PUBLISHED.parent, PUBLISHED):
        monkeypatch.syspath_prepend(str(directory))
    import evidence

    yield evidence
    for name in [name for name in sys.modules if name in ("evidence", "experiment", "scoreboard") or name.partition(".")[0] == "claims"]:
        sys.modules.pop(name)


@pytest.mark.parametrize("source", SOURCES)
def test_claims_are_sentences_with_a_place_and_a_range(evidence: Any, source: str) -> None:
    name, claims = evidence.source_of(source)
    assert name and claims
    assert len({claim.text for claim in claims}) == len(claims)
    for claim in claims:
        assert claim.text.endswith(".") and claim.place, claim.text
        assert claim.low < claim.high and "|" not in claim.text + claim.why_not, claim.text


@pytest.mark.parametrize("source", SOURCES)
def test_the_page_shows_each_claim(evidence: Any, source: str) -> None:
    page = (REPOSITORY / "docs" / "evidence.md").read_text()
    shown = page.partition(f"<!-- {source} -->")[2].partition(f"<!-- end of {source} -->")[0]
    name, claims = evidence.source_of(source)
    assert name in shown
    for claim in claims:
        assert f"| {claim.text} |" in shown, claim.text


def test_the_page_says_what_the_simulator_says(evidence: Any) -> None:
    """Of the source that is simulated in the least time."""
    name, claims = evidence.source_of("chasapis2014")
    lines = evidence.table(name, [evidence.judged(claim) for claim in claims])
    assert "\n".join(lines) in (REPOSITORY / "docs" / "evidence.md").read_text()


def test_claims_see_whole_phases(evidence: Any) -> None:
    """Some ask for time lines."""
    from claims.mdworkbench2018 import stall_length
    from experiment import phase

    found = phase("lustre", "md-workbench", "benchmark", 1, 2, {"objects": 20, "iterations": 20})
    assert 0 < stall_length(found) == max(found["timeline"]["create"]["max"]) <= found["latency"]["create"]["max"]


def test_a_claim_out_of_its_range_is_not_met(evidence: Any) -> None:
    from experiment import Claim  # the one that the harness sees

    good, bad = (evidence.judged(Claim("It holds.", "page 1", 1, 2, lambda value=value: value)) for value in (1.5, 2.5))
    assert good["met"] and not bad["met"]
    assert evidence.table("A source", [good, bad])[-1].endswith("| no |")
