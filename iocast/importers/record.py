# SPDX-License-Identifier: Apache-2.0
"""What an importer hands over, and how it becomes a run directory (docs/run-directory.md, "Imported runs")."""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from typing import Any, Literal, TypedDict

import numpy as np
from hdrh.histogram import HdrHistogram

from iocast.errors import InputError, RunError
from iocast.ground.files import SCHEMA_VERSION, sync_directory, umask, write_json, write_text
from iocast.importers.order import order_of
from iocast.importers.source import Source
from iocast.records.declared import Impossible
from iocast.records.run import read_run
from iocast.records.simulated import ImportedDocument, ObservedDocument, RunDocument, SlowDocument, TimelineDocument

HIGHEST_NS = 86_400_000_000_000  # of the histograms that iocast-bench writes
QUANTILES = {"q25": 0.25, "q50": 0.5, "q75": 0.75, "q90": 0.9, "q95": 0.95, "q99": 0.99, "q999": 0.999}
SUMMARY = ("mean", "min", "q25", "q50", "q75", "q95", "q99", "q999", "max")
MAX_BINS = 512
MAX_SLOW = 200


class Stated(TypedDict, total=False):
    """What the user states. `option`: how the options of the verb are called that state `ranks` and `nodes`."""

    ranks: int | None
    nodes: int | None
    label: str | None
    option: str


KEYS: tuple[Literal["ranks", "nodes"], ...] = ("ranks", "nodes")


@dataclass
class Latency:
    """What is known of an operation's latencies: in seconds; `counts` by nanoseconds when the whole distribution is
    known."""

    count: int | None = None
    known: dict[str, float] = field(default_factory=dict)  # of SUMMARY and q90
    counts: Counter[int] = field(default_factory=Counter)

    @classmethod
    def of_counts(cls, counts: Mapping[int, int], **exact: float | None) -> Latency:
        """From a histogram; `exact` are mean, min and max when they are known better than its bins are wide."""
        made = cls(sum(counts.values()), counts=Counter(counts))
        values = sorted(counts)
        sums = list(accumulate(counts[v] for v in values))
        for name, q in QUANTILES.items():
            made.known[name] = values[min(int(np.searchsorted(sums, q * sums[-1] - 1e-9)), len(values) - 1)] * 1e-9
        made.known["mean"] = sum(v * n for v, n in counts.items()) / sums[-1] * 1e-9
        made.known["min"], made.known["max"] = values[0] * 1e-9, values[-1] * 1e-9
        made.known.update({k: v for k, v in exact.items() if v is not None})
        return made

    @classmethod
    def of_values(cls, seconds: Iterable[float]) -> Latency:
        return cls.of_counts(Counter(np.maximum(np.rint(np.asarray(list(seconds)) * 1e9), 1).astype(np.int64).tolist()))

    def as_json(self) -> dict[str, float | None]:
        shown: dict[str, float | None] = {"count": self.count}
        shown |= {name: self.known.get(name) for name in SUMMARY}
        if "q90" in self.known:
            shown["q90"] = self.known["q90"]
        return shown

    def encoded(self) -> tuple[float, str]:
        """Largest value in milliseconds and the HdrHistogram as the log has it."""
        histogram = HdrHistogram(1, HIGHEST_NS, 3)
        for value, count in self.counts.items():
            histogram.record_value(min(max(int(value), 1), HIGHEST_NS), int(count))
        return max(self.counts) * 1e-6, histogram.encode().decode()


