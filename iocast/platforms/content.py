# SPDX-License-Identifier: Apache-2.0
"""The content that an answer depends on, as one hash: platforms, workloads, traces and programs.

Every store of results takes its keys from here: a study's evaluations and a calibration's trace. Names and places of
files, the order of keys, comments and descriptions don't count; a changed number anywhere, also in a platform that is
extended, a workload file or a trace, does.
"""

from __future__ import annotations

import ast
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from importlib import metadata
from pathlib import Path
from typing import Any, cast

import yaml

from iocast.ground import binaries, strict
from iocast.errors import InputError
from iocast.ground.files import data_directory
from iocast.platforms.documents import Document, chain, find_platform, merge
from iocast.ground.strict import Json

PROSE = ("schema_version", "extends", "description", "source", "calibration", "fitted")
"""Keys of a platform file that say nothing about how it behaves. `serves` is not one of them: what it refuses, and how
far it lies from published numbers, is part of an answer."""
WORKLOAD_PROSE = ("schema_version", "description", "source", "small")
"""Keys of a workload file that say nothing about what it asks for; `small` holds settings for tests."""
ORDERED_PATTERNS = ("mix",)
"""Patterns for which the order of parameters counts: members of a mix get their ranks in that order."""


def content_hash(content: Json | Mapping[str, Any] | Sequence[Any]) -> str:
    """32 hexadecimal digits of SHA-256 over plain data; the same for the same content in any order of keys, and for 1
    and 1.0. A platform of SimGrid counts by its file's content, wherever that lies."""
    return hashlib.sha256(json.dumps(_canonical(content), sort_keys=True, separators=(",", ":")).encode()).hexdigest()[
        :32
    ]


def whole(document: Document, beside: Path | None = None) -> Document:
    """The platform document with all that it extends merged in, without prose. `beside`: the folder that `extends` is
    relative to."""
    merged: Document = {}
    if "extends" in document:
        for _, base in reversed(chain(find_platform(str(document["extends"]), beside))):
            merged = merge(merged, base)
    merged = merge(merged, document)
    return {"schema_version": 1} | {key: value for key, value in merged.items() if key not in PROSE}


def platform_hash(document: Document, beside: Path | None = None) -> str:
    """Of how the platform behaves: its document with all that it extends."""
    return content_hash(whole(document, beside))


def workload_hash(reference: str, settings: Mapping[str, str]) -> str:
    """Content of the operations of a workload under these settings. `reference`: a file, a workload of the catalogue or
    a pattern.

    Holds the files' content, that of the members of a mix and of traces. What can't be read counts by its name: the
    simulator refuses it."""
    return content_hash(_workload(reference, settings, ()))


def program_hash(programs: Iterable[str], files: Iterable[Path] = (), packages: Iterable[str] = ()) -> str:
    """Of the named programs with the libraries that they report, of the code of source files (`computing`), and of the
    installed versions of Python packages."""
    named = list(programs)
    paths = [path for name in named for path in binaries.files_of(name)]
    reported = [binaries.version(binaries.find(name)) for name in named]
    hashes = [*map(_file_hash, paths), *map(_source_hash, files)]
    return content_hash([hashes, reported, [metadata.version(name) for name in packages]])


READERS = frozenset(
    ["iocast.errors", "iocast.runs.agreement"]
    + [f"iocast.ground.{name}" for name in "files names processes progress scratch strict strict_yaml".split()]
)
"""Modules that read, check and start, and compute nothing: an answer is the same after a change of theirs."""


@lru_cache(maxsize=None)
def sources_of(module: str) -> tuple[Path, ...]:
    """Source files of iocast that the module's answers depend on: its own, and those of all modules that it imports,
    inside functions too, and that these import, without READERS; in the order of their names.

    @param module full name, iocast.study.evaluate for one"""
    root, found, left = Path(__file__).resolve().parents[1], set[Path](), [module]
    while left:
        name = left.pop()
        if name in READERS or name == root.name:  # the package itself computes nothing: it names its calls
            continue
        parts = name.split(".")
        file = root.joinpath(*parts[1:]).with_suffix(".py") if len(parts) > 1 else root / "__init__.py"
        file = file if file.is_file() else file.with_suffix("") / "__init__.py"
        if parts[0] != root.name or file in found or not file.is_file():
            continue
        found.add(file)
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module:
                left += [node.module, *(f"{node.module}.{one.name}" for one in node.names)]
            elif isinstance(node, ast.Import):
                left += [one.name for one in node.names]
    return tuple(sorted(found))


