# SPDX-License-Identifier: Apache-2.0
# %% [markdown]
# # Did an upgrade make it slower?
# Two runs of a simulated system stand for measurements before and after: each operation takes the server 20 us, and
# then 30 us.

# %%
import json
import subprocess
import tempfile
from pathlib import Path

import iocast
from iocast.ground.binaries import find


def measured(out: Path, mean: str) -> Path:
    """A run of a system whose server takes this long for an operation."""
    platform = out.with_suffix(".yaml")
    server = {"law": "exponential", "mean": mean}
    platform.write_text(json.dumps({"schema_version": 1, "extends": "queue", "demands": {"server": server}}))
    command = [find("iocast-sim"), "--platform", platform, "--workload", "md-workbench", "--ppn", "64", "--out", out]
    settings = {"datasets": 1, "objects": 60, "iterations": 50, "repeats": 5}
    subprocess.run([*command, *(f"--set={k}={v}" for k, v in settings.items())], check=True, capture_output=True)
    return out


# %%
with tempfile.TemporaryDirectory() as scratch:
    before, after = measured(Path(scratch) / "before", "20us"), measured(Path(scratch) / "after", "30us")
    change = iocast.compare(before, after, fail_on="10%")
rate = next(row for row in change.rows() if row["quantity"] == "rate")
print(f"The rate is {rate['verdict']}: {100 * (1 - rate['ratio']):.0f} % are lost; fails: {change.failed}")
# -> The rate is worse: 34 % are lost; fails: True
