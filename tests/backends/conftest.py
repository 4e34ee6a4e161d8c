# SPDX-License-Identifier: Apache-2.0
"""Places for backends to work in, each started once."""

from collections.abc import Iterator

import pytest
from servers import PLACES, Place, available


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "place" in metafunc.fixturenames:
        names = available()
        unknown = [name for name in names if name not in {place.backend for place in PLACES.values()}]
        assert not unknown, f"say in tests/backends/servers.py how to start a server for the backend {unknown[0]}"
        metafunc.parametrize("place", [name for name, place in PLACES.items() if place.backend in names], indirect=True, scope="module")


@pytest.fixture(scope="module")
def place(request: pytest.FixtureRequest) -> Iterator[Place]:
    with PLACES[request.param]() as started:
        yield started
