"""What all subjects share, without depending on any: schemas, taxonomy, errors, data files, printed numbers."""
