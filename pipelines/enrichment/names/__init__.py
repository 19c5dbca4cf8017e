"""Names in descriptions: which words are one, and which names mean the same party."""
