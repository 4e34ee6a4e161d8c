# SPDX-License-Identifier: Apache-2.0
"""Forecasts of accelerators: bounds of a closed network, and what is refused."""

import json
import math
import shutil
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from programs import REPOSITORY

import iocast.training.accelerators as law
from iocast.training.accelerators import Fed, FeedingQuestion
from iocast.api.calibrate import calibrate
from iocast.api.forecast import forecast, forecast_accelerators
from iocast.cli.options import choices_of
from iocast.errors import InputError
from iocast.forecasts.training import SETTINGS
from iocast.importers.series import import_series
from iocast.study.amounts import amount
from iocast.study.evaluate import accelerators_in
from iocast.study.levels import parse_level
from iocast.training.tasks import limit_of

HEAD = "system,workload,accelerator,hosts,accelerators,MB_per_second,utilisation_percent\n"
SAMPLE = REPOSITORY / "tests" / "samples" / "training-table" / "measured.csv"


def fed(count: int, utilisation: float, hosts: int = 1) -> Fed:
    return Fed(count, hosts, utilisation, count * utilisation * 100)


def question_of(*measured: Fed, limit: float = 0.9, hosts: int | None = None) -> FeedingQuestion:
    return FeedingQuestion(measured, limit, hosts)


@pytest.mark.parametrize("utilisation", [0.3, 0.7, 0.91, 0.99])
@pytest.mark.parametrize("count", [9, 16, 64, 512])
def test_forecasts_keep_the_bounds_of_closed_networks(utilisation: float, count: int) -> None:
    """Utilisation doesn't rise with accelerators, and throughput doesn't fall: at the middle of each answer, and
    whatever the limit."""
    for limit in (0.5, 0.9):
        question = question_of(fed(8, utilisation), limit=limit)
        made, more = question.feeding(count), question.feeding(2 * count)
        assert utilisation * 8 / count <= made.utilisation.value <= utilisation
        assert made.utilisation.low < made.utilisation.value < made.utilisation.high <= 1
        assert made.rate.low < made.rate.value < made.rate.high
        assert more.utilisation.value <= made.utilisation.value and more.fed <= made.fed


LEAST = 0.9 * (1 - 1e-12)
"""The limit, as far as it is rounded."""
MEASURED = {
    "one": [fed(8, 0.95)],
    "at the limit": [fed(8, 0.901)],
    "beyond the limit": [fed(8, 0.8)],
    "far beyond it": [fed(8, 0.2)],
    "enclosed": [fed(30, 0.973), fed(60, 0.7)],
    "enclosed, full": [fed(4, 0.99), fed(16, 0.3), fed(32, 0.15)],
    "slowly": [fed(1, 0.99), fed(8, 0.95), fed(32, 0.91)],
    "many": [fed(100, 0.98), fed(200, 0.978)],
}


