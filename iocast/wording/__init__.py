# SPDX-License-Identifier: Apache-2.0
"""Answers as text for a terminal, a file a kind."""
