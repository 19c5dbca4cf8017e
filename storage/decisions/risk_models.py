"""Fitted scorecards, stored in the database, and which one each client uses.

A stored scorecard never changes. Activating one adds a row to a table that only grows; a client's last row applies.
Deactivating it adds another row, so the table shows who activated which scorecard, and when.
"""

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import insert, select, update

from pipelines.metrics import METRICS
from pipelines.scorecards import scorecard_file
from pipelines.scorecards.comparison import describe_comparison
from pipelines.scorecards.default import DEFAULT
from pipelines.scorecards.expected import Expected
from pipelines.scorecards.scorecard import Scorecard
from pipelines.vocabulary.errors import Conflict, Corrupt, NotFound, Unprocessable
from storage.access.keys import require_client
from storage.core.choices import find_last_chosen
from storage.core.database import AnyRow, Reading, Writing, read_values
from storage.core.models import clients, customers, reports, risk_model_uses, risk_models
from storage.jobs.jobs import request_refreshes

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class StoredModel:
    model_id: UUID
    client_id: UUID | None  # the client whose outcomes it was fitted to; null: outcomes from a file, for any client
    name: str
    fingerprint: str
    calibration: str
    facts: Mapping[str, Any]  # what it was fitted to, and its quality on cases held back
    created_at: datetime


def add(w: Writing, scorecard: Scorecard, client_id: UUID | None, now: datetime) -> StoredModel:
    """Store a scorecard, unless the client has it already. It is not used yet."""
    if client_id is not None:
        require_client(w, client_id)
    fingerprint = scorecard_file.fingerprint(scorecard)
    is_same = (risk_models.c.fingerprint == fingerprint) & risk_models.c.client_id.is_not_distinct_from(client_id)
    if stored := w.execute(select(*_SHOWN).where(is_same).order_by(risk_models.c.created_at)).first():
        return _as_model(stored)
    model = StoredModel(
        uuid4(),
        client_id,
        scorecard.name,
        fingerprint,
        scorecard.calibration,
        dict(scorecard.facts),
        now,
    )
    w.execute(insert(risk_models).values(**vars(model), content=scorecard_file.dumps(scorecard)))
    return model


def find(r: Reading) -> list[StoredModel]:
    """Return every scorecard, oldest first."""
    query = select(*_SHOWN).order_by(risk_models.c.created_at, risk_models.c.model_id)
    return [_as_model(row) for row in r.execute(query)]


def get(r: Reading, model_id: UUID) -> StoredModel:
    """Return the scorecard's row.

    Raises:
        NotFound: there is none with this id.
    """
    row = r.execute(select(*_SHOWN).where(risk_models.c.model_id == model_id)).first()
    if row is None:
        raise NotFound("RiskModel.NotFound", f"There is no risk model {model_id}.")
    return _as_model(row)


def scorecard(r: Reading, model_id: UUID) -> Scorecard:
    """Return the scorecard itself.

    Raises:
        Corrupt, Unprocessable: it can't be read.
    """
    content: bytes | None = r.execute(select(risk_models.c.content).where(risk_models.c.model_id == model_id)).scalar()
    if content is None:
        raise Corrupt("RiskModel.Missing", f"The risk model {model_id} is used, but not stored.")
    return scorecard_file.loads(content)


def activate(
    w: Writing, model_id: UUID, client_id: UUID, who: str, now: datetime, *, anyway: str | None = None
) -> StoredModel:
    """Use a scorecard for a client's customers from now on. Customers with a risk report get a new one.

    If it replaces the one that comes with Tidemark, a copy of that is recorded as used until now, because a later
    version of Tidemark comes with another one.

    Args:
        anyway: the reason for using it although it isn't better than the one that comes with Tidemark.

    Raises:
        NotFound: no such model or client.
        Conflict: it was fitted to another client's outcomes; or it is not better, and `anyway` gives no reason.
        Unprocessable: it reads metrics that reports don't have.
    """
    model = get(w, model_id)
    require_activatable(w, model, client_id, anyway)
    if client_id not in find_uses(w):
        _record_use(w, add(w, DEFAULT, client_id, now).model_id, client_id, who, now)
    _use(w, model_id, client_id, who, now)
    return model


def require_activatable(r: Reading, model: StoredModel, client_id: UUID, anyway: str | None) -> Scorecard:
    """Return the scorecard of a model that may be activated for a client.

    Raises:
        as `activate`.
    """
    require_client(r, client_id)
    if model.client_id not in (None, client_id):
        raise Conflict("RiskModel.OfAnotherClient", f"The risk model was fitted only for client {model.client_id}.")
    found = scorecard(r, model.model_id)
    require_metrics(found)
    if not (anyway or "").strip() and not is_better(model):
        raise Conflict(
            "RiskModel.NotBetter",
            f'The risk model is {describe_model_comparison(model)}. To use it, say why: --anyway "reason".',
        )
    return found


