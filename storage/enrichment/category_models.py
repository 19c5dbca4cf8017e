"""Learned models of categories: kept whole in the database, and which of them is used for whom.

A model is never changed. Using one is an entry in a list that only grows, for one client or for all; the last entry of
a scope holds. So going back is one more entry, and the list says who decided by what, when. They are few and of some
megabytes, so they lie beside what names them: one transaction, one backup.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import insert, select

from pipelines.vocabulary.errors import Conflict, Corrupt, NotFound
from storage.core.database import AnyRow, Reading, Writing
from storage.core.models import Flow, category_model_uses, category_models, clients
from storage.customers.customers import knowledge_of_all_changes, with_transactions
from storage.jobs.jobs import request_recomputations


@dataclass(frozen=True)
class StoredModel:
    model_id: UUID
    client_id: UUID | None  # for whose labels it was trained; null: for all
    fingerprint: str
    facts: Mapping[str, Any]  # what it was trained on, and how good it was on rows held back
    created_at: datetime


def add(
    w: Writing, content: bytes, fingerprint: str, facts: Mapping[str, Any], client_id: UUID | None, now: datetime
) -> StoredModel:
    """Keep a model; it is not used yet."""
    if client_id is not None:
        _require_client(w, client_id)
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
    """Every model, the oldest first."""
    query = select(*_SHOWN).order_by(category_models.c.created_at, category_models.c.model_id)
    return [_model(row) for row in r.execute(query)]


def get(r: Reading, model_id: UUID) -> StoredModel:
    """Raises NotFound where there is none of this id."""
    row = r.execute(select(*_SHOWN).where(category_models.c.model_id == model_id)).first()
    if row is None:
        raise NotFound("Model.NotFound", f"There is no model {model_id}.")
    return _model(row)


def content(r: Reading, model_id: UUID) -> bytes:
    """The model's file, as it was added."""
    found: bytes | None = r.execute(
        select(category_models.c.content).where(category_models.c.model_id == model_id)
    ).scalar()
    if found is None:
        raise Corrupt("Model.Missing", f"The model {model_id} is named, but not kept.")
    return found


def activate(w: Writing, model_id: UUID, client_id: UUID | None, who: str, now: datetime) -> None:
    """Use a model for one client, or for all that have none of their own. Their customers are enriched again.

    Raises:
        NotFound: no such model or client.
        Conflict: the model was trained for another client.
    """
    model = get(w, model_id)
    if client_id is not None:
        _require_client(w, client_id)
    if model.client_id not in (None, client_id):
        raise Conflict("Model.OfAnotherClient", f"The model was trained for client {model.client_id} alone.")
    _use(w, model_id, client_id, who, now)


def deactivate(w: Writing, client_id: UUID | None, who: str, now: datetime) -> UUID | None:
    """Go back: a client to the model for all, all to the one that comes with Tidemark. What was used until now."""
    used = uses(w).get(client_id)
    if used is not None:
        _use(w, None, client_id, who, now)
    return used


def uses(r: Reading) -> dict[UUID | None, UUID]:
    """The model in use for each client that has one of its own and, under None, for all others."""
    rows = r.execute(select(category_model_uses).order_by(category_model_uses.c.number)).all()
    last = {row.client_id: row.model_id for row in rows}
    return {client_id: model_id for client_id, model_id in last.items() if model_id is not None}


def in_use(r: Reading, client_ids: Sequence[UUID]) -> dict[UUID, UUID]:
    """The model in use for each of the clients; those that use the one that comes with Tidemark are left out."""
    used = uses(r)
    chosen = {client_id: used.get(client_id, used.get(None)) for client_id in client_ids}
    return {client_id: model_id for client_id, model_id in chosen.items() if model_id is not None}


def _use(w: Writing, model_id: UUID | None, client_id: UUID | None, who: str, now: datetime) -> None:
    """From now on; what is enriched already is enriched again."""
    before = uses(w)
    w.execute(insert(category_model_uses).values(client_id=client_id, model_id=model_id, used_from=now, who=who))
    concerned = [client_id] if client_id else w.execute(select(clients.c.client_id)).scalars()
    for each in concerned:
        if client_id is None and each in before:
            continue  # it has a model of its own
        knowledge_of_all_changes(w, each)
        request_recomputations(w, each, with_transactions(w, each), Flow.REENRICHMENT, now)


def _require_client(r: Reading, client_id: UUID) -> None:
    if r.execute(select(clients.c.client_id).where(clients.c.client_id == client_id)).first() is None:
        raise NotFound("Client.NotFound", "There is no client with this id.")


_SHOWN = [column for column in category_models.c if column.name != "content"]


def _model(row: AnyRow) -> StoredModel:
    return StoredModel(row.model_id, row.client_id, row.fingerprint, row.facts, row.created_at)
