"""Enrichment assets: landed rows become enriched transactions."""
