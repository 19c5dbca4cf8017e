"""Policies, evaluations and risk models."""
