"""Submissions: transactions as JSON, statements as PDF."""
