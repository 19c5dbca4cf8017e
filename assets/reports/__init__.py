"""The refresh of the three reports."""
