"""Health, doctor, backup, retention: what operators look at."""