@dataclass
class Phase:
    """A phase of a run. Everything that the source does not say stays None."""

    name: str
    repeat: int = 0
    start_seconds: float | None = None
    seconds: float | None = None
    operations: int | None = None
    bytes: int | None = None
    bytes_per_second: float | None = None
    errors: int | None = None
    rate: float | None = None  # operations a second
    latency: dict[str, Latency] = field(default_factory=dict)  # by operation or operation.part
    counts: dict[str, int] = field(default_factory=dict)  # operations that have no latencies, by name
    rank_seconds: list[float] | None = None
    balance: float | None = None
    timeline: TimelineDocument | None = None
    slowest: list[SlowDocument] | None = None
    requested: int | None = None  # operations that were to be made, where fewer were and a rate may be of these
    more: dict[str, Any] = field(default_factory=dict)  # further keys of the phase
    origin: dict[str, str] = field(default_factory=dict)
    """Where numbers come from ("FILE:LINE", in words when derived), by key with dots between levels; "" is all
    others'."""

    def add_trace(
        self, traces: Mapping[str, tuple[np.ndarray, np.ndarray]], ranks: Mapping[str, np.ndarray] | None = None
    ) -> None:
        """Whole distributions, time line and slowest operations from single operations: by operation their starts and
        latencies, in seconds since the phase began."""
        ends = max(float((start + seconds).max()) for start, seconds in traces.values())
        width = 2.0**-6
        while ends >= MAX_BINS * width:
            width *= 2
        self.timeline = {"bin_seconds": width}
        slow: list[SlowDocument] = []
        for op, (start, seconds) in traces.items():
            self.latency[op] = Latency.of_values(seconds)
            bins = ((start + seconds) / width).astype(int)
            count = np.bincount(bins)
            sums = np.bincount(bins, weights=seconds)
            most = np.zeros(len(count))
            np.maximum.at(most, bins, seconds)
            mean = np.divide(sums, count, out=np.zeros(len(count)), where=count > 0)
            self.timeline[op] = {"count": count.tolist(), "mean": mean.tolist(), "max": most.tolist()}
            longest = np.argsort(seconds)[::-1][:MAX_SLOW]
            rank = ranks[op] if ranks and op in ranks else None
            slow += [
                {
                    "op": op,
                    "rank": int(rank[i]) if rank is not None else None,
                    "start": float(start[i]),
                    "seconds": float(seconds[i]),
                    "dataset": None,
                    "object": None,
                }
                for i in longest
            ]
        self.slowest = sorted(slow, key=lambda s: -s["seconds"])[:MAX_SLOW]

    def _by_operation(self, latency: Mapping[str, dict[str, float | None]]) -> dict[str, dict[str, float]]:
        """Counts and rates of whole operations, with bytes where one alone moves them."""
        found: dict[str, dict[str, float]] = {}
        for op, known in latency.items():
            if "." not in op and (count := known["count"]) and self.seconds:
                found[op] = {"count": count, "rate": count / self.seconds}
        if len(found) == 1 and self.bytes and self.bytes_per_second:
            next(iter(found.values())).update(bytes=self.bytes, bytes_per_second=self.bytes_per_second)
        return found

    def as_json(self) -> dict[str, Any]:
        latency = {op: known.as_json() for op, known in self.latency.items()}
        for op, count in self.counts.items():
            latency.setdefault(op, Latency(count).as_json())
        # The sum of all response times is known only when every operation has a count and a mean.
        every = [(v["count"], v["mean"]) for op, v in latency.items() if "." not in op]
        terms = [(n, m) for n, m in every if n is not None and m is not None]
        whole = bool(terms) and len(terms) == len(every) and sum(n for n, _ in terms) == self.operations
        return {
            "name": self.name,
            "repeat": self.repeat,
            "start_seconds": self.start_seconds,
            "seconds": self.seconds,
            "operations": self.operations,
            "bytes": self.bytes,
            "bytes_per_second": self.bytes_per_second,
            "errors": self.errors,
            "rate": self.rate,
            "by_operation": self._by_operation(latency),
            "balance": self.balance,
            "responding_seconds": sum(n * m for n, m in terms) if whole else None,
            "think_asked_seconds": None,
            "think_actual_seconds": None,
            "latency": latency,
            "errors_by_operation": None,
            "timeline": self.timeline,
            "slowest": self.slowest,
            "rank_seconds": self.rank_seconds,
            **self.more,
        }


REACHED = 0.9
"""Share of a limit from which on it set the rate."""
NOT_PRINTED = {
    "command": "{} does not print it.",
    "started": "{} prints no time of day.",
    "environment": "{} does not say where it ran.",
    "seed": "{} does not print it.",
    "phases[].errors": "{} does not count failed operations.",
    "phases[].rank_seconds": "{} prints no times of single ranks.",
    "phases[].timeline": "{} prints no time line.",
    "phases[].slowest": "{} prints no single operations.",
    "phases[].latency.*": "{} prints no latencies.",
}
"""Why a key of run.json is null where an importer states no other reason; {} is the tool."""


