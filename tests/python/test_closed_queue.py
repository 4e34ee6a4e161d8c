# SPDX-License-Identifier: Apache-2.0
"""The rate of the closed M/M/c baseline, by its product form."""

from __future__ import annotations

import itertools

import pytest

from iocast.rules import baselines
from iocast.analytic.product_form import ClosedNetwork, Station, servers


def test_the_rate_is_that_of_the_network_solver() -> None:
    """Both are exact: from no delay to one that hides the queue, and from one server to more than ranks."""
    for ranks, service, delay, c in itertools.product((1, 7, 2000), (1e-5, 1e-3), (0.0, 1e-6, 0.1), (1, 3, 700)):
        exact = ClosedNetwork([Station("queue", service, servers(c))], delay, ranks).throughput
        assert baselines._throughput(ranks, service, delay, c) == pytest.approx(exact, rel=1e-9)
