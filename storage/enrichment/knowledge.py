"""Read what is known about customers apart from their transactions, in one snapshot with their versions.

If any of it changes before a batch commits, the commit leaves the customers concerned to a later batch.
"""

import logging
from collections import defaultdict
from collections.abc import Iterable, Sequence
from uuid import UUID

import polars as pl

from pipelines.enrichment.knowledge import CUSTOMERS, RELATED_PARTIES, Knowledge, OfCustomers
from pipelines.enrichment.learned.model import Model
from pipelines.enrichment.learned.model_file import loads
from pipelines.enrichment.transfers.group_pairs import COLUMNS, GROUP_ROWS, select_group_candidates
from pipelines.vocabulary.errors import Corrupt, Unprocessable
from storage.core.database import Reading
from storage.core.lake import Lake
from storage.customers import customers
from storage.enrichment import category_models, corrections, related_parties, transactions

log = logging.getLogger(__name__)

_MODELS_CACHED = 8  # in memory, some tens of megabytes each
_models: dict[UUID, Model] = {}  # a stored model never changes


def read(r: Reading, lake: Lake, customer_numbers: Iterable[int]) -> Knowledge:
    """Read what is known now. This includes rows of customers in the same group, except those in damaged files."""
    numbers = list(customer_numbers)
    parties = [
        (number, party.name, party.abn, party.role)
        for number, declared in related_parties.of_all(r, numbers).items()
        for party in declared
    ]
    return Knowledge(
        corrections=corrections.live(r, numbers),
        related_parties=pl.DataFrame(parties, schema=RELATED_PARTIES, orient="row"),
        customers=pl.DataFrame(customers.names(r, numbers), schema=CUSTOMERS, orient="row"),
        models=_models_of(r, numbers),
        group_rows=_group_rows(r, lake, numbers),
    )


def _group_rows(r: Reading, lake: Lake, numbers: Sequence[int]) -> pl.DataFrame:
    """Return GROUP_ROWS of the customers."""
    relations = related_parties.customers_declared_by(r, numbers)
    if not relations:
        return pl.DataFrame(schema=GROUP_ROWS)
    declared = related_parties.of_all(r, numbers)
    links = pl.LazyFrame(
        [
            (each.customer_number, each.other_number, party.name)
            for each in relations
            for party in declared[each.customer_number]
            if party.abn == each.abn
        ],
        schema={"customer_number": pl.Int64(), "other": pl.Int64(), "party": pl.String()},
        orient="row",
    ).unique(("customer_number", "other"), keep="first", maintain_order=True)
    good, _ = transactions.readable(lake, transactions.current_locations(r, {each.other_number for each in relations}))
    held = (
        transactions.scan(lake, good).select(COLUMNS).pipe(select_group_candidates).rename({"customer_number": "other"})
    )
    return links.join(held, on="other", how="inner", validate="m:m").select(*GROUP_ROWS).collect()


def _models_of(r: Reading, numbers: Sequence[int]) -> list[OfCustomers[Model]]:
    clients = customers.clients_of(r, numbers)
    used = category_models.in_use(r, list(set(clients.values())))
    users: defaultdict[UUID, set[int]] = defaultdict(set)
    for number, client_id in clients.items():
        if client_id in used:
            users[used[client_id]].add(number)
    read_models = ((frozenset(of), _model(r, model_id)) for model_id, of in sorted(users.items()))
    return [OfCustomers(of, model) for of, model in read_models if model is not None]


def _model(r: Reading, model_id: UUID) -> Model | None:
    """Return a model, or None if it can't be read. Tidemark's own model is used then."""
    if model_id not in _models:
        try:
            model = loads(category_models.content(r, model_id))
        except (Corrupt, Unprocessable) as error:
            log.error("the model %s is not used: %s", model_id, error.detail)
            return None
        if len(_models) >= _MODELS_CACHED:
            _models.pop(next(iter(_models)))
        _models[model_id] = model
    return _models[model_id]
