"""Decide: frames and values in, frames and values out. No clock, file, network or environment."""
