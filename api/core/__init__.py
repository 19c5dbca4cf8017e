"""Shared by endpoints and commands: limits, refusals, derived lists, schemas, console output."""
