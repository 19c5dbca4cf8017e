"""Encrypt secrets at rest: AES-256-GCM with data keys, each secret bound to its context.

A sealed value begins with the id of its data key, so old and new keys can be used at the same time. The context is
authenticated with the secret, so a sealed secret copied to another row can't be opened there. See
`storage.core.vault_keys` for where data keys come from and how they are replaced.
"""

import hmac
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from pipelines.intake.digest import digest
from pipelines.vocabulary.errors import Corrupt

KEY_ID_BYTES = 4
NONCE_BYTES = 12
FRESH_FOR_S = 10.0  # the longest time that a process still seals with a data key that another process has retired


@dataclass(frozen=True)
class KeyRing:
    """The data keys that are available, as read at one moment. Each has 32 bytes."""

    keys: Mapping[int, bytes] = field(repr=False)  # by id: the current key, and retired ones that still open values
    current: int  # id of the key to seal with
    pseudonym_key: bytes = field(repr=False)  # of pseudonyms and digests; never replaced


class Vault:
    """Seals with the current data key, and opens with any.

    Args:
        load: reads the data keys. It is called at the first use, when a sealed value has an unknown key, and before
            sealing if the keys were read more than FRESH_FOR_S ago.
    """

    def __init__(self, load: Callable[[], KeyRing]) -> None:
        self._load = load
        self._cached: tuple[KeyRing, float] | None = None  # with the time of reading (monotonic)

    def pseudonym(self, name: str) -> str:
        """Return 16 hex digits, always the same for a name. Only somebody with the keys can tell which name it is."""
        return hmac.digest(self._ring().pseudonym_key, b"pseudonym:" + name.encode(), "sha256").hex()[:16]

    def digest(self, text: str) -> bytes:
        """Return a digest that identifies a text that must not be stored (see `pipelines.intake.as_sent`)."""
        return digest(self._ring().pseudonym_key, text)

    def seal(self, plaintext: bytes, context: bytes) -> bytes:
        """Return the data key's id, a random nonce, the ciphertext and its tag."""
        ring, nonce = self._ring(FRESH_FOR_S), os.urandom(NONCE_BYTES)
        return prefix(ring.current) + nonce + AESGCM(ring.keys[ring.current]).encrypt(nonce, plaintext, context)

    def open(self, sealed: bytes, context: bytes) -> bytes:
        """Return the plaintext of a value sealed for this context.

        Raises:
            Corrupt: the value was changed, sealed for another context, or its key is lost.
        """
        key = self._key(sealed)
        nonce, ciphertext = sealed[KEY_ID_BYTES : KEY_ID_BYTES + NONCE_BYTES], sealed[KEY_ID_BYTES + NONCE_BYTES :]
        try:
            return AESGCM(key).decrypt(nonce, ciphertext, context)
        except (InvalidTag, ValueError) as error:
            raise _cannot_open() from error

    def refresh(self) -> KeyRing:
        """Read the data keys again."""
        ring = self._load()
        self._cached = ring, time.monotonic()
        return ring

    def _ring(self, fresh_for_s: float = float("inf")) -> KeyRing:
        cached = self._cached
        return self.refresh() if cached is None or time.monotonic() - cached[1] > fresh_for_s else cached[0]

    def _key(self, sealed: bytes) -> bytes:
        if len(sealed) < KEY_ID_BYTES + NONCE_BYTES:
            raise _cannot_open()
        key_id = read_key_id(sealed)
        key = self._ring().keys.get(key_id) or self.refresh().keys.get(key_id)
        if key is None:
            raise _cannot_open()
        return key


def prefix(key_id: int) -> bytes:
    """Return the first bytes of values that are sealed with this data key."""
    return key_id.to_bytes(KEY_ID_BYTES, "big")


def read_key_id(sealed: bytes) -> int:
    """Return the id of the data key that a value is sealed with."""
    return int.from_bytes(sealed[:KEY_ID_BYTES], "big")


def _cannot_open() -> Corrupt:
    return Corrupt("Vault.CannotOpen", "A stored secret can't be opened with this service's keys.")
