"""How the patterns of statement wordings are written: once, for all of them.

They read `matching_text` (upper case, single spaces) with ASCII classes and edges only and with bounded repetitions,
and are searched for without capture groups. So the engine needs one look at each character of a text, however long
or hostile, and none of its slow roads.
"""

EDGE = r"(?-u:\b)"  # of a word


def any_of(*patterns: str) -> str:
    """The first of the patterns that fits: longer ones stand before their own beginnings."""
    return f"(?:{'|'.join(patterns)})"
