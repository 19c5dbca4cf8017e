"""The processes of `tidemark up`: which process starts which, and how a process that died is restarted."""
