"""Landing files and the extraction of PDF statements."""
