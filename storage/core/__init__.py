"""Shared parts of the storage layer: database, lake, leases, vault, settings."""
