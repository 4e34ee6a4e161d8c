# SPDX-License-Identifier: Apache-2.0
"""`iocast.report`."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

from iocast.api.answer import Answer, Place, Row
from iocast.api.runs import Runs, sources_of
from iocast.report import write_report


class Report(Answer):
    """A page that was written, and the files beside it."""

    def __init__(self, page: Path, files: Sequence[Path]) -> None:
        self.page, self.files = page, list(files)

    def text(self) -> str:
        return f"Written to {self.page}" + (f", and {len(self.files)} files beside it." if self.files else ".")

    def document(self) -> dict[str, Any]:
        files = [str(file) for file in self.files]
        return {"report": str(self.page), "bytes": self.page.stat().st_size, "files": files}

    def rows(self) -> list[Row]:
        return [{"file": str(file), "bytes": file.stat().st_size} for file in (self.page, *self.files)]

    def _repr_html_(self) -> str:
        """The page itself."""
        page = escape(self.page.read_text(encoding="utf-8"))
        return f'<iframe srcdoc="{page}" style="width: 100%; height: 80vh; border: 0"></iframe>'


def report(
    sources: Runs | Place | Sequence[Place],
    out: Place = "report.html",
    *,
    title: str | None = None,
    figures: Place | None = None,
    data: Place | None = None,
    command: str = "iocast.report",
) -> Report:
    """Writes one self-contained page of runs, campaigns, fitted platforms, forecasts, validations and studies.

    @param figures directory for every figure as PDF and PNG
    @param data directory for every number as JSON and CSV
    @param command that the page names as the one that made it
    @raises InputError for what is none of these, and for a figure or table that is there already"""
    places = sources_of(sources)
    files = write_report(
        places, Path(out), title, command, figures=Path(figures) if figures else None, data=Path(data) if data else None
    )
    return Report(Path(out), files)
