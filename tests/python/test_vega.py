# SPDX-License-Identifier: Apache-2.0
"""The library that draws a page's figures is put together once for each user, and by nobody else."""

from __future__ import annotations

import os
import pwd
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import vl_convert

from iocast.report import vega


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """A line for each time that it was put together; kept under tmp_path."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    calls: list[str] = []

    def bundle(snippet: str, vl_version: str) -> str:
        calls.append(vl_version)
        return "draw('</script>')"

    monkeypatch.setattr(vl_convert, "javascript_bundle", bundle)
    vega.library.cache_clear()
    yield calls
    vega.library.cache_clear()


def again() -> str:
    vega.library.cache_clear()
    return vega.library()


def test_it_is_made_once_and_can_stand_in_a_page(made: list[str]) -> None:
    first = again()
    assert first.startswith("draw(") and "</script" not in first
    assert again() == first and len(made) == 1


@pytest.mark.parametrize("mode", ["file", "directory"])
def test_what_others_may_write_is_not_used(made: list[str], tmp_path: Path, mode: str) -> None:
    right = again()
    (file,) = (tmp_path / "iocast").iterdir()
    file.write_text("steal();" + vega.ENDS)
    os.chmod(file if mode == "file" else file.parent, 0o777)
    assert again() == right


def test_a_file_that_was_cut_off_is_made_again(made: list[str], tmp_path: Path) -> None:
    right = again()
    (file,) = (tmp_path / "iocast").iterdir()
    file.write_text(right[:8])
    assert again() == right == file.read_text()


def test_without_a_place_it_is_made_each_time(made: list[str], tmp_path: Path) -> None:
    (tmp_path / "iocast").write_text("a file")
    assert again() == again() and len(made) == 2


@pytest.mark.parametrize("home", [None, "here"])
@pytest.mark.parametrize("cache", [None, "", "here"])
def test_without_a_home_nothing_is_kept(
    made: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, home: str | None, cache: str | None
) -> None:
    """For a number that is no user's, and where HOME and XDG_CACHE_HOME name no place."""
    monkeypatch.chdir(tmp_path)

    def nobody(uid: int) -> Any:
        raise KeyError(uid)

    monkeypatch.setattr(pwd, "getpwuid", nobody)
    for name, value in (("HOME", home), ("XDG_CACHE_HOME", cache)):
        monkeypatch.delenv(name) if value is None else monkeypatch.setenv(name, value)
    assert again() == again() and len(made) == 2
    assert not any(tmp_path.iterdir())
