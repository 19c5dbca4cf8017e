"""The refresh of reports."""
