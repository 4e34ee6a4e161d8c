# SPDX-License-Identifier: Apache-2.0
"""A study's answer as text for a terminal."""

from __future__ import annotations

from iocast.wording import text
from iocast.study.amounts import amount, kept_with, limit_of, margin, money, place, reference, tightest
from iocast.study.words import measured_beside, systems_beside
from iocast.records.study import StudyDocument


def as_text(answer: StudyDocument, most: int = 12) -> str:
    """The answer for a terminal: the sentence, the likeliest and cheapest designs, then the rest in words."""
    looked = [d for d in answer["designs"] if d["basis"] != "beyond limits"]
    decision = answer["decision"]["id"] if answer["decision"] else None
    simulated = [d for d in looked if d["basis"] == "simulated"] or looked
    rows = []
    for d in simulated[:most]:
        failing = d["first_failing"]
        fails = "" if failing is None else f"{failing['level']} at {failing['ranks']:,} clients"
        rows.append(
            [
                ("> " if d["id"] == decision else "  ") + f"{d['id']} {d['name']}",
                money(d["cost"], answer["currency"]),
                kept_with(answer, d["probability"]),
                amount("rate", d["rate"]) if d["rate"] else "-",
                amount("", d["tail"]) if d["tail"] else "-",
                "*" if d["front"] else "",
                fails,
            ]
        )
    lines = [answer["headline"], ""]
    chosen = reference(answer)
    if chosen:
        kept = [
            [
                f"  {r['level']}",
                place(r, answer),
                limit_of(r),
                amount(r["quantity"], r["value"]),
                margin(r),
                kept_with(answer, r["probability"]),
                *measured_beside(answer, r),
            ]
            for r in tightest(chosen["levels"])
        ]
        lines += [
            text.table(
                [f"  levels of {chosen['id']}", "tightest", "limit", "forecast", "margin", "kept with"]
                + systems_beside(answer),
                kept,
            ),
            "",
        ]
    lines.append(text.table(["  design", "cost", "keeps all", "rate", "q99", "front", "fails first"], rows))
    meaning = "  rate: of all operations; q99: of the slowest operation; both at the largest scale"
    if len(answer["workloads"]) > 1:
        meaning += (
            ", as weighted geometric means over workloads of unlike operations: they compare designs, and are no rate "
            "that a user sees"
        )
    lines.append(meaning)
    if len(looked) > len(rows):
        lines.append(
            f"  ... and {len(looked) - len(rows)} more, {len(looked) - len(simulated)} of them only screened; all are "
            "in study.json and designs.csv"
        )
    lines.append("")
    lines += [f"{c['about']}: {c['text']}" for c in answer["conclusions"]]
    lines += [f"Beware: {w}" for w in answer["warnings"]]
    return "\n".join(lines)
