"""Policies, evaluations, backtests and risk models, and the data that they read."""
