# SPDX-License-Identifier: Apache-2.0
"""A machine beside a measurement, and what it shows."""
