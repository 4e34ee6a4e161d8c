# SPDX-License-Identifier: Apache-2.0
"""Calibration: which platform would have given these measurements? Simulated quantile matching over a grid of
structures."""

from iocast.calibrate.findings import findings
from iocast.calibrate.fit import calibrate

__all__ = ["calibrate", "findings"]
