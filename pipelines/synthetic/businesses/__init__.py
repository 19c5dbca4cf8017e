"""A synthetic business: its trade, parties, loans and risk."""
