"""Files that an operator names: what can't be read or written is said in one line."""

from pathlib import Path

from pipelines.errors import Unprocessable


def content_of(path: Path) -> bytes:
    """Raises Unprocessable where it can't be read."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise Unprocessable("File.Unreadable", f"{path} can't be read: {error.strerror}.") from error


def write(path: Path, content: bytes) -> None:
    """Raises Unprocessable where it can't be written."""
    try:
        path.write_bytes(content)
    except OSError as error:
        raise Unprocessable("File.Unwritable", f"{path} can't be written: {error.strerror}.") from error
