"""Read a page: words, amounts, dates, labels, numbers."""
