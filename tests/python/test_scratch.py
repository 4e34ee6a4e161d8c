# SPDX-License-Identifier: Apache-2.0
"""Temporary directories: private, and gone with whoever made them, at the latest at the next start."""

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from programs import REPOSITORY

from iocast.ground import scratch
from iocast.errors import RunError
from iocast.ground.scratch import scratch_directory, whole_directory

HOLD = """
import sys
from pathlib import Path
from iocast.ground.scratch import scratch_directory
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


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, "error"])
def test_a_directory_is_whole_or_is_not_there(tmp_path: Path, how: signal.Signals | str) -> None:
    """Whatever ends its maker, the same command goes again, and nothing is left then."""
    if not (child := os.fork()):
        with contextlib.suppress(RunError), whole_directory(tmp_path / "out") as made:
            (made / "half").write_text("half")
            if isinstance(how, str):
                raise RunError("The disk is full.")
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            os.kill(os.getpid(), how)
        os._exit(0)
    os.waitpid(child, 0)
    assert not (tmp_path / "out").exists()
    scratch._swept.discard(str(tmp_path))
    with whole_directory(tmp_path / "out") as made:
        (made / "below").mkdir()
        (made / "below" / "whole").write_text(f"{made}/below")
    assert [p.name for p in tmp_path.iterdir()] == ["out"]
    assert (tmp_path / "out" / "below" / "whole").read_text() == str(tmp_path / "out" / "below")
    (tmp_path / "out" / "mine").write_text("mine")
    with pytest.raises(RunError, match="not empty"), whole_directory(tmp_path / "out") as made:
        pass
    assert (tmp_path / "out" / "mine").read_text() == "mine"
