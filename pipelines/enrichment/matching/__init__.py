"""Rows that belong together: duplicates, reversals, withdrawn submissions."""
