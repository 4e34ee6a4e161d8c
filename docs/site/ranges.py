# SPDX-License-Identifier: Apache-2.0
"""Units, defaults and ranges of the keys of platform files, from the sources that read them (models/platform_*.cpp)
and, for mechanisms and all that is declared like them, from what the simulator says."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MODELS = Path(__file__).resolve().parents[2] / "models"
READERS = {
    "read_stations": ["station"],
    "read_speeds": ["station"],
    "read_limits_and_locks": ["limit"],
    "read_extent": ["lock"],
    "read_network": ["network"],
    "read_topology": ["network"],
    "read_steps": ["visit"],
    "read_look": ["cache"],
    "read": ["clients"],
}
"""Primitives whose keys a function reads."""
UNITS = {
    "count": "whole number",
    "factor": "number",
    "bytes": "bytes (64KiB)",
    "seconds": "time (2ms)",
    "rate": "per second (5/s)",
    "per second": "per second (5/s)",
    "bandwidth": "bytes a second (10GB/s)",
    "demand": "demand (2ms, a law or a name)",
    "bytes per second": "bytes a second (10GB/s)",
}
DEMANDS = {("visit", "demand"), ("lock", "hand_over"), ("delay", "delay")}
"""Keys whose value is a demand: a time, a law, or the name of one."""
STEPS = {"recall"}
NAMES = {"station", "lock", "transfer", "flush", "forget", "of"}
NUMBER = r"[^,();]+(?:\([^()]*\))?[^,();]*"


@dataclass(frozen=True)
class Range:
    unit: str
    low: str = ""
    high: str = ""
    default: str = ""

    @property
    def between(self) -> str:
        return f"{self.low} to {self.high}" if self.low or self.high else ""


def ranges() -> dict[tuple[str, str], Range]:
    """By primitive and key; keys whose values are words, lists or steps are left out."""
    constants = _constants()
    found: dict[tuple[str, str], Range] = {}
    for file in sorted(MODELS.glob("platform_*.cpp")):
        for name, body in _functions(file.read_text()):
            for primitive in READERS.get(name, []):
                for key, unit, default, low, high in _reads(body):
                    known = found.setdefault((primitive, key), Range(unit))
                    if not known.low and (low or high):
                        at = [_number(text, constants) for text in (low, high, default)]
                        found[primitive, key] = Range(unit, *at)
    return found | {key: Range("demand") for key in DEMANDS}


def declared(key: dict[str, Any]) -> Range | None:
    """Of a key that says it by itself."""
    if "unit" not in key:
        return Range(key["value"]) if "value" in key else None
    low, high = (_number(repr(key[bound]), {}) for bound in ("low", "high"))
    default = key.get("default", "")
    return Range(key["unit"], low, high, default if isinstance(default, str) else _number(repr(default), {}))


def unit_of(at: Range, key: str) -> str:
    """What a key's value is: a unit with an example, or the kind of value."""
    if at.unit:
        return UNITS.get(at.unit, at.unit)
    return "steps" if key in STEPS else "name" if key in NAMES else "word or list"


def _functions(text: str) -> list[tuple[str, str]]:
    """Name and body of each function of the reader."""
    starts = list(re.finditer(r"^[\w:<>& ]*\bPlatformReader::(\w+)\(", text, flags=re.MULTILINE))
    ends = [match.start() for match in starts[1:]] + [len(text)] if starts else []
    return [(match[1], text[match.start() : end]) for match, end in zip(starts, ends, strict=True)]


def _reads(body: str) -> list[tuple[str, str, str, str, str]]:
    """Key, unit, default, low and high of each number that a function reads."""
    flat = re.sub(r"\s+", " ", body)
    found = [
        (m[1], m[2], m[3], m[4], m[5])
        for m in re.finditer(
            rf'quantity_or\("(\w+)", Unit::(\w+), ({NUMBER}(?:<[^>]*>\([^)]*\))?), ({NUMBER}), ({NUMBER})\)', flat
        )
    ]
    found += [
        (m[1], m[2], "", m[3] or "", m[4] or "")
        for m in re.finditer(rf'\["(\w+)"\]\.quantity\(Unit::(\w+)(?:, ({NUMBER}), ({NUMBER}))?\)', flat)
    ]
    for variable, key in re.findall(r'(\w+) = \w+(?:->|\.)find\("(\w+)"\)', flat):
        for m in re.finditer(rf"\b{variable}->quantity\(Unit::(\w+), ({NUMBER}), ({NUMBER})\)", flat):
            found.append((key, m[1], "", m[2], m[3]))
    return found


def _constants() -> dict[str, str]:
    """Constants of the reader, by name."""
    text = (MODELS / "platform_reader.hpp").read_text()
    return {m[1]: m[2].replace("'", "") for m in re.finditer(r"constexpr \w+ (\w+) *= ([\d.e'+-]+);", text)}


def _number(text: str, constants: dict[str, str]) -> str:
    """As people write it; what other keys decide stays as it stands in the source, in words."""
    plain = constants.get(text.strip(), text.strip())
    if shift := re.fullmatch(r"1 << (\d+)", plain):
        plain = str(1 << int(shift[1]))
    try:
        value = ast.literal_eval(plain)
    except (ValueError, SyntaxError):
        return ""
    return f"{value:g}" if abs(value) > 2e6 or (value and abs(value) < 1e-3) else f"{value:,.12g}"
