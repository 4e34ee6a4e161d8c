# SPDX-License-Identifier: Apache-2.0
"""Darshan logs: the counters of POSIX and the segments of DXT, by Darshan's own library."""

from __future__ import annotations

from pathlib import Path

from . import Printed, Reading

LEFT_OUT = ("/dev/", "/proc/", "/sys/", "<")


def read(path: Path) -> Reading | None:
    """None when the file is no log."""
    head = path.read_bytes()[:16]
    if (
        len(head) < 16
        or head[1:2] != b"."
        or 6567223 not in (int.from_bytes(head[8:16], "little"), int.from_bytes(head[8:16], "big"))
    ):
        return None
    import darshan.backend.cffi_backend as backend

    reading = Reading("darshan", head[:5].split(b"\0")[0].decode())
    try:
        log = backend.log_open(str(path))
        job, modules, names = backend.log_get_job(log), backend.log_get_modules(log), backend.log_get_name_records(log)
        counters = []
        if "POSIX" in modules:
            while (record := backend.log_get_record(log, "POSIX", dtype="dict")) is not None:
                counters.append(record)
        segments, partial = [], bool(modules.get("DXT_POSIX", {}).get("partial_flag"))
        if "DXT_POSIX" in modules:
            while (record := backend.log_get_record(log, "DXT_POSIX", dtype="dict")) is not None:
                segments.append(record)
        backend.log_close(log)
    except (RuntimeError, ValueError, KeyError, OSError) as error:
        reading.refusal = f"the library can't read it ({error})"
        return reading
    wanted = [r for r in counters if not str(names.get(r["id"], "")).startswith(LEFT_OUT)]
    reads = sum(max(0, r["counters"]["POSIX_READS"]) for r in wanted)
    writes = sum(max(0, r["counters"]["POSIX_WRITES"]) for r in wanted)
    if reads + writes + sum(max(0, r["counters"]["POSIX_STATS"]) for r in wanted) == 0:
        reading.refusal = "no reads, writes or stats of the module POSIX"
        return reading
    run = Printed(int(job["nprocs"]))
    traced = sum(r["read_count"] for r in segments), sum(r["write_count"] for r in segments)
    run.put(
        "trace",
        0,
        reads=float(reads),
        writes=float(writes),
        bytes=float(
            sum(
                max(0, r["counters"]["POSIX_BYTES_READ"]) + max(0, r["counters"]["POSIX_BYTES_WRITTEN"]) for r in wanted
            )
        ),
    )
    if segments and (partial or traced[0] + traced[1] < reads + writes):
        reading.version += " partial DXT"
    elif segments:
        reading.version += " DXT"
    reading.runs.append(run)
    return reading
