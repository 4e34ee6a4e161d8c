# SPDX-License-Identifier: Apache-2.0
"""What a report's page says of accelerators."""

from __future__ import annotations

import html
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from iocast.ground.files import write_json
from iocast.forecasts.training import forecast_training
from iocast.importers.series import import_series
from iocast.report import accelerators, feeding, units, write_report
from iocast.report.sources import read_sources
from iocast.report.story import tell
from iocast.report.tables import all_tables
from iocast.runs.run_directory import Run
from iocast.validate import of_accelerators

SAMPLES = Path(__file__).resolve().parents[1] / "samples" / "dlio"


@pytest.mark.parametrize(("sample", "verdict"), [("training-2.0", "not fed: 90"), ("summary.json", "fed.")])
def test_a_training_is_judged_by_its_utilisation(sample: str, verdict: str, tmp_path: Path) -> None:
    sources = read_sources(import_series([SAMPLES / sample], tmp_path / "runs"))
    headline = tell(sources).headline
    assert "busy at" in headline and headline.replace("\u202f", " ").replace("\xa0", " ").find(verdict) > 0
    [table] = [one for one in all_tables(sources) if one.name == "accelerators"]
    used = [phase["accelerators"]["utilisation_after_first_step"] for phase in sources.runs[0].phases]
    assert [row["au"] for row in table.rows] == used
    fed = ["computation" in row["limit"] for row in table.rows]
    assert fed == [one >= 0.9 for one in used]
    assert "stall_share" not in [column.key for column in table.columns]


def test_a_simulation_names_the_busiest_link(simulate: Callable[..., Any], tmp_path: Path) -> None:
    settings = ("steps=4", "phases=train", "compute_time=1ms")
    sets = [part for one in settings for part in ("--set", one)]
    simulate("lustre", "--workload", "unet3d", "--ppn", "4", "--out", tmp_path / "run", *sets)
    sources = read_sources([tmp_path / "run"])
    [row] = accelerators.table(sources).rows
    assert row["limit"].startswith("storage or hosts") and "node 0 in is busy" in row["limit"]


def test_runs_without_accelerators_have_no_such_table(tmp_path: Path) -> None:
    sources = read_sources(import_series([SAMPLES.parent / "fs_mark"], tmp_path / "runs"))
    assert not accelerators.table(sources).rows and not accelerators.sentence(sources.runs[0])


def test_validations_have_what_accelerators_do(tmp_path: Path) -> None:
    """A rate that was forecast 10 % too high gives samples 10 % too many, and a utilisation of 100 % at most."""
    [path] = import_series([SAMPLES / "training-2.0"], tmp_path / "runs")
    run = Run(path, "train")
    point: Any = SimpleNamespace(runs=[run], first=run)
    used = [phase.accelerators.utilisation for phase in run.record.phases if phase.accelerators]
    for factor in (1.1, 3.0):
        ends = {"forecast": factor * run.rate, "low": run.rate / 2, "high": factor * run.rate}
        rate = {"measured": run.rate, **ends, "baselines": {"linear": {"value": run.rate / 2}}}
        rows = {row["quantity"]: row for row in of_accelerators(point, rate)}
        assert set(rows) == {"au", "samples", "accelerator_bandwidth"}
        assert rows["samples"]["forecast"] == pytest.approx(factor * rows["samples"]["measured"])
        assert rows["au"]["measured"] == pytest.approx(sum(filter(None, used)) / len(used))
        assert rows["au"]["forecast"] == pytest.approx(min(1.0, factor * rows["au"]["measured"]))
        assert all(row["inside"] and row["low"] < row["measured"] <= row["high"] for row in rows.values())
        assert rows["samples"]["baselines"]["linear"]["error"] == pytest.approx(-0.5)


def test_a_forecast_of_accelerators_is_a_page(tmp_path: Path) -> None:
    """Its directory, with the runs that were imported, and its file by itself."""
    answer = forecast_training([SAMPLES / "training-2.0"], [4, 16], tmp_path / "out")
    for source in (tmp_path / "out", tmp_path / "out" / "accelerators.json"):
        write_report([source], tmp_path / "page.html")
        sources = read_sources([source])
        shown, tables = tell(sources), {one.name: one for one in all_tables(sources)}
        page = (tmp_path / "page.html").read_text()
        assert shown.headline in html.unescape(page) and shown.question == feeding.QUESTION
        assert (
            f"{units.count(answer['most']['value'])} accelerators keep {units.share(answer['limit'])}" in shown.headline
        )
        assert f"{units.share(answer['level'])} intervals" in shown.reach and "accelerators" in shown.reach
        assert all(note in shown.warnings for note in [answer["limits"], *answer["notes"]])
        rows = {(row["count"], row["what"]): row for row in tables["feeding"].rows}
        for one in answer["forecasts"]:
            row = rows[one["count"], "forecast"]
            assert (row["au"], row["au_low"], row["au_high"]) == tuple(one["utilisation"].values())
            assert row["samples"] == one["rate"]["value"] and row["fed"] == one["fed"]
            assert row["bytes_per_second"] == one["rate"]["value"] * answer["bytes_per_sample"]
        assert ("accelerators" in tables) == (source.is_dir()), "the measured runs"


SEARCHED = {
    "schema_version": 1, "kind": "fed", "source": "measured", "workload": "unet3d", "settings": {},
    "rows": [
        {"accelerators": n, "nodes": 1, "readers": 4 * n, "utilisation": 1 - n / 40, "samples_per_second": 2.0 * n,
         "bytes_per_second": 3e8 * n, "busiest": [], "runs": 2, "met": 2 if n < 5 else 0, "levels": {}}
        for n in (1, 2, 4, 5)
    ],
    "answer": 4, "missed": 5, "confirmed": 1, "reason": "enclosed", "levels": ["au >= 90 %"],
}  # fmt: skip


@pytest.mark.parametrize("answer", [4, None, "simulated"])
def test_a_search_over_accelerators_is_a_page(answer: Any, tmp_path: Path) -> None:
    document = SEARCHED | {"answer": answer}
    if answer == "simulated":
        document = {key: SEARCHED[key] for key in ("schema_version", "kind", "workload", "settings", "rows")}
        document |= {"source": "simulated", "platform": {"name": "lustre"}, "notes": ["Nothing tells how far off."]}
    write_json(tmp_path / "knee" / "fed.json", document)
    write_report([tmp_path / "knee"], tmp_path / "page.html")
    sources = read_sources([tmp_path / "knee"])
    shown, [table] = tell(sources), [one for one in all_tables(sources) if one.name == "feeding"]
    expected = {4: "4 accelerators are fed", None: "No count meets au >= 90 %", "simulated": "In simulation, 5"}
    assert expected[answer] in shown.headline and shown.headline in html.unescape((tmp_path / "page.html").read_text())
    assert [row["count"] for row in table.rows] == [1, 2, 4, 5] and table.rows[0]["au"] == 1 - 1 / 40
    assert set(document.get("notes", [])) <= set(shown.warnings)
