# SPDX-License-Identifier: Apache-2.0
"""An IO500 result directory: result_summary.txt, result.txt (INI), and the outputs of the phases beside them where they
were kept.

Both generations are read: the lines "[RESULT] BW phase 1 ior_easy_write ... GB/s" of 2018 to mid-2020 (their GB are
2^30 bytes, as the phases' outputs show), and "[RESULT] ior-easy-write ... GiB/s" since. Rates are the scores of the
phases: kIOPS of mdtest and find, GiB/s of IOR; times are IO500's, which begin before and end after the measurement. How
many processes ran is in result.txt since 2023 (procs), else in the phases' own outputs ("ior-easy-write.txt",
"mdtest_easy_write.txt"), or must be named. The operations that a phase's output counts are in `counted`, with the time
that its rate is of; times of single ranks come from the phases' CSV files.
"""

from __future__ import annotations

import configparser
import csv
import math
import re
from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from iocast.errors import InputError
from iocast.importers import Importer, ior, mdtest
from iocast.importers.record import AGREEMENT, Phase, Record, place_one_after_the_other
from iocast.importers.source import Source, directories_below
from iocast.ground.strict import is_whole

RESULT = re.compile(
    r"^\[(?:RESULT(?P<mark>-invalid)?|\s+)\]\s+(?:(?:BW|IOPS)\s+phase\s+\d+\s+)?(?P<name>[a-z]\S*)"
    r"\s+(?P<score>[\d.]+|-?nan|inf) (?P<unit>kIOPS|kiops|GiB/s|GB/s)"
    r"\s*: time\s+(?P<time>[\d.]+) seconds(?P<invalid>\s*\[INVALID\])?"
)
SCORE = re.compile(
    r"^\[SCORE(?:-invalid| ?INVALID)?\s*\]\s+Bandwidth ([\d.]+|-?nan|inf) \S+\s*: IOPS ([\d.]+|-?nan|inf) kiops\s*: "
    r"TOTAL ([\d.]+|-?nan|inf)"
)
OPERATIONS = {"write": "create", "stat": "stat", "read": "read", "delete": "unlink"}
LAUNCHED = re.compile(r"was launched with (\d+) total task\(s\) on (\d+) node")
LAUNCH = re.compile(r"(?:mpirun|mpiexec(?:\.hydra)?|srun|mpiargs=).*?\s?-(?:np|n|-ntasks[= ])\s*(\d+)\b")
LAUNCHERS = re.compile(r"\.(sh|out|log|slurm|sbatch|job)$|^io500.*\.txt$")
NAMES = ("result_summary.txt", "result.txt")
NO_PHASE = ("timestamp",)


def recognises(source: Source) -> bool:
    if source.is_directory:
        return bool(packages(source.path))
    return bool(
        re.search(
            r"^\[RESULT(?:-invalid)?\]\s+(?:(?:BW|IOPS)\s+phase\s+\d+\s+)?(ior|mdtest|find)", source.head, re.MULTILINE
        )
    ) or ("config-hash" in source.head and "[ior-easy-write]" in source.head)


def is_package(path: Path) -> bool:
    return any((path / name).is_file() for name in NAMES)


def packages(path: Path) -> list[Path]:
    """The directory itself when it is a package, else those below it, as submissions have them in results/TIME.

    A copy of the summary in the outer folder, without the phases' outputs, is not the package."""
    if is_package(path) and any(re.match(r"(ior|mdtest)[-_]", file.name) for file in path.glob("*.txt")):
        return [path]
    below = _below(path)
    return [path] if is_package(path) and below in ([], [path]) else [one for one in below if one != path]


def _below(path: Path) -> list[Path]:
    return sorted(
        directory
        for directory in directories_below(path)
        if is_package(directory) and not any(part.startswith(".") for part in directory.parts)
    )


def read(sources: Sequence[Source]) -> list[Record]:
    found = []
    for source in sources:
        for path in packages(source.path) if source.is_directory else [source.path]:
            own = Source(path) if source.is_directory else source
            found.append(_read_one(own))
            found[-1].sources = [own]
    return found


