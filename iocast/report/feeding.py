# SPDX-License-Identifier: Apache-2.0
"""What a report says of how many accelerators storage feeds: forecasts (`kind: accelerators`), and searches and
simulations over their number (`kind: fed`; docs/answers.md)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from iocast.training.accelerators import FARTHEST
from iocast.knee.feeding import verdict
from iocast.report import units
from iocast.report.sources import Sources
from iocast.report.table import Column, Table
from iocast.records.feeding import Feeding, AcceleratorsDocument, FedDocument, FedRow, forecast_in

QUESTION = "How many accelerators does the storage keep busy?"


def table(sources: Sources) -> Table:
    """A line for each count of accelerators that was measured, simulated or forecast."""
    rows = [row for one in sources.feedings for row in _rows(one)]
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


def workload_of(feeding: Feeding) -> str:
    document = forecast_in(feeding)
    return document["of"]["workload"] if document else cast(FedDocument, feeding)["workload"]


def headline(feeding: Feeding) -> str:
    """How many are fed, in a sentence."""
    document = forecast_in(feeding)
    if document is None:
        fed = cast(FedDocument, feeding)
        if "answer" in fed:
            return f"{fed['workload']}: {verdict(fed)}"
        last = fed["rows"][-1]
        where = f" on {fed['platform']['name']}" if "platform" in fed else ""
        return (
            f"In simulation, {last['accelerators']:,} accelerators that train {fed['workload']}{where} are "
            f"{units.share(used_in(last))} busy."
        )
    of, most = document["of"], document["most"]
    title = " ".join(of[name] for name in ("system", "workload", "accelerator") if name in of)
    limit = units.share(document["limit"])
    if most["value"] is None:
        return f"{title}: {_count(None)} keep {limit} utilisation."
    value, low, high = _count(most["value"]), _count(most["low"]), _count(most["high"])
    keep = "accelerator keeps" if most["value"] == 1 else "accelerators keep"
    return f"{title}: {value} {keep} {limit} utilisation ({low} to {high})."


def reach(feeding: Feeding) -> str:
    """What the ranges of a forecast are, and how many times the largest measured count it reaches; else ""."""
    document = forecast_in(feeding)
    if document is None:
        return ""
    measured = max(one["count"] for one in document["measured"])
    largest = max((one["count"] for one in document["forecasts"]), default=measured)
    far = f"; the forecasts reach {units.factor(largest / measured)} times that" if largest > measured else ""
    return (
        f"Ranges are {units.share(document['level'])} intervals. The largest measured count is "
        f"{measured:,} accelerators{far}."
    )


def notes(feeding: Feeding) -> list[str]:
    """Sentences on what limits, and what weakens the answer."""
    document = forecast_in(feeding)
    return [*([document["limits"]] if document and document.get("limits") else []), *feeding.get("notes", [])]


def _count(value: float | None) -> str:
    return f"more than {FARTHEST:.0f} times what was measured" if value is None else units.count(value)


def _forecast(document: AcceleratorsDocument) -> list[dict[str, Any]]:
    """Measured counts, then forecast ones; those under the condition that they are fed on lines of their own."""
    known = {"name": document["name"]}
    rows: list[dict[str, Any]] = []
    for one in document["measured"]:
        measured = {"au": one["utilisation"], **_moved(document, {"value": one["rate"]})}
        rows.append(known | {"count": one["count"], "what": "measured"} | measured)
    for forecast in document["forecasts"]:
        for what, of, fed in (("forecast", forecast, forecast["fed"]), ("if it is fed", forecast["if_fed"], None)):
            if not of:
                continue
            used = of["utilisation"]
            values: dict[str, object] = {"au": used["value"], "au_low": used["low"], "au_high": used["high"]}
            values |= _moved(document, cast(dict[str, float], of["rate"]))
            rows.append(known | {"count": forecast["count"], "what": what, "fed": fed} | values)
    return rows


def _moved(document: AcceleratorsDocument, rate: Mapping[str, float]) -> dict[str, object]:
    """Samples and bytes a second with their ends, as far as they are known."""
    ends = {"value": "", "low": "_low", "high": "_high"}
    if document["unit"] == "bytes":
        return {_bytes(end): rate[key] for key, end in ends.items() if key in rate}
    size = document.get("bytes_per_sample")
    found: dict[str, object] = {f"samples{end}": rate[key] for key, end in ends.items() if key in rate}
    return found | ({_bytes(end): rate[key] * size for key, end in ends.items() if key in rate} if size else {})


def _bytes(end: str) -> str:
    return f"bytes{end}" if end else "bytes_per_second"


def used_in(row: FedRow) -> float | None:
    return row.get("utilisation_after_first_step", row.get("utilisation"))


def _rows(feeding: Feeding) -> list[dict[str, Any]]:
    forecast = forecast_in(feeding)
    return _forecast(forecast) if forecast else _counted(cast(FedDocument, feeding))


def _counted(document: FedDocument) -> list[dict[str, Any]]:
    return [
        {
            "name": document["name"],
            "count": one["accelerators"],
            "what": document["source"],
            "au": used_in(one),
            "samples": one.get("samples_per_second"),
            "bytes_per_second": one.get("bytes_per_second"),
            "met": f"{one['met']} of {one['runs']}" if "runs" in one else "",
        }
        for one in document["rows"]
    ]
