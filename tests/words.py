#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts what the style of this project avoids, by folder, and compares the counts with tests/words.json.

    tests/words.py                 table of the counts, beside those in tests/words.json
    tests/words.py --show FOLDER   every place in a folder, as FILE:LINE
    tests/words.py --pages         sentence lengths of each page
    tests/words.py --lower         writes counts that have fallen to tests/words.json; no count is ever raised

Counted are: words of `DICTION`, constants of `CONSTANTS`, lines of more than `WIDEST` characters, and on pages
sentences of more than `LONGEST_SENTENCE` words, and pages whose mean sentence is longer than `LONGEST_MEAN`. The target
of every count is 0.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
RATCHET = Path(__file__).with_suffix(".json")
DICTION = re.compile(r"(?<![a-z])(?:told|asked|said)(?![a-z])|\bso many\b|\bof what\b", re.IGNORECASE)
"""Words in texts and parts of names."""
CONSTANTS = re.compile(r"\b(?:MOST_[A-Z_]+|PILES_UP)\b")
ALLOWED = re.compile(
    r"\bthink_asked(?:_seconds)?\b|\bconfidence_asked\b"  # keys of run.json and study.json, which every version reads
    r"|--asked"  # an old option, which is refused with the new one's name
    r"|\b(?:if|when|unless) asked\b|\bthat said\b|\bfrequently asked\b|\bnot so many\b|\bregardless of "
    r"what\b|\b(?:list|copy|part|summary) of what\b"
    r"|\bthink_asked_\b|\bsays?=",  # members of that name, and of the tests' helpers
    re.IGNORECASE,
)
"""Good English, and names that must stay."""
WIDEST = 120
LONGEST_SENTENCE = 40
LONGEST_MEAN = 20
SUFFIXES = {
    ".py",
    ".cpp",
    ".hpp",
    ".h",
    ".c",
    ".md",
    ".yaml",
    ".yml",
    ".txt",
    ".cmake",
    ".j2",
    ".js",
    ".css",
    ".sh",
    "",
}
LEFT_OUT = (
    "tests/samples/",
    "tests/words.",
    "tests/python/test_words.py",
    "LICENSE",
    "docs/figures/",
    "examples/first-forecast/",
    ".git",
)
ROOMS = (
    "docs",
    "examples",
    "platforms",
    "campaigns",
    "workload/catalogue",
    "iocast/report",
    "iocast/study",
    "iocast/calibrate",
    "iocast/importers",
    "iocast/knee",
    "iocast/analytic",
    "iocast/export",
    "iocast",
    "input",
    "workload",
    "profile",
    "real",
    "models",
    "sim",
    "selftest",
    "tests",
    "validation",
    "packaging",
)
"""Folders with counts of their own; a file belongs to the first that it lies in, or else to ".", the root's files."""


def files() -> list[str]:
    listed = subprocess.run(
        ["git", "ls-files"], cwd=REPOSITORY, capture_output=True, text=True, check=True
    ).stdout.split("\n")
    return [
        name
        for name in listed
        if name and Path(name).suffix in SUFFIXES and not name.startswith(LEFT_OUT) and (REPOSITORY / name).is_file()
    ]


def room_of(name: str) -> str:
    return next((room for room in ROOMS if name.startswith(f"{room}/")), ".")


def is_page(name: str) -> bool:
    return name.endswith(".md") and (
        name.startswith(("docs/", "examples/")) or "/" not in name or name == "tests/README.md"
    )


def places(name: str, text: str) -> Iterator[tuple[str, int, str]]:
    """Kind, line and words of everything that counts in a file."""
    code, made, printed = False, False, False
    for number, line in enumerate(text.splitlines(), start=1):
        if name.endswith(".md") and line.startswith(
            "<!-- "
        ):  # what programs write into pages stands between two comments
            made = not line.startswith("<!-- end")
        plain = ALLOWED.sub("", line)
        for found in DICTION.finditer(plain):
            yield "diction", number, found[0]
        for found in CONSTANTS.finditer(plain):
            yield "constants", number, found[0]
        code ^= line.startswith("```")
        printed = code and (printed or line.startswith(("```text", "```json")))  # as programs print it
        unbreakable = (name.startswith("validation/") and name.endswith(".txt")) or (  # as a command prints them
            name.endswith(".md") and (line.lstrip().startswith(("|", "![")) or printed or made or len(line.split()) < 3)
        )
        if len(line) > WIDEST and not unbreakable:
            yield "lines", number, f"{len(line)} characters"
    if is_page(name):
        found_sentences = list(sentences(text))
        for number, sentence in found_sentences:
            if (length := len(sentence.split())) > LONGEST_SENTENCE:
                yield "sentences", number, f"{length} words: {sentence[:60]}"
        if found_sentences and (mean := mean_length(text)) > LONGEST_MEAN:
            yield "pages", 1, f"{mean:.1f} words a sentence"