def _read_one(source: Source) -> Record:
    summary = _file(source.path, NAMES[0]) if source.is_directory else source
    details = _file(source.path, NAMES[1]) if source.is_directory else source if "config-hash" in source.head else None
    whole = summary is not None and "[RESULT" in summary.text and any(SCORE.match(line) for line in summary.lines)
    ini = _ini(details) if details is not None else None
    if summary is not None and (whole or ini is None or not ini.has_section("SCORE")):
        phases = _from_summary(summary) if "[RESULT" in summary.text else []
        main = summary
    else:
        phases, main = (_from_ini(ini, details), details) if ini is not None and details is not None else ([], source)
    if not phases:
        raise InputError(
            f"{source.path}:1: there is no finished phase in it ([RESULT] lines, or sections with a score)."
        )
    if not whole and not (ini is not None and ini.has_section("SCORE")):
        raise (main or source).refuse_cut("the score")
    record = Record("io500", "IO500", phases, pattern="io500")
    if ini is not None and details is not None:
        _add_details(record, ini, details)
    else:
        record.missing["phases[].start_seconds"] = (
            "Only result.txt has the phases' starts; they are placed one after the other."
        )
    _add_score(record, main)
    if source.is_directory:
        _compare_with_outer(record, source.path)
    if source.is_directory:
        _add_outputs(record, source.path)
    if record.ranks is None:
        _add_launch(
            record,
            [source]
            if not source.is_directory
            else [Source(p) for p in sorted(source.path.iterdir()) if LAUNCHERS.search(p.name) and p.stat().st_size],
        )
    if any(phase.seconds is None for phase in phases):
        record.missing["phases[].seconds"] = "IO500 was run at verbosity 0, at which result.txt has no times."
    if any(phase.operations is None for phase in phases):
        record.missing["phases[].operations"] = (
            "IO500 prints rates and its own times, which are longer than what the rates are of; see counted."
        )
    if not any(phase.rank_seconds for phase in phases):
        record.missing["phases[].rank_seconds"] = (
            "Times of single ranks are in the phases' CSV files only, which are not there."
        )
    place_one_after_the_other(phases)
    return record


def _compare_with_outer(record: Record, directory: Path) -> None:
    """Warns where the summary of a folder above, which is what a list publishes, has other numbers than this one."""
    for outer in list(directory.parents)[:3]:
        summary = _file(outer, NAMES[0])
        if summary is None:
            continue
        if any(summary.text == one.text for path in packages(outer) if (one := _file(path, NAMES[0]))):
            return
        own = {phase.name: phase.bytes_per_second or phase.rate for phase in record.phases}
        both = [
            (phase.name, phase.bytes_per_second or phase.rate or 0, own[phase.name] or 0)
            for phase in _from_summary(summary)
            if phase.name in own
        ]
        differ = [one for one in both if not math.isclose(one[1], one[2], rel_tol=0.005)]
        if differ:
            name, theirs, ours = differ[0]
            more = f", and {len(differ) - 1} more phases differ" if len(differ) > 1 else ""
            record.warnings.append(
                f"{summary.path}: the outer result_summary.txt has other numbers than the one in '{directory.name}', "
                f"which is imported with the phases' outputs: {name} {theirs:.6g} /s and {ours:.6g} /s{more}. The "
                "outer one is what is published; import it by its name for its numbers."
            )
        return


def _file(directory: Path, name: str) -> Source | None:
    return Source(directory / name) if (directory / name).is_file() and (directory / name).stat().st_size else None


def _phase(name: str, score: float, seconds: float | None, where: str) -> Phase:
    phase = Phase(name, seconds=seconds, origin={"": where})
    if name.startswith("ior"):
        phase.bytes_per_second = score * 2**30
        phase.more["rate_unit"] = "bytes"
    else:
        phase.rate = 1000 * score
    return phase


