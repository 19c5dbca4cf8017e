"""The code location: assets, jobs, sensors and the store that they share."""

from dagster import Definitions, in_process_executor

from assets import schedules
from assets.book import book_assets
from assets.jobs import enrichment_batch, refresh_batch
from assets.reports import report_assets, report_bundles
from assets.resources import store_resource
from assets.sensors import submitted_jobs_sensor, webhook_outbox_sensor
from assets.transactions import enriched_transactions, landed_transactions

definitions = Definitions(
    assets=[landed_transactions, enriched_transactions, *report_assets, report_bundles, *book_assets],
    jobs=[enrichment_batch, refresh_batch, *schedules.book_jobs, *schedules.lake_jobs],
    schedules=schedules.schedules,
    sensors=[submitted_jobs_sensor, webhook_outbox_sensor, schedules.requested_backfills_sensor],
    resources={"store": store_resource},
    executor=in_process_executor,
)
