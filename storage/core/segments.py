"""Segments: the database's rows for files of the lake."""

from datetime import datetime
from uuid import UUID, uuid4

from sqlalchemy import insert

from storage.core.database import Writing
from storage.core.lake import Lake, StoredFile
from storage.core.models import segments


def register(w: Writing, lake: Lake, file: tuple[StoredFile, int], now: datetime) -> UUID:
    """Insert a durable file's row; return the segment's id.

    Args:
        file: the file and its number of rows.

    Raises:
        Unavailable: the file was removed as an orphan; the transaction must not commit.
    """
    stored, rows = file
    segment_id = uuid4()
    row = {"segment_id": segment_id, "path": stored.path, "sha256": stored.sha256, "bytes": stored.size}
    w.execute(insert(segments).values(**row, rows=rows, created_at=now))
    lake.require(w, stored.path)
    return segment_id
