# SPDX-License-Identifier: Apache-2.0
"""COSBench, MLPerf Storage (DLIO), YCSB, rados bench, filebench, warp, dd, fs_mark, PostMark, tables, and
md-workbench's latency files."""

from __future__ import annotations

import csv
import io
import json
import re
from datetime import datetime
from pathlib import Path

from . import Printed, Quantity, Reading


def read(path: Path, text: str) -> Reading | None:
    for reader in (
        _cosbench,
        _dlio,
        _dlio_accelerator,
        _ycsb,
        _rados,
        _filebench,
        _warp,
        _dd,
        _fs_mark,
        _postmark,
        _latencies,
        _trainings,
        _nfs,
        _table,
        _sysbench,
        _pgbench,
        _smallfile,
        _iozone,
        _hacc,
        _lustre,
        _db_bench,
    ):
        if (reading := reader(path, text)) is not None:
            return reading
    return None


OBJECTS = {"write": "create", "read": "read", "delete": "unlink"}


def _cosbench(path: Path, text: str) -> Reading | None:
    if text.startswith("Op-Type,Sample-Type,Op-Count"):
        rows = [line.split(",") for line in text.splitlines()[1:] if line.count(",") > 1]
        stages = {row[0] if row[0] in ("init", "prepare", "cleanup", "dispose") else "main" for row in rows}
        if len(stages) > 1 or any(len(row) > 9 for row in rows):
            return Reading(
                "cosbench",
                "drivers",
                refusal="ambiguous placement that no option settles: stages of other numbers of workers",
            )
        run, parts = Printed(), {}
        for row in rows:
            parts.setdefault(OBJECTS[row[1]], []).append(row)
        if path.name.endswith("worker.csv"):
            run.ranks = max(len(own) for own in parts.values())
        run.put(
            next(iter(stages)),
            0,
            rate=Quantity(sum(float(row[6]) for row in rows), 1e-6),
            bytes=float(sum(int(row[3]) for row in rows)) or None,
        )
        for op, own in parts.items():
            _responses(run, next(iter(stages)), op, [(int(r[2]), r[4]) for r in own])
        run.put(next(iter(stages)), 0, operations=float(sum(int(row[2]) for row in rows)))
        return Reading("cosbench", "workers", [run])
    if text.startswith("Timestamp,Op-Count"):
        lines = list(csv.reader(io.StringIO(text)))
        ops = [cell for cell in lines[1][1:] if cell and "Version" not in cell]
        kinds, run = ops[: len(ops) // 7], Printed()
        # An interval in which nothing was done has the columns of one operation alone.
        idle = [row for row in lines[2:] if len(row) == 11 and row[1] == "0"] if len(kinds) > 1 else []
        lines = lines[:2] + [row for row in lines[2:] if row not in idle]
        if any(len(row) < len(lines[0]) for row in lines[2:]):
            return Reading("cosbench", "time line", refusal="truncated")
        stage = kinds[0].rpartition("-")[0] or "main"
        for i, op in enumerate(kinds):
            own = [(int(row[1 + i]), row[1 + 2 * len(kinds) + i]) for row in lines[2:]]
            _responses(run, stage, OBJECTS[op.rpartition("-")[2]], own)
        total = sum(int(row[1 + i]) for row in lines[2:] for i in range(len(kinds)))
        size = sum(int(row[1 + len(kinds) + i]) for row in lines[2:] for i in range(len(kinds)))
        run.put(stage, 0, operations=float(total), bytes=float(size) if size else None)
        return Reading("cosbench", "time line", [run])
    return None


def _responses(run: Printed, stage: str, op: str, parts: list[tuple[int, str]]) -> None:
    count = sum(n for n, _ in parts)
    if count:
        mean = sum(n * float(ms) for n, ms in parts if n) / count / 1000
        run.put(stage, 0, **{f"latency__{op}__count": float(count), f"latency__{op}__mean": Quantity(mean, 1e-6)})


def _dlio(path: Path, text: str) -> Reading | None:
    del path
    if not ('"num_accelerators"' in text and '"metric"' in text):
        return None
    document = json.loads(text)
    metric = document["metric"]
    run = Printed(document["num_accelerators"], document.get("num_hosts"), started=document["start"])
    for phase, begin in (("checkpoint", "save"), ("restore", "load")):
        if speed := metric.get(f"{begin}_checkpoint_io_mean_GB_per_second"):
            run.put(phase, 0, bytes_per_second=Quantity(speed * 2**30, 1e-6))
            run.put(phase, 0, seconds=metric.get(f"{begin}_checkpoint_duration_mean_seconds"))
    if "train_throughput_samples_per_second" not in metric:
        return Reading("dlio", "checkpoints", [run])
    for repeat, rate in enumerate(metric["train_throughput_samples_per_second"], start=1):
        run.put("train", repeat, rate=rate)
    mean = metric["train_io_mean_MB_per_second"] / metric["train_throughput_mean_samples_per_second"] * 2**20
    for repeat, rate in enumerate(metric["train_throughput_samples_per_second"], start=1):
        run.put("train", repeat, bytes_per_second=Quantity(rate * mean, 1e-6))
    for repeat, share in enumerate(metric["train_au_percentage"], start=1):
        run.put("train", repeat, accelerators__utilisation_after_first_step=Quantity(share / 100, 1e-9))
    return Reading("dlio", "summary.json", [run])


def _dlio_accelerator(path: Path, text: str) -> Reading | None:
    del path
    return Reading("dlio", refusal="one accelerator's output of several") if '"proc"' in text else None


def dlio_directory(path: Path) -> Reading | None:
    """Epochs of all accelerators, and checkpoints one by one, of DLIO's output directory."""
    load = lambda pattern: [json.loads(one.read_text()) for one in sorted(path.glob(pattern))]  # noqa: E731
    outputs = load("*_output.json") + load("*_load_and_proc_times.json")
    if not outputs:
        return None
    summary, times = load("summary.json"), load("*per_epoch_stats.json")
    whole = _dlio(path, json.dumps(summary[0])) if summary else None
    run = whole.runs[0] if whole else Printed(len(outputs))
    moment = lambda entry, key: datetime.fromisoformat(entry[key]).timestamp()  # noqa: E731
    long = lambda entry: moment(entry, "end") - moment(entry, "start")  # noqa: E731
    for epoch in [key for key in outputs[0] if key.isdigit() and outputs[0][key]["proc"]]:
        repeat = int(epoch)
        steps = {
            name: [one for own in outputs for part in own[epoch].get(name, {}).values() for one in part]
            for name in ("load", "proc", "compute")
        }
        load = steps["load"]
        run.put(
            "train",
            repeat,
            latency__load__count=float(len(load)),
            latency__load__mean=Quantity(sum(load) / len(load), 1e-6),
            latency__load__max=Quantity(max(load), 1e-6),
        )
        if steps["compute"]:
            run.put("train", repeat, accelerators__compute_seconds=Quantity(sum(steps["compute"]), 1e-9))
        else:
            slowest = max(sum(sum(part) for part in own[epoch]["proc"].values()) for own in outputs)
            run.put("train", repeat, operations=float(len(steps["proc"])), seconds=slowest)
            run.put("train", repeat, rate=len(steps["proc"]) / slowest)
        if times:
            busy = sum(long(part) for name, part in times[0][epoch].items() if name.startswith("block"))
            run.put("train", repeat, seconds=Quantity(busy, 1e-6))
    saved = {
        (phase, key): entry
        for epoch in (times[0].values() if times else ())
        for phase, begin in (("checkpoint", "save_ckpt"), ("restore", "load_ckpt"))
        for key, entry in epoch.items()
        if key.startswith(begin)
    }
    for phase in {phase for phase, _ in saved}:
        run.phases.pop((phase, 0))
    for (phase, key), entry in saved.items():
        spans = [long(part) for own in times for parts in own.values() for name, part in parts.items() if name == key]
        run.put(
            phase,
            int(key.partition("ckpt")[2]),
            bytes_per_second=Quantity(entry["throughput"] * 2**30, 1e-9),
            seconds=Quantity(max(spans), 1e-6),
        )
    return Reading("dlio", "directory", [run])


def _ycsb(path: Path, text: str) -> Reading | None:
    del path
    if not re.search(r"^\[OVERALL\], (RunTime|Throughput)", text, re.M):
        return None
    values = {(a, b): float(c) for a, b, c in re.findall(r"^\[([^\]]+)\], ([^,]+), ([\d.E+-]+)\s*$", text, re.M)}
    run = Printed()
    if found := re.search(r"-threads (\d+)", text):
        run.ranks = int(found[1])
    name = "load" if re.search(r"\s-load\b", text) else "run"
    run.put(name, 0, seconds=values["OVERALL", "RunTime(ms)"] / 1000, rate=values["OVERALL", "Throughput(ops/sec)"])
    for kind, op in (("READ", "read"), ("UPDATE", "update"), ("INSERT", "create"), ("SCAN", "scan")):
        if ("" + kind, "Operations") in values:
            run.put(name, 0, **{f"latency__{op}__count": values[kind, "Operations"], f"latency__{op}__mean": Quantity(
                values[kind, "AverageLatency(us)"] * 1e-6, 1e-9),
                f"latency__{op}__max": Quantity(values[kind, "MaxLatency(us)"] * 1e-6)})  # fmt: skip
    return Reading("ycsb", "text", [run])


def _rados(path: Path, text: str) -> Reading | None:
    del path
    if not re.search(r"^Maintaining (\d+) concurrent|^Total time run", text, re.M):
        return None
    if "Total time run" not in text:
        return Reading("rados", refusal="truncated")
    run = Printed(int(re.search(r"^Maintaining (\d+) concurrent", text, re.M)[1]))
    value = lambda name: float(re.search(rf"^{name}:?\s+([\d.]+)", text, re.M)[1])  # noqa: E731
    kind = re.search(r"^Total (\w+) made", text, re.M)[1]
    op, name = ("create", "write") if kind.startswith("write") else ("read", "read")
    seconds, count = value("Total time run"), value(f"Total {kind} made")
    run.put(name, 0, seconds=seconds, operations=count, rate=Quantity(count / seconds, 1e-6), **{
        f"latency__{op}__mean": value(r"Average Latency\(s\)"), f"latency__{op}__max": value(r"Max latency\(s\)"),
        f"latency__{op}__min": value(r"Min latency\(s\)"),
        "bytes_per_second": Quantity(value(r"Bandwidth \(MB/sec\)") * 2**20, 1e-3)})  # fmt: skip
    return Reading("rados", "text", [run])


def _filebench(path: Path, text: str) -> Reading | None:
    del path
    if "IO Summary" not in text or "Per-Operation Breakdown" not in text:
        return Reading("filebench", refusal="truncated") if re.search(r"^Filebench Version", text, re.M) else None
    versions = re.findall(r"^Filebench Version (\S+)", text, re.M)
    reading = Reading("filebench", versions[0] if versions else "")
    began = 0
    for part in re.finditer(r"IO Summary:\s+(\d+) ops,?\s+([\d.]+) ops/s", text):
        threads = re.findall(r"Starting (\d+) \S+ threads", text[began : part.start()])
        run = Printed(sum(map(int, threads)) or None, nodes=1)
        began = part.end()
        run.put(
            "benchmark",
            0,
            operations=float(part[1]),
            rate=float(part[2]),
            seconds=Quantity(int(part[1]) / float(part[2]), 1e-4),
        )
        reading.runs.append(run)
    return reading


def _warp(path: Path, text: str) -> Reading | None:
    del path
    if '"by_op_type"' not in text or '"commandline"' not in text:
        return None
    document = json.loads(text)
    run = Printed(
        document["total"]["concurrency"] * len(document["total"]["clients"]), len(document["total"]["clients"])
    )
    for name, part in document["by_op_type"].items():
        through = part["throughput"]
        seconds = through["measure_duration_millis"] / 1000
        if not seconds:  # what prepared the others
            continue
        run.put(
            name.lower(),
            0,
            seconds=seconds,
            operations=float(through["ops"]),
            rate=Quantity(through["ops"] / seconds, 1e-6),
            bytes=Quantity(through["bytes"], 1e-6),
            bytes_per_second=Quantity(through["bytes"] / seconds, 1e-6),
            errors=float(through["errors"]),
        )
    return Reading("warp", "JSON", [run])


def _dd(path: Path, text: str) -> Reading | None:
    del path
    results = re.findall(r"^(\d+) bytes \(.*?\) copied, ([\d.e-]+) s,", text, re.M)
    if not results or not re.search(r"^\d+\+\d+ records out", text, re.M):
        return None
    run = Printed(1, 1)
    size, seconds = float(results[-1][0]), float(results[-1][1])
    records = re.findall(r"^(\d+)\+(\d+) records out", text, re.M)[-1]
    count = int(records[0]) + int(records[1])
    run.put(
        "copy", 0, bytes=size, seconds=seconds, operations=float(count), bytes_per_second=Quantity(size / seconds, 1e-6)
    )
    return Reading("dd", "text", [run])


def _fs_mark(path: Path, text: str) -> Reading | None:
    del path
    if "FSUse%" not in text or "fs_mark" not in text:
        return None
    run, before = Printed(int(re.search(r"(\d+) thread\(s\) starting", text)[1]), 1), 0
    rows = re.findall(r"^\s*\d+%?\s+(\d+)\s+\d+\s+([\d.]+)\s", text, re.M)
    for number, (count, rate) in enumerate(rows, start=1):
        files, before = int(count) - before, int(count)
        run.put(
            "create",
            number if len(rows) > 1 else 0,
            operations=float(files),
            rate=float(rate),
            seconds=Quantity(files / float(rate), 1e-6),
        )
    return Reading("fs_mark", "", [run])


def _postmark(path: Path, text: str) -> Reading | None:
    del path
    if "seconds of transactions" not in text:
        return None
    run = Printed(1, 1)
    value = lambda pattern: float(re.findall(pattern, text)[-1])  # noqa: E731
    run.put(
        "precreate", 0, operations=value(r"Creation alone: (\d+)"), rate=value(r"Creation alone: \d+ files \((\d+)")
    )
    run.put("cleanup", 0, operations=value(r"Deletion alone: (\d+)"), rate=value(r"Deletion alone: \d+ files \((\d+)"))
    mixed = sum(float(n) for n in re.findall(r"Mixed with transactions: (\d+)", text))
    done = mixed + value(r"(\d+) read \(") + value(r"(\d+) appended \(")
    run.put("benchmark", 0, seconds=value(r"(\d+) seconds of transactions"), operations=done)
    return Reading("postmark", "", [run])


def _latencies(path: Path, text: str) -> Reading | None:
    if not text.startswith("time,runtime\n"):
        return None
    values = [float(line.split(",")[1]) for line in text.splitlines()[1:]]
    word = re.search(r"-(precreate|cleanup|create|read|stat|delete)(?:-all)?(?:-\d+)?\.csv$", path.name)[1]
    name, repeat = (word, 0) if word in ("precreate", "cleanup") else ("benchmark", 1)
    op = {"precreate": "create", "cleanup": "unlink", "delete": "unlink"}.get(word, word)
    run = Printed()
    run.put(name, repeat, operations=float(len(values)), **{
        f"latency__{op}__mean": Quantity(sum(values) / len(values), 1e-5),
        f"latency__{op}__max": Quantity(max(values), 1e-5)})  # fmt: skip
    return Reading("md-workbench", "latency files", [run])


def _table(path: Path, text: str) -> Reading | None:
    del path
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    names = lines[0].split(",") if lines else []
    if "rate" not in names or len({"nodes", "ppn", "ranks"} & set(names)) < 2:
        return None
    reading = Reading("table")
    for row in csv.DictReader(lines):
        ranks = int(row["ranks"]) if row.get("ranks") else int(row["nodes"]) * int(row["ppn"])
        run = Printed(ranks, int(row["nodes"]) if row.get("nodes") else None)
        run.put(row.get("phase") or row.get("operation") or "benchmark", 0, rate=float(row["rate"]))
        reading.runs.append(run)
    return reading


def _trainings(path: Path, text: str) -> Reading | None:
    """Rows of trainings whose columns are those of the project's sample."""
    del path
    lines = text.splitlines()
    if not lines or not {"accelerators", "MB_per_second", "utilisation_percent"} <= set(lines[0].split(",")):
        return None
    reading = Reading("training-table")
    for row in csv.DictReader(lines):
        run = Printed(int(row["accelerators"]), int(row["hosts"]))
        run.put(
            "train", 0, bytes_per_second=Quantity(2**20 * float(row["MB_per_second"]), 1e-6),
            accelerators__utilisation_after_first_step=Quantity(float(row["utilisation_percent"]) / 100, 1e-9),
        )  # fmt: skip
        reading.runs.append(run)
    return reading


def _nfs(path: Path, text: str) -> Reading | None:
    """Of one mount: its last snapshot less the first, or all since it was mounted."""
    del path
    if " with fstype nfs" not in text:
        return None
    words = {"READ": "pread", "WRITE": "pwrite", "COMMIT": "fsync", "GETATTR": "stat"}
    ages = [int(age) for age in re.findall(r"^\s*age:\s+(\d+)", text, re.M)]
    shots = text.split("per-op statistics")[1:]
    rows = [{m[1]: int(m[2]) for m in re.finditer(r"^\s*([A-Z_]+): (\d+) ", shot, re.M)} for shot in shots]
    first = rows[0] if len(rows) > 1 else {}
    seconds = ages[-1] - ages[0] if len(ages) > 1 else ages[0]
    counts = {words.get(op, op.lower()): count - first.get(op, 0) for op, count in rows[-1].items()}
    total, run = sum(counts.values()), Printed()
    for op, count in counts.items():
        if count:
            run.put("observed", 0, **{f"latency__{op}__count": float(count)})
    run.put("observed", 0, operations=float(total), seconds=float(seconds), rate=Quantity(total / seconds, 1e-9))
    return Reading("nfs", "mountstats", [run])


def _sysbench(path: Path, text: str) -> Reading | None:
    del path
    if "File operations:" not in text or "General statistics:" not in text:
        return None
    value = lambda name: float(re.search(rf"^\s+{name}:\s+([\d.]+)", text, re.M)[1])  # noqa: E731
    if "execution time (avg/stddev)" not in text:
        return Reading("sysbench", refusal="truncated")
    run, seconds = Printed(int(re.search(r"^Number of threads: (\d+)", text, re.M)[1]), 1), value("total time")
    run.put(
        "benchmark",
        0,
        seconds=seconds,
        operations=value("total number of events"),
        rate=Quantity(value("total number of events") / seconds, 1e-6),
        bytes_per_second=Quantity((value("read, MiB/s") + value("written, MiB/s")) * 2**20, 1e-9),
    )
    return Reading("sysbench", "fileio", [run])


def _pgbench(path: Path, text: str) -> Reading | None:
    del path
    if "number of transactions actually processed" not in text:
        return None
    tps = re.search(
        r"^tps = ([\d.]+) \((?:without initial connection time|excluding connections establishing)\)", text, re.M
    )
    if not tps:
        return Reading("pgbench", refusal="truncated")
    run = Printed(int(re.search(r"^number of clients: (\d+)", text, re.M)[1]), 1)
    run.put(
        "benchmark",
        0,
        rate=float(tps[1]),
        operations=float(re.search(r"actually processed: (\d+)", text)[1]),
        latency__transaction__mean=Quantity(
            float(re.search(r"^latency average = ([\d.]+) ms", text, re.M)[1]) / 1000, 1e-9
        ),
    )
    return Reading("pgbench", "", [run])


def _smallfile(path: Path, text: str) -> Reading | None:
    del path
    if not re.search(r"^total threads = \d+", text, re.M) or "files/sec" not in text:
        return None
    value = lambda name: float(re.search(rf"^{name} =\s+([\d.]+)", text, re.M)[1])  # noqa: E731
    run = Printed(int(value("total threads")), len(set(re.findall(r"^host = (\S+?),", text, re.M))) or None)
    name = re.search(r"^\s*operation : (\S+)", text, re.M)[1]
    run.put(
        name,
        0,
        operations=value("total files"),
        seconds=value("elapsed time"),
        rate=value("files/sec"),
        bytes_per_second=value("MiB/sec") * 2**20,
    )
    return Reading("smallfile", "", [run])


def _iozone(path: Path, text: str) -> Reading | None:
    del path
    seen = re.findall(r"Children see throughput for\s+(\d+) (.*?)\s*=\s*([\d.]+) kB/sec", text)
    if not seen:
        return None
    if "iozone test complete" not in text:
        return Reading("iozone", refusal="truncated")
    run = Printed(int(seen[0][0]))
    names = {"initial writers": "write", "readers": "read", "rewriters": "rewrite", "re-readers": "reread"}
    for _, words, value in seen:
        run.put(names.get(words, words.replace(" ", "-")), 0, bytes_per_second=float(value) * 1024)
    return Reading("iozone", "throughput", [run])


def _hacc(path: Path, text: str) -> Reading | None:
    del path
    results = re.findall(r"(Checkpoint|Restart) Perf: (\S+) BW\[MB/s\] (\d+) Bytes (\S+) MaxTime", text)
    if not results:
        return None
    run = Printed()
    for name, bandwidth, size, seconds in results:
        run.put(name.lower(), 0, bytes_per_second=float(bandwidth) * 2**20, bytes=float(size), seconds=float(seconds))
    return Reading("hacc", "", [run])


NO_REQUESTS = re.compile(r"req_\w+|open(count|closetime)|getxattr_hits|hybrid_\w+")


def _lustre(path: Path, text: str) -> Reading | None:
    """Of each parameter the last snapshot less the first, or all since elapsed_time."""
    del path
    if "snapshot_time" not in text or "samples" not in text:
        return None
    version = "job_stats" if "job_stats" in text else "md_stats"
    names = re.split(r"^([A-Za-z][\w.@:-]+\.\w+)=", text, flags=re.M)
    of_names = [
        body
        for name, body in zip(names[1::2], names[2::2], strict=True)
        if name.rpartition(".")[2] in ("stats", "md_stats", "job_stats")
    ]
    runs = [_lustre_run(body) for body in of_names or [text]]
    if any(run is None for run in runs):
        return Reading("lustre", refusal="no rate in it")
    return Reading("lustre", version, [run for run in runs if run is not None and run.phases])


def _lustre_run(text: str) -> Printed | None:
    """Of one parameter; without phases where no request was counted, None without a time."""
    words = {"getattr": "stat", "read": "pread", "write": "pwrite", "mknod": "create", "sync": "fsync"}
    parts = re.split(r"^\s*snapshot_time:?\s+([\d.]+).*$", text, flags=re.M)
    times, bodies = [float(t) for t in parts[1::2]], parts[2::2]
    sample = r"^\s*(\w+):?\s+(?:\{ samples:\s*)?(\d+)(?:,| samples) (?:unit:\s*|\[)(\w+)"
    counts = [
        {words.get(m[1], m[1]): int(m[2]) for m in re.finditer(sample, body, re.M)
         if m[3] in ("reqs", "usec", "usecs") and not NO_REQUESTS.fullmatch(m[1])}
        for body in bodies
    ]  # fmt: skip
    elapsed = re.search(r"^\s*elapsed_time:?\s+([\d.]+)", text, re.M)
    if len(times) < 2 and not elapsed:
        return None
    seconds = times[-1] - times[0] if len(times) > 1 else float(elapsed[1])
    first = counts[0] if len(times) > 1 else {}
    run, total = Printed(), 0
    for op, count in counts[-1].items():
        total += count - first.get(op, 0)
        if count - first.get(op, 0):
            run.put("observed", 0, **{f"latency__{op}__count": float(count - first.get(op, 0))})
    if total:
        run.put(
            "observed", 0, operations=float(total), seconds=Quantity(seconds, 1e-9),
            rate=Quantity(total / seconds, 1e-9),
        )  # fmt: skip
    return run


def _db_bench(path: Path, text: str) -> Reading | None:
    del path
    results = re.findall(
        r"^(\w+)\s+:\s+[\d.]+ micros/op\s+(\d+) ops/sec(?:\s+([\d.]+) seconds (\d+) operations)?", text, re.M
    )
    if not results:
        return None
    run = Printed(nodes=1)
    for name, rate, seconds, count in results:
        run.put(name, 0, rate=float(rate))
        if seconds:
            run.put(name, 0, seconds=float(seconds), operations=float(count))
    return Reading("db_bench", "", [run])
