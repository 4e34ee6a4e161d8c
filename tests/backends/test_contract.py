# SPDX-License-Identifier: Apache-2.0
"""What every backend must do, on real servers; a new backend is covered when servers.py can start one for it."""

import contextlib
import json
import re
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from bench_runs import Done, Run, expect_refusal, total_counts, wait_for
from pages import commands_of
from programs import REPOSITORY, find_program
from registry import listed
from servers import Buckets, CephFiles, CollectionsOfOneUser, Place, Served, Tables, available, free_port

SMALL = ["--set", "datasets=2", "--set", "objects=6", "--set", "iterations=4", "--set", "object_size=3901B"]
SLOW = [
    *SMALL,
    "--set",
    "datasets=1",
    "--set",
    "objects=50",
    "--set",
    "iterations=50",
    "--set",
    "think_time=2ms",
    "--set",
    "repeats=4",
]


@pytest.fixture
def command(bench: Path, mpirun: Callable[[int], list[str]], place: Place) -> Callable[..., list[str]]:
    """iocast-bench in the place; one rank needs no mpirun."""
    options = place.options if "--backend" in place.options else ["--backend", place.backend, *place.options]
    return lambda *arguments, ranks=1, to=options: [*(mpirun(ranks) if ranks > 1 else []), str(bench), *to, *arguments]


@pytest.fixture
def run(command: Callable[..., list[str]], mpi_environment: dict[str, str], place: Place) -> Iterator[Run]:
    def run_it(*arguments: str, environment: dict[str, str] | None = None, **how: Any) -> Done:
        given = mpi_environment | (place.environment if environment is None else environment)
        done = subprocess.run(command(*arguments, **how), capture_output=True, text=True, env=given, timeout=120)
        assert not any(secret in done.stdout + done.stderr for secret in place.secrets)
        return Done(done.returncode, done.stdout, done.stderr)

    yield run_it
    if not place.is_empty():
        run_it(*SMALL, "--sweep")
        assert place.is_empty(), "sweeping left something behind"


def counts(done: Done, phase: str) -> dict[str, int]:
    (found,) = [p for p in done.json["phases"] if p["name"] == phase]
    return {op: row["count"] for op, row in found["latency"].items() if "." not in op}


def seen(place: Place, name: str) -> bool:
    with contextlib.suppress(FileNotFoundError):  # of another that goes away at this moment
        return name in place.objects()
    return False


def test_every_backend_is_built() -> None:
    """./check installs the libraries of all."""
    entries = listed("iocast-bench", "backends")
    assert {entry["name"] for entry in entries} == {
        file.stem for file in (REPOSITORY / "real" / "backends").glob("*.cpp")
    }
    assert all(entry["available"] for entry in entries), "packaging/debian-packages.txt names a library for each"
    assert set(available()) == {entry["name"] for entry in entries if entry["keeps_data"]} and len(available()) < len(
        entries
    )


@pytest.mark.usefixtures("bench")
def test_backends_without_their_libraries_name_the_packages_to_install(tmp_path: Path) -> None:
    program = find_program("iocast-bench-without-libraries")
    assert program is not None, "iocast-bench-without-libraries is not built; run ./check"
    done = subprocess.run([program, "--list", "backends", "--json"], capture_output=True, text=True, check=True)
    without = {entry["name"]: entry for entry in json.loads(done.stdout)["backends"]}
    assert {name: entry["keeps_data"] for name, entry in without.items()} == {
        entry["name"]: entry["keeps_data"] for entry in listed("iocast-bench", "backends")
    }
    assert all(without[name]["available"] for name in ("posix", "mpiio", "dummy"))
    packages = (REPOSITORY / "packaging" / "debian-packages.txt").read_text().split()
    absent = {name: entry["needs"] for name, entry in without.items() if not entry["available"]}
    assert len(absent) >= 4
    for name, sentence in absent.items():
        named = re.findall(r"lib\S+-dev", sentence)
        assert named and set(named) <= set(packages)
        refused = subprocess.run([program, "--backend", name], capture_output=True, text=True)
        assert refused.returncode == 2 and refused.stdout == ""
        assert refused.stderr == f"iocast-bench: The backend '{name}' can't be used: {sentence}\n"
    settings = tmp_path / "build" / "compile_commands.json"
    packages_left_out = ["CURL", "OpenSSL", "PostgreSQL", "mongoc-1.0"]
    command = [
        "cmake",
        "-S",
        REPOSITORY,
        "-B",
        settings.parent,
        "-DCEPHFS_LIBRARY=OFF",
        "-DLIBNFS_LIBRARY=OFF",
        *(f"-DCMAKE_DISABLE_FIND_PACKAGE_{name}=ON" for name in packages_left_out),
    ]
    configured = subprocess.run(command, capture_output=True, text=True)
    assert configured.returncode == 0, configured.stderr
    assert "s3.cpp" in settings.read_text() and "IOCAST_HAS_" not in settings.read_text()


