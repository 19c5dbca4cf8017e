"""Measure what the tests notice: make small changes to the code and run the tests that cover them (`make mutants`)."""
