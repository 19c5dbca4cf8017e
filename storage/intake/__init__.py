"""PDF statements: the files, and the statements read from them."""