def test_a_whole_run_with_contents_verified(run: Run, place: Place, tmp_path: Path) -> None:
    done = run(*SMALL, "--set", "repeats=2", "--verify", "--json", "--out", str(tmp_path / "run"), ranks=3)
    assert done.code == 0, done.err
    assert [p["errors"] for p in done.json["phases"]] == [0, 0, 0, 0]
    assert counts(done, "precreate") == {"mkdir": 6, "create": 36}
    for phase in done.json["phases"][1:3]:
        assert {op: row["count"] for op, row in phase["latency"].items() if "." not in op} == dict.fromkeys(
            ("create", "stat", "read", "unlink"), 24
        )
    assert counts(done, "cleanup") == {"unlink": 36, "rmdir": 6}
    assert place.is_empty()
    for phase in done.json["phases"]:  # whole operations tell their parts
        for op in {"create", "read"} & set(phase["latency"]):
            parts = [row["count"] for tag, row in phase["latency"].items() if tag.startswith(op + ".")]
            assert parts == [phase["latency"][op]["count"]] * 3
    # The run directory records where the data was, and no credentials.
    document = json.loads((tmp_path / "run" / "run.json").read_text())
    assert (
        document["backend"]["name"] == place.backend
        and document["environment"]["service" if isinstance(place, Served) else "filesystem"]
    )
    kept = b"".join(p.read_bytes() for p in (tmp_path / "run").rglob("*") if p.is_file())
    assert not any(secret.encode() in kept for secret in place.secrets)


def test_large_objects(run: Run) -> None:
    done = run(
        "--set",
        "datasets=1",
        "--set",
        "objects=1",
        "--set",
        "iterations=1",
        "--set",
        "object_size=2500000B",
        "--verify",
    )
    assert done.code == 0, done.err


@pytest.mark.places(lambda kind: kind is Buckets)
def test_accelerators_are_fed_with_objects(run: Run, place: Buckets) -> None:
    """Two accelerators of two readers each; a sample is an object."""
    small = ("readers=2", "batch=2", "steps=3", "sample_size=20kB", "sample_deviation=3kB", "read_block=0B")
    settings = [word for one in (*small, "compute_time=5ms") for word in ("--set", one)]
    done = run("--workload", "unet3d", *settings, "--verify", "--json", ranks=4)
    assert done.code == 0, done.err
    assert counts(done, "train") == {"read": 3 * 2 * 2}
    (phase,) = [p for p in done.json["phases"] if p["name"] == "train"]
    accelerators = phase["accelerators"]
    assert accelerators["count"] == 2 and phase["errors"] == 0
    assert accelerators["utilisation"] == pytest.approx(3 * 0.005 / phase["seconds"], rel=1e-3)
    assert place.is_empty()


def test_phases_one_by_one(run: Run, place: Place) -> None:
    assert run(*SMALL, "--set", "phases=precreate").code == 0
    assert place.objects() == {f"0_{dataset}/file-{number}": 3901 for dataset in (0, 1) for number in range(6)}
    # Another run finds the data set and goes on where it ends; one that would make it is refused.
    done = run(*SMALL, "--set", "phases=benchmark", "--json")
    assert done.code == 0, done.err
    assert {name.rpartition("-")[2] for name in place.objects()} == {str(number) for number in range(4, 10)}
    assert run(*SMALL, "--set", "phases=precreate").code == 2
    assert len(place.objects()) == 12
    assert run(*SMALL, "--set", "phases=cleanup").code == 0
    assert place.is_empty()


