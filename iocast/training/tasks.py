# SPDX-License-Identifier: Apache-2.0
"""Trainings of MLPerf Storage, by the configuration files of the benchmark."""

from __future__ import annotations

from dataclasses import dataclass

LIMIT = 0.9
"""Utilisation that a result must keep, unless its workload has its own."""


@dataclass(frozen=True)
class Task:
    """A training. `step_seconds`: computation for one
    batch; `limit`: utilisation that a result must keep."""

    workload: str
    accelerator: str
    step_seconds: float
    batch: int
    sample_bytes: float
    limit: float = LIMIT

    @property
    def samples_per_second(self) -> float:
        """Of one accelerator that never waits."""
        return self.batch / self.step_seconds


TASKS = [
    Task("unet3d", "a100", 0.636, 7, 146_600_628),
    Task("unet3d", "h100", 0.323, 7, 146_600_628),
    Task("resnet50", "a100", 0.435, 400, 114_660.07),
    Task("resnet50", "h100", 0.224, 400, 114_660.07),
    Task("cosmoflow", "a100", 0.00551, 1, 2_828_486, 0.7),
    Task("cosmoflow", "h100", 0.0035, 1, 2_828_486, 0.7),
]
"""github.com/mlcommons/storage, configs/dlio/workload: computation_time, batch_size, record_length_bytes, au."""


LIMITS = {"retinanet": 0.85}
"""Of workloads whose tasks stand in the catalogue alone (workload/catalogue)."""


def task_of(workload: str, accelerator: str) -> Task | None:
    wanted = (_plain(workload), accelerator.lower())
    return next((one for one in TASKS if (one.workload, one.accelerator) == wanted), None)


def limit_of(workload: str) -> float:
    """Utilisation that a result of the workload must keep; 90 % where the benchmark has none of this name."""
    limits = LIMITS | {one.workload: one.limit for one in TASKS}
    return limits.get(_plain(workload), LIMIT)


def _plain(workload: str) -> str:
    """Whatever its spelling: CosmoFlow, ResNet-50."""
    return workload.lower().replace("-", "").replace("_", "")
