# SPDX-License-Identifier: Apache-2.0
"""Files that somebody damaged or made to do harm: refused with a sentence, in bounded time and memory; nothing is
written elsewhere; no secret is kept."""

import base64
import bz2
import contextlib
import gzip
import json
import lzma
import os
import random
import re
import resource
import shutil
import struct
import subprocess
import sys
import time
import unicodedata
import tracemalloc
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from programs import REPOSITORY, find_program

sys.path.append(str(REPOSITORY / "validation" / "fuzz"))
from readers import BOMB, FITTED, KINDS, OBSERVATION, PLAN, Fuzz, make_corpus  # noqa: E402

from iocast import cli  # noqa: E402
from iocast.ground import strict  # noqa: E402
from iocast.errors import InputError, printable  # noqa: E402
from iocast.export.table import rows_of  # noqa: E402
from iocast.ground.files import duration, read_json  # noqa: E402
from iocast.platforms.fitted import Fitted  # noqa: E402
from iocast.importers import series  # noqa: E402
from iocast.importers.series import import_series  # noqa: E402
from iocast.importers.source import unpacked  # noqa: E402
from iocast.lab.servers import all_servers  # noqa: E402
from iocast.ground.names import as_file_name, is_file_name  # noqa: E402
from iocast.runs.question import Setting  # noqa: E402
from iocast.runs.run_directory import Run  # noqa: E402
from iocast.ground.strict import is_whole  # noqa: E402
from iocast.study.documents import number  # noqa: E402
from iocast.study.levels import parse_level  # noqa: E402
from iocast.watching.utilisation import Observation  # noqa: E402

Iocast = Callable[..., CompletedProcess[str]]


@pytest.fixture(scope="module")
def fuzz(tmp_path_factory: pytest.TempPathFactory) -> Fuzz:
    return Fuzz(tmp_path_factory.mktemp("fuzz") / "corpus")


@settings(max_examples=150, deadline=None, database=None, suppress_health_check=list(HealthCheck))
@given(kind=st.sampled_from(sorted(KINDS)), chance=st.randoms(use_true_random=False))
def test_damaged_files_are_refused_with_a_sentence(fuzz: Fuzz, kind: str, chance: random.Random) -> None:
    """validation/fuzz/readers.py tries a hundred thousand."""
    assert not (printed := fuzz.round(kind, chance)), printed


@pytest.mark.parametrize(("was", "is_now"), [("low: 1.2", "low: x"), ("low: 1.2", "low: []")])
def test_another_type_in_a_fitted_platform_is_refused(was: str, is_now: str, tmp_path: Path) -> None:
    assert was in FITTED
    (tmp_path / "fitted.yaml").write_text(FITTED.replace(was, is_now))
    with pytest.raises(InputError, match=r"fitted.yaml.*(damaged|number)"):
        Fitted.open(str(tmp_path / "fitted.yaml")).best()


def test_a_text_for_any_number_that_a_forecast_counts_with_is_refused_where_it_is_read(tmp_path: Path) -> None:
    """As the file is read, and not where a forecast comes to it."""
    platform = yaml.safe_load(FITTED)
    fitted = platform["fitted"]
    fitted |= {name: {"rate": 0.1} for name in ("noise", "discrepancy", "discrepancy_degrees")}
    fitted |= {"discrepancy_growth": {"step": 2.0}, "blend": {"rate": {"weights": {"a": 1.0}, "errors": {"a": 0.1}}}}
    fitted["campaign"] |= {
        "ranks": [1],
        "waiting_factors": [0.0],
        "points": [{"name": "N=1", "ranks": 1, "nodes": None}],
    }
    (file := tmp_path / "fitted.yaml").write_text(yaml.safe_dump(platform))
    Fitted.open(str(file)).best()
    counted = [
        *((fitted[name], "rate") for name in ("noise", "discrepancy", "discrepancy_degrees")),
        (fitted["discrepancy_growth"], "step"),
        (fitted["blend"]["rate"]["errors"], "a"),
        *((fitted["campaign"][name], 0) for name in ("ranks", "waiting_factors")),
        *((fitted["campaign"]["points"][0], name) for name in ("ranks", "nodes")),
    ]
    for holder, key in counted:
        for spoilt in ("x", "1.5", [], True):
            right, holder[key] = holder[key], spoilt
            file.write_text(yaml.safe_dump(platform))
            with pytest.raises(InputError, match=rf"fitted\.yaml.*{'' if isinstance(key, int) else key}"):
                Fitted.open(str(file)).best()
            holder[key] = right


