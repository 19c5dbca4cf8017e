"""Clients, keys, users, approvals and the audit trail."""
