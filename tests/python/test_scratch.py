# SPDX-License-Identifier: Apache-2.0
"""Temporary directories: private, and gone with whoever made them, at the latest at the next start."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from programs import REPOSITORY

from iocast import scratch
from iocast.scratch import scratch_directory

HOLD = """
import sys
from pathlib import Path
from iocast.scratch import scratch_directory
with scratch_directory("key", Path(sys.argv[1])) as path:
    (path / "key").write_text("secret")
    print(path, flush=True)
    sys.stdin.read()
"""


def holding(where: Path) -> tuple[subprocess.Popen[str], Path]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, where],
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    return process, Path(process.stdout.readline().strip())


def test_what_a_killed_process_left_goes_at_the_next_start(tmp_path: Path) -> None:
    (tmp_path / f"{scratch.PREFIX}link").symlink_to(REPOSITORY)
    alive, kept = holding(tmp_path)
    killed, left = holding(tmp_path)
    killed.kill()
    killed.communicate()
    assert (left / "key").read_text() == "secret" and left.stat().st_mode & 0o077 == 0
    scratch._swept.discard(str(tmp_path))
    with scratch_directory("mine", tmp_path) as mine:
        assert not left.exists() and (kept / "key").exists() and mine.stat().st_mode & 0o077 == 0
    alive.communicate()
    assert [p.name for p in tmp_path.iterdir()] == [f"{scratch.PREFIX}link"] and (REPOSITORY / "check").exists()


def test_a_directory_that_is_swept_before_it_is_locked_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process begins just then, and takes it for a dead one's."""
    made = []

    def make(prefix: str, dir: str) -> str:
        made.append(Path(dir) / f"{prefix}{len(made)}")
        if len(made) > 1:
            made[-1].mkdir()
        return str(made[-1])

    monkeypatch.setattr(tempfile, "mkdtemp", make)
    with scratch_directory("test", tmp_path) as path:
        assert path == made[1] and path.is_dir()
    assert not path.exists()