def test_anything_in_the_place_of_a_run_s_number_is_read_or_refused(fuzz: Fuzz) -> None:
    """Each part of a phase once, whichever operation or station it is of: nothing comes to whoever uses it."""
    run = json.loads(fuzz.whole["run"])
    phase = run["phases"][1]
    run["phases"] = [phase]
    places: dict[tuple[int, ...], tuple[Any, Any]] = {}

    def gather(holder: Any, shape: tuple[Any, ...]) -> None:
        for key in holder if isinstance(holder, dict) else range(min(len(holder), 1)):
            named = shape and shape[-1] in ("latency", "by_operation", "stations", "operations", "timeline")
            here = (*shape, "" if named and key != "bin_seconds" else key)
            places.setdefault(here, (holder, key))
            if isinstance(holder[key], dict | list):
                gather(holder[key], here)

    gather(run["phases"], ("phases",))
    assert len(places) > 60
    parameters = run["workload"]["parameters"]
    places |= {(key,): (run, key) for key in ("source", "seed", "label", "status", "workload", "placement")}
    places |= {("parameters", key): (parameters, key) for key in ("waiting_factor", "think_time")}
    places |= {("placement", key): (run["placement"], key) for key in run["placement"]}
    absent = object()
    (directory := fuzz.directory / "one").mkdir()
    for shape, (holder, key) in places.items():
        for spoilt in ("x", None, [], {}, True, -1, 1e301, absent):
            if spoilt is absent and not isinstance(holder, dict):
                continue
            kept = list(holder.items()) if isinstance(holder, dict) else []
            right, holder[key] = holder[key], None if spoilt is absent else spoilt
            if spoilt is absent:
                del holder[key]
            (directory / "run.json").write_text(json.dumps(run))
            if isinstance(holder, dict):
                holder.clear()
                holder.update(kept)
            else:
                holder[key] = right
            try:
                list(rows_of(directory))
                read = Run(directory)
                _ = read.content, read.placement, read.waiting_factor, read.think_time
                assert spoilt != "x" or not str(shape[-1]).endswith("_seconds"), shape
            except InputError as error:
                assert str(directory) in str(error)
            except Exception as error:
                pytest.fail(f"{spoilt} for {shape}: {error!r}")


def test_an_observation_without_a_host_is_none(tmp_path: Path) -> None:
    (tmp_path / "o.jsonl").write_text(OBSERVATION.replace('"host": "h", ', ""))
    with pytest.raises(InputError, match="this is no observation"):
        Observation(tmp_path / "o.jsonl")


