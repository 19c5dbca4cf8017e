"""What every subject shares, and rests on none of them: schemas, taxonomy, errors, data files, printed numbers."""
