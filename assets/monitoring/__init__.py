"""Rulesets computed for many customers at once."""
