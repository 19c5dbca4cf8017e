"""What tells a home from others, and the settings of its Dagster, survive a power cut."""

import os
from pathlib import Path

import pytest

from assets.dagster_internals import dagster_home
from storage.core.settings import Settings


@pytest.fixture
def synced_names(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list that collects the names of synced files and folders in order."""
    names: list[str] = []
    fsync = os.fsync

    def record_sync(descriptor: int) -> None:
        names.append(Path(f"/proc/self/fd/{descriptor}").readlink().name)
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", record_sync)
    return names


def test_the_settings_are_synced_to_disk(tmp_path: Path, synced_names: list[str]) -> None:
    dagster_home.prepare(Settings(home=tmp_path))
    assert [name for name in synced_names if name.startswith(".dagster.yaml.")]
    assert synced_names[-1] == "dagster"
    assert [path.name for path in (tmp_path / "dagster").iterdir()] == ["dagster.yaml"]


def test_the_identity_is_synced_to_disk_and_never_changes(tmp_path: Path, synced_names: list[str]) -> None:
    first = dagster_home.worker_role(Settings(home=tmp_path))
    assert [name for name in synced_names if name.startswith(".identity.")]
    assert synced_names[-1] == tmp_path.name
    assert dagster_home.worker_role(Settings(home=tmp_path)) == first
