# SPDX-License-Identifier: Apache-2.0
"""The one way into files that somebody else may have written: text, JSON and YAML, with bounds on size, depth, aliases
and numbers. What goes beyond them, and whatever is damaged, is refused with file and line."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from iocast.errors import InputError

MAX_BYTES = 2**30
"""Bytes of a file that is read as a whole."""
MAX_YAML_BYTES = 2**23
"""Of YAML, which takes some two seconds for each million of bytes."""
MAX_JSON_BYTES = 2**26
"""Of one JSON text. Lists of lists take up to thirty times their text in memory."""
MAX_DEPTH = 100
"""Lists and maps within each other."""
MAX_ALIASED = 100_000
"""Nodes that the aliases of a YAML file repeat."""
NUMBER = r"(?:[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?)"
"""Pattern of a number in a text. It matches a text in one way only: where what follows doesn't, a pattern that could
split the digits differently would try every way, which takes minutes for a few thousand digits."""
MAX_DIGITS = 300
"""Digits of a number without an exponent."""
_files: list[Path] = []
"""What was read last, for whoever has to say where something unexpected came from."""
_WHOLE = re.compile(r"[0-9]{1,18}")
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""A fitted platform with its draws is long: the C loader, where there is one, reads it in a tenth of the time."""
_ODD_JSON = re.compile(r"\d{%d}|\de[+]?\d{3}|NaN|Infinity" % MAX_DIGITS, re.IGNORECASE)
"""What a number beyond the bounds has in it, among much else."""
_NO_NUMBER = re.compile(r"(?<=[\s:\[,])-?(NaN|Infinity)(?=[\s,\]}])")


Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]
"""What a document of JSON or YAML holds, for what walks through any of them."""


def is_whole(text: str) -> bool:
    """Whether a text is a whole number that int() reads and that fits into 64 bits: 1 to 18 digits, none of them a "²"
    or a digit of another script."""
    return _WHOLE.fullmatch(text) is not None


def shown(value: Any) -> str:
    """A value of a file, for a message: short, without what a terminal would act on."""
    try:
        text = ascii(value)
    except (ValueError, RecursionError):
        text = f"a {type(value).__name__}"
    return text if len(text) <= 80 else f"{text[:77]}..."


def last_files() -> list[Path]:
    """The files that were read last, latest first."""
    return list(dict.fromkeys(reversed(_files)))


def read_bytes(path: Path, limit: int = MAX_BYTES) -> bytes:
    """@raises InputError for what is no regular file, is larger than `limit`, or can't be read"""
    _files[:] = [*_files[-2:], path]
    try:
        # A pipe would have its reader wait for somebody who writes.
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(handle, "rb") as file:
            about = os.fstat(file.fileno())
            if not stat.S_ISREG(about.st_mode):
                raise InputError(f"The file '{path}' can't be read: it is a pipe or a device; name a plain file.")
            if about.st_size > limit:
                raise InputError(
                    f"The file '{path}' has {about.st_size} bytes; more than {limit} of such a file are not read."
                )
            return file.read(limit + 1)
    except IsADirectoryError as error:
        within = f", such as '{path / 'study.yaml'}'" if (path / "study.yaml").is_file() else ""
        raise InputError(f"The file '{path}' can't be read: it is a directory; name a file{within}.") from error
    except OSError as error:
        raise InputError(f"The file '{path}' can't be read: {error.strerror}.") from error
    except ValueError as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"There is no file {shown(str(path))}: a name has no zero in it.") from error


def read_text(path: Path, limit: int = MAX_BYTES) -> str:
    """@raises InputError also for what is not UTF-8, with the line"""
    content = read_bytes(path, limit)
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise InputError(
            f"{path}:{line}: this is no text in UTF-8 (byte {content[error.start]:#04x}); the file is damaged, or of "
            "another kind."
        ) from error


