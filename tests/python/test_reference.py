# SPDX-License-Identifier: Apache-2.0
"""The generated reference: keys of platforms and of studies with ranges, as the code that reads them has them."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from pages import blocks_of
from programs import REPOSITORY
from study_inputs import changed, write

from iocast.errors import InputError
from iocast.study import keys
from iocast.study.spec import read_study

sys.path.insert(0, str(REPOSITORY / "docs" / "site"))

import hooks  # noqa: E402
import ranges  # noqa: E402


def test_every_key_that_a_study_reads_has_a_meaning() -> None:
    assert {key for key, *_ in keys.keys_read()} <= set(keys.MEANINGS)
    shown = next(yaml.safe_load(b.content) for b in blocks_of("docs/studies.md") if b.language == "yaml")
    patterns = [re.compile(re.sub(r"[A-Z]{3,}", "[^.]+", re.escape(key))) for key in keys.MEANINGS]
    plain = {"axes.*.*.edit", "axes.*.*.add", "axes.*.*.parts", "scenarios.*.edit", "workloads.*.settings"}
    for key in _paths(shown, {re.compile(p.replace(".", r"\.").replace("*", "[^.]+")) for p in plain}):
        assert any(p.fullmatch(key) for p in patterns), f"{key} has no row in iocast/study/keys.py"


def _paths(document: Any, leaves: set[re.Pattern[str]], path: str = "") -> list[str]:
    """Paths of a study's keys, as "levels[].at"; what lies below `leaves` is left out."""
    if isinstance(document, dict) and not any(p.fullmatch(path) for p in leaves):
        return [key for k, v in document.items() for key in _paths(v, leaves, f"{path}.{k}" if path else str(k))]
    if isinstance(document, list) and any(isinstance(one, dict) for one in document):
        return [key for one in document if isinstance(one, dict) for key in _paths(one, leaves, f"{path}[]")]
    return [path]


@pytest.mark.parametrize(
    ("key", "below", "above"),
    [
        ("confidence", 0.49, 0.9991),
        ("most_operations", 999, 1e9 + 1),
        ("search.replications", 3, 1001),
        ("uncertainty.service times.factor", 0.99, 1001),
        ("scales.few.nodes", 0, 10_000_001),
    ],
)
def test_the_ranges_of_a_study_are_those_that_are_enforced(
    tmp_path: Path, key: str, below: float, above: float
) -> None:
    entry = keys.all_keys()[re.sub(r"\.[^.]+\.", ".NAME.", key)]
    low, high = (float(text.replace(",", "")) for text in (entry.low, entry.high))
    for value, allowed in ((low, True), (high, True), (below, False), (above, False)):
        study = changed()
        at: Any = study
        *parents, last = key.split(".")
        for parent in parents:
            at = at.setdefault(parent, {})
        at[last] = int(value) if value == int(value) else value
        file = write(tmp_path, study)
        if allowed:
            read_study(file)
        else:
            with pytest.raises(InputError, match=last):
                read_study(file)


def test_a_row_for_each_key_of_a_platform() -> None:
    page = hooks.platform_keys()
    rows = re.findall(r"^\| (\w+) \| `(\w+)` \| ([^|]*) \| ([^|]*) \|", page, flags=re.MULTILINE)
    assert len(rows) > 80 and all(value for _, _, value, _ in rows)
    assert ("station", "servers", "whole number", "1 to 4e+09") in rows
    assert ("stall", "every", "time (2ms)", "1e-06 to 1,000,000") in rows
    read = {(primitive, key) for primitive, key, *_ in rows}
    inside = {("station", "remote"), ("clients", "share"), ("clients", "factor")}  # of `sockets` and `slow_nodes`
    assert set(ranges.ranges()) - read == inside


def test_a_row_for_each_key_of_a_study() -> None:
    rows = re.findall(r"^\| `([^`]+)` \|", hooks.study_keys(), flags=re.MULTILINE)
    assert rows == list(keys.MEANINGS)
