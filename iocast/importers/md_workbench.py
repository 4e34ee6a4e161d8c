# SPDX-License-Identifier: Apache-2.0
"""md-workbench (standalone and in IOR): its text output, with its latency files if there are any.

Every version since 2016 prints one line a phase, "<phase> <values>", and with --process-reports one more a rank,
"<rank>: <phase> ...". Values are written "25.5s 100000 obj 3919.7 obj/s" by the early versions and "max:25.50s
objects:100000 rate:3919.7 obj/s" by the later ones (src/md-workbench.c, print_p_stat); until August 2016, as
MD-REAL-IO, a block of lines a run with a table of ranks. "obj/s" of the benchmark phase counts iterations, each of
which is a stat, a read, a delete and a create (read-only: a stat and a read). Latency files are "<prefix>-<waiting
factor>-<iteration>-<operation>[-all].csv"."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from iocast.importers import Importer
from iocast.importers.md_workbench_traces import OPERATIONS, add_traces, is_latency_file
from iocast.importers.record import Latency, Phase, Record, place_one_after_the_other
from iocast.importers.source import Source

PHASE_LINE = re.compile(r"^(?:(?P<rank>\d+): )?(?P<phase>precreate|benchmark|cleanup) (?=process max:|\d)(?P<rest>.*)$")
ERRORS = re.compile(r"\((\d+) errs(!!!)?\)")
QUANTILES = re.compile(r"(read|stat|create|delete)\(([^)]*)\)")
QUANTILE_NAMES = ("min", "q25", "q50", "q75", "q90", "q99", "max")
HEADER = re.compile(
    r"^(MD-Workbench|MD-REAL-IO) total objects: (?P<objects>\d+).*?\(version: (?P<version>[^)]*)\) time: (?P<time>\S+ "
    r"\S+)"
)
BLOCK = re.compile(r"^MD-REAL-IO total files: (?P<files>\S+) \(version: (?P<version>[^)]*)\)", re.MULTILINE)
BLOCK_TIMES = re.compile(
    r"^Total runtime: .*?precreate: ([\d.]+)s benchmark: ([\d.]+)s cleanup: ([\d.]+)s", re.MULTILINE
)
BLOCK_COUNTS = re.compile(
    r"^Operations:\s+/Pre dir: (\d+) files: (\d+) /Bench create: (\d+) access: (\d+) /Clean files: (\d+) dirs: (\d+)",
    re.MULTILINE,
)
BLOCK_RATES = re.compile(
    r"^(Precreate|Benchmark|Delete):\s+([\d.]+) \S+ (?:\([^)]*\) )?(?:([\d.]+) MiB/s)?", re.MULTILINE
)
BLOCK_RANK = re.compile(r"^(\d+)\s+([\d.]+)s\s+([\d.]+)s\s+([\d.]+)s\s+(.*)$", re.MULTILINE)
OPTION = re.compile(r"^[ \t]+([a-z][a-z-]*?)(?:=(.*))?$")
NAMES = {  # the tool's options and iocast's parameters of the same pattern
    "data-sets": "datasets",
    "precreate-per-set": "objects",
    "obj-per-proc": "iterations",
    "object-size": "object_size",
    "offset": "offset",
    "iterations": "repeats",
    "waiting-time": "waiting_factor",
    "start-item": "start_index",
    "start-index": "start_index",
}
SHORT = {
    "D": "data-sets",
    "P": "precreate-per-set",
    "I": "obj-per-proc",
    "S": "object-size",
    "O": "offset",
    "R": "iterations",
    "t": "waiting-time",
    "q": "quiet",
}
NOT_PRINTED = {
    "seed": "md-workbench draws nothing at random.",
    "phases[].think_asked_seconds": "md-workbench does not record its think times.",
    "phases[].think_actual_seconds": "md-workbench does not record its think times.",
    "phases[].errors_by_operation": "md-workbench adds up all errors.",
}


def recognises(source: Source) -> bool:
    if is_latency_file(source) or BLOCK.search(source.head):
        return True
    if not any(word in source.head for word in ("precreate ", "benchmark ", "cleanup ", "total objects: ")):
        return False
    return any(PHASE_LINE.match(line) or HEADER.match(line) for line in source.head.splitlines())


def read(sources: Sequence[Source]) -> list[Record]:
    traces = [source for source in sources if is_latency_file(source)]
    texts = [source for source in sources if source not in traces]
    if len(texts) > 1:
        raise texts[1].refuse(
            1,
            f"one import takes one output of md-workbench, and '{texts[0].path}' is one already; import each by itself",
        )
    if texts and BLOCK.search(texts[0].head):
        return _read_blocks(texts[0])
    if texts and not traces and len(parts := _runs(texts[0])) > 1:
        return [record for part in parts for record in read([part])]
    record = (
        _read_text(texts[0])
        if texts
        else Record(name="md-workbench", tool="md-workbench", pattern="md-workbench", phases=[])
    )
    record.missing |= NOT_PRINTED
    if not texts:
        record.missing["workload.parameters"] = (
            "Latency files do not say with which options md-workbench ran; name its text output as well."
        )
    if traces:
        add_traces(record, traces, whole=bool(texts))
    else:
        record.missing["phases[].timeline"] = (
            "md-workbench writes single operations only with --latency; name its latency files as well."
        )
        record.missing["phases[].slowest"] = record.missing["phases[].timeline"]
    place_one_after_the_other(record.phases)
    return _by_waiting_factor(record)


def of_one_run(sources: Sequence[Source]) -> list[list[Source]]:
    """The one text of a directory with the traces beside it, or texts alone."""
    traces = [source for source in sources if is_latency_file(source)]
    texts = [source for source in sources if source not in traces]
    if len(texts) == 1:
        return [[*texts, *traces]]
    return [[source] for source in texts] or [traces]


def _runs(source: Source) -> list[Source]:
    """The runs of a log: each begins with its arguments or its header, after the last phase of the one before."""
    begins, done = [source.first], False
    for number, line in source.numbered:
        if done and (line.startswith("Args: ") or HEADER.match(line)):
            begins.append(number)
            done = False
        done = done or bool(PHASE_LINE.match(line))
    ends = [*(begin - 1 for begin in begins[1:]), source.last]
    return [source.part(begin, end) for begin, end in zip(begins, ends, strict=True)]


def _by_waiting_factor(record: Record) -> list[Record]:
    """One record for each waiting factor: --adaptive-waiting runs the benchmark phase with eight of them, printed with
    two digits."""
    exact = {0.06: 0.0625, 0.12: 0.125, 0.13: 0.125}
    benchmarks = [phase for phase in record.phases if phase.name == "benchmark"]
    for phase in benchmarks:
        factor = phase.more.pop("waiting_factor", 0.0)
        phase.more["waiting_factor"] = exact.get(factor, factor)
    factors = list(dict.fromkeys(phase.more["waiting_factor"] for phase in benchmarks))
    if len(factors) == 1 and factors[0] > 0:
        record.parameters["waiting_factor"] = record.parameters.get("waiting_factor") or factors[0]
    if len(factors) < 2:
        return [record]
    made = []
    for factor in factors:
        own = [p for p in record.phases if p.more.get("waiting_factor", factors[0]) == factor]
        for repeat, phase in enumerate((p for p in own if p.name == "benchmark"), start=1):
            phase.repeat = repeat
        made.append(
            replace(
                record,
                name=f"t{factor:g}",
                phases=own,
                parameters=record.parameters | {"waiting_factor": factor},
                missing=dict(record.missing),
            )
        )
    return made


def _read_text(source: Source) -> Record:
    record = Record(name="md-workbench", tool="md-workbench", pattern="md-workbench", phases=[])
    options = _options(source, record)
    read_only = "read-only" in options
    reports: dict[int, dict[int, float]] = {}  # phase number -> rank -> seconds
    for number, line in source.numbered:
        found = PHASE_LINE.match(line)
        if found is None:
            continue
        values = _values(source, number, found["rest"])
        if found["rank"] is None:
            phase = _phase(source, number, found["phase"], found["rest"], values, read_only, options)
            if phase.name == "benchmark":
                phase.repeat = 1 + sum(p.name == "benchmark" for p in record.phases)
            record.phases.append(phase)
        elif record.phases:
            reports.setdefault(len(record.phases) - 1, {})[int(found["rank"])] = _seconds(values)
    if not record.phases:
        raise source.refuse_cut("the first phase's result")
    if "version" in options and not any(line.startswith("Total runtime:") for line in source.lines):
        raise source.refuse_cut("'Total runtime'")
    source.require_last_line()
    for number, ranks in reports.items():
        if sorted(ranks) != list(range(len(ranks))):
            absent = next(r for r in range(len(ranks) + 1) if r not in ranks)
            raise source.refuse(
                len(source.lines), f"the report of rank {absent} is missing, though there are reports of other ranks"
            )
        record.phases[number].rank_seconds = [ranks[r] for r in range(len(ranks))]
        first, last = min(ranks.values()), max(ranks.values())
        record.phases[number].balance = first / last if last else None
    if not reports:
        record.missing["phases[].rank_seconds"] = (
            "md-workbench prints the end of each rank only with --process-reports."
        )
    record.parameters = _parameters(options)
    record.ranks = _ranks(record, options)
    if not any(phase.latency for phase in record.phases):
        record.missing["phases[].latency"] = "This version of md-workbench prints no latencies."
    else:
        record.missing["phases[].latency.*.mean"] = (
            "md-workbench prints quantiles (minimum, 25, 50, 75, 90, 99 %, maximum), no mean."
        )
    if any((phase.errors or 0) > 0 for phase in record.phases):
        record.warnings.append(
            "Operations failed. md-workbench counts only iterations whose read succeeded in its rate, and its latency "
            "quantiles may hold values that were never measured."
        )
    if int(options.get("stonewall-timer") or 0) > 0:
        record.warnings.append(
            "A stonewall timer ended the benchmark phase: ranks may have done different amounts of work."
        )
    return record


def _read_blocks(source: Source) -> list[Record]:
    """The runs of MD-REAL-IO: an iteration of its benchmark is a create, a stat, a read and an unlink."""
    begins = list(BLOCK.finditer(source.text))
    records, cut = [], []
    for begin, after in zip(begins, [*begins[1:], None], strict=True):
        end = after.start() if after else len(source.text)
        times, counts = (
            BLOCK_TIMES.search(source.text, begin.end(), end),
            BLOCK_COUNTS.search(source.text, begin.end(), end),
        )
        ranks = list(BLOCK_RANK.finditer(source.text, begin.end(), end))
        if times is None or counts is None or not _all_ranks(ranks, counts):
            cut.append(source.line_at(end - 1))
            continue
        record = Record(
            "md-workbench", "md-workbench", [], pattern="md-workbench", version=begin["version"].strip() or None
        )
        record.missing |= NOT_PRINTED
        record.missing["workload.parameters"] = "MD-REAL-IO prints no options."
        record.missing["phases[].latency.*"] = "MD-REAL-IO prints no latencies."
        record.missing["phases[].timeline"] = record.missing["phases[].slowest"] = (
            "MD-REAL-IO records no single operations."
        )
        rates = {found[1]: found for found in BLOCK_RATES.finditer(source.text, begin.end(), end)}
        dirs, files, created, accessed, cleaned, removed = map(int, counts.groups())
        timed, counted = source.at(source.line_at(times.start())), source.at(source.line_at(counts.start()))
        parts = (
            ("precreate", "Precreate", {"mkdir": dirs, "create": files}),
            ("cleanup", "Delete", {"unlink": cleaned, "rmdir": removed}),
            ("benchmark", "Benchmark", {"create": created, "stat": accessed, "read": accessed, "unlink": created}),
        )
        for name, title, of_ops in sorted(parts, key=lambda p: ("precreate", "benchmark", "cleanup").index(p[0])):
            column = ("precreate", "benchmark", "cleanup").index(name)
            seconds = float(times[1 + column])
            phase = Phase(
                name,
                int(name == "benchmark"),
                seconds=seconds,
                operations=sum(of_ops.values()),
                errors=0,
                counts=of_ops,
            )
            phase.origin = {
                "": timed,
                "operations": counted,
                "latency": counted,
                "rate": f"{counted} / {timed} (operations / time)",
            }
            phase.rate = phase.operations / seconds if seconds and phase.operations else None
            if found := rates.get(title):
                each, words = (4, " (x 4 operations)") if name == "benchmark" else (1, "")
                phase.rate = float(found[2]) * each
                phase.origin["rate"] = source.at(source.line_at(found.start())) + words
                phase.bytes_per_second = float(found[3]) * 2**20 if found[3] else None
            if ranks:
                own = [float(rank[2 + column]) for rank in ranks]
                phase.rank_seconds, phase.balance = own, min(own) / max(own) if max(own) else None
                phase.origin["rank_seconds"] = source.at(source.line_at(ranks[0].start()))
            record.phases.append(phase)
        _add_block_errors(record, ranks)
        if ranks:
            record.ranks, record.origin["ranks"] = len(ranks), source.at(source.line_at(ranks[-1].start()))
        place_one_after_the_other(record.phases)
        records.append(record)
    if not records:
        raise source.refuse(
            cut[0] if cut else 1,
            "the run lacks 'Total runtime', 'Operations', or ranks in its table; the file was cut off, or it did not "
            "finish",
        )
    records[0].warnings += [f"{source.at(line)}: the run that ends here has no result; it is left out." for line in cut]
    return records


def _all_ranks(ranks: list[re.Match[str]], counts: re.Match[str]) -> bool:
    """Whether the table of ranks has all: their files add up to those of the run, and the last line is whole."""
    numbers = [[int(n) for n in re.findall(r"(\d+)\(\d+\)", rank[5])] for rank in ranks]
    return (
        bool(numbers)
        and all(len(own) == 5 for own in numbers)
        and [sum(own[i] for own in numbers) for i in (1, 2, 4)] == [int(counts[i]) for i in (2, 3, 5)]
    )


def _add_block_errors(record: Record, ranks: list[re.Match[str]]) -> None:
    """The numbers in parentheses behind each rank's counts: two of precreate, two of the benchmark, one of cleanup."""
    for rank in ranks:
        failed = [int(n) for n in re.findall(r"\d+\((\d+)\)", rank[5])]
        if len(failed) == 5:
            for phase, own in zip(record.phases, (failed[:2], failed[2:4], failed[4:]), strict=True):
                phase.errors = (phase.errors or 0) + sum(own)


