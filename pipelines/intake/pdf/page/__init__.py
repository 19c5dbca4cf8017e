"""What stands on a page: words, amounts, dates, labels, numbers."""
