"""Shared parts of all assets: runs, batches, checks, processes."""
