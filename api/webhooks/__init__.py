"""Subscriptions, events, deliveries, and a receiver for development."""
