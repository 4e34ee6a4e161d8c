# SPDX-License-Identifier: Apache-2.0
"""The output directory of a DLIO run: N_output.json of each accelerator, per_epoch_stats.json, summary.json.

Of every version of DLIO's statscounter.py: `N_load_and_proc_times.json` (2022: how long each step waited for its batch,
and took as a whole), `N_output.json` (since 2023: computation, utilisation and samples a second, too),
`per_epoch_stats.json` or one `N_per_epoch_stats.json` an accelerator (since 2025, with checkpoints' bytes a second). Of
mlpstorage `*_metadata.json` beside them, which names the model and the accelerator."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from statistics import fmean, median

from iocast.errors import InputError
from iocast.importers.record import Latency, Phase, Record
from iocast.importers.source import Source
from iocast.ground.strict import is_whole

OUTPUT = re.compile(r"(\d{1,7})_(?:output|load_and_proc_times)\.json")
STATS = re.compile(r"(?:(\d{1,7})_)?per_epoch_stats\.json")
SUMMARY = re.compile(r"(?:.*_)?summary\.json")
METADATA = re.compile(r".*_metadata\.json")
CHECKPOINTS = (("checkpoint", re.compile(r"(?:save_)?ckpt(\d+)")), ("restore", re.compile(r"load_ckpt(\d+)")))
"""Phases, and the names of their entries in per_epoch_stats.json."""
ANOTHER_RUN = 0.005
"""Utilisation by which the accelerators' own may differ from the summary's, of which it is the mean."""
WHOLE = 1e-4
"""Relative deviation from a whole number below which a size of a batch counts as one."""


@dataclass
class Steps:
    """One accelerator's steps of an epoch, in seconds. `utilisation` (after the first step) and `samples_per_second`:
    its mean over the parts between checkpoints, each by its steps, as DLIO weighs them; None in files of 2022."""

    waits: list[float] = field(default_factory=list)
    whole: list[float] = field(default_factory=list)
    compute: list[float] = field(default_factory=list)
    utilisation: float | None = None
    samples_per_second: float | None = None
    batch: int | None = None


@dataclass(frozen=True)
class Output:
    """What one accelerator wrote: its epochs, by number."""

    source: Source
    host: str | None
    epochs: dict[int, Steps]


def is_package(path: Path) -> bool:
    """Whether a directory is the output of one run: it has outputs of accelerators, or a summary with more beside."""
    names = [one.name for one in path.iterdir()] if path.is_dir() else []
    return any(map(OUTPUT.fullmatch, names)) or (
        any(map(SUMMARY.fullmatch, names)) and any(STATS.fullmatch(one) or METADATA.fullmatch(one) for one in names)
    )


def is_output(source: Source) -> bool:
    """Whether a file is the output of one accelerator."""
    head = source.head.lstrip()
    return head.startswith("{") and '"load"' in head and '"proc"' in head and '"metric"' not in head


def named(directory: Path, pattern: re.Pattern[str]) -> list[Source]:
    """Files of a directory whose names match, by the number in the name."""
    found = [(match, one) for one in directory.iterdir() if (match := pattern.fullmatch(one.name)) and one.is_file()]
    numbered = sorted(found, key=lambda one: (int(one[0][1] or 0) if pattern.groups else 0, one[1].name))
    return [Source(path) for _, path in numbered]


def outputs_of(directory: Path) -> dict[int, Output]:
    """What accelerators wrote, by their numbers.

    @raises InputError for a file that is damaged, and for outputs of different numbers of epochs"""
    found: dict[int, Output] = {}
    for source in named(directory, OUTPUT):
        match = OUTPUT.fullmatch(source.path.name)
        assert match is not None
        if int(match[1]) in found:
            raise source.refuse(
                1, f"accelerator {match[1]} has another output beside it: two runs wrote into {directory}"
            )
        found[int(match[1])] = _output(source)
    numbers = {len(one.epochs): one.source.path.name for one in found.values()}
    if len(numbers) > 1:
        (few, first), *_, (many, last) = sorted(numbers.items())
        raise InputError(
            f"{directory / first}:1: it has {few} epoch{'s' * (few != 1)}, {last} has {many}: two runs wrote into this "
            "directory, or this accelerator ended early."
        )
    return found


def _output(source: Source) -> Output:
    document: dict[str, object] = source.whole_json()
    if not isinstance(document, dict):
        raise source.refuse(1, "this is no output of an accelerator: a group of epochs is allowed there")
    epochs = {}
    for key, entry in document.items():
        if is_whole(key) and isinstance(entry, dict):
            if steps := _steps(source, key, entry):
                epochs[int(key)] = steps
    if not epochs:
        raise source.refuse(1, "no epoch in it has a step (load, proc): it holds checkpoints alone, or nothing")
    host = document.get("hostname")
    return Output(source, host if isinstance(host, str) else None, epochs)


def line_of(source: Source, key: str) -> int:
    """The first line with an entry of this name; 1 without one."""
    return next((number for number, line in source.numbered if f'"{key}"' in line), 1)


def _numbers(source: Source, epoch: str, name: str, value: object) -> list[float]:
    """Seconds of steps. @raises InputError for other values"""
    if isinstance(value, list) and all(type(one) in (int, float) and one >= 0 for one in value):
        return [float(one) for one in value]
    raise source.refuse(
        line_of(source, epoch), f"'{name}' of epoch {epoch} is no list of seconds; each step has one, 0 or more"
    )


def _steps(source: Source, epoch: str, entry: Mapping[str, dict[str, object]]) -> Steps | None:
    """The steps of an epoch; None where it has none.

    The first wait of a part after a checkpoint is lost in versions up to 2.0: they empty its list then."""
    steps, weights, shares, rates, batches = Steps(), [], [], [], []
    parts = entry.get("proc")
    if not isinstance(parts, dict) or not isinstance(entry.get("load"), dict):
        raise source.refuse(line_of(source, epoch), f"epoch {epoch} has no times of its steps (load, proc)")
    for part in parts:
        if not part.startswith("block"):
            continue
        whole, wait, compute = (
            _numbers(source, epoch, f"{name}.{part}", entry.get(name, {}).get(part, []))
            for name in ("proc", "load", "compute")
        )
        if compute and len(compute) != len(whole):
            raise source.refuse(
                line_of(source, epoch),
                f"{part} of epoch {epoch} has {len(whole)} steps (proc) and computes in {len(compute)} (compute)",
            )
        steps.whole += whole
        steps.waits += wait
        steps.compute += compute
        share, rate = (entry.get(name, {}).get(part) for name in ("au", "throughput"))
        if whole and isinstance(share, int | float) and isinstance(rate, int | float):
            weights.append(len(whole))
            shares.append(share / 100)
            rates.append(float(rate))
            batches.append(_batch(whole, compute, share / 100, rate))
    if not steps.whole:
        return None
    if weights:
        if not all(0 <= one <= 1 for one in shares):
            raise source.refuse(
                line_of(source, epoch), f"the utilisation of epoch {epoch} is {100 * max(shares):g} %; it is 0 to 100 %"
            )
        total = sum(weights)
        steps.utilisation = sum(w * one for w, one in zip(weights, shares, strict=True)) / total
        steps.samples_per_second = sum(w * one for w, one in zip(weights, rates, strict=True)) / total
        steps.batch = batches[0] if len(set(batches)) == 1 else None
    return steps


def _batch(whole: Sequence[float], compute: Sequence[float], share: float, rate: float) -> int | None:
    """Samples of a step, from the rate: steps x batch / time. The time follows from the utilisation, computation after
    the first step over the time after it; versions of 2025 leave out the time of the first step and count two steps
    less."""
    if not share or not rate or len(compute) < 3:
        return None
    later = sum(compute[1:]) / share
    for found in (rate * (later + whole[0]) / len(compute), rate * later / (len(compute) - 2)):
        if round(found) >= 1 and abs(found / round(found) - 1) < WHOLE:
            return round(found)
    return None


def add_outputs(record: Record, outputs: Mapping[int, Output]) -> None:
    """Adds to the phases `train` of a record what single accelerators wrote: steps' waits, computation, times."""
    for phase in record.phases:
        if phase.name == "train":
            _add_epoch(record, phase, outputs)
    every = [steps for one in outputs.values() for steps in one.epochs.values()]
    if len(batches := {steps.batch for steps in every}) == 1 and (batch := batches.pop()):
        record.parameters["batch"] = batch
        record.origin["parameters.batch"] = f"{_where(outputs, 'au')} (rate x time of a step)"
    if computed := [one for steps in every for one in steps.compute]:
        record.parameters["compute_time"] = float(f"{median(computed):.4g}")
        record.origin["parameters.compute_time"] = f"{_where(outputs, 'compute')} (median of all steps)"
    hosts = sorted({one.host for one in outputs.values() if one.host})
    if hosts:
        record.environment = {"hosts": hosts}
        if record.nodes is None:
            record.nodes, record.origin["nodes"] = len(hosts), f"{_where(outputs, 'hostname')} (different hosts)"


