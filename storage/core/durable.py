"""Files that a power cut leaves whole or not there at all, and that nobody but their owner may read."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

FILE_MODE, FOLDER_MODE = 0o600, 0o700

_synced: set[Path] = set()  # folders whose names this process knows to be on the disk


def create(path: Path, content: bytes) -> None:
    """Write a new file: whole and synced under another name first, then under its own, then its folder is synced.

    Raises:
        FileExistsError: there is one of this name; it is left alone.
        OSError: the disk is full, or failed; there is no file of this name.
    """
    with _draft(path, content) as draft:
        os.link(draft, path)  # create-only: unlike a rename, it never replaces
    try:
        sync(path.parent)
    except OSError:
        path.unlink(missing_ok=True)
        raise


def replace(path: Path, content: bytes) -> None:
    """As `create`, but in the place of a file of this name: who reads it meanwhile reads all of the one or the other.

    Raises:
        OSError: the disk is full, or failed; after a power cut it may be the one or the other.
    """
    with _draft(path, content) as draft:
        draft.replace(path)
    sync(path.parent)


@contextmanager
def _draft(path: Path, content: bytes) -> Iterator[Path]:
    """The content, whole and synced, under another name in the same folder: for as long as it is not needed there."""
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
    """Create a folder, and those above it, so that they survive, too.

    One that is there keeps its mode. It may have been made a moment ago, by a process that has not synced it yet: it is
    synced by every process once, unless the process could not have made it.
    """
    if not folder.is_dir():
        make_folder(folder.parent)
        folder.mkdir(FOLDER_MODE, exist_ok=True)
    elif folder in _synced or not os.access(folder.parent, os.W_OK):
        return
    sync(folder.parent)
    _synced.add(folder)


def sync(path: Path) -> None:
    """Have a file's content, or the names in a folder, on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
