# SPDX-License-Identifier: Apache-2.0
"""Measurements that narrow a forecast most."""
