# SPDX-License-Identifier: Apache-2.0
"""Two designs, or two vendors' offers, beside each other: differences with intervals.

Replication k of both shares its draw of the uncertain numbers and its random numbers, so a difference is known better
than either side: intervals are of the paired logarithms, Student's t. The model's own error is common to both and
cancels as far as it is one factor; what is left of it is not known here, and the answer says so.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import numpy as np
from scipy.special import stdtrit

from iocast.errors import InputError
from iocast.ground.files import SCHEMA_VERSION, read_json, read_yaml
from iocast.platforms.documents import PLATFORMS, find_platform
from iocast.records.quantities import ACCELERATORS
from iocast.ground.scratch import scratch_directory
from iocast.ground.strict_yaml import allowed_sentence
from iocast.study import ANSWER, SAMPLES
from iocast.study.amounts import amount, chance, is_confident, money, quoted
from iocast.wording.text import percent, table
from iocast.jobs.workers import Workers
from iocast.records.study import StudyDocument

Json = dict[str, Any]


def is_design(argument: str) -> bool:
    """Whether an argument of `iocast compare` names a design (DIRECTORY:DESIGN), a study, or an offer (a platform
    file)."""
    path, colon, design = argument.rpartition(":")
    if colon and design and (Path(path) / ANSWER).is_file():
        return True
    return (Path(argument) / ANSWER).is_file() or is_offer(argument)


def is_offer(argument: str) -> bool:
    """Whether it is a platform file, or a platform of the catalogue."""
    return argument.endswith((".yaml", ".yml")) or argument in {file.stem for file in PLATFORMS.glob("*.yaml")}


def compare(
    first: str,
    second: str,
    study: Path | None,
    workers: Workers,
    report: Callable[[str, int, int], None],
    level: float,
    seed: int = 0,
) -> Json:
    """@raises InputError when an argument names no design, or the two have no quantity in common"""
    if study is not None:
        sides = _offers(first, second, study, workers, report, seed)
    else:
        sides = [_design(first), _design(second)]
    rows = _rows(sides, level)
    if not rows:
        raise InputError(
            f"'{first}' and '{second}' have no workload, scale and quantity in common; compare designs of the same "
            "workloads and scales."
        )
    answer: Json = {"schema_version": SCHEMA_VERSION, "kind": "comparison", "level": level}
    answer["sides"] = [
        {k: side[k] for k in ("argument", "id", "name", "cost", "currency", "probability", "asks", "values")}
        for side in sides
    ]
    answer["rows"] = rows
    answer["conclusion"] = _conclusion(sides, rows)
    return answer


def _design(argument: str) -> Json:
    path, _, design = argument.rpartition(":")
    directory = Path(path) if path and (Path(path) / ANSWER).is_file() else Path(argument)
    if not (directory / ANSWER).is_file():
        raise InputError(
            f"'{argument}' is no design; write DIRECTORY:DESIGN with a directory that iocast study wrote, or DIRECTORY "
            "for its decision."
        )
    reported = cast(StudyDocument, read_json(directory / ANSWER, "study"))
    samples = read_json(directory / SAMPLES, "samples")
    if directory == Path(argument):
        if reported["decision"] is None:
            raise InputError(
                f"The study '{directory}' has no decision; name one of its designs: "
                f"{directory}:{reported['designs'][0]['id']}."
            )
        design = reported["decision"]["id"]
    known = {d["id"]: d for d in reported["designs"]} | {d["name"]: d for d in reported["designs"]}
    if design not in known:
        raise InputError(
            f"The study '{directory}' has no design '{design}'. "
            f"{allowed_sentence(design, [d['id'] for d in reported['designs'] if d['basis'] == 'simulated'])}"
        )
    found = known[design]
    if found["id"] not in samples["designs"]:
        raise InputError(
            f"The design '{design}' of '{directory}' was only screened, never simulated; allow more with search: "
            f"{{simulate: ...}} in the study."
        )
    return {
        **found,
        "argument": argument,
        "currency": reported["currency"],
        "asks": [level["level"] for level in reported["levels"]],
        "rows": samples["designs"][found["id"]]["rows"],
        "platform": reported["platform"],
        "probability": found["probability"] if is_confident(reported) else None,
    }


def _offers(
    first: str, second: str, study: Path, workers: Workers, report: Callable[[str, int, int], None], seed: int
) -> list[Json]:
    """Both files take the place of the study's platform, with the first value on every axis."""

    import yaml

    from iocast.study import run_study

    document = read_yaml(study)
    files = {offer: find_platform(offer).resolve() for offer in (first, second)}
    for offer, file in files.items():
        if not file.is_file():
            raise InputError(f"There is no platform file '{offer}'.")
    document["axes"] = {
        "offer": {
            Path(o).stem if Path(first).stem != Path(second).stem else o: {"platform": str(file)}
            for o, file in files.items()
        }
    }
    document["platform"] = str(files[first])
    for key in ("exclude", "base", "limits", "measurements"):
        document.pop(key, None)
    for workload in document.get("workloads", {}).values():
        if str(workload.get("workload", "")).endswith((".yaml", ".yml")):
            workload["workload"] = str((study.parent / workload["workload"]).resolve())
    with scratch_directory("compare") as scratch:
        file = scratch / "study.yaml"
        file.write_text(yaml.safe_dump(document, sort_keys=False))
        try:
            run_study(file, scratch / "answer", workers, report, [], seed)
        except InputError as error:
            raise InputError(str(error).replace(str(file), str(study))) from error
        return [
            _design(f"{scratch}/answer:d{i}") | {"argument": offer} for i, offer in enumerate((first, second), start=1)
        ]


