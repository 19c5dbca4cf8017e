"""A minimal code location for tests of processes: its asset sleeps or fails as the run's tags say."""

import os
import time

from dagster import AssetExecutionContext, Definitions, MaterializeResult, asset, define_asset_job, in_process_executor

from assets.core.runs import JOB_OF


@asset
def behaving_as_tagged(context: AssetExecutionContext) -> MaterializeResult[None]:
    time.sleep(float(context.run.tags.get("sleep_s", "0")))
    if "fail" in context.run.tags:
        raise ValueError("as told")
    return MaterializeResult(metadata={"pid": os.getpid()})  # pyrefly: ignore[bad-return]  # has no value, so None


definitions = Definitions(
    assets=[behaving_as_tagged],
    jobs=[define_asset_job(JOB_OF[queue], [behaving_as_tagged]) for queue in JOB_OF],
    executor=in_process_executor,
)
