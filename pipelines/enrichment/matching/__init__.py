"""Rows that belong together: duplicates, reversals, retracted submissions."""
