"""The Dagster jobs of batches: the assets that a batch's run materialises."""

from dagster import define_asset_job

from assets.core.runs import JOB_OF
from assets.enrichment.transactions import enriched_transactions, landed_transactions
from assets.intake.statements import extracted_statements
from assets.reports.reports import report_assets, report_bundles
from storage.core.models import Queue

enrichment_batch = define_asset_job(
    JOB_OF[Queue.ENRICHMENT],
    [landed_transactions, enriched_transactions],
    description="Enrich all waiting submissions, of any number of customers, in one run.",
)
extraction_batch = define_asset_job(
    JOB_OF[Queue.EXTRACTION],
    [extracted_statements],
    description="Read the waiting PDF statements; their rows then wait to be enriched.",
)
refresh_batch = define_asset_job(
    JOB_OF[Queue.REFRESH],
    [*report_assets, report_bundles],
    description="Compute the three reports of every customer that waits for a refresh.",
)
