"""Customers, their attributes and related parties."""