def _rows(sides: list[Json], level: float) -> list[Json]:
    """One for each workload, scale and quantity that both have."""
    keys = ("scenario", "workload", "scale", "ranks", "quantity")
    second = {tuple(r[k] for k in keys): r["values"] for r in sides[1]["rows"]}
    rows = []
    for row in sides[0]["rows"]:
        key = tuple(row[k] for k in keys)
        if key not in second:
            continue
        a, b = row["values"], second[key]
        reported = {k: row[k] for k in keys} | {
            "first": a[0],
            "second": b[0],
            "ratio": None,
            "low": None,
            "high": None,
            "pairs": 0,
            "without": 0,
            "clear": False,
        }
        drawn = list(zip(a[1:], b[1:], strict=False))
        pairs = [math.log(y / x) for x, y in drawn if x and y]
        reported["without"] = len(drawn) - len(pairs)
        if a[0] and b[0]:
            reported["ratio"] = math.exp(float(np.mean(pairs))) if pairs else b[0] / a[0]
        if len(pairs) > 1:
            half = _student(level, len(pairs) - 1) * float(np.std(pairs, ddof=1)) / math.sqrt(len(pairs))
            spread = _student(level, len(pairs) - 1) * float(np.std(pairs, ddof=1)) * math.sqrt(1 + 1 / len(pairs))
            middle = float(np.mean(pairs))
            # The mean says which is better on the whole; where one and the same future may go either way, the wider
            # interval says.
            reported |= {
                "pairs": len(pairs),
                "mean_low": math.exp(middle - half),
                "mean_high": math.exp(middle + half),
                "low": math.exp(middle - spread),
                "high": math.exp(middle + spread),
            }
            # Where a side has no value in a replication, the pairs that are left are a choice of the better ones.
            reported["clear"] = not reported["without"] and (reported["low"] > 1 or reported["high"] < 1)
        rows.append(reported)
    return rows


def _student(level: float, degrees: int) -> float:
    return float(stdtrit(degrees, (1 + level) / 2))


def _conclusion(sides: list[Json], rows: list[Json]) -> str:
    a, b = sides
    words = []
    if a["currency"] != b["currency"]:
        words.append(
            f"{quoted(a['name'])} costs {money(a['cost'], a['currency'])}, {quoted(b['name'])} "
            f"{money(b['cost'], b['currency'])}: amounts in unlike currencies are not compared."
        )
    elif a["cost"] or b["cost"]:
        gap = b["cost"] - a["cost"]
        words.append(
            f"{quoted(b['name'])} costs {money(abs(gap), b['currency'])} {'more' if gap > 0 else 'less'} than "
            f"{quoted(a['name'])}."
            if gap
            else "Both cost the same."
        )
    last = [
        r for r in rows if r["ranks"] == max(x["ranks"] for x in rows) and r["quantity"] == "rate" and not r["scenario"]
    ]
    for r in last:
        if r["ratio"]:
            sure = "" if r["clear"] else ", which may be chance" if abs(math.log(r["ratio"])) > 0.01 else ""
            words.append(
                f"At {r['ranks']:,} clients of {r['workload']} it serves {percent(r['ratio'] - 1)} operations a "
                f"second{sure}."
            )
    if a["probability"] is not None and b["probability"] is not None:
        keeps = [f"{chance(side['probability'])} confidence" for side in (b, a)]
        words.append(
            f"It keeps all levels with {keeps[0]}, the other with {keeps[1]}."
            if a["asks"] == b["asks"]
            else f"Their studies have unlike levels: it keeps {_listed(b['asks'])} with {keeps[0]}, the other "
            f"{_listed(a['asks'])} with {keeps[1]}."
        )
    if dropped := sorted({r["without"] for r in rows if r["without"]}):
        words.append(
            f"In up to {dropped[-1]} replications a side has no value (it is down, or does no such operation); there "
            "no difference is called clear."
        )
    return " ".join(words)


def _listed(levels: list[str]) -> str:
    return ", ".join(quoted(level) for level in levels) or "no level"


def as_text(answer: Json) -> str:
    """For a terminal: the larger differences of rates and tails first come with the largest scale."""
    a, b = answer["sides"]
    lines = [f"{a['id']} {a['name']}  against  {b['id']} {b['name']}"]
    rows = []
    for r in answer["rows"]:
        if r["quantity"].rpartition(".")[2] not in ("rate", "q50", "q99", "bandwidth", "seconds", *ACCELERATORS):
            continue
        ratio = "-" if r["ratio"] is None else percent(r["ratio"] - 1)
        interval = "-" if r["low"] is None else f"{percent(r['low'] - 1)} .. {percent(r['high'] - 1)}"
        where = f"{r['workload']}, {r['scale']}" + (f", {r['scenario']}" if r["scenario"] else "")
        rows.append(
            [
                f"{where}: {r['quantity']}",
                *("down" if r[side] is None else amount(r["quantity"], r[side]) for side in ("first", "second")),
                ratio,
                interval,
                "yes" if r["clear"] else "",
            ]
        )
    lines.append(table(["", a["id"], b["id"], "difference", f"{100 * answer['level']:.0f} % interval", "clear"], rows))
    lines.append(answer["conclusion"])
    lines.append(
        "Intervals are of the paired replications; an error of the model that differs between the two is not in them."
    )
    return "\n".join(lines)
