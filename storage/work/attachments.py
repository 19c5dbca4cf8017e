"""Files that people attached to customers: sealed in the lake, as they were sent.

A deleted attachment keeps its row, without the file and its name.
"""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import delete as delete_rows
from sqlalchemy import insert, select, update

from pipelines.vocabulary.errors import Gone, NotFound
from storage.core.database import AnySelect, Reading, Writing
from storage.core.lake import Lake, StoredFile
from storage.core.models import attachments, damaged_files
from storage.core.paging import Page, Paged, count_total, limit_to_page
from storage.core.store import Store
from storage.core.vault import read_key_id
from storage.customers.customers import Customer

FOLDER = "attachments"
MAX_BYTES = 10 * 2**20


@dataclass(frozen=True)
class NewAttachment:
    """A file that is durable in the lake, sealed, and not named yet."""

    attachment_id: UUID
    file_name: str
    sha256: bytes  # of the file as sent
    size: int
    stored: StoredFile
    data_key: int


@dataclass(frozen=True)
class Attachment:
    attachment_id: UUID
    file_name: str | None  # null: deleted
    sha256: bytes
    size: int
    path: str | None
    stored_sha256: bytes | None
    created_at: datetime
    created_by: str  # as in the audit trail
    deleted_at: datetime | None
    deleted_by: str | None


def seal(
    store: Store, attachment_id: UUID, file_name: str, sha256: bytes, content: bytes, now: datetime
) -> NewAttachment:
    """Encrypt a file and store it durably, before the transaction that names it."""
    sealed = store.vault.seal(content, sealing_context(attachment_id))
    stored = store.lake.put(f"{FOLDER}/{now:%Y-%m-%d}/{attachment_id}.sealed", sealed)
    return NewAttachment(attachment_id, file_name, sha256, len(content), stored, read_key_id(sealed))


def sealing_context(attachment_id: UUID) -> bytes:
    """Return the context that a file is sealed for."""
    return b"attachment:" + attachment_id.bytes


def add(w: Writing, lake: Lake, customer: Customer, new: NewAttachment, who: str, now: datetime) -> Attachment:
    """Name a sealed file as the customer's attachment.

    Raises:
        Unavailable: the file was removed as an orphan.
    """
    stored = {"path": new.stored.path, "stored_sha256": new.stored.sha256, "data_key": new.data_key}
    sent = {"file_name": new.file_name, "sha256": new.sha256, "size": new.size}
    row = {"attachment_id": new.attachment_id, "customer_number": customer.number, **sent, **stored}
    w.execute(insert(attachments).values(row | {"created_at": now, "created_by": who}))
    lake.require(w, new.stored.path)
    return get(w, customer, new.attachment_id)


def delete(w: Writing, customer: Customer, attachment_id: UUID, who: str, now: datetime) -> str | None:
    """Remove an attachment's name and the reference to its file; that there was one stays.

    Returns:
        The path of its file, to be discarded when the transaction is committed; None if it was deleted already.

    Raises:
        NotFound: unknown, or another customer's.
    """
    path = get(w, customer, attachment_id).path
    this = (attachments.c.attachment_id == attachment_id, attachments.c.path.is_not(None))
    gone: dict[str, None] = {"file_name": None, "path": None, "stored_sha256": None, "data_key": None}
    w.execute(update(attachments).where(*this).values(**gone, deleted_at=now, deleted_by=who))
    w.execute(delete_rows(damaged_files).where(damaged_files.c.path == path))
    return path


def get(r: Reading, customer: Customer, attachment_id: UUID) -> Attachment:
    """Return the customer's attachment, even a deleted one.

    Raises:
        NotFound: unknown, or another customer's.
    """
    row = r.execute(_select_of_customer(customer).where(attachments.c.attachment_id == attachment_id)).first()
    if row is None:
        raise NotFound("Attachment.NotFound", "The customer has no attachment with this id.")
    return Attachment(*row)


def find(r: Reading, customer: Customer, page: Page | None = None) -> Paged[Attachment]:
    """Return the customer's attachments, newest first."""
    query = _select_of_customer(customer)
    rows = r.execute(limit_to_page(query.order_by(attachments.c.created_at.desc(), attachments.c.number.desc()), page))
    return Paged([Attachment(*row) for row in rows], count_total(r, query), page)


def open_content(store: Store, attachment: Attachment) -> bytes:
    """Return the file as it was sent.

    Raises:
        Gone: the attachment was deleted.
        Corrupt: the stored file is missing or damaged.
    """
    if attachment.path is None or attachment.stored_sha256 is None:
        raise Gone("Attachment.Gone", "The attachment was deleted.")
    path = store.lake.verified_path(attachment.path, attachment.stored_sha256)
    return store.vault.open(path.read_bytes(), sealing_context(attachment.attachment_id))


def _select_of_customer(customer: Customer) -> AnySelect:
    own = [attachments.c[name] for name in Attachment.__dataclass_fields__]
    return select(*own).where(attachments.c.customer_number == customer.number)
