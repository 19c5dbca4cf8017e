"""The gate before Dagster's pages."""
