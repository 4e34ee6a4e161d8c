# SPDX-License-Identifier: Apache-2.0
"""Inputs of a report made with the simulator: a campaign, a forecast and its check, what-ifs, a fitted platform.

"Measured" runs are simulated ones that say they came from the bench; forecasts are simulations of a platform that is a
little wrong, so that they have honest errors.
"""

from __future__ import annotations

import json
import math
import os
import pickle
import shutil
import subprocess
import time
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

import pytest
import study_inputs
from knee_inputs import knee_of_queue
from shared import shared

from iocast.watching.observe import Observer
from iocast.study import run_study
from iocast.study.levels import parse_level
from iocast.records.run import read_run
from iocast.jobs.workers import Workers
from iocast.watching.utilisation import join, run_clock

ROOT = Path(__file__).parents[2]
QUANTILES = ("q50", "q75", "q95", "q99", "max")
OPERATIONS = ("create", "stat", "read", "unlink")
FITTED = (4, 8, 16, 32)  # ranks, four a node
CHECKED = 64
LEVEL = 0.9


@dataclass
class Inputs:
    campaign: Path
    simulated: Path
    forecasts: list[Path]
    validation: Path
    fitted: Path
    study: Path

    @property
    def all(self) -> list[Path]:
        """Of measurements and forecasts; a study leads a page of its own."""
        return [self.campaign, self.validation, self.fitted, *self.forecasts]


def simulator() -> str:
    found = os.environ.get("IOCAST_SIM") or shutil.which("iocast-sim") or str(ROOT / "build/bin/iocast-sim")
    assert Path(found).is_file(), "iocast-sim is missing: build it first, or say where it is with IOCAST_SIM."
    return found


