"""The three reports, as JSON and as a page, as of today or of an earlier day."""
