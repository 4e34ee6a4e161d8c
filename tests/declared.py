#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts habits in iocast/ that hide what travels and where from: values without a type, decisions that hang on a
sentence, modules that import each other, imports inside functions, and long files.

    tests/declared.py               each place where a sentence decides, circles, and the share of annotations with Any
    tests/declared.py build/any     expressions of type Any by module, as `mypy --any-exprs-report build/any` counts

The constants are what was counted last; tests/python/test_records.py and ./check fail when one has risen. Who lowers a
count lowers the constant."""

from __future__ import annotations

import ast
import sys
from functools import lru_cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ANY = 0.06
"""Largest share of the annotations of iocast/ that hold Any."""
ANY_EXPRESSIONS = 0.0150
"""Largest share of the expressions of iocast/ whose type is Any, by mypy's report."""
SENTENCES = 0
"""Most places where a text of three words or more is compared, searched, split or replaced."""
DECIDING = ("split", "replace", "startswith", "endswith", "partition", "rpartition", "removeprefix", "removesuffix")
WORDS = 3
INSIDE = 14
"""Most imports inside functions outside cli/; each spares a command what it doesn't need."""
LONG = 600
"""Lines of a file from which on it needs a reason."""
LONG_FILES: dict[str, str] = {}
"""Files above LONG, and why each is one."""


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
    texts = {".".join(file.with_suffix("").parts): _texts(tree) for file, tree in trees()}
    return [
        f"{file}:{node.lineno}"
        for file, tree in every
        for known in [_texts(tree) | _imported(tree, texts)]
        for node in ast.walk(tree)
        if any(_is_sentence(one, known) for one in _judged(node))
    ]


def _texts(tree: ast.Module) -> set[str]:
    """Names of a module's sentences."""
    return {
        target.id
        for node in tree.body
        if isinstance(node, ast.Assign) and _is_sentence(node.value, set())
        for target in node.targets
        if isinstance(target, ast.Name)
    }


def _imported(tree: ast.Module, texts: dict[str, set[str]]) -> set[str]:
    """Names under which a module has sentences of others."""
    return {
        one.asname or one.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for one in node.names
        if one.name in texts.get(str(node.module), set())
    }


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


def imported_by() -> dict[str, set[str]]:
    """By module the modules of iocast that it imports, inside functions and for types too, with the packages that
    Python loads on the way to them."""
    modules = {".".join(file.with_suffix("").parts).removesuffix(".__init__"): tree for file, tree in trees()}
    found: dict[str, set[str]] = {}
    for name, tree in modules.items():
        targets = {
            wanted if (wanted := f"{node.module}.{one.name}") in modules else str(node.module)
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom)
            for one in node.names
        }
        targets |= {one.name for node in ast.walk(tree) if isinstance(node, ast.Import) for one in node.names}
        loaded = {target.rsplit(".", up)[0] for target in targets for up in range(target.count(".") + 1)}
        found[name] = {one for one in loaded & modules.keys() if not f"{name}.".startswith(f"{one}.")}
    return found


def circles() -> list[list[str]]:
    """Modules that import each other, directly or through others; a group each."""
    edges = imported_by()
    reached: dict[str, set[str]] = {}
    for name in edges:
        seen: set[str] = set()
        left = list(edges[name])
        while left:
            if (one := left.pop()) not in seen:
                seen.add(one)
                left += edges[one]
        reached[name] = seen
    groups = {tuple(sorted(o for o in reached[n] if n in reached[o])) for n in edges if n in reached[n]}
    return [list(group) for group in sorted(groups)]


def imports_inside() -> list[str]:
    """FILE:LINE of each import of iocast inside a function, but those of the command line."""
    return [
        f"{file}:{node.lineno}"
        for file, tree in trees()
        if "cli" not in file.parts
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef)
        for node in ast.walk(function)
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("iocast")
    ]


def long_files() -> dict[str, int]:
    """Lines of the files that have more than LONG."""
    lines = {str(file): len((ROOT / file).read_text().splitlines()) for file, _ in trees()}
    return {file: count for file, count in lines.items() if count > LONG}


def any_expressions(report: str) -> dict[str, tuple[int, int]]:
    """By module the expressions of type Any and all expressions, most of the former first: any-exprs.txt of mypy."""
    rows = [line.split() for line in report.splitlines()]
    found = {row[0]: (int(row[1]), int(row[2])) for row in rows if len(row) == 4 and row[1].isdigit()}
    return dict(sorted(found.items(), key=lambda one: -one[1][0]))


def share_of_any_expressions(report: str) -> float:
    untyped, whole = any_expressions(report)["Total"]
    return untyped / whole


def print_any_expressions(report: str) -> int:
    """The report by module; 1 where the share has risen."""
    for module, (untyped, whole) in any_expressions(report).items():
        if untyped:
            print(f"{untyped:6} of {whole:6} expressions are Any in {module}")
    share = share_of_any_expressions(report)
    if share > ANY_EXPRESSIONS:
        print(f"{share:.2%} of the expressions are Any, at most {ANY_EXPRESSIONS:.2%}: give what travels a type.")
    return int(share > ANY_EXPRESSIONS)


if __name__ == "__main__":
    if sys.argv[1:]:
        sys.exit(print_any_expressions((Path(sys.argv[1]) / "any-exprs.txt").read_text()))
    print("\n".join(sentences_that_decide()))
    print(f"Circles: {circles() or 'none'}. {len(imports_inside())} imports inside functions. Long: {long_files()}.")
    print(f"{len(sentences_that_decide())} sentences decide; {share_of_any():.1%} of the annotations hold Any.")
