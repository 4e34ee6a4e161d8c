# SPDX-License-Identifier: Apache-2.0
"""Every writer on a disk that is full or fails: what was there stays whole, nothing half-written stays, and a sentence
says so."""

import errno
import json
import os
import random
import resource
import signal
import stat
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from programs import find_program

from iocast.calibrate.trace import Trace
from iocast.campaign.places import Owned
from iocast.errors import InputError, RunError
from iocast.export.files import write_csv, write_openmetrics, write_parquet
from iocast.export.table import Row
from iocast.ground.files import write_bytes, write_json, write_text
from iocast.importers.record import Latency, Phase, Record, write_runs
from iocast.watching.observe import Observer
from iocast.whatif.page_file import write_whole as write_page
from iocast.study.store import Store

ROWS = [Row("run", "bench", "md", 1, 1, "benchmark", 1, "create", "rate", None, None, float(n)) for n in range(2000)]


def record(out: Path) -> None:
    phase = Phase("benchmark", start_seconds=0.0, operations=5, rate=5.0, seconds=1.0)
    phase.latency["create"] = Latency(5, {"mean": 1.0})
    one = Record("n", "table", [phase], pattern="table", ranks=1, nodes=1, label="x" * 20_000)
    write_runs([("", one)], out)


WRITERS: dict[str, Callable[[Path], None]] = {
    "text": lambda out: write_text(out, "x" * 40_000),
    "secret": lambda out: write_text(out, "x" * 40_000, secret=True),
    "bytes": lambda out: write_bytes(out, b"x" * 40_000),
    "json": lambda out: write_json(out, {"schema_version": 1, "values": list(range(20_000))}),
    "page": lambda out: write_page(out, "x" * 40_000),
    "csv": lambda out: write_csv(ROWS, out),
    "openmetrics": lambda out: write_openmetrics(ROWS, out),
    "parquet": lambda out: write_parquet(ROWS, out),
    "imported run": record,
}
FAULTS = ("size", "fsync", "replace", "open")


