"""Submissions: transactions as JSON, statements as PDF, exports as CSV."""
