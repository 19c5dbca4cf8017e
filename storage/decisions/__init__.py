"""Policies, evaluations, backtests, and what they read."""
