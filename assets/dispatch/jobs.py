"""The jobs of the hot path: what a batch's run materialises."""

from dagster import define_asset_job

from assets.core.runs import JOB_OF
from assets.enrichment.transactions import enriched_transactions, landed_transactions
from assets.intake.statements import extracted_statements
from assets.reports.reports import report_assets, report_bundles
from storage.core.models import Queue

enrichment_batch = define_asset_job(
    JOB_OF[Queue.ENRICHMENT],
    [landed_transactions, enriched_transactions],
    description="Enrich all submissions that were waiting: one run, however many customers.",
)
extraction_batch = define_asset_job(
    JOB_OF[Queue.EXTRACTION],
    [extracted_statements],
    description="Read the PDF statements that were waiting; what they hold goes on to be enriched.",
)
refresh_batch = define_asset_job(
    JOB_OF[Queue.REFRESH],
    [*report_assets, report_bundles],
    description="Compute the three reports for every customer whose refresh was waiting.",
)
