"""What is sealed opens for the thing that it was sealed for, under the key that it names, and nowhere else."""

import pytest

from pipelines.vocabulary.errors import Corrupt
from storage.core import vault
from storage.core.vault import KEY_ID_BYTES, Ring, Vault, key_of

OLD, NEW = b"1" * 32, b"2" * 32
CONTEXT = b"context"


def vault_of(*keys: bytes, names: bytes = OLD) -> Vault:
    """With these keys under the ids from 1 on; the last one seals."""
    return Vault(lambda: Ring(dict(enumerate(keys, start=1)), len(keys), names))


def test_a_secret_opens_for_its_context_only() -> None:
    sealed = vault_of(OLD).seal(b"secret", CONTEXT)
    assert b"secret" not in sealed
    assert vault_of(OLD).open(sealed, CONTEXT) == b"secret"
    for keys, text, context in (
        (vault_of(NEW), sealed, CONTEXT),
        (vault_of(OLD), sealed, b"other"),
        (vault_of(OLD), sealed[:-1] + bytes([sealed[-1] ^ 1]), CONTEXT),
        (vault_of(OLD), sealed[: KEY_ID_BYTES + 1], CONTEXT),
        (vault_of(OLD), b"", CONTEXT),
        (vault_of(OLD, OLD), (2).to_bytes(KEY_ID_BYTES, "big") + sealed[KEY_ID_BYTES:-1], CONTEXT),
        (vault_of(OLD), (9).to_bytes(KEY_ID_BYTES, "big") + sealed[KEY_ID_BYTES:], CONTEXT),
    ):
        with pytest.raises(Corrupt):
            keys.open(text, context)


def test_the_same_secret_is_sealed_differently_each_time() -> None:
    keys = vault_of(OLD)
    assert keys.seal(b"secret", CONTEXT) != keys.seal(b"secret", CONTEXT)


def test_old_and_new_keys_serve_side_by_side() -> None:
    sealed = vault_of(OLD).seal(b"secret", CONTEXT)
    both = vault_of(OLD, NEW)
    assert both.open(sealed, CONTEXT) == b"secret"
    assert (key_of(sealed), key_of(both.seal(b"secret", CONTEXT))) == (1, 2)


def test_a_key_that_was_not_there_before_is_looked_for() -> None:
    rings = [Ring({1: OLD}, 1, OLD), Ring({1: OLD, 2: NEW}, 2, OLD)]
    running = Vault(lambda: rings.pop(0))
    running.seal(b"before", CONTEXT)
    assert running.open(vault_of(OLD, NEW).seal(b"secret", CONTEXT), CONTEXT) == b"secret"


def test_keys_are_read_once_and_again_before_sealing_when_they_are_old(monkeypatch: pytest.MonkeyPatch) -> None:
    reads = []

    def load() -> Ring:
        reads.append(1)
        return Ring({1: OLD}, 1, OLD)

    running = Vault(load)
    sealed = running.seal(b"secret", CONTEXT)
    running.seal(b"secret", CONTEXT)
    monkeypatch.setattr(vault, "FRESH_FOR_S", -1)
    running.open(sealed, CONTEXT)
    assert len(reads) == 1
    running.seal(b"secret", CONTEXT)
    assert len(reads) == 2


def test_pseudonyms_stay_when_data_keys_change() -> None:
    assert vault_of(OLD).pseudonym("127.0.0.1") == vault_of(OLD, NEW).pseudonym("127.0.0.1")
    assert vault_of(OLD).pseudonym("127.0.0.1") != vault_of(OLD, names=NEW).pseudonym("127.0.0.1")
    assert vault_of(OLD).pseudonym("127.0.0.1") != vault_of(OLD).pseudonym("127.0.0.2")


def test_a_ring_shows_no_key() -> None:
    assert "1" * 8 not in repr(Ring({1: OLD}, 1, OLD))
