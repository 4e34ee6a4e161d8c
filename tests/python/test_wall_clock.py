# SPDX-License-Identifier: Apache-2.0
"""No test bounds from above what other work on the machine can stretch. A run that must end early would otherwise take
hours, so that its timeout fails; a time is compared with another of the same run, or is virtual or of a processor.
Timeouts only end what hangs, and so are long."""

import ast
import re
from collections.abc import Iterator

import pytest
from programs import REPOSITORY

REAL = ("tests/backends/", "tests/end_to_end/", "tests/equality/", "tests/mpi/")
"""Where runs are not simulated: the times of their results are of the wall clock."""
CLOCKS = {"monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns", "time", "time_ns"}
PATIENCE = 100
"""Seconds that a timeout has at least."""
MEASURED = re.compile(r"(?!most_|think_as)(.*_)?seconds|q\d+|mean|max")
"""Entries of results; those that are left out repeat what was requested."""


def bounds(source: str, real: bool) -> Iterator[int]:
    """Lines on which a wall time must not exceed a constant."""
    tree = ast.parse(source)
    spans = {
        target.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and _is_span(node.value)
        for target in node.targets
        if isinstance(target, ast.Name)
    }

    def of_the_wall_clock(side: ast.expr) -> bool:
        return (
            _is_span(side)
            or (isinstance(side, ast.Name) and side.id in spans)
            or (real and not ast.unparse(side).startswith("abs(") and any(map(_is_measured, ast.walk(side))))
        )

    for node in ast.walk(tree):
        if not isinstance(node, ast.Compare):
            continue
        sides = [node.left, *node.comparators]
        for before, operator, after in zip(sides, node.ops, sides[1:], strict=False):
            less, more = (after, before) if isinstance(operator, (ast.Gt, ast.GtE)) else (before, after)
            ordered = isinstance(operator, (ast.Gt, ast.GtE, ast.Lt, ast.LtE))
            if (ordered or _is_approximate(more)) and of_the_wall_clock(less) and _is_constant(more):
                yield node.lineno


def short_timeouts(source: str) -> Iterator[int]:
    """Lines on which something is given up early, in a call or as a moment from now on."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.keyword) and node.arg == "timeout":
            limit = node.value
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add) and _is_reading(node.left):
            limit = node.right
        else:
            continue
        if isinstance(limit, ast.Constant) and isinstance(limit.value, (int, float)) and 1 <= limit.value < PATIENCE:
            yield node.lineno


def _is_span(node: ast.expr) -> bool:
    """The time since a moment: a clock's reading, less another."""
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub) and _is_reading(node.left)


def _is_reading(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in CLOCKS


def _is_measured(node: ast.AST) -> bool:
    """An entry of a result that is a duration."""
    return (
        isinstance(node, ast.Subscript)
        and isinstance(node.slice, ast.Constant)
        and isinstance(node.slice.value, str)
        and MEASURED.fullmatch(node.slice.value) is not None
    )


def _is_approximate(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.approx"


def _is_constant(node: ast.expr) -> bool:
    parts = ast.walk(node.args[0] if isinstance(node, ast.Call) and _is_approximate(node) else node)
    return all(
        isinstance(part, (ast.Constant, ast.BinOp, ast.UnaryOp, ast.operator, ast.unaryop))
        or (isinstance(part, ast.Name) and part.id.isupper())
        or isinstance(part, ast.expr_context)
        for part in parts
    )


def test_no_test_is_late_because_the_machine_is_busy() -> None:
    found = [
        f"{name}:{line}"
        for directory in ("tests", "validation/theory")
        for path in sorted((REPOSITORY / directory).rglob("*.py"))
        for name in [str(path.relative_to(REPOSITORY))]
        for source in [path.read_text()]
        for line in (*bounds(source, name.startswith(REAL)), *short_timeouts(source))
    ]
    assert not found, f"Other work on the machine stretches the times that have a bound here: {', '.join(found)}."


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("assert time.monotonic() - began < 60", True),
        ("assert done and 60 >= time.perf_counter() - began", True),
        ("took = time.time() - began\nassert 0.5 < took < MOST", True),
        ("assert 0.3 <= phase['seconds'] + 0.02 < expected", False),
        ("assert 0.3 <= phase['seconds'] < 3", True),
        ("assert write['think_actual_seconds'] == pytest.approx(2 * 0.2, rel=0.5)", True),
        ("assert row['latency']['q50'] < 0.004", True),
        ("assert row['think_asked_seconds'] < 0.4", False),
        ("assert time.monotonic() - began > 0.8", False),
        ("while not ready():\n    assert time.monotonic() < until", False),
        ("assert many['seconds'] < 4 * one['seconds']", False),
    ],
)
def test_what_is_a_bound(line: str, found: bool) -> None:
    assert bool(list(bounds(line, real=True))) == found


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("process.communicate(timeout=20)", True),
        ("process.communicate(timeout=120)", False),
        ("until = time.monotonic() + 20", True),
        ("until = time.monotonic() + 600", False),
        ("end = time.monotonic() + 0.3  # at work until then", False),
    ],
)
def test_what_is_a_short_timeout(line: str, found: bool) -> None:
    assert bool(list(short_timeouts(line))) == found
