"""All use of Dagster's private modules is in this folder: its storage, the execution of runs, its processes.

`tests/assets/dagster_internals/test_private_dagster.py` fails when an upgrade of Dagster moves one of them.
"""
