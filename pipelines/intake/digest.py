"""Keyed digest of a text exactly as the client sent it, before masking.

It is a module of its own because the vault (`storage/core/vault.py`) needs it and must not import Polars.
"""

import hmac

DIGEST_BYTES = 16


def digest(key: bytes, text: str) -> bytes:
    """Return the first DIGEST_BYTES of the HMAC-SHA-256 of a text as the client sent it."""
    return hmac.digest(key, b"as sent:" + text.encode(), "sha256")[:DIGEST_BYTES]