def require_metrics(scorecard: Scorecard) -> None:
    """Refuse a scorecard that reads metrics which reports don't have.

    Raises:
        Unprocessable: it does.
    """
    unknown = [feature.metric for feature in scorecard.features if feature.metric not in METRICS]
    if unknown:
        some = ", ".join(unknown[:5]) + (" …" if len(unknown) > 5 else "")
        raise Unprocessable(
            "RiskModel.UnknownFeatures",
            f"Reports don't have these metrics: {some}. Fit to stored transactions, or use --registry-only.",
        )


def is_better(model: StoredModel) -> bool:
    """Return whether the model's comparison on unseen customers says that it is better."""
    return bool(model.facts.get("comparison", {}).get("better"))


def describe_model_comparison(model: StoredModel) -> str:
    """Return the model's comparison in words."""
    comparison = model.facts.get("comparison")
    return describe_comparison(comparison) if comparison else "not compared with the default scorecard"


def pin(w: Writing, client_id: UUID, who: str, now: datetime, *, previous: bool) -> StoredModel:
    """Keep a client's scorecard as it is, even if a later version of Tidemark comes with another one.

    A fitted scorecard never changes. If the client uses the one that comes with Tidemark, a copy is stored and used.

    Args:
        previous: go back to the scorecard used before the present one, and keep that.

    Raises:
        NotFound: no such client, or no previous scorecard.
    """
    require_client(w, client_id)
    model_id = _previous(w, client_id) if previous else find_uses(w).get(client_id)
    model = add(w, DEFAULT, client_id, now) if model_id is None else get(w, model_id)
    _use(w, model.model_id, client_id, who, now)
    return model


def _previous(r: Reading, client_id: UUID) -> UUID | None:
    """Return the scorecard used before the present one; None: the one that comes with Tidemark."""
    query = select(risk_model_uses.c.model_id).where(risk_model_uses.c.client_id == client_id)
    used = [None, *r.execute(query.order_by(risk_model_uses.c.number)).scalars()]
    others = [each for each in used if each != used[-1]]
    if not others:
        raise NotFound("RiskModel.NotActive", "The client has used no other scorecard before.")
    return others[-1]


def deactivate(w: Writing, client_id: UUID, who: str, now: datetime) -> UUID | None:
    """Go back to Tidemark's own scorecard. Return the one used until now."""
    used = find_uses(w).get(client_id)
    if used is not None:
        _use(w, None, client_id, who, now)
    return used


def find_uses(r: Reading) -> dict[UUID, UUID]:
    """Return the id of the scorecard in use for each client that has one."""
    return find_last_chosen(r, risk_model_uses.c.model_id)


def read_in_use(r: Reading, client_ids: Iterable[UUID]) -> dict[UUID, Scorecard]:
    """Return the scorecards of the clients that have one. A scorecard that can't be read is logged and left out."""
    used = find_uses(r)
    found = {}
    for client_id in client_ids:
        if client_id in used:
            try:
                found[client_id] = scorecard(r, used[client_id])
            except (Corrupt, Unprocessable) as error:
                log.error("the risk model %s is not used: %s", used[client_id], error.detail)
    return found


def set_expected(w: Writing, client_id: UUID, expected: Expected, now: datetime) -> None:
    """Set the evidence that is expected of all customers of a client. Customers with a risk report get a new one.

    Raises:
        NotFound: there is no such client.
    """
    require_client(w, client_id)
    names = " ".join(expected.names)
    w.execute(update(clients).where(clients.c.client_id == client_id).values(expected_evidence=names))
    _refresh(w, client_id, now)


def read_expected(r: Reading, client_ids: Iterable[UUID]) -> dict[UUID, Expected]:
    """Return the evidence that is expected of the customers of each of these clients."""
    query = select(clients.c.client_id, clients.c.expected_evidence).where(clients.c.client_id.in_(list(client_ids)))
    return {client_id: Expected.of(names.split()) for client_id, names in r.execute(query)}


def _use(w: Writing, model_id: UUID | None, client_id: UUID, who: str, now: datetime) -> None:
    _record_use(w, model_id, client_id, who, now)
    _refresh(w, client_id, now)


def _record_use(w: Writing, model_id: UUID | None, client_id: UUID, who: str, now: datetime) -> None:
    w.execute(insert(risk_model_uses).values(client_id=client_id, model_id=model_id, used_from=now, who=who))


def _refresh(w: Writing, client_id: UUID, now: datetime) -> None:
    """Queue a new risk report for each of the client's customers that has one."""
    reported = select(reports.c.customer_number).where(reports.c.kind == "risk")
    concerned = select(customers.c.number).where(customers.c.client_id == client_id, customers.c.number.in_(reported))
    request_refreshes(w, client_id, concerned, now)


_SHOWN = [column for column in risk_models.c if column.name != "content"]


def _as_model(row: AnyRow) -> StoredModel:
    return StoredModel(**read_values(row))
