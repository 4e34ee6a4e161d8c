# SPDX-License-Identifier: Apache-2.0
"""Campaigns: which runs to make, in which order, with which launcher; and making them."""
