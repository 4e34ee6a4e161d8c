# SPDX-License-Identifier: Apache-2.0
"""The manual's pages, run; and that none is left out."""

import os
import re

import pytest
from named_hosts import hosts_of
from pages import RUN_ELSEWHERE, Page, all_pages, blocks_of, commands_of, images_of
from programs import REPOSITORY
from slurm_cluster import Cluster


def run_by_tests() -> set[str]:
    """Pages that some test names to Page.run, which runs them whole."""
    texts = [file.read_text() for file in (REPOSITORY / "tests").rglob("test_*.py")]
    names = {name for text in texts for name in re.findall(r'page\.run\(\s*"([^"{]+)"', text)}
    names |= {
        f"examples/{example.parent.name}/README.md" for example in (REPOSITORY / "examples").glob("*/README.md")
    }  # test_study_examples.py
    return {name if (REPOSITORY / name).exists() else f"docs/{name}" for name in names}


def test_every_command_is_run() -> None:
    with_commands = {page for page in all_pages() if commands_of(page)}
    assert len(with_commands) > 15
    left_out = with_commands - run_by_tests() - set(RUN_ELSEWHERE)
    assert not left_out, f"no test runs the commands of {', '.join(sorted(left_out))}: add a test with page.run here"
    for page, test in RUN_ELSEWHERE.items():
        assert f'"{page}"' in (REPOSITORY / "tests" / test).read_text(), f"{test} says nothing of {page}"


def test_commands_are_in_blocks_that_are_run() -> None:
    """A block of another kind, or none, must not hold what looks like a command."""
    for page in all_pages():
        for block in blocks_of(page):
            assert block.language in ("sh", "text", "yaml", "python", "cpp", "json"), (
                f"{page}: say what the block is that begins {block.content[:40]!r}"
            )
            if block.language == "text" and not block.answer:
                assert not re.search(
                    r"^(\S*/)?(iocast|mpirun|sbatch|srun|dask)\S* ", block.content, flags=re.MULTILINE
                ), f"{page}: make it a block sh, which is run"


def test_every_figure_is_made_by_a_command() -> None:
    with_figures = {page for page in all_pages() if images_of(page)} - {"README.md"}  # which shows one of theirs
    assert with_figures and with_figures <= run_by_tests(), "Page.run sets figures beside what the page's commands made"
    shown = {file.resolve() for page in with_figures for _, file in images_of(page)}
    assert shown >= {file.resolve() for _, file in images_of("README.md")}
    assert shown == {file.resolve() for file in (REPOSITORY / "docs" / "figures").iterdir()}, (
        "no figure lies about unused"
    )


@pytest.mark.long("a page of many seconds; the others run always")
def test_fat_tree_or_dragonfly(page: Page) -> None:
    page.run("examples/fat-tree-or-dragonfly/README.md")


def test_the_first_forecast(page: Page) -> None:
    page.run("first-forecast.md")


@pytest.mark.long("a page of many seconds; the others run always")
def test_reading_a_forecast(page: Page) -> None:
    page.run("reading-a-forecast.md")


@pytest.mark.long("a page of many seconds; the others run always")
def test_a_data_sheet(page: Page) -> None:
    page.run("data-sheet.md")


@pytest.mark.long("a page of many seconds; the others run always")
def test_a_checkpoint_window(page: Page) -> None:
    page.run("checkpoint-window.md")


@pytest.mark.long("a page of many seconds; the others run always")
def test_how_many_accelerators(page: Page) -> None:
    page.run("accelerators.md")


def test_key_value_caches(page: Page) -> None:
    page.run("workloads/kv-cache.md")


@pytest.mark.long("a page of many seconds; the others run always")
def test_import(page: Page) -> None:
    page.run("import.md")
    listed = page.printed[0]
    text = (REPOSITORY / "docs" / "import.md").read_text().partition("| `--format` |")[2].partition("\n\n")[0]
    assert re.findall(r"^(\S+)  ", listed, flags=re.MULTILINE) == re.findall(
        r"^\| `(\w[^`]*)` \|", text, flags=re.MULTILINE
    )


