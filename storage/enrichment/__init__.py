"""Enriched transactions, one value per customer, replaced as a whole; corrections, related parties and models."""
