"""Customers that the sandbox makes, and what has been sent of them."""
