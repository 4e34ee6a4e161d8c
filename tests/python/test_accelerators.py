# SPDX-License-Identifier: Apache-2.0
"""Forecasts of accelerators: bounds of a closed network, and what is refused."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from programs import REPOSITORY

import iocast.accelerators as law
from iocast.accelerators import Fed, bounds, feeding, most_fed, probability_fed
from iocast.api.forecast import forecast_accelerators
from iocast.cli.options import choices_of
from iocast.errors import InputError
from iocast.study.amounts import amount
from iocast.study.evaluate import accelerators_in
from iocast.study.levels import parse_level
from iocast.training_tasks import limit_of

HEAD = "system,workload,accelerator,hosts,accelerators,MB_per_second,utilisation_percent\n"
SAMPLE = REPOSITORY / "tests" / "samples" / "training-table" / "measured.csv"


def fed(count: int, utilisation: float, hosts: int = 1) -> Fed:
    return Fed(count, hosts, utilisation, count * utilisation * 100)


@pytest.mark.parametrize("utilisation", [0.3, 0.7, 0.91, 0.99])
@pytest.mark.parametrize("count", [9, 16, 64, 512])
def test_forecasts_keep_the_bounds_of_closed_networks(utilisation: float, count: int) -> None:
    """Utilisation doesn't rise with accelerators, and throughput doesn't fall: at the middle of each answer, and
    whatever the limit."""
    measured = [fed(8, utilisation)]
    for limit in (0.5, 0.9):
        made = feeding(measured, count, limit=limit)
        assert utilisation * 8 / count <= made.utilisation.value <= utilisation
        assert made.utilisation.low < made.utilisation.value < made.utilisation.high <= 1
        assert made.rate.low < made.rate.value < made.rate.high
        more = feeding(measured, 2 * count, limit=limit)
        assert more.utilisation.value <= made.utilisation.value and more.fed <= made.fed


def test_a_full_system_reads_no_more() -> None:
    """Between two counts of one throughput utilisation falls in proportion, and so it goes on."""
    measured = [fed(16, 0.4), fed(32, 0.2)]
    assert bounds(measured, 64, 0.9) == (pytest.approx(10), pytest.approx(10))
    assert feeding(measured, 64, limit=0.9).utilisation.value == pytest.approx(0.1)
    most = most_fed([fed(4, 0.99), *measured], 0.9)
    assert most.value is not None and 4 < most.value < 16 and (most.low, most.high) == (4, 16)


def test_measured_counts_are_kept() -> None:
    measured = [fed(1, 0.99), fed(8, 0.95), fed(32, 0.91)]
    for one in measured:
        assert feeding(measured, one.count, limit=0.9).utilisation.value == pytest.approx(one.utilisation)


def test_added_hosts_make_a_count_more_probable() -> None:
    """And not certain: the servers are the same ones."""
    assert probability_fed([fed(8, 0.95)], 64, 0.9, 1) < probability_fed([fed(8, 0.95)], 64, 0.9, 8) < 0.99
    assert probability_fed([fed(8, 0.91)], 64, 0.9, 64) < 0.9


def test_a_second_count_changes_what_is_expected() -> None:
    steep, flat = [fed(4, 0.99), fed(8, 0.95)], [fed(4, 0.951), fed(8, 0.95)]
    assert probability_fed(steep, 32, 0.9) < probability_fed([fed(8, 0.95)], 32, 0.9) < probability_fed(flat, 32, 0.9)


def test_farther_than_any_pair_is_refused() -> None:
    with pytest.raises(InputError, match=r"forecasts reach 300 times\. Measure 2 accelerators or more\."):
        feeding([fed(1, 0.99)], 301, limit=0.9)


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


def test_a_changed_question_changes_the_answer(tmp_path: Path) -> None:
    def answer(name: str, **question: Any) -> dict[str, Any]:
        return forecast_accelerators(SAMPLE, 64, out=tmp_path / name, **question).document()

    plain = answer("plain")
    assert answer("again") == plain
    for name, question in {"limit": {"limit": 0.8}, "hosts": {"hosts": 8}, "level": {"level": 0.5}}.items():
        assert answer(name, **question)["forecasts"] != plain["forecasts"], name


def test_the_blur_widens_an_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    narrow = feeding([fed(8, 0.95)], 16, limit=0.9).utilisation
    monkeypatch.setattr(law, "BLUR", 0.05)
    wide = feeding([fed(8, 0.95)], 16, limit=0.9).utilisation
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
