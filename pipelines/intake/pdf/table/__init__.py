"""The rows of a printed table."""