@dataclass
class Record:
    """One run as its tool tells it."""

    name: str  # for the directory, when there are several
    tool: str
    phases: list[Phase]
    pattern: str = ""  # iocast's name of the workload when there is one of its kind, else the tool's name
    version: str | None = None
    command: list[str] | None = None
    started: str | None = None  # ISO 8601, with a zone if that is known
    parameters: dict[str, Any] = field(default_factory=dict)
    ranks: int | None = None
    nodes: int | None = None
    environment: dict[str, Any] | None = None
    missing: dict[str, str] = field(default_factory=dict)
    """By key of run.json why it is null, a finished sentence; reasons of NOT_PRINTED are added."""
    speaker: str = ""
    """Who says and prints things in these reasons, where it is not the tool."""
    warnings: list[str] = field(default_factory=list)
    label: str = ""
    imported: ImportedDocument = field(default_factory=lambda: ImportedDocument())
    sources: Sequence[Source] = ()  # the files that it was read from; those of the call when the importer does not say
    origin: dict[str, str] = field(
        default_factory=dict
    )  # as Phase.origin, of ranks, nodes, started, command and parameters
    facts: dict[str, Any] = field(default_factory=dict)  # printed beside the measurement: a score, settings of others
    observed: ObservedDocument | None = None
    """What is known of who counted these requests, where nobody measured them."""
    limit: tuple[float, str] | None = None
    """Operations a second, of all ranks, that an option of the tool allowed, and the option."""
    elapsed: tuple[float, str] | None = None
    """Seconds between the start and the end that the file prints, to the second, and where they stand."""

    @property
    def _is_held_back(self) -> bool:
        """Whether a phase came to the limit, but for what start and end take."""
        return self.limit is not None and any((phase.rate or 0) > REACHED * self.limit[0] for phase in self.phases)

    def complete(self, format_: str, sources: Sequence[Source], answer: Stated) -> None:
        """Adds what the user stated; refuses a record without the necessary parts."""
        sources = self.sources or sources
        where = sources[0].path
        ranks, nodes = option_of("ranks", answer), option_of("nodes", answer)
        for which in KEYS:
            given, own = answer.get(which), self.ranks if which == "ranks" else self.nodes
            if given is None:
                continue
            if own is not None and own != given:
                raise InputError(
                    f"{where}:1: the file says {own} {which}, {option_of(which, answer)} says {given}; "
                    "leave the option out."
                )
            setattr(self, which, given)
            self.missing.pop(f"placement.{which}", None)
        if self.ranks is None and self.observed is None:
            why = f", as {self.missing['ranks']}" if "ranks" in self.missing else ""
            raise InputError(f"{where}:1: the file has no number of ranks of {self.tool}{why}; add {ranks}.")
        self.missing.pop("ranks", None)
        if self.ranks is not None and not 1 <= (1 if self.nodes is None else self.nodes) <= self.ranks:
            placed = "" if self.nodes is None else f" on {self.nodes} nodes"
            raise InputError(f"{where}:1: {self.ranks} ranks can't be{placed}; correct {ranks} or {nodes}.")
        if self.nodes is not None and self.ranks and answer.get("nodes") is not None and self.ranks % self.nodes:
            self.warnings.append(
                f"{self.ranks} ranks on {self.nodes} nodes, as {nodes} states, are unequal numbers on each node."
            )
        if self.nodes is not None and self.ranks and 1 < self.nodes < self.ranks and order_of(sources) == "cyclic":
            self.parameters["placement"] = "cyclic"
        if self.nodes is None and self.observed is None:
            self.missing["placement.nodes"] = f"{self.tool} does not say on how many nodes it ran; {nodes} tells."
        if self.limit and self._is_held_back:
            self.warnings.append(
                f"{self.limit[1]} held this run back: it allows {self.limit[0]:g} operations a second. Throughput and "
                "concurrency are the limit's, not the storage's, so that nothing is forecast from it."
            )
        self.settle()
        for key, reason in NOT_PRINTED.items():
            name = key.removesuffix(".*")
            stated = any(one == name or one.startswith((f"{name}.", f"{name} ")) for one in self.missing)
            if not stated and not self._has(key):
                self.missing[key] = reason.format(self.speaker or self.tool)
        self.label = str(answer.get("label") or self.label or self.name)
        files = [fingerprint for source in sources for fingerprint in source.fingerprints()]
        self.imported = {
            "format": format_,
            "files": files,
            "missing": self.missing,
            "origin": self._origins(sources[0], answer),
        }
        if self.observed is not None:
            self.imported["observed"] = self.observed
        if self.facts:
            self.imported["facts"] = self.facts
        self._require_possible(where)

    def _has(self, key: str) -> bool:
        """Whether a key of NOT_PRINTED has a value, in every phase for which it could have one."""
        if key == "seed":
            return False
        name = key.removeprefix("phases[].").removesuffix(".*")
        if name == key:
            return getattr(self, name) is not None
        having = [getattr(phase, name) not in (None, {}) for phase in self.phases]
        return all(having) if name == "errors" else any(having)

    def settle(self) -> None:
        """Compares the phases with one another's numbers: rate x time with counts, and times with the elapsed time.

        A rate of the operations requested becomes that of those made where the elapsed time says so; what else
        contradicts itself is a warning."""
        self._settle_requested()
        for phase in self.phases:
            for unit, rate, count in (
                ("operations", phase.rate, phase.operations),
                ("bytes", phase.bytes_per_second, phase.bytes),
            ):
                if rate and count and phase.seconds and not _near(rate * phase.seconds, count, max(1, rate * 1e-3)):
                    self._warn_once(
                        f"{self._where(phase)}: {phase.name} has {rate:.6g} {unit} a second in {phase.seconds:.6g} s, "
                        f"and {count} {unit}: these contradict each other, and only a look at the file tells which is "
                        "wrong."
                    )
            self._leave_out_zero_latencies(phase)
        if self.elapsed is None:
            return
        elapsed, where = self.elapsed
        total = sum(phase.seconds or 0 for phase in self.phases)
        if total > elapsed + _slack(elapsed):
            self._warn_once(
                f"{where}: the times of the phases add up to {total:.6g} s, and from its start to its end the file's "
                f"own clock counts {elapsed:g} s: one of two clocks is wrong. By the latter, rates are "
                f"{total / max(elapsed, 1):.3g} times as high or more."
            )

    def _leave_out_zero_latencies(self, phase: Phase) -> None:
        """No operation takes 0 s: a tool that prints this has not measured it, or with too few digits."""
        for op, latency in phase.latency.items():
            known = latency.known
            if not latency.counts and known and known.get("mean", known.get("max", 1)) == 0:
                latency.known = {}
                self.missing[f"phases[].latency.{op}"] = (
                    f"{self.tool} prints 0 s for {op}, which is a time not measured, or shorter than its last digit."
                )

    def _settle_requested(self) -> None:
        doubtful = [p for p in self.phases if p.requested and p.operations and p.rate and p.requested > p.operations]
        if not doubtful or self.elapsed is None:
            return
        elapsed, where = self.elapsed
        others = sum(p.seconds or 0 for p in self.phases if p not in doubtful)
        as_requested, as_made = (
            others + sum((n or 0) / (p.rate or 1) for p, n in ((p, getattr(p, key)) for p in doubtful))
            for key in ("requested", "operations")
        )
        if as_requested > elapsed + _slack(elapsed) or abs(as_made - elapsed) <= _slack(elapsed):
            return
        sure = abs(as_requested - elapsed) <= _slack(elapsed)
        for phase in doubtful:
            assert phase.rate and phase.requested and phase.operations
            seconds = phase.requested / phase.rate
            rate = phase.operations / seconds
            text = (
                f"{self._where(phase)}: the printed rate of {phase.name}, {phase.rate:.6g} /s, "
                f"{'is' if sure else 'may be'} of the "
                f"{phase.requested} operations requested. {phase.operations} were made"
            )
            if not sure:
                self._warn_once(f"{text}, which is {rate:.6g} /s in the same time.")
                continue
            self._warn_once(f"{text} in the {elapsed:g} s from start to end ({where}): {rate:.6g} /s is imported.")
            phase.more["printed_rate"], phase.rate, phase.seconds, phase.requested = phase.rate, rate, seconds, None
            phase.origin["printed_rate"] = phase.origin.get("rate", phase.origin.get("", ""))
            phase.origin["seconds"] = f"{phase.origin['printed_rate']} (operations requested / printed rate)"
            phase.origin["rate"] = f"{phase.origin.get('operations', '')} (operations made / time)"

    @staticmethod
    def _where(phase: Phase) -> str:
        return phase.origin.get("", "").partition(" ")[0]

    def _warn_once(self, sentence: str) -> None:
        if sentence not in self.warnings:
            self.warnings.append(sentence)

    def _require_possible(self, path: Path) -> None:
        """@raises InputError for a number that can't be, with the line that prints it"""
        document = self.as_json()
        try:
            json.dumps(document, allow_nan=False)
        except ValueError as error:
            raise InputError(
                f"{path}:1: 'NaN' or 'Infinity' stands where a number is allowed; nothing of this run is imported."
            ) from error
        try:
            read_run(document)
        except Impossible as error:
            number = re.match(r"phases\[(\d+)\]", error.where)
            its_own = self.phases[int(number[1])].origin.get("") if number else None
            where = (self.imported["origin"].get(error.where) or its_own or f"{path}:1").partition(" ")[0]
            what = re.sub(r"phases\[(\d+)\]", lambda found: f"phase {self.phases[int(found[1])].name}", error.where)
            what = "the name of a phase" if re.fullmatch(r"phases\[\d+\]\.name", error.where) else what
            raise InputError(f"{where}: {what}{error.what}; nothing of this run is imported.") from error

    def _origins(self, source: Source, answer: Stated) -> dict[str, str]:
        """Of each number that was imported where it comes from."""
        found = {}
        for which in KEYS:
            if (self.ranks if which == "ranks" else self.nodes) is not None:
                found[f"placement.{which}"] = (
                    option_of(which, answer)
                    if answer.get(which) is not None
                    else self.origin.get(which, str(source.path))
                )
        for key, value in self.parameters.items():
            if isinstance(value, int | float):
                found[f"workload.parameters.{key}"] = self.origin.get(
                    f"parameters.{key}", self.origin.get("parameters", str(source.path))
                )
        for number, phase in enumerate(self.phases):
            for key in numbers_of(phase.as_json()):
                words = key.split(".")
                known = next(
                    (phase.origin[k] for n in range(len(words), -1, -1) if (k := ".".join(words[:n])) in phase.origin),
                    None,
                )
                found[f"phases[{number}].{key}"] = known or str(source.path)
        return found

    def as_json(self) -> dict[str, Any]:
        return {
            "schema_version": SCHEMA_VERSION,
            "kind": "run",
            "source": "imported",
            "tool": {"name": self.tool, "version": self.version},
            "command": self.command,
            "label": self.label,
            "started": self.started,
            "seed": None,
            "workload": {
                "name": self.pattern or self.tool,
                "pattern": self.pattern or self.tool,
                "parameters": self.parameters,
            },
            "placement": {
                "ranks": self.ranks,
                "nodes": self.nodes,
                "ranks_per_node": _even(self.ranks, self.nodes) if self.ranks and self.nodes else None,
                **({"order": "cyclic"} if self.parameters.get("placement") == "cyclic" else {}),
            },
            "environment": self.environment,
            "imported": self.imported,
            "warnings": self.warnings,
            **({"brake": {"max_rate": self.limit[0]}} if self.limit and self._is_held_back else {}),
            "status": "complete",
            "phases": [phase.as_json() for phase in self.phases],
        }


