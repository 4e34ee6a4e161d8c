# SPDX-License-Identifier: Apache-2.0
"""What a draw of a calibration changes, taken from shorter runs that may lack quantities of the whole question."""

import pytest

from iocast.forecasts.draws import Values, _beside

BEST: Values = {
    ("benchmark", "rate"): 100.0,
    ("benchmark", "create.q50"): 1e-3,
    ("benchmark", "create.open.q50"): 4e-4,
    ("benchmark", "unlink.q99"): 5e-3,
    ("cleanup", "rate"): 50.0,
    ("cleanup", "rmdir.q50"): 2e-3,
}


@pytest.mark.parametrize("factor", [0.5, 1.0, 3.0])
@pytest.mark.parametrize("lacking", sorted(set(BEST) - {("benchmark", "rate"), ("cleanup", "rate")}))
def test_what_a_shorter_run_lacks_changes_as_the_rest_of_its_phase(factor: float, lacking: tuple[str, str]) -> None:
    """Where all times change by one factor, and the rates by its inverse."""
    slower = {key: value / factor if key[1] == "rate" else value * factor for key, value in BEST.items()}
    draw = {key: value for key, value in slower.items() if key != lacking}
    own = {key: value for key, value in BEST.items() if key != lacking}
    assert _beside(draw, BEST, BEST) == pytest.approx(slower)
    assert _beside(slower, own, BEST) == pytest.approx(slower)


def test_a_phase_that_a_shorter_run_lacks_changes_nothing() -> None:
    own = {key: value for key, value in BEST.items() if key[0] == "benchmark"}
    draw = {key: 2 * value for key, value in own.items()}
    assert _beside(draw, own, BEST) == pytest.approx(BEST | draw)
    assert _beside(None, BEST, BEST) is None
