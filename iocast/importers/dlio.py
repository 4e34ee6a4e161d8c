# SPDX-License-Identifier: Apache-2.0
"""MLPerf Storage and DLIO: the output directory of a run of training or checkpoints, or its summary.json alone.

Each epoch is a repeat of the phase `train`; its rate is samples a second of all accelerators, an operation one sample
read. DLIO's MB are 2^20 bytes, and its bandwidth is samples a second times a mean sample's size. An accelerator is a
rank: a process that reads and then sleeps as long as the accelerator would compute. Its utilisation is the share of the
time after the first step in which it did (train_au_percentage). The summary does not name what was trained; where the
size of a sample and the rate are those of one task of the benchmark, the record does. The parameter `sample_size` is
that mean size, to four digits; a directory's outputs add `batch` and `compute_time`, the computation of a step.

Checkpoints are the phases `checkpoint` and `restore`, each the mean of all that the run wrote or read: seconds, and
bytes a second of all accelerators. Their GB are 2^30 bytes (rules of MLPerf Storage 3.0, 4.3.6).

A directory adds what single accelerators wrote, and times of epochs and of each checkpoint: dlio_ranks.py. A `load` of
a phase is the wait of an accelerator for a batch.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from iocast.errors import InputError
from iocast.importers import Importer, dlio_ranks
from iocast.importers.record import Phase, Record
from iocast.importers.source import Source
from iocast.training.tasks import TASKS, Task

CHECKPOINTS = {"checkpoint": "save_checkpoint", "restore": "load_checkpoint"}
"""Phases, and how DLIO's numbers of them begin."""

KEPT = ("num_files_train", "num_files_eval", "num_samples_per_file", "epochs", "data_size_per_host_GB")


OF_2023 = {
    "num_procs": "num_accelerators",
    "train_auu": "train_au_percentage",
    "train_throughput": "train_throughput_samples_per_second",
    "train_throughput_mean": "train_throughput_mean_samples_per_second",
    "train_io_mean": "train_io_mean_MB_per_second",
}
"""Keys of the first summaries, of March 2023, and how they are called since."""


def recognises(source: Source) -> bool:
    if source.is_directory:
        return dlio_ranks.is_package(source.path)
    head = source.head.lstrip()
    whole = ('"num_accelerators"' in head or '"num_procs"' in head) and '"metric"' in head
    return head.startswith("{") and (whole or dlio_ranks.is_output(source))


def read(sources: Sequence[Source]) -> list[Record]:
    return [_read_directory(source) if source.is_directory else _read_one(source) for source in sources]


def _line(source: Source, key: str) -> int:
    old = next((one for one, new in OF_2023.items() if new == key), key)
    return next((n for n, line in source.numbered if f'"{key}"' in line or f'"{old}"' in line), 1)


def _read_directory(source: Source) -> Record:
    """@raises InputError for outputs of several runs, and for those of some accelerators without a summary"""
    directory = source.path
    named = dlio_ranks.named(directory, dlio_ranks.SUMMARY)
    summaries = [one for one in named if '"metric"' in one.head]
    if len(summaries) > 1:
        raise summaries[1].refuse(1, f"{summaries[0].path.name} is there, too: two runs wrote into {directory}")
    outputs = dlio_ranks.outputs_of(directory) if not summaries or _trains(summaries[0]) else {}
    if summaries:
        record = _read_one(summaries[0])
        if outputs and not dlio_ranks.require_one_run(record, summaries[0], outputs):
            outputs = {}
    elif outputs:
        dlio_ranks.require_all(outputs, directory)
        record = Record("dlio", "DLIO", dlio_ranks.train_phases(outputs), pattern="dlio", ranks=len(outputs))
        record.origin["ranks"] = f"{directory} (outputs of accelerators)"
        record.missing |= MISSING | {
            "phases[].bytes_per_second": "Without DLIO's summary, the size of a sample is not known."
        }
    else:
        raise InputError(f"{directory}: no summary.json and no N_output.json in it has a result of DLIO.")
    if named and not summaries:
        record.warnings.append(
            f"{named[0].path.name} has no results ('metric'), and counts as absent: the run may have ended early. The "
            "numbers here are those of the accelerators' outputs."
        )
    record.sources = [source]
    dlio_ranks.add_times(record, directory)
    if outputs:
        dlio_ranks.add_outputs(record, outputs)
    dlio_ranks.add_metadata(record, directory)
    _settle_missing(record)
    return record


