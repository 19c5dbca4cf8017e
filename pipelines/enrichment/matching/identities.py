"""Ids derived from what they identify: the same thing always gets the same id."""

from hashlib import sha1

import numpy as np
import polars as pl

from pipelines.vocabulary.schemas import UUID

_DIGEST_BYTES, _UUID_BYTES = 20, 16


def derive_ids(namespaces: pl.Series, names: pl.Series) -> pl.Series:
    """Return UUIDs of version 5 (RFC 9562, section 5.5), one for each name in its namespace.

    Polars has no SHA-1, so the hashes are computed one by one; the rest works on whole columns.

    Args:
        namespaces: UUIDs.
        names: texts or bytes.
    """
    both = zip(namespaces, names.cast(pl.Binary), strict=True)
    digests = b"".join([sha1(space + name, usedforsecurity=False).digest() for space, name in both])
    ids = np.frombuffer(digests, np.uint8).reshape(-1, _DIGEST_BYTES)[:, :_UUID_BYTES].copy()
    ids[:, 6] = ids[:, 6] & 0x0F | 0x50  # version 5
    ids[:, 8] = ids[:, 8] & 0x3F | 0x80  # the RFC's variant
    return pl.Series(ids.view(f"V{_UUID_BYTES}").ravel().tolist(), dtype=UUID)
