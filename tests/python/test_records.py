# SPDX-License-Identifier: Apache-2.0
"""Records and the documents that they declare: what is declared is read and described, and nothing else passes."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator
from typing import Any

import declared
import msgspec
import pytest
from programs import REPOSITORY

from iocast.records.declared import Impossible
from iocast.records.run import Allocation, Imported, Phase, Run, Slow, StationUse, Summary, Workload, read_run

RUNS = sorted((REPOSITORY / "tests" / "earlier" / "5239cee").rglob("run.json"))
PAGE = REPOSITORY / "docs" / "run-directory.md"


def documents() -> list[dict[str, Any]]:
    return [json.loads(file.read_text()) for file in RUNS]


def within(read: Any, document: Any) -> bool:
    """Whether a record's document has the values of the file, for all keys that both have."""
    if isinstance(read, dict) and isinstance(document, dict):
        return all(within(value, document[key]) for key, value in read.items() if key in document)
    if isinstance(read, list) and isinstance(document, list):
        return len(read) == len(document) and all(map(within, read, document))
    return bool(read == document)


def test_each_stored_run_is_read_as_it_is_written() -> None:
    assert {document["source"] for document in documents()} == {"bench", "simulated", "imported"}
    for document in documents():
        read = msgspec.to_builtins(read_run(document))
        assert within(read, document) and len(read["phases"]) == len(document["phases"])
        read["phases"][0]["seconds"] += 1.0
        assert not within(read, document)


def places(value: Any, read: Any, where: str = "") -> Iterator[tuple[Any, Any, str]]:
    """Of each value that a record has: the holder in the document, its key, and its place as a sentence names it. One
    of each list."""
    for key in read if isinstance(read, dict) else range(min(len(read), 1)):
        if isinstance(value, list) or key in value:
            below = f"{where}[{key}]" if isinstance(value, list) else f"{where}.{key}".lstrip(".")
            yield value, key, below
            if isinstance(value[key], dict | list) and below not in ("environment", "workload.parameters"):
                yield from places(value[key], read[key], below)


@pytest.mark.parametrize("source", ["bench", "simulated", "imported"])
def test_what_can_not_be_is_refused_with_its_place(source: str) -> None:
    """Each declared value in turn: a map in its place, a number below its bound, and nothing at all."""
    whole = next(one for one in documents() if one["source"] == source)
    read = msgspec.to_builtins(read_run(whole))
    refused = 0
    for holder, key, where in places(whole, read):
        right = holder[key]
        for spoilt in ([None, "x"], -1e301):
            holder[key] = spoilt
            allowed = "a list" if isinstance(right, list) else ""
            try:
                read_run(whole)
            except Impossible as error:
                assert error.where.startswith(where) and re.search(r"is not \w|has no '", error.what), str(error)
                refused += 1
            else:
                assert where in ("environment", "workload.parameters") or not allowed or spoilt == [None, "x"], where
        holder[key] = right
    assert refused > 40
    assert read_run(whole)


def test_a_missing_part_is_named() -> None:
    for kind, path in ((Run, ()), (Workload, ("workload",)), (Allocation, ("placement",)), (Phase, ("phases", 0))):
        for field in msgspec.structs.fields(kind):
            document = copy.deepcopy(documents()[0])
            holder: Any = document
            for key in path:
                holder = holder[key]
            holder.pop(field.encode_name, None)
            if field.required:
                with pytest.raises(Impossible, match=f"has no '{field.encode_name}'"):
                    read_run(document)
            else:
                read_run(document)


def test_the_page_has_each_declared_key() -> None:
    text = re.sub(r"```.*?```", "", PAGE.read_text(), flags=re.DOTALL)
    named = {word for code in re.findall(r"`([^`]+)`", text) for word in re.findall(r"\w+", code)}
    for kind in (Run, Workload, Allocation, Phase, Summary, Slow, StationUse, Imported):
        for field in msgspec.structs.fields(kind):
            assert field.encode_name in named, f"{PAGE.name} lacks {field.encode_name}"


def test_no_module_imports_itself_through_others() -> None:
    assert not declared.circles(), "move what both need into a module of its own"
    assert len(found := declared.imports_inside()) <= declared.INSIDE, found


def test_long_files_have_reasons() -> None:
    assert declared.long_files().keys() <= declared.LONG_FILES.keys(), "split it by what its parts do"


def test_no_more_is_untyped_and_no_more_sentences_decide() -> None:
    assert declared.share_of_any() <= declared.ANY, "give what is new a record, or its values a type"
    assert len(found := declared.sentences_that_decide()) <= declared.SENTENCES, (
        f"decide by a code, not by a sentence: {', '.join(found)}"
    )


def test_expressions_of_type_any_are_counted_from_the_report(capsys: pytest.CaptureFixture[str]) -> None:
    heading = "  Name   Anys   Exprs   Coverage\n" + "-" * 40 + "\n"
    allowed = int(1e6 * declared.ANY_EXPRESSIONS)
    for untyped, fails in ((allowed, 0), (allowed + 1, 1)):
        report = f"{heading} iocast.one  0  4000  100.00%\n iocast.two  {untyped}  996000  90.00%\n"
        report += f"{heading} Total  {untyped}  1000000  95.00%\n"
        assert declared.print_any_expressions(report) == fails
        printed = capsys.readouterr().out
        assert "iocast.two" in printed and "iocast.one" not in printed and ("at most" in printed) == bool(fails)
