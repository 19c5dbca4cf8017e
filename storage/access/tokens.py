"""Tokens of sessions and links. They have 128 random bits or more, so a plain SHA-256 is enough to store them."""

import hashlib


def hash_token(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()