@settings(max_examples=200, deadline=None, database=None)
@given(st.text())
def test_names_stay_in_their_directory(name: str) -> None:
    plain = as_file_name(name)
    assert is_file_name(plain) and (not is_file_name(name) or plain == name)
    assert not is_file_name(name) or (
        Path("/a", name).parent == Path("/a") and not name.startswith(".") and name.isprintable() and name.isascii()
    )
    assert not [c for c in printable(name) if c != "\n" and unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp")]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    make_corpus(directory := tmp_path_factory.mktemp("whole") / "corpus")
    return directory


@pytest.fixture
def here(corpus: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(corpus, tmp_path / "here"))


def bounded(*arguments: str | Path) -> CompletedProcess[str]:
    """iocast with a gigabyte and a half of memory and ten seconds of CPU time."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (3 * 2**29, 3 * 2**29))
        resource.setrlimit(resource.RLIMIT_CPU, (10, 10))

    return subprocess.run(
        [sys.executable, "-m", "iocast", *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": str(REPOSITORY), "OPENBLAS_NUM_THREADS": "1"}, capture_output=True, text=True,
        check=False,
        timeout=120, preexec_fn=limit,
    )  # fmt: skip


def refused(done: CompletedProcess[str], *words: str) -> None:
    assert done.returncode == 2 and "Traceback" not in done.stderr and done.stderr.startswith("iocast: "), (
        done.returncode,
        done.stderr[-2000:],
    )
    for word in words:
        assert word in done.stderr, done.stderr


def test_small_files_cost_little(here: Path) -> None:
    """Aliases that repeat themselves a billion times, in each language and verb that reads YAML."""
    (here / "plan.yaml").write_text(
        PLAN.replace("{datasets: 2, objects: 100, iterations: 50}", "*i").replace("description", BOMB + "description")
    )
    refused(
        bounded("measure", here, "--campaign", here / "plan.yaml", "--out", here / "out"),
        "plan.yaml:1: aliases (*name) repeat more than 100000 values",
    )
    (here / "fitted.yaml").write_text(BOMB + "fitted: {draws: *i}\n")
    refused(bounded("report", here / "fitted.yaml", "--out", here / "r.html"), "fitted.yaml:1: aliases")
    os.mkfifo(here / "pipe.yaml")
    refused(bounded("measure", here, "--campaign", here / "pipe.yaml", "--out", here / "out"), "it is a pipe")
    (here / "forecast.json").write_text('{"schema_version": 1, "kind": "forecast", "level": ' + "9" * 5000 + "}")
    refused(
        bounded("report", here / "forecast.json", "--out", here / "r.html"),
        "forecast.json:1: the number 999",
        "300 digits",
    )
    assert not (here / "out").exists() and not (here / "r.html").exists()


def packed(content: bytes) -> str:
    body = zlib.compress(content, 9)
    return base64.b64encode(struct.pack(">ii", 0x1C849314, len(body)) + body).decode()


@pytest.mark.parametrize("spoil", ["", " ms x", "s\0", "(x)"])
def test_a_long_number_takes_no_longer_than_its_length(spoil: str) -> None:
    """A pattern that could split digits in several ways would try them all: a level of a study took five minutes."""
    digits = "9" * 6000
    texts = [digits + spoil, f"{digits}.{digits}{spoil}", " " * 6000 + digits + spoil, f"1e{digits}{spoil}"]
    begun = time.process_time()
    for text in texts:
        assert Setting.read(text) == Setting.read(text)
        number(text)
        for refused_text in (lambda: duration(text, "--budget", 1, 9), lambda: parse_level(f"p99(stat) < {text}")):
            with pytest.raises(InputError) as refusal:
                refused_text()
            assert len(str(refusal.value)) < 200 + len(text)
    assert time.process_time() - begun < 3
    with pytest.raises(InputError, match="is no level, with 6018 characters"):
        parse_level(f"p99(stat) < {digits} 50 ms")
    with pytest.raises(InputError, match="is no level; write"):
        parse_level("p99( ) < 50 ms")
    for text in ("p99( stat )<50ms", " p99(stat) < 50  ms ", "p99(stat) <= .05 s", "p99(stat) < 5.e-2s"):
        assert parse_level(text).limit == pytest.approx(0.05) and parse_level(text).quantity == "stat.q99"


COMPRESSORS: dict[str, Callable[[bytes], bytes]] = {
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "zst": lambda data: subprocess.run(["zstd", "-q"], input=data, capture_output=True, check=True).stdout,
}


@pytest.mark.parametrize("ending", COMPRESSORS)
def test_what_is_decompressed_has_bounds(ending: str, tmp_path: Path) -> None:
    """A bomb, and content that is damaged at any place: it is read, or refused in a sentence."""
    if ending == "zst" and shutil.which("zstd") is None:
        with pytest.raises(InputError, match="zstd"):
            (file := tmp_path / "a").write_bytes(b"\x28\xb5\x2f\xfd")
            unpacked(file)
        return
    file, text, chance = tmp_path / f"-a.{ending}", b"a line\n" * 2000, random.Random(0)
    file.write_bytes(whole := COMPRESSORS[ending](text))
    assert unpacked(file) == text and unpacked(file, len(text)) == text
    with pytest.raises(InputError, match="more than 13999 bytes when it is decompressed"):
        unpacked(file, len(text) - 1)
    with pytest.raises(InputError, match="are not read"):
        unpacked(file, len(whole) - 1)
    for _ in range(10 if ending == "zst" else 200):
        spoilt = bytearray(whole[: chance.randrange(8, len(whole) + 1)])
        spoilt[chance.randrange(6, len(spoilt))] ^= 1 << chance.randrange(8)
        file.write_bytes(spoilt)
        with contextlib.suppress(InputError):
            unpacked(file, 10**6)
    os.mkfifo(pipe := tmp_path / "pipe")
    with pytest.raises(InputError, match="pipe"):
        unpacked(pipe)


def zipped(file: Path, *names: str) -> bytearray:
    with zipfile.ZipFile(file, "w") as box:
        for name in names:
            box.writestr(name, "hello")
    return bytearray(file.read_bytes())


def test_archives_that_can_not_be_unpacked_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Damaged, encrypted, of an unknown method, with names that no file can have, with too much and too many in them;
    and any byte another."""
    file = tmp_path / "a.zip"
    monkeypatch.setattr(series, "MAX_MEMBERS", 5)
    whole = zipped(file, "b")
    directory = whole.find(b"PK\1\2")
    # by the places where the local header and the directory have it
    for at, value in (((6, directory + 8), 1), ((8, directory + 10), 97), ((14, 14), 1), ((whole.find(b"hello"),), 0)):
        spoilt = whole.copy()
        for place in at:
            spoilt[place] ^= value or 1
        file.write_bytes(spoilt)
        with pytest.raises(InputError, match=re.escape(str(file))):
            import_series([file], tmp_path / "out")
    for names in (["x" * 300], ["d/" * 500 + "a"], [str(one) for one in range(6)]):
        zipped(file, *names)
        with pytest.raises(InputError, match="name (what|the one)"):
            import_series([file], tmp_path / "out")
    zipped(file, *map(str, range(5)))
    with pytest.raises(InputError, match="no result of a known tool"):
        import_series([file], tmp_path / "out")
    monkeypatch.setattr(strict, "MAX_BYTES", 24)
    with pytest.raises(InputError, match="holds more than 24 bytes"):
        import_series([file], tmp_path / "out")
    monkeypatch.undo()
    for place in range(len(whole)):
        file.write_bytes(whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :])
        with pytest.raises(InputError):
            import_series([file], tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_directory_of_results_is_read_to_its_end_and_not_beyond(tmp_path: Path) -> None:
    """With links that lead round and out, pipes, devices, and directories too deep."""
    (results := tmp_path / "results").mkdir()
    shutil.copy(next((REPOSITORY / "tests/samples/ior").glob("*.txt")), results / "ior.txt")
    (results / "self").symlink_to(".")
    (results / "up").symlink_to("..")
    (results / "loop").symlink_to("loop")
    (results / "root").symlink_to("/")
    (results / "zero").symlink_to("/dev/zero")
    os.mkfifo(results / "pipe")
    read = import_series([results], tmp_path / "out")
    assert read and all(read_json(one / "run.json", "run")["tool"]["name"].lower() == "ior" for one in read)
    (tmp_path / "named").symlink_to(results)
    assert len(import_series([tmp_path / "named"], tmp_path / "again")) == len(read)
    (deep := results / "/".join(["d"] * 150)).mkdir(parents=True)
    (deep / "a").write_text("a")
    with pytest.raises(InputError, match="directories deep"):
        import_series([results], tmp_path / "third")


PROGRAMS = {
    "iocast-sim": (["--platform", "FILE"], ["--platform", "local", "--workload", "FILE"],
                   ["--platform", "local", "--workload", "replay", "--set", "file=FILE"]),
    "iocast-bench": (["--backend", "dummy", "--workload", "FILE"],),
}  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS)
def test_programs_wait_for_no_pipe_and_read_no_endless_file(program: str, tmp_path: Path) -> None:
    """At once, and with half a gigabyte of memory."""
    os.mkfifo(tmp_path / "pipe.yaml")
    (tmp_path / "zero.yaml").symlink_to("/dev/zero")
    with (tmp_path / "large.yaml").open("wb") as large:
        large.truncate(3 << 30)
    (tmp_path / "directory.yaml").mkdir()
    found = find_program(program)
    assert found is not None
    for name in ("pipe", "zero", "large", "directory"):
        file = tmp_path / f"{name}.yaml"
        for arguments in PROGRAMS[program]:
            done = subprocess.run(
                [found, *(one.replace("FILE", str(file)) for one in arguments)],
                capture_output=True, text=True, timeout=120, check=False,
            )  # fmt: skip
            assert done.returncode == 2 and str(file) in done.stderr, (arguments, done.stderr)


