"""Corrections, the taxonomy, and models of categories."""
