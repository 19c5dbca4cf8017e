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


def text_as_sent() -> pl.Expr:
    """What tells a row's description from others: its matching text, and where it is masked the digest, too."""
    return _with_digest(matching_text(pl.col("description")), "description_digest")


def id_as_sent() -> pl.Expr:
    """What tells a client's id from its others: the id, and where it is masked the digest, too. Null without an id."""
    return _with_digest(pl.col("client_transaction_id"), "client_transaction_id_digest")


def _with_digest(shown: pl.Expr, digest: str) -> pl.Expr:
    return pl.coalesce(shown + " " + pl.col(digest).bin.encode("hex"), shown)
