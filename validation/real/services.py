#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Do forecasts come true of services? PostgreSQL, an S3 gateway (rclone, on a directory) and CephFS by its library,
whose metadata server is held to a tenth of a core, on this machine, started as the tests do: each measured at up to
four ranks, calibrated as `service` or `cephfs`, forecast at thirty-two, and only then measured there. Prints how wrong
the forecasts were, as filesystems.py does.

    validation/real/services.py [SERVICE...] [--keep DIR] [--json] [--page docs/scoreboard.md]

Needs the packages of packaging/debian-packages-check.txt, root and control groups of version 1 for CephFS, and a quiet
machine; about five minutes a service. Exit status 4 when an error is above its target."""

import argparse
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [
    str(ROOT),
    str(ROOT / "validation"),
    str(ROOT / "validation/real"),
    str(ROOT / "tests/backends"),
    str(ROOT / "tests"),
]
from filesystems import forecast_and_check, report, validated  # noqa: E402
from servers import Buckets, CephFiles, Tables  # noqa: E402

GROUPS = Path("/sys/fs/cgroup/cpu")
PERIOD, QUOTA = 20_000, 2_000
"""Microseconds of a core that the metadata server may use in each period."""


class HeldCephFiles(CephFiles):
    """Its metadata server is the bottleneck, and not the clients: it works for a tenth of each period, and then waits
    for the next one."""

    def start_metadata_server(self) -> None:
        super().start_metadata_server()
        if not (GROUPS / "cpu.cfs_quota_us").exists():
            sys.exit(
                f"CephFS needs control groups of version 1 with their processor controller at {GROUPS}, which this"
                " machine doesn't have."
            )
        self.group = GROUPS / f"iocast-{os.getpid()}"
        self.group.mkdir()
        for name, value in (
            ("cpu.cfs_period_us", PERIOD),
            ("cpu.cfs_quota_us", QUOTA),
            ("cgroup.procs", self.servers["ceph-mds"].pid),
        ):
            (self.group / name).write_text(str(value))

    def stop(self) -> None:
        super().stop()
        self.group.rmdir()


KINDS = {"postgresql": (Tables, "service"), "s3": (Buckets, "service"), "cephfs": (HeldCephFiles, "cephfs")}
"""And the family that each is calibrated as."""
CAMPAIGN = """\
schema_version: 1
workload: md-workbench
settings: {{datasets: 2}}
seconds: {seconds}
benchmark_repeats: 1
repeats: {repeats}
points:
  - {{ranks: [1, 2, 4], waiting_factor: [0, 1], role: fit}}
  - {{ranks: 32, waiting_factor: [0, 1], role: check}}
"""
LONG = {"seconds": 2, "repeats": 3}
SHORT = {
    "cephfs": {"seconds": 0.5, "repeats": 2}
}  # a lone client is answered from its cache; many take a hundred times as long


def validation_of(kind: str, out: Path) -> dict[str, Any]:
    if (out / "validation.json").exists():
        found: dict[str, Any] = json.loads((out / "validation.json").read_text())
        return found
    if out.exists():
        sys.exit(
            f"The directory '{out}' holds a measurement that did not come to its end; remove it, or keep results"
            " elsewhere."
        )
    out.mkdir(parents=True)
    plan = out / "campaign.yaml"
    plan.write_text(CAMPAIGN.format(**SHORT.get(kind, LONG)))
    start, family = KINDS[kind]
    with start() as service:
        os.environ |= service.environment
        pairs = service.options[2:]
        storage = [
            "--backend",
            kind,
            *(f"--backend-option={name}={value}" for name, value in zip(pairs[::2], pairs[1::2], strict=True)),
        ]
        forecast_and_check(list(storage), family, plan, out)
    return validated(out)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kinds", nargs="*", metavar="SERVICE", help=f"of {', '.join(KINDS)}; all without")
    parser.add_argument(
        "--keep",
        type=Path,
        help="a directory for campaigns, forecasts and validations; what is finished there is not measured again",
    )
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--page", type=Path, help="put the table there, between its marks")
    given = parser.parse_args()
    unknown = [kind for kind in given.kinds if kind not in KINDS]
    if unknown:
        parser.error(f"there is no {', '.join(unknown)}; allowed: {', '.join(KINDS)}")
    with tempfile.TemporaryDirectory(prefix="iocast-services-") as scratch:
        out = given.keep or Path(scratch) / "out"
        found = {kind: validation_of(kind, out / kind) for kind in given.kinds or KINDS}
    report(found, "services", given)


if __name__ == "__main__":
    main()