def test_a_histogram_has_bounds(here: Path) -> None:
    """Both its unpacked size and the size in its header are bounded."""
    log = here / "run" / "latency.hlog"
    whole = log.read_text()
    header = struct.pack(">4i2qd", 0x1C849313, 0, 0, 3, 1, 2**40, 1.0)
    assert header and Run(here / "run").tags()
    for content in (
        b"\0" * 2**28,
        struct.pack(">4i2qd", 0x1C849313, 0, 0, 9, 1, 2**62, 1.0),
        struct.pack(">4i2qd", 0x1C849313, 2**31 - 1, 0, 3, 1, 2**40, 1.0),
        b"short",
    ):
        log.write_text(whole + f"Tag=benchmark.create,0.000,1.000,1.000,{packed(content)}\n")
        with pytest.raises(InputError, match=rf"latency.hlog:{whole.count(chr(10)) + 1}: this line is no interval"):
            Run(here / "run").tags()
    log.write_text(whole + f"Tag=benchmark.create,0.000,1.000,1.000,{packed(b'0' * 2**29)}\n")
    refused(bounded("calibrate", here / "run", "--look"), "latency.hlog:", "no interval")
    log.write_bytes(whole.encode() + b"\xff\n")
    refused(
        bounded("calibrate", here / "run", "--look"),
        f"latency.hlog:{whole.count(chr(10)) + 1}: this is no text in UTF-8",
    )


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda run: run["phases"][1].update(seconds=float("nan")), "the number NaN can't be"),
        (lambda run: run["phases"][1].update(operations=-5), "phases[1].operations: -5 is not a number from 0 on"),
        (
            lambda run: run["phases"][1]["latency"]["create"].update(mean=-1),
            "phases[1].latency.create.mean: -1 is not a number from 0 on",
        ),
        (lambda run: run["phases"][1].update(name="../../x"), "phases[1].name: '../../x' is not a name"),
        (lambda run: run["phases"][1].update(rate="fast"), ""),
        (lambda run: run.update(phases={}), "phases: {} is not a list"),
        (lambda run: run["placement"].update(ranks=0), "placement.ranks: 0 is not a number from 1 on"),
        (lambda run: run.update(schema_version="1"), "schema version '1'"),
    ],
)
def test_a_measurement_that_none_can_be_is_refused_by_every_verb(
    here: Path, iocast: Iocast, change: Callable[[Any], None], words: str
) -> None:
    content = json.loads((here / "run" / "run.json").read_text())
    change(content)
    (here / "run" / "run.json").write_text(json.dumps(content))
    verbs = [
        ("calibrate", here / "run", "--look"),
        ("export", here / "run", "--format", "csv", "--out", here / "x.csv"),
        ("report", here / "run", "--out", here / "r.html"),
    ]
    for verb in verbs if words.startswith("phases[1].op") else verbs[:1]:
        refused(iocast(*verb), "run.json", words)
    assert not (here / "x.csv").exists() and not (here / "r.html").exists()


