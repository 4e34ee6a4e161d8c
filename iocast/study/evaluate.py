# SPDX-License-Identifier: Apache-2.0
"""One evaluation: a platform, a workload and a scale in; throughput, response times and what the stations did out.

Requests and results are plain data, and a result depends on nothing but its request and the two programs: that is what
lets any worker anywhere compute it, and the store keep it.
"""

from __future__ import annotations

import json
import math
import re
from enum import Enum
from functools import lru_cache
from importlib import metadata
from pathlib import Path
from typing import Any, Literal, TypeVar, TypedDict, cast
from collections.abc import Mapping

import msgspec

from iocast.ground import binaries
from iocast.runs import limits_of
from iocast.platforms.content import content_hash, program_hash, sources_of, workload_hash
from iocast.errors import InputError
from iocast.runs.operations import READS, WRITES, Shares, iteration, pooled_quantity, profile
from iocast.platforms.documents import RESOLVED, Document, mechanisms_in
from iocast.records.quantities import ACCELERATORS
from iocast.records.run import Accelerators
from iocast.records.simulated import Latency, SimulatedPhase, StationDocument, kinds_of
from iocast.ground.scratch import scratch_directory
from iocast.records.platform import ResolvedPlatform

Result = dict[str, Any]
Value = TypeVar("Value", bound=Mapping[str, object] | float)


class Elsewhere(Enum):
    """Where the time goes that no station has."""

    CLIENTS = "client limits and network"


STATISTICS = ("mean", "q25", "q50", "q75", "q95", "q99", "q999", "max")
_SPENT = ("wait", "service", "lock_wait", "stall", "lost")


@lru_cache(maxsize=1)
def programs() -> dict[str, str]:
    """Hashes of the programs: the simulator, and the analytic solver, each with the sources that read its answers."""
    every = sources_of(__name__)
    solver = [file for file in every if file.parent.name == "analytic"]
    return {
        "simulate": program_hash(["iocast-sim"], [file for file in every if file not in solver])[:16],
        "analytic": program_hash([], every, ["numpy", "scipy"])[:16],
    }


What = Literal["resolve", "profile", "simulate", "analytic"]


class Request(TypedDict, total=False):
    """What is computed for a study; `what` says which of the keys there are. `platform_key`: the hash of its
    sources."""

    what: What
    platform: Document
    platform_key: str
    about: str
    workload: str
    settings: dict[str, str]
    phase: str
    nodes: int
    ranks_per_node: int
    seed: int
    mix: dict[str, float]
    place: tuple[int, int]
    waiting_factor: float
    bytes: dict[str, float]
    datasets: float
    objects: float
    blocks: dict[str, float]
    think_time: float
    points: int


def versions() -> str:
    """Of iocast as it is installed; the hashes of the programs say exactly what computed."""
    try:
        return metadata.version("iocast")
    except metadata.PackageNotFoundError:
        return "from its source tree"


def key_of(request: Request) -> str:
    """The request's place in the store: the content of all that its answer depends on. The platform counts by
    `platform_key`, the hash of its sources, so that it need not be made."""
    counted = {k: v for k, v in request.items() if k not in ("platform", "workload", "settings")}
    if "workload" in request:
        counted["workload"] = workload_hash(request["workload"], request["settings"])
    tool = programs()["simulate"] + (programs()["analytic"] if request["what"] == "analytic" else "")
    return content_hash([tool, counted])


def evaluate(request: Request) -> Result:
    """The result of a request of any kind. @raises InputError, RunError with the programs' sentences"""
    return evaluate_all([request])[0]


def evaluate_all(requests: list[Request]) -> list[Result]:
    """A worker's task: requests that share a platform."""
    known = {"resolve": _resolve, "profile": _profile, "simulate": _simulate, "analytic": _analytic}
    results = []
    with scratch_directory("study") as scratch:
        file = scratch / "platform.yaml"  # JSON is YAML; of one name, so that the simulator sees that it knows it
        try:
            for request in requests:
                file.write_text(json.dumps(request["platform"]))
                if "about" in request:  # what errors call it
                    binaries.known_as[str(file)] = request["about"]
                results.append(known[request["what"]](request, file))
        finally:
            binaries.known_as.pop(str(file), None)
    return results


