# SPDX-License-Identifier: Apache-2.0
"""`iocast forecast`: from other tools' files to forecasts and a report, with the answers of the single verbs."""

from __future__ import annotations

import csv
import html
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from programs import REPOSITORY

from iocast.wording import text as terminal
from iocast.forecast import forecast
from iocast.importers import import_files
from iocast.importers import table as table_of_rates

Call = Callable[..., Any]
SAMPLES = REPOSITORY / "tests" / "samples"
TABLE = """\
nodes,ppn,rate,phase,operation
1,36,5400,create,create
2,36,10500,create,create
4,36,19000,create,create
1,36,40000,stat,stat
2,36,79000,stat,stat
4,36,140000,stat,stat
"""


def test_every_phase_and_target_has_the_answer_of_the_single_verbs(iocast: Call, tmp_path: Path) -> None:
    beside = "".join(f"{nodes},36,50,tree-create,mkdir\n" for nodes in (1, 2, 4))
    (tmp_path / "table.csv").write_text(TABLE + beside)
    out = tmp_path / "out"
    done = iocast("forecast", tmp_path / "table.csv", "--nodes", "8,32", "--out", out, "--json")
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert [one["phase"] for one in answer["phases"]] == ["create", "stat"]
    assert answer["set_up_and_clean_up"] == ["tree-create"], "it is left out, and named"
    for one in answer["phases"]:
        assert [f["placement"]["nodes"] for f in one["forecasts"]] == [8, 32]
        assert {f["placement"]["ranks_per_node"] for f in one["forecasts"]} == {36}
        assert (
            json.loads((out / "forecasts" / f"{one['phase']}-32x36.json").read_text())["quantities"]
            == one["forecasts"][1]["quantities"]
        )
    stat = answer["phases"][1]
    runs = sorted((out / "runs").glob("*-stat"))
    assert (
        iocast("calibrate", *runs, "--phase", "stat", "--platform", "queue", "--out", tmp_path / "stat.yaml").returncode
        == 0
    )
    single = iocast("predict", tmp_path / "stat.yaml", "--nodes", 32, "--json")
    assert json.loads(single.stdout)["quantities"] == stat["forecasts"][1]["quantities"]
    again = iocast(
        "report", *(out / "runs").iterdir(), *(out / "fitted").iterdir(), *(out / "forecasts").iterdir(),
        "--out", tmp_path / "again.html", "--data", tmp_path / "data",
    )  # fmt: skip
    assert again.returncode == 0, again.stderr
    for page, verb in ((out / "report.html", "forecast"), (tmp_path / "again.html", "report")):
        made = page.read_text().split("How to make it again (1 command)", 1)[1].split("</pre>", 1)[0]
        assert f">iocast {verb} {tmp_path}" in made, "the command that made this page"
        grid = page.read_text().split("error where checked", 1)[1].split("</table>", 1)[0]
        assert "not checked" not in grid and grid.count("at 144") == 4, "each phase has its held-out error"


def test_the_table_on_the_terminal_has_the_question_in_it(iocast: Call, tmp_path: Path) -> None:
    """Phase, placement, largest measurement, forecast with interval; "about" where the interval is too wide."""
    (tmp_path / "table.csv").write_text(TABLE)
    done = iocast(
        "forecast", tmp_path / "table.csv", "--nodes", "8,4000", "--phase", "create", "--out", tmp_path / "out"
    )
    assert done.returncode == 0, done.stderr
    near, far = [line for line in done.stdout.splitlines() if line.startswith("create")]
    assert "8 x 36" in near and "19.0 k/s at 4x36" in near and "about" not in near
    assert "4000 x 36" in far and re.search(r" about \d", far) and "rules disagree: " in far
    assert "stat" not in done.stdout.split("Note")[0]
    (command,) = re.findall(r"measure: iocast (plan .* --nodes) N (.*)", done.stdout)
    planned = iocast(*" 16 ".join(command).split(), "--out", tmp_path / "plan.yaml")
    assert planned.returncode == 4 and "16 nodes" in planned.stdout, "the command that it names finds the run"


