# SPDX-License-Identifier: Apache-2.0
"""Which phases of a workload a question is about when it names none."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from iocast.errors import InputError
from iocast.ground.strict_yaml import allowed_sentence

SET_UP_AND_CLEAN_UP = frozenset(
    "precreate precreate-directories cleanup cleanup-directories setup teardown make-directories make-files clean "
    "remove-files remove-directories tree-create tree-remove".split()
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


def phase_sentences(given: str, phases: Mapping[str, Collection[str]]) -> str:
    """Which phase was meant, and all that there are, for the end of a message. phases: their operations, in order; an
    operation's name is answered with the phase that does it."""
    ends = [name for name in phases if name.endswith(f"-{given}")]
    files = [name for name in ends if name.startswith("file-")]
    allowed = f"Allowed: {', '.join(phases)}."
    if len(ends) > 1 and files:  # of the same operation on files, directories and trees, files are meant mostly
        return f"Did you mean '{files[0]}'? {allowed}"
    doing = [name for name in phases if given in phases[name]]
    doing = [name for name in doing if not is_beside(name)] or doing
    if len(doing) == 1:
        return f"'{given}' is an operation of the phase {doing[0]}; name that phase. {allowed}"
    if doing:
        return f"'{given}' is an operation of the phases {', '.join(doing)}; name one of them. {allowed}"
    return allowed_sentence(given, list(phases))


def check_phase(
    phase: str, names: Iterable[str], workload: str, phases: Callable[[], Mapping[str, Collection[str]]]
) -> None:
    """@param phases their operations, for the message alone
    @raises InputError with the phases that there are"""
    if phase not in names:
        raise InputError(
            f"The workload {workload} has no phase '{phase}'; name one with --phase. {phase_sentences(phase, phases())}"
        )


def operations_in(phases: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """By phase of a run.json what it has of each operation, in order."""
    found: dict[str, dict[str, Any]] = {}
    for phase in phases:
        found.setdefault(phase["name"], {}).update(phase.get("by_operation") or {})
    return found


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
