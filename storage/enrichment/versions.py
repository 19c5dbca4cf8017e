"""Which versions of the enrichment made what is stored: of the current values, and of those replaced and retained.

A customer's row says which version its current value is the outcome of. A retained value says it itself: all of its
rows were made at once, so its newest row's version is its own (retracted rows keep an older one).
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from uuid import UUID

import polars as pl
from sqlalchemy import select

from storage.core.database import Reading
from storage.core.lake import Lake
from storage.core.models import customers, locations
from storage.enrichment.transactions import LOCATION, Location
from storage.portfolio.maintenance import with_transactions


def of_customers(r: Reading, client_id: UUID | None = None) -> dict[int, int]:
    """The version behind each current value, by customer number in its order; of one client's customers, or of all."""
    query = select(customers.c.number, customers.c.enrichment_version).where(with_transactions())
    if client_id is not None:
        query = query.where(customers.c.client_id == client_id)
    return {row.number: row.enrichment_version for row in r.execute(query.order_by(customers.c.number))}


def places(r: Reading, customer_numbers: Iterable[int]) -> Mapping[int, Sequence[Location]]:
    """Where all retained values of the customers lie, by customer, the current one first."""
    newest_first = (locations.c.data_version.desc(), locations.c.location_version.desc())
    query = LOCATION.where(locations.c.customer_number.in_(list(customer_numbers))).order_by(*newest_first)
    found: dict[int, list[Location]] = defaultdict(list)
    for row in r.execute(query):
        found[row.customer_number].append(Location(*row))
    return found


def of_value(lake: Lake, place: Location) -> int | None:
    """The version that made the value; null for one without rows."""
    newest = place.scan(lake).select(pl.col("enrichment_version").max()).collect()
    version: int | None = newest.item()
    return version