def _operation(name: str) -> str:
    if name.startswith("ior"):
        return "pwrite" if name.endswith("write") else "pread"
    return OPERATIONS.get(name.split("-")[-1], "find") if name.startswith("mdtest") else "find"


def _from_summary(source: Source) -> list[Phase]:
    phases = []
    for number, line in source.numbered:
        found = RESULT.match(line)
        if found is None:
            if line.startswith("[RESULT"):
                raise source.refuse(
                    number,
                    "this is no whole result ('[RESULT] name value unit : time ... seconds'); the line was cut off",
                )
            continue
        name = found["name"].replace("_", "-")
        if name in NO_PHASE or found["score"] in ("nan", "-nan", "inf"):
            continue
        score, seconds = (
            source.number(found["score"], number, "the score"),
            source.number(found["time"], number, "the time"),
        )
        if score <= 0:
            continue
        phases.append(_phase(name, score, seconds, source.at(number)))
        if found["invalid"] or found["mark"]:
            phases[-1].more["invalid"] = True
    return phases


def _ini(source: Source) -> configparser.ConfigParser:
    ini = configparser.ConfigParser(
        strict=False, interpolation=None, comment_prefixes=(";",), inline_comment_prefixes=None
    )
    try:
        ini.read_string("[run]\n" + source.text)
    except configparser.ParsingError as error:
        line, what = error.errors[0]
        raise source.refuse(
            line - 1, f"this line is no 'key = value' ({what}); the file may have been cut off"
        ) from error
    except configparser.Error as error:
        raise source.refuse(1, f"this is no INI file ({error.message})") from error
    return ini


def _line_of(source: Source, section: str, key: str) -> int:
    """The line of a key of a section."""
    inside = section == "run"
    for number, text in source.numbered:
        if text.startswith("["):
            inside = text.strip() == f"[{section}]"
        elif inside and re.match(rf"{re.escape(key)}\s*=", text):
            return number
    return 1


def _from_ini(ini: configparser.ConfigParser, source: Source) -> list[Phase]:
    phases = []
    for name in ini.sections():
        if re.match(r"^(ior|mdtest|find)", name) and ini.has_option(name, "score"):
            line, timed = _line_of(source, name, "score"), _line_of(source, name, "t_delta")
            words = ini.get(name, "score").split()
            if not words or re.search("nan|inf", words[0], re.IGNORECASE):
                continue
            score, delta = source.number(words[0], line, "score"), ini.get(name, "t_delta", fallback="").split()
            seconds = source.number(delta[0], timed, "t_delta") if delta else None  # verbosity 0 prints no times
            if score > 0:
                phases.append(_phase(name, score, seconds, source.at(line)))
                if seconds is not None:
                    phases[-1].origin["seconds"] = source.at(timed)
                if "[INVALID]" in ini.get(name, "score"):
                    phases[-1].more["invalid"] = True
    return phases


def _add_score(record: Record, source: Source | None) -> None:
    for line in source.lines if source is not None else []:
        if found := SCORE.match(line):
            record.facts["score"] = dict(
                zip(
                    ("bandwidth", "kiops", "total"),
                    (None if "n" in v else float(v) for v in found.groups()),
                    strict=True,
                )
            )
            if re.search("invalid", line, re.IGNORECASE):
                record.warnings.append(
                    "IO500 calls this run invalid (stonewall time, data set or phases are not those of the rules)."
                )