def _where(outputs: Mapping[int, Output], key: str) -> str:
    """Where a number of all accelerators comes from."""
    first = next(iter(outputs.values())).source
    more = f" and {len(outputs) - 1} other outputs" if len(outputs) > 1 else ""
    return f"{first.at(line_of(first, key))}{more}"


def _add_epoch(record: Record, phase: Phase, outputs: Mapping[int, Output]) -> None:
    epoch = sorted(next(iter(outputs.values())).epochs)[max(phase.repeat, 1) - 1]
    steps = [one.epochs[epoch] for one in outputs.values() if epoch in one.epochs]
    where = _where(outputs, str(epoch))
    waits = [one for own in steps for one in own.waits]
    if waits:
        phase.latency["load"] = Latency.of_values(waits)
        phase.origin["latency.load"] = phase.origin["by_operation"] = where
    phase.rank_seconds = [sum(own.whole) for own in steps]
    phase.origin["rank_seconds"] = where
    accelerators = phase.more.setdefault("accelerators", {"count": record.ranks})
    if all(own.compute for own in steps):
        accelerators["compute_seconds"] = sum(sum(own.compute) for own in steps)
        phase.origin["accelerators.compute_seconds"] = where
        if phase.seconds:
            accelerators["utilisation"] = min(1.0, accelerators["compute_seconds"] / (len(steps) * phase.seconds))
            phase.origin["accelerators.utilisation"] = f"{where} / {phase.origin['seconds']}"
    if len(batches := {own.batch for own in steps}) == 1 and (batch := batches.pop()):
        phase.operations = batch * sum(len(own.whole) for own in steps)
        phase.origin["operations"] = f"{where} (steps x batch, which follows from rate and utilisation)"


