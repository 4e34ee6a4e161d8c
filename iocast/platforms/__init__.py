# SPDX-License-Identifier: Apache-2.0
"""Platforms: their documents, what was fitted to them, and what nothing measured."""