def _trains(summary: Source) -> bool:
    return '"train_throughput' in summary.head


def _settle_missing(record: Record) -> None:
    """Leaves out the reasons of numbers that the directory has."""
    if all(phase.operations for phase in record.phases):
        record.missing.pop("phases[].operations", None)
    for phase in record.phases:
        if phase.rate is None and not phase.bytes_per_second and phase.operations and phase.seconds:
            phase.rate = phase.operations / phase.seconds
            record.missing["phases[].accelerators.samples_per_second"] = (
                "DLIO's outputs of 2022 do not say how many samples a step has; an operation is a step."
            )


MISSING = {
    "command": "DLIO's summary does not name the command, nor the model that was trained.",
    "phases[].operations": "DLIO's summary has rates; how many samples an epoch took, or files a checkpoint has, "
    "is not in it.",
    "phases[].errors": "DLIO ends at the first failed operation.",
}


def _read_one(source: Source) -> Record:
    if dlio_ranks.is_output(source):
        raise source.refuse(
            1, "this is the output of one accelerator; name the directory, which has those of all of its run"
        )
    document: dict[str, Any] = source.json_values()[0][1]
    document |= {new: document[old] for old, new in OF_2023.items() if old in document}
    metric = document.get("metric") or {}
    metric |= {new: metric[old] for old, new in OF_2023.items() if old in metric}
    rates, at = metric.get("train_throughput_samples_per_second"), _line(source, "train_throughput_samples_per_second")
    saved = [name for name, key in CHECKPOINTS.items() if f"{key}_io_mean_GB_per_second" in metric]
    if not rates and not saved:
        raise source.refuse(
            _line(source, "metric"),
            "there is no throughput of training in it (train_throughput_samples_per_second), nor of checkpoints "
            "(save_checkpoint_io_mean_GB_per_second)",
        )
    rates = rates or []
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
    task = _recognised(size, float(rates[0]), record.ranks or 1, shares) if rates else None
    for epoch, rate in enumerate(rates, start=1):
        phase = Phase("train", epoch if len(rates) > 1 else 0, rate=float(rate), origin={"": source.at(at + epoch)})
        if size:
            phase.bytes_per_second = rate * size
            reported = source.at(_line(source, "train_io_mean_MB_per_second"))
            phase.origin["bytes_per_second"] = (
                f"{source.at(at + epoch)} x {reported} / "
                f"{source.at(_line(source, 'train_throughput_mean_samples_per_second'))}"
            )
        share = shares[epoch - 1] / 100 if epoch <= len(shares) else None
        if share is not None and not 0 <= share <= 1:
            raise source.refuse(
                _line(source, "train_au_percentage") + epoch,
                f"the utilisation of an epoch is {100 * share:g} %; it is 0 to 100 %",
            )
        if share is not None:
            phase.origin["accelerators.utilisation_after_first_step"] = source.at(
                _line(source, "train_au_percentage") + epoch
            )
        phase.origin["accelerators.count"] = record.origin["ranks"]
        phase.origin["accelerators.bytes_per_second"] = phase.origin.get("bytes_per_second", "")
        phase.more["accelerators"] = accelerators_of(
            record.ranks or 1, share, float(rate), phase.bytes_per_second, task
        )
        if task:
            phase.origin["accelerators.utilisation"] = f"{source.at(at + epoch)} x time of a step of {task.workload}"
        record.phases.append(phase)
    record.phases += [_checkpoint(source, name, metric, record) for name in saved]
    record.parameters = {key: document[key] for key in KEPT if isinstance(document.get(key), int | float)}
    if rates:
        record.parameters["repeats"] = record.parameters.pop("epochs", len(rates))
    if task:
        record.parameters |= {"workload": task.workload, "accelerator": task.accelerator}
    record.origin |= {f"parameters.{key}": source.at(_line(source, key)) for key in KEPT}
    if size:
        record.parameters["sample_size"] = int(float(f"{size:.4g}"))
        record.origin["parameters.sample_size"] = (
            f"{source.at(_line(source, 'train_io_mean_MB_per_second'))} / "
            f"{source.at(_line(source, 'train_throughput_mean_samples_per_second'))}"
        )
    record.environment = {"hosts": [document["hostname"]]} if document.get("hostname") else None
    if not record.environment:
        record.missing["environment"] = "DLIO's summary does not name its hosts."
    record.facts = {
        key: metric[key]
        for key in (
            "train_au_mean_percentage",
            "train_au_meet_expectation",
            "train_io_mean_MB_per_second",
            "checkpoint_size_GB",
        )
        if key in metric
    }
    if rates:
        record.warnings.append(
            "Accelerators compute between reads, so rates are the demand of the training, not the capacity of the "
            "storage."
        )
        _warn_of_caches(source, record, document, rates)
    record.missing |= MISSING
    if rates:
        record.missing["phases[].seconds"] = (
            "DLIO's summary has the start and the end of the whole run; per_epoch_stats.json has times of epochs."
        )
    return record


