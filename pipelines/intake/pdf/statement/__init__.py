"""Build a statement: its account, what it states, and whether its rows add up."""
