"""Enriched transactions: one value per customer, replaced as a whole; what is known beside them."""
