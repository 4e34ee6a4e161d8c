# SPDX-License-Identifier: Apache-2.0
"""Shorter searches for commands that tests run to see that they work, not how well they fit: Python reads this file at
its start when its directory is on PYTHONPATH. How well searches fit is tested by tests/python/test_forecast.py and
validation/."""

import sys
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType

BRIEF = {
    "iocast.calibrate.search": {"ENOUGH_OPERATIONS": 2_000, "MAX_OPERATIONS": 20_000, "STARTS": 3, "STEPS": 3},
    "iocast.forecasts.draws": {"OPERATIONS_A_DRAW": 20_000},
    "iocast.planning.plan": {"BELIEFS": 16},
}


class _Brief(Loader):
    def __init__(self, loader: Loader) -> None:
        self._loader = loader

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self._loader.exec_module(module)
        for name, value in BRIEF[module.__name__].items():
            if not hasattr(module, name):
                raise ImportError(
                    f"tests/brief/sitecustomize.py: {module.__name__} has no constant {name}; name the one that took"
                    " its place."
                )
            setattr(module, name, value)


class _Finder(MetaPathFinder):
    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        if name not in BRIEF:
            return None
        spec = PathFinder.find_spec(name, path)  # type: ignore[arg-type]
        if spec is not None and spec.loader is not None:
            spec.loader = _Brief(spec.loader)
        return spec


sys.meta_path.insert(0, _Finder())
