"""Rulesets, their states and matches, simulations, and attributes."""
