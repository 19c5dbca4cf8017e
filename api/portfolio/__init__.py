"""Backtests, simulations and backfills."""
