"""The naive peer: the same work as one stock Dagster run per job.

Same rows, same Polars code, same Parquet; stock storage, stock launcher, and the kinder of the two stock executors
(in-process; multiprocess is four times slower). What differs is what the service adds: group commit and warm workers.
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
    """One submission, enriched by a run of its own."""
    accepted = validate(pl.scan_parquet(config.rows), "Australia/Sydney").accepted.collect()
    rows = enrich(pl.DataFrame(schema=TRANSACTIONS), accepted).transactions.collect()
    rows.write_parquet(Path(config.enriched).with_suffix(f".{datetime.now(UTC).timestamp()}.parquet"))


definitions = Definitions(
    assets=[naive_transactions],
    jobs=[define_asset_job("naive_job", [naive_transactions])],
    executor=in_process_executor,
)
