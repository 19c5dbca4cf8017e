"""Building blocks for the regular expressions that read statements.

The expressions run on `matching_text` (upper case, single spaces). They use ASCII classes and word edges, and hardly
any unbounded repetitions or capture groups, so that the engine stays on its fast path. It takes time in proportion to
the text, however long or hostile that is.
"""

EDGE = r"(?-u:\b)"  # of a word; ASCII only


def any_of(*patterns: str) -> str:
    """Return a pattern for the first of these that fits. List a longer pattern before one that is its beginning."""
    return f"(?:{'|'.join(patterns)})"