def test_no_name_leads_out_of_a_directory(here: Path, iocast: Iocast) -> None:
    (here / "deep" / "er").mkdir(parents=True)
    table = "workload,phase,nodes,ppn,rate\nm,a/../../../ESCAPED,1,2,1000\nm,b,1,2,1000\n"
    (here / "table.csv").write_text(table)
    refused(
        iocast("import", here / "table.csv", "--out", here / "deep" / "er" / "o"), "table.csv:2", "a/../../../ESCAPED"
    )
    (here / "plan.yaml").write_text(PLAN.replace("name: make", 'name: "a/../../../../OUTSIDE"'))
    refused(
        iocast("measure", here, "--campaign", here / "plan.yaml", "--out", here / "out"),
        "plan.yaml:",
        "a/../../../../OUTSIDE",
    )
    campaign = json.loads((here / "campaign" / "campaign.json").read_text())
    campaign["points"][0]["name"] = "../../run"
    (here / "campaign" / "campaign.json").write_text(json.dumps(campaign))
    for verb in ("calibrate", "report"):
        refused(
            iocast(verb, here / "campaign", *(["--look"] if verb == "calibrate" else ["--out", here / "r.html"])),
            "campaign.json', points[0]",
            "'../../run'",
        )
    assert (
        not list(here.rglob("*ESCAPED*")) and not list(here.parent.rglob("*OUTSIDE*")) and not (here / "out").exists()
    )


