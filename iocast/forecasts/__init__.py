# SPDX-License-Identifier: Apache-2.0
"""Forecasts of one platform, workload and placement: the way from a request to its answer, a file a part."""
