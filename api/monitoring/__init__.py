"""Rulesets and what they found."""
