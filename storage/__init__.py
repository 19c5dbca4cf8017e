"""Remember: the database and the lake, whose changes survive a power cut together."""
