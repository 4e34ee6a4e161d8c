# SPDX-License-Identifier: Apache-2.0
"""Which phases of a workload a question is about when it names none."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from iocast.errors import InputError
from iocast.strict_yaml import allowed_sentence

SET_UP_AND_CLEAN_UP = frozenset(
    "precreate precreate-directories cleanup cleanup-directories setup teardown make-directories make-files clean remove-files "
    "remove-directories tree-create tree-remove".split()
)
"""Phases of the patterns that only make a data set or take it away. A mix of workloads joins the names of phases with
'+'."""


def is_beside(phase: str) -> bool:
    """Whether it only makes a data set or takes it away."""
    return all(one in SET_UP_AND_CLEAN_UP for one in phase.split("+"))


def main_phases(names: Iterable[str]) -> list[str]:
    """All but set-up and clean-up, in order, each once; all of them where nothing else is there."""
    every = list(dict.fromkeys(names))
    return [name for name in every if not is_beside(name)] or every


def first_phase(operations: Mapping[str, float]) -> str:
    """The phase that stands for a workload where one number is wanted: `benchmark`, or else of the main phases the one
    with most operations, the first of equals. `operations` by phase, in order."""
    main = main_phases(operations)
    return "benchmark" if "benchmark" in main else max(main, key=lambda phase: operations[phase])


def check_phase(phase: str, names: Iterable[str], workload: str) -> None:
    """@raises InputError with the phases that there are"""
    every = list(dict.fromkeys(names))
    if phase not in every:
        ends = [name for name in every if name.endswith(f"-{phase}")]
        files = [name for name in ends if name.startswith("file-")]
        if len(ends) > 1 and files:  # of the same operation on files, directories and trees, files are meant mostly
            raise InputError(
                f"The workload {workload} has no phase '{phase}'; name one with --phase. "
                f"Did you mean '{files[0]}'? Allowed: {', '.join(every)}."
            )
        raise InputError(
            f"The workload {workload} has no phase '{phase}'; name one with --phase. {allowed_sentence(phase, every)}"
        )


def operations_by_phase(phases: Iterable[Mapping[str, Any]]) -> dict[str, float]:
    """Operations of each phase of a run.json, over all repeats; phases without any are left out."""
    found: dict[str, float] = {}
    for phase in phases:
        found[phase["name"]] = found.get(phase["name"], 0) + (phase["operations"] or 0)
    return {name: count for name, count in found.items() if count} or found


BYTES = "bytes"
"""Unit of a rate that counts bytes, in the place of operations: `rate_unit` of a phase, `unit` of an answer."""


def rate_of(phase: Mapping[str, Any]) -> float | None:
    """The rate that a phase of a run.json is judged by: bytes a second where an imported one has that `rate_unit`, else
    operations a second. None where it isn't known."""
    if phase.get("rate_unit") == BYTES and phase.get("bytes_per_second") is not None:
        return float(phase["bytes_per_second"])
    return None if phase.get("rate") is None else float(phase["rate"])


def unit_entry(unit: object) -> dict[str, str]:
    """What an answer's rate carries beside its values: `unit` where it counts bytes, nothing for operations."""
    return {"unit": BYTES} if unit == BYTES else {}
