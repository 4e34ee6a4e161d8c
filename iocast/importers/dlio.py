# SPDX-License-Identifier: Apache-2.0
"""MLPerf Storage and DLIO: summary.json of a training run.

Each epoch is a repeat of the phase `train`; its rate is samples a second of all accelerators, an operation one sample
read. DLIO's MB are 2^20 bytes, and its bandwidth is samples a second times a mean sample's size. An accelerator is a
rank: a process that reads and then sleeps as long as the accelerator would compute (accelerator_utilisation tells for
what share of the time it did).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from iocast.importers import Importer
from iocast.importers.record import Phase, Record
from iocast.importers.source import Source

KEPT = ("num_files_train", "num_files_eval", "num_samples_per_file", "epochs", "data_size_per_host_GB")


def recognises(source: Source) -> bool:
    return source.head.lstrip().startswith("{") and '"num_accelerators"' in source.head and '"metric"' in source.head


def read(sources: Sequence[Source]) -> list[Record]:
    return [_read_one(source) for source in sources]


def _line(source: Source, key: str) -> int:
    return next((n for n, line in source.numbered if f'"{key}"' in line), 1)


def _read_one(source: Source) -> Record:
    document: dict[str, Any] = source.json_values()[0][1]
    metric = document.get("metric") or {}
    rates, at = metric.get("train_throughput_samples_per_second"), _line(source, "train_throughput_samples_per_second")
    if not rates:
        raise source.refuse(
            _line(source, "metric"), "there is no throughput of training in it (train_throughput_samples_per_second)"
        )
    mean, bandwidth = metric.get("train_throughput_mean_samples_per_second"), metric.get("train_io_mean_MB_per_second")
    size = bandwidth * 2**20 / mean if mean and bandwidth else None
    shares = metric.get("train_au_percentage") or []
    record = Record(
        "dlio",
        "DLIO",
        [],
        pattern="dlio",
        ranks=int(document["num_accelerators"]),
        nodes=int(document.get("num_hosts") or 0) or None,
    )
    record.started = document.get("start")
    record.origin = {
        "ranks": source.at(_line(source, "num_accelerators")),
        "nodes": source.at(_line(source, "num_hosts")),
    }
    for epoch, rate in enumerate(rates, start=1):
        phase = Phase("train", epoch if len(rates) > 1 else 0, rate=float(rate), origin={"": source.at(at + epoch)})
        if size:
            phase.bytes_per_second = rate * size
            reported = source.at(_line(source, "train_io_mean_MB_per_second"))
            phase.origin["bytes_per_second"] = (
                f"{source.at(at + epoch)} x {reported} / "
                f"{source.at(_line(source, 'train_throughput_mean_samples_per_second'))}"
            )
        if epoch <= len(shares):
            phase.more["accelerator_utilisation"] = shares[epoch - 1] / 100
            phase.origin["accelerator_utilisation"] = source.at(_line(source, "train_au_percentage") + epoch)
        record.phases.append(phase)
    record.parameters = {key: document[key] for key in KEPT if isinstance(document.get(key), int | float)}
    record.parameters["repeats"] = record.parameters.pop("epochs", len(rates))
    record.origin |= {f"parameters.{key}": source.at(_line(source, key)) for key in KEPT}
    record.environment = {"hosts": [document["hostname"]]} if document.get("hostname") else None
    if not record.environment:
        record.missing["environment"] = "DLIO's summary does not name its hosts."
    record.facts = {
        key: metric[key]
        for key in ("train_au_mean_percentage", "train_au_meet_expectation", "train_io_mean_MB_per_second")
        if key in metric
    }
    record.warnings.append(
        "Accelerators compute between reads, so rates are the demand of the training, not the capacity of the storage."
    )
    _warn_of_caches(source, record, document, rates)
    record.missing |= {
        "command": "DLIO's summary does not name the command, nor the model that was trained.",
        "phases[].operations": "DLIO's summary has rates; how many samples an epoch took is not in it.",
        "phases[].seconds": "DLIO's summary has the start and the end of the whole run; per_epoch_stats.json has times "
        "of epochs.",
        "phases[].latency.*": "DLIO's summary has no latencies.",
        "phases[].errors": "DLIO ends at the first failed operation.",
        "phases[].rank_seconds": "DLIO's summary has no times of single accelerators.",
        "phases[].timeline": "DLIO's summary has no time line.",
        "phases[].slowest": "DLIO's summary has no single operations.",
        "seed": "DLIO's summary does not name it.",
    }
    return record


def _warn_of_caches(source: Source, record: Record, document: dict[str, Any], rates: list[float]) -> None:
    """Where DLIO itself says so, or a host's memory holds its part of the data."""
    size = float(document.get("data_size_per_host_GB") or 0)
    memory = document.get("host_memory_GB") or []
    least = min((float(one) for one in memory), default=0.0) if isinstance(memory, list) else float(memory)
    flag = document.get("potential_caching")
    if any(flag) if isinstance(flag, list) else bool(flag):
        why = f"{source.at(_line(source, 'potential_caching'))}: DLIO says potential_caching"
    elif size and least and size < least:
        why = f"{source.at(_line(source, 'host_memory_GB'))}: a host's memory is larger than its data"
    else:
        return
    amounts = f" ({size:g} GB of data a host, {least:g} GB of memory)" if size and least else ""
    first = f" The first epoch had {rates[0]:g} samples/s, the last one {rates[-1]:g}." if len(rates) > 1 else ""
    record.warnings.append(f"{why}{amounts}: epochs after the first one may read from the hosts' caches.{first}")


IMPORTER = Importer(
    "dlio",
    "summary.json of MLPerf Storage and DLIO",
    "the file summary.json of a run",
    recognises,
    read,
    begins=re.compile(r"^\{"),
    ends=re.compile('"metric"'),
)
