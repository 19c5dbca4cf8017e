"""Intake: what clients send (feeds, exports of banks, PDF statements) read into rows of one schema."""
