# SPDX-License-Identifier: Apache-2.0
"""The application of `iocast`: verbs in groups, options by task, and the new names of spellings that have moved."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import is_dataclass
from typing import Any, TypeVar

import typer
from typing_extensions import get_type_hints
from typer.core import TyperCommand, TyperGroup

from iocast.errors import InputError

Function = TypeVar("Function", bound=Callable[..., None])
Entry = TypeVar("Entry")

MORE = "More"
GROUPS = {
    "Get data": ("measure", "plan", "knee", "import"),
    "Forecast": ("forecast", "simulate", "compare"),
    "Decide": ("study", "report"),
    MORE: ("calibrate", "predict", "validate", "observe", "export", "list", "describe", "selftest", "lab", "manual"),
}
"""Headings of `iocast --help` with their verbs, in order; a verb that is not here stands last."""
NO_SEED = "It draws nothing at random; leave the option out."
"""What follows where a verb without random choices is given --seed."""
GIVEN: dict[str, str] = {}
"""Options that the command line has, as they are written, by their parameter of the verb that runs."""
LINE: list[str] = []
"""The command line, as words."""
OTHER_NAMES = {
    f"--{what}": "--ppn"
    for what in ("ranks-per-node", "processes-per-node", "tasks-per-node", "ntasks-per-node", "npernode")
}
"""Names that launchers, benchmarks and iocast's own words have for an option."""
MOVED: dict[str, dict[str, str]] = {}
"""By verb: options that it had once, with the sentence that names what has taken their place."""


def grouped(entries: list[tuple[str | None, Entry]], default: str) -> dict[str, list[Entry]]:
    """Entries by heading, headings in the order of their first entry; `default` is the heading of those without."""
    groups: dict[str, list[Entry]] = {}
    for heading, entry in entries:
        groups.setdefault(heading or default, []).append(entry)
    return groups


class Verb(TyperCommand):
    """A command whose help has a section for each task (an option's `rich_help_panel`)."""

    def sections(self, context: Any) -> dict[str, list[tuple[str, str]]]:
        """Help of arguments and options by heading."""
        entries = []
        for parameter in self.get_params(context):
            if record := parameter.get_help_record(context):
                is_argument = parameter.param_type_name == "argument"
                entries.append(("Arguments" if is_argument else getattr(parameter, "rich_help_panel", None), record))
        sections = grouped(entries, "Other options")
        if "Other options" in sections:
            sections["Options" if set(sections) <= {"Arguments", "Other options"} else "Other options"] = sections.pop(
                "Other options"
            )
        return sections

    def format_options(self, ctx: Any, formatter: Any) -> None:
        for heading, records in self.sections(ctx).items():
            with formatter.section(heading):
                formatter.write_dl(records)

    def missing(self, parameter: Any) -> str:
        """That an option or an argument is missing, and what it is; empty where that is not known."""
        about = str(getattr(parameter, "help", None) or "").split(". ")[0].rstrip(".")
        if not about:
            return ""
        is_argument = parameter.param_type_name == "argument"
        name = str(parameter.metavar or parameter.name) if is_argument else max(parameter.opts, key=len)
        return f"iocast {self.name} needs {name}: {about[0].lower()}{about[1:]}."

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        LINE[:] = ["iocast", str(self.name), *args]
        try:
            rest: list[str] = super().parse_args(ctx, args)
            GIVEN.clear()
            GIVEN.update(
                {
                    parameter.name: max(parameter.opts, key=len)
                    for parameter in self.get_params(ctx)
                    if getattr(ctx.get_parameter_source(parameter.name), "name", "") == "COMMANDLINE"
                }
            )
            return rest
        except Exception as error:  # the class is click's, of which typer has its own copy in some versions
            if type(error).__name__ == "MissingParameter" and (sentence := self.missing(getattr(error, "param", None))):
                raise InputError(sentence) from None
            option = str(getattr(error, "option_name", ""))
            moved = MOVED.get(str(self.name), {}).get(option, NO_SEED if option == "--seed" else None)
            own = OTHER_NAMES.get(option, "")
            if moved is None and any(own in parameter.opts for parameter in self.get_params(ctx)):
                moved = f"It is {own} here."
            if moved is None or type(error).__name__ != "NoSuchOption":
                raise
            raise InputError(f"iocast {self.name} has no option {option}. {moved}") from None


class Verbs(TyperGroup):
    """The verbs under the headings of GROUPS."""

    def list_commands(self, ctx: Any) -> list[str]:
        order = [name for names in GROUPS.values() for name in names]
        return sorted(super().list_commands(ctx), key=lambda name: order.index(name) if name in order else len(order))

    def shown(self) -> dict[str, Verb]:
        """Those that are not hidden, in order."""
        every = {name: self.commands[name] for name in self.list_commands(None)}
        return {name: verb for name, verb in every.items() if isinstance(verb, Verb) and not verb.hidden}

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        shown = self.shown()
        width = max(map(len, shown))
        limit = formatter.width - 6 - width
        for heading in GROUPS:
            with formatter.section(heading):
                verbs = {name: verb for name, verb in shown.items() if group_of(name) == heading}
                formatter.write_dl(
                    [(f"{name:{width}}", verb.get_short_help_str(limit)) for name, verb in verbs.items()]
                )


def group_of(verb: str) -> str:
    """Heading of a verb in `iocast --help`."""
    return next((heading for heading, names in GROUPS.items() if verb in names), MORE)


app = typer.Typer(
    cls=Verbs,
    help="Measure a storage system small, forecast it large, and see how wrong that was.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    epilog='Exit status: 0 success; 1 failure; 2 wrong input; 4 the answer is "no" (validation missed its target or '
    "had nothing held out, the second run is worse, no load or design meets the levels).",
)


def command() -> Verbs:
    """The application as it runs."""
    found = typer.main.get_command(app)
    assert isinstance(found, Verbs)
    return found


def flattened(function: Callable[..., None]) -> Callable[..., None]:
    """The function with a keyword parameter for each field of its parameters that are dataclasses, in their place.

    Verbs that share several options have them as one dataclass; Typer knows parameters only."""
    hints = get_type_hints(function, include_extras=True)
    groups = {name: hint for name, hint in hints.items() if is_dataclass(hint) and isinstance(hint, type)}
    parameters: list[inspect.Parameter] = []
    members: dict[str, list[str]] = {}
    for name, parameter in inspect.signature(function).parameters.items():
        own = inspect.signature(groups[name]).parameters.values() if name in groups else [parameter]
        types = get_type_hints(groups[name], include_extras=True) if name in groups else hints
        members[name] = [one.name for one in own]
        parameters += [one.replace(kind=one.KEYWORD_ONLY, annotation=types[one.name]) for one in own]

    def call(**values: Any) -> None:
        built = {
            name: group(**{member: values.pop(member) for member in members[name]}) for name, group in groups.items()
        }
        function(**values, **built)

    call.__name__, call.__doc__, call.__module__ = function.__name__, function.__doc__, function.__module__
    call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    call.__annotations__ = {one.name: one.annotation for one in parameters}
    return call


def verb(epilog: str, name: str | None = None, moved: dict[str, str] | None = None) -> Callable[[Function], Function]:
    """Registers a function as a verb.

    The first paragraph of its docstring is its summary, at most 60 characters.

    @param epilog examples, shown below the options
    @param moved options that it had once: the sentence that names what has taken their place"""

    def register(function: Function) -> Function:
        app.command(name, cls=Verb, epilog=epilog)(flattened(function))
        MOVED[name or function.__name__] = moved or {}
        return function

    return register
