"""Transfers between a customer's own accounts."""
