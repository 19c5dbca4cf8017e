"""Intents: rows that announce files before they are written to object storage, so that orphans are found in the table.

An intent is committed before its file is written, and deleted in the transaction that refers to the file. So every
object of the bucket has a row that refers to it or an intent, no matter when a process is killed. A sweep first
*condemns* an old intent. From then on no transaction can settle it or refer to its file, so the file can be removed at
any later time. Listing the bucket, which is slow, is never needed.
"""

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta

from sqlalchemy import delete, insert, select, update
from sqlalchemy.exc import IntegrityError

from storage.core.database import Database, Reading, Writing, insert_into
from storage.core.models import file_intents

SLICE = 1_000  # rows read or written by one statement
# A condemned object is removed at each purge for this long, because a suspended writer may have sent it meanwhile.
REMOVED_AGAIN_AFTER = timedelta(days=1)


def announce(db: Database, path: str, size: int, now: datetime) -> None:
    """Commit the intent to write a file.

    Raises:
        FileExistsError: another process is already writing a file with this path.
    """
    try:
        with db.writing() as w:
            w.execute(insert(file_intents).values(path=path, bytes=size, at=now))
    except IntegrityError as error:
        raise FileExistsError(path) from error


def settle(w: Writing, path: str) -> bool:
    """Delete the intent of a file that this transaction refers to.

    Return False if the intent was condemned or is missing: then the transaction must not refer to the file.
    """
    selected = (file_intents.c.path == path, file_intents.c.condemned_at.is_(None))
    return w.execute(delete(file_intents).where(*selected)).rowcount == 1


def announce_released(w: Writing, files: Iterable[tuple[str, int]], now: datetime) -> None:
    """Insert intents for files (path, bytes) that this transaction no longer refers to."""
    rows = [{"path": path, "bytes": size, "at": now} for path, size in files]
    if rows:
        w.execute(insert_into(w, file_intents).on_conflict_do_nothing(), rows)


def delete_intents(w: Writing, paths: Iterable[str]) -> None:
    """Delete the intents of files that were removed."""
    w.execute(delete(file_intents).where(file_intents.c.path.in_(list(paths))))


def find_unsettled(db: Database, folder: str) -> Iterator[tuple[str, int, datetime]]:
    """Yield path, bytes and time of all intents below a folder that are not condemned, in order of path."""
    path, after = file_intents.c.path, f"{folder}/"
    query = select(path, file_intents.c.bytes, file_intents.c.at).where(file_intents.c.condemned_at.is_(None))
    while True:
        with db.reading() as r:  # "0" is the character after "/", so these are all paths that begin with the folder
            page = query.where(path > after, path < f"{folder}0").order_by(path).limit(SLICE)
            rows = [(row.path, row.bytes, row.at) for row in r.execute(page)]
        if not rows:
            return
        yield from rows
        after = rows[-1][0]


def list_paths(db: Database) -> list[str]:
    """Return the paths of all intents, condemned or not, in order."""
    with db.reading() as r:
        return list(r.execute(select(file_intents.c.path).order_by(file_intents.c.path)).scalars())


def condemn(w: Writing, paths: Iterable[str], now: datetime) -> None:
    """Mark these intents as condemned, so that `settle` returns False for them."""
    w.execute(update(file_intents).where(file_intents.c.path.in_(list(paths))).values(condemned_at=now))


def find_condemned(r: Reading, after: str) -> list[str]:
    """Return the paths of at most SLICE condemned files, in order, starting after `after`."""
    query = select(file_intents.c.path).where(file_intents.c.condemned_at.is_not(None), file_intents.c.path > after)
    return list(r.execute(query.order_by(file_intents.c.path).limit(SLICE)).scalars())


def forget_condemned(w: Writing, now: datetime) -> None:
    """Delete the intents that were condemned more than REMOVED_AGAIN_AFTER ago, after a purge that removed them."""
    w.execute(delete(file_intents).where(file_intents.c.condemned_at < now - REMOVED_AGAIN_AFTER))
