"""Jobs, the batches that run them, and the outcomes of their rows."""
