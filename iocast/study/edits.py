# SPDX-License-Identifier: Apache-2.0
"""Edits of a study, each of which its platforms must have a place for."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from iocast.errors import InputError
from iocast.platforms.fitted import Fitted
from iocast.platforms.documents import Document, get_path, merge
from iocast.platforms.platform_names import is_unused, known_paths, missing, unused
from iocast.study.designs import Platform
from iocast.study.documents import Edit, number, plus
from iocast.study.spec import Study


def checked_edits(
    study: Study, name: str, document: Document, resolved: Document, resolve: Callable[[Document], Document]
) -> list[Edit]:
    """Refuses edits of parts that the platform does not have. Returns the defaults of edited values that are not
    written in its files. resolve: a platform's document as the simulator understands it

    @raises InputError with the line of the study"""
    known = known_paths(document, resolved)
    whole_document = document
    for axis in study.axes:
        for value in axis.values:
            known |= {p for e in value.edits if e.how == "lay" for p in known_paths(e.value, {})}
            for edit in value.edits:
                whole_document = merge(whole_document, edit.value) if edit.how == "lay" else whole_document
    rerouted = any(e.path.startswith("operations.") for axis in study.axes for v in axis.values for e in v.edits)
    defaults: dict[str, Edit] = {}
    others = [v.platform for axis in study.axes for v in axis.values if v.platform]

    def check(path: str, where: str, line: int, value: object = None, how: str = "set") -> None:
        if why := missing(path, known, document, resolve, value):
            raise InputError(
                f"{study.file}:{line}: in {where}, the platform '{short(name)}' has nothing at '{path}'. {why}"
            )
        if not others and not rerouted and is_unused(path, whole_document, resolved):
            raise InputError(f"{study.file}:{line}: in {where}, {unused(path, short(name))}")
        now: object = get_path(document, path)
        if now is None and (default := get_path(resolved, path)) is not None:
            defaults[path] = Edit(path, "set", default)
            now = default
        if how in ("times", "plus") and now is not None and not (isinstance(now, dict) and "law" in now):
            if number(now) is None:
                raise InputError(
                    f"{study.file}:{line}: in {where}, '{path}' is '{now}', which is no number to change by a "
                    f"{'factor' if how == 'times' else 'sum'}."
                )
            if how == "plus":
                try:
                    plus(now, value)
                except InputError as error:
                    raise InputError(f"{study.file}:{line}: in {where}, {error}") from error

    for axis in study.axes:
        for value in axis.values:
            # With several families each gets the edits of its own parts; one of them must have the part.
            if (
                others
                and not all(e.how == "lay" or e.path in known for e in value.edits)
                and _elsewhere(study, value.edits, name, resolve)
            ):
                continue
            for edit in value.edits:
                if edit.how != "lay":
                    check(edit.path, f"axes.{axis.name}.{value.name}", value.line, edit.value, edit.how)
    for scenario in study.scenarios.values():
        for edit in scenario.edits:
            if edit.how != "lay":
                check(edit.path, f"scenarios.{scenario.name}", scenario.line, edit.value, edit.how)
    for uncertain in study.uncertainty.values():
        for path in uncertain.paths:
            check(path, f"uncertainty.{uncertain.name}", uncertain.line, how="times")
    return list(defaults.values())


def _elsewhere(study: Study, edits: Iterable[Edit], name: str, resolve: Callable[[Document], Document]) -> bool:
    """Whether another of the study's platforms has all that is edited."""
    for other in {study.platform, *(v.platform for axis in study.axes for v in axis.values if v.platform)} - {name}:
        document, _ = Platform(other, Fitted.open(other), []).best
        resolved = resolve(document)
        if all(e.how == "lay" or e.path in known_paths(document, resolved) for e in edits):
            return True
    return False


def short(name: str) -> str:
    """A platform without its directory."""
    return name.rpartition("/")[2]
