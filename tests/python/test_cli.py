# SPDX-License-Identifier: Apache-2.0
"""The command line: help that is read at one glance, and old spellings that name the new one."""

import json
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer
from programs import REPOSITORY

from iocast.cli import app, main
from iocast.ground.progress import Steps
from iocast.ground.binaries import simulate
from iocast.cli.app import GROUPS, MOVED
from iocast.cli.options import SHARED
from iocast.errors import InputError

sys.path.insert(0, str(REPOSITORY / "tests"))

import words  # noqa: E402

Iocast = Callable[..., subprocess.CompletedProcess[str]]

COMMAND: Any = typer.main.get_command(app)
VERBS = {name: COMMAND.commands[name] for name in COMMAND.list_commands(None)}
FIRST = {
    "Get data": ["measure", "plan", "knee", "import"],
    "Forecast": ["forecast", "simulate", "compare"],
    "Decide": ["study", "report"],
}


@pytest.fixture
def ask(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iocast:
    """The command line in this process, on a terminal of 80 columns."""
    monkeypatch.setenv("COLUMNS", "80")

    def call(*arguments: object) -> subprocess.CompletedProcess[str]:
        monkeypatch.setattr(sys, "argv", ["iocast", *map(str, arguments)])
        with pytest.raises(SystemExit) as end:
            main()
        shown = capsys.readouterr()
        return subprocess.CompletedProcess(sys.argv, int(end.value.code or 0), shown.out, shown.err)

    return call


def sections(text: str) -> dict[str, list[str]]:
    """Lines of a help by heading."""
    found: dict[str, list[str]] = {}
    heading = ""
    for line in text.splitlines():
        if re.fullmatch(r"\S.*:", line):
            heading = line[:-1]
        elif line.strip():
            found.setdefault(heading, []).append(line)
    return found


def test_verbs_stand_in_groups_with_whole_summaries(ask: Iocast) -> None:
    done = ask("--help")
    assert done.returncode == 0 and all(len(line) <= 80 for line in done.stdout.splitlines())
    found = sections(done.stdout)
    assert [heading for heading in found if heading in GROUPS] == list(GROUPS)
    shown = {heading: [re.split(r"\s{2,}", line.strip(), maxsplit=1) for line in found[heading]] for heading in GROUPS}
    assert {heading: [verb for verb, _ in shown[heading]] for heading in FIRST} == FIRST
    rows = [row for heading in GROUPS for row in shown[heading] if row[0] in VERBS]
    assert [verb for verb, _ in rows] == list(VERBS)
    for verb, summary in rows:
        assert summary == VERBS[verb].help.partition("\n\n")[0]
        assert 20 <= len(summary) <= 60 and summary.endswith(".") and "..." not in summary, (verb, summary)
        assert not words.DICTION.search(summary) and not re.match(r"(Of|That|What)\b", summary), (verb, summary)


@pytest.mark.parametrize("verb", list(VERBS))
def test_options_stand_by_task(verb: str, ask: Iocast) -> None:
    done = ask(verb, "--help")
    assert done.returncode == 0
    found = sections(done.stdout)
    for heading, lines in found.items():
        options = [line for line in lines if line.startswith("  --")]
        assert len(options) <= 9, f"{len(options)} options below '{heading}' of {verb}; group them by task"
    every = [
        name for parameter in VERBS[verb].params if not getattr(parameter, "hidden", False) for name in parameter.opts
    ]
    for name in every:
        if name.startswith("--"):
            assert re.search(rf"^  {name}\b", done.stdout, flags=re.MULTILINE), name
    limits = sum(line.startswith("  --") for line in found.get(SHARED, []))  # the same ones wherever storage is touched
    assert len(every) - limits <= 22, f"{verb} has {len(every) - limits} options: it does more than one thing"


@pytest.mark.parametrize(("verb", "option"), [(verb, option) for verb, moved in MOVED.items() for option in moved])
def test_an_old_spelling_names_the_new_one(verb: str, option: str, ask: Iocast, tmp_path: Path) -> None:
    out = tmp_path / "out.yaml"
    for argument in (option, f"{option}=1"):
        done = ask(verb, argument, "--out", out)
        assert done.returncode == 2 and done.stdout == "" and not out.exists()
        message = " ".join(done.stderr.split())
        assert message.startswith(f"iocast: iocast {verb} has no option {option}. ") and message.endswith(".")
        for named in re.findall(r"iocast (\w+)", message.split(". ", 1)[1]):
            assert named in VERBS, message
        new = re.search(r"(?:iocast (\w+)\b[^-]*)?(--[a-z-]+)(?: of iocast (\w+))?", message.split(". ", 1)[1])
        if new:
            owner = VERBS[new[3] or new[1] or verb]
            assert new[2] in [name for parameter in owner.params for name in parameter.opts], message


def test_old_commands_are_refused_as_they_were_written(ask: Iocast, tmp_path: Path) -> None:
    for arguments, says in (
        (("--plan", "--platform", "local", "--ppn", 8, "--asked", "1x64"), "iocast plan"),
        ((tmp_path, "--find-knee", "--over", "waiting_factor"), "iocast knee DIRECTORY"),
        ((tmp_path, "--slo", "p99(create) < 50 ms"), "iocast knee DIRECTORY --slo"),
        ((tmp_path, "--ppn", 8), "iocast plan and iocast knee"),
    ):
        done = ask("measure", *arguments, "--out", tmp_path / "out")
        assert done.returncode == 2 and says in " ".join(done.stderr.split()), done.stderr
        assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("option", ["--ranks-per-node", "--ntasks-per-node"])
def test_a_launchers_name_of_an_option_names_ours(option: str, iocast: Iocast) -> None:
    done = iocast("predict", "lustre", option, "4")
    assert done.returncode == 2 and done.stderr == f"iocast: iocast predict has no option {option}. It is --ppn here.\n"
    other = iocast("list", "platforms", option, "4")  # which has no ranks
    assert other.returncode == 2 and "--ppn" not in other.stderr


def test_another_unknown_option_is_refused_as_ever(ask: Iocast, tmp_path: Path) -> None:
    done = ask("measure", tmp_path, "--campain", "quick")
    assert done.returncode == 2 and "--campaign" in done.stderr


RANDOM = {
    "measure",
    "plan",
    "knee",
    "forecast",
    "simulate",
    "compare",
    "study",
    "calibrate",
    "predict",
    "validate",
    "selftest",
}
"""Verbs with random choices."""


@pytest.mark.parametrize("verb", sorted(VERBS))
def test_a_seed_is_refused_where_it_has_no_effect(verb: str) -> None:
    """The help names --seed where something is drawn; elsewhere the option is refused in a sentence."""
    options = [name for parameter in VERBS[verb].params for name in parameter.opts]
    assert ("--seed" in options) is (verb in RANDOM)
    if verb not in RANDOM:
        with pytest.raises(InputError, match=f"iocast {verb} has no option --seed. It draws nothing at random"):
            VERBS[verb].make_context(verb, ["--seed", "3"])


@pytest.mark.parametrize("words", [["--published", "chasapis2014"], ["p.yaml", "c", "--forecast", "f.json"]])
def test_validate_refuses_a_seed_without_effect(words: list[str], iocast: Iocast) -> None:
    done = iocast("validate", *words, "--seed", "3")
    assert done.returncode == 2 and "leave out --seed" in done.stderr


def test_published_statements_are_judged_by_one_command(iocast: Iocast) -> None:
    """Those of the source that takes least; the exit status is that of the answer."""
    done = iocast("validate", "--published", "chasapis2014", "--json")
    answer = json.loads(done.stdout)
    assert done.returncode == (0 if answer["passed"] else 4), done.stderr
    assert answer["kind"] == "published" and list(answer["sources"]) == ["chasapis2014"]
    assert answer["summary"]["claims"] == len(answer["sources"]["chasapis2014"]["claims"]) > 5
    assert iocast("validate").returncode == 2 and "--published" in iocast("validate").stderr
    assert iocast("validate", "--published", "chasapsi2014").returncode == 2


@pytest.mark.parametrize(("seconds", "lines"), [(0.0, 0), (0.3, 2)])
def test_progress_is_printed_after_a_while_on_standard_error(
    seconds: float, lines: int, capsys: pytest.CaptureFixture[str]
) -> None:
    with Steps(after=0.1) as steps:
        steps("a first step", 0, 2)
        time.sleep(seconds)
        steps("a second step", 1, 2)
    shown = capsys.readouterr()
    assert shown.out == "" and len(shown.err.splitlines()) == lines
    assert not lines or shown.err.splitlines() == ["  [0/2] a first step", "  [1/2] a second step"]


def test_a_long_simulation_shows_how_far_it_is(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("iocast.ground.progress.SIMULATING_EVERY", 0.0)
    with Steps() as steps:
        steps("forecasting 10 nodes", 0, 1)
        # Long enough for a word on any machine: 2.8 million requests.
        simulate("lustre", "md-workbench", {"objects": 24000, "iterations": 24000, "datasets": 2}, 10, 1, 1)
    shown = [
        float(one) for one in re.findall(r"nodes: (\d+) % of this simulation, \d+ s left", capsys.readouterr().err)
    ]
    assert shown and shown == sorted(shown) and 0 < shown[-1] <= 100


def test_verbs_of_many_seconds_show_their_progress() -> None:
    """Each verb that simulates, calibrates or draws opens `Steps`."""
    for verb in (
        "measure",
        "plan",
        "knee",
        "forecast",
        "simulate",
        "compare",
        "study",
        "report",
        "calibrate",
        "predict",
        "validate",
        "selftest",
        "import_",
    ):
        assert re.search(r"\bSteps\(", Path(sys.modules[f"iocast.cli.{verb}"].__file__ or "").read_text()), verb


@pytest.mark.parametrize("words", [["calibrate", "runs"], ["study", "study.yaml"]])
def test_options_of_workers_reach_the_verbs_that_share_them(words: list[str], ask: Iocast, tmp_path: Path) -> None:
    """The verbs have them as one dataclass, of which the command line makes single options."""
    out = tmp_path / "new"
    done = ask(*words, "--out", out, "--scheduler", "tls://host:8786", "--slurm")
    assert done.returncode == 2 and "give --scheduler or --slurm" in done.stderr, done.stderr
    done = ask(*words, "--out", out, "--scheduler-secret", "key.pem")
    assert done.returncode == 2 and "belongs to --scheduler" in done.stderr, done.stderr
    assert {"workers", "slurm", "interface"} <= {one.name for one in VERBS["validate"].params}


@pytest.mark.parametrize(
    "words",
    [
        "plan --platform FITTED --workload mdtest-easy",
        "plan --platform FITTED --set datasets=3",
        "plan --platform FITTED --phase other",
        "predict FITTED --points-of campaign --nodes 4 --out new",
        "compare RUN RUN --study study.yaml",
        "compare RUN RUN --level 0.8",
        "compare local.yaml lustre.yaml --study study.yaml --fail-on 10%",
        "validate --published --role check",
        "validate --published hpcs2012 --workers 3",
        "calibrate RUN --look --platform lustre",
        "list workloads --markdown --json",
        "observe --join RUN observed.jsonl --every 2s",
        "import darshan log.darshan --out new.h5 --ranks 4",
        "measure DIRECTORY --dry-run --slurm-time 02:00:00",
        "simulate lustre unet3d --accelerators-per-node 4",
        "knee DIRECTORY --over accelerators --workload unet3d --confidence 0.8 --out new",
    ],
)
def test_an_option_without_effect_is_refused(words: str, ask: Iocast, tmp_path: Path) -> None:
    """Whoever gives it believes that the answer follows it."""
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "run.json").write_text("{}")
    for name in ("local", "lustre"):
        (tmp_path / f"{name}.yaml").write_text(f"schema_version: 1\nextends: {name}\n")
    places = {"FITTED": REPOSITORY / "examples" / "tutorial" / "fitted.yaml", "RUN": tmp_path / "run"}
    places |= {"DIRECTORY": tmp_path, "local.yaml": tmp_path / "local.yaml", "lustre.yaml": tmp_path / "lustre.yaml"}
    done = ask(*(places.get(word, word) for word in words.split()))
    assert done.returncode == 2 and "has no effect" in done.stderr and "leave it out" in done.stderr, done.stderr
    assert not any(tmp_path.glob("new*"))


def test_a_wrong_level_and_a_wrong_list_are_refused_at_once_with_what_is_allowed(ask: Iocast, tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_text("nodes,ppn,rate\n1,4,1000\n")
    for verb in (["forecast", tmp_path / "table.csv", "--nodes", "4", "--out", tmp_path / "out"], ["predict", "local"]):
        done = ask(*verb, "--level", "90")
        assert done.returncode == 2 and "--level is 90; it must be a probability" in done.stderr, done.stderr
        assert done.stderr.count("\n") == 1  # nothing had begun
    done = ask("list", "format")
    assert done.returncode == 2 and "formats" in done.stderr and "backends" in done.stderr, done.stderr


def test_every_option_that_is_a_share_refuses_percent_with_its_range() -> None:
    shares = [
        (verb, one)
        for verb, command in VERBS.items()
        for one in command.params
        if isinstance(getattr(one, "default", None), float)
    ]
    assert {"level", "alpha", "least_coverage", "most_rate_error", "confidence", "precision"} == {
        one.name for _, one in shares
    }
    for verb, one in shares:
        context = VERBS[verb].make_context(verb, [], resilient_parsing=True)
        for value in ("70", "-0.1", "nan"):
            with pytest.raises(InputError, match=f"{max(one.opts, key=len)} is {value}; it must be .* between 0"):
                one.process_value(context, value)
        assert one.process_value(context, str(one.default)) == one.default
