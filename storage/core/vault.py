"""Secrets at rest: AES-256-GCM under data keys, each secret bound to the thing that it belongs to.

A sealed value begins with the id of its data key, so old and new keys serve side by side. The context is
authenticated with the secret: a sealed secret copied to another row doesn't open there. Where data keys come from and
how they are replaced: see `storage.core.vault_keys`.
"""

import hmac
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from pipelines.intake.as_sent import digest
from pipelines.vocabulary.errors import Corrupt

KEY_ID_BYTES = 4
NONCE_BYTES = 12
FRESH_FOR_S = 10.0  # a process seals with a data key that was retired elsewhere for no longer than this


@dataclass(frozen=True)
class Ring:
    """The data keys within reach at one moment, 32 bytes each."""

    keys: Mapping[int, bytes] = field(repr=False)  # that seal, and retired ones that still open
    current: int  # the one that seals
    names: bytes = field(repr=False)  # pseudonyms and digests are made with it, for ever


class Vault:
    """Seals under the current data key, opens under any.

    Args:
        load: reads the data keys: at the first use, again when a sealed value names one that wasn't there, and before
            sealing when they were read a while ago.
    """

    def __init__(self, load: Callable[[], Ring]) -> None:
        self._load = load
        self._held: tuple[Ring, float] | None = None  # and when they were read (monotonic)

    def pseudonym(self, name: str) -> str:
        """Sixteen hex digits that stand for a name, always the same; without the keys nobody tells which."""
        return hmac.digest(self._ring().names, b"pseudonym:" + name.encode(), "sha256").hex()[:16]

    def digest(self, text: str) -> bytes:
        """What tells a text from others where it may not be kept, always the same (see `pipelines.intake.as_sent`)."""
        return digest(self._ring().names, text)

    def seal(self, plaintext: bytes, context: bytes) -> bytes:
        """The data key's id, a fresh random nonce, then ciphertext and tag."""
        ring, nonce = self._ring(FRESH_FOR_S), os.urandom(NONCE_BYTES)
        return prefix(ring.current) + nonce + AESGCM(ring.keys[ring.current]).encrypt(nonce, plaintext, context)

    def open(self, sealed: bytes, context: bytes) -> bytes:
        """What was sealed for this context.

        Raises:
            Corrupt: changed, sealed for another context, or under a key that is lost.
        """
        key = self._key(sealed)
        nonce, ciphertext = sealed[KEY_ID_BYTES : KEY_ID_BYTES + NONCE_BYTES], sealed[KEY_ID_BYTES + NONCE_BYTES :]
        try:
            return AESGCM(key).decrypt(nonce, ciphertext, context)
        except (InvalidTag, ValueError) as error:
            raise _cannot_open() from error

    def refresh(self) -> Ring:
        """The data keys as they stand now."""
        ring = self._load()
        self._held = ring, time.monotonic()
        return ring

    def _ring(self, fresh_for_s: float = float("inf")) -> Ring:
        held = self._held
        return self.refresh() if held is None or time.monotonic() - held[1] > fresh_for_s else held[0]

    def _key(self, sealed: bytes) -> bytes:
        if len(sealed) < KEY_ID_BYTES + NONCE_BYTES:
            raise _cannot_open()
        key_id = key_of(sealed)
        key = self._ring().keys.get(key_id) or self.refresh().keys.get(key_id)
        if key is None:
            raise _cannot_open()
        return key


def prefix(key_id: int) -> bytes:
    """How values begin that are sealed under this data key."""
    return key_id.to_bytes(KEY_ID_BYTES, "big")


def key_of(sealed: bytes) -> int:
    """The id of the data key that a value is sealed under."""
    return int.from_bytes(sealed[:KEY_ID_BYTES], "big")


def _cannot_open() -> Corrupt:
    return Corrupt("Vault.CannotOpen", "A stored secret can't be opened with this service's keys.")
