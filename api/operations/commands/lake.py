"""The lake's manifest, for other programs that read the files: a glob would also find replaced versions."""

from collections.abc import Iterator
from itertools import chain
from typing import Any

import typer

from api.core.commands.console import AsJson, opened_store, print_records
from storage.core.buckets import bucket_of
from storage.core.store import Store
from storage.enrichment.transactions import find_all_current_locations
from storage.portfolio.tables import find_current_tables

lake = typer.Typer(help="The lake: Parquet files that other programs can read.", no_args_is_help=True)


@lake.command("manifest")
def manifest(as_json: AsJson = False) -> None:
    """List the current files, and the current range of rows in each.

    The dataset `transactions` has a line for each customer: only the listed
    rows are current, as files also contain replaced versions. The report
    tables have a line for each bucket, and all rows of the file are current.

    Example: tidemark lake manifest --json > manifest.json
    """
    with opened_store() as store:
        records = chain(_transactions(store), _tables(store))
        print_records(records, as_json=as_json, empty="The lake has no enriched transactions yet.")


def _transactions(store: Store) -> Iterator[dict[str, Any]]:
    for place in find_all_current_locations(store.db):
        yield {
            "dataset": "transactions",
            "path": store.lake.url_of(place.path),
            "sha256": place.sha256.hex(),
            "bucket": bucket_of(place.customer_number),
            "customerNumber": place.customer_number,
            "dataVersion": place.data_version,
            "firstRow": place.first_row,
            "rows": place.row_count,
        }


def _tables(store: Store) -> Iterator[dict[str, Any]]:
    with store.db.reading() as r:
        tables = find_current_tables(r)
    for table in tables:
        yield {
            "dataset": table.name,
            "path": store.lake.url_of(table.path),
            "sha256": table.sha256.hex(),
            "bucket": table.bucket,
            "customerNumber": None,
            "dataVersion": None,
            "firstRow": 0,
            "rows": table.rows,
        }
