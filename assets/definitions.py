"""The code location: assets, jobs, schedules, sensors and the store that they share."""

import dagster
from dagster import AssetsDefinition, Definitions, in_process_executor

from assets.core.resources import store_resource
from assets.dispatch.jobs import enrichment_batch, extraction_batch, refresh_batch
from assets.dispatch.sensors import submitted_jobs_sensor, webhook_outbox_sensor
from assets.enrichment.transactions import enrichment
from assets.intake.statements import extracted_statements
from assets.portfolio import schedules
from assets.portfolio.monitoring import monitored_customers
from assets.portfolio.portfolio_jobs import portfolio_job, requested_portfolio_jobs_sensor
from assets.portfolio.tables import portfolio_assets
from assets.reports.reports import reports_refresh
from assets.work.snoozes import ended_snoozes_sensor
from storage.core.settings import Settings

ASSETS = [
    extracted_statements,
    enrichment,
    reports_refresh,
    *portfolio_assets,
    monitored_customers,
]


@dagster.definitions
def definitions() -> Definitions:
    """Load the code location under the settings of this process."""
    settings = Settings()
    return Definitions(
        assets=ASSETS if settings.schedules else [_without_freshness(each) for each in ASSETS],
        jobs=[
            enrichment_batch,
            extraction_batch,
            refresh_batch,
            portfolio_job,
            *schedules.asset_jobs,
            *schedules.lake_jobs,
            *schedules.sandbox_jobs,
        ],
        schedules=schedules.schedules_for(settings),
        sensors=[
            submitted_jobs_sensor,
            webhook_outbox_sensor,
            ended_snoozes_sensor,
            schedules.requested_backfills_sensor,
            schedules.requested_ruleset_evaluations_sensor,
            requested_portfolio_jobs_sensor,
        ],
        resources={"store": store_resource},
        executor=in_process_executor,
    )


def _without_freshness(asset: AssetsDefinition) -> AssetsDefinition:
    """Take the freshness policy off: without schedules nothing is made every night, so nothing can be late."""
    return asset.map_asset_specs(lambda spec: spec.replace_attributes(freshness_policy=None))
