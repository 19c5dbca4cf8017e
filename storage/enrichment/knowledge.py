"""Read what is known about customers apart from their transactions, in the snapshot in which their versions are read.

If any of it changes before a batch commits, the commit leaves these customers to a later batch.
"""

import logging
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TypeVar
from uuid import UUID

import polars as pl

from pipelines.enrichment.counterparties.lists import Lists
from pipelines.enrichment.knowledge import CUSTOMERS, RELATED_PARTIES, Activated, Knowledge, T
from pipelines.enrichment.learned.model import Model
from pipelines.enrichment.learned.model_file import loads
from pipelines.enrichment.own_rules import load_own_rules
from pipelines.enrichment.transfers.group_pairs import COLUMNS, GROUP_ROWS, select_group_candidates
from pipelines.vocabulary.errors import Corrupt, Unprocessable
from pipelines.vocabulary.rule_files import RuleError
from storage.core.database import Reading
from storage.core.lake import Lake
from storage.customers import customers
from storage.enrichment import category_models, corrections, own_rules, related_parties, transactions

log = logging.getLogger(__name__)

_CACHED = 8  # models, and as many versions of own rules; each takes some tens of megabytes
_models: dict[UUID, Model] = {}  # a stored model never changes
_lists_cached: dict[tuple[UUID, int], Lists] = {}  # nor does a version of own rules
K = TypeVar("K", UUID, tuple[UUID, int])


def read(r: Reading, lake: Lake, customer_numbers: Iterable[int]) -> Knowledge:
    """Read what is known now. This includes rows of customers in the same group, except those in damaged files."""
    numbers = list(customer_numbers)
    clients = customers.clients_of(r, numbers)
    own_versions = {client_id: (client_id, version) for client_id, version in own_rules.uses(r).items()}
    parties = [
        (number, party.name, party.abn, party.role)
        for number, declared in related_parties.find_in_force(r, numbers).items()
        for party in declared
    ]
    return Knowledge(
        corrections=corrections.find_in_force(r, numbers),
        related_parties=pl.DataFrame(parties, schema=RELATED_PARTIES, orient="row"),
        customers=pl.DataFrame(customers.names(r, numbers), schema=CUSTOMERS, orient="row"),
        models=_load_for_clients(
            clients, category_models.in_use(r, list(set(clients.values()))), partial(_load_model, r)
        ),
        group_rows=_group_rows(r, lake, numbers),
        own_lists=_load_for_clients(clients, own_versions, partial(_load_lists, r)),
    )


def _group_rows(r: Reading, lake: Lake, numbers: Sequence[int]) -> pl.DataFrame:
    """Return GROUP_ROWS of the customers."""
    relations = related_parties.find_relations_declared_by(r, numbers)
    if not relations:
        return pl.DataFrame(schema=GROUP_ROWS)
    declared = related_parties.find_in_force(r, numbers)
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
    good, _ = transactions.separate_damaged(
        lake, transactions.current_locations(r, {each.other_number for each in relations})
    )
    held = (
        transactions.scan(lake, good).select(COLUMNS).pipe(select_group_candidates).rename({"customer_number": "other"})
    )
    return links.join(held, on="other", how="inner", validate="m:m").select(*GROUP_ROWS).collect()


def _load_for_clients(
    clients: Mapping[int, UUID], used: Mapping[UUID, K], load: Callable[[K], T | None]
) -> list[Activated[T]]:
    """Return what the customers' clients have activated, with their customers. What can't be read is left out."""
    users: defaultdict[K, set[int]] = defaultdict(set)
    for number, client_id in clients.items():
        if client_id in used:
            users[used[client_id]].add(number)
    loaded = ((frozenset(users_of_it), load(key)) for key, users_of_it in sorted(users.items()))
    return [Activated(users_of_it, value) for users_of_it, value in loaded if value is not None]


def _load_lists(r: Reading, key: tuple[UUID, int]) -> Lists | None:
    """Return a version of a client's own rules over the shipped ones, or None if it can't be read."""
    if key not in _lists_cached:
        try:
            lists = load_own_rules(own_rules.read_content(r, *key)).lists
        except (Corrupt, RuleError) as error:
            log.error("version %d of the own rules of client %s is not used: %s", key[1], key[0], type(error).__name__)
            return None
        _cache(_lists_cached, key, lists)
    return _lists_cached[key]


def _load_model(r: Reading, model_id: UUID) -> Model | None:
    """Return a model, or None if it can't be read. Tidemark's own model is used then."""
    if model_id not in _models:
        try:
            model = loads(category_models.read_content(r, model_id))
        except (Corrupt, Unprocessable) as error:
            log.error("the model %s is not used: %s", model_id, error.detail)
            return None
        _cache(_models, model_id, model)
    return _models[model_id]


def _cache(cached: dict[K, T], key: K, value: T) -> None:
    if len(cached) >= _CACHED:
        cached.pop(next(iter(cached)))
    cached[key] = value