def train_phases(outputs: Mapping[int, Output]) -> list[Phase]:
    """Phases of a run whose directory has no summary: the sum of the accelerators' rates, the mean of their
    utilisation. Files of 2022 have neither; their phases count steps, and take what the slowest accelerator's took."""
    epochs = sorted(next(iter(outputs.values())).epochs)
    phases = []
    for number, epoch in enumerate(epochs, start=1):
        steps = [one.epochs[epoch] for one in outputs.values() if epoch in one.epochs]
        where = _where(outputs, str(epoch))
        phase = Phase("train", number if len(epochs) > 1 else 0, origin={"": where})
        accelerators: dict[str, float] = {"count": len(outputs)}
        if all(own.samples_per_second is not None for own in steps):
            phase.rate = sum(own.samples_per_second or 0 for own in steps)
            accelerators["samples_per_second"] = phase.rate
        else:
            phase.operations = sum(len(own.whole) for own in steps)
            phase.seconds = max(sum(own.whole) for own in steps)
        shares = [own.utilisation for own in steps]
        if all(shares):
            accelerators["utilisation_after_first_step"] = fmean(one for one in shares if one)
        phase.more["accelerators"] = accelerators
        phases.append(phase)
    return phases


def require_one_run(record: Record, summary: Source, outputs: Mapping[int, Output]) -> bool:
    """Whether the directory has the outputs of all accelerators of the summary; a warning where some are missing.

    @raises InputError for outputs of another run than the summary's"""
    count, directory = record.ranks or 0, summary.path.parent
    if max(outputs) >= count:
        raise InputError(
            f"{outputs[max(outputs)].source.path}:1: this is the output of accelerator {max(outputs)}, and "
            f"{summary.path.name} is of {count}, 0 to {count - 1}: two runs wrote into {directory}."
        )
    if missing := sorted(set(range(count)) - set(outputs)):
        record.warnings.append(
            f"{directory} lacks {missing[0]}_output.json{' and others' * (len(missing) > 1)}: outputs of "
            f"{count - len(missing)} of {count} accelerators are there, and times of single ones are left out."
        )
        return False
    epochs = len(next(iter(outputs.values())).epochs)
    trained = [phase for phase in record.phases if phase.name == "train"]
    if len(trained) != epochs:
        raise InputError(
            f"{summary.path}:1: it has {len(trained)} epoch{'s' * (len(trained) != 1)}, and the accelerators' outputs "
            f"have {epochs}: two runs wrote into {directory}."
        )
    for phase, again in zip(trained, train_phases(outputs), strict=True):
        theirs, own = (one.more["accelerators"].get("utilisation_after_first_step") for one in (phase, again))
        if theirs is not None and own is not None and abs(theirs - own) > ANOTHER_RUN:
            raise InputError(
                f"{phase.origin['accelerators.utilisation_after_first_step']}: the summary's utilisation is "
                f"{100 * theirs:.4g} %, and the mean of the accelerators' outputs {100 * own:.4g} %: they are of "
                "different runs."
            )
    return True


