"""Write files that are complete or absent after a power cut, and that only their owner may read."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

FILE_MODE, FOLDER_MODE = 0o600, 0o700

_synced: set[Path] = set()  # folders whose entry in the parent folder this process has synced


def create(path: Path, content: bytes) -> None:
    """Write a new file: write and sync it under another name, link it to its own name, then sync the folder.

    Raises:
        FileExistsError: the file exists; it is unchanged.
        OSError: the disk is full, or failed; the file does not exist.
    """
    with _draft(path, content) as draft:
        os.link(draft, path)  # create-only: unlike a rename, it never replaces
    try:
        sync(path.parent)
    except OSError:
        path.unlink(missing_ok=True)
        raise


def replace(path: Path, content: bytes) -> None:
    """Write a file in the place of an existing one. Concurrent readers get all of the old or all of the new content.

    Raises:
        OSError: the disk is full, or failed; after a power cut the file may have the old or the new content.
    """
    with _draft(path, content) as draft:
        draft.replace(path)
    sync(path.parent)


@contextmanager
def _draft(path: Path, content: bytes) -> Iterator[Path]:
    """Write and sync the content under another name in the same folder; remove this file at the end."""
    draft = path.with_name(f".{path.name}.{uuid4().hex}")
    try:
        with os.fdopen(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, FILE_MODE), "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        yield draft
    finally:
        draft.unlink(missing_ok=True)


def make_folder(folder: Path) -> None:
    """Create a folder and its parents durably. An existing folder keeps its mode.

    An existing folder may have been created a moment ago by a process that has not synced it yet. So each process syncs
    it once, unless it has no permission to create such a folder.
    """
    if not folder.is_dir():
        make_folder(folder.parent)
        folder.mkdir(FOLDER_MODE, exist_ok=True)
    elif folder in _synced or not os.access(folder.parent, os.W_OK):
        return
    sync(folder.parent)
    _synced.add(folder)


def sync(path: Path) -> None:
    """Flush a file's content, or a folder's entries, to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
