"""PDF statements: their files, and what was read from them."""
