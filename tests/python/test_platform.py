# SPDX-License-Identifier: Apache-2.0
"""Edits of platform documents by path."""

import pytest

from iocast.errors import InputError
from iocast.platform import holds, set_path


def test_paths_reach_into_lists() -> None:
    document = {"operations": {"create": {"open": [{"delay": "rtt"}, {"limit": "rpcs", "steps": [{"station": "mds", "lock_share": 0.3}]}]}}}
    path = "operations.create.open.1.steps.0.lock_share"
    assert holds(document, path) and not holds(document, "operations.create.open.2.steps")
    set_path(document, path, 0.5)
    assert document["operations"]["create"]["open"][1]["steps"][0]["lock_share"] == 0.5


@pytest.mark.parametrize("path", ["operations.2.delay", "operations.x.delay", "operations.0", "operations.1.delay"])
def test_a_list_has_only_the_entries_that_are_there(path: str) -> None:
    document = {"operations": [{"delay": "rtt"}, "rtt"]}
    with pytest.raises(InputError, match=r"leads into a list"):
        set_path(document, path, 1)
    assert document == {"operations": [{"delay": "rtt"}, "rtt"]}