def simulate(
    out: Path, ranks: int, seed: int, platform: str = "lustre", iterations: int = 60, factor: float = 0
) -> Path:
    nodes, ppn = (ranks // 4, 4) if ranks >= 4 else (1, ranks)
    settings = {"datasets": 2, "objects": 200, "iterations": iterations, "waiting_factor": factor}
    command = [simulator(), "--platform", platform, "--nodes", str(nodes), "--ppn", str(ppn), "--seed", str(seed)]
    for name, value in settings.items():
        command += ["--set", f"{name}={value:g}"]
    done = subprocess.run([*command, "--out", str(out)], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return out


def as_measured(run: Path, noise: float = 1.0) -> None:
    """Let a simulated run say that it was measured on a real file system, `noise` times as fast."""
    document = json.loads((run / "run.json").read_text())
    document["source"] = "bench"
    document["tool"] = {"name": "iocast-bench", "version": "0.1.0"}
    del document["platform"]
    ranks = document["placement"]["ranks"]
    document["command"] = [
        "mpirun",
        "-n",
        str(ranks),
        "iocast-bench",
        "--workload",
        "md-workbench",
        "--posix.root",
        "scratch/test",
    ]
    document["backend"] = {"name": "posix", "options": {"root": "scratch/test"}}
    document["environment"] = {
        "hosts": ["n1", "n2"], "cpus_per_node": 2, "kernel": "Linux 6.1.0",
        "filesystem": {"type": "lustre", "mount": "scratch"},
        "mpi": "Open MPI 4.1.4",
    }  # fmt: skip
    for phase in document["phases"]:
        phase.pop("stations", None)
        phase.pop("by_operation", None)  # which would contradict the noise
        phase["rate"] *= noise
        phase["seconds"] /= noise
        for row in phase.get("by_operation", {}).values():
            row |= {key: row[key] * noise for key in ("rate", "bytes_per_second") if key in row}
    (run / "run.json").write_text(json.dumps(document))


def benchmark(run: Path) -> dict[str, Any]:
    document = json.loads((run / "run.json").read_text())
    return next(p for p in document["phases"] if p["name"] == "benchmark")


def quantities(phase: dict[str, Any]) -> dict[str, float]:
    found = {"rate": phase["rate"]}
    found |= {f"{o}.{q}": phase["latency"][o][q] for o in OPERATIONS for q in QUANTILES}
    return found


def _interval(name: str, value: float, widen: float = 1.0) -> dict[str, float]:
    width = {"rate": 0.06, "max": 0.9}.get(name.rpartition(".")[2], 0.16) * widen
    return {"value": value, "low": value * math.exp(-width), "high": value * math.exp(width)}


def _baselines(fitted: dict[int, dict[str, float]], ranks: int) -> dict[str, dict[str, Any]]:
    small, last = fitted[FITTED[0]], fitted[FITTED[-1]]
    line, usl, mmc = {}, {}, {}
    for name in last:
        slope = (last[name] - fitted[FITTED[-2]][name]) / (FITTED[-1] - FITTED[-2])
        line[name] = max(last[name] + slope * (ranks - FITTED[-1]), last[name] * 0.1)
        mmc[name] = last[name] * (1.03 if name == "rate" else (ranks / FITTED[-1]) * 0.8)
    usl |= {"rate": last["rate"] * 0.86, "create.q50": 0.0, "read.max": -0.001}  # a curve can say what nothing can do
    bounds = {"rate": {"low": last["rate"] * 0.7, "high": small["rate"] * ranks / FITTED[0]}}
    return {
        "asymptotic bounds": bounds, "closed M/M/c": mmc, "universal scalability law": usl, "straight line": line,
        "last value": dict(last),
    }  # fmt: skip


def _forecast(
    run: Path, baselines: dict[str, Any], label: str = "", edits: dict[str, Any] | None = None, extrapolation: float = 2
) -> dict[str, Any]:
    document = json.loads((run / "run.json").read_text())
    phase = benchmark(run)
    probabilities = (
        [0.001, 0.01, 0.05] + [i / 20 for i in range(2, 20)] + [0.96, 0.97, 0.98, 0.99, 0.995, 0.999, 0.9999]
    )
    distributions = {}
    for operation in OPERATIONS:
        known = phase["latency"][operation]
        at = [0.0, 0.25, 0.5, 0.75, 0.95, 0.99, 0.999, 0.9999]
        values = [known[k] for k in ("min", "q25", "q50", "q75", "q95", "q99", "q999", "max")]
        distributions[operation] = {
            "probability": probabilities,
            "seconds": [_between(p, at, values) for p in probabilities],
        }
    stations = {}
    operations = phase["operations"]
    for name, station in phase["stations"].items():
        sums = {
            key: sum(o["visits"] * o[key] for o in station["operations"].values()) / operations
            for key in ("wait", "service", "lock_wait", "stall")
        }
        stations[name] = {"utilisation": station["utilisation"], **sums}
    busiest = max(stations, key=lambda s: stations[s]["utilisation"])
    widen = 1 + 0.5 * math.log2(max(extrapolation, 1))
    width = phase["timeline"]["bin_seconds"]
    counts = zip(*(phase["timeline"][operation]["count"] for operation in OPERATIONS), strict=False)
    return {
        "schema_version": 1, "kind": "forecast", "label": label,
        "platform": {"name": "scratch", "file": "fitted.yaml", "edits": edits or {}},
        "workload": document["workload"], "placement": document["placement"], "phase": "benchmark",
        "solver": "simulate", "level": LEVEL,
        "quantities": {name: _interval(name, value, widen / 2) for name, value in quantities(phase).items()},
        "baselines": baselines, "distributions": distributions, "stations": stations,
        "bottleneck": f"The station {busiest} is busy {100 * stations[busiest]['utilisation']:.0f} % of the time"
        " and limits the rate.",
        "alternatives": [], "warnings": [], "extrapolation": extrapolation,
        "timeline": {"bin_seconds": width, "rate": [sum(bins) / width for bins in counts]},
    }  # fmt: skip


def _between(p: float, at: list[float], values: list[float]) -> float:
    for (p0, v0), (p1, v1) in pairwise(zip(at, values, strict=True)):
        if p <= p1:
            return math.exp(math.log(v0) + (math.log(v1) - math.log(v0)) * (p - p0) / (p1 - p0))
    return values[-1]


def _rows(measured: list[dict[str, float]], forecast: dict[str, Any]) -> list[dict[str, Any]]:
    rows = []
    for name, printed in forecast["quantities"].items():
        values = [m[name] for m in measured]
        middle = median(values)
        baselines = {}
        for baseline, known in forecast["baselines"].items():
            if name in known:
                entry = dict(known[name]) if isinstance(known[name], dict) else {"value": known[name]}
                if "value" in entry:
                    entry["error"] = entry["value"] / middle - 1
                baselines[baseline] = entry
        rows.append(
            {
                "quantity": name, "measured": middle, "measured_low": min(values), "measured_high": max(values),
                "forecast": printed["value"], "low": printed["low"], "high": printed["high"],
                "error": printed["value"] / middle - 1,
                "inside": printed["low"] <= middle <= printed["high"], "baselines": baselines,
            }
        )  # fmt: skip
    return rows


def observe(run: Path, file: Path) -> None:
    """Joins an observation of this machine, moved into the run's time, to the run."""
    with Observer(file, 0.02, []):
        end = time.monotonic() + 0.3  # at work, so that there is something to draw
        while time.monotonic() < end:
            pass
    document = json.loads((run / "run.json").read_text())
    document["started"] = "2026-01-01T00:00:00Z"  # simulated runs start at no time of ours
    (run / "run.json").write_text(json.dumps(document))
    start = run_clock(run, read_run(document))["start"]
    seconds = max(p["start_seconds"] + p["seconds"] for p in document["phases"])
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    samples = [line for line in lines if "monotonic" in line]
    for i, sample in enumerate(samples):
        sample["monotonic"] = i * seconds / (len(samples) - 1)
        sample["wall"] = start + sample["monotonic"]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    join(run, [file])


def edited_platform(path: Path, servers: int, speed: float) -> Path:
    """The lustre platform with another number of metadata threads and all work at them `speed` times as fast."""
    import yaml

    document = yaml.safe_load((ROOT / "platforms/lustre.yaml").read_text())
    document["stations"]["mds"]["servers"] = servers
    for name, law in document["demands"].items():
        if isinstance(law, dict) and speed != 1:
            document["demands"][name] = {**law, "scale": 1 / speed}
    path.write_text(yaml.safe_dump(document))
    return path


def made(factory: pytest.TempPathFactory) -> Inputs:
    """All inputs, with forecasts of two scales; made once for all tests."""
    return pickle.loads(
        (
            shared(factory, "report-inputs", lambda directory: _keep(build(directory, (64, 256)), directory))
            / "inputs.pickle"
        ).read_bytes()
    )


def _keep(inputs: Inputs, directory: Path) -> None:
    (directory / "inputs.pickle").write_bytes(pickle.dumps(inputs))


def build(directory: Path, scales: tuple[int, ...] = (64, 256, 1024)) -> Inputs:
    """All inputs below `directory`."""
    directory.mkdir(parents=True, exist_ok=True)
    campaign = directory / "campaign"
    (campaign / "runs").mkdir(parents=True)
    points, measured = [], {}
    for repeat in range(3):
        for ranks in (*FITTED, CHECKED):
            for factor in (0, 1) if ranks != CHECKED else (0,):
                name = f"n{ranks}-t{factor}-{repeat}"
                run = simulate(campaign / "runs" / name, ranks, seed=10 * repeat + ranks, factor=factor)
                as_measured(
                    run, noise=1 - 0.02 * repeat
                )  # slower: ranks are not inside operations for longer than the phase lasts
                role = "check" if ranks == CHECKED else "fit"
                points.append(
                    {
                        "name": name,
                        "nodes": ranks // 4,
                        "ranks_per_node": 4,
                        "settings": {"waiting_factor": factor},
                        "role": role,
                        "status": "complete",
                    }
                )
                measured.setdefault((ranks, factor), []).append(quantities(benchmark(run)))
    (campaign / "campaign.json").write_text(
        json.dumps({"schema_version": 1, "kind": "campaign", "workload": "md-workbench", "root": "scratch/test",
                    "filesystem": {"type": "lustre"}, "points": points})
    )  # fmt: skip
    knee_of_queue(campaign, [parse_level("p95(create) < 8 ms")], 1, service=2e-3)
    observe(campaign / "runs" / f"n{CHECKED}-t0-0", directory / "observation.jsonl")
    typical = {r: {q: median(m[q] for m in measured[r, 0]) for q in measured[r, 0][0]} for r in FITTED}

    models = {
        "": edited_platform(directory / "model.yaml", 16, 1.04),
        "twice the threads": edited_platform(directory / "threads.yaml", 32, 1.04),
        "faster metadata server": edited_platform(directory / "faster.yaml", 16, 2.08),
    }
    forecasts, files = {}, []
    for i, (label, model) in enumerate(models.items()):
        for ranks in scales:
            run = simulate(directory / "simulated" / f"{i}-{ranks}", ranks, seed=99, platform=str(model))
            edits = {"stations.mds.servers": 32} if i == 1 else {"demands.*.scale": 0.5} if i == 2 else {}
            made = _forecast(run, {} if label else _baselines(typical, ranks), label, edits, ranks / FITTED[-1])
            files.append(directory / f"forecast-{i}-{ranks}.json")
            files[-1].write_text(json.dumps(made))
            forecasts[label, ranks] = made
    check = forecasts["", CHECKED]
    rows = _rows(measured[CHECKED, 0], check)
    fit_points = []
    for (ranks, factor), runs in measured.items():
        if ranks == CHECKED:
            continue
        run = simulate(
            directory / "simulated" / f"fit-{ranks}-{factor}", ranks, seed=98, platform=str(models[""]), factor=factor
        )
        made = _forecast(run, {})
        fit_points.append(
            {
                "name": f"n{ranks}-t{factor}",
                "role": "fit",
                "placement": {"nodes": ranks // 4, "ranks_per_node": 4, "ranks": ranks},
                "waiting_factor": factor,
                "runs": len(runs),
                "rows": _rows(runs, made),
            }
        )
    check_point = {
        "name": f"n{CHECKED}",
        "role": "check",
        "placement": check["placement"],
        "waiting_factor": 0,
        "runs": 3,
        "rows": rows,
    }
    validation = directory / "validation.json"
    validation.write_text(
        json.dumps(
            {
                "schema_version": 1, "kind": "validation", "platform": check["platform"], "level": LEVEL,
                "points": [*fit_points, check_point], "summary": {"noise": {"rate": 0.02, "quantiles": 0.05}},
                "passed": True, "criterion": "The median throughput error is at most 10 %.",
            }
        )
    )  # fmt: skip
    fitted = directory / "fitted.yaml"
    fitted.write_text(_fitted(rows))
    return Inputs(
        campaign, directory / "simulated" / f"0-{scales[0]}", files, validation, fitted, study(directory / "study")
    )


def study(directory: Path) -> Path:
    """The answer of a study of six designs, four of them simulated."""
    file = study_inputs.write(directory, study_inputs.changed(search={"simulate": 4, "replications": 4}))
    with Workers(1) as workers:
        run_study(file, directory / "answer", workers, lambda *_: None, ["iocast", "study", "study.yaml"])
    return directory / "answer"


def _fitted(rows: list[dict[str, Any]]) -> str:
    import yaml

    return yaml.safe_dump(
        {
            "schema_version": 1,
            "extends": "lustre",
            "name": "scratch",
            "fitted": {
                "campaign": {
                    "runs": [{"name": "n4-t0-0", "sha256": "0" * 64}],
                    "ranks": list(FITTED),
                    "workload": {"name": "md-workbench", "pattern": "md-workbench", "parameters": {}},
                    "environment": {"hosts": ["n1", "n2"]},
                },
                "structure": {"threads": 16, "lock": "none", "stall": "commit"},
                "parameters": {
                    "demands.create.mean": {"value": 0.000163, "low": 0.000151, "high": 0.000174},
                    "demands.stat.mean": {"value": 0.0000571, "low": 0.000055, "high": 0.000061},
                },
                "alternatives": [
                    {"structure": {"threads": 16, "lock": "none"}, "weight": 0.71, "misfit": 0.9},
                    {"structure": {"threads": 32, "lock": "none"}, "weight": 0.29, "misfit": 1.1},
                ],
                "holdout": {
                    "ranks": FITTED[-1],
                    "fitted_up_to": FITTED[-2],
                    "rows": [{**r, "point": "N=32 T=0"} for r in rows],
                },
                "discrepancy": {"rate": 0.03, "q50": 0.05, "q99": 0.12},
                "notes": ["The measurements can't tell 16 from 32 threads; a run of 128 ranks would."],
            },
        },
        sort_keys=False,
    )
