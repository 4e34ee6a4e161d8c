# SPDX-License-Identifier: Apache-2.0
"""Putting the page together: story, tables, figures and provenance in one HTML file that asks the network for
nothing."""

from __future__ import annotations

import copy
import csv
import io
import json
import math
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypedDict

import jinja2
import vl_convert
from markupsafe import Markup

from iocast.errors import InputError
from iocast.ground.files import write_bytes, write_text
from iocast.report import feeding, provenance, servers, story, study_controls, tables
from iocast.report.figures import Drawing, Figure, Panel, Row, all_figures, routes
from iocast.report.figures.style import ROWS, Mark
from iocast.report.sources import Sources, read_sources
from iocast.wording.text import cell
from iocast.whatif.module import HOW, load
from iocast.report.vega import library, vega_lite
from iocast.whatif.page_file import check_page, write_page, write_whole
from iocast.whatif.panel import HERE as PANEL
from iocast.whatif.panel import POLICY, version
from iocast.report.whatif import report_panel

HERE = Path(__file__).parent
WIDE, NARROW = 900, 440  # pixels of a figure that stands by itself
DIGITS = 7  # significant digits of numbers in the page and its JSON


class Part(TypedDict):
    """A table or a figure."""

    title: str
    rows: list[Row]


class Numbers(TypedDict):
    """Every number of a page."""

    schema_version: int
    kind: str
    title: str
    summary: object
    tables: dict[str, Part]
    figures: dict[str, Part]
    no_data: list[str]


class Layer(TypedDict, total=False):
    """One of a chart's, as Vega-Lite has it."""

    mark: dict[str, object]
    encoding: dict[str, dict[str, object]]
    transform: list[dict[str, object]]


def write_report(
    sources: list[Path],
    out: Path,
    title: str | None = None,
    command: str = "",
    missing: Sequence[str] = (),
    notes: Sequence[str] = (),
    *,
    figures: Path | None = None,
    data: Path | None = None,
) -> list[Path]:
    """Write the report on `sources` to the HTML file `out`.

    Sources are run directories, campaign directories, forecasts, validations and fitted platforms in any mix,
    recognised by their content; `command` is the one that the page names as its own. `missing` says what was not
    forecast, `notes` what a reader of the imported results must know. `figures` and `data` are directories for the
    same as pictures and as numbers; returns the files there. Raises InputError for a source that can't be used and for
    a file that is there already, RunError when one can't be written.
    """
    read = read_sources(sources)
    read.missing += missing
    read.notes = list(dict.fromkeys([*read.notes, *notes]))
    title = title or _title(read)
    numbers, drawings = _numbers(read, title)
    pictures = _figure_files(drawings, figures) if figures else {}
    tables = _data_files(numbers, data) if data else {}
    files = [*pictures, *tables]
    check_page(Path(out))
    if there := next((file for file in files if file.exists()), None):
        raise InputError(f"The file '{there}' exists already; name another directory, nothing is overwritten.")
    write_page(Path(out), _html(read, title, numbers, drawings, command))
    for file, (name, panel) in pictures.items():
        chart = _alone(panel, numbers["figures"][name]["rows"])
        write_bytes(file, FORMATS[file.suffix](chart, vl_version=vega_lite()))
    for file, text in tables.items():
        write_text(file, text)
    return files


def write_numbers(sources: list[Path], out: Path, title: str | None = None) -> None:
    """Write every number of the report on `sources` to the JSON file `out`: the same that the page holds."""
    read = read_sources(sources)
    numbers, _ = _numbers(read, title or _title(read))
    write_whole(Path(out), json.dumps(numbers, indent=1, allow_nan=False) + "\n")


FORMATS: dict[str, Callable[..., bytes]]
FORMATS = {".pdf": vl_convert.vegalite_to_pdf, ".png": partial(vl_convert.vegalite_to_png, scale=2)}


def _figure_files(drawings: Sequence[tuple[Figure, Drawing | None]], out: Path) -> dict[Path, tuple[str, Panel]]:
    """Names of figures and their panels by file, whose suffix says the format."""
    return {
        out / f"{figure.name}-{i}{suffix}": (figure.name, panel)
        for figure, drawing in drawings
        for i, panel in enumerate(drawing.panels if drawing else ())
        for suffix in FORMATS
    }


