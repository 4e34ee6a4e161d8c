# SPDX-License-Identifier: Apache-2.0
"""Calibration: which platform would have given these measurements? Simulated quantile matching over a grid of
structures."""