AGREEMENT = 0.05
"""Share by which rate times time may differ from a count, and times from the elapsed time."""


def _near(value: float, count: float, least: float) -> bool:
    return abs(value - count) <= max(AGREEMENT * count, least)


def _slack(elapsed: float) -> float:
    """Seconds by which an elapsed time of whole seconds may lie beside the times of its phases."""
    return max(2.0, AGREEMENT * elapsed)


def option_of(key: str, answer: Stated) -> str:
    """The option that states `key`: --nodes of iocast import, --nodes-measured of iocast forecast."""
    return answer.get("option", "--{}").format(key)


def _even(ranks: int, nodes: int) -> int | float:
    """Ranks a node: their mean where nodes have different numbers of them."""
    return ranks // nodes if ranks % nodes == 0 else ranks / nodes


NOT_READ = ("repeat", "start_seconds", "timeline", "slowest", "balance", "by_operation", "responding_seconds")
"""Keys of a phase that are no numbers of the tool, follow from others, or are series of single operations."""


def numbers_of(phase: Mapping[str, Any]) -> list[str]:
    """Keys of a phase's numbers, dots between levels; a list counts as one."""
    found = []
    for key, value in phase.items():
        if key in NOT_READ or value is None or isinstance(value, bool | str):
            continue
        if isinstance(value, Mapping):
            found += [f"{key}.{inner}" for inner in numbers_of(value)]
        elif isinstance(value, int | float) or (
            isinstance(value, list) and value and isinstance(value[0], int | float)
        ):
            found.append(key)
    return found