def write_routes(platform: dict[str, Any], out: Path) -> None:
    """Draw the route of every operation of a resolved platform as SVG."""
    rows = [
        {"platform": platform["name"], **row}
        for operation, parts in platform["operations"].items()
        for row in routes.route(operation, parts)
    ]
    if not rows:
        raise InputError(
            f"The platform '{platform['name']}' serves no operation that takes a step; there is nothing to draw."
        )
    (panel,) = routes.draw(rows).panels
    chart = _alone(panel, plain(rows))
    # No page beside it says what colours mean, and nobody hovers over it.
    chart["title"] = {
        "text": panel.title,
        "subtitle": "A black line: with the slot of a limit. Times are means."
        if any(row["held"] for row in rows)
        else "Times are means.",
    }
    chart["height"] *= 1.3
    legend: dict[str, object] = {"title": None, "orient": "bottom", "symbolType": "square", "columnPadding": 24}
    legend["values"] = list(dict.fromkeys(row["kind"] for row in rows))
    layers: list[Layer] = chart["layer"]
    for layer in layers:
        if "color" in layer["encoding"]:
            layer["encoding"]["color"]["legend"] = legend
    _, held, names = layers
    held["mark"] |= {"yOffset": 19}
    times = copy.deepcopy(names)
    names["mark"] |= {"dy": -5}
    times["mark"] |= {"dy": 8, "fontSize": 9}
    times["encoding"]["text"] = {"field": "value_text", "type": "nominal"}
    times["transform"] = [*times.get("transform", []), {"filter": "isValid(datum.seconds)"}]
    layers.append(times)
    write_text(out, vl_convert.vegalite_to_svg(chart, vl_version=vega_lite()))


def _alone(panel: Panel, rows: list[Row]) -> dict[str, Any]:
    """The chart of a panel with its title and its data."""
    chart: dict[str, Any] = panel.chart.to_dict(validate=False) | {
        "width": WIDE if panel.wide else NARROW,
        "title": panel.title,
    }
    chart["datasets"] = {**chart.get("datasets", {}), ROWS: rows}
    return chart


def _data_files(numbers: Numbers, out: Path) -> dict[Path, str]:
    """Texts by file."""
    files = {out / "report.json": json.dumps(numbers, indent=1, allow_nan=False) + "\n"}
    for kind, parts in (("table", numbers["tables"]), ("figure", numbers["figures"])):
        for name, content in parts.items():
            columns = list(dict.fromkeys(key for row in content["rows"] for key in row))
            text = io.StringIO()
            writer = csv.DictWriter(text, columns, lineterminator="\n")
            writer.writeheader()
            writer.writerows({key: cell(value) for key, value in row.items()} for row in content["rows"])
            files[out / f"{kind}-{name}.csv"] = text.getvalue()
    return files


def _title(read: Sources) -> str:
    if read.study:
        return str(read.study["title"])
    names = [r.subject for r in read.runs] or [str(c.get("workload")) for c in read.campaigns]
    if not names:
        entries = [f.get("workload") for f in read.forecasts]
        names = [str(w["name"]) if isinstance(w, dict) else str(w) for w in entries if w]
    names += [feeding.workload_of(one) for one in ([] if names else read.feedings)]
    names = list(dict.fromkeys(names))
    if any(one["kind"] == "accelerators" for one in read.feedings) or read.forecasts or read.validations or read.fitted:
        what = "Storage forecast"
    else:
        what = "Storage simulation" if read.runs and all(run.simulated for run in read.runs) else "Storage measurement"
    if read.are_of_servers:
        what, names = "What servers counted", list(dict.fromkeys(load.tool for load in servers.loads(read)))
    return f"{what}: {', '.join(names)}" if names else what


def _numbers(read: Sources, title: str) -> tuple[Numbers, list[tuple[Figure, Drawing | None]]]:
    """The JSON of numbers, and what each figure draws (None where it has no data)."""
    figures: dict[str, Part] = {}
    drawings: list[tuple[Figure, Drawing | None]] = []
    for figure in all_figures():
        rows = figure.data(read)
        if not rows:
            # A study alone says nothing of runs, and runs say nothing of designs, or of servers that weren't given.
            if read.are_of_servers or (figure.of_servers and not read.servers):
                continue
            if figure.of_study == (read.study is not None) and (figure.of_study or read.study is None):
                drawings.append((figure, None))
            continue
        figures[figure.name] = {"title": figure.title, "rows": plain(rows)}
        drawings.append((figure, figure.draw(figures[figure.name]["rows"])))
    numbers: Numbers = {
        "schema_version": 1,
        "kind": "report",
        "title": title,
        "summary": _plain(story.tell(read).summary),
        "tables": {t.name: {"title": t.title, "rows": plain(t.numbers())} for t in tables.all_tables(read)},
        "figures": figures,
        "no_data": [figure.name for figure, drawing in drawings if drawing is None],
    }
    return numbers, drawings


def plain(rows: Sequence[Row]) -> list[Row]:
    """The rows with their numbers cut to 7 significant digits, and what JSON can't say (NaN, infinity) as None."""
    return [{key: _plain(value) for key, value in row.items()} for row in rows]


