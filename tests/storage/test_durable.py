"""A new file's content is synced before it gets its name, and its folder before anybody is told."""

import os
from pathlib import Path
from typing import Any

import pytest

from storage.lake import Lake
from storage.settings import Settings


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Path]]:
    """What is synced and named, in order."""
    seen: list[tuple[str, Path]] = []
    fsync, link = os.fsync, os.link

    def synced(descriptor: int) -> None:
        seen.append(("sync", Path(f"/proc/self/fd/{descriptor}").readlink()))
        fsync(descriptor)

    def named(source: Path, target: Path, **options: Any) -> None:
        seen.append(("name", target))
        link(source, target, **options)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "link", named)
    return seen


def assert_durable(steps: list[tuple[str, Path]], file: Path) -> None:
    named = steps.index(("name", file))
    before, after = steps[:named], steps[named + 1 :]
    assert [path for step, path in before if step == "sync" and path.name.startswith(("." + file.name, file.name))]
    assert ("sync", file.parent) in after


def test_a_data_file(tmp_path: Path, steps: list[tuple[str, Path]]) -> None:
    Lake(tmp_path).put("landing/2026-11-20/rows.parquet", b"rows")
    assert_durable(steps, tmp_path / "landing/2026-11-20/rows.parquet")
    assert ("sync", tmp_path / "landing") in steps  # it has a new folder, too


def test_the_master_key(tmp_path: Path, steps: list[tuple[str, Path]]) -> None:
    """What is sealed under it may be durable at once, and would be lost without it."""
    Settings(home=tmp_path / "home").prepared()
    assert_durable(steps, tmp_path / "home" / "master.key")
