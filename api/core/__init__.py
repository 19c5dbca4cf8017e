"""What every endpoint and command shares: callers, limits, problems, bodies, idempotency."""
