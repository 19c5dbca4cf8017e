"""From queued jobs to Dagster runs."""
