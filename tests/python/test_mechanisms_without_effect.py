# SPDX-License-Identifier: Apache-2.0
"""Mechanisms of a platform that change nothing for the operations that use them, and platforms that extend others."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from iocast.ground import binaries

FORM = """\
schema_version: 1
description: a server with a quota
source: made up
stations: {{s: {{servers: 4}}}}
demands: {{d: 1ms}}
buckets:
  quota: {{{bucket}}}
operations:
  pwrite: [{{station: s, demand: d}}{create}]
  stat: [{{station: s, demand: d}}{stat}]
"""
STEP = ", {bucket: quota}"


def described(file: Path) -> str:
    done = subprocess.run(
        [str(binaries.find("iocast-sim")), "--describe", str(file)], capture_output=True, text=True, check=False
    )
    return done.stderr if done.returncode else ""


@pytest.mark.parametrize(
    ("bucket", "create", "stat", "refused"),
    [
        ("per: system, bandwidth: 1MB/s", "", STEP, True),
        ("per: system, bandwidth: 1MB/s", STEP, "", False),
        ("per: system, bandwidth: 1MB/s", STEP, STEP, False),  # stat waits behind what is written
        ("per: system, rate: 10/s, bandwidth: 1MB/s", "", STEP, False),
        ("per: system, rate: 10/s", "", STEP, False),
    ],
)
def test_a_bucket_of_bytes_that_nobody_moves_is_refused(
    tmp_path: Path, bucket: str, create: str, stat: str, refused: bool
) -> None:
    file = tmp_path / "site.yaml"
    file.write_text(FORM.format(bucket=bucket, create=create, stat=stat))
    says = described(file)
    assert bool(says) == refused, says
    if refused:
        assert "site.yaml:7:" in says and "the bucket 'quota' counts bytes alone" in says and "(stat)" in says, says


def test_published_numbers_are_of_the_platform_that_states_them(tmp_path: Path) -> None:
    """Not of one that extends it, in what iocast-sim refuses as in what the toolkit does."""
    (tmp_path / "site.yaml").write_text("schema_version: 1\nextends: mistral\ndescription: d\nsource: s\n")
    done = subprocess.run(
        [str(binaries.find("iocast-sim")), "--platform", str(tmp_path / "site.yaml"), "--nodes", "5000", "--ppn", "1"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 2 and "of any published number of mistral (" in done.stderr, done.stderr
