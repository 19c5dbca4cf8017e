"""Building blocks for the regular expressions that read statements.

The expressions run on `matching_text` (upper case, single spaces). They use only ASCII classes and word edges, bounded
repetitions and no capture groups. So the engine stays on its fast path and takes time in proportion to the text,
however long or hostile that is.
"""

EDGE = r"(?-u:\b)"  # of a word; ASCII only


def any_of(*patterns: str) -> str:
    """Return a pattern for the first of these that fits. List a longer pattern before one that is its beginning."""
    return f"(?:{'|'.join(patterns)})"
