# SPDX-License-Identifier: Apache-2.0
"""Places for backends to work in, each started once."""

from collections.abc import Iterator

import pytest
from servers import PLACES, Place, available


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "places(which): the test is of the places for which this function of their class is true"
    )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "place" in metafunc.fixturenames:
        names = available()
        unknown = [name for name in names if name not in {place.backend for place in PLACES.values()}]
        assert not unknown, f"say in tests/backends/servers.py how to start a server for the backend {unknown[0]}"
        # A test that only some places can answer says which.
        wanted = metafunc.definition.get_closest_marker("places")
        chosen = [
            name for name, kind in PLACES.items() if kind.backend in names and (wanted is None or wanted.args[0](kind))
        ]
        cases = [
            pytest.param(name, marks=[pytest.mark.needs(PLACES[name].needs)] if PLACES[name].needs else [])
            for name in chosen
        ]
        metafunc.parametrize("place", cases, indirect=True, scope="module")


@pytest.fixture(scope="module")
def place(request: pytest.FixtureRequest) -> Iterator[Place]:
    kind = PLACES[request.param]
    with kind() as started:
        yield started