@pytest.mark.parametrize("hosts", [None, 4])
@pytest.mark.parametrize("measured", MEASURED.values(), ids=MEASURED)
def test_answers_of_one_question_agree(measured: list[Fed], hosts: int | None) -> None:
    """Value, interval, chance and the largest count that is fed are of one set of draws, at measured counts, between
    them and beyond: none contradicts another, throughput never falls, and utilisation never rises."""
    question = question_of(*measured, hosts=hosts)
    most = question.most_fed()
    last = max(one.count for one in measured)
    counts = sorted({1, *range(2, 2 * last, max(1, last // 20)), *(one.count for one in measured), 4 * last, 50 * last})
    made = [question.feeding(count) for count in counts]
    for before, one in pairwise(made):
        assert one.utilisation.value <= before.utilisation.value + 1e-12
        assert one.rate.value >= before.rate.value * (1 - 1e-6), (before.count, one.count)
    for one in made:
        assert one.utilisation.low <= one.utilisation.value <= one.utilisation.high
        if abs(one.fed - 0.5) > 0.001:
            assert (
                (one.utilisation.value >= LEAST) == (one.fed >= 0.5) == (most.value is None or one.count <= most.value)
            )
        if one.utilisation.low > LEAST:
            assert one.fed >= 0.949
        if one.utilisation.high < LEAST:
            assert one.fed <= 0.051
        if one.if_fed:
            assert one.if_fed.utilisation.low >= LEAST and one.if_fed.rate.value >= one.rate.value
    ends = [math.inf if end is None else end for end in (most.low, most.value, most.high)]
    assert ends == sorted(ends)


def test_between_two_measured_counts_the_answer_moves_from_one_to_the_other() -> None:
    first, last = fed(30, 0.973), fed(60, 0.7)
    made = [question_of(first, last).feeding(count) for count in (31, 33, 40, 59)]
    values = [one.utilisation.value for one in made]
    assert values == sorted(values, reverse=True) and len(set(values)) == 4
    assert all(0.7 < one.utilisation.value < 0.973 and first.rate < one.rate.value < last.rate for one in made)
    widths = [one.utilisation.high - one.utilisation.low for one in made]
    assert max(widths) == widths[2], "what lies farthest from both is known least"
    assert made[0].fed > 0.99 and made[3].fed < 0.01


def test_a_full_system_reads_no_more() -> None:
    """Between two counts of one throughput utilisation falls in proportion, and so it goes on, up to noise."""
    made = question_of(fed(16, 0.4), fed(32, 0.2)).feeding(64).utilisation
    assert made.low < 0.1 < made.high and made.value == pytest.approx(0.1, rel=0.05)
    most = question_of(fed(40, 0.99), fed(160, 0.4), fed(320, 0.2)).most_fed()
    assert most.low and most.value and most.high and 40 <= most.low < most.value < most.high < 160


def test_measured_counts_are_kept() -> None:
    measured = [fed(1, 0.99), fed(8, 0.95), fed(32, 0.91)]
    for one in measured:
        made = question_of(*measured).feeding(one.count)
        assert made.utilisation.value == pytest.approx(one.utilisation, rel=1e-4)
        assert made.rate.value == pytest.approx(one.rate, rel=1e-3) and made.fed > 0.99


def test_added_hosts_make_a_count_more_probable() -> None:
    """And not certain: the servers are the same ones."""
    one, many = (question_of(fed(8, 0.95), hosts=hosts).feeding(64).fed for hosts in (1, 8))
    assert one < many < 0.99
    assert question_of(fed(8, 0.91), hosts=64).feeding(64).fed < 0.9


def test_a_second_count_changes_what_is_expected() -> None:
    steep, flat = [fed(4, 0.99), fed(8, 0.95)], [fed(4, 0.951), fed(8, 0.95)]
    chances = [question_of(*measured).feeding(32).fed for measured in (steep, [fed(8, 0.95)], flat)]
    assert chances == sorted(set(chances))


def test_farther_than_any_pair_is_refused() -> None:
    with pytest.raises(InputError, match=r"forecasts reach 300 times\. Measure 2 accelerators or more\."):
        question_of(fed(1, 0.99)).feeding(301)


def table_of(tmp_path: Path, *rows: str) -> Path:
    path = tmp_path / "results.csv"
    path.write_text(HEAD + "".join(f"{row}\n" for row in rows))
    return path


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (["a,unet3d,h100,1,2,5800,0"], "utilisation_percent is 0; a utilisation is above 0"),
        (["a,unet3d,h100,1,2,5800,101"], "utilisation_percent is 101; .* at most 100"),
        (["a,unet3d,h100,1,2,0,95"], "MB_per_second is 0; a measurement is above zero"),
        (["a,unet3d,h100,1,2,,95"], "this line has no rate"),
        (["a,unet3d,h100,1,2,1,95", "a,unet3d,a100,1,4,2,95"], "several values of accelerator: a100, h100"),
        (["a,unet3d,h100,1,2,1,95", "a,resnet50,h100,1,4,2,95"], "several values of workload: resnet50, unet3d"),
        (["a,unet3d,h100,1,2,1,95", "b,unet3d,h100,1,4,2,95"], "--only system=a"),
    ],
)
def test_results_that_have_no_forecast_are_refused(rows: list[str], message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message):
        forecast_accelerators(table_of(tmp_path, *rows), 64, out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_table_and_a_summary_of_one_run_have_one_forecast(tmp_path: Path) -> None:
    """The summary names no workload: it is recognised by the size of a sample and the rate."""
    samples = 0.98 * 0.95 * 4 * 7 / 0.323
    metric: dict[str, Any] = {
        "train_au_percentage": [95.0],
        "train_throughput_samples_per_second": [samples],
        "train_throughput_mean_samples_per_second": samples,
        "train_io_mean_MB_per_second": samples * 146_600_628 / 2**20,
    }
    (tmp_path / "summary.json").write_text(
        json.dumps({"num_accelerators": 4, "num_hosts": 1, "metric": metric}, indent=1)
    )
    listed = table_of(tmp_path, f"a,unet3d,h100,1,4,{samples * 146_600_628 / 2**20!r},95")
    made = [
        forecast_accelerators(source, 16, out=tmp_path / source.stem).document()
        for source in (listed, tmp_path / "summary.json")
    ]
    assert [one["of"]["workload"] for one in made] == ["unet3d", "unet3d"]
    assert made[0]["forecasts"][0]["rate"]["value"] == pytest.approx(made[1]["forecasts"][0]["rate"]["value"])
    assert made[0]["forecasts"][0]["utilisation"] == pytest.approx(made[1]["forecasts"][0]["utilisation"])


def test_what_limits_is_read_from_added_hosts(tmp_path: Path) -> None:
    hosts = table_of(tmp_path, "a,unet3d,h100,1,8,20000,90", "a,unet3d,h100,2,16,40000,90")
    assert "network cards limit" in forecast_accelerators(hosts, out=tmp_path / "hosts").document()["limits"]
    servers = table_of(tmp_path, "a,unet3d,h100,1,8,20000,90", "a,unet3d,h100,2,16,20100,45")
    assert "Servers or devices limit" in forecast_accelerators(servers, out=tmp_path / "servers").document()["limits"]


@pytest.mark.parametrize(
    ("spread", "limits"),
    [("3,24,66800,98", "Hosts or their"), ("3,24,33400,49", "Servers or"), ("3,12,33400,98", "don't tell")],
)
def test_a_count_at_the_limit_of_a_host_tells_what_limits_and_is_named(
    spread: str, limits: str, tmp_path: Path
) -> None:
    """12 accelerators on a host reach what 24 do; more hosts tell more only where they carry more."""
    rows = (f"a,unet3d,h100,{row}" for row in ("1,12,33400,98", "1,24,33400,49", spread))
    made = forecast_accelerators(table_of(tmp_path, *rows), out=tmp_path / "out").document()
    assert limits in made["limits"]
    named = [note for note in made["notes"] if note.startswith("left out: 24 accelerators on 1 host (49.0 %)")]
    assert bool(named) == (spread.split(",")[1] == "24")


@pytest.mark.parametrize(
    ("rows", "named"),
    [
        (["1,8,20000,90", "1,8,20400,91"], None),
        (["1,8,20000,90", "1,8,12000,54"], "Results with 8 accelerators contradict each other: 54.0 % and 90.0 %."),
        (["1,8,20000,90", "2,16,40000,90"], None),
        (["1,8,20000,90", "2,16,36000,81"], None),
        (["1,8,20000,90", "2,16,72000,81"], "one of 16 accelerators would do 2.0 times as much as one of 8"),
    ],
)
def test_results_that_cannot_all_be_right_are_named(rows: list[str], named: str | None, tmp_path: Path) -> None:
    """Waiting lowers utilisation and rate alike; repeats of one count are alike."""
    table = table_of(tmp_path, *(f"a,unet3d,h100,{row}" for row in rows))
    notes = forecast_accelerators(table, 64, out=tmp_path / "out").document()["notes"]
    assert [named in note for note in notes if "contradict" in note] == ([True] if named else [])


def test_a_changed_question_changes_the_answer(tmp_path: Path) -> None:
    def answer(name: str, **question: Any) -> dict[str, Any]:
        return forecast_accelerators(SAMPLE, 64, out=tmp_path / name, **question).document()

    plain = answer("plain")
    assert answer("again") == plain
    for name, question in {"limit": {"limit": 0.8}, "hosts": {"hosts": 8}, "level": {"level": 0.5}}.items():
        assert answer(name, **question)["forecasts"] != plain["forecasts"], name


def test_the_blur_widens_an_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    narrow = question_of(fed(8, 0.95)).feeding(16).utilisation
    monkeypatch.setattr(law, "BLUR", 0.05)
    wide = question_of(fed(8, 0.95)).feeding(16).utilisation
    assert wide.low < narrow.low and wide.high > narrow.high


@pytest.mark.parametrize(
    ("text", "quantity", "upper"),
    [
        ("au >= 90 %", "au", False),
        ("samples >= 2k/s", "samples", False),
        ("accelerator_bandwidth >= 1 GB/s", "accelerator_bandwidth", False),
        ("stall_share <= 5 %", "stall_share", True),
    ],
)
def test_levels_on_accelerators(text: str, quantity: str, upper: bool) -> None:
    level = parse_level(text)
    assert (level.quantity, level.upper) == (quantity, upper)
    function, _, limit = text.partition(" ")
    with pytest.raises(InputError, match="has no parentheses"):
        parse_level(f"{function}(read) {limit}")
    assert amount(quantity, level.limit) in ("90 %", "2.00 k/s", "1 GB/s", "5 %")


@pytest.mark.parametrize("text", ["au > 10", "au >= 101 %", "stall_share < 5", "utilisation(mds) < 90"])
def test_a_share_above_one_is_refused_and_its_percentage_named(text: str) -> None:
    function, comparison, value, *unit = text.split()
    with pytest.raises(InputError, match=r"a share of time is at most 100 %") as refused:
        parse_level(text)
    assert str(refused.value).endswith(f"such as {value} %") == (not unit)
    for right in ("1", "0.5", "100 %", "10 %"):
        parse_level(f"{function} {comparison} {right}")


def test_quantities_of_accelerators_are_those_of_the_run() -> None:
    """After the first step where that was recorded, as the benchmark defines it; bytes a second are of one."""
    one = {"count": 4, "utilisation": 0.8, "utilisation_after_first_step": 0.9, "bytes_per_second": 4e9}
    other = {"count": 4, "utilisation": 0.7, "bytes_per_second": 2e9}
    found = accelerators_in([{"accelerators": one}, {"accelerators": other}])
    assert found == pytest.approx({"au": 0.8, "accelerator_bandwidth": 0.75e9})
    assert accelerators_in([{"accelerators": one}, {}]) == {}


def test_what_differs_in_words_or_units_is_refused(tmp_path: Path) -> None:
    head = HEAD.strip() + ",storage\n"
    table = tmp_path / "several.csv"
    table.write_text(head + "a,unet3d,h100,1,8,22000,95,nvme\na,unet3d,h100,1,8,22000,41,disk\n")
    with pytest.raises(InputError, match="several values of storage: disk, nvme.*--only storage=disk"):
        forecast_accelerators(table, 64, out=tmp_path / "out")
    head = "system,workload,accelerator,hosts,accelerators,MB_per_second,samples_per_second,utilisation_percent\n"
    table.write_text(head + "a,mine,h100,1,8,20000,,95\na,mine,h100,1,16,,300,93\n")
    with pytest.raises(InputError, match="samples a second, and others bytes"):
        forecast_accelerators(table, 64, out=tmp_path / "out")


def test_fewer_hosts_or_more_than_hosts_that_are_not_known_are_refused(tmp_path: Path) -> None:
    known = table_of(tmp_path, "a,unet3d,h100,8,64,178000,94")
    with pytest.raises(InputError, match="4 hosts are requested, and the largest results are of 8"):
        forecast_accelerators(known, 128, hosts=4, out=tmp_path / "out")
    unknown = table_of(tmp_path, "a,unet3d,h100,,64,178000,94")
    with pytest.raises(InputError, match="--nodes-measured"):
        forecast_accelerators(unknown, 128, hosts=4, out=tmp_path / "out")


def test_the_limit_of_a_workload_is_the_benchmarks_however_it_is_spelt() -> None:
    assert limit_of("CosmoFlow") == limit_of("cosmoflow") == 0.7 and limit_of("ResNet-50") == limit_of("mine") == 0.9
    text = (REPOSITORY / "workload" / "catalogue" / "retinanet.yaml").read_text()
    assert str(limit_of("RetinaNet")) in text


def test_a_summary_with_checkpoints_too_is_forecast_by_its_training_and_impossible_shares_are_refused(
    tmp_path: Path,
) -> None:
    folder = REPOSITORY / "tests" / "samples" / "dlio"
    whole, saved = (json.loads((folder / name).read_text()) for name in ("summary.json", "checkpoint.json"))
    (tmp_path / "both.json").write_text(json.dumps(whole | {"metric": saved["metric"] | whole["metric"]}, indent=1))
    found = [
        forecast_accelerators(file, 16, out=tmp_path / file.stem).document()["forecasts"]
        for file in (tmp_path / "both.json", folder / "summary.json")
    ]
    assert found[0] == found[1]
    whole["metric"]["train_au_percentage"][0] = 191.5
    (tmp_path / "wrong.json").write_text(json.dumps(whole, indent=1))
    with pytest.raises(InputError, match="utilisation of an epoch is 191.5 %"):
        forecast_accelerators(tmp_path / "wrong.json", 16, out=tmp_path / "out")


def test_a_table_that_lacks_a_column_is_named_with_the_nearest(tmp_path: Path) -> None:
    header = "workload,accelerator,acelerators,utilisation_percent,MB_per_second"
    file = tmp_path / "table.csv"
    file.write_text(f"{header}\nunet3d,h100,2,99.0,5940\n")
    sentence = r"table.csv:1: this is nearly .* no column 'accelerators' \('acelerators' is near it\)\.$"
    with pytest.raises(InputError, match=sentence):
        forecast_accelerators([file], 64, out=tmp_path / "out")
    file.write_text(header.replace("acelerators", "accelerators").replace(",MB_per_second", "") + "\n")
    with pytest.raises(InputError, match="no column 'samples_per_second' or 'bytes_per_second' or 'MB_per_second'"):
        forecast_accelerators([file], 64, out=tmp_path / "out")


def test_what_differs_is_chosen_at_once_and_what_is_left_out_is_named(tmp_path: Path) -> None:
    (tmp_path / "results").mkdir()
    rows = ["a,unet3d,h100,1,2,5940,99.0", "a,unet3d,h100,1,8,23300,97.4", "b,resnet50,a100,1,8,900,97.4"]
    header = "system,workload,accelerator,hosts,accelerators,MB_per_second,utilisation_percent"
    (tmp_path / "results" / "good.csv").write_text("\n".join([header, *rows]) + "\n")
    (tmp_path / "results" / "bad.csv").write_text(f"{header.replace('accelerators', 'acelerators')}\n{rows[0]}\n")
    shutil.copy(REPOSITORY / "tests" / "samples" / "fs_mark" / "verbose.txt", tmp_path / "results")
    with pytest.raises(InputError, match="system: a, b and workload: resnet50, unet3d .* --only system=") as refused:
        forecast_accelerators([tmp_path / "results"], 64, out=tmp_path / "out")
    assert "accelerator=" in str(refused.value)
    only = choices_of(["system=a,workload=unet3d"], "--only")
    assert only == {"system": ["a"], "workload": ["unet3d"]} and choices_of(["x=1,2"], "--only") == {"x": ["1,2"]}
    notes = forecast_accelerators([tmp_path / "results"], 64, out=tmp_path / "out", only=only).document()["notes"]
    assert any("bad.csv:1" in note and "acelerators" in note for note in notes)
    assert any("is a result of fs_mark, without accelerators" in note for note in notes)


DLIO = REPOSITORY / "tests" / "samples" / "dlio"


def test_trainings_of_other_samples_are_not_averaged(tmp_path: Path) -> None:
    """The two directories name no workload; their samples have 147 MB and 1 MB."""
    with pytest.raises(InputError, match="sample_size: 1.*, 1.* --only .*sample_size=") as refused:
        forecast_accelerators([DLIO / "training-2023", DLIO / "training-2.0"], 8, out=tmp_path / "out")
    chosen = choices_of([str(refused.value).rpartition("--only ")[2].strip("'.")], "--only")
    forecast_accelerators([DLIO / "training-2023", DLIO / "training-2.0"], 8, out=tmp_path / "one", only=chosen)


@pytest.mark.parametrize(
    ("name", "values", "same"),
    [
        *((name, (4, 5), False) for name in SETTINGS),
        ("shuffle", ("files", "samples"), False),
        ("storage", ("nvme", "disk"), False),
        ("sample_size", (2**20, 2**21), False),
        ("compute_time", (0.25, 0.5), False),
        ("compute_time", (0.25, 0.251), True),
        ("num_files_train", (64, 128), True),
        ("steps", (4, 8), True),
    ],
)
def test_trainings_with_other_settings_are_not_averaged(
    name: str, values: tuple[Any, Any], same: bool, tmp_path: Path
) -> None:
    """Whatever the importer wrote: a setting that changes what a step reads or computes makes another training."""
    [run] = import_series([DLIO / "training-2.0"], tmp_path / "runs")
    other = Path(shutil.copytree(run, tmp_path / "other"))
    for path, value in zip((run, other), values, strict=True):
        document = json.loads((path / "run.json").read_text())
        parameters = document["workload"]["parameters"]
        assert {"sample_size", "batch", "compute_time"} <= parameters.keys(), "the directory's own"
        parameters[name] = value
        (path / "run.json").write_text(json.dumps(document))
    if same:
        forecast_accelerators([run, other], 8, out=tmp_path / "out")
        return
    with pytest.raises(InputError, match=f"several values of {name}: "):
        forecast_accelerators([run, other], 8, out=tmp_path / "out")


def test_trainings_are_not_forecast_by_nodes_alone(tmp_path: Path) -> None:
    """Their accelerators' computation bounds the rate, whatever the nodes."""
    for source in (SAMPLE, DLIO / "training-2.0"):
        with pytest.raises(InputError, match="Forecast accelerators: iocast forecast --accelerators"):
            forecast([source], 6, out=tmp_path / "out")
        runs = import_series([source], tmp_path / source.stem)
        with pytest.raises(InputError, match="Forecast accelerators: iocast forecast --accelerators"):
            calibrate(runs, "queue", phases=["train"])
    assert not (tmp_path / "out").exists()


def test_checkpoints_are_refused_with_what_can_be_done(tmp_path: Path) -> None:
    checkpoints = DLIO / "checkpoint-2025"
    with pytest.raises(InputError, match="Checkpoints of DLIO .* iocast simulate PLATFORM llama3-8b"):
        forecast([checkpoints], 6, out=tmp_path / "out")
    with pytest.raises(InputError, match="Those of checkpoints have none"):
        forecast_accelerators(checkpoints, 64, out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("utilisation", [0.75, 0.92, 0.98])
def test_what_is_required_changes_no_utilisation(utilisation: float) -> None:
    measured = [Fed(8, 1, utilisation, 800 * utilisation)]
    made = [FeedingQuestion(measured, limit, built_for=0.9).feeding(64) for limit in (0.3, 0.5, 0.9, 0.95)]
    assert len({(one.utilisation, one.rate) for one in made}) == 1
    assert all(more.fed <= less.fed for less, more in pairwise(made))


@pytest.mark.parametrize(("few", "many"), [(0.98, 0.85), (0.95, 0.95), (0.99, 0.4)])
def test_below_the_smallest_count_the_measured_waiting_is_possible(few: float, many: float) -> None:
    """Whether it is a fixed latency or contention, nobody measured there."""
    measured = [Fed(8, 1, few, 800 * few), Fed(64, 1, many, 6400 * many)]
    made = FeedingQuestion(measured, 0.9).feeding(4).utilisation
    assert made.low <= few * 1.005 and few <= made.value * 1.03
