"""Customers that the sandbox makes: profiles, and a customer with attributes and transactions in one request."""