def _checkpoint(source: Source, name: str, metric: dict[str, Any], record: Record) -> Phase:
    rate, duration = (f"{CHECKPOINTS[name]}_{key}" for key in ("io_mean_GB_per_second", "duration_mean_seconds"))
    phase = Phase(name, bytes_per_second=metric[rate] * 2**30, seconds=metric.get(duration))
    at = source.at(_line(source, rate))
    phase.origin = {"bytes_per_second": at, "seconds": source.at(_line(source, duration))}
    phase.origin |= {"accelerators.count": record.origin["ranks"], "accelerators.bytes_per_second": at}
    phase.more["accelerators"] = {"count": record.ranks, "bytes_per_second": phase.bytes_per_second}
    return phase


def accelerators_of(
    count: int, share: float | None, samples: float | None, moved: float | None, task: Task | None
) -> dict[str, Any]:
    """The key `accelerators` of a phase: see records.run.Accelerators."""
    if samples is None and moved is not None and task:
        samples = moved / task.sample_bytes
    found = {
        "count": count,
        "utilisation": samples / (count * task.samples_per_second) if task and samples else None,
        "utilisation_after_first_step": share,
        "samples_per_second": samples,
        "bytes_per_second": moved,
    }
    return {key: value for key, value in found.items() if value is not None}


SAME_SIZE, SLOWEST_START = 0.02, 0.7
"""Share by which a sample's size may differ from a task's, and the lowest share of the rate that its accelerators would
have by their utilisation: an epoch is longer than its steps."""


def _recognised(size: float | None, rate: float, count: int, shares: Sequence[float]) -> Task | None:
    """The task of the benchmark with this sample size, and the rate by this utilisation."""
    if not size or not shares or not shares[0]:
        return None
    own = rate / count / (shares[0] / 100)
    return next(
        (
            one
            for one in TASKS
            if abs(size / one.sample_bytes - 1) < SAME_SIZE and SLOWEST_START < own / one.samples_per_second < 1.05
        ),
        None,
    )


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
    "results of MLPerf Storage and DLIO",
    "the output directory of a run, or its summary.json",
    recognises,
    read,
    begins=re.compile(r"^\{"),
    ends=re.compile('"metric"'),
)
