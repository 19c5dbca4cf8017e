"""Webhooks: the bytes of events, where they may go, when a failed delivery is tried again."""
