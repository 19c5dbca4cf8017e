"""Enrichment: raw rows become cleaned, categorised and linked transactions. `enrichment.py` is the chain of steps."""
