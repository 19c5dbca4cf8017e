"""Warm processes, and the calls that reach them."""
