"""Data about customers that reports need besides their transactions, read in one database transaction."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import date, datetime
from decimal import Decimal
from uuid import UUID
from zoneinfo import ZoneInfo

import polars as pl

from pipelines.figures.context import (
    ATTRIBUTES,
    CUSTOMERS,
    INTAKE,
    RELATED_PARTIES,
    RESOLUTIONS,
    ClientPortfolio,
    Context,
)
from storage.core.database import Reading
from storage.customers import customers
from storage.decisions import risk_models, statement_evidence
from storage.enrichment import related_parties
from storage.jobs import jobs
from storage.monitoring import attributes
from storage.monitoring.attributes import Value
from storage.portfolio import peers
from storage.reports import resolutions


def read(
    r: Reading,
    versions: Mapping[int, int],
    now: datetime,
    as_of: date,
    zone: ZoneInfo,
    known_at: datetime | None = None,
) -> Context:
    """Return the current data of these customers, without expired attributes.

    Peer percentiles are those of the last nightly computation before `as_of`, so that a report of a past day can be
    computed again.

    Args:
        versions: customer number → data version.
        zone: the service's time zone, in which the time of a resolution is converted to a date.
        known_at: leave out later resolutions.
    """
    numbers = list(versions)
    parties = [
        (number, party.name, party.abn)
        for number, declared in related_parties.find_in_force(r, numbers).items()
        for party in declared
    ]
    attribute_rows = [
        (number, each.name, _text(each.value))
        for number, each in attributes.find_current(r, numbers)
        if each.expires_at is None or each.expires_at > now
    ]
    return Context(
        portfolios=_portfolios(r, numbers, as_of),
        customers=pl.DataFrame(customers.names(r, numbers), schema=CUSTOMERS, orient="row"),
        related_parties=pl.DataFrame(parties, schema=RELATED_PARTIES, orient="row"),
        attributes=pl.DataFrame(attribute_rows, schema=ATTRIBUTES, orient="row"),
        intake=pl.DataFrame(jobs.count_duplicate_and_rejected_rows(r, versions), schema=INTAKE, orient="row"),
        statements=statement_evidence.read_evidence(r, versions),
        resolutions=_resolutions(r, numbers, zone, known_at),
    )


def read_for_metrics(
    r: Reading, customer_numbers: Iterable[int], zone: ZoneInfo, known_at: datetime | None = None
) -> Context:
    """Return what metrics read of these customers besides their transactions: which findings a person resolved.

    Args:
        zone: as in `read`; so is `known_at`.
    """
    return Context(resolutions=_resolutions(r, customer_numbers, zone, known_at))


def _resolutions(
    r: Reading, customer_numbers: Iterable[int], zone: ZoneInfo, known_at: datetime | None
) -> pl.DataFrame:
    rows = [
        (number, each.kind, each.key, each.reason, each.made_at.astimezone(zone).date())
        for number, each in resolutions.find_in_force(r, customer_numbers, known_at)
    ]
    return pl.DataFrame(rows, schema=RESOLUTIONS, orient="row")


def _portfolios(r: Reading, customer_numbers: Iterable[int], as_of: date) -> list[ClientPortfolio]:
    """Return each client's peers, scorecard and expected evidence, with its customers among the given ones."""
    clients = customers.clients_of(r, customer_numbers)
    of_client: defaultdict[UUID, set[int]] = defaultdict(set)
    for number, client_id in clients.items():
        of_client[client_id].add(number)
    peer_tables, scorecards = peers.find_latest_before(r, of_client, as_of), risk_models.read_in_use(r, of_client)
    expected = risk_models.read_expected(r, of_client)
    return [
        ClientPortfolio(frozenset(own), peer_tables.get(client_id), scorecards.get(client_id), expected[client_id])
        for client_id, own in sorted(of_client.items())
    ]


def _text(value: Value | None) -> str | None:
    """Return the value as text: numbers with all their digits, true and false as in JSON."""
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:f}" if isinstance(value, Decimal) else value
