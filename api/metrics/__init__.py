"""The registry of metrics, and their values."""
