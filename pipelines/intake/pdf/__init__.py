"""PDF bank statements in, reconciled transactions out: `extraction` is the entry point and shows the steps."""
