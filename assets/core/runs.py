"""What a batch's run is called and tagged. Imports no Dagster: the dispatcher and the worker's head stay small."""

from storage.core.models import Queue
from storage.jobs.batches import Batch
from storage.portfolio.tables import NAME_OF

CODE_LOCATION = "tidemark"
DEFINITIONS_MODULE = "assets.definitions"

JOB_OF = {
    Queue.ENRICHMENT: "enrichment_batch",
    Queue.EXTRACTION: "extraction_batch",
    Queue.REFRESH: "refresh_batch",
}

# The portfolio's assets, over hash buckets of the customer. Runs of them wait in Dagster's queue for the portfolio's
# queue.
REENRICHED = "reenriched_transactions"
COMPACTED = "compacted_transactions"
REFRESHED = "refreshed_reports"
MONITORED = "monitored_customers"
PORTFOLIO_ASSETS = frozenset({REENRICHED, COMPACTED, REFRESHED, MONITORED, *NAME_OF.values()})

BATCH_TAG = "tidemark/batch"  # the fencing token
QUEUE_TAG = "tidemark/queue"
JOBS_TAG = "tidemark/jobs"
ROWS_TAG = "tidemark/rows"
CUSTOMERS_TAG = "tidemark/customers"
PORTFOLIO_JOB_TAG = "tidemark/portfolio_job"  # the job's id
ASKED_TAG = "tidemark/asked"  # a look at those alone whom a change concerns
PARTITION_TAG = "dagster/partition"


def tags_of(batch: Batch) -> dict[str, str]:
    """Which batch a run is for, and how large it is: nothing that names a customer or an account."""
    return {
        BATCH_TAG: str(batch.token),
        QUEUE_TAG: batch.queue.value,
        JOBS_TAG: str(batch.jobs),
        ROWS_TAG: str(batch.rows),
        CUSTOMERS_TAG: str(batch.customers),
    }
