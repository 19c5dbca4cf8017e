"""Headings, columns, and the layouts of banks."""
