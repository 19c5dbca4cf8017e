"""Secrets at rest: AES-256-GCM under the master key, each bound to the thing that it belongs to.

The context is authenticated with the secret: a sealed secret copied to another row doesn't open there.
"""

import hmac
import os

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from pipelines.errors import Corrupt

NONCE_BYTES = 12


class Vault:
    """Seals and opens under one 32-byte master key."""

    def __init__(self, master_key: bytes) -> None:
        self._cipher = AESGCM(master_key)
        self._master_key = master_key

    def pseudonym(self, name: str) -> str:
        """Sixteen hex digits that stand for a name, always the same; without the master key nobody tells which."""
        return hmac.digest(self._master_key, b"pseudonym:" + name.encode(), "sha256").hex()[:16]

    def seal(self, plaintext: bytes, context: bytes) -> bytes:
        """A fresh random nonce, then ciphertext and tag."""
        nonce = os.urandom(NONCE_BYTES)
        return nonce + self._cipher.encrypt(nonce, plaintext, context)

    def open(self, sealed: bytes, context: bytes) -> bytes:
        """What was sealed for this context.

        Raises:
            Corrupt: changed, sealed for another context, or under another master key.
        """
        nonce, ciphertext = sealed[:NONCE_BYTES], sealed[NONCE_BYTES:]
        try:
            return self._cipher.decrypt(nonce, ciphertext, context)
        except (InvalidTag, ValueError) as error:
            raise Corrupt("Vault.CannotOpen", "A stored secret can't be opened with this master key.") from error