def _resolve(request: Request, file: Path) -> Result:
    """The platform as the simulator understands it, without its laws' quantiles."""
    resolved: dict[str, Any] = binaries.run_json([binaries.find("iocast-sim"), "--describe", str(file), "--json"])
    return {key: resolved[key] for key in (*RESOLVED, *mechanisms_in(resolved), "operations") if key in resolved}


def _profile(request: Request, _: Path) -> Result:
    return dict(profile(request["workload"], request["settings"], request["nodes"], request["ranks_per_node"]))


def _simulate(request: Request, file: Path) -> Result:
    run = binaries.simulate(
        file, request["workload"], request["settings"], request["nodes"], request["ranks_per_node"], request["seed"]
    )
    repeats = [p for p in run["phases"] if p["name"] == request["phase"]]
    phase, total = repeats[-1], sum(p["seconds"] for p in repeats)
    quantities = {"rate": pooled_quantity(run, "rate", request["phase"]), "seconds": total / len(repeats)}
    operations: dict[str, dict[str, dict[str, float]]] = {}
    counts: dict[str, float] = {}
    last = {op: p for p in repeats for op, printed in p["latency"].items() if "." not in op and printed["count"]}
    for operation, having in last.items():
        counts[operation] = sum(p["latency"].get(operation, {}).get("count", 0) for p in repeats)
        quantities[f"{operation}.rate"] = counts[operation] / total
        quantities |= {
            f"{operation}.{name}": pooled_quantity(run, f"{operation}.{name}", request["phase"]) for name in STATISTICS
        }
        operations[operation] = _where(operation, having["latency"][operation], having["stations"])
    quantities |= accelerators_in(repeats)
    each = Shares.of(repeats).bytes_each  # as this seed draws them
    _bandwidths(quantities, each, counts, total)
    system = _resolved(request["platform_key"], file)
    stations = limits_of.stations_of(phase, system)
    for name, station in stations.items():
        quantities[f"{name}.utilisation"] = station["utilisation"]
    nodes = request["nodes"]
    otherwise = limits_of.text(phase, stations, system, nodes, nodes * request["ranks_per_node"])
    known = run.get("model_limits")
    limits = dict(zip(known["sentences"], kinds_of(known), strict=True)) if known else {}
    found = {"quantities": _short(quantities), "stations": _short(stations), "operations": _short(operations)}
    return found | {"otherwise": otherwise.document()} | ({"model_limits": limits} if limits else {})


def accelerators_in(repeats: list[SimulatedPhase]) -> dict[str, float]:
    """What accelerators did in these repeats of a phase: means of those quantities that all of them have."""
    known = [msgspec.convert(p["accelerators"], Accelerators) for p in repeats if p.get("accelerators")]
    found: dict[str, float] = {}
    for name in ACCELERATORS if len(known) == len(repeats) else ():
        values = [value for one in known if (value := one.quantity(name)) is not None]
        if len(values) == len(repeats):
            found[name] = sum(values) / len(values)
    return found


def pooled(results: list[Result]) -> Result:
    """Simulations of one question with other seeds as one, as a forecast has them: geometric means of the values above
    0; of the mean rate each operation's share and the bytes of one, which are the first one's, as all else is. What the
    first lacks of a random mix is that of the others."""
    first = results[0]
    if len(results) == 1 or any("quantities" not in one for one in results):
        return first
    answer: dict[str, float] = {}
    for name in dict.fromkeys(name for one in results for name in one["quantities"]):
        values: list[float] = [one["quantities"][name] for one in results if name in one["quantities"]]
        answer[name] = (
            math.exp(sum(map(math.log, values)) / len(values)) if min(values) > 0 else sum(values) / len(values)
        )
    for name in answer:
        if name.endswith((".rate", ".bandwidth")):
            own = next(one["quantities"] for one in results if name in one["quantities"])
            answer[name] = answer["rate"] * own[name] / own["rate"]
    return first | {"quantities": answer}


