"""Descriptions as they are compared.

Transaction ids derive from this text, so it is part of a transaction's identity: what it folds together must never
change without a new kind of id.
"""

import polars as pl


def matching_text(description: pl.Expr) -> pl.Expr:
    """`description` in compatibility form (NFKC), upper case, with single spaces and none at the ends."""
    return description.str.normalize("NFKC").str.to_uppercase().str.replace_all(r"\s+", " ").str.strip_chars()
