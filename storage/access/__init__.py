"""Clients, their API keys, users and sessions, and requests that a second person approves."""
