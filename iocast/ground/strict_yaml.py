# SPDX-License-Identifier: Apache-2.0
"""YAML that knows its lines and refuses what it does not know, for the files that only Python reads."""

from __future__ import annotations

import difflib
import math
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any, NoReturn, overload

import yaml

from iocast.ground import strict
from iocast.errors import InputError
from iocast.ground.strict import Json


def allowed_sentence(given: str, allowed: Sequence[str]) -> str:
    """ "Did you mean 'x'? Allowed: a, b." for the end of a message."""
    if not allowed:
        return "Nothing is allowed here."
    near = difflib.get_close_matches(given, allowed, n=1, cutoff=0.5)
    return (f"Did you mean '{near[0]}'? " if near else "") + f"Allowed: {', '.join(allowed)}."


class Section:
    """A map of a YAML file. Every key must be read before `finish()`."""

    def __init__(self, node: yaml.MappingNode, file: Path, path: str = "", kind: str = "") -> None:
        self.file = file
        self._kind = kind
        self.path = path
        self._line = node.start_mark.line + 1
        self._node = node
        self._keys: dict[str, tuple[yaml.Node, yaml.Mark]] = {}
        self._read: set[str] = set()
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                self.fail_at(key.start_mark.line + 1, "a key must be a single word or number")
            if key.value in self._keys:
                self.fail_at(key.start_mark.line + 1, f"the key '{key.value}' is given twice")
            self._keys[key.value] = (value, key.start_mark)

    @classmethod
    def load(cls, file: Path, kind: str = "") -> Section:
        """@param kind: what the file is, such as study, for messages"""
        node = strict.compose_yaml(strict.read_text(file), file)
        if not isinstance(node, yaml.MappingNode):
            raise InputError(f"The file '{file}' is not a YAML map of keys and values.")
        section = cls(node, file, kind=kind)
        version = section.number("schema_version", low=1)
        if version != 1:
            section.fail("schema_version", f"schema version {version:g} is unknown; this program reads version 1")
        return section

    def over(self, base: Section) -> Section:
        """This section upon `base`, which may be of another file: maps merge as in platforms
        (iocast.platforms.documents.merge), null takes a key away."""
        node = _merged(base._node, self._node)
        assert isinstance(node, yaml.MappingNode)
        return Section(node, self.file, self.path, self._kind)

    def is_null(self, key: str) -> bool:
        return key in self and self._keys[key][0].tag == _NULL

    def fail(self, key: str | None, sentence: str) -> NoReturn:
        if key in self._keys:
            self._fail(str(self._keys[key][1].name), self.line(key), sentence)
        self.fail_at(self._line, sentence)

    def fail_missing(self, key: str) -> NoReturn:
        """Refuses the section for a key that it lacks; the place is that of an unknown key which looks much like it."""
        kind = f" in a {self._kind}" if self._kind else ""
        unknown = [name for name in self._keys if name not in self._read]
        if near := difflib.get_close_matches(key, unknown, n=1, cutoff=0.75):
            self.fail(
                near[0], f"the key '{near[0]}' is unknown{kind or ' here'}, and '{key}' is missing; write '{key}'"
            )
        self.fail(None, f"the key '{key}' is missing{kind}")

    def fail_at(self, line: int, sentence: str) -> NoReturn:
        self._fail(str(self.file), line, sentence)

    def _fail(self, file: str, line: int, sentence: str) -> NoReturn:
        raise InputError(f"{file}:{line}: {f'in {self.path}, ' if self.path else ''}{sentence}.")

    def line(self, key: str | None = None) -> int:
        return self._keys[key][1].line + 1 if key in self._keys else self._line

    def __contains__(self, key: str) -> bool:
        self._read.add(key)
        return key in self._keys

    def keys(self) -> list[str]:
        return list(self._keys)

    def value(self, key: str, default: object = ...) -> Any:
        """Plain Python: numbers, texts, lists, maps."""
        if key not in self:
            if default is ...:
                self.fail_missing(key)
            return default
        return strict.construct(self._keys[key][0], self.file)

    def text(self, key: str, default: object = ...) -> str:
        value: object = self.value(key, default)
        if key in self._keys and (isinstance(value, bool) or not isinstance(value, str | int | float | date)):
            given = "nothing" if value is None else f"'{value}'"
            self.fail(key, f"'{key}' must be a text, not {given}; write it in quotes")
        return str(value)

    def texts(self, key: str, default: object = ...) -> list[str]:
        """A text or a list of texts, as a list."""
        value: object = self.value(key, default)
        return [str(one) for one in (value if isinstance(value, list) else [value])]

    @overload
    def number(self, key: str, default: float = ..., low: float = ..., high: float = ...) -> float: ...
    @overload
    def number(self, key: str, default: None, low: float = ..., high: float = ...) -> float | None: ...

    def number(
        self, key: str, default: object = ..., low: float = float("-inf"), high: float = float("inf")
    ) -> float | None:
        value: float | None = self.value(key, default)
        if key in self._keys:
            if isinstance(value, bool) or not isinstance(value, int | float):
                self.fail(key, f"'{key}' must be a number, not '{value}'")
            if not low <= value <= high or not math.isfinite(value):
                self.fail(key, f"'{key}' is {value:g}, outside its range {low:g} to {high:g}")
        return value

    def numbers(
        self, key: str, default: object = ..., low: float = float("-inf"), high: float = float("inf")
    ) -> list[float]:
        """A number or a list of numbers, as a list."""
        value: float | list[float] = self.value(key, default)
        values = value if isinstance(value, list) else [value]
        for x in values:
            if isinstance(x, bool) or not isinstance(x, int | float) or not low <= x <= high or not math.isfinite(x):
                self.fail(key, f"'{key}' holds '{x}', which is no number between {low:g} and {high:g}")
        return values

    def choice(self, key: str, allowed: Sequence[str], default: object = ...) -> str:
        value = self.text(key, default)
        if value not in allowed:
            self.fail(key, f"'{key}' can't be '{value}'. {allowed_sentence(value, allowed)[:-1]}")
        return value

    def flag(self, key: str, default: object = ...) -> bool:
        value: bool = self.value(key, default)
        if not isinstance(value, bool):
            self.fail(key, f"'{key}' must be true or false, not '{value}'")
        return value

    def map(self, key: str) -> dict[str, Any]:
        """A map of names and plain values; empty where the key is absent."""
        value: dict[str, Any] = self.value(key, {})
        if not isinstance(value, dict) or not all(isinstance(name, str) for name in value):
            self.fail(key, f"'{key}' must be a map of names and values")
        return value

    def section(self, key: str) -> Section:
        if key not in self:
            self.fail_missing(key)
        node = self._keys[key][0]
        if not isinstance(node, yaml.MappingNode):
            self.fail(key, f"'{key}' must be a map of keys and values")
        return Section(node, Path(node.start_mark.name), f"{self.path}.{key}" if self.path else key)

    def sections(self, key: str) -> list[Section]:
        if key not in self:
            self.fail_missing(key)
        node = self._keys[key][0]
        if not isinstance(node, yaml.SequenceNode) or not all(isinstance(n, yaml.MappingNode) for n in node.value):
            self.fail(key, f"'{key}' must be a list of maps")
        return [
            Section(n, self.file, f"{self.path}.{key}[{i}]" if self.path else f"{key}[{i}]")
            for i, n in enumerate(node.value)
        ]

    def entries(self, key: str) -> list[tuple[Section | Json, int]]:
        """A list whose members are maps (given as Sections) or plain values, each with its line."""
        if key not in self:
            self.fail_missing(key)
        node = self._keys[key][0]
        if not isinstance(node, yaml.SequenceNode):
            self.fail(key, f"'{key}' must be a list")
        members: list[tuple[Section | Json, int]] = []
        for i, member in enumerate(node.value):
            is_map = isinstance(member, yaml.MappingNode)
            content = (
                Section(member, self.file, f"{self.path}.{key}[{i}]" if self.path else f"{key}[{i}]")
                if is_map
                else strict.construct(member, self.file)
            )
            members.append((content, member.start_mark.line + 1))
        return members

    def finish(self) -> None:
        """Refuses keys that were not read."""
        for key in self._keys:
            if key not in self._read:
                self.fail(key, f"the key '{key}' is unknown here. {allowed_sentence(key, sorted(self._read))[:-1]}")


_NULL = "tag:yaml.org,2002:null"


def _merged(base: yaml.Node | None, over: yaml.Node) -> yaml.Node:
    """As iocast.platforms.documents.merge has it, of nodes, which keep their places."""
    if not isinstance(base, yaml.MappingNode) or not isinstance(over, yaml.MappingNode):
        return over
    found = {key.value: (key, value) for key, value in base.value}
    own = {key.value: (key, value) for key, value in over.value}
    if "law" in own:
        return over
    for name, (key, value) in own.items():
        if value.tag == _NULL:
            found.pop(name, None)
        else:
            found[name] = key, _merged(found[name][1] if name in found else None, value)
    return yaml.MappingNode(over.tag, list(found.values()), over.start_mark, over.end_mark)