def test_a_value_that_is_about_right_is_called_that_everywhere(iocast: Call, tmp_path: Path) -> None:
    """In notes and on the page; and captions explain what is drawn alone."""
    (tmp_path / "table.csv").write_text(TABLE)
    done = iocast("forecast", tmp_path / "table.csv", "--nodes", "8,400,40000", "--out", tmp_path / "out", "--json")
    assert done.returncode == 0, done.stderr
    made = [one for phase in json.loads(done.stdout)["phases"] for one in phase["forecasts"]]
    wide = [one for one in made if terminal.too_wide(one["quantities"]["rate"])]
    assert wide
    page = html.unescape((tmp_path / "out" / "report.html").read_text())
    words = re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL).replace("\u202f", " ").replace("\u00a0", " ")
    for one in wide:
        value = terminal.quantity("rate", one["quantities"]["rate"]["value"])
        texts = [done.stderr, words, *one["warnings"]]
        assert all(text.count(value) == text.count(f"about {value}") for text in texts) and f"about {value}" in words
    caption = words.split('id="figure-beside"', 1)[1].split("</details>", 1)[0]
    assert "pale bar" not in caption and "Open shapes" not in caption and "q50" not in caption, caption


@pytest.mark.parametrize(
    ("cells", "says"),
    [
        ("5GB/s", "write 5 there, and its unit in the column unit. Allowed: operations, bytes, "),
        ("5 GiB", "in the column unit"),
        ("5e3MB/s", "write 5e3 there"),
        ("5 k/s", "without a letter: 5000"),
        ("5 ops/s", "write 5, since"),
        ("5,mean,1.2ms", "a latency is in seconds"),
        ("5,unit,GBps", "Allowed: operations, bytes, "),
    ],
)
def test_a_unit_in_the_place_of_a_number_is_sent_to_its_column(
    iocast: Call, tmp_path: Path, cells: str, says: str
) -> None:
    rate, column, value = (*cells.split(","), "operation", "create")[:3]
    (tmp_path / "t.csv").write_text(f"nodes,ppn,rate,{column}\n1,4,{rate},{value}\n")
    done = iocast("forecast", tmp_path / "t.csv", "--nodes", "8", "--out", tmp_path / "out")
    assert done.returncode == 2 and "t.csv:2: " in done.stderr and says in done.stderr, done.stderr


def test_the_units_that_a_refusal_allows_are_allowed(iocast: Call, tmp_path: Path) -> None:
    for unit in table_of_rates.UNITS.split(";")[0].split(", "):
        for ending in ("", "/s"):
            (tmp_path / "t.csv").write_text(f"nodes,ppn,rate,unit\n1,4,5,{unit}{ending}\n")
            assert import_files([tmp_path / "t.csv"], tmp_path / "runs" / f"{unit}{ending}".replace("/", "-"))


def test_progress_names_phase_and_step_and_never_goes_back(tmp_path: Path) -> None:
    file = tmp_path / "rates.csv"
    file.write_text(TABLE)
    seen: list[tuple[str, int, int]] = []
    forecast([file], [16], tmp_path / "out", report=lambda *step: seen.append(step))
    shares = [done / total for _, done, total in seen]
    assert shares == sorted(shares) and shares[-1] == 1
    for phase in ("create", "stat"):
        steps = [text for text, _, _ in seen if text.startswith(f"{phase}: ")]
        assert len(steps) > 1 and steps[-1] == f"{phase}: forecast of 16 x 36"


@pytest.mark.parametrize(
    ("nodes", "content", "says"),
    [("8,many", TABLE, "must be numbers of nodes"), ("0", TABLE, "must be numbers of nodes"), ("8", "no result\n", "")],
)
def test_what_cannot_be_forecast_leaves_nothing_behind(
    iocast: Call, tmp_path: Path, nodes: str, content: str, says: str
) -> None:
    (tmp_path / "table.csv").write_text(content)
    done = iocast("forecast", tmp_path / "table.csv", "--nodes", nodes, "--out", tmp_path / "out")
    assert done.returncode == 2 and says in done.stderr and "Traceback" not in done.stderr
    assert not (tmp_path / "out").exists()


