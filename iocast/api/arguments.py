# SPDX-License-Identifier: Apache-2.0
"""Errors of the library in its own words: where a sentence names an option of the command line, a caller of Python
reads the argument."""

from __future__ import annotations

import inspect
import re
from collections import abc
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import cache, wraps
from numbers import Integral, Real
from pathlib import Path
from types import NoneType, UnionType
from typing import ParamSpec, TypeVar, Union, get_args, get_origin, get_type_hints

from iocast.errors import InputError, RunError
from iocast.ground.strict_yaml import allowed_sentence

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


def as_arguments(text: str, parameters: Collection[str]) -> str:
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
    """The function with its errors in words of the library. Arguments of another type than it declares are refused
    before anything is computed."""
    signature = inspect.signature(function)
    parameters = list(signature.parameters)

    @wraps(function)
    def call(*arguments: P.args, **named: P.kwargs) -> T:
        try:
            require_known(function.__name__, named, parameters)
            given = signature.bind(*arguments, **named)
            for name, value in given.arguments.items():
                require_type(name, value, _declared(function)[name])
                given.arguments[name] = int(value) if type(value) is not bool and isinstance(value, Integral) else value
            return function(*given.args, **given.kwargs)
        except (InputError, RunError) as error:
            if error.args and isinstance(error.args[0], str):
                error.args = (as_arguments(error.args[0], parameters), *error.args[1:])
            raise

    return call


def require_known(function: str, named: Iterable[str], known: Sequence[str]) -> None:
    """@raises TypeError for an argument that a call doesn't have, which may be an option of its command"""
    for name in named:
        if name not in known:
            meant = OTHERWISE.get(name.replace("_", "-"), f"{name}s")
            near = allowed_sentence(meant if meant in known else name, known)
            raise TypeError(f"{function}() has no argument '{name}'. {near}")


WORDS: dict[object, str] = {
    int: "a whole number", float: "a number", bool: "True or False", str: "a text", Path: "a path", "Runs": "runs",
    "Fitted": "a calibration",
}  # fmt: skip
"""Of the types that arguments declare, of this package's by name, which are loaded when they are needed."""


@cache
def _declared(function: Callable[..., object]) -> dict[str, object]:
    return get_type_hints(function)


def require_type(name: str, value: object, declared: object) -> None:
    """@raises InputError for an argument of another type than is declared"""
    if not _fits(value, declared):
        shown = repr(value)
        shown = shown if len(shown) <= 60 else f"{shown[:57]}..."
        raise InputError(f"The argument {name} is {shown}; it must be {_in_words(declared)}.")


def _fits(value: object, declared: object) -> bool:
    """Whether a value is of the type, as far as it shows without using it up; numbers of numpy are numbers."""
    origin, inner = get_origin(declared), get_args(declared)
    if origin in (Union, UnionType):
        return any(_fits(value, one) for one in inner)
    if origin is abc.Sequence:
        within = [*value] if isinstance(value, abc.Sequence | abc.Set) else []
        return (
            isinstance(value, abc.Iterable)
            and not isinstance(value, str | bytes | abc.Mapping)
            and all(_fits(one, inner[0]) for one in within)
        )
    if declared in (int, float):
        number = Integral if declared is int else Real
        return isinstance(value, number) and not isinstance(value, bool)
    kind = origin or declared
    return isinstance(value, kind) if isinstance(kind, type) else True


def _in_words(declared: object) -> str:
    origin, inner = get_origin(declared), get_args(declared)
    if origin in (Union, UnionType):
        return " or ".join(dict.fromkeys(_in_words(one) for one in inner if one is not NoneType))
    if origin is abc.Sequence:
        return f"a list, each {_in_words(inner[0])}"
    if origin is abc.Mapping:
        return "a map"
    if origin is abc.Callable:
        return "a function"
    name = getattr(declared, "__name__", str(declared))
    return WORDS.get(declared) or WORDS.get(name) or f"of the type {name}"
