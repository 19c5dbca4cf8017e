"""Clients and API keys."""
