"""A statement: whose it is, what it states, whether its rows add up."""
