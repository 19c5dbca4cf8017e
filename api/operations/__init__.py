"""Health, metrics for monitoring, and looking after a service."""
