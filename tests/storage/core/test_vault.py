"""A sealed value opens only in its context and with its key."""

from datetime import datetime
from uuid import UUID

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from sqlalchemy import select

from pipelines.vocabulary.errors import Corrupt
from pipelines.webhooks import events
from storage.core import vault
from storage.core.models import subscriptions as subscriptions_table
from storage.core.models import vault_keys
from storage.core.store import Store
from storage.core.vault import KEY_ID_BYTES, NONCE_BYTES, KeyRing, Vault, read_key_id
from storage.intake import statements
from storage.webhooks import subscriptions
from tests.storage.examples import a_client

OLD, NEW = b"1" * 32, b"2" * 32
CONTEXT = b"context"


def vault_of(*keys: bytes, names: bytes = OLD) -> Vault:
    """Return a vault with these keys, with ids from 1; the last one seals."""
    return Vault(lambda: KeyRing(dict(enumerate(keys, start=1)), len(keys), names))


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


def test_old_and_new_keys_open_values() -> None:
    sealed = vault_of(OLD).seal(b"secret", CONTEXT)
    both = vault_of(OLD, NEW)
    assert both.open(sealed, CONTEXT) == b"secret"
    assert (read_key_id(sealed), read_key_id(both.seal(b"secret", CONTEXT))) == (1, 2)


def test_unknown_key_is_looked_up_again() -> None:
    rings = [KeyRing({1: OLD}, 1, OLD), KeyRing({1: OLD, 2: NEW}, 2, OLD)]
    running = Vault(lambda: rings.pop(0))
    running.seal(b"before", CONTEXT)
    assert running.open(vault_of(OLD, NEW).seal(b"secret", CONTEXT), CONTEXT) == b"secret"


def test_keys_are_cached_and_read_again_before_sealing(monkeypatch: pytest.MonkeyPatch) -> None:
    reads = []

    def load() -> KeyRing:
        reads.append(1)
        return KeyRing({1: OLD}, 1, OLD)

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


def test_repr_of_a_ring_shows_no_key() -> None:
    assert "1" * 8 not in repr(KeyRing({1: OLD}, 1, OLD))


def test_stored_secrets_are_bound_to_their_rows(store: Store, now: datetime) -> None:
    """Contexts must never be renamed: values sealed for them could not be opened any more."""
    file_id = UUID(int=7)
    client_id = a_client(store, now)
    with store.db.writing() as w:
        url = "https://lender.example/hooks"
        made, secret = subscriptions.create(w, client_id, events.EventType.JOB_COMPLETED, url, (), store.vault, now)
        (sealed,) = w.execute(select(subscriptions_table.c.secret)).scalars()
        keys = w.execute(select(vault_keys)).all()
    for value, context, plain in (
        (statements.seal_original(store.vault, file_id, b"%PDF"), b"statement original:" + file_id.bytes, b"%PDF"),
        (statements.seal_password(store.vault, file_id, "open"), b"statement password:" + file_id.bytes, b"open"),
        (sealed, made.subscription_id.bytes, events.decode_secret(secret)),
    ):
        assert store.vault.open(value, context) == plain, context
    master_key = AESGCM(store.settings.master_key_bytes)
    for key in keys:
        nonce, wrapped = key.wrapped[:NONCE_BYTES], key.wrapped[NONCE_BYTES:]
        assert len(master_key.decrypt(nonce, wrapped, f"data key {key.key_id} for {key.purpose}".encode())) == 32
