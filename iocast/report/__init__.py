# SPDX-License-Identifier: Apache-2.0
"""The report: one self-contained offline HTML page, its figures as files, and every number on it as JSON and CSV."""

from iocast.report.page import write_numbers, write_report

__all__ = ["write_numbers", "write_report"]