def test_objects_that_are_missing_or_there_already(run: Run, place: Place) -> None:
    assert run(*SMALL, "--set", "phases=precreate").code == 0
    place.remove("0_0/file-2")
    place.put("0_1/file-7", b"in the way" * 1000)
    done = run(*SMALL, "--set", "phases=benchmark", "--json")
    assert done.code == 1
    (phase,) = done.json["phases"]
    wrong = {error["op"]: error for error in phase["first_errors"]}
    for op in ("stat", "read"):
        assert (
            wrong[op]["error"] == "No such file or directory"
            and wrong[op]["name"] == "0_0/file-2"
            and wrong[op]["count"] == 1
        )
    assert ("create" in wrong) == (not place.replaces)
    if place.replaces:  # nothing is left of the larger one
        assert place.objects()["0_1/file-7"] == 3901
    if not place.replaces:
        assert wrong["create"]["error"] == "File exists" and wrong["create"]["name"] == "0_1/file-7"
    # One operation's failure is none of another's.
    assert sum(phase["errors_by_operation"].values()) == phase["errors"] <= 4
    assert phase["operations"] == 2 * 4 * 4 - phase["errors"]


SLOW_DOCUMENTS = """\
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <unistd.h>
typedef int Append(void*, const char*, int, int, const uint8_t*, uint32_t);
int bson_append_binary(void* document, const char* key, int length, int type, const uint8_t* data, uint32_t size)
{
  usleep(400000);
  return ((Append*)dlsym(RTLD_NEXT, "bson_append_binary"))(document, key, length, type, data, size);
}
"""


@pytest.mark.not_sanitized("its run-time library has to come first")
@pytest.mark.places(lambda kind: kind.__name__ == "Collections")
def test_making_a_document_is_not_in_the_latency(run: Run, place: Place, tmp_path: Path) -> None:
    (tmp_path / "slow.c").write_text(SLOW_DOCUMENTS)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", tmp_path / "slow.so", tmp_path / "slow.c", "-ldl"], check=True)
    few = ["--set", "datasets=1", "--set", "objects=1", "--set", "iterations=1"]
    done = run(*few, "--json", environment=place.environment | {"LD_PRELOAD": str(tmp_path / "slow.so")})
    assert done.code == 0, done.err
    precreate = done.json["phases"][0]
    # One is made in at least 0.4 s, which the phase has and the operation has not.
    assert 0.4 <= precreate["seconds"] - precreate["latency"]["create"]["max"]


