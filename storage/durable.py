"""Files that a power cut leaves whole or not there at all."""

import os
from pathlib import Path
from uuid import uuid4


def create(path: Path, content: bytes, mode: int = 0o666) -> None:
    """Write a new file: whole and synced under another name first, then under its own, then its folder is synced.

    Raises:
        FileExistsError: there is one of this name; it is left alone.
    """
    draft = path.with_name(f".{path.name}.{uuid4().hex}")
    try:
        with os.fdopen(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode), "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.link(draft, path)  # create-only: unlike a rename, it never replaces
    finally:
        draft.unlink(missing_ok=True)
    sync(path.parent)


def make_folder(folder: Path) -> None:
    """Create a folder, and those above it, so that they survive, too."""
    if folder.is_dir():
        return
    make_folder(folder.parent)
    folder.mkdir(exist_ok=True)
    sync(folder.parent)


def sync(path: Path) -> None:
    """Have a file's content, or the names in a folder, on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
