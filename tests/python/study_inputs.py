# SPDX-License-Identifier: Apache-2.0
"""A study small enough for tests, and how to change it."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import yaml

SMALL: dict[str, Any] = {
    "schema_version": 1,
    "title": "A small study",
    "platform": "lustre",
    "confidence": 0.9,
    "workloads": {"mix": {"workload": "md-workbench", "settings": {"datasets": 2, "objects": 20, "iterations": 20}}},
    "scales": {"few": {"nodes": 2, "ranks_per_node": 2}, "many": {"nodes": 16, "ranks_per_node": 4}},
    "axes": {
        "servers": {
            "one": {"edit": {"stations.mds.servers": 1}, "parts": {"core": 1}},
            "two": {"edit": {"stations.mds.servers": 2}, "parts": {"core": 2}},
            "four": {"edit": {"stations.mds.servers": 4}, "parts": {"core": 4}},
        },
        "speed": {"plain": {}, "fast": {"edit": {"stations.mds.speed": {"times": 1.5}}, "parts": {"fast": 1}}},
    },
    "currency": "EUR",
    "base": {"chassis": 1},
    "parts": {
        "core": {"price": 1000, "watts": 50, "source": "made up"},
        "fast": {"price": 900, "source": "made up"},
        "chassis": {"price": 5000, "rack_units": 2, "source": "made up"},
    },
    "levels": ["rate(create) >= 3k/s", "p95(stat) < 8 ms"],
    "uncertainty": {
        "service times": {
            "paths": ["demands.make", "demands.getattr", "demands.open", "demands.remove"],
            "factor": 1.3,
            "source": "a guess",
        }
    },
    "search": {"replications": 4},
}


def changed(**changes: Any) -> dict[str, Any]:
    """The small study with some keys replaced; None takes a key away."""
    made = copy.deepcopy(SMALL)
    for key, value in changes.items():
        if value is None:
            made.pop(key)
        else:
            made[key] = value
    return made


def write(directory: Path, study: dict[str, Any] | str) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    file = directory / "study.yaml"
    file.write_text(study if isinstance(study, str) else yaml.safe_dump(study, sort_keys=False))
    return file