def parse_json(text: str, path: Path, first_line: int = 1) -> Any:
    """The content of a JSON text whose first line is `first_line` of the file. Numbers are finite.

    @raises InputError with the line"""
    if len(text) > MAX_JSON_BYTES:
        raise InputError(
            f"{path}:{first_line}: this JSON has {len(text)} characters; more than {MAX_JSON_BYTES} are not read."
        )
    options: dict[str, Any] = {}
    if _ODD_JSON.search(text):  # rare; the scanner in C knows no bounds
        options = {"parse_int": _integer, "parse_float": _real, "parse_constant": _no_constant}
    try:
        content = json.loads(text, **options)
    except json.JSONDecodeError as error:
        raise InputError(
            f"{path}:{first_line + error.lineno - 1}: this is not valid JSON ({error.msg}); the file may have been cut "
            "off."
        ) from error
    except RecursionError as error:
        raise InputError(
            f"{path}:{first_line}: lists and maps within each other are deeper than {MAX_DEPTH} here."
        ) from error
    except _Bound as error:
        line = first_line + text.count("\n", 0, max(text.find(error.number), 0))
        raise InputError(
            f"{path}:{line}: the number {shown(error.number)[1:-1]} can't be; it must be finite, with at most "
            f"{MAX_DIGITS} digits."
        ) from error
    if _depth(content) > MAX_DEPTH:
        raise InputError(f"{path}:{first_line}: lists and maps within each other are deeper than {MAX_DEPTH} here.")
    return content


def parse_yaml(text: str, path: Path) -> Any:
    """The content of a YAML text as plain values.

    @raises InputError with the line"""
    with refusing(path, lines=text.rstrip().count("\n") + 1):
        _require_bounds(text, path)
        loader = _LOADER(text)
        try:
            node = loader.get_single_node()
            if node is None:
                return None
            require_small(node, path)
            return construct(node, path, loader)
        finally:
            loader.dispose()


def compose_yaml(text: str, path: Path) -> yaml.Node | None:
    """The nodes of a YAML text, with their lines.

    @raises InputError with the line"""
    with refusing(path, lines=text.rstrip().count("\n") + 1):
        _require_bounds(text, path)
        loader = _LOADER(_Named(text, path))
        try:
            node = loader.get_single_node()
        finally:
            loader.dispose()
        if node is not None:
            require_small(node, path)
        return node


class _Named(io.StringIO):
    """A text of a file, so that marks tell the file, also of sections merged from several."""

    def __init__(self, text: str, path: Path) -> None:
        super().__init__(text)
        self.name = str(path)


def read_yaml_text(path: Path) -> str:
    """A YAML file within the bounds, for a reader with rules of its own.

    @raises InputError with the line"""
    text = read_text(path, MAX_YAML_BYTES)
    compose_yaml(text, path)
    return text


def construct(node: yaml.Node, path: Path, loader: Any = None) -> Any:
    """A node's value as Python has it.

    @raises InputError with the line"""
    with refusing(path, node.start_mark.line + 1):
        for scalar in _scalars(node):
            if (
                len(scalar.value) > MAX_DIGITS
                and re.fullmatch(r"[-+]?[\d_xXoObB.a-fA-F:]+", scalar.value)
                and scalar.tag != "tag:yaml.org,2002:str"
            ):
                raise InputError(
                    f"{path}:{scalar.start_mark.line + 1}: the number {scalar.value[:20]}... has more than "
                    f"{MAX_DIGITS} digits."
                )
        return (loader or yaml.SafeLoader("")).construct_document(node)


@contextlib.contextmanager
def refusing(path: Path, line: int = 1, lines: int = sys.maxsize) -> Iterator[None]:
    """Turns a YAML library's error about a file of `lines` lines into an InputError."""
    try:
        yield
    except InputError:
        raise
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else line
        raise InputError(f"{path}:{min(line, lines)}: this is not valid YAML: {error.problem}.") from error
    except yaml.reader.ReaderError as error:
        raise InputError(
            f"{path}:{line}: this is not YAML text: it has a character that YAML can't have ({error.reason})."
        ) from error
    except RecursionError as error:
        raise InputError(
            f"{path}:{line}: lists and maps within each other are deeper than {MAX_DEPTH} here."
        ) from error
    except (yaml.YAMLError, ValueError, TypeError, KeyError, IndexError, OverflowError, AttributeError) as error:
        # PyYAML's constructors let through what Python says of "!!int x", 2001-13-45, unhashable keys and the like.
        raise InputError(
            f"{path}:{line}: a value here is not what YAML calls it: {shown(str(error))[1:-1]}."
        ) from error