@pytest.mark.needs("laboratory")
def test_laboratory(page: Page) -> None:
    """Another name than that of a laboratory which somebody may have here."""
    plan = (REPOSITORY / "campaigns/laboratory.yaml").read_text()
    settings = "settings: {datasets: 2, objects: 2, iterations: 2}"
    short = plan.replace("settings: {datasets: 2}", settings).replace("seconds: 0.7", "").replace("repeats: 3", "")
    (page.place / "short.yaml").write_text(short)
    page.run("laboratory.md", {"demo": f"demo-{os.getpid()}", "--campaign laboratory": "--campaign short.yaml"})
    printed = "".join(page.printed)
    assert "8 client nodes, server queuefs, up" in printed and "is gone" in printed


@pytest.mark.long("a page of many seconds; the others run always")
def test_export(page: Page) -> None:
    page.run("export.md")
    assert "'operation': 'create'" in page.printed[-1]


@pytest.mark.long("a page of many seconds; the others run always")
def test_planning(page: Page) -> None:
    page.run("planning.md", {"--ppn 4 --target 1x32 --budget 2min": "--ppn 4 --target 1x32 --budget 25s"})
    assert "a calibration needs it" in page.printed[0]


@pytest.mark.long("a page of many seconds; the others run always")
def test_compare(page: Page) -> None:
    page.run("compare.md")


@pytest.mark.long("a page of many seconds; the others run always")
def test_observe(page: Page) -> None:
    (page.place / "small.yaml").write_text(
        "schema_version: 1\nworkload: md-workbench\nsettings: {datasets: 1, objects: 2000, iterations: 2000}\nrepeats:"
        " 1\nbenchmark_repeats: 1\npoints:\n  - {ranks: 1}\n"
    )
    page.run("observe.md")


@pytest.mark.long("a page of many seconds; the others run always")
def test_knee(page: Page) -> None:
    page.run("knee.md", {"--length 5s --budget 10min": "--length 200ms --budget 3s", "--budget 60s": "--budget 6s"})
    answers = ("Highest load that meets p99(create)", "greatest power")
    assert all(
        answer in printed or "The time budget is spent" in printed
        for answer, printed in zip(answers, page.printed[:2], strict=True)
    )
    assert (page.place / "knee.html").is_file()


@pytest.mark.long("a page of many seconds; the others run always")
def test_calibration(page: Page) -> None:
    page.run("calibration.md")
    assert any("Forecast for 4,000 ranks" in text for text in page.printed)


@pytest.mark.needs("slurm")
@pytest.mark.long("a page of many seconds; the others run always")
def test_campaigns(page: Page) -> None:
    with Cluster() as cluster:
        shown = "iocast measure /scratch/me --campaign tiny.yaml --nodes 2 --hosts"
        variables = [f"{name}={value}" for name, value in hosts_of(page.place, "a\nb\n").items()]
        here = shown.replace("/scratch/me", str(page.place / "scratch"))
        page.run(
            "campaigns.md", {shown: " ".join(["env", *variables, here])},
            before=lambda line: cluster.wait_for_jobs() if "--hosts" in line else None,  # both measure one directory
            **cluster.changed,
        )  # fmt: skip
        cluster.wait_for_jobs()
    assert "Table 2" in "".join(page.printed)
    assert (page.place / "by-job" / "campaign.json").read_text().count('"complete"') == 4


def test_production(page: Page) -> None:
    page.run("production.md")


@pytest.mark.long("a page of many seconds; the others run always")
def test_background(page: Page) -> None:
    page.run("background.md")


def test_patterns(page: Page) -> None:
    page.run("patterns.md", {"NAME": "probe", "OPS": str(page.place / "ops")})
    assert (page.place / "ops" / "ops.3").exists()


def test_platforms(page: Page) -> None:
    page.run("platforms.md")


@pytest.mark.long("a page of many seconds; the others run always")
def test_mechanisms(page: Page) -> None:
    page.run("mechanisms.md")


def test_application(page: Page) -> None:
    page.run("application.md")


def test_arrivals(page: Page) -> None:
    page.run("workloads/arrivals.md")


def test_hpcs(page: Page) -> None:
    page.run("workloads/hpcs.md")


def test_mix(page: Page) -> None:
    page.run("workloads/mix.md")


@pytest.mark.long("a page of many seconds; the others run always")
def test_traces(page: Page) -> None:
    page.run("workloads/traces.md")


def test_new_backend(page: Page) -> None:
    page.run("new-backend.md")
