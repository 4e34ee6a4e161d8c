# SPDX-License-Identifier: Apache-2.0
"""Errors of the library in its own words: where a sentence names an option of the command line, a caller of Python
reads the argument."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from iocast.errors import InputError, RunError

P = ParamSpec("P")
T = TypeVar("T")
OTHERWISE = {
    "ppn": "ranks_per_node", "set": "settings", "edit": "edits", "backend-option": "backend_options", "hosts": "nodes",
    "max-rate-error": "most_rate_error", "forecast": "forecasts",
}  # fmt: skip
"""Arguments that have another name than their option, which is no plural of it."""
MAPS = {"settings", "edits", "only"}
_OPTION = re.compile(r"--([a-z][a-z-]*)(?:[ =]((?:'[^']*'|[^\s,;:)]+?)(?=[.]?(?:[\s,;:)]|$))))?")
_OF_A_COMMAND = re.compile(r"\b(?:iocast(?:-bench|-sim|-queuefs)?|mpirun|srun|sbatch) (?:(?!\. |[;)]).)*$")
_VALUE = re.compile(r"'.*'|.*=.*|[-\d.]+[A-Za-z]*|simulate|analytic|queue")


def as_arguments(text: str, parameters: set[str]) -> str:
    """The text with arguments of a call that has these parameters for options; those of commands that it names whole
    stay: "name one with --phase" is "name one with the argument phase", --solver analytic is solver="analytic"."""

    def argument(found: re.Match[str]) -> str:
        name = OTHERWISE.get(found[1], found[1].replace("-", "_"))
        name = next((one for one in (name, f"{name}s") if one in parameters), "")
        if not name or _OF_A_COMMAND.search(text[: found.start()]):
            return found[0]
        value = found[2]
        if value is None or not _VALUE.fullmatch(value):
            named = f"the argument {name}" if re.search(r"\b(?:with|by|without)\s$", text[: found.start()]) else name
            return named + found[0][len(f"--{found[1]}") :]
        plain = value.strip("'")
        if name in MAPS and "=" in plain:
            key, _, setting = plain.partition("=")
            return f'{name}={{"{key}": {[setting] if name == "only" else _quoted(setting)}}}'.replace("'", '"')
        return f"{name}={_quoted(plain)}"

    return _OPTION.sub(argument, text)


def _quoted(value: str) -> str:
    return value if re.fullmatch(r"-?\d+(\.\d+)?", value) else f'"{value}"'


def as_call(function: Callable[P, T]) -> Callable[P, T]:
    """The function with its errors in words of the library."""
    parameters = set(inspect.signature(function).parameters)

    @wraps(function)
    def call(*arguments: P.args, **named: P.kwargs) -> T:
        try:
            return function(*arguments, **named)
        except (InputError, RunError) as error:
            if error.args and isinstance(error.args[0], str):
                error.args = (as_arguments(error.args[0], parameters), *error.args[1:])
            raise

    return call
