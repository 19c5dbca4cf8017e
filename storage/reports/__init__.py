"""Stored reports."""
