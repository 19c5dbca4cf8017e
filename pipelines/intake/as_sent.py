"""What rows and accounts are told apart by where masking leaves less than was sent: a keyed digest of it.

Two cards of one issuer with the same last four digits look alike once they are masked, and so do ids and references
that happen to be numbers a card could have. The digest is keyed, because without a key the few missing digits could be
tried (PCI DSS 3.5.1.1): the service's key is the one for names, which never changes (`Vault.digest`). What masking
leaves as it is needs none, so what is derived from it stays what it always was.
"""

import hmac
import secrets
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import polars as pl

from pipelines.enrichment.wording.text import matching_text
from pipelines.intake.masking import is_money, mask_json, mask_text, masked_texts

Digest = Callable[[str], bytes]  # of a text as sent: always the same, and telling nothing of it

DIGEST_BYTES = 16


def digest(key: bytes, text: str) -> bytes:
    """HMAC-SHA-256 of a text as sent, its first DIGEST_BYTES."""
    return hmac.digest(key, b"as sent:" + text.encode(), "sha256")[:DIGEST_BYTES]


for_this_run: Digest = partial(digest, secrets.token_bytes(32))  # for what keeps nothing: a command without a service


def masked_rows(frame: pl.DataFrame, columns: Sequence[str], of: Digest) -> pl.DataFrame:
    """Texts of landing rows masked in `columns` (of LANDED); `masked` and the digests are filled.

    An amount is masked only where it is none: a price must not change because its digits could be a card's.
    """
    texts = [name for name in columns if name != "extra"]
    changed = masked_texts(pl.concat([frame[name] for name in texts]))
    no_money = {text: found for text, found in changed.items() if not is_money(text)}
    changes = {name: no_money if name in ("amount", "balance") else changed for name in texts}
    if "extra" in columns:
        changes["extra"] = masked_texts(frame["extra"], mask_json)
    touched = [pl.col(name).is_in(list(found)) for name, found in changes.items() if found]
    return frame.with_columns(
        *(pl.col(name).replace(found) for name, found in changes.items() if found),
        masked=pl.any_horizontal(pl.lit(value=False), *touched).fill_null(value=False),
        transactionIdDigest=digests(frame["transactionId"], changed, of),
        descriptionDigest=description_digests(frame["description"], changed, of),
    )


def digested_rows(frame: pl.DataFrame, of: Digest) -> pl.DataFrame:
    """Rows that were masked as lines (`intake.lines`): the digests are filled from the texts as sent."""
    compared = frame.select(matching_text(pl.col("sentDescription"))).to_series()
    return frame.with_columns(
        transactionIdDigest=_each_digest(frame["sentTransactionId"], of),
        descriptionDigest=_each_digest(compared, of),
    )


def _each_digest(texts: pl.Series, of: Digest) -> pl.Series:
    return pl.Series([None if text is None else of(text) for text in texts], dtype=pl.Binary)


def description_digests(descriptions: pl.Series, changed: Mapping[str, str], of: Digest) -> pl.Series:
    """The same of descriptions, which are compared as `matching_text` writes them."""
    sent = pl.Series("sent", list(changed), pl.String)
    compared = dict(zip(sent, sent.to_frame().select(matching_text(pl.col("sent"))).to_series(), strict=True))
    return digests(descriptions, changed, lambda text: of(compared[text]))


def digests(texts: pl.Series, changed: Mapping[str, str], of: Digest) -> pl.Series:
    """Of each text that masking changes its digest, of all others null."""
    found = {text: of(text) for text in texts.filter(texts.is_in(list(changed))).unique()}
    return texts.replace_strict(found, default=None, return_dtype=pl.Binary)


def distinguished_by(text: str, plain: str, of: Digest) -> str:
    """Return what stands for a text in an identity, whose parts are joined by colons: `plain`, the form in which it is
    compared, with its own colons escaped, or the digest of that form where either would be masked.
    """
    if mask_text(text) == text and mask_text(plain) == plain:
        return plain.replace("\\", r"\\").replace(":", r"\:")
    return f"as-sent:{of(plain).hex()}"