@contextmanager
def failing(fault: str, number: int, size: int) -> Iterator[None]:
    """Make writes fail. `fault` "size" limits files to `size` bytes; else the call of that name fails with errno
    `number`."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    with pytest.MonkeyPatch.context() as patch:

        def fail(*_: object, **__: object) -> None:
            raise OSError(number, os.strerror(number))

        if fault == "size":
            resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
        elif fault == "fsync":
            patch.setattr(os, "fsync", fail)
        elif fault == "replace":
            patch.setattr(os, "replace", fail)
            patch.setattr(os, "rename", fail)
        else:
            patch.setattr("tempfile.mkstemp", fail)
            patch.setattr("tempfile.mkdtemp", fail)
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
            signal.signal(signal.SIGXFSZ, handler)


@settings(max_examples=120, deadline=None, database=None, suppress_health_check=list(HealthCheck))
@given(
    writer=st.sampled_from(sorted(WRITERS)), fault=st.sampled_from(FAULTS),
    number=st.sampled_from([errno.ENOSPC, errno.EIO, errno.EDQUOT, errno.EROFS]), size=st.integers(0, 3000),
    there=st.booleans(),
)  # fmt: skip
def test_a_failed_writer_leaves_what_was_there(
    tmp_path_factory: pytest.TempPathFactory, writer: str, fault: str, number: int, size: int, there: bool
) -> None:
    place = tmp_path_factory.mktemp("place")
    out = place / "out"
    if there and writer != "imported run":
        out.write_text("the old one")
    before = {p.name: p.read_text() for p in place.iterdir()}
    with failing(fault, number, size), pytest.raises(RunError) as failed:
        WRITERS[writer](out)
    assert str(out) in str(failed.value) and str(failed.value).endswith(".")
    assert {p.name: p.read_text() for p in place.iterdir()} == before
    WRITERS[writer](out)  # with room again
    assert [p.name for p in place.iterdir()] == ["out"]


@settings(max_examples=12, deadline=None, database=None, suppress_health_check=list(HealthCheck))
@given(size=st.integers(0, 40_000))
def test_who_appends_keeps_what_was_whole(tmp_path_factory: pytest.TempPathFactory, size: int) -> None:
    """Searches, studies and observations: a sentence, and afterwards what was written before is there."""
    place = tmp_path_factory.mktemp("place")
    search, memory, observed = place / "search.jsonl", place / "study" / "memory.sqlite", place / "observed.jsonl"
    made = {"search": 0, "memory": 0}
    with failing("size", errno.ENOSPC, size):
        with suppress(RunError):
            trace = Trace(search)
            for number in range(50):
                trace.put([str(number)], {}, {}, 1.0, [np.full(40, float(number))])
                made["search"] += 1
        with suppress(RunError), Store(memory) as store:
            for number in range(50):
                store.put(str(number), list(range(1000 + number)))
                made["memory"] += 1
        with suppress(RunError), Observer(observed, 60, []) as observer:
            pass
    assert size > 15_000 or made["search"] < 50
    trace = Trace(search)
    found = [number for number in range(50) if trace.get(str(number)) is not None]
    assert found in (list(range(made["search"])), list(range(made["search"] + 1)))  # all of a line but its end may fit
    trace.put(["next"], {}, {}, 1.0, [np.zeros(2)])
    assert Trace(search).get("next") is not None
    with Store(memory) as store:
        kept = store.get(map(str, range(50)))
        assert len(kept) >= made["memory"]
        assert all(content == list(range(1000 + int(number))) for number, content in kept.items())
    whole = observed.read_text().endswith("}\n") and '"end":true' in observed.read_text()
    if size < 100:
        assert not whole
    elif whole:
        assert observer.error is None


@pytest.mark.parametrize("program", ["iocast-sim", "iocast-bench"])
def test_no_half_written_run_is_called_complete(program: str, tmp_path: Path, mpi_environment: dict[str, str]) -> None:
    """Results without room for all of their bytes end in a sentence, or are labelled interrupted."""
    where = ["--platform", "local"] if program == "iocast-sim" else ["--backend", "dummy"]
    sizes = [word for one in ("datasets=1", "objects=5", "iterations=5") for word in ("--set", one)]
    command = [str(find_program(program)), *where, *sizes, "--out"]

    def run(out: Path, size: int | None) -> tuple[int, str]:
        def limit() -> None:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

        done = subprocess.run(
            [*command, out],
            capture_output=True,
            text=True,
            env=mpi_environment,
            preexec_fn=limit if size is not None else None,
        )
        return done.returncode, done.stderr

    assert run(tmp_path / "whole", None)[0] == 0
    whole = {file.name: file.stat().st_size for file in (tmp_path / "whole").iterdir()}
    assert set(whole) == {"run.json", "latency.hlog"}
    chance = random.Random(program)
    for number in range(8):
        out = tmp_path / str(number)
        code, printed = run(out, size := chance.randrange(0, max(whole.values()) - 200))
        # Open MPI has files of its own, and may end the program before it begins.
        assert code != 0 and (f"{program}: " in printed or not (out / "run.json").exists()), (size, code, printed)
        assert "terminate called" not in printed
        if (out / "run.json").exists():
            assert json.loads((out / "run.json").read_text())["status"] != "complete", size


def test_a_file_is_on_the_disk_before_it_takes_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []
    fsync, replace = os.fsync, os.replace
    monkeypatch.setattr(
        os,
        "fsync",
        lambda handle: (done.append("directory" if stat.S_ISDIR(os.fstat(handle).st_mode) else "file"), fsync(handle)),
    )
    monkeypatch.setattr(os, "replace", lambda *names: (done.append("name"), replace(*names)))
    write_json(tmp_path / "x.json", {"a": 1})
    assert done == ["file", "name", "directory"] and json.loads((tmp_path / "x.json").read_text()) == {"a": 1}


def test_a_directory_that_cannot_be_claimed_is_left_as_it_was(tmp_path: Path) -> None:
    """The claim is the first thing that is written."""
    for size in (0, 10):
        with failing("size", errno.ENOSPC, size), pytest.raises(RunError, match="can't be claimed: File too large"):
            Owned(tmp_path / "out", None, False)
        assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("writer", sorted(set(WRITERS) - {"imported run"}))
def test_no_file_takes_the_place_of_a_device_or_a_pipe(tmp_path: Path, writer: str) -> None:
    """As root, one would: every program of the machine that writes to /dev/null then fills a disk."""
    pipe, device = tmp_path / "pipe", tmp_path / "device"
    os.mkfifo(pipe)
    device.symlink_to("/dev/null")
    for place in (pipe, device):
        with pytest.raises(InputError, match="is a device, a pipe or a socket"):
            WRITERS[writer](place)
    assert stat.S_ISFIFO(pipe.stat().st_mode) and device.is_symlink()
    assert sorted(one.name for one in tmp_path.iterdir()) == ["device", "pipe"]


def test_standard_output_of_the_shell_is_no_file() -> None:
    before = os.lstat("/dev/stdout")
    with pytest.raises(InputError, match="'/dev/stdout' is a device"):
        write_text(Path("/dev/stdout"), "x")
    assert os.path.samestat(before, os.lstat("/dev/stdout"))
