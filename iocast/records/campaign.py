# SPDX-License-Identifier: Apache-2.0
"""A campaign: what `iocast measure` and `iocast knee` write as campaign.json."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, TypedDict

from msgspec import Meta, Struct

from iocast.ground.names import ALLOWED, PATTERN
from iocast.records.declared import Impossible, record_of
from iocast.records.run import FileName
from iocast.ground.strict import shown

AtLeastOne = Annotated[int, Meta(ge=1, le=2**62, description="a whole number from 1 on")]
Attempts = Annotated[int, Meta(ge=0, le=10**6 - 1, description="a number of attempts")]
Group = Annotated[str, Meta(pattern=rf"^\Z|{PATTERN}", description=f"a name, which has {ALLOWED}")]


class CampaignPoint(Struct, frozen=True, forbid_unknown_fields=True):
    """A planned run, and how far it is. `role`: fit, check, or beside for what no model sees. `mounts`: mount points
    that its ranks are spread over."""

    name: FileName
    role: str
    status: str
    nodes: AtLeastOne | None = None
    ranks_per_node: AtLeastOne | None = None
    settings: dict[str, Any] | None = None
    threads_per_rank: AtLeastOne = 1
    mounts: AtLeastOne = 1
    group: Group = ""
    step: str = ""
    seed: Annotated[int, Meta(ge=0, le=2**63 - 1)] | None = None


class Campaign(Struct, frozen=True):
    """A campaign as a whole. `attempts`: at each run or group of runs that was begun."""

    points: list[CampaignPoint]
    id: FileName = "none"
    attempts: dict[FileName, Attempts] = {}
    search: dict[str, Any] = {}
    overrides: dict[str, Any] = {}
    filesystem: dict[str, Any] = {}
    places: str = ""
    workload: str = ""
    root: str = ""
    out: str = ""
    seed: int = 0
    max_rate: str = ""


class PointDocument(TypedDict, total=False):
    """A planned run as campaign.json has it (CampaignPoint)."""

    name: str
    role: str
    status: str
    nodes: int
    ranks_per_node: int
    settings: dict[str, str]


class BackendDocument(TypedDict):
    name: str
    options: list[str]


class PilotDocument(TypedDict):
    rate: float
    datasets: int


class CampaignDocument(TypedDict, total=False):
    """campaign.json as verbs go on writing it (Campaign)."""

    schema_version: int
    kind: str
    name: str
    id: str
    places: str
    out: str
    workload: str
    root: str
    plan: str
    plan_sha256: str
    overrides: dict[str, Any]
    seed: int
    search: dict[str, Any]
    data_set: bool
    attempt: int
    attempts: dict[str, int]
    points: list[PointDocument]
    pilot: PilotDocument
    filesystem: dict[str, Any]
    machine: list[dict[str, Any]]
    max_rate: str
    backend: BackendDocument


def campaign_of(document: Mapping[str, Any], *, planned: bool = False) -> Campaign:
    """Of the content of a campaign.json. `planned`: also what it takes to make a point's runs.

    @raises Impossible with the first part that is missing or can't be"""
    campaign = record_of(document, Campaign)
    names = set()
    for number, point in enumerate(campaign.points):
        if point.name in names:
            raise Impossible(f"points[{number}].name", f": {shown(point.name)} is the name of an earlier point")
        names.add(point.name)
        missing = [key for key in ("nodes", "ranks_per_node", "settings") if getattr(point, key) is None]
        if planned and missing:
            raise Impossible(f"points[{number}]", f", has no '{missing[0]}'")
    return campaign
