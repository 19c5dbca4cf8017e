"""Read what decides whether a batch's statements replace earlier ones: the customers' statements, and their data.

Few batches have a statement whose period contains that of an earlier one. Only for their accounts are submissions of
data looked up, and their rows are read only if a replaced row could be theirs too.
"""

import logging
from collections import defaultdict
from collections.abc import Sequence
from uuid import UUID

import polars as pl

from assets.intake import landing
from pipelines.enrichment.matching.replacements import REPLACES_EARLIER, Documents, list_replaced, select_containing
from pipelines.intake.rows import validate
from storage.core.database import Reading
from storage.core.lake import Lake
from storage.core.models import Flow
from storage.intake import statements
from storage.jobs import jobs
from storage.jobs.jobs import Job

log = logging.getLogger(__name__)


def read(r: Reading, lake: Lake, batch: Sequence[Job], timezone: str) -> Documents:
    """Read the documents for the batch's submissions of statements, and for those that its retractions match again."""
    concerned = {job.customer_number for job in batch if job.flow in (Flow.EXTRACTION, Flow.RETRACTION)}
    periods = statements.find_periods(r, concerned)
    accounts = select_containing(periods)
    ids = {UUID(bytes=account_id) for account_id in accounts["account_id"]}
    of_customers = jobs.find_unretracted_submissions(r, set(accounts["customer_number"])) if ids else []
    data = [job for job in of_customers if job.submission and UUID(job.submission["account_id"]) in ids]
    readable, damaged = landing.separate_damaged(lake, data)
    for _, error in damaged:
        log.error("%s", error.detail)
    # Without all its data, nobody knows which of a customer's rows may be replaced.
    known = ~pl.col("customer_number").is_in([job.customer_number for job, _ in damaged])
    stated = periods.join(accounts, on=["customer_number", "account_id"], how="semi").filter(known)
    return Documents(stated, validate(landing.rows_of(lake, readable), timezone).accepted.filter(known))


def warn_of_replacements(
    accepted: pl.DataFrame, transactions: pl.DataFrame, documents: Documents
) -> dict[bytes, list[dict[str, str]]]:
    """Return warnings for the submissions that replaced rows of earlier statements, by job id.

    Args:
        accepted: the batch's rows (ACCEPTED).
        transactions: all rows of its customers afterwards (TRANSACTIONS).
    """
    found: defaultdict[bytes, list[dict[str, str]]] = defaultdict(list)
    if documents.periods.is_empty():
        return found
    replacing = accepted.select(superseded_seq="received_seq", replacing="job_id").unique()
    counted = (
        list_replaced(transactions)
        .join(replacing, on="superseded_seq")
        .group_by("replacing", "statement_id")
        .agg(rows=pl.len(), missing=pl.col("is_missing").sum())
        .join(documents.periods, on="statement_id")
        .sort("replacing", "period_start", "statement_id")
    )
    for row in counted.iter_rows(named=True):
        message = (
            f"Rows of an earlier statement of the same account and period were replaced: {row['rows']:,}, of which "
            f"{row['missing']:,} are not in this one. The earlier statement is {row['file_name'] or 'a file'} of the "
            f"submission {UUID(bytes=row['job_id'])}. If it is the right one, retract this submission."
        )
        found[row["replacing"]].append({"code": REPLACES_EARLIER, "message": message})
    return found
