"""The delivery of webhooks."""
