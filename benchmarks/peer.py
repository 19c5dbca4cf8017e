"""The naive peer: one stock Dagster run per job.

It has the same rows, Polars code and Parquet, with stock storage, launcher and the faster of the two stock executors
(in-process; multiprocess is four times slower). The difference is what the service adds: group commit and warm workers.
"""

from datetime import UTC, datetime
from pathlib import Path

import polars as pl
from dagster import Config, Definitions, asset, define_asset_job, in_process_executor

from pipelines.enrichment.enrichment import enrich
from pipelines.intake.rows import validate
from pipelines.vocabulary.schemas import TRANSACTIONS


class Submission(Config):
    rows: str  # Parquet with SUBMISSION and LANDED columns
    enriched: str  # where to write


@asset
def naive_transactions(config: Submission) -> None:
    """Enrich one submission in its own run."""
    accepted = validate(pl.scan_parquet(config.rows), "Australia/Sydney").accepted.collect()
    rows = enrich(pl.DataFrame(schema=TRANSACTIONS), accepted).transactions.collect()
    rows.write_parquet(Path(config.enriched).with_suffix(f".{datetime.now(UTC).timestamp()}.parquet"))


definitions = Definitions(
    assets=[naive_transactions],
    jobs=[define_asset_job("naive_job", [naive_transactions])],
    executor=in_process_executor,
)
