"""Which versions of the enrichment computed the stored values, current and retained.

A customer's row in the database names the version of the current value. For a retained value it is the highest version
among its rows, because all of them were computed at once; only retracted rows keep an older version.
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
from storage.portfolio.maintenance import has_transactions


def read_enrichment_versions(r: Reading, client_id: UUID | None = None) -> dict[int, int]:
    """Return the version of each current value, sorted by customer number; of one client's customers, or of all."""
    query = select(customers.c.number, customers.c.enrichment_version).where(has_transactions())
    if client_id is not None:
        query = query.where(customers.c.client_id == client_id)
    return {row.number: row.enrichment_version for row in r.execute(query.order_by(customers.c.number))}


def find_retained_locations(r: Reading, customer_numbers: Iterable[int]) -> Mapping[int, Sequence[Location]]:
    """Return where all retained values of the customers lie, by customer, the current one first."""
    newest_first = (locations.c.data_version.desc(), locations.c.location_version.desc())
    query = LOCATION.where(locations.c.customer_number.in_(list(customer_numbers))).order_by(*newest_first)
    found: dict[int, list[Location]] = defaultdict(list)
    for row in r.execute(query):
        found[row.customer_number].append(Location(*row))
    return found


def read_version_of_value(lake: Lake, location: Location) -> int | None:
    """Return the version that computed the value; None for a value without rows."""
    newest = location.scan(lake).select(pl.col("enrichment_version").max()).collect()
    version: int | None = newest.item()
    return version
