"""Names and tags of runs.

This module doesn't import Dagster: the dispatcher and the worker's main process import it, and must use little memory.
"""

from storage.core.models import REPORT_KINDS, Queue
from storage.jobs.batches import Batch

CODE_LOCATION = "tidemark"
DEFINITIONS_MODULE = "assets.definitions"

JOB_OF = {
    Queue.ENRICHMENT: "enrichment_batch",
    Queue.EXTRACTION: "extraction_batch",
    Queue.REFRESH: "refresh_batch",
}

# The portfolio's assets, partitioned by the customers' buckets. Dagster's run coordinator queues their runs, so that
# each worker executes one at a time.
REENRICHED = "reenriched_transactions"
COMPACTED = "compacted_transactions"
REFRESHED = "refreshed_reports"
MONITORED = "monitored_customers"
REPORT_TABLE_OF = {kind: f"{kind}_portfolio" for kind in REPORT_KINDS}
PORTFOLIO_ASSETS = frozenset({REENRICHED, COMPACTED, REFRESHED, MONITORED, *REPORT_TABLE_OF.values()})

BATCH_TAG = "tidemark/batch"  # the fencing token
QUEUE_TAG = "tidemark/queue"
JOBS_TAG = "tidemark/jobs"
ROWS_TAG = "tidemark/rows"
CUSTOMERS_TAG = "tidemark/customers"
PORTFOLIO_JOB_TAG = "tidemark/portfolio_job"  # the job's id
ON_REQUEST_TAG = "tidemark/asked"  # evaluate only customers whose ruleset or attributes changed
PARTITION_TAG = "dagster/partition"


def run_tags(batch: Batch) -> dict[str, str]:
    """Return the tags of a batch's run: its token and size. Nothing may identify a customer or an account."""
    return {
        BATCH_TAG: str(batch.token),
        QUEUE_TAG: batch.queue.value,
        JOBS_TAG: str(batch.jobs),
        ROWS_TAG: str(batch.rows),
        CUSTOMERS_TAG: str(batch.customers),
    }