def _options(source: Source, record: Record) -> dict[str, str]:
    """The options as the header prints them, or as the command line has them."""
    options: dict[str, str] = {}
    for line in source.lines:
        if PHASE_LINE.match(line):
            break
        if line.startswith("Args: "):
            record.command = Source.words(line[6:])
            options |= _from_command(record.command)
        elif header := HEADER.match(line):
            record.version = header["version"]
            record.started = header["time"].replace(" ", "T")
            record.missing["started (zone)"] = "md-workbench prints the local time without its zone."
            options |= {"version": header["version"], "total objects": header["objects"]}
        elif option := OPTION.match(line):
            options[option[1]] = option[2] or ""
    return options


def _from_command(command: list[str]) -> dict[str, str]:
    found = {}
    for one in command[1:]:
        if long := re.match(r"^--([a-z-]+)(?:=(.*))?$", one):
            found[long[1]] = long[2] or ""
        elif (short := re.match(r"^-([A-Za-z])=?(.*)$", one)) and short[1] in SHORT:
            found[SHORT[short[1]]] = short[2]
    return found


def _parameters(options: dict[str, str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for theirs, ours in NAMES.items():
        try:
            found[ours] = float(options[theirs]) if ours == "waiting_factor" else int(options[theirs])
        except (KeyError, ValueError):
            continue
    if found:
        found["read_only"] = "read-only" in options
        found.setdefault("waiting_factor", 0.0)
        found["phases"] = (
            ",".join(p for p in ("precreate", "benchmark", "cleanup") if f"run-{p}" in options)
            or "precreate,benchmark,cleanup"
        )
    return found


def _ranks(record: Record, options: dict[str, str]) -> int | None:
    """From the reports of ranks, or from counts that are a known multiple of the ranks."""
    reported = [len(p.rank_seconds) for p in record.phases if p.rank_seconds]
    if reported:
        return reported[0]
    shown = record.parameters
    datasets = shown.get("datasets")
    if not datasets:
        return None
    if "total objects" in options and "iterations" in shown and "objects" in shown:
        each = datasets * (shown["iterations"] * shown.get("repeats", 3) + shown["objects"])
        if each and int(options["total objects"]) % each == 0:
            return int(options["total objects"]) // int(each)
    for phase in record.phases:
        made = phase.counts.get("mkdir") or phase.counts.get("rmdir")
        if made and made % datasets == 0 and not phase.errors:
            return int(made // datasets)
    return None


def _values(source: Source, line: int, rest: str) -> dict[str, float]:
    """Every value of a phase line by its name or unit, whatever the version's way of writing."""
    found: dict[str, float] = {}
    ways = [
        ("seconds", r"^(?:process max:)?([\d.]+)s\b"),
        ("first", r"\bmin: ?([\d.]+)s"),
        ("dsets", r"dsets: ?(\d+)|(\d+) dset\b(?!/s)"),
        ("objects", r"(?:objects: ?(\d+)|(\d+) obj\b(?!/s))"),
        ("iops", r"([\d.]+) iops/s"),
        ("objects per second", r"([\d.]+) obj/s"),
        ("MiB/s", r"([\d.]+) M[iI]?[Bb]/s"),
        ("factor", r"waiting_factor:([\d.]+)"),
        ("op-max", r"op-max:([\d.e+-]+)s"),
    ]
    for name, pattern in ways:
        if match := re.search(pattern, rest):
            found[name] = source.number(next(g for g in match.groups() if g is not None), line, name)
    for name in ("seconds", "objects", "objects per second"):
        if name not in found:
            raise source.refuse(line, f"this result has no {name}; the line was cut off")
    found["seconds step"] = 10.0 ** -len((re.match(r"(?:process max:)?\d+\.?(\d*)", rest) or [""] * 2)[1])
    return found


def _seconds(values: dict[str, float]) -> float:
    """Seconds as printed, or objects over their rate (one decimal) where that has more digits."""
    printed, rate = values["seconds"], values["objects per second"]
    return values["objects"] / rate if rate * values["seconds step"] > 0.1 * printed else printed


def _phase(
    source: Source, line: int, name: str, rest: str, values: dict[str, float], read_only: bool, options: dict[str, str]
) -> Phase:
    seconds, objects = _seconds(values), int(values["objects"])
    errors = ERRORS.search(rest)
    if errors is None and "quiet" not in options:
        raise source.refuse(line, "this result has no number of errors; the line was cut off")
    phase = Phase(name, seconds=seconds, errors=int(errors[1]) if errors else 0, origin={"": source.at(line)})
    if name == "benchmark":
        operations = ("stat", "read") if read_only else ("stat", "read", "unlink", "create")
        phase.counts = {op: objects for op in operations}
        if read_only:
            phase.more["read_only"] = True
    elif name == "precreate":
        phase.counts = {"mkdir": int(values.get("dsets", 0)), "create": objects}
    else:
        phase.counts = {"unlink": objects, "rmdir": int(values.get("dsets", 0))}
    phase.counts = {op: count for op, count in phase.counts.items() if count}
    phase.operations = sum(phase.counts.values())
    phase.rate = values["iops"] if values.get("iops") else phase.operations / seconds if seconds else None
    if "first" in values and values["first"] > 0 and values["seconds"] > 0:
        balance = re.search(r"balance: ?([\d.]+)", rest)
        phase.balance = float(balance[1]) / 100 if balance else values["first"] / values["seconds"]
    if "MiB/s" in values:
        phase.bytes_per_second = values["MiB/s"] * 2**20
    if "factor" in values:
        phase.more["waiting_factor"] = values["factor"]
    for op, inside in QUANTILES.findall(rest):
        texts = [text.strip().removesuffix("s") for text in inside.split(",")]
        if len(texts) != len(QUANTILE_NAMES):
            raise source.refuse(
                line,
                f"the latencies of {op} are {len(texts)} values instead of {len(QUANTILE_NAMES)}; the line was cut off",
            )
        known = {
            name: source.number(text, line, f"{name} of {op}") for name, text in zip(QUANTILE_NAMES, texts, strict=True)
        }
        phase.latency[OPERATIONS[op]] = Latency(phase.counts.get(OPERATIONS[op]), known)
    return phase


IMPORTER = Importer(
    "md-workbench",
    "text output and latency files of md-workbench, standalone since 2016 and in IOR",
    "the standard output, and the files written with --latency",
    recognises,
    read,
    of_one_run,
)
