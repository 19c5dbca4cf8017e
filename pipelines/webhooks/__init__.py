"""Webhooks: the bytes of events, the addresses they may be sent to, and when a failed delivery is retried."""