def test_what_was_killed_is_swept(
    run: Run, command: Callable[..., list[str]], mpi_environment: dict[str, str], place: Place
) -> None:
    settings = [*SMALL, "--set", "objects=50", "--set", "waiting_factor=100"]  # slow, wherever it is
    process = subprocess.Popen(
        command(*settings), env=mpi_environment | place.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    try:
        until = time.monotonic() + 120
        while not seen(place, "0_0/file-2"):
            assert time.monotonic() < until and process.poll() is None
        shown = " ".join(psutil.Process(process.pid).cmdline())
    finally:
        process.kill()
    printed = process.communicate(timeout=120)[0].decode()
    place.forget_the_killed()
    assert place.backend in shown and not any(secret in shown + printed for secret in place.secrets)
    assert not place.is_empty()
    left = place.manifest()
    assert "md-workbench" in left and not any(secret in left for secret in place.secrets)
    assert run(*settings, "--set", "phases=cleanup").code == 0
    assert place.is_empty()


@pytest.mark.places(lambda kind: kind is Tables)
def test_a_schema_that_was_there_stays(run: Run, place: Tables) -> None:
    """With its grants; one that was made goes with the last of the data, whichever run that is."""
    place._ask("CREATE SCHEMA iocast")
    place._ask("GRANT USAGE ON SCHEMA iocast TO PUBLIC")
    granted = "SELECT nspacl FROM pg_namespace WHERE nspname = 'iocast'"
    before = place._ask(granted)
    assert run(*SMALL).code == 0
    assert place._ask(granted) == before
    place._ask("CREATE VIEW iocast.somebodys AS SELECT 1")
    expect_refusal(run(*SMALL), "not empty")
    assert place._ask("SELECT count(*) FROM iocast.somebodys") == ["1"]
    place._ask("DROP SCHEMA iocast CASCADE")
    assert run(*SMALL, "--set", "phases=precreate").code == 0
    assert place._ask("SELECT relname FROM pg_class WHERE relname LIKE 'iocast.claim%' AND relkind = 'r'") == []
    assert run(*SMALL, "--set", "phases=cleanup").code == 0
    assert place.is_empty()
    # Of two runs that began at once one may have made the schema, and the other gone on.
    place._ask("CREATE SCHEMA iocast")
    place._ask("COMMENT ON SCHEMA iocast IS 'made by iocast, and removed with its last data'")
    assert run(*SMALL).code == 0
    assert place._ask(granted) == []


@pytest.mark.places(lambda kind: kind.backend in ("postgresql", "mongodb", "nfs"))
def test_of_runs_that_begin_at_once_in_a_service_one_goes_on(
    command: Callable[..., list[str]], mpi_environment: dict[str, str], place: Place
) -> None:
    environment = mpi_environment | place.environment
    runs = [
        subprocess.Popen(command(*SLOW), env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    ends = [(process.communicate(timeout=120)[1], process.returncode) for process in runs]
    assert sorted(code for _, code in ends) == [0, 2, 2, 2], ends
    assert all("another run" in printed for printed, code in ends if code == 2), ends
    assert place.is_empty()


@pytest.mark.places(lambda kind: issubclass(kind, Served) and kind.wrong_credentials is not Served.wrong_credentials)
def test_wrong_credentials_are_refused_in_a_sentence(run: Run, place: Served) -> None:
    wrong = place.wrong_credentials()
    assert wrong
    done = run(*SMALL, environment=place.environment | wrong)
    assert done.code == 2 and done.out == ""
    entries = [line for line in done.err.splitlines() if line.startswith("iocast-bench: ") and "warning" not in line]
    assert len(entries) == 1 and entries[0].endswith(".") and ("credentials" in entries[0] or "password" in entries[0])
    assert not any(value in done.err for value in wrong.values())


def test_clients_that_are_threads(run: Run, place: Place) -> None:
    """Each has a connection of its own; contents are verified."""
    done = run(*SMALL, "--verify", "--threads-per-rank", "3", "--json", ranks=2)
    assert done.code == 0, done.err
    assert counts(done, "precreate") == {"mkdir": 12, "create": 72} and counts(done, "cleanup") == {
        "unlink": 72,
        "rmdir": 12,
    }
    assert place.is_empty()


def credentials_in_files(place: Served, directory: Path) -> tuple[list[str], dict[str, str]]:
    """What the place's environment says, as options and variables that only name a file."""
    file = directory / "credentials"
    file.touch(mode=0o600)
    if place.backend == "postgresql":
        file.write_text(f"127.0.0.1:{place.port}:*:tester:{place.secrets[0]}\n")
        return [], {"PGPASSFILE": str(file)}
    if place.backend == "mongodb":
        file.write_text(place.environment["MONGODB_URI"] + "\n")
        return ["--mongodb.uri_file", str(file)], {}
    file.write_text(f"[default]\naws_access_key_id = {place.secrets[0]}\naws_secret_access_key = {place.secrets[1]}\n")
    return ["--s3.credentials", str(file)], {}


@pytest.mark.places(lambda kind: kind in (Buckets, Tables, CollectionsOfOneUser))
def test_credentials_from_files(run: Run, place: Served, tmp_path: Path) -> None:
    options, environment = credentials_in_files(place, tmp_path)
    done = run(*SMALL, *options, "--out", str(tmp_path / "run"), environment=environment)
    assert done.code == 0, done.err
    assert not any(secret in (tmp_path / "run" / "run.json").read_text() for secret in place.secrets)


@pytest.mark.places(lambda kind: kind in (Tables, CollectionsOfOneUser))
def test_a_server_that_wants_a_password_and_gets_none(run: Run, place: Served) -> None:
    nothing = {"PGPASSWORD": "", "PGPASSFILE": "/dev/null", "MONGODB_URI": f"mongodb://127.0.0.1:{place.port}"}
    done = run(*SMALL, environment=nothing)
    assert done.code == 2 and "password" in done.err, done.err


@pytest.mark.places(lambda kind: kind is CollectionsOfOneUser)
def test_connection_strings_with_passwords_are_no_options(run: Run, place: Served) -> None:
    expect_refusal(
        run(*SMALL, to=[*place.options, "--mongodb.uri", "mongodb://tester:hush@127.0.0.1"]), "--mongodb.uri_file"
    )
    broken = run(*SMALL, environment={"MONGODB_URI": f"mongodb://tester:{place.secrets[0]}@127.0.0.1"})
    expect_refusal(broken, "%XX")


@pytest.mark.places(lambda kind: kind is not CollectionsOfOneUser)
def test_the_manuals_examples(
    bench: Path, mpirun: Callable[[int], list[str]], mpi_environment: dict[str, str], place: Place
) -> None:
    shown = [line.removeprefix("mpirun -n 2 iocast-bench ") for line in commands_of("docs/backends.md")]
    assert [line.split()[:2] for line in shown] == [
        ["--backend", name] for name in ("posix", "nfs", "s3", "postgresql", "mongodb", "cephfs")
    ]
    if place.backend == "posix":
        shown = [line.replace("/scratch/me", place.options[1]) for line in shown]
    if place.backend == "nfs":
        shown = [line.replace("nfs://nas/scratch/me", place.options[1]) for line in shown]
    for line in [line for line in shown if line.split()[1] == place.backend]:
        words = re.sub(r"\b(9000|5432|27017)\b", str(getattr(place, "port", "")), line).split()
        done = subprocess.run(
            [*mpirun(2), str(bench), *words],
            capture_output=True,
            text=True,
            env=mpi_environment | place.environment,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr
        assert place.is_empty()


@pytest.mark.places(lambda kind: issubclass(kind, Served))
def test_a_server_that_is_not_there(run: Run, place: Served) -> None:
    port = free_port()
    done = run(*SMALL, to=place.options_to(port))
    assert done.code == 2 and str(port) in done.err and place.unanswered in done.err, done.err


@pytest.mark.places(lambda kind: issubclass(kind, Served) and kind.keeps)
def test_a_server_that_is_killed_and_comes_back(
    run: Run, command: Callable[..., list[str]], mpi_environment: dict[str, str], place: Served, tmp_path: Path
) -> None:
    """Operations fail while it is away, none hangs, and those after it are answered; what is left is swept."""
    whole = command(*SLOW, "--out", str(tmp_path / "run"))
    process = subprocess.Popen(
        whole, env=mpi_environment | place.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    until = time.monotonic() + 120
    while not seen(place, "0_0/file-60"):  # made by the benchmark
        assert time.monotonic() < until and process.poll() is None
    place.stop()
    place.start()
    process.wait(timeout=120)
    phases = json.loads((tmp_path / "run" / "run.json").read_text())["phases"]
    assert process.returncode == 1 and sum(p["errors"] for p in phases) > 0
    assert phases[-1]["latency"]["unlink"]["count"] > 0, "nothing was answered after the server had come back"
    assert {e["error"] for p in phases for e in p.get("first_errors", [])} & {
        "Connection refused",
        "Connection reset by peer",
    }
    assert run(*SLOW, "--sweep").code == 0


# CephFS


@pytest.mark.places(lambda kind: kind.backend == "cephfs")
def test_operations_on_open_files_in_cephfs(run: Run, place: CephFiles) -> None:
    probe = [
        "--workload",
        "probe",
        "--set",
        "objects=4",
        "--set",
        "access_size=3000B",
        "--set",
        "accesses=5",
        "--set",
        "sharing=2",
    ]
    plan = run(*probe, "--dry-run", "--json", ranks=4).json["footprint"]
    done = run(*probe, "--verify", "--json", ranks=4)
    assert done.code == 0, done.err
    assert total_counts(done.json) == {op: count for op, count in plan["operations"].items() if count and op != "think"}
    assert done.json["verified"] is True and place.is_empty()


@pytest.mark.places(lambda kind: kind.backend == "cephfs")
def test_directories_in_cephfs_that_can_not_be_worked_in(run: Run, place: CephFiles) -> None:
    def root(path: str, *options: str) -> list[str]:
        return ["--backend", "cephfs", "--cephfs.id", "me", "--cephfs.root", path, *options]

    expect_refusal(run(*SMALL, to=["--backend", "cephfs", "--cephfs.id", "me"]), "--cephfs.root")
    expect_refusal(run(*SMALL, to=root("scratch/me")), "--cephfs.root", "'scratch/me'")
    expect_refusal(run(*SMALL, to=root("/scratch/me/nowhere")), "no directory '/scratch/me/nowhere'")
    expect_refusal(run(*SMALL, to=root(place.root, "--cephfs.filesystem", "another")), "'another'")
    expect_refusal(run(*SMALL, to=root("/")), "'/'", "client.me: Operation not permitted.")
    expect_refusal(
        run(*SMALL, to=root(place.root, "--cephfs.conf", "/nowhere/ceph.conf")), "'/nowhere/ceph.conf'", "No such file"
    )
    expect_refusal(
        run(*SMALL, to=["--backend", "cephfs", "--cephfs.id", "guest", "--cephfs.root", place.root]),
        place.root,
        "can't be written to",
    )
    place.ask("put", f"{place.root}/foreign", "x")
    expect_refusal(run(*SMALL, to=root(f"{place.root}/foreign")), "not a directory")
    expect_refusal(run(*SMALL), place.root, "not empty")
    place.ask("remove", f"{place.root}/foreign")
    place.ask("put", f"{place.root}/iocast.manifest.json.new", "half of")  # of a run that was killed: no data
    place.ask("limit", place.root, 8 << 20)
    expect_refusal(run(*SMALL, "--set", "object_size=1MiB"), place.root, "8.0 MiB free")
    assert run(*SMALL).code == 0
    place.ask("limit", place.root, 0)
    assert run(*SMALL, to=root(place.root, "--cephfs.filesystem", "tests")).code == 0


@pytest.fixture
def slow_run(
    command: Callable[..., list[str]], mpi_environment: dict[str, str], place: CephFiles, tmp_path: Path
) -> Iterator[subprocess.Popen[str]]:
    """One in the midst of its benchmark."""
    whole = command(*SLOW, "--out", str(tmp_path / "run"))
    with subprocess.Popen(
        whole, env=mpi_environment | place.environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as process:
        wait_for(lambda: seen(place, "0_0/file-60"))
        yield process
        process.kill()


@pytest.mark.places(lambda kind: kind.backend == "cephfs")
def test_a_metadata_server_that_is_killed_is_waited_for(
    slow_run: subprocess.Popen[str], place: CephFiles, tmp_path: Path
) -> None:
    place.kill_metadata_server()
    time.sleep(1)
    place.start_metadata_server()
    printed = slow_run.communicate(timeout=120)[1]
    assert slow_run.returncode == 0, printed
    phases = json.loads((tmp_path / "run" / "run.json").read_text())["phases"]
    assert sum(phase["errors"] for phase in phases) == 0
    assert max(row["max"] for phase in phases for row in phase["latency"].values()) > 1


@pytest.mark.places(lambda kind: kind.backend == "cephfs")
def test_a_client_that_the_cluster_shuts_out_says_so(
    run: Run, slow_run: subprocess.Popen[str], place: CephFiles
) -> None:
    place.forget_the_killed()
    printed = slow_run.communicate(timeout=120)[1]
    assert slow_run.returncode == 1 and "has shut this client out." in printed
    assert run(*SLOW, "--sweep").code == 0