def require_all(outputs: Mapping[int, Output], directory: Path) -> None:
    """@raises InputError where an accelerator's output is missing below the last one"""
    if missing := sorted(set(range(max(outputs))) - set(outputs)):
        raise InputError(
            f"{directory}: {missing[0]}_output.json is missing, and {max(outputs)}_output.json is there. Without "
            "summary.json, a run is the outputs of all its accelerators."
        )


def add_times(record: Record, directory: Path) -> None:
    """Adds the times of epochs, and the phases `checkpoint` and `restore`, each repeat a checkpoint.

    @raises InputError for times of other epochs than the record has"""
    every = [(source, _epochs(source)) for source in named(directory, STATS)]
    if not every:
        return
    source, epochs = every[0]
    trained = [phase for phase in record.phases if phase.name == "train"]
    if trained and len(trained) != sum(any(part.startswith("block") for part in one) for one in epochs.values()):
        raise source.refuse(
            1,
            f"it has times of {len(epochs)} epoch{'s' * (len(epochs) != 1)}, and {len(trained)} were trained: two runs "
            f"wrote into {directory}",
        )
    began = min(_time(source, epoch, one["start"]) for epoch, one in epochs.items())
    if record.started is None:
        record.started = str(next(iter(epochs.values()))["start"])
    stalls: dict[str, tuple[float, float]] = {}
    for number, (epoch, one) in enumerate(epochs.items()):
        at = source.at(line_of(source, epoch))
        blocks = [_span(source, epoch, part) for name, part in one.items() if name.startswith("block")]
        busy = round(sum(end - start for start, end in blocks), 6)
        stalled = sum(
            end - start
            for name, part in one.items()
            if CHECKPOINTS[0][1].fullmatch(name)
            for start, end in [_span(source, epoch, part)]
        )
        stalls[epoch] = busy, stalled
        if number < len(trained) and busy:
            phase = trained[number]
            phase.start_seconds, phase.seconds = round(blocks[0][0] - began, 6), busy
            phase.origin |= {"seconds": at, "start_seconds": at}
    found = [
        phase for name, pattern in CHECKPOINTS for phase in _checkpoints(every, name, pattern, began, stalls, record)
    ]
    if any(phase.bytes_per_second for phase in found):
        record.phases = [one for one in record.phases if one.name not in dict(CHECKPOINTS)] + found
    elif found:
        _stall(trained, found, stalls)
    record.missing.pop("phases[].seconds", None)