def computing(source: str) -> str:
    """The Python source without what no answer depends on: comments, layout, docstrings and the sentences of errors."""
    return ast.unparse(_Computing().visit(ast.parse(source)))


class _Computing(ast.NodeTransformer):
    def visit_Expr(self, node: ast.Expr) -> ast.AST | None:
        """Nothing of a docstring, or of one below a constant."""
        return None if isinstance(node.value, ast.Constant) else self.generic_visit(node)

    def visit_Raise(self, node: ast.Raise) -> ast.AST:
        """The kind of an error, without its sentence."""
        return ast.Raise(exc=node.exc.func if isinstance(node.exc, ast.Call) else node.exc)


def _source_hash(file: Path) -> str:
    return _source_hash_of(file, *_stamp(file))


@lru_cache(maxsize=512)
def _source_hash_of(file: Path, *_: int) -> str:
    return content_hash(computing(file.read_text(encoding="utf-8")))


def _canonical(content: Json | Mapping[str, Json] | Sequence[Json]) -> Json:
    if isinstance(content, Mapping):
        return {str(key): _canonical(_content_of(str(key), value)) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return [_canonical(value) for value in content]
    return (
        float(content)
        if isinstance(content, int) and not isinstance(content, bool) and abs(content) < 2**53
        else cast(Json, content)
    )


def _content_of(key: str, value: Json) -> Json:
    """The value, or the hash of the file that it names; what can't be read the simulator refuses."""
    if key == "simgrid" and isinstance(value, str) and Path(value).is_file():
        return {"content": _file_hash(Path(value))}
    return value


def _workload(reference: str, settings: Mapping[str, str], above: tuple[str, ...]) -> Json:
    file = _workload_file(reference)
    document: dict[str, Json] = (
        {"pattern": reference} if file is None or reference in above else dict(_read(file, *_stamp(file)))
    )
    for key in WORKLOAD_PROSE:
        document.pop(key, None)
    parameters = document.get("parameters")
    document["parameters"] = (
        _named_files(parameters, (*above, reference)) if isinstance(parameters, dict) else parameters
    )
    own = _named_files(dict(settings), (*above, reference))
    if document.get("pattern") in ORDERED_PATTERNS:
        return [document | {"parameters": _in_order(document["parameters"])}, _in_order(own)]
    return [document, own]


def _named_files(parameters: Mapping[str, Json], above: tuple[str, ...]) -> dict[str, Json]:
    """The parameters, with content in place of names: a trace (`file`, `trace`), the workload of a mix's member."""
    found: dict[str, Json] = {}
    for name, value in parameters.items():
        last = str(name).rpartition(".")[2]
        if isinstance(value, dict):
            value = _named_files(value, above)
        elif last in ("file", "trace") and (trace := _trace(str(value))) is not None:
            value = {"content": _file_hash(trace)}
        elif last == "workload":
            value = _workload(str(value), {}, above)
        found[str(name)] = value
    return found


def _in_order(parameters: Json) -> Json:
    return (
        [[name, _in_order(value)] for name, value in parameters.items()] if isinstance(parameters, dict) else parameters
    )


def _workload_file(reference: str) -> Path | None:
    if reference.endswith((".yaml", ".yml")):
        return Path(reference)
    file = data_directory("workload/catalogue") / f"{reference}.yaml"
    return file if file.is_file() else None


def _trace(name: str) -> Path | None:
    """The file that `replay` and `kv-cache` read: a path, or a trace that comes with iocast."""
    places = [Path(name)] + ([data_directory("workload/traces") / name] if "/" not in name else [])
    return next((place for place in places if place.is_file()), None)


def _stamp(file: Path) -> tuple[int, int]:
    """Changes when the file does."""
    try:
        status = file.stat()
    except OSError:
        return 0, 0
    return status.st_mtime_ns, status.st_size


@lru_cache(maxsize=64)
def _read(file: Path, *_: int) -> dict[str, Any]:
    """A workload file with its values as text: the simulator reads them, by rules of its own."""
    try:
        content = yaml.load(strict.read_yaml_text(file), Loader=getattr(yaml, "CBaseLoader", yaml.BaseLoader))
    except (InputError, OSError, yaml.YAMLError):  # the simulator says what is wrong with it
        content = None
    return content if isinstance(content, dict) else {"pattern": str(file)}


def _file_hash(file: Path) -> str:
    return _file_hash_of(file, *_stamp(file))


@lru_cache(maxsize=256)
def _file_hash_of(file: Path, *_: int) -> str:
    found = hashlib.sha256()
    with file.open("rb") as opened:
        while block := opened.read(1 << 20):
            found.update(block)
    return found.hexdigest()
