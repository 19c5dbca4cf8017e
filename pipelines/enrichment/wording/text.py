"""The form in which descriptions are compared.

Transaction ids are derived from this text, so it is part of a transaction's identity. Descriptions that are equal in
this form must stay equal, and others different: a change of it needs a new kind of id.
"""

from functools import cache

import polars as pl


def matching_text(description: pl.Expr) -> pl.Expr:
    """Return `description` in compatibility form (NFKC), upper case, with single spaces and none at the ends.

    For speed, ASCII texts (which NFKC does not change) are not normalised, and single spaces are not replaced.
    """
    beyond_ascii = pl.when(description.str.len_bytes() != description.str.len_chars()).then(description)
    upper = pl.coalesce(beyond_ascii.str.normalize("NFKC"), description).str.to_uppercase()
    return upper.str.replace_all(r"\s{2,}|[^\S ]", " ").str.strip_chars()


@cache
def text_as_sent() -> pl.Expr:
    """Return a text that is equal for equal descriptions as sent: the matching text, and a digest if it was masked."""
    return _with_digest(matching_text(pl.col("description")), "description_digest")


@cache
def id_as_sent() -> pl.Expr:
    """Return a text that is equal for equal client's ids: the id, and a digest if it was masked. Null without an id."""
    return _with_digest(pl.col("client_transaction_id"), "client_transaction_id_digest")


def _with_digest(shown: pl.Expr, digest: str) -> pl.Expr:
    return pl.coalesce(shown + " " + pl.col(digest).bin.encode("hex"), shown)
