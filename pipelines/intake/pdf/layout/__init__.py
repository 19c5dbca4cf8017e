"""How a page is laid out: headings, columns, and what is known of banks."""
