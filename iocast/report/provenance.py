# SPDX-License-Identifier: Apache-2.0
"""Assumptions and provenance: what the numbers rest on and how to make them again."""

from __future__ import annotations

import platform
import shlex
from dataclasses import dataclass
from importlib import metadata

from iocast.report import evidence
from iocast.report.sources import Sources
from iocast.records.study import StudyDocument

LONGEST_LIST = 12  # entries of a list that are written out


@dataclass(frozen=True)
class Provenance:
    parts: list[tuple[str, list[tuple[str, str]]]]  # heading, and under it (name, value)
    commands: list[str]
    """That made this page, and what it shows."""
    measurements: list[str]
    """Commands of the runs, of iocast-bench or of another tool."""
    files: list[dict[str, str]]


def collect(sources: Sources, command: str = "") -> Provenance:
    parts = _study(sources.study) if sources.study else []
    focus = evidence.focus_runs(sources)
    if focus:
        workload = focus[0].document.get("workload", {})
        parts.append((f"Workload {workload.get('name', '')}", _flat(workload.get("parameters") or {})))
    for forecast in sources.forecasts[:1]:
        if not focus and isinstance(forecast.get("workload"), dict):
            parts.append(("Workload forecast", _flat(forecast["workload"])))
    parts += _places(sources)
    for title, edits in _edits(sources).items():
        parts.append((f"What-if: {title}", edits))
    for fitted in sources.fitted:
        known = fitted["fitted"]
        entries = _flat({key: fitted.get(key) for key in ("description", "source")})
        entries += _flat(known.get("structure") or {}, "structure")
        entries += _flat(known.get("discrepancy") or {}, "own error, logarithm")
        entries += _flat(
            {key: (known.get("campaign") or {}).get(key) for key in ("ranks", "waiting_factors")}, "fitted to"
        )
        parts.append((f"Fitted platform {fitted['name']}", entries))
    if sources.forecasts:
        solvers = ", ".join(dict.fromkeys(str(f.get("solver")) for f in sources.forecasts if f.get("solver")))
        levels = ", ".join(dict.fromkeys(f"{100 * float(f['level']):g} %" for f in sources.forecasts if f.get("level")))
        phases = ", ".join(dict.fromkeys(str(f.get("phase")) for f in sources.forecasts if f.get("phase")))
        parts.append(
            (
                "Forecasts",
                [(k, v) for k, v in (("solver", solvers), ("intervals meant to hold", levels), ("phase", phases)) if v],
            )
        )
    criteria = [str(v["criterion"]) for v in sources.validations if v.get("criterion")]
    if criteria:
        parts.append(("Validation", [("criterion", c) for c in dict.fromkeys(criteria)]))
    parts.append(("Versions", _versions(sources)))
    runs = [made for r in sources.runs if (made := _command(r.document.get("command")))]
    studies = [sources.study] if sources.study else []
    made_by = [_command(d.get("command")) for d in sources.forecasts + sources.validations + studies]
    commands = [made for made in dict.fromkeys([command, *made_by]) if made]
    return Provenance([(h, e) for h, e in parts if e], commands, list(dict.fromkeys(runs)), sources.files)


def _study(study: StudyDocument) -> list[tuple[str, list[tuple[str, str]]]]:
    """What the study assumes, each with the source that it names."""
    requested = study["study"]
    parts = [
        (
            "Question",
            _flat(
                {
                    "question": study["question"],
                    "platform": requested.get("platform"),
                    "confidence": study["confidence_asked"],
                }
            ),
        )
    ]
    parts.append(
        (
            f"Platform {study['platform']['name']}",
            _flat({k: study["platform"].get(k) for k in ("description", "source", "calibrated", "fitted_ranks")}),
        )
    )
    prices = [
        (
            name,
            f"{part.get('price', 0):,g} {study['currency']}, {part.get('watts', 0):g} W, {part.get('rack_units', 0):g} "
            f"rack units; source: {part.get('source') or 'none'}",
        )
        for name, part in (requested.get("parts") or {}).items()
    ]
    parts.append(
        (
            "Prices",
            prices + _flat(requested.get("running") or {}, "running") + _flat(requested.get("limits") or {}, "limit"),
        )
    )
    parts.append(("In every design", _flat(requested.get("base") or {})))
    unknown = [
        (
            name,
            f"90 % within a factor of {one.get('factor')}: {', '.join(_as_list(one.get('paths')))}; source: "
            f"{one.get('source')}",
        )
        for name, one in (requested.get("uncertainty") or {}).items()
    ]
    parts.append(("What is uncertain", unknown + _flat(requested.get("model_error") or {}, "model error")))
    for workload in study["workloads"]:
        parts.append(
            (
                f"Workload {workload['name']}",
                _flat({k: workload[k] for k in ("workload", "phase", "weight", "settings", "operations")}),
            )
        )
    for axis, values in (requested.get("axes") or {}).items():
        entries = (
            [(str(name), _value(value)) for name, value in values.items()] if "path" not in values else _flat(values)
        )
        parts.append((f"Axis {axis}", entries))
    for name, scenario in (requested.get("scenarios") or {}).items():
        parts.append((f"When {name}", [("edit", _value(scenario))]))
    parts.append(
        (
            "Tasks",
            [
                (name, ", ".join(f"{n} x {op}" for op, n in task.items()))
                for name, task in (requested.get("tasks") or {}).items()
            ],
        )
    )
    programs = study.get("programs") or {}
    parts.append(("Search", _flat(study["search"]) + _flat(programs, "program")))
    return parts