def _plain(value: object) -> object:
    if isinstance(value, dict):
        return {key: _plain(v) for key, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}") if math.isfinite(value) else None
    return value


def _html(
    read: Sources, title: str, numbers: Numbers, drawings: list[tuple[Figure, Drawing | None]], command: str
) -> str:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader([HERE, PANEL]),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    charts = {
        f"{figure.name}-{i}": panel.chart.to_dict(validate=False)
        for figure, drawing in drawings
        if drawing is not None
        for i, panel in enumerate(drawing.panels)
    }
    for chart in charts.values():
        chart.pop("$schema", None)  # an address that nothing needs
    throughput = numbers["figures"].get("throughput")
    whatif = report_panel(read, throughput["rows"] if throughput else [])
    leading = next((f.name for f, drawing in drawings if drawing and f.leads and f.of_study == bool(read.study)), "")
    desk = study_controls.desk(read.study) if read.study else None
    of_study = [PANEL / "amounts.js", HERE / "study_decision.js", HERE / "study.js"]
    scripts = [HERE / "page.js", *(of_study if desk else [])]
    styles = [HERE / "page.css", *([PANEL / "panel.css"] if whatif else [])]
    return environment.get_template("page.html.j2").render(
        title=title,
        policy=POLICY
        if whatif
        else "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:",
        whatif=whatif,
        how=HOW if read.fitted and load() is None else "",
        leading=leading,
        desk=desk,
        desk_data=_json(desk),
        still=_still(leading, drawings, numbers),
        story=story.tell(read),
        tables=[
            (t, list(zip(t.rows, numbers["tables"][t.name]["rows"], strict=True))) for t in tables.all_tables(read)
        ],
        drawings=drawings,
        swatch=swatch,
        provenance=provenance.collect(read, command),
        version=version(),
        style=Markup("\n".join(file.read_text(encoding="utf-8") for file in styles)),
        script=Markup("\n".join(file.read_text(encoding="utf-8") for file in scripts)),
        vega=Markup(library()),
        numbers=_json(numbers),
        charts=_json(charts),
    )


def _still(leading: str, drawings: list[tuple[Figure, Drawing | None]], numbers: Numbers) -> Markup:
    """The first screen's figure as it stands where scripts are switched off."""
    for figure, drawing in drawings:
        if drawing and figure.name == leading:
            chart = _alone(drawing.panels[0], numbers["figures"][leading]["rows"])
            return Markup(vl_convert.vegalite_to_svg(chart, vl_version=vega_lite()))
    return Markup("")


def _json(value: object) -> Markup:
    """JSON that can stand inside a script element: no "<" can end it."""
    return Markup(json.dumps(value, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c"))


_SHAPES = {
    "circle": '<circle cx="16" cy="7" r="4.5"/>',
    "diamond": '<path d="M16 1.5 20.5 7 16 12.5 11.5 7Z"/>',
    "square": '<rect x="11.8" y="2.8" width="8.4" height="8.4"/>',
    "triangle-up": '<path d="M16 2 21 11H11Z"/>',
    "triangle-down": '<path d="M16 12 21 3H11Z"/>',
    "triangle-right": '<path d="M21 7 12 12V2Z"/>',
    "triangle-left": '<path d="M11 7 20 12V2Z"/>',
    "cross": '<path d="M14.4 2h3.2v3.4H21v3.2h-3.4V12h-3.2V8.6H11V5.4h3.4Z"/>',
    "stroke": '<path d="M11 7H21" stroke-width="2"/>',
}


def swatch(mark: Mark) -> Markup:
    """The small drawing of a series in a legend."""
    dash = f' stroke-dasharray="{" ".join(map(str, mark.dash))}"' if mark.dash else ""
    line = f'<path d="M1 7H31" stroke="{mark.colour}" stroke-width="2"{dash}/>'
    filled = mark.kind == "point" and mark.label in ("measured", "simulated") or mark.label == "forecast"
    point = (
        f'<g fill="{mark.colour if filled else "#fff"}" stroke="{mark.colour}" '
        f'stroke-width="1.6">{_SHAPES[mark.shape]}</g>'
    )
    if mark.kind in ("band", "bar"):
        inside = (
            f'<rect x="2" y="2" width="28" height="10" fill="{mark.colour}" '
            f'opacity="{0.6 if mark.kind == "band" else 1}"/>'
        )
    else:
        inside = (line if mark.kind in ("line", "both") else "") + (point if mark.kind in ("point", "both") else "")
    return Markup(f'<svg width="32" height="14" viewBox="0 0 32 14" aria-hidden="true">{inside}</svg>')
