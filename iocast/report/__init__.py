# SPDX-License-Identifier: Apache-2.0
"""The report: one self-contained offline HTML page, and the JSON of every number on it."""

from iocast.report.page import write_numbers, write_report

__all__ = ["write_numbers", "write_report"]
