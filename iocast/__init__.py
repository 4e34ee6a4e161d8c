# SPDX-License-Identifier: Apache-2.0
"""iocast: measure storage at small scale, calibrate a queueing model, forecast larger scales and show the error.

    runs = iocast.import_results("results/mdtest-*.txt")
    fitted = iocast.calibrate(runs)
    print(iocast.predict(fitted, nodes=128).text())

Each call is the verb of the command line with its name (docs/library.md). Importing this loads none of them."""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from iocast.api.calibrate import calibrate
    from iocast.api.calibrate_facts import calibrate_facts
    from iocast.api.compare import compare
    from iocast.api.forecast import forecast
    from iocast.api.knee import knee
    from iocast.api.measure import measure
    from iocast.api.plan import plan
    from iocast.api.predict import predict
    from iocast.api.report import report
    from iocast.api.runs import import_results, open_runs
    from iocast.api.simulate import simulate
    from iocast.api.study import study
    from iocast.api.validate import validate

__all__ = [
    "calibrate",
    "calibrate_facts",
    "compare",
    "forecast",
    "import_results",
    "knee",
    "measure",
    "open_runs",
    "plan",
    "predict",
    "report",
    "simulate",
    "study",
    "validate",
]


def __getattr__(name: str) -> Any:
    """A call of the library, loaded when it is first named."""
    if name not in __all__:
        raise AttributeError(f"module 'iocast' has no attribute '{name}'")
    module = import_module("iocast.api.runs" if name in ("import_results", "open_runs") else f"iocast.api.{name}")
    call = globals()[name] = import_module("iocast.api.arguments").as_call(getattr(module, name))
    return call


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


class _Library(ModuleType):
    def __setattr__(self, name: str, value: object) -> None:
        """Python binds a module of this package to its name here when it is imported; `iocast.compare` stays a call."""
        if not (name in __all__ and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Library