def _add_details(record: Record, ini: configparser.ConfigParser, source: Source) -> None:
    """Version, processes, starts, options, and of IOR phases the rate of transfers."""
    record.version = ini.get("run", "version", fallback=None) or None
    procs = ini.get("run", "procs", fallback="").split()
    if procs and is_whole(procs[0]):
        record.ranks, record.origin["ranks"] = int(procs[0]), source.at(_line_of(source, "run", "procs"))
    if ini.has_section("SCORE") and ini.has_option("SCORE", "SCORE"):
        keys = (("bandwidth", "BW"), ("kiops", "MD"), ("total", "SCORE"))
        values = {ours: ini.get("SCORE", theirs, fallback="").split()[:1] for ours, theirs in keys}
        record.facts["score"] = {
            k: float(v[0]) if v and re.match(r"[\d.]+$", v[0]) else None for k, v in values.items()
        }
    first: datetime | None = None
    for phase in record.phases:
        if not ini.has_section(phase.name):
            continue
        start, command = ini.get(phase.name, "t_start", fallback=""), ini.get(phase.name, "exe", fallback="")
        try:
            when = datetime.strptime(start, "%Y-%m-%d %H:%M:%S")
            first = first or when
            phase.start_seconds = (when - first).total_seconds()
        except ValueError:
            pass
        _add_command(phase, command, source.at(_line_of(source, phase.name, "exe")))
        if is_whole(ini.get(phase.name, "total-files", fallback="")):
            phase.more["counted"] = {"operations": ini.getint(phase.name, "total-files"), "seconds": None}
            phase.origin["counted"] = source.at(_line_of(source, phase.name, "total-files"))
        try:
            last = datetime.strptime(ini.get(phase.name, "t_end", fallback=""), "%Y-%m-%d %H:%M:%S")
            record.elapsed = (last - (first or last)).total_seconds(), source.at(_line_of(source, phase.name, "t_end"))
        except ValueError:
            pass
    if first is not None:
        record.started = first.isoformat()
        record.missing["started (zone)"] = "IO500 prints the local time without its zone."


def _add_command(phase: Phase, command: str, where: str) -> None:
    """The options of a phase, and of IOR the transfer size and with it the rate of transfers."""
    if not command or "command" in phase.more:
        return
    phase.more["command"] = Source.words(command)
    size = ior.transfer_size(command) if phase.name.startswith("ior") else None
    if size and phase.bytes_per_second is not None:
        phase.more["transfer_size"], phase.origin["transfer_size"] = size, where
        phase.rate, phase.origin["rate"] = (
            phase.bytes_per_second / size,
            f"{phase.origin['']} / {where} (bandwidth / transfer size)",
        )


# ---- the phases' own outputs


def _add_outputs(record: Record, directory: Path) -> None:
    """Processes and nodes, commands, counts and times of ranks from the outputs of IOR and mdtest in the directory."""
    votes: Counter[tuple[int, int | None]] = Counter()
    where: dict[tuple[int, int | None], str] = {}
    for path in sorted(directory.glob("*.txt")):
        name = path.stem.replace("_", "-")
        if path.name.startswith(".") or not re.match(r"(ior|mdtest)-", name) or path.stat().st_size == 0:
            continue
        source = Source(path)
        tool = mdtest if name.startswith("mdtest") else ior
        try:
            own = tool.read([source])[0] if tool.recognises(source) else None
            if own is not None:
                own.settle()
        except InputError as error:  # what says how many processes ran may be whole all the same
            record.warnings.append(f"The output of a phase is left out but for its placement: {error}")
            if launch := LAUNCHED.search(source.text):
                place = int(launch[1]), int(launch[2])
                votes[place] += 1
                where.setdefault(place, source.at(source.line_at(launch.start())))
            continue
        if own is None or own.ranks is None:
            continue
        votes[own.ranks, own.nodes] += 2 if own.nodes else 1
        where.setdefault((own.ranks, own.nodes), own.origin.get("ranks", str(path)))
        phase = next((p for p in record.phases if p.name == name), None)
        if phase is not None:
            _add_output(phase, own)
            record.warnings += [sentence for sentence in own.warnings if phase.more.get("printed_rate")]
    if record.ranks is not None:
        votes = Counter({place: n for place, n in votes.items() if place[0] == record.ranks})
    if len({place[0] for place in votes}) > 1:
        printed = ", ".join(f"{n} in {where[n, m]}" for n, m in votes)
        record.warnings.append(
            f"The outputs of the phases say different numbers of processes ({printed}); the most frequent one is "
            "imported."
        )
    if votes:
        most = max(votes, key=lambda p: votes[p])
        record.ranks, record.nodes = most
        record.origin |= {"ranks": where[most], "nodes": where[most]}
    for phase in record.phases:
        _add_rank_times(phase, directory, record.ranks)


