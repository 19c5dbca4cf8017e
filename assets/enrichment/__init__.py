"""The hot path: landed rows become enriched transactions."""
