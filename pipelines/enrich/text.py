"""Descriptions as they are compared.

Transaction ids derive from this text, so it is part of a transaction's identity: what it folds together must never
change without a new kind of id.
"""

import polars as pl


def matching_text(description: pl.Expr) -> pl.Expr:
    """`description` in compatibility form (NFKC), upper case, with single spaces and none at the ends.

    Plain ASCII is in compatibility form as it stands, and a single space stays: only what is not is worked on.
    """
    beyond_ascii = pl.when(description.str.len_bytes() != description.str.len_chars()).then(description)
    upper = pl.coalesce(beyond_ascii.str.normalize("NFKC"), description).str.to_uppercase()
    return upper.str.replace_all(r"\s{2,}|[^\S ]", " ").str.strip_chars()
