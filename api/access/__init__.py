"""Clients, keys and the audit trail."""
