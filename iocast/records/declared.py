# SPDX-License-Identifier: Apache-2.0
"""Documents as the records that declare them. The libraries' decoder judges a whole document at once and fast; what it
refuses is looked through again for the place, the value and what is allowed there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated, TypeVar

import msgspec
from msgspec import Meta, inspect

from iocast.ground.strict import shown

Amount = Annotated[float, Meta(ge=0, le=1e300)]
Count = Annotated[int, Meta(ge=0, le=2**63 - 1)]
Record = TypeVar("Record", bound=msgspec.Struct)


class Impossible(Exception):
    """What a document can't have: `where` it stands, dots between levels, and `what` is wrong, to be put after it."""

    def __init__(self, where: str, what: str) -> None:
        super().__init__(where + what)
        self.where, self.what = where, what


def record_of(document: object, kind: type[Record]) -> Record:
    """The document as a record; keys that it doesn't declare are left out.

    @raises Impossible with the first part that is missing or can't be"""
    try:
        return msgspec.convert(document, kind)
    except msgspec.ValidationError as error:
        raise next(_faults(document, inspect.type_info(kind), ""), Impossible("", str(error))) from error
    except UnicodeEncodeError as error:  # JSON may spell half of a pair of UTF-16
        raise Impossible("", f"the text {shown(error.object)} has a character that UTF-8 doesn't have") from error


def _faults(value: object, of: inspect.Type, where: str) -> Iterator[Impossible]:
    """Every part of the value that the type doesn't allow, in the order of the declaration."""
    wanted = ""
    if isinstance(of, inspect.Metadata):
        wanted, of = (of.extra_json_schema or {}).get("description", ""), of.type
    if isinstance(of, inspect.UnionType):
        if value is None and of.includes_none:
            return
        choices = [one for one in of.types if not isinstance(one, inspect.NoneType)]
        if any(_is_allowed(value, _bare(one)) for one in choices):
            return
        of = next((one for one in choices if isinstance(value, dict) == isinstance(_bare(one), _MAPS)), choices[0])
        if isinstance(of, inspect.Metadata):
            wanted, of = (of.extra_json_schema or {}).get("description", "") or wanted, of.type
    if isinstance(of, _MAPS) and not isinstance(value, dict):
        yield Impossible(where, f": {shown(value)} is not {wanted or 'a map'}")
    elif isinstance(of, inspect.StructType) and isinstance(value, dict):
        for field in of.fields:
            below = f"{where}.{field.encode_name}".lstrip(".")
            if field.encode_name in value:
                yield from _faults(value[field.encode_name], field.type, below)
            elif field.required:
                yield Impossible(where or f"the {of.cls.__name__.lower()}", f", has no '{field.encode_name}'")
        if of.forbid_unknown_fields and (unknown := value.keys() - {field.encode_name for field in of.fields}):
            yield Impossible(where, f", has the unknown key {shown(min(unknown))}, perhaps of a newer iocast")
    elif isinstance(of, inspect.DictType) and isinstance(value, dict):
        for key, one in value.items():
            if not _is_allowed(key, _bare(of.key_type)):
                yield Impossible(where, f": {shown(key)} is not a name")
            yield from _faults(one, of.value_type, f"{where}.{key if key.isprintable() else shown(key)}")
    elif isinstance(of, inspect.ListType):
        if not isinstance(value, list):
            yield Impossible(where, f": {shown(value)} is not {wanted or 'a list'}")
        else:
            for place, one in enumerate(value):
                yield from _faults(one, of.item_type, f"{where}[{place}]")
    elif isinstance(of, inspect.TupleType):
        if not isinstance(value, list) or len(value) != len(of.item_types):
            yield Impossible(where, f": {shown(value)} is not a list of {len(of.item_types)}")
        else:
            for place, (one, item) in enumerate(zip(value, of.item_types, strict=True)):
                yield from _faults(one, item, f"{where}[{place}]")
    elif not _is_allowed(value, of):
        yield Impossible(where, f": {shown(value)} is not {wanted or _wanted(value, of)}")


_MAPS = (inspect.StructType, inspect.DictType)


def _bare(of: inspect.Type) -> inspect.Type:
    return of.type if isinstance(of, inspect.Metadata) else of


def _is_allowed(value: object, of: inspect.Type) -> bool:
    if isinstance(of, inspect.IntType | inspect.FloatType):
        if isinstance(value, bool) or not isinstance(value, int if isinstance(of, inspect.IntType) else int | float):
            return False
        return (of.ge is None or of.ge <= value) and (of.le is None or value <= of.le)
    if isinstance(of, inspect.StrType):
        if not isinstance(value, str) or (of.max_length is not None and len(value) > of.max_length):
            return False
        return of.pattern is None or re.search(of.pattern, value) is not None
    if isinstance(of, inspect.LiteralType):
        return value in of.values
    return isinstance(of, inspect.AnyType) or (isinstance(of, inspect.BoolType) and isinstance(value, bool))


def _wanted(value: object, of: inspect.Type) -> str:
    """What is allowed in the place of a value, for the end of a sentence."""
    if isinstance(of, inspect.IntType | inspect.FloatType):
        fraction = isinstance(of, inspect.IntType) and (isinstance(value, bool) or not isinstance(value, int))
        return f"a {'whole ' * fraction}number" + ("" if of.ge is None else f" from {of.ge:g} on")
    if isinstance(of, inspect.LiteralType):
        return " or ".join(map(str, of.values))
    return "true or false" if isinstance(of, inspect.BoolType) else "a text"
