# SPDX-License-Identifier: Apache-2.0
"""Runs and what they answer, real, simulated or imported."""