def _checkpoints(
    every: Sequence[tuple[Source, Mapping[str, Mapping[str, dict[str, object]]]]],
    name: str,
    pattern: re.Pattern[str],
    began: float,
    stalls: Mapping[str, tuple[float, float]],
    record: Record,
) -> list[Phase]:
    """Each checkpoint as a phase: the longest time of an accelerator, and bytes a second of all (GB of 2^30 bytes)."""
    source, epochs = every[0]
    entries = [(epoch, key) for epoch, one in epochs.items() for key in one if pattern.fullmatch(key)]
    phases = []
    for number, (epoch, key) in enumerate(entries, start=1):
        spans = [_span(own, epoch, parts[epoch][key]) for own, parts in every if key in parts.get(epoch, {})]
        times = [round(end - start, 6) for start, end in spans]
        at = source.at(line_of(source, key))
        phase = Phase(
            name, number if len(entries) > 1 else 0, round(spans[0][0] - began, 6), max(times), origin={"": at}
        )
        phase.more["accelerators"] = {"count": record.ranks}
        phase.rank_seconds = times if len(times) == record.ranks and len(times) > 1 else None
        speed = epochs[epoch][key].get("throughput")
        if isinstance(speed, int | float) and speed > 0:
            phase.bytes_per_second = speed * 2**30
            phase.more["accelerators"]["bytes_per_second"] = phase.bytes_per_second
        busy, stalled = stalls[epoch]
        if name == "checkpoint" and busy and stalled:
            phase.more["accelerators"]["stall_share"] = stalled / (busy + stalled)
        phases.append(phase)
    return phases


def _stall(trained: Sequence[Phase], found: Sequence[Phase], stalls: Mapping[str, tuple[float, float]]) -> None:
    """Versions up to 2.0 have the time of a checkpoint, not its size: only the stall is a number of the training."""
    for phase, (busy, stalled) in zip(trained, stalls.values(), strict=False):
        if stalled:
            phase.more["accelerators"]["stall_share"] = stalled / (busy + stalled)
            phase.origin["accelerators.stall_share"] = found[0].origin[""]


def _epochs(source: Source) -> dict[str, dict[str, dict[str, object]]]:
    document: dict[str, dict[str, dict[str, object]]] = source.whole_json()
    if not isinstance(document, dict) or not all(isinstance(one, dict) for one in document.values()) or not document:
        raise source.refuse(1, "this has no times of epochs, each a group of entries")
    return document


def _time(source: Source, epoch: str, text: object) -> float:
    try:
        return datetime.fromisoformat(str(text)).timestamp()
    except ValueError:
        raise source.refuse(line_of(source, epoch), f"epoch {epoch} has the time '{text}', which is none") from None


def _span(source: Source, epoch: str, entry: object) -> tuple[float, float]:
    """Start and end. @raises InputError for an entry without an end, or one before its start"""
    if not isinstance(entry, dict) or "start" not in entry or "end" not in entry:
        raise source.refuse(line_of(source, epoch), f"epoch {epoch} has no end: the run did not finish")
    start, end = (_time(source, epoch, entry[key]) for key in ("start", "end"))
    if end < start:
        raise source.refuse(line_of(source, epoch), f"epoch {epoch} ends before it begins: a clock was set back")
    return start, end


def add_metadata(record: Record, directory: Path) -> None:
    """Adds what mlpstorage wrote of the model and the accelerator.

    @raises InputError for several of them, and for one of another number of accelerators"""
    found = named(directory, METADATA)
    if len(found) > 1:
        raise found[1].refuse(1, f"{found[0].path.name} is there, too: two runs wrote into {directory}")
    if not found:
        return
    document: dict[str, object] = found[0].whole_json()
    count = document.get("num_processes") if isinstance(document, dict) else None
    if isinstance(count, int) and record.ranks is not None and count != record.ranks:
        raise found[0].refuse(
            line_of(found[0], "num_processes"),
            f"it is of {count} accelerators, the results beside it of {record.ranks}",
        )
    for key, name in (("model", "workload"), ("accelerator", "accelerator")):
        if isinstance(document, dict) and isinstance(document.get(key), str):
            record.parameters[name] = document[key]
