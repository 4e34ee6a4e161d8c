# SPDX-License-Identifier: Apache-2.0
"""latency.hlog of a run directory: distributions of latencies as HdrHistograms (docs/run-directory.md)."""

from __future__ import annotations

import base64
import ctypes
import math
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Protocol

import numpy as np
from hdrh.histogram import HdrHistogram
from numpy.typing import NDArray

from iocast.errors import InputError
from iocast.ground import strict
from iocast.ground.names import is_file_name
from iocast.rules.accuracy import QUANTILES

NS = 1e-9
MAX_UNPACKED = 2**23
"""Bytes of a histogram in latency.hlog; one of three figures and up to 2^63 ns has half a megabyte."""
MAX_FIGURES = 4
MAX_TAGS = 10_000


class Histogram(Protocol):
    """What is used of HdrHistogram, a library without types; values in nanoseconds."""

    counts: ctypes.Array[ctypes.c_uint64]
    sub_bucket_half_count: int
    sub_bucket_half_count_magnitude: int
    unit_magnitude: int

    def get_total_count(self) -> int: ...
    def get_target_count_at_percentile(self, percentile: float) -> int: ...
    def get_value_from_index(self, index: int) -> int: ...
    def get_highest_equivalent_value(self, value: int) -> int: ...
    def get_lowest_equivalent_value(self, value: int) -> int: ...
    def get_max_value(self) -> int: ...
    def get_min_value(self) -> int: ...
    def add(self, other: Histogram) -> object: ...


@dataclass(frozen=True)
class Latencies:
    """A latency distribution in seconds, exact to the histogram's 0.1 %."""

    histogram: Histogram

    @property
    def count(self) -> int:
        return int(self.histogram.get_total_count())

    def quantile(self, probability: float) -> float:
        """That of the histogram's own get_value_at_percentile(), which adds up all counts in each call."""
        index = int(np.searchsorted(self._counted, self.histogram.get_target_count_at_percentile(100 * probability)))
        if index >= len(self._counted):
            return 0.0
        value = self.histogram.get_value_from_index(index)
        equivalent = (
            self.histogram.get_highest_equivalent_value if probability else self.histogram.get_lowest_equivalent_value
        )
        return float(equivalent(value) * NS)

    @cached_property
    def _counted(self) -> NDArray[np.int64]:
        """Values up to each index."""
        return np.cumsum(np.asarray(self.histogram.counts, dtype=np.int64))

    def recorded(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Of each value that was recorded, in nanoseconds: the smallest and the largest that the histogram doesn't tell
        from it, and how often. What its own iterators say one by one."""
        histogram = self.histogram
        counts = np.asarray(histogram.counts, dtype=np.int64)
        (indices,) = np.nonzero(counts)
        half = histogram.sub_bucket_half_count
        bucket = (indices >> histogram.sub_bucket_half_count_magnitude) - 1
        within = (indices & (half - 1)) + np.where(bucket < 0, 0, half)
        shift = np.maximum(bucket, 0) + histogram.unit_magnitude
        lowest = within << shift
        return lowest, lowest + (np.int64(1) << shift) - 1, counts[indices]

    def moments(self) -> tuple[float, float]:
        """Mean and standard deviation in seconds."""
        lowest, highest, counts = self.recorded()
        if not counts.size:
            return 0.0, 0.0
        middle = (lowest + (highest - lowest + 1) // 2) * NS
        mean = float(np.average(middle, weights=counts))
        return mean, math.sqrt(float(np.average((middle - mean) ** 2, weights=counts)))

    @property
    def maximum(self) -> float:
        return float(self.histogram.get_max_value()) * NS

    @property
    def minimum(self) -> float:
        return float(self.histogram.get_min_value()) * NS

    def quantity(self, name: str) -> float:
        return self.maximum if name == "max" else self.quantile(QUANTILES[name])


def read_log(path: Path) -> Iterator[tuple[str, float, Histogram]]:
    """Every interval of a latency.hlog in order: tag ("phase.operation[.part]"), start in seconds, histogram in
    nanoseconds.

    @raises InputError with the line that can't be read"""
    tags: set[str] = set()
    for number, line in enumerate(strict.read_text(path).split("\n"), start=1):
        if not line.startswith("Tag="):
            continue
        try:
            tag, start, _length, _max, encoded = line[4:].split(",")
            at = float(start)
            histogram = _decoded(encoded)
        except Exception as error:
            raise InputError(
                f"{path}:{number}: this line is no interval of an HdrHistogram log; the file may have been cut off."
            ) from error
        if not 0 <= at < 1e12 or not all(is_file_name(part) for part in tag.split(".")):
            raise InputError(
                f"{path}:{number}: the tag {strict.shown(tag)} at {strict.shown(start)[1:-1]} s is no interval of a "
                "run."
            )
        tags.add(tag)
        if len(tags) > MAX_TAGS:
            raise InputError(f"{path}:{number}: this file has more than {MAX_TAGS} operations and parts of them.")
        yield tag, at, histogram


def _decoded(encoded: str) -> Histogram:
    """@raises ValueError, zlib.error and others for what is no histogram, or unpacks to more than one has"""
    packed = base64.b64decode(encoded, validate=True)
    unpacking = zlib.decompressobj()
    content = unpacking.decompress(packed[8:], MAX_UNPACKED)
    if unpacking.unconsumed_tail or not unpacking.eof or unpacking.unused_data:
        raise ValueError("more than a histogram has")
    _cookie, length, offset, figures, lowest, highest = struct.unpack(">4i2q", content[:32])
    if not (
        0 <= figures <= MAX_FIGURES
        and 1 <= lowest < 2**32
        and 2 * lowest <= highest < 2**63
        and offset == 0
        and 0 <= length <= len(content) - 40
    ):
        raise ValueError("bounds that no latency has")
    histogram: Histogram | None = HdrHistogram.decode(encoded)
    if (
        histogram is None
        or histogram.get_total_count() < 0
        or np.min(np.asarray(histogram.counts, np.int64), initial=0) < 0
    ):
        raise ValueError("counts below zero")
    return histogram
