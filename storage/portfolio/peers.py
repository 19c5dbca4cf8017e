"""Peers: the distribution of each metric over a client's customers, night by night.

A report is compared with the last night before its day, so computing it again gives the same percentiles. Old nights
are removed, because no stored version of the data is old enough to need them.
"""

from collections import defaultdict
from collections.abc import Iterable
from datetime import date, timedelta
from decimal import Decimal
from uuid import UUID

import polars as pl
from sqlalchemy import delete, func, insert, select

from pipelines.figures.context import MIN_PEERS, PEERS
from pipelines.vocabulary.schemas import UUID as UUID_TYPE
from storage.core.database import Reading, Writing
from storage.core.lake import Lake
from storage.core.models import peers
from storage.portfolio.tables import FIGURE, PortfolioTable

RETAINED = timedelta(days=400)
SPREAD = pl.Schema(
    {"client_id": UUID_TYPE, "metric": pl.String(), "customers": pl.Int64(), "percentiles": pl.List(FIGURE)}
)


def compute_percentiles(lake: Lake, tables: Iterable[PortfolioTable]) -> pl.DataFrame:
    """Compute SPREAD from tables of metrics, for each client and metric with enough customers.

    Percentiles are lower percentiles: always values that occur. Of n sorted values, the p-th percentile is the one at
    index ⌊p (n − 1) / 100⌋.
    """
    columns = {"client_id": UUID_TYPE, "metric": pl.String(), "value": FIGURE}
    frames = [pl.scan_parquet(lake.verified_path(each.path, each.sha256)).select(*columns) for each in tables]
    nth = pl.int_range(101) * (pl.len().cast(pl.Int64) - 1) // 100
    return (
        pl.concat([pl.LazyFrame(schema=columns), *frames])
        .drop_nulls("value")
        .group_by("client_id", "metric")
        .agg(customers=pl.len().cast(pl.Int64), percentiles=pl.col("value").sort().gather(nth))
        .filter(pl.col("customers") >= MIN_PEERS)
        .sort("client_id", "metric")
        .select(*SPREAD)
        .collect()
    )


def put(w: Writing, spread: pl.DataFrame, day: date) -> None:
    """Store a night's SPREAD, replacing what this night had before; remove old nights."""
    w.execute(delete(peers).where((peers.c.day == day) | (peers.c.day < day - RETAINED)))
    rows = [
        {
            "client_id": UUID(bytes=client),
            "metric": metric,
            "day": day,
            "customers": count,
            "percentiles": [f"{value:f}" for value in values],
        }
        for client, metric, count, values in spread.iter_rows()
    ]
    if rows:
        w.execute(insert(peers), rows)


def find_latest_before(r: Reading, client_ids: Iterable[UUID], as_of: date) -> dict[UUID, pl.DataFrame]:
    """Return each client's peers (`context.PEERS`) of the last night before `as_of`, if it has any."""
    last = (
        select(peers.c.client_id, func.max(peers.c.day).label("day"))
        .where(peers.c.client_id.in_(set(client_ids)), peers.c.day < as_of)
        .group_by(peers.c.client_id)
        .subquery()
    )
    query = select(peers).join(last, (peers.c.client_id == last.c.client_id) & (peers.c.day == last.c.day))
    by_client: dict[UUID, list[tuple[str, list[Decimal]]]] = defaultdict(list)
    for row in r.execute(query.order_by(peers.c.metric)):
        by_client[row.client_id].append((row.metric, [Decimal(each) for each in row.percentiles]))
    return {client_id: pl.DataFrame(rows, schema=PEERS, orient="row") for client_id, rows in by_client.items()}
