"""Rulesets, what they found, and attributes."""
