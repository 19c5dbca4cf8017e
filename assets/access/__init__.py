"""The gate in front of Dagster's pages."""