def _where(operation: str, latency: Latency, stations: dict[str, StationDocument]) -> dict[str, dict[str, float]]:
    """Seconds that a mean operation spends in each way at each station; the rest goes to client limits and the
    network."""
    result: dict[str, dict[str, float]] = {}
    for name, station in stations.items():
        visit = station["operations"].get(operation)
        if visit:
            result[name] = {part: visit["visits"] * visit.get(part, 0.0) / latency["count"] for part in _SPENT}
    rest = latency["mean"] - sum(sum(parts.values()) for parts in result.values())
    result[Elsewhere.CLIENTS.value] = dict.fromkeys(_SPENT, 0.0) | {"wait": max(rest, 0.0)}
    return result


def _bandwidths(
    quantities: dict[str, float], bytes_each: dict[str, float], counts: dict[str, float], seconds: float
) -> None:
    for name, kinds in (("write", WRITES), ("read", READS)):
        moved = sum(bytes_each.get(kind, 0) * counts.get(kind, 0) for kind in kinds)
        if moved:
            quantities[f"{name}.bandwidth"] = moved / seconds


def _analytic(request: Request, file: Path) -> Result:
    from iocast import analytic  # its libraries take a second to load, which an edited price should not wait for

    resolved = _resolved(request["platform_key"], file)
    mix, operations = request["mix"], sum(request["mix"].values())
    nodes, ranks_per_node = request["place"]
    try:
        solution = analytic.solve(
            resolved,
            iteration(mix),
            nodes,
            ranks_per_node,
            request["waiting_factor"],
            round(operations),
            size=request["bytes"],
            datasets=request["datasets"],
            objects=request["objects"],
            blocks=request["blocks"],
            think_time=request["think_time"],
            points=request["points"],
        )
    except InputError as error:
        return {"unsolved": str(error)}  # the simulator knows more; it will say if the platform is wrong
    seconds = operations / solution.rate
    quantities = {"rate": solution.rate, "seconds": seconds}
    for operation, values in solution.quantiles.items():
        quantities[f"{operation}.rate"] = solution.rate * mix[operation] / operations
        quantities |= {f"{operation}.{name}": values[name] for name in STATISTICS}
    _bandwidths(quantities, request["bytes"], mix, seconds)
    for name, used in solution.utilisation.items():
        quantities[f"{name}.utilisation"] = used
    stations = {name: {"utilisation": used} for name, used in solution.utilisation.items()}
    bounds = {"lower": solution.bounds.lower, "upper": solution.bounds.upper}
    otherwise = limits_of.solved_text(solution.waiting, solution.limits)
    found = {"quantities": _short(quantities), "stations": _short(stations), "operations": {}, "bounds": _short(bounds)}
    return found | {"otherwise": otherwise.document()}


_last_resolved: dict[str, ResolvedPlatform] = {}


def _resolved(key: str, file: Path) -> ResolvedPlatform:
    """Scales and workloads of one platform follow each other, so that only the last one is kept."""
    if key not in _last_resolved:
        _last_resolved.clear()
        _last_resolved[key] = binaries.resolve_platform(file)
    return _last_resolved[key]


def _short(value: Value) -> Value:
    """Seven digits: more would say nothing, and would differ where a sum is taken in another order."""
    short = {k: _short(v) for k, v in value.items()} if isinstance(value, dict) else value
    return cast(Value, float(f"{short:.7g}") if isinstance(short, float) else short)


def without_place(sentence: str) -> str:
    """A program's sentence without the name of the temporary file that it read."""
    return re.sub(r"\S*iocast-study-\S*?platform\.yaml(:\d+)?:? ?", "", sentence)
