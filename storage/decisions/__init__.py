"""Policies, evaluations, backtests, and the data that they read."""
