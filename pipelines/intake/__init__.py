"""Intake: feeds, bank exports and PDF statements from clients, read into rows of one schema."""