def mean_length(text: str) -> float:
    lengths = [len(sentence.split()) for _, sentence in sentences(text)]
    return sum(lengths) / len(lengths) if lengths else 0.0


def sentences(text: str) -> Iterator[tuple[int, str]]:
    """Line and sentence, of paragraphs and items of lists; not of code, tables, headings and comments."""
    for number, paragraph in paragraphs(text):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", re.sub(r"`[^`]*`", "code", paragraph)).replace("**", "")
        for sentence in re.split(r"(?<=[.!?])[)\"]?\s+(?=[A-Z(\"*]|code\b)", plain):
            if len(sentence.split()) > 2:
                yield number, sentence


def paragraphs(text: str) -> Iterator[tuple[int, str]]:
    lines: list[str] = []
    first, code = 1, False
    for number, line in enumerate([*text.splitlines(), ""], start=1):
        fence = line.startswith("```")
        ends = code or fence or not line.strip() or re.match(r"\s*(\||#|<|!\[|:   )", line) is not None
        if (ends or re.match(r"\s*([-*]|\d+\.) ", line)) and lines:
            yield first, " ".join(lines)
            lines = []
        if not ends:
            first = first if lines else number
            lines.append(re.sub(r"^\s*([-*]|\d+\.) ", "", line).strip())
        code ^= fence


def counts() -> dict[str, dict[str, int]]:
    """Counts by room and kind; zeros are left out."""
    found: dict[str, Counter[str]] = {}
    for name in files():
        here = found.setdefault(room_of(name), Counter())
        for kind, _, _ in places(name, (REPOSITORY / name).read_text(errors="replace")):
            here[kind] += 1
    return {room: dict(sorted(here.items())) for room, here in sorted(found.items()) if here}


def kept() -> dict[str, dict[str, int]]:
    read: dict[str, dict[str, int]] = json.loads(RATCHET.read_text())
    return read


def risen(now: dict[str, dict[str, int]], before: dict[str, dict[str, int]]) -> list[str]:
    """A sentence for each count that is higher than it was."""
    return [
        f"{room}: {kind} rose from {before.get(room, {}).get(kind, 0)} to {count}; tests/words.py --show {room} lists "
        "them"
        for room, here in now.items()
        for kind, count in here.items()
        if count > before.get(room, {}).get(kind, 0)
    ]


def main(arguments: list[str]) -> int:
    if arguments[:1] == ["--show"]:
        for name in files():
            if room_of(name) == arguments[1].rstrip("/") or name.startswith(arguments[1]):
                for kind, line, words in places(name, (REPOSITORY / name).read_text(errors="replace")):
                    print(f"{name}:{line}: {kind}: {words}")
        return 0
    if arguments == ["--pages"]:
        for name in filter(is_page, files()):
            print(f"{mean_length((REPOSITORY / name).read_text()):5.1f}  {name}")
        return 0
    now = counts()
    if arguments == ["--lower"]:
        before = kept() if RATCHET.exists() else now
        lowered = {
            room: {kind: min(count, now.get(room, {}).get(kind, 0)) for kind, count in here.items()}
            for room, here in before.items()
        }
        lowered = {room: {kind: count for kind, count in here.items() if count} for room, here in lowered.items()}
        RATCHET.write_text(json.dumps({room: here for room, here in lowered.items() if here}, indent=1) + "\n")
        return 0
    for room, here in now.items():
        print(
            f"{room:22}"
            + "".join(f"  {kind} {count} ({kept().get(room, {}).get(kind, 0)})" for kind, count in here.items())
        )
    for sentence in risen(now, kept()):
        print(sentence)
    return 1 if risen(now, kept()) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
