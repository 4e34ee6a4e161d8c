# SPDX-License-Identifier: Apache-2.0
"""Words, sentences and lines: counts by folder may only fall (tests/words.py has the rules,
tests/words.json the counts)."""

import ast
import sys

import pytest
from programs import REPOSITORY

sys.path.insert(0, str(REPOSITORY / "tests"))

import words  # noqa: E402


def test_no_count_rises() -> None:
    assert not words.risen(words.counts(), words.kept())


@pytest.mark.parametrize(
    ("name", "text", "kinds"),
    [
        ("iocast/a.py", "# what it was told\n", ["diction"]),
        ("iocast/a.py", "def asked_for(told_by): ...\n", ["diction", "diction"]),
        ("sim/a.cpp", "int so_many; // so many at most, of what there is\n", ["diction", "diction"]),
        ("iocast/a.py", "MOST_DRAWN = 3\n", ["constants"]),
        ("iocast/a.py", "folder = golden + unsaid  # retold? no: a fold, a task\n", []),
        ("iocast/a.py", "think_asked_seconds  # only if asked; nothing is deleted unless asked\n", []),
        ("iocast/a.py", "x" * 121 + "\n", ["lines"]),
        ("docs/a.md", "word " * 41 + ".\n", ["lines", "sentences", "pages"]),
        ("docs/a.md", "| " + "word " * 41 + "|\n\n```text\n" + "word " * 41 + "\n```\n", []),
        ("docs/a.md", "Short one here. " * 3 + "\n", []),
        ("docs/a.md", "<!-- made -->\n" + "ab cd " * 30 + "\n<!-- end of made -->\n", ["pages", "sentences"]),
    ],
)
def test_what_counts(name: str, text: str, kinds: list[str]) -> None:
    assert sorted(kind for kind, _, _ in words.places(name, text)) == sorted(kinds)


def test_sentences_are_split() -> None:
    text = (
        "# Head\n\nOne of three here. `code` goes on\nin a second line (see [this page](there.md)). Last one is "
        "short.\n\n- an item in a list\n- another item in it\n"
    )
    assert [len(sentence.split()) for _, sentence in words.sentences(text)] == [4, 10, 4, 5, 4]


def test_a_rise_is_a_sentence_and_a_fall_is_none() -> None:
    assert words.risen({"sim": {"diction": 3}}, {"sim": {"diction": 2}}) == [
        "sim: diction rose from 2 to 3; tests/words.py --show sim lists them"
    ]
    assert words.risen({"sim": {"diction": 2, "lines": 1}}, {"sim": {"diction": 2, "lines": 9}}) == []
    assert words.risen({"new": {"lines": 1}}, {}) == [
        "new: lines rose from 0 to 1; tests/words.py --show new lists them"
    ]


MARKDOWN = ("iocast/listing.py", "iocast/cli/manual_pages.py", "iocast/study/keys.py", "iocast/published/claims/")
"""Sources whose texts go into Markdown pages."""


def test_messages_have_no_marks_of_markdown() -> None:
    """They are printed on terminals and in HTML, where a backtick is a backtick."""
    found = []
    for file in sorted((REPOSITORY / "iocast").rglob("*.py")):
        name = str(file.relative_to(REPOSITORY))
        tree = ast.parse(file.read_text())
        statements = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}  # docstrings
        texts = [n for n in ast.walk(tree) if isinstance(n, ast.Constant) and isinstance(n.value, str)]
        found += [f"{name}:{n.lineno}" for n in texts if id(n) not in statements and len(n.value.split("`")) > 2]
    assert not [place for place in found if not place.startswith(MARKDOWN)]
