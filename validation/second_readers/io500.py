# SPDX-License-Identifier: Apache-2.0
"""IO500 packages: the summary's lines in both generations, or result.txt's sections; tasks and nodes from the outputs beside it."""

from __future__ import annotations

import configparser
import re
from pathlib import Path

from . import Printed, Reading

OLD = r"^\[RESULT\](-invalid)? (?:BW|IOPS)\s+phase \d+\s+(\S+)\s+([\d.]+) (\S+)\s*: time\s+([\d.]+) seconds"
NEW = r"^\[(?:RESULT|      )\]\s+([a-z]\S*)\s+([\d.]+) (\S+)\s*: time\s+([\d.]+) seconds"


def read(path: Path, text: str) -> Reading | None:
    """A summary or result.txt alone."""
    if re.search(OLD, text, re.M) or re.search(NEW, text, re.M):
        return _summary(text)
    if "config-hash" in text and "[ior-easy-write]" in text and "t_delta" in text:
        return _result(text)
    return None


def read_directory(path: Path) -> Reading | None:
    """The package whose summary or result.txt is in this directory."""
    summary, result = path / "result_summary.txt", path / "result.txt"
    texts = {f: f.read_text(errors="replace") for f in (summary, result) if f.is_file()}
    reading = None
    if summary in texts and texts[summary].strip():
        reading = read(summary, texts[summary])
    if (reading is None or reading.refusal) and result in texts:
        reading = read(result, texts[result])
    if reading is None:
        return None
    for run in reading.runs:
        run.ranks, run.nodes = _placement(path)
        if run.ranks is None and result in texts and (found := re.search(r"^procs\s*= (\d+)", texts[result], re.M)):
            run.ranks = int(found[1])
    return reading


def _quantity(run: Printed, name: str, value: str, unit: str, seconds: str) -> None:
    if unit.lower() == "kiops":
        run.put(name, 0, rate=float(value) * 1000, seconds=float(seconds))
    else:
        run.put(name, 0, bytes_per_second=float(value) * (2**30 if unit == "GiB/s" else 1e9), seconds=float(seconds))


def _summary(text: str) -> Reading:
    lines = [line for line in text.splitlines() if re.match(r"\[(RESULT|      )", line) and " timestamp " not in line]
    run = Printed()
    old = bool(re.search(OLD, text, re.M))
    for line in lines:
        found = re.match(OLD if old else NEW, line)
        if found is None:
            return Reading("io500", "2018-2020" if old else "2020-", refusal="truncated")
        name, value, unit, seconds = found.groups()[-4:]
        # The first generation calls 10^9 or 2^30 bytes GB; its phases' outputs show that it is 2^30.
        _quantity(run, name.replace("_", "-"), value, "GiB/s" if old and unit in ("GB/s", "GiB/s") else unit, seconds)
    reading = Reading("io500", "2018-2020" if old else "2020-", [run])
    if not re.search(r"^\[SCORE", text, re.M):
        reading = Reading("io500", reading.version, refusal="truncated")
    return reading


def _result(text: str) -> Reading:
    ini = configparser.ConfigParser(strict=False, interpolation=None, comment_prefixes=(";",))
    ini.read_string("[before]\n" + text)
    run = Printed()
    if found := re.search(r"^procs\s*= (\d+)", text, re.M):
        run.ranks = int(found[1])
    for name in ini.sections():
        part = ini[name]
        if re.match("ior|mdtest|find", name) and "score" in part and "t_delta" in part and float(part["score"].split()[0]) > 0:
            unit = "GiB/s" if name.startswith("ior") else "kIOPS"
            _quantity(run, name, part["score"].split()[0], unit, part["t_delta"].split()[0])
    if not ini.has_section("SCORE"):
        return Reading("io500", "2020- result.txt", refusal="truncated")
    return Reading("io500", "2020- result.txt", [run])


def _placement(path: Path) -> tuple[int | None, int | None]:
    votes = []
    for file in sorted(path.glob("*.txt")):
        text = file.read_text(errors="replace")
        if found := re.search(r"mdtest-\S+ was launched with (\d+) total task\(s\) on (\d+) node", text):
            votes.append((int(found[1]), int(found[2])))
    if votes:
        return max(set(votes), key=votes.count)
    for file in sorted(path.glob("ior*.txt")):
        text = file.read_text(errors="replace")
        tasks = re.search(r"^\s*tasks\s*: (\d+)", text, re.M)
        nodes = re.search(r"^\s*nodes\s*: (\d+)", text, re.M)
        if tasks:
            return int(tasks[1]), int(nodes[1]) if nodes else None
    return None, None
