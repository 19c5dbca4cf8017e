"""All use of Dagster's private modules stands in this folder: its storage, its way to execute a run, its processes.

`tests/assets/dagster_internals/test_private_dagster.py` fails when an upgrade moves one of them.
"""
