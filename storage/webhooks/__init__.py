"""Webhook events, subscriptions and deliveries."""
