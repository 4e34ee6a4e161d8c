# SPDX-License-Identifier: Apache-2.0
"""Observations joined to a run as utilisation.json has them (docs/observe.md)."""

from __future__ import annotations

from typing import TypedDict

from typing_extensions import NotRequired

from iocast.records.note import Noted


class ResourceUse(TypedDict):
    """Of a resource in a phase; None where it was not observed whole, or its servers are not known. `demand`: what an
    operation takes of it, in `unit`."""

    kind: str
    servers: float | None
    unit: str
    utilisation: float | None
    busy: float | None
    demand: float | None
    bytes: NotRequired[float]
    """Of a link, that a completed operation moved over it."""
    requests: NotRequired[float]
    """Of a server's own counters, that a completed operation made."""


class PhaseUse(TypedDict):
    """`waits`: by processes the shares of their time that they slept, by where in the kernel."""

    name: str
    repeat: int
    seconds: float
    operations: int
    resources: dict[str, ResourceUse]
    waits: NotRequired[dict[str, dict[str, float]]]
    note: NotRequired[str]


class Clock(TypedDict):
    """When the run's second zero was, as seconds since 1970, and by how much it can be off."""

    start: float
    uncertainty_seconds: float
    how: str


class ObservationFile(TypedDict):
    name: str
    sha256: str
    host: str
    every_seconds: float
    samples: int


class Series(TypedDict):
    seconds: list[float]
    utilisation: list[float]


class UtilisationDocument(Noted):
    schema_version: int
    kind: str
    observations: list[ObservationFile]
    clock: Clock
    phases: list[PhaseUse]
    timeline: dict[str, Series]


class Bound(TypedDict):
    """Of a resource over all repeats of a phase: how busy it was, and the largest rate that it allows."""

    kind: str
    servers: float
    utilisation: float
    demand: float
    rate_at_most: float


class ProcessSample(TypedDict):
    """`waits`: how many of `count` looks found it asleep, by where in the kernel."""

    cpu: float
    waits: NotRequired[dict[str, int]]
    count: NotRequired[int]


class ObservedSample(TypedDict):
    """Counters since the machine started, in seconds and bytes."""

    wall: float
    monotonic: float
    cpu: list[float]
    processes: dict[str, ProcessSample]
    disks: dict[str, dict[str, float]]
    links: dict[str, dict[str, float]]


class ObservationHeader(TypedDict):
    host: str
    every_seconds: float
    processes: list[str]
    link_megabits: dict[str, float | None]
