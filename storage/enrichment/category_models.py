"""Learned models of categories, and which of them is used for which client.

A model never changes. Activating one, for one client or for all, adds a row to a table that only grows; the last row
for a client, or for all, applies. Going back to another model adds another row, so the table shows who chose which
model, and when. There are few models, of some megabytes each, so they are stored in the database: one transaction, one
backup.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import insert, select

from pipelines.vocabulary.errors import Conflict, Corrupt, NotFound
from storage.access.keys import require_client
from storage.core.choices import find_last_chosen
from storage.core.database import AnyRow, Reading, Writing
from storage.core.models import Flow, category_model_uses, category_models, clients
from storage.customers.customers import record_knowledge_change_for_all, with_transactions
from storage.jobs.jobs import request_recomputations


@dataclass(frozen=True)
class StoredModel:
    model_id: UUID
    client_id: UUID | None  # whose labels it was trained on; null: those of all
    fingerprint: str
    facts: Mapping[str, Any]  # what it was trained on, and its quality on held-out rows
    created_at: datetime


def add(
    w: Writing, content: bytes, fingerprint: str, facts: Mapping[str, Any], client_id: UUID | None, now: datetime
) -> StoredModel:
    """Store a model. It is not used yet."""
    if client_id is not None:
        require_client(w, client_id)
    model = StoredModel(uuid4(), client_id, fingerprint, facts, now)
    w.execute(
        insert(category_models).values(
            model_id=model.model_id,
            client_id=client_id,
            fingerprint=fingerprint,
            facts=dict(facts),
            content=content,
            created_at=now,
        )
    )
    return model


def find(r: Reading) -> list[StoredModel]:
    """Return every model, oldest first."""
    query = select(*_SHOWN).order_by(category_models.c.created_at, category_models.c.model_id)
    return [_as_model(row) for row in r.execute(query)]


def get(r: Reading, model_id: UUID) -> StoredModel:
    """Return the model with this id.

    Raises:
        NotFound: there is none.
    """
    row = r.execute(select(*_SHOWN).where(category_models.c.model_id == model_id)).first()
    if row is None:
        raise NotFound("Model.NotFound", f"There is no model {model_id}.")
    return _as_model(row)


def read_content(r: Reading, model_id: UUID) -> bytes:
    """Return the model's file, as it was added.

    Raises:
        Corrupt: it is not stored.
    """
    found: bytes | None = r.execute(
        select(category_models.c.content).where(category_models.c.model_id == model_id)
    ).scalar()
    if found is None:
        raise Corrupt("Model.Missing", f"The model {model_id} is used, but not stored.")
    return found


def activate(w: Writing, model_id: UUID, client_id: UUID | None, who: str, now: datetime) -> None:
    """Use a model for one client, or for all that have none of their own. Their customers are enriched again.

    Raises:
        NotFound: no such model or client.
        Conflict: the model was trained for another client.
    """
    model = get(w, model_id)
    if client_id is not None:
        require_client(w, client_id)
    if model.client_id not in (None, client_id):
        raise Conflict("Model.OfAnotherClient", f"The model was trained only for client {model.client_id}.")
    _use(w, model_id, client_id, who, now)


def deactivate(w: Writing, client_id: UUID | None, who: str, now: datetime) -> UUID | None:
    """Stop using a client's own model, or with None the model for all clients. Return the model used until now.

    Without a model of its own, a client uses the model for all; without that, the one that comes with Tidemark.
    """
    used = uses(w).get(client_id)
    if used is not None:
        _use(w, None, client_id, who, now)
    return used


def uses(r: Reading) -> dict[UUID | None, UUID]:
    """Return the model in use for each client that has one of its own and, with key None, for all others."""
    return find_last_chosen(r, category_model_uses.c.model_id)


def in_use(r: Reading, client_ids: Sequence[UUID]) -> dict[UUID, UUID]:
    """Return the model in use for each of the clients. Clients that use Tidemark's own are left out."""
    used = uses(r)
    chosen = {client_id: used.get(client_id, used.get(None)) for client_id in client_ids}
    return {client_id: model_id for client_id, model_id in chosen.items() if model_id is not None}


def was_changed_since(r: Reading, client_id: UUID, moment: datetime) -> bool:
    """Return whether another model was chosen after a time, for the client or for all."""
    uses_ = category_model_uses.c
    concerns = (uses_.client_id == client_id) | uses_.client_id.is_(None)
    return r.execute(select(uses_.number).where(concerns, uses_.used_from > moment).limit(1)).first() is not None


def _use(w: Writing, model_id: UUID | None, client_id: UUID | None, who: str, now: datetime) -> None:
    """Use a model from now on. Customers already enriched are enriched again."""
    before = uses(w)
    w.execute(insert(category_model_uses).values(client_id=client_id, model_id=model_id, used_from=now, who=who))
    concerned = [client_id] if client_id else w.execute(select(clients.c.client_id)).scalars()
    for each in concerned:
        if client_id is None and each in before:
            continue  # it has a model of its own
        enrich_again(w, each, now)


def enrich_again(w: Writing, client_id: UUID, now: datetime) -> None:
    """Queue all customers of a client, because something that decides on all their transactions has changed."""
    record_knowledge_change_for_all(w, client_id)
    request_recomputations(w, client_id, with_transactions(w, client_id), Flow.REENRICHMENT, now)


_SHOWN = [column for column in category_models.c if column.name != "content"]


def _as_model(row: AnyRow) -> StoredModel:
    return StoredModel(row.model_id, row.client_id, row.fingerprint, row.facts, row.created_at)