def test_what_nobody_foresaw_names_the_file_and_can_be_looked_into(
    here: Path, iocast: Iocast, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken() -> None:
        strict.read_text(here / "plan.yaml")
        raise KeyError("x\x1b[31m")

    monkeypatch.setattr(cli, "app", lambda **_: broken())
    with pytest.raises(SystemExit) as ended:
        cli.main()
    printed = capsys.readouterr().err
    assert (
        ended.value.code == 2
        and f"'{here / 'plan.yaml'}'" in printed
        and "KeyError" in printed
        and "IOCAST_DEBUG=1" in printed
        and "\x1b" not in printed
    )
    monkeypatch.setenv("IOCAST_DEBUG", "1")
    with pytest.raises(KeyError):
        cli.main()


def test_no_secret_is_written(here: Path, iocast: Iocast) -> None:
    """Options are looked at before anything is made; what may hold one is for its owner alone, and the umask counts for
    the rest."""
    (root := here / "root").mkdir()
    (here / "plan.yaml").write_text(PLAN.split("steps:")[0] + "points: [{ranks: 1}]\n")
    for option in ("--mongodb.uri=mongodb://user:hun@ter2@h:1", "--mongodb.uri=mongodb://user:hunter2@h:1"):
        for more in ((), ("--slurm-only-write",)):
            done = iocast(
                "measure",
                "--backend",
                "mongodb",
                f"--backend-option={option}",
                "--campaign",
                here / "plan.yaml",
                "--out",
                here / "out",
                *more,
            )
            refused(done, "takes no user and password")
            assert "ter2" not in done.stderr and not (here / "out").exists()
    refused(
        iocast("measure", "--backend", "s3", "--backend-option=--mongodb.password=hunter2", "--out", here / "out"),
        "--mongodb.password",
    )
    for mask in (0o077, 0o022):
        out = here / f"out-{mask:o}"
        command = (
            f"umask {mask:o}; exec {sys.executable} -m iocast measure --backend dummy"
            f" --backend-option=--dummy.delay=1us --campaign {here}/plan.yaml --set objects=5 --set iterations=5 --out"
            f" {out}"
        )
        subprocess.run(
            ["sh", "-c", command], env={**os.environ, "PYTHONPATH": str(REPOSITORY)}, check=True, capture_output=True
        )
        assert (out / "campaign.json").stat().st_mode & 0o777 == 0o600
        table = subprocess.run(
            ["sh", "-c", f"umask {mask:o}; {sys.executable} -m iocast import {here}/table.csv --out {out}-i"],
            env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
            capture_output=True,
        )
        assert table.returncode == 0, table.stderr
        first = next(p for p in sorted(out.with_name(out.name + "-i").rglob("run.json")))
        assert first.stat().st_mode & 0o777 == 0o666 & ~mask and first.parent.stat().st_mode & 0o777 == 0o777 & ~mask
    assert not list(root.iterdir())


def test_texts_beyond_their_bounds_are_refused_before_they_are_parsed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(strict, "MAX_YAML_BYTES", 40)
    monkeypatch.setattr(strict, "MAX_JSON_BYTES", 40)
    for parse in (strict.parse_json, strict.parse_yaml, strict.compose_yaml):
        parse("[" + "1," * 18 + "1]", tmp_path / "a")
        with pytest.raises(InputError, match="more than 40 (of YAML )?are not read"):
            parse("[" + "1," * 50, tmp_path / "a")  # which is damaged as well


def test_an_archive_that_claims_to_be_small_is_not_unpacked_as_a_whole(tmp_path: Path) -> None:
    """The entry has 64 MiB and says that it has 10 bytes."""
    file = tmp_path / "a.zip"
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as box:
        box.writestr("b", bytes(2**26))
    content = bytearray(file.read_bytes())
    for place in (22, content.find(b"PK\1\2") + 24):
        content[place : place + 4] = (10).to_bytes(4, "little")
    file.write_bytes(content)
    tracemalloc.start()
    try:
        with pytest.raises(InputError, match="can't be unpacked"):
            import_series([file], tmp_path / "out")
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert most < 2**24


@pytest.mark.parametrize("text", ["\u00b2", "\u0663", "1" * 19, "9" * 5000, "", "-1", "1.5", "1_0"])
def test_a_text_that_is_no_whole_number_is_refused_wherever_one_is_wanted(text: str, tmp_path: Path) -> None:
    """str.isdigit() is true of "²", which int() refuses, as it does thousands of digits."""
    assert not is_whole(text) and is_whole("0012") and is_whole("9" * 18)
    (table := tmp_path / "t.csv").write_text(
        f"workload,accelerator,accelerators,utilisation,samples_per_second\nunet3d,h100,{text},0.9,100\n"
    )
    with pytest.raises(InputError):
        import_series([table], tmp_path / "runs")
    for kind in all_servers().values():
        for name in kind.counts:
            with pytest.raises(InputError, match="it must be 1 to"):
                kind.settings_of({name: text})
    uses = [path for path in (REPOSITORY / "iocast").rglob("*.py") if ".isdigit()" in path.read_text()]
    assert not uses, "iocast.ground.strict.is_whole"


@pytest.mark.parametrize("cell", [f"1 k{' ' * 100_000}/ x", f"{'1' * 100_000}x"], ids=["blanks", "digits"])
def test_a_cell_takes_no_longer_than_its_length(here: Path, cell: str) -> None:
    """What almost makes a rate is gone through once, not once for each of its characters."""
    (here / "table.csv").write_text(f"nodes,ppn,rate\n1,1,{cell}\n")
    refused(bounded("import", here / "table.csv", "--out", here / "out"), "table.csv:2: rate is '1")
