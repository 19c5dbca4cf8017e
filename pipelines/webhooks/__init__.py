"""Webhooks: the bytes of events, the addresses that they may be sent to, and when failed deliveries are retried."""