def counted(rate: float, seconds: float, half_digit: float) -> int | None:
    """Operations from a rate and the printed seconds, which rounding changed by up to `half_digit`; None when these
    leave it open by more than a thousandth."""
    number, slack = rate * seconds, rate * half_digit
    return (round(number) or None) if number and (slack <= 1e-3 * number or slack < 0.5) else None


def explained(document: RunDocument) -> list[tuple[str, str, str]]:
    """Of an imported run's run.json: each number's key, its value as text, and its file and line."""
    found = []
    for key, origin in document["imported"].get("origin", {}).items():
        phase = re.match(r"phases\[(\d+)\]\.(.*)", key)
        value: object = document
        title = rest = key
        if phase:
            of, rest = document["phases"][int(phase[1])], phase[2]
            value, repeat = of, f"[{of['repeat']}]" if of["repeat"] else ""
            title = f"{of['name']}{repeat}.{rest}"
        while rest and isinstance(value, Mapping):
            # Names of operations and parameters may have dots themselves.
            longest = sorted(value, key=len, reverse=True)
            own = next((k for k in longest if rest == k or rest.startswith(f"{k}.")), None)
            if own is None:
                break
            value, rest = value[own], rest[len(own) + 1 :]
        text = (
            f"{len(value)} values"
            if isinstance(value, list)
            else f"{value:.8g}"
            if isinstance(value, float)
            else str(value)
        )
        found.append((title, text, origin))
    return found


