"""Shared by all subjects, and dependent on none: schemas, taxonomy, errors, data files, printed numbers."""
