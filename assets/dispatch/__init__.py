"""Start Dagster runs for queued jobs."""
