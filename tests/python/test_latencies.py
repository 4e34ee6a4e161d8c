# SPDX-License-Identifier: Apache-2.0
"""What is read of a histogram at once is what its own iterators say value by value."""

import numpy as np
import pytest
from hdrh.histogram import HdrHistogram

from iocast.runs.latency_log import NS, Latencies


@pytest.mark.parametrize("median", [3.0, 40_000.0, 5e9])
@pytest.mark.parametrize("lowest", [1, 1000])
def test_values_counts_and_moments_are_the_histograms(median: float, lowest: int) -> None:
    histogram = HdrHistogram(lowest, 86_400 * 10**9, 3)
    for value in np.random.default_rng(1).lognormal(np.log(median), 1.5, 300):
        histogram.record_value(min(int(value) + 1, 86_000 * 10**9))
    latencies = Latencies(histogram)
    known = [(step.value_iterated_to, step.count_at_value_iterated_to) for step in histogram.get_recorded_iterator()]
    smallest, largest, counts = latencies.recorded()
    assert list(zip(largest.tolist(), counts.tolist(), strict=True)) == known
    assert all(
        histogram.get_lowest_equivalent_value(high) == low
        for low, high in zip(smallest.tolist(), largest.tolist(), strict=True)
    )
    assert latencies.moments() == pytest.approx(
        (histogram.get_mean_value() * NS, histogram.get_stddev() * NS), rel=1e-9
    )
    assert Latencies(HdrHistogram(1, 1000, 3)).moments() == (0.0, 0.0)