def place_one_after_the_other(phases: Sequence[Phase]) -> None:
    """Start times of phases that ran in this order without a stated pause: each begins where the one before ended."""
    at: float | None = 0.0
    for phase in phases:
        if phase.start_seconds is None:
            phase.start_seconds = at
        at = (
            phase.start_seconds + phase.seconds
            if phase.start_seconds is not None and phase.seconds is not None
            else None
        )


def write_runs(runs: Sequence[tuple[str, Record]], out: Path, series: Mapping[str, Any] | None = None) -> list[Path]:
    """Writes one run as `out`, several as `out/NAME`, and `series` as series.json beside them: all of it, or nothing.

    @return the run directories"""
    alone = len(runs) == 1
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        fresh = Path(tempfile.mkdtemp(dir=out.parent, prefix=f".{out.name[:100]}."))
        try:
            if series is not None:
                write_json(fresh / "series.json", series)
            for name, record in runs:
                if not alone:
                    (fresh / name).mkdir()
                _write_run(record, fresh if alone else fresh / name)
            fresh.chmod(0o777 & ~umask())
            os.rename(fresh, out)
            sync_directory(out.parent)
        except BaseException:
            shutil.rmtree(fresh, ignore_errors=True)
            raise
    except RunError as error:  # of a file in the directory that becomes `out`
        raise RunError(str(error).replace(str(fresh), str(out))) from error
    except OSError as error:
        raise RunError(f"The import '{out}' can't be written: {error.strerror}.") from error
    return [out] if alone else [out / name for name, _ in runs]


def _write_run(record: Record, directory: Path) -> None:
    log = [
        "#[HdrHistogram log, format version 1.3; values in nanoseconds; tag = phase.operation[.part]]",
        "#[StartTime: 0.000 (seconds since the start of the run)]",
        '"StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram"',
    ]
    for phase in record.phases:
        for op, latency in phase.latency.items():
            if latency.counts:
                largest, encoded = latency.encoded()
                log.append(
                    f"Tag={phase.name}.{op},{phase.start_seconds or 0:.3f},{phase.seconds or 0:.3f},"
                    f"{largest:.3f},{encoded}"
                )
    write_text(directory / "latency.hlog", "\n".join(log) + "\n")
    write_json(directory / "run.json", record.as_json())