def test_an_answer_that_is_there_is_left_alone(iocast: Call, tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_text(TABLE)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine").write_text("kept")
    done = iocast("forecast", tmp_path / "table.csv", "--nodes", "8", "--out", tmp_path / "out")
    assert (
        done.returncode == 2
        and "nothing is overwritten" in done.stderr
        and (tmp_path / "out" / "mine").read_text() == "kept"
    )


def test_a_phase_that_no_run_has_is_refused_with_those_there_are(iocast: Call, tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_text(TABLE)
    done = iocast("forecast", tmp_path / "table.csv", "--nodes", "8", "--phase", "unlink", "--out", tmp_path / "out")
    assert done.returncode == 2 and "Allowed: create, stat." in done.stderr, done.stderr
    assert not (tmp_path / "out").exists()


def test_contradictions_and_what_was_left_out_are_printed(iocast: Call, tmp_path: Path) -> None:
    """As `iocast import` says them: who calls one command alone sees no other's output."""
    results = tmp_path / "results"
    results.mkdir()
    (results / "good.csv").write_text("nodes,ppn,rate\n1,36,5400\n2,36,10500\n4,36,19000\n")
    (results / "other.csv").write_text("nodes,ppn,rate\n4,36,1900\n")
    (results / "damaged.csv").write_text("nodes,ppn,rate\n4,36,many\n")
    (results / "notes.txt").write_text("no result\n")
    done = iocast("forecast", results, "--nodes", "8", "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    for words in ("ALARM: ", "contradict each other by a factor 10", "left out: ", "damaged.csv:2", "1 file is no"):
        assert words in done.stdout, done.stdout
    done = iocast("forecast", results, "--nodes", "8", "--out", tmp_path / "again", "--json")
    assert any("contradict" in note for note in json.loads(done.stdout)["series"])


def first_screen(page: Path) -> str:
    """Words before the first that are folded."""
    text = page.read_text().split("<main", 1)[1].split("<details", 1)[0]
    return html.unescape(re.sub(r"<script.*?</script>|<[^>]+>", "", text, flags=re.DOTALL))


@pytest.mark.long("a forecast of its own; what is printed is tested with others always")
def test_the_page_has_what_the_terminal_says_beside_its_table(iocast: Call, tmp_path: Path) -> None:
    """Phases without a forecast, contradictions and what was left out: whoever reads the page sees no terminal."""
    results = tmp_path / "results"
    results.mkdir()
    (results / "good.csv").write_text(TABLE + "8,36,50,tree-create,mkdir\n")
    (results / "other.csv").write_text("nodes,ppn,rate,phase,operation\n4,36,1900,create,create\n")
    (results / "damaged.csv").write_text("nodes,ppn,rate\n4,36,many\n")
    for size in ("1048576", "4194304"):
        file = results / f"write-{size}.csv"
        file.write_text(f"nodes,ppn,rate,phase,transfer_size\n1,36,100,write,{size}\n2,36,190,write,{size}\n")
    out = tmp_path / "out"
    done = iocast("forecast", results, "--nodes", "8", "--out", out)
    assert done.returncode == 0, done.stderr
    begins = ("Not forecast: ", "Left out: ", "ALARM: ", "left out: ")
    shown_there = [line for line in done.stdout.splitlines() if line.startswith(begins)]
    assert {line.split(": ")[0] for line in shown_there} == {begin.split(": ")[0] for begin in begins}, done.stdout
    page = html.unescape((out / "report.html").read_text())
    assert not [line for line in shown_there if line not in page]
    shown = first_screen(out / "report.html")
    assert not [line for line in shown_there if not line.startswith("left out") and line not in shown]
    assert shown.index("Not forecast: write: ") < shown.index("Before you rely on this"), "beside the answer"
    again = tmp_path / "again.html"
    parts = (out / name for name in ("fitted/create.yaml", "forecasts/create-8x36.json"))
    done = iocast("report", out / "runs", *parts, "--out", again, "--data", tmp_path / "data")
    assert done.returncode == 0, done.stderr
    assert "ALARM: " in first_screen(again), "iocast report reads what iocast import found"
    summary = json.loads((tmp_path / "data" / "report.json").read_text())["summary"]
    assert any(one.startswith("ALARM: ") for one in summary["warnings"])


def test_tools_whose_work_no_workload_does_are_forecast_by_their_rates(iocast: Call, tmp_path: Path) -> None:
    """fio's results have latencies, but nothing that iocast-sim could do again."""
    done = iocast("forecast", SAMPLES / "fio" / "version-2.json", "--nodes", "4", "--out", tmp_path / "out", "--json")
    assert done.returncode == 0, done.stderr
    assert all("refusal" not in one for one in json.loads(done.stdout)["phases"])


BANDWIDTHS = """\
nodes,ppn,rate,unit,phase
1,36,1.5,GB/s,write
2,36,2.9,GB/s,write
4,36,5.5,GB/s,write
"""


@pytest.mark.long("a forecast of its own; what is printed is tested with others always")
def test_rates_in_bytes_are_printed_as_bytes_by_every_verb(iocast: Call, tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_text(BANDWIDTHS)
    out = tmp_path / "out"
    done = iocast("forecast", tmp_path / "table.csv", "--nodes", "8", "--out", out)
    assert done.returncode == 0, done.stderr
    made = json.loads((out / "forecasts" / "write-8x36.json").read_text())
    assert made["quantities"]["rate"]["unit"] == "bytes"
    fitted = out / "fitted" / "write.yaml"
    page = tmp_path / "report.html"
    assert iocast("report", out / "runs", fitted, out / "forecasts" / "write-8x36.json", "--out", page).returncode == 0
    texts = [
        done.stdout,
        iocast("predict", fitted, "--nodes", 8).stdout,
        iocast("validate", fitted, out / "runs").stdout,
        re.sub(r"<script.*?</script>|<[^>]+>", " ", page.read_text(), flags=re.DOTALL),
    ]
    for text in texts:
        assert "5.50 GB/s" in text.replace("\N{NO-BREAK SPACE}", " ").replace("\N{NARROW NO-BREAK SPACE}", " "), text
        assert not re.search(r"\d\s[kMG]?/s", text), text


@pytest.mark.long("a forecast of its own; what is printed is tested with others always")
def test_a_figure_has_measurement_and_forecast_in_one_unit(iocast: Call, tmp_path: Path) -> None:
    """A run that counts blocks as well as bytes is judged by its bytes, in the fit and in the figure."""
    (tmp_path / "table.csv").write_text(BANDWIDTHS)
    out = tmp_path / "out"
    assert iocast("forecast", tmp_path / "table.csv", "--nodes", "8", "--out", out).returncode == 0
    for file in (out / "runs").glob("*/run.json"):
        run = json.loads(file.read_text())
        for phase in run["phases"]:
            phase["rate"], phase["bytes_per_second"] = phase["rate"] / 2**20, phase["rate"]
        file.write_text(json.dumps(run))
    sources = [out / "runs", out / "fitted" / "write.yaml", out / "forecasts" / "write-8x36.json"]
    assert iocast("report", *sources, "--out", tmp_path / "r.html", "--data", tmp_path / "data").returncode == 0
    with (tmp_path / "data" / "figure-throughput.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if row["series"] in ("measured", "forecast")]
    assert {row["series"] for row in rows} == {"measured", "forecast"}
    assert all(1e9 < float(row["value"]) < 2e10 for row in rows), rows


def test_a_run_without_nodes_is_left_out_and_named_and_the_others_are_used(iocast: Call, tmp_path: Path) -> None:
    """Each file by itself, one of them a result that knows no nodes, one no result at all; also as directory of runs.
    The forecast is that of the others."""
    header, *rows = TABLE.splitlines()[:4]
    files = []
    for number, row in enumerate(rows):
        files.append(tmp_path / f"n{number}.csv")
        files[-1].write_text(f"{header}\n{row}\n")
    (tmp_path / "notes.csv").write_text("remarks\nnothing to see\n")
    done = iocast("forecast", *files, tmp_path / "notes.csv", "--nodes", "8", "--out", tmp_path / "out")
    assert done.returncode == 0 and "left out: '" in done.stdout and "notes.csv' is no result" in done.stdout, done
    rate = json.loads((tmp_path / "out" / "forecasts" / "create-8x36.json").read_text())["quantities"]["rate"]
    runs = tmp_path / "out" / "runs"
    shutil.copytree(next(runs.glob("n2*")), runs / "placeless")
    document = json.loads((runs / "placeless" / "run.json").read_text())
    document["placement"] |= {"nodes": None, "ranks_per_node": None}
    (runs / "placeless" / "run.json").write_text(json.dumps(document))
    for sources, out in (([runs], "of-directory"), (sorted(one for one in runs.iterdir() if one.is_dir()), "of-runs")):
        done = iocast("forecast", *sources, "--nodes", "8", "--out", tmp_path / out)
        assert done.returncode == 0, done.stderr
        assert "left out: 'placeless' does not say on how many nodes it ran" in done.stdout
        found = json.loads((tmp_path / out / "forecasts" / "create-8x36.json").read_text())["quantities"]["rate"]
        assert found == rate
        page = html.unescape((tmp_path / out / "report.html").read_text()).split("How to make it again")[0]
        assert page.count("placeless") == page.count("'placeless' does not say") == 1, "named, and in no table"
    for run in runs.glob("n*"):
        shutil.rmtree(run)
    done = iocast("forecast", runs, "--nodes", "8", "--out", tmp_path / "none")
    assert done.returncode == 2 and "placeless" in done.stderr and "on how many nodes" in done.stderr


MD_WORKBENCH = SAMPLES / "md-workbench"


def test_outputs_of_one_tool_that_a_shell_lists_are_read_as_their_directory_is(iocast: Call, tmp_path: Path) -> None:
    """`iocast import results/*` and `iocast import results` hold the same runs, whatever the tool."""
    for tool in ("md-workbench", "mdtest", "ior"):
        folder = tmp_path / tool
        folder.mkdir()
        for file in sorted(path for path in (SAMPLES / tool).iterdir() if path.suffix in (".txt", ".log"))[:3]:
            shutil.copy(file, folder)
        found = []
        for number, arguments in enumerate(([folder], sorted(folder.iterdir()))):
            out = tmp_path / f"{tool}-{number}"
            done = iocast("import", *arguments, "--out", out)
            assert done.returncode == 0, done.stderr
            found.append([(one["name"], one["ranks"]) for one in json.loads((out / "series.json").read_text())["runs"]])
        assert found[0] == found[1] and len(found[0]) > 1, tool


def test_latency_files_that_may_belong_to_several_outputs_are_named(iocast: Call, tmp_path: Path) -> None:
    files = [MD_WORKBENCH / name for name in ("md-real-io-2016.txt", "sandy9-2016.txt", "lat-0.00-0-stat.csv")]
    done = iocast("import", *files, "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    left_out = json.loads((tmp_path / "out" / "series.json").read_text())["left_out"]
    assert len(left_out) == 1 and "lat-0.00-0-stat.csv" in left_out[0]


def test_messages_name_options_that_the_verb_has(iocast: Call, tmp_path: Path) -> None:
    """A message of the import names --nodes, which is the target of a forecast."""
    options = set(re.findall(r"--[a-z-]+", iocast("forecast", "--help").stdout))
    (tmp_path / "table.csv").write_text(TABLE)
    (tmp_path / "other.csv").write_text("nodes,tasks,rate_per_s\n1,36,5400\n")
    questions: list[tuple[list[Any], str]] = [
        ([MD_WORKBENCH / "md-real-io-2016.txt"], "add --nodes-measured"),
        ([MD_WORKBENCH / "md-real-io-2016.txt", MD_WORKBENCH / "sandy9-2016.txt"], "add --nodes-measured"),
        ([tmp_path / "table.csv", "--nodes-measured", 3], "--nodes-measured says 3"),
        ([tmp_path / "other.csv"], "the column rate, and two of nodes, ppn and ranks"),
    ]
    for arguments, says in questions:
        done = iocast("forecast", *arguments, "--nodes", "8", "--out", tmp_path / "out")
        assert done.returncode == 2 and says in done.stderr, done.stderr
        of_import = re.sub(r"iocast import [^);.]*", "", done.stderr)
        assert set(re.findall(r"--[a-z-]+", of_import)) <= options - {"--nodes"}, done.stderr
        assert not (tmp_path / "out").exists()


@pytest.mark.long("a forecast of its own; what is printed is tested with others always")
def test_latencies_that_no_forecast_uses_are_named(iocast: Call, tmp_path: Path) -> None:
    def notes(header: str, cells: str) -> str:
        lines = [f"1,{ppn},{100 * ppn}{cells}" for ppn in (1, 2, 4)]
        (tmp_path / "table.csv").write_text("\n".join([f"nodes,ppn,rate{header}", *lines, ""]))
        shutil.rmtree(tmp_path / "out", ignore_errors=True)
        done = iocast("forecast", tmp_path / "table.csv", "--nodes", "2", "--out", tmp_path / "out")
        assert done.returncode == 0, done.stderr
        return str(done.stdout)

    assert "latencies, which were not fitted" not in notes("", "")
    assert "latencies, which were not fitted" in notes(",q50,q99", ",0.01,0.1")
    assert "latencies, which were not fitted" in notes(",workload,operation,q50", ",md-workbench,create,0.01")


def test_a_named_phase_has_its_own_contradictions_only(iocast: Call, tmp_path: Path) -> None:
    rows = "1,36,5400,create\n2,36,50,create\n4,36,20000,create\n1,36,40000,stat\n2,36,79000,stat\n4,36,900,stat\n"
    (tmp_path / "a.csv").write_text("nodes,ppn,rate,phase\n" + rows)
    (tmp_path / "b.csv").write_text("nodes,ppn,rate,phase\n8,36,41000,create\n8,36,150000,stat\n")
    files = [tmp_path / "a.csv", tmp_path / "b.csv"]
    done = iocast("forecast", *files, "--nodes", "9", "--phase", "stat", "--out", tmp_path / "out")
    alarms = [line for line in done.stdout.splitlines() if line.startswith("ALARM")]
    assert alarms and all(" stat:" in line and " create:" not in line for line in alarms), done.stdout


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        (["measure", ".", "--campaign", "quik"], "'quick'"),
        (["predict", "lustr"], "'lustre'"),
        (["forecast", "table.csv", "--nodes", "8", "--platform", "locl"], "'local'"),
    ],
)
def test_a_misspelt_name_leads_to_the_nearest(
    iocast: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], meant: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "table.csv").write_text(TABLE)
    done = iocast(*arguments, "--out", tmp_path / "out")
    assert done.returncode == 2 and done.stderr.count(f"Did you mean {meant}?") == 1, done.stderr


def test_an_interrupted_forecast_leaves_nothing_in_the_way_of_the_same_command(tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_text(TABLE)

    def interrupt(text: str, done: int, total: int) -> None:
        if "forecast of" in text:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        forecast([tmp_path / "table.csv"], [8], tmp_path / "out", report=interrupt)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("room", [None, 200, 100, 80, 60, 20])
@pytest.mark.parametrize("keys", [1, 2])
def test_a_table_fits_into_the_terminal(room: int | None, keys: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """All its cells stand there, the rows in order, each part with the key columns."""
    header = ["phase", "place", "measured", "forecast", "interval", "rule", "error"]
    rows = [[f"{name}{n}" * (1 + i % 3) for i, name in enumerate(header)] for n in range(3)]
    monkeypatch.setattr(terminal, "terminal_columns", lambda: None)
    whole = terminal.table(header, rows, keys)
    monkeypatch.setattr(terminal, "terminal_columns", lambda: room)
    shown = terminal.table(header, rows, keys)
    if room is None or max(map(len, whole.splitlines())) <= room:
        assert shown == whole
        return
    parts = [[line.split() for line in part.splitlines()] for part in shown.split("\n\n")]
    joined = [parts[0][i] + [cell for part in parts[1:] for cell in part[i][keys:]] for i in range(len(rows) + 1)]
    assert joined == [header, *rows]
    for part in shown.split("\n\n"):
        widest = max(map(len, part.splitlines()))
        assert widest <= room or len(part.splitlines()[0].split()) == keys + 1


def test_how_likely_rates_fall_is_printed_as_by_predict(iocast: Call, tmp_path: Path) -> None:
    """Of a rate that has stopped growing, and not of one that grows with the nodes."""
    rates = {"create": (1000, 1900, 2500, 2600), "stat": (1000, 2000, 4000, 8000)}
    lines = [
        f"{nodes},10,{rate},{phase},{phase}"
        for phase, known in rates.items()
        for nodes, rate in zip((1, 2, 4, 8), known, strict=True)
    ]
    (tmp_path / "table.csv").write_text("\n".join(["nodes,ppn,rate,phase,operation", *lines, ""]))
    out = tmp_path / "out"
    done = iocast("forecast", tmp_path / "table.csv", "--nodes", "16,64", "--ppn", "10", "--out", out)
    assert done.returncode == 0, done.stderr
    texts = {}
    for phase in rates:
        (fitted,) = (out / "fitted").glob(f"*{phase}*")
        answer = json.loads(iocast("predict", fitted, "--nodes", "64", "--ppn", "10", "--json").stdout)
        texts[phase] = answer["growth"]
        assert answer["growth"]["text"] in iocast("predict", fitted, "--nodes", "64", "--ppn", "10").stdout
    assert texts["create"]["falls"] > 0.1 > 0.05 > texts["stat"]["falls"]
    assert f"create: {texts['create']['text']}\n" in done.stdout and "stat: " not in done.stdout
    turned = iocast("forecast", tmp_path / "table.csv", "--nodes", "64,16", "--ppn", "10", "--out", tmp_path / "turned")
    assert f"create: {texts['create']['text']}\n" in turned.stdout, "the farthest target, not the last"
