"""Keyed digests that distinguish rows and accounts whose texts look the same once they are masked.

Two cards of one issuer with the same last four digits do. So do ids and references that happen to have the form of a
card number. The digest is keyed, because without a key the few missing digits could be guessed (PCI DSS 3.5.1.1). The
service uses a key that is never rotated (`Vault.digest`). A text that masking does not change needs no digest, so
identities derived from such texts do not depend on the key.
"""

import secrets
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import polars as pl

from pipelines.enrichment.wording.text import matching_text
from pipelines.intake.digest import digest
from pipelines.intake.masking import is_money, mask_json, mask_text, masked_texts

Digest = Callable[[str], bytes]  # deterministic, and reveals nothing about the text

DIGESTS = ("transactionIdDigest", "descriptionDigest")

# A random key for commands that work without a service and store nothing.
temporary_digest: Digest = partial(digest, secrets.token_bytes(32))


def mask_rows(frame: pl.DataFrame, columns: Sequence[str], digest_text: Digest) -> pl.DataFrame:
    """Mask the texts of landing rows in `columns` (of LANDED) and fill `masked` and the digests.

    A valid amount is never masked: a price must not change because its digits have the form of a card number.
    """
    texts = [name for name in columns if name != "extra"]
    changed = masked_texts(pl.concat([frame[name] for name in texts]))
    not_money = {text: mask for text, mask in changed.items() if not is_money(text)}
    changes = {name: not_money if name in ("amount", "balance") else changed for name in texts}
    if "extra" in columns:
        changes["extra"] = masked_texts(frame["extra"], mask_json)
    touched = [pl.col(name).is_in(list(masks)) for name, masks in changes.items() if masks]
    return frame.with_columns(
        *(pl.col(name).replace(masks) for name, masks in changes.items() if masks),
        masked=pl.any_horizontal(pl.lit(value=False), *touched).fill_null(value=False),
        transactionIdDigest=_digest_changed(frame["transactionId"], changed, digest_text),
        descriptionDigest=digest_descriptions(frame["description"], changed, digest_text),
    )


def add_digests(frame: pl.DataFrame, digest_text: Digest) -> pl.DataFrame:
    """Fill the digests of rows that `intake.lines` has masked, from their texts as sent."""
    if not frame["masked"].any():  # as in most submissions: `matching_text` is slow even for no text
        return frame.with_columns(pl.lit(None, pl.Binary).alias(name) for name in DIGESTS)
    compared = frame.select(matching_text(pl.col("sentDescription"))).to_series()
    return frame.with_columns(
        transactionIdDigest=_digest_all(frame["sentTransactionId"], digest_text),
        descriptionDigest=_digest_all(compared, digest_text),
    )


def _digest_all(texts: pl.Series, digest_text: Digest) -> pl.Series:
    return pl.Series([None if text is None else digest_text(text) for text in texts], dtype=pl.Binary)


def digest_descriptions(descriptions: pl.Series, changed: Mapping[str, str], digest_text: Digest) -> pl.Series:
    """Digest the descriptions that masking changes, in the form that `matching_text` compares; the others are null."""
    sent = pl.Series("sent", list(changed), pl.String)
    compared = dict(zip(sent, sent.to_frame().select(matching_text(pl.col("sent"))).to_series(), strict=True))
    return _digest_changed(descriptions, changed, lambda text: digest_text(compared[text]))


def _digest_changed(texts: pl.Series, changed: Mapping[str, str], digest_text: Digest) -> pl.Series:
    """Return the digest of each text that masking changes, and null for all others."""
    digests = {text: digest_text(text) for text in texts.filter(texts.is_in(list(changed))).unique()}
    return texts.replace_strict(digests, default=None, return_dtype=pl.Binary)


def comparable_or_digest(text: str, plain: str, digest_text: Digest) -> str:
    """Return the part of an identity that represents a text.

    This is `plain`, the normalised text, or its digest if the text or `plain` would be masked. Parts of an identity are
    joined by colons, so colons in `plain` are escaped.
    """
    if mask_text(text) == text and mask_text(plain) == plain:
        return plain.replace("\\", r"\\").replace(":", r"\:")
    return f"as-sent:{digest_text(plain).hex()}"