def _add_launch(record: Record, sources: list[Source]) -> None:
    """Processes from the command that started them (mpirun, mpiexec, srun), in io500.sh or its output.

    All commands must agree. A line "exe = mpirun ..." of result.txt starts another program for find, on processes of
    its own."""
    found: dict[int, str] = {}
    for source in sources:
        for number, line in enumerate(source.lines if source.head else [], start=1):
            if not re.match(r"\s*(#|exe\s*=)", line) and (launch := LAUNCH.search(line)):
                found.setdefault(int(launch[1]), source.at(number))
    if len(found) == 1:
        record.ranks, record.origin["ranks"] = next(iter(found.items()))


def _add_output(phase: Phase, own: Record) -> None:
    """What the phase's own output says of it: the command, how many operations in what time, and bytes."""
    op = _operation(phase.name)
    wanted = (
        "write"
        if op == "pwrite"
        else "read"
        if op == "pread"
        else f"file-{ {'unlink': 'remove'}.get(op, op) }".replace(" ", "")
    )
    same = next((p for p in own.phases if p.name == wanted), None)
    if own.command and own.tool == "IOR":
        _add_command(phase, " ".join(own.command), own.origin.get("command", ""))
    if same is None:
        return
    phase.more["counted"] = {"operations": same.operations, "seconds": same.seconds}
    phase.origin |= {
        f"counted.{key}": same.origin.get(key, same.origin[""]) for key in ("operations", "seconds", "bytes")
    }
    if same.bytes is not None:
        phase.more["counted"]["bytes"] = same.bytes
    printed = same.more.get("printed_rate")
    if printed and phase.rate and same.rate and abs(phase.rate / printed - 1) < AGREEMENT:
        phase.rate, phase.more["printed_rate"] = same.rate, phase.rate
        phase.origin["printed_rate"], phase.origin["rate"] = phase.origin[""], same.origin["rate"]
    if (
        phase.rate
        and phase.seconds
        and same.operations
        and abs(phase.rate * phase.seconds / same.operations - 1) < 1e-3
    ):
        phase.operations, phase.counts = same.operations, {op: same.operations}
        phase.origin["operations"] = phase.origin[f"latency.{op}.count"] = phase.origin["counted.operations"]


def _add_rank_times(phase: Phase, directory: Path, ranks: int | None) -> None:
    """Seconds of each rank from the phase's CSV file: of IOR with open and close, of mdtest of the operation.

    The CSV file of find has the seconds of all ranks together."""
    path = directory / f"{phase.name}.csv"
    if not path.is_file() or path.stat().st_size == 0:
        return
    if phase.name.startswith("find"):
        if (runtime := re.match(r"runtime: ([\d.]+) ", Source(path).text)) and "counted" in phase.more:
            phase.more["counted"]["seconds"], phase.origin["counted.seconds"] = float(runtime[1]), f"{path}:1"
        return
    rows = list(csv.DictReader(Source(path).lines))
    if not rows:
        return
    kinds = {"create": "File creation", "stat": "File stat", "read": "File read", "unlink": "File removal"}
    column = (
        "runtime-with-openclose" if phase.name.startswith("ior") else f"time-{kinds.get(_operation(phase.name), '')}"
    )
    found = {
        int(row["rank"]): float(row[column])
        for row in rows
        if is_whole(row.get("rank") or "") and re.match(r"[\d.]", row.get(column) or "")
    }
    if found and sorted(found) == list(range(ranks or len(found))):
        phase.rank_seconds = [found[rank] for rank in range(len(found))]
        phase.balance = min(phase.rank_seconds) / max(phase.rank_seconds) if max(phase.rank_seconds) else None
        phase.origin["rank_seconds"] = f"{path}:2"


IMPORTER = Importer(
    "io500", "result directory of IO500, or its result_summary.txt or result.txt", "the directory", recognises, read
)
