"""Tokens of sessions and links. They have 256 bits of entropy, so a plain SHA-256 is enough to store them."""

import hashlib


def hash_token(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()
