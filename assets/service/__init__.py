"""The processes of `tidemark up`: who starts whom, and who is started again."""
