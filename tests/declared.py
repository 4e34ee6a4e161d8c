#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts two habits in iocast/ that hide what travels: values without a type, and decisions that hang on a sentence.

    tests/declared.py    each place where a sentence decides, and the share of annotations with Any

`ANY` and `SENTENCES` are what was counted last; tests/python/test_records.py fails when one has risen. Who lowers a
count lowers the constant."""

from __future__ import annotations

import ast
from functools import lru_cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ANY = 0.13
"""Largest share of the annotations of iocast/ that hold Any."""
SENTENCES = 24
"""Most places where a text of three words or more is compared, searched, split or replaced."""
DECIDING = ("split", "replace", "startswith", "endswith", "partition", "rpartition", "removeprefix", "removesuffix")
WORDS = 3


@lru_cache(maxsize=1)
def trees() -> list[tuple[Path, ast.Module]]:
    files = sorted((ROOT / "iocast").rglob("*.py"))
    return [(file.relative_to(ROOT), ast.parse(file.read_text())) for file in files]


def share_of_any() -> float:
    """Of the annotations of arguments, results, variables and aliases the share with Any, below an alias of it too."""
    total = untyped = 0
    for _, tree in trees():
        hiding = {"Any"}
        for node in ast.walk(tree):  # Document = dict[str, Any]
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Subscript) and _names(node.value) & hiding:
                hiding |= {target.id for target in node.targets if isinstance(target, ast.Name)}
        for node in ast.walk(tree):
            found = [node.annotation] if isinstance(node, ast.arg | ast.AnnAssign) else []
            found += [node.returns] if isinstance(node, ast.FunctionDef) else []
            known = [one for one in found if one is not None]
            total += len(known)
            untyped += sum(bool(_names(one) & hiding) for one in known)
    return untyped / total


def _names(node: ast.AST) -> set[str]:
    return {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}


def sentences_that_decide() -> list[str]:
    """FILE:LINE of each, but of importers, which read the sentences of other tools."""
    every = [(file, tree) for file, tree in trees() if "importers" not in file.parts]
    texts = {
        target.id
        for _, tree in every
        for node in tree.body
        if isinstance(node, ast.Assign) and _is_sentence(node.value, set())
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    return [
        f"{file}:{node.lineno}"
        for file, tree in every
        for node in ast.walk(tree)
        if any(_is_sentence(one, texts) for one in _judged(node))
    ]


def _judged(node: ast.AST) -> list[ast.expr]:
    """What decides: the sides of a comparison that are no containers of it, the arguments of a search in a text."""
    if isinstance(node, ast.Compare):
        contains = isinstance(node.ops[0], ast.In | ast.NotIn)
        return [node.left] if contains else [node.left, *node.comparators]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in DECIDING:
        return node.args[:1]
    return []


def _is_sentence(node: ast.expr, texts: set[str]) -> bool:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return len([word for word in node.value.split() if word.isalpha()]) >= WORDS
    if isinstance(node, ast.JoinedStr):
        parts = " ".join(str(one.value) for one in node.values if isinstance(one, ast.Constant))
        return len([word for word in parts.split() if word.isalpha()]) >= WORDS
    return isinstance(node, ast.Name) and node.id in texts


if __name__ == "__main__":
    print("\n".join(sentences_that_decide()))
    print(f"{len(sentences_that_decide())} sentences decide; {share_of_any():.1%} of the annotations hold Any.")
