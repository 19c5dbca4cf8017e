"""Read reconciled transactions from PDF bank statements. `extraction` is the entry point and shows the steps."""
