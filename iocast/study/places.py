# SPDX-License-Identifier: Apache-2.0
"""Where a study's file has what an answer to it refuses."""

from __future__ import annotations

from pathlib import Path

from iocast.errors import InputError
from iocast.ground.strict_yaml import Section


def refused(file: Path, sentence: str, *keys: str) -> InputError:
    """With the line of the last of these keys that the file has below each other.

    @param sentence finished, without the place"""
    section, line = Section.load(file), 1
    for key in keys:
        if key not in section:
            break
        line = section.line(key)
        if not isinstance(section.value(key), dict):
            break
        section = section.section(key)
    return InputError(f"{file}:{line}: {sentence}")


def refused_workload(file: Path, name: str, key: str, sentence: str) -> InputError:
    return refused(file, f"in workloads.{name}, {sentence}", "workloads", name, key)


def refused_level(file: Path, text: str, what: str) -> InputError:
    """@param what the level does that it can't, the end of a sentence"""
    yaml = Section.load(file)
    found = (
        line
        for entry, line in yaml.entries("levels")
        if (entry.text("level") if isinstance(entry, Section) else str(entry)).split() == text.split()
    )
    return InputError(f"{file}:{next(found, yaml.line('levels'))}: the level '{text}' {what}")
