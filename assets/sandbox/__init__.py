"""The sandbox's bank feed."""
