# SPDX-License-Identifier: Apache-2.0
"""An empty object has no content that a request would move: creates and reads of it are those of a platform without
steps for content, by both solvers."""

from pathlib import Path
from typing import Any

import pytest

from iocast.forecasts.answer import predict
from iocast.platforms.fitted import Fitted

PLATFORM = """\
schema_version: 1
stations: {{server: {{servers: 2}}}}
operations:
  create: {{open: [{{station: server, demand: 2ms}}], write: [{content}], close: [{{station: server, demand: 1ms}}]}}
  read: {{open: [{{station: server, demand: 1ms}}], read: [{content}], close: []}}
  stat: [{{station: server, demand: 1ms}}]
  unlink: [{{station: server, demand: 1ms}}]
"""


def rates(file: Path, content: str, size: str, solver: str) -> dict[str, Any]:
    file.write_text(PLATFORM.format(content=content))
    settings = {"datasets": "2", "objects": "10", "iterations": "10", "object_size": size}
    answer = predict(Fitted.open(str(file)), "md-workbench", settings, 4, 2, solver=solver)
    return {key: one["value"] for key, one in answer["quantities"].items()}


@pytest.mark.parametrize("solver", ["simulate", "analytic"])
def test_an_empty_object_has_no_content_to_move(solver: str, tmp_path: Path) -> None:
    steps = "{station: server, demand: 3ms}"
    empty, plain = (rates(tmp_path / f"{i}.yaml", of, "0B", solver) for i, of in enumerate((steps, "")))
    assert empty == pytest.approx(plain)
    full, without = (rates(tmp_path / f"{i}.yaml", of, "1B", solver) for i, of in enumerate((steps, "")))
    assert full["rate"] < 0.8 * empty["rate"] and without["rate"] == pytest.approx(plain["rate"])