def _require_bounds(text: str, path: Path) -> None:
    """Of depth, before anything is built that is as deep."""
    if len(text) > MAX_YAML_BYTES:
        raise InputError(
            f"The file '{path}' has {len(text)} characters; more than {MAX_YAML_BYTES} of YAML are not read."
        )
    depth = 0
    for event in yaml.parse(text, Loader=_LOADER):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > MAX_DEPTH:
                line = event.start_mark.line + 1 if event.start_mark else 1
                raise InputError(f"{path}:{line}: lists and maps within each other are deeper than {MAX_DEPTH} here.")
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


def require_small(root: yaml.Node, path: Path) -> None:
    """Refuses a node that contains itself, or whose aliases repeat too much."""
    sizes: dict[int, int] = {}
    open_nodes: set[int] = set()

    def size(node: yaml.Node) -> int:
        if isinstance(node, yaml.ScalarNode):
            return 1
        known = sizes.get(id(node))
        if known is not None:
            return known
        if id(node) in open_nodes:
            raise InputError(f"{path}:{node.start_mark.line + 1}: what begins here contains itself by an alias.")
        open_nodes.add(id(node))
        found = (
            1 + sum(size(k) + size(v) for k, v in node.value)
            if isinstance(node, yaml.MappingNode)
            else 1 + sum(map(size, node.value))
        )
        open_nodes.discard(id(node))
        sizes[id(node)] = found
        return found

    if (whole := size(root)) > MAX_ALIASED:
        plain = sum(1 + sum(isinstance(part, yaml.ScalarNode) for part in _parts(node)) for node in _collections(root))
        if whole - plain > MAX_ALIASED:
            raise InputError(
                f"{path}:{root.start_mark.line + 1}: aliases (*name) repeat more than {MAX_ALIASED} values; write them "
                "out where they are needed."
            )


def _parts(node: yaml.CollectionNode) -> list[yaml.Node]:
    return [part for pair in node.value for part in pair] if isinstance(node, yaml.MappingNode) else node.value


def _collections(root: yaml.Node) -> Iterator[yaml.CollectionNode]:
    """Each list and map once."""
    waiting, seen = [root], {id(root)}
    while waiting:
        node = waiting.pop()
        if isinstance(node, yaml.CollectionNode):
            yield node
            for part in _parts(node):
                if id(part) not in seen:
                    seen.add(id(part))
                    waiting.append(part)


def _scalars(root: yaml.Node) -> Iterator[yaml.ScalarNode]:
    if isinstance(root, yaml.ScalarNode):
        yield root
    for node in _collections(root):
        yield from (part for part in _parts(node) if isinstance(part, yaml.ScalarNode))


class _Bound(Exception):
    def __init__(self, number: str) -> None:
        self.number = number


def _integer(text: str) -> int:
    if len(text) > MAX_DIGITS:
        raise _Bound(text)
    return int(text)


def _real(text: str) -> float:
    value = float(text)
    if value - value != 0 or len(text) > 2 * MAX_DIGITS:
        raise _Bound(text)
    return value


def _no_constant(text: str) -> float:
    raise _Bound(text)


def _depth(content: Any) -> int:
    """Without recursion."""
    level, depth = [content], 0
    while level:
        level = [
            part
            for one in level
            if isinstance(one, dict | list)
            for part in (one.values() if isinstance(one, dict) else one)
            if isinstance(part, dict | list)
        ]
        depth += 1
    return depth
