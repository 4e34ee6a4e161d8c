#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares pages with what they were in an earlier commit, by the counts of tests/words.py.

    validation/use/pages.py COMMIT [PAGE...]

For each page, by default every page that both have: words, words before the first command, words of a sentence in the
mean, words of the longest sentence, and words of DICTION there."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tests"))
from words import ALLOWED, DICTION, is_page, mean_length, sentences  # noqa: E402


def counts(text: str) -> tuple[int, int, float, int, int]:
    first = re.search(r"^```", text, re.MULTILINE)
    return (
        len(text.split()),
        len(text[: first.start()].split()) if first else len(text.split()),
        mean_length(text),
        max((len(sentence.split()) for _, sentence in sentences(text)), default=0),
        len(DICTION.findall(ALLOWED.sub("", text))),
    )


def main(commit: str, pages: list[str]) -> None:
    def git(*command: str) -> str:
        return subprocess.run(["git", *command], cwd=ROOT, capture_output=True, text=True, check=True).stdout

    before = set(filter(is_page, git("ls-tree", "-r", "--name-only", commit).split()))
    print(f"{'':32} {'words':>14} {'before command':>14} {'mean':>14} {'longest':>14} {'avoided':>14}")
    for page in pages or sorted(before & {p for p in before if (ROOT / p).exists()}):
        now = counts((ROOT / page).read_text())
        then = counts(git("show", f"{commit}:{page}")) if page in before else None
        cells = [
            " -> ".join(f"{one:.1f}" if isinstance(one, float) else f"{one}" for one in (*([t] if then else ["-"]), n))
            for t, n in zip(then or now, now, strict=True)
        ]
        print(f"{page:32} " + " ".join(f"{cell:>14}" for cell in cells))


if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    main(sys.argv[1], sys.argv[2:])
