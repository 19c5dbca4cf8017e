"""Customers that the sandbox generates, and how far their rows were sent."""
