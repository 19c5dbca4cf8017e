"""Jobs, the batches that work on them, and what became of their rows."""
