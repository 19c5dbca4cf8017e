"""The Dagster jobs of batches: the assets that a batch's run materialises."""

from dagster import define_asset_job

from assets.core.runs import JOB_OF
from assets.enrichment.transactions import enrichment
from assets.intake.statements import extracted_statements
from assets.reports.reports import reports_refresh
from storage.core.models import Queue

enrichment_batch = define_asset_job(
    JOB_OF[Queue.ENRICHMENT],
    [enrichment],
    description="Enrich all waiting submissions, of any number of customers, in one run.",
)
extraction_batch = define_asset_job(
    JOB_OF[Queue.EXTRACTION],
    [extracted_statements],
    description="Read the waiting PDF statements; their rows then wait to be enriched.",
)
refresh_batch = define_asset_job(
    JOB_OF[Queue.REFRESH],
    [reports_refresh],
    description="Compute the three reports of every customer that waits for a refresh.",
)
