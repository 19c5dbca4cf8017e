"""Evaluation of rulesets for many customers at once."""
