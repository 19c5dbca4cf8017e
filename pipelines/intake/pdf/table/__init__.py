"""Read the rows of a printed table."""
