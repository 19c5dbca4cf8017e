"""Decide which pages of a file belong together, and in which order."""
