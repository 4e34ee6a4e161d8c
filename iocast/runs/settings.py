# SPDX-License-Identifier: Apache-2.0
"""A workload's parameters, with the units that its pattern has for them, as settings."""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import cast

from iocast.ground import binaries
from iocast.errors import InputError, RunError
from iocast.runs.question import BASE_UNITS, LENGTHS, definition_of
from iocast.records.forecast import WorkloadDocument


@lru_cache(maxsize=None)
def parameters_of(pattern: str) -> list[dict[str, str]]:
    described = binaries.run_json([binaries.find("iocast-sim"), "--describe", pattern, "--json"])
    return list(described["parameters"])


MEMBERS = "MEMBER.PARAMETER"
"""How a mix describes its parameters, which are those of its members."""


def units_of(pattern: str) -> dict[str, str]:
    return {p["name"]: p["unit"] for p in parameters_of(pattern)}


def name_for_programs(workload: WorkloadDocument) -> str:
    """What the programs know a run.json's `workload` by: its pattern, or where it has more than parameters, as the
    phases of an application, the workload of the catalogue that has the same."""
    name, pattern = str(workload.get("name", "")), workload["pattern"]
    own = definition_of(workload)
    return name if own and name != pattern and own == _definition_in_catalogue(name) else pattern


@lru_cache(maxsize=None)
def _definition_in_catalogue(name: str) -> str:
    """Of a workload of the catalogue; "" where there is none of this name."""
    if not re.fullmatch(r"[\w.-]+", name) or name.endswith(".yaml"):
        return ""  # a file, which may be another one by now
    try:
        return definition_of(binaries.resolve_workload(name, {}, 1, 1)["workload"])
    except (InputError, RunError):
        return ""


def is_of_a_file(workload: WorkloadDocument) -> bool:
    """Whether its phases are in no workload of the catalogue, so that the programs can't do it again by its name."""
    return bool(definition_of(workload)) and name_for_programs(workload) == workload["pattern"]


def settings_of(workload: WorkloadDocument) -> dict[str, str]:
    """The parameters of a run.json's `workload` that it has in the programs, with their units, as settings."""
    units = units_of(name_for_programs(workload))
    return {
        name: binaries.as_setting(value) + ("" if isinstance(value, bool) else BASE_UNITS.get(units.get(name, ""), ""))
        for name, value in workload["parameters"].items()
        if name in units or (MEMBERS in units and "." in name)
    }


def whole_workload(workload: WorkloadDocument) -> WorkloadDocument:
    """The `workload` of a run.json with all its parameters. Results of other tools, and of earlier versions, seldom
    state every one; the rest are the pattern's defaults here, as they are where such results are fitted."""
    return cast(WorkloadDocument, json.loads(_whole(json.dumps(workload, sort_keys=True))))


@lru_cache(maxsize=256)
def _whole(text: str) -> str:
    workload: WorkloadDocument = json.loads(text)
    try:
        # A length that is stated may contradict the default of another one, which changes nothing else.
        stated = {name: value for name, value in settings_of(workload).items() if name not in LENGTHS}
        resolved = binaries.resolve_workload(name_for_programs(workload), stated, 1, 1)["workload"]
    except (InputError, RunError):  # no workload of iocast's, or one of a file: as stated
        return text
    return json.dumps({**workload, "parameters": resolved["parameters"] | workload["parameters"]})