def _as_list(value: object) -> list[str]:
    return [str(v) for v in value] if isinstance(value, list) else [str(value)]


def _value(value: object) -> str:
    """An axis value or a scenario on one line: its edits and its note."""
    if not isinstance(value, dict):
        return str(value)
    words = []
    for path, to in (value.get("edit") or {}).items():
        words.append(
            f"{path} {next(iter(to))} {next(iter(to.values()))}"
            if isinstance(to, dict) and "law" not in to
            else f"{path} = {to}"
        )
    if value.get("add"):
        words.append(
            "adds "
            + ", ".join(
                f"{kind} {', '.join(map(str, piece))}"
                for kind, piece in value["add"].items()
                if isinstance(piece, dict)
            )
        )
    if value.get("platform"):
        words.append(f"platform {value['platform']}")
    words += [str(value["note"])] if value.get("note") else []
    return "; ".join(words) or "as the platform has it"


def _places(sources: Sources) -> list[tuple[str, list[tuple[str, str]]]]:
    """Each environment that real runs were measured in, and each model that simulated runs used, once."""
    found: dict[str, list[tuple[str, str]]] = {}
    for run in sources.runs:
        environment = run.document.get("environment")
        if environment:
            entries = _flat(environment) + _flat(run.document.get("backend") or {}, "backend")
            found.setdefault(
                "Environment: " + (", ".join(map(str, environment.get("hosts") or [])) or "measured"), entries
            )
        elif isinstance(run.document.get("platform"), dict):
            known = run.document["platform"]
            entries = _flat({key: known.get(key) for key in ("description", "source")})
            found.setdefault(f"Simulated platform {known.get('name', '')}", entries)
    for campaign in sources.campaigns:
        entries = _flat({key: campaign.get(key) for key in ("root", "filesystem")})
        entries.append(("planned runs", str(len(campaign.get("points") or []))))
        found.setdefault(f"Campaign {campaign['name']}", entries)
    return list(found.items())


def _edits(sources: Sources) -> dict[str, list[tuple[str, str]]]:
    found: dict[str, list[tuple[str, str]]] = {}
    for forecast in sources.forecasts:
        if evidence.is_alternative(forecast):
            edits = forecast["platform"]["edits"]
            if isinstance(edits, list):
                entries = [("edit", str(e)) for e in edits]
            else:
                entries = _flat(edits) if isinstance(edits, dict) else [("edit", str(edits))]
            found.setdefault(evidence.label_of(forecast), entries)
    return found


def _versions(sources: Sources) -> list[tuple[str, str]]:
    found: dict[str, str] = {}
    for run in sources.runs:
        tool = run.document.get("tool")
        if isinstance(tool, dict) and any(v for k, v in tool.items() if k != "name"):
            found.setdefault(str(tool.get("name", "tool")), ", ".join(f"{v}" for k, v in tool.items() if k != "name"))
    seeds = [run.document.get("seed") for run in sources.runs if run.document.get("seed") is not None]
    if seeds:
        text = ", ".join(map(str, list(dict.fromkeys(seeds))[:LONGEST_LIST]))
        found["seeds"] = text
    found["Python"] = platform.python_version()
    if sources.study:
        found["iocast-sim"] = str((sources.study.get("programs") or {}).get("version", ""))
    for package in ("altair", "vl-convert-python", "hdrhistogram"):
        found[package] = metadata.version(package)
    return list(found.items())


def _command(command: object) -> str:
    return shlex.join(map(str, command)) if isinstance(command, list) else str(command or "")


def _flat(value: object, name: str = "") -> list[tuple[str, str]]:
    """Nested maps as pairs (dotted name, value); nothing for None and empty values."""
    if isinstance(value, dict):
        return [pair for key, inner in value.items() for pair in _flat(inner, f"{name}.{key}" if name else str(key))]
    if value is None or value == "" or value == []:
        return []
    if isinstance(value, list):
        text = ", ".join(str(v) for v in value[:LONGEST_LIST])
        more = len(value) - LONGEST_LIST
        return [(name, text + (f", and {more} more" if more > 0 else ""))]
    if isinstance(value, bool):
        return [(name, "yes" if value else "no")]
    return [(name, f"{value:.4g}" if isinstance(value, float) else str(value))]
