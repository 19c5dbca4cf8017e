"""Customers of a client."""
