"""The customers of clients."""
