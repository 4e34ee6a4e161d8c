# SPDX-License-Identifier: Apache-2.0
"""What a report says of how many accelerators storage feeds: forecasts (`kind: accelerators`), and searches and
simulations over their number (`kind: fed`; docs/answers.md)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from iocast.training.accelerators import FARTHEST
from iocast.knee.feeding import verdict
from iocast.report import units
from iocast.report.sources import Sources
from iocast.report.table import Column, Table

QUESTION = "How many accelerators does the storage keep busy?"


def table(sources: Sources) -> Table:
    """A line for each count of accelerators that was measured, simulated or forecast."""
    rows = [row for one in sources.feedings for row in (_forecast(one) if _is_forecast(one) else _counted(one))]
    columns = [
        Column("name", "source"),
        Column("count", "accelerators", "count"),
        Column("what", "basis"),
        Column("au", "utilisation", "share"),
        Column("au_low", "interval", "share", "au_high"),
        Column("samples", "samples a second", "rate"),
        Column("bytes_per_second", "bandwidth", "bandwidth"),
        Column("bytes_low", "interval", "bandwidth", "bytes_high"),
        Column("samples_low", "interval of samples", "rate", "samples_high"),
        Column("fed", "is fed", "chance"),
        Column("met", "runs that kept the levels"),
    ]
    kept = [one for one in columns if any(row.get(one.key) not in (None, "") for row in rows)]
    note = (
        "Utilisation is computation over time after the first step; of the whole phase where that was not recorded. "
        "The basis 'if it is fed' supposes that the system was built to feed that number."
    )
    return Table("feeding", "Accelerators that are fed", note, kept, rows, leads=True)


def headline(document: Mapping[str, Any]) -> str:
    """How many are fed, in a sentence."""
    if not _is_forecast(document):
        if "answer" in document:
            return f"{document['workload']}: {verdict(document)}"
        last = _counted(document)[-1]
        where = f" on {document['platform']['name']}" if "platform" in document else ""
        return (
            f"In simulation, {last['count']:,} accelerators that train {document['workload']}{where} are "
            f"{units.share(last['au'])} busy."
        )
    of, most = document["of"], document["most"]
    title = " ".join(of[name] for name in ("system", "workload", "accelerator") if name in of)
    limit = units.share(document["limit"])
    if most["value"] is None:
        return f"{title}: {_count(None)} keep {limit} utilisation."
    value, low, high = (_count(most[key]) for key in ("value", "low", "high"))
    keep = "accelerator keeps" if most["value"] == 1 else "accelerators keep"
    return f"{title}: {value} {keep} {limit} utilisation ({low} to {high})."


def reach(document: Mapping[str, Any]) -> str:
    """What the ranges of a forecast are, and how many times the largest measured count it reaches; else ""."""
    if not _is_forecast(document):
        return ""
    measured = max(one["count"] for one in document["measured"])
    largest = max((one["count"] for one in document["forecasts"]), default=measured)
    far = f"; the forecasts reach {units.factor(largest / measured)} times that" if largest > measured else ""
    return (
        f"Ranges are {units.share(document['level'])} intervals. The largest measured count is "
        f"{measured:,} accelerators{far}."
    )


def notes(document: Mapping[str, Any]) -> list[str]:
    """Sentences on what limits, and what weakens the answer."""
    return [*filter(None, [document.get("limits")]), *document.get("notes", [])]


def _is_forecast(document: Mapping[str, Any]) -> bool:
    return bool(document["kind"] == "accelerators")


def _count(value: float | None) -> str:
    return f"more than {FARTHEST:.0f} times what was measured" if value is None else units.count(value)


def _forecast(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Measured counts, then forecast ones; those under the condition that they are fed on lines of their own."""
    known = {"name": document["name"]}
    rows = []
    for one in document["measured"]:
        values = {"au": one["utilisation"], **_moved(document, {"value": one["rate"]})}
        rows.append(known | {"count": one["count"], "what": "measured"} | values)
    for one in document["forecasts"]:
        for what, of in (("forecast", one), ("if it is fed", one.get("if_fed"))):
            if not of:
                continue
            used = of["utilisation"]
            values = {"au": used["value"], "au_low": used["low"], "au_high": used["high"]}
            values |= _moved(document, of["rate"])
            rows.append(known | {"count": one["count"], "what": what, "fed": of.get("fed")} | values)
    return rows


def _moved(document: Mapping[str, Any], rate: Mapping[str, float]) -> dict[str, float]:
    """Samples and bytes a second with their ends, as far as they are known."""
    ends = {"value": "", "low": "_low", "high": "_high"}
    if document["unit"] == "bytes":
        return {_bytes(end): rate[key] for key, end in ends.items() if key in rate}
    size = document.get("bytes_per_sample")
    found = {f"samples{end}": rate[key] for key, end in ends.items() if key in rate}
    return found | ({_bytes(end): rate[key] * size for key, end in ends.items() if key in rate} if size else {})


def _bytes(end: str) -> str:
    return f"bytes{end}" if end else "bytes_per_second"


def _counted(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [
        {
            "name": document["name"],
            "count": one["accelerators"],
            "what": document["source"],
            "au": one.get("utilisation_after_first_step", one.get("utilisation")),
            "samples": one.get("samples_per_second"),
            "bytes_per_second": one.get("bytes_per_second"),
            "met": f"{one['met']} of {one['runs']}" if "runs" in one else "",
        }
        for one in document["rows"]
    ]
