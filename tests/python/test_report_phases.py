# SPDX-License-Identifier: Apache-2.0
"""A report of several phases: every number names its phase, different phases are never one series, and the first screen
answers for the target scale."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from iocast.report.evidence import comparisons
from iocast.report.figures import all_figures
from iocast.report.page import write_numbers, write_report
from iocast.report.sources import read_sources
from iocast.report.story import tell

RATES = {"directory-create": 13e3, "file-create": 40e3, "file-stat": 100e3}
"""Of 128 ranks; of fewer in proportion to the square root."""
LATENCY = {
    "count": 1000,
    "mean": 1e-3,
    "min": 5e-4,
    "q25": 8e-4,
    "q50": 1e-3,
    "q75": 1.2e-3,
    "q95": 2e-3,
    "q99": 3e-3,
    "q999": 4e-3,
    "max": 5e-3,
}


def rate_of(phase: str, ranks: int) -> float:
    return RATES[phase] * (ranks / 128) ** 0.5


def run(
    path: Path,
    ranks: int,
    phases: list[str],
    *,
    workload: str = "mdtest",
    operations: dict[str, int] | None = None,
    source: str = "real",
) -> Path:
    """A run directory with these phases; `operations` by phase, by default 1000 each."""
    known = [
        {
            "name": name,
            "repeat": 0,
            "operations": (operations or {}).get(name, 1000),
            "rate": rate_of(name, ranks) if name in RATES else 500.0,
            "seconds": (operations or {}).get(name, 1000) / 500,
            "start_seconds": i,
            "errors": 0,
            "latency": {"create": LATENCY},
            "balance": None,
            "stations": {},
        }
        for i, name in enumerate(phases)
    ]
    path.mkdir(parents=True)
    placement = {"ranks": ranks, "nodes": max(1, ranks // 16), "ranks_per_node": min(ranks, 16)}
    document = {
        "schema_version": 1,
        "kind": "run",
        "source": source,
        "status": "complete",
        "placement": placement,
        "phases": known,
    }
    document["workload"] = {"name": workload, "pattern": "mdtest", "parameters": {}}
    (path / "run.json").write_text(json.dumps(document))
    return path


def forecast(path: Path, phase: str, ranks: int, times: float = 1.0, further: tuple[str, ...] = ()) -> Path:
    """A forecast, `times` what runs measure; `further` phases go along in the same file."""

    def of(name: str) -> dict[str, Any]:
        value = rate_of(name, ranks) * times
        return {
            "phase": name,
            "quantities": {"rate": {"value": value, "low": value / 2, "high": value * 2}},
            "baselines": {"last value": {"rate": value / 3}},
            "stations": {},
        }

    document = {
        "schema_version": 1,
        "kind": "forecast",
        "label": "",
        "platform": {"name": "p", "edits": {}},
        "workload": {"name": "mdtest", "parameters": {}},
    }
    document |= {
        "placement": {"ranks": ranks, "nodes": ranks // 16, "ranks_per_node": 16},
        "level": 0.9,
        "extrapolation": ranks / 64,
        "warnings": [],
        **of(phase),
    }
    path.write_text(json.dumps(document | {"further_phases": [of(name) for name in further]}))
    return path


def platform(path: Path, phase: str, ranks: int = 64) -> Path:
    """A platform that was fitted to a phase, with the rates at its held-out scale."""
    measured = rate_of(phase, ranks)
    rows = [
        {
            "point": f"N={ranks} T=0",
            "quantity": "rate",
            "measured": measured,
            "forecast": measured * 1.1,
            "low": measured,
            "high": measured * 1.2,
            "error": 0.1,
            "inside": True,
        }
    ]
    fitted = {
        "campaign": {"runs": [], "ranks": [16, 32], "phase": phase},
        "holdout": {"ranks": ranks, "fitted_up_to": 32, "rows": rows},
        "notes": [],
    }
    path.write_text(yaml.safe_dump({"schema_version": 1, "extends": "queue", "name": path.stem, "fitted": fitted}))
    return path


def numbers_of(sources: list[Path], directory: Path) -> dict[str, Any]:
    write_numbers(sources, directory / "numbers.json")
    return json.loads((directory / "numbers.json").read_text())


def test_the_figure_shows_the_phase_that_the_forecast_names(tmp_path: Path) -> None:
    """Phases have the same number of operations, and the forecast is of the second: no measurement of the first stands
    beside it."""
    runs = [run(tmp_path / f"n{ranks}", ranks, list(RATES)) for ranks in (16, 32, 64, 128)]
    sources = [
        *runs,
        forecast(tmp_path / "check.json", "file-create", 128, 1.02),
        forecast(tmp_path / "target.json", "file-create", 1024),
    ]
    numbers = numbers_of(sources, tmp_path)
    rows = numbers["figures"]["throughput"]["rows"]
    assert {r["phase"] for r in rows} == {"file-create"}
    measured = {r["ranks"]: r["value"] for r in rows if r["series"] == "measured"}
    assert measured == pytest.approx({ranks: rate_of("file-create", ranks) for ranks in (16, 32, 64, 128)}, rel=1e-6)
    checked = numbers["tables"]["checked"]["rows"]
    assert [(r["phase"], r["error"]) for r in checked] == [("file-create", pytest.approx(0.02, rel=1e-4))]


def test_the_first_screen_answers_for_the_target_scale(tmp_path: Path) -> None:
    runs = [run(tmp_path / f"n{ranks}", ranks, list(RATES)) for ranks in (32, 64, 128)]
    sources = [
        *runs,
        forecast(tmp_path / "a.json", "file-create", 128, 1.02),
        *(forecast(tmp_path / f"{n}.json", "file-create", n) for n in (512, 1024)),
    ]
    reported = tell(read_sources(sources))
    headline = reported.headline.replace("\N{NO-BREAK SPACE}", " ")
    assert headline == (
        "Forecast for 512 ranks: file-create 80.0 k/s (40.0 to 160 k/s); "
        "for 1,024 ranks: file-create 113 k/s (56.6 to 226 k/s)."
    )
    wrong = dict(reported.facts)["How wrong it was"].replace("\N{NO-BREAK SPACE}", " ")
    assert wrong.startswith("For 128 ranks the forecast of file-create was 40.8 k/s, 2.0 % above")
    labels = [card.label.replace("\N{NO-BREAK SPACE}", " ") for card in reported.cards]
    assert labels[0] == "error of throughput, file-create, 128 ranks"
    (grid,) = reported.grids
    assert [row[:2] for row in grid.rows] == [["file-create", "32 × 16"], ["file-create", "64 × 16"]]
    assert reported.summary["targets"][0]["value"] == pytest.approx(rate_of("file-create", 1024))


def test_a_forecast_of_several_phases_is_one_of_each(tmp_path: Path) -> None:
    runs = [run(tmp_path / f"n{ranks}", ranks, list(RATES)) for ranks in (32, 64)]
    sources = [*runs, forecast(tmp_path / "f.json", "file-create", 256, further=("directory-create", "file-stat"))]
    numbers = numbers_of(sources, tmp_path)
    rows = numbers["figures"]["throughput"]["rows"]
    assert {(r["phase"], r["series"]) for r in rows} == {
        (phase, series) for phase in RATES for series in ("measured", "forecast", "last value")
    }
    for row in rows:
        if row["series"] in ("measured", "forecast"):
            assert row["value"] == pytest.approx(rate_of(row["phase"], row["ranks"]), rel=1e-6)
    assert {(r["phase"], r["ranks"]): r["rate"] for r in numbers["tables"]["forecasts"]["rows"]} == pytest.approx(
        {(p, 256): rate_of(p, 256) for p in RATES}, rel=1e-6
    )
    for phase in RATES:
        assert phase in tell(read_sources(sources)).headline


@pytest.mark.parametrize("scales", [[256], [256, 512], [256, 512, 1024], [256, 512, 1024, 2048]])
def test_a_headline_has_four_answers_at_most(scales: list[int], tmp_path: Path) -> None:
    """And says how many phases and scales are below."""
    runs = [run(tmp_path / f"n{ranks}", ranks, list(RATES)) for ranks in (32, 64)]
    further = ("directory-create", "file-stat")
    made = [forecast(tmp_path / f"{ranks}.json", "file-create", ranks, further=further) for ranks in scales]
    headline = tell(read_sources([*runs, *made])).headline
    assert headline.count("/s (") <= 4 and headline.count("file-create") == min(3, len(scales))
    assert len(headline) < 300 and ("more phase" in headline) == (len(scales) > 1)


def test_calibrations_of_two_phases_have_titles_of_their_own(tmp_path: Path) -> None:
    sources = [platform(tmp_path / f"{phase}.yaml", phase) for phase in ("file-create", "file-stat")]
    found = comparisons(read_sources(sources))
    assert [(c.phase, c.ranks) for c in found] == [("file-create", 64), ("file-stat", 64)]
    assert all(c.phase in c.title for c in found)
    rows = numbers_of(sources, tmp_path)["tables"]["checked"]["rows"]
    assert {(r["phase"], r["quantity"]): r["measured"] for r in rows} == pytest.approx(
        {(p, "rate"): rate_of(p, 64) for p in ("file-create", "file-stat")}, rel=1e-6
    )


def test_runs_of_which_each_did_most_of_another_phase_are_one_curve_of_one_phase(tmp_path: Path) -> None:
    """As in IO500, whose phases last as long as they should and so have any number of operations; the last run lacks
    one."""
    phases = [["find", "mdtest-easy-write", "mdtest-hard-delete"]] * 2 + [["mdtest-easy-write", "mdtest-hard-delete"]]
    most = ["find", "mdtest-easy-write", "mdtest-hard-delete"]
    runs = [run(tmp_path / f"n{n}", n, phases[i], operations={most[i]: 10**6}) for i, n in enumerate((16, 32, 64))]
    rows = numbers_of(runs, tmp_path)["figures"]["throughput"]["rows"]
    assert [r["ranks"] for r in rows] == [16, 32, 64] and len({r["phase"] for r in rows}) == 1


def test_runs_of_another_workload_are_no_points_of_the_curve(tmp_path: Path) -> None:
    runs = [run(tmp_path / f"n{n}", n, ["file-create"]) for n in (16, 32, 64)]
    other = run(tmp_path / "other", 32, ["file-create"], workload="another")
    rows = numbers_of([*runs, other, forecast(tmp_path / "f.json", "file-create", 128)], tmp_path)["figures"][
        "throughput"
    ]["rows"]
    assert {r["run"] for r in rows if r["phase"] == "file-create" and r["series"] == "measured"} == {
        "n16",
        "n32",
        "n64",
    }
    assert {r["run"] for r in rows if r["phase"] == "file-create of another"} == {"other"}


def test_an_applications_headline_is_its_time_by_phase(tmp_path: Path) -> None:
    steps = {"precreate": 5000, "small-files": 3000, "checkpoint": 1500, "restart": 200, "report": 100, "cleanup": 9000}
    reported = tell(
        read_sources([run(tmp_path / "app", 64, list(steps), workload="my-app", operations=steps, source="simulated")])
    )
    headline = reported.headline.replace("\N{NO-BREAK SPACE}", " ")
    assert (
        headline
        == "In simulation, 64 ranks on 4 nodes take 9.60 s for the 4 phases of my-app: small-files 6.00 s, checkpoint"
        " 3.00 s, restart 400 ms and 1 more."
    )


def with_data(phase: dict[str, Any], moved: float, wait: float) -> dict[str, Any]:
    """The phase, with bytes that it moved and a station at which each operation waits and is served for 25 ms."""
    sums = {"visits": phase["operations"], "wait": wait, "service": 25e-3, "lock_wait": 0, "stall": 0}
    return phase | {
        "by_operation": {"pwrite": {"count": phase["operations"], "bytes": moved}},
        "responding_seconds": phase["operations"] * 0.1,
        "stations": {"oss": {"utilisation": 1, "operations": {"pwrite": sums, "drain": sums | {"wait": 9.0}}}},
    }


def test_an_applications_phases_have_time_bandwidth_and_where_the_time_goes(tmp_path: Path) -> None:
    """Repeats are added up; what lies outside of all stations is the network's and the clients'."""
    path = run(tmp_path / "app", 64, ["precreate", "checkpoint", "restart", "checkpoint"], workload="my-app")
    document = json.loads((path / "run.json").read_text())
    checkpoint, restart = document["phases"][1], document["phases"][2]
    document["phases"] = [
        document["phases"][0],
        with_data(checkpoint, 3e9, 50e-3),
        with_data(restart, 1e9, 0),
        with_data(checkpoint | {"repeat": 1}, 5e9, 50e-3),
    ]
    (path / "run.json").write_text(json.dumps(document))
    reported = tell(read_sources([path]))
    (grid,) = reported.grids
    cells = [[cell.replace("\N{NO-BREAK SPACE}", " ") for cell in row] for row in grid.rows]
    assert grid.header == ["phase", "time", "bandwidth", "operations", "where the time goes"]
    assert cells == [
        ["checkpoint", "2 × 2.00 s = 4.00 s", "2.00 GB/s", "500 /s", "50 % waiting for oss"],
        ["restart", "2.00 s", "500 MB/s", "500 /s", "75 % network, disks and clients' own limits"],
        ["all phases", "6.00 s", "1.50 GB/s", "500 /s", "–"],
    ]
    assert reported.question == "How fast is my-app on 4 nodes with 16 ranks each?"


def test_a_forecast_of_an_application_answers_with_times_and_bandwidths(tmp_path: Path) -> None:
    file = forecast(tmp_path / "f.json", "file-create", 64, further=("directory-create",))
    document = json.loads(file.read_text())
    latencies = {"pwrite": {"probability": [0.0, 1.0], "seconds": [0.0, 8e-3]}}  # mean 4 ms
    at = {"oss": {"wait": 3e-3, "service": 0.4e-3}}
    for one, seconds in ((document, 3.0), (document["further_phases"][0], 5.0)):
        rate = one["quantities"]["rate"]
        each = 2e9 / rate["value"]
        bandwidth = {end: None if value is None else each * value for end, value in rate.items()}
        moved = {"pwrite": {"share": 1.0, "rate": rate, "bytes_each": each, "bytes_per_second": bandwidth}}
        one |= {"seconds": {"value": seconds}, "operations": moved, "distributions": latencies, "stations": at}
    file.write_text(json.dumps(document))
    reported = tell(read_sources([file]))
    headline = reported.headline.replace("\N{NO-BREAK SPACE}", " ")
    assert "file-create 3.00 s at 2.00 GB/s, directory-create 5.00 s at 2.00 GB/s" in headline
    (grid,) = reported.grids
    assert [(row[2], row[-1]) for row in grid.rows] == [
        ("3.00\N{NO-BREAK SPACE}s", "75\N{NO-BREAK SPACE}% waiting for oss"),
        ("5.00\N{NO-BREAK SPACE}s", "75\N{NO-BREAK SPACE}% waiting for oss"),
        ("8.00\N{NO-BREAK SPACE}s", "–"),
    ]
    assert [row[0] for row in grid.rows][-1] == "all phases" and grid.rows[-1][4] == "2.00\N{NO-BREAK SPACE}GB/s"
    assert reported.question.startswith(
        "How long do file-create and directory-create take, and at what bandwidth, on 4"
    )


@pytest.mark.parametrize(
    "figure", [f for f in all_figures() if not f.of_study and f.name not in ("routes", "load")], ids=lambda f: f.name
)
def test_no_panel_mixes_phases(figure: Any, tmp_path: Path) -> None:
    """Every panel of a figure whose rows have a phase shows rows of one phase, and names it."""
    runs = [run(tmp_path / f"n{ranks}", ranks, list(RATES)) for ranks in (32, 64)]
    rows = figure.data(
        read_sources(
            [
                *runs,
                *(
                    forecast(tmp_path / f"{n}.json", "file-create", n, further=("directory-create", "file-stat"))
                    for n in (64, 256)
                ),
            ]
        )
    )
    if (
        rows and "phase" in rows[0] and figure.name not in ("timeline", "density", "utilisation")
    ):  # which show a whole run, its phases beside each other
        titles = [panel.title for panel in figure.draw(rows).panels]
        assert all(
            sum(title.startswith(phase) or f"in {phase}" in title for phase in RATES) == 1 for title in titles
        ), titles
    elif rows and figure.name in ("beside", "course", "stations"):
        drawn = json.dumps(rows)
        assert all(phase in drawn for phase in RATES)


def test_a_runs_rates_in_bytes_are_no_operations(tmp_path: Path) -> None:
    """As a table has them: `rate` itself counts bytes. IOR has both, each in its column."""
    path = run(tmp_path / "run", 32, ["write", "read", "stat"])
    document = json.loads((path / "run.json").read_text())
    write, read, _ = document["phases"]
    write |= {"rate": 5.5e9, "rate_unit": "bytes", "operations": None, "seconds": None}
    read |= {"rate": 2000.0, "rate_unit": "bytes", "bytes_per_second": 2.1e9, "operations": None, "seconds": None}
    (path / "run.json").write_text(json.dumps(document))
    (grid,) = tell(read_sources([path])).grids
    columns = {row[0]: dict(zip(grid.header, row, strict=True)) for row in grid.rows}
    spaced = {name: (one["bandwidth"].split(), one["operations"].split()) for name, one in columns.items()}
    assert spaced["write"] == (["5.50", "GB/s"], ["\N{EN DASH}"])
    assert spaced["read"] == (["2.10", "GB/s"], ["2.00", "k/s"])
    assert spaced["stat"] == (["\N{EN DASH}"], ["500", "/s"])


@pytest.mark.parametrize(("count", "words"), [(4, "1 more warning<"), (5, "2 more warnings<")])
def test_the_number_of_folded_warnings(count: int, words: str, tmp_path: Path) -> None:
    file = forecast(tmp_path / "f.json", "file-create", 1024)
    document = json.loads(file.read_text())
    document["warnings"] = [f"Warning {number}, times what was measured." for number in range(count)]
    file.write_text(json.dumps(document))
    write_report([file], tmp_path / "page.html")
    assert words in (tmp_path / "page.html").read_text()


@pytest.mark.parametrize("further", [(), ("file-stat",)], ids=["other phases", "same phase"])
def test_forecasts_of_two_platforms_are_two_series_and_the_first_screen_names_both(
    further: tuple[str, ...], tmp_path: Path
) -> None:
    """Also where their phases, placements or both differ; fits to the phases of one system are no systems."""
    laws = {"create": {"probability": [0.0, 0.5, 0.99], "seconds": [1e-4, 1e-3, 2e-3]}}

    def of(name: str, phase: str, ranks: int, further: tuple[str, ...] = ()) -> Path:
        file = forecast(tmp_path / f"{name}-{phase}.json", phase, ranks, further=further)
        document = json.loads(file.read_text())
        document["platform"] |= {"name": name, "content_hash": f"sha256:{name}"}
        for one in (document, *document["further_phases"]):
            one["distributions"] = laws
        file.write_text(json.dumps(document))
        return file

    both = [of("offer-a", "file-create", 64, further), of("offer-b", "file-stat", 128)]
    sources = read_sources(both)
    shown = tell(sources)
    for name in ("file-create (offer-a)", "file-stat (offer-b)"):
        assert name in shown.headline and name in [row[0] for row in shown.grids[0].rows]
    figures = {figure.name: figure for figure in all_figures()}
    rows = figures["throughput"].data(sources)
    assert {(row["ranks"], row["system"]) for row in rows} == {(64, "offer-a"), (128, "offer-b")}
    drawing = figures["throughput"].draw(rows)
    assert {"forecast, offer-a", "forecast, offer-b"} <= {mark.label for mark in drawing.legend}
    for panel in drawing.panels:
        for layer in panel.chart.to_dict(validate=False)["layer"]:
            if "line" in json.dumps(layer["mark"]) or "area" in json.dumps(layer["mark"]):
                apart = {channel["field"] for channel in layer["encoding"]["detail"]}
                assert apart == {"system", "line"}, "points of two platforms are not joined"
    series = {row["series"].split(", ")[-1] for row in figures["percentiles"].data(sources)}
    assert series == {"offer-a", "offer-b"}

    fits = read_sources([of(phase, phase, 64) for phase in ("file-create", "file-stat")])
    assert "(" not in tell(fits).grids[0].rows[0][0]
    assert {row["system"] for row in figures["throughput"].data(fits)} == {""}
