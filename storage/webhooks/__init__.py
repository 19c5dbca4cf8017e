"""Events, subscriptions and deliveries."""
