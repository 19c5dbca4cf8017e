"""A key is claimed once, answered once, and deleted after a day."""

from concurrent.futures import ThreadPoolExecutor, wait
from datetime import datetime, timedelta
from uuid import UUID

import pytest

from pipelines.vocabulary.errors import Conflict, Unprocessable
from storage.access import keys
from storage.core import idempotency
from storage.core.idempotency import CLAIMED_FOR, RETAINED_FOR, Claim, StoredResponse
from storage.core.store import Store
from tests.storage.values import on_postgresql

BODY, OTHER_BODY = b"\1" * 32, b"\2" * 32
RESPONSE = StoredResponse(201, {"location": "/v1/customer/1"}, b'{"data":1}')
MOMENT = timedelta(microseconds=1)


@pytest.fixture
def client_id(store: Store, now: datetime) -> UUID:
    return _client(store, now)


def _client(store: Store, now: datetime) -> UUID:
    with store.db.writing() as w:
        return keys.create_client(w, "Lender", decision_policies=False, now=now).client_id


def _answer(store: Store, claim: Claim, at: datetime, fingerprint: bytes = BODY) -> StoredResponse | None:
    with store.db.writing() as w:
        return idempotency.claim(w, claim, fingerprint, at)


def _claim(store: Store, client_id: UUID, at: datetime) -> Claim:
    claim = Claim.to(client_id, "key")
    assert _answer(store, claim, at) is None
    return claim


def _keep(store: Store, claim: Claim) -> None:
    with store.db.writing() as w:
        idempotency.store_response(w, claim, RESPONSE)


def test_stored_answer_is_repeated_for_24_hours(store: Store, client_id: UUID, now: datetime) -> None:
    _keep(store, _claim(store, client_id, now))
    assert _answer(store, Claim.to(client_id, "key"), now + RETAINED_FOR - MOMENT) == RESPONSE
    assert _claim(store, client_id, now + RETAINED_FOR)


def test_key_in_flight_is_refused_also_with_another_body(store: Store, client_id: UUID, now: datetime) -> None:
    _claim(store, client_id, now)
    with pytest.raises(Conflict) as in_flight:
        _answer(store, Claim.to(client_id, "key"), now)
    with pytest.raises(Unprocessable) as reused:
        _answer(store, Claim.to(client_id, "key"), now, OTHER_BODY)
    assert (in_flight.value.code, reused.value.code) == ("Idempotency.InFlight", "Idempotency.KeyReused")


def test_answered_key_with_another_body_is_refused(store: Store, client_id: UUID, now: datetime) -> None:
    _keep(store, _claim(store, client_id, now))
    with pytest.raises(Unprocessable, match="another request"):
        _answer(store, Claim.to(client_id, "key"), now, OTHER_BODY)


def test_clients_do_not_share_keys(store: Store, client_id: UUID, now: datetime) -> None:
    _keep(store, _claim(store, client_id, now))
    assert _claim(store, _client(store, now), now)


def test_released_key_is_free(store: Store, client_id: UUID, now: datetime) -> None:
    first = _claim(store, client_id, now)
    with store.db.writing() as w:
        idempotency.release(w, first)
    assert _claim(store, client_id, now)


def test_release_after_the_answer_was_stored_changes_nothing(store: Store, client_id: UUID, now: datetime) -> None:
    """The commit succeeded, although the client received an error."""
    claim = _claim(store, client_id, now)
    _keep(store, claim)
    with store.db.writing() as w:
        idempotency.release(w, claim)
    assert _answer(store, Claim.to(client_id, "key"), now) == RESPONSE


def test_request_whose_claim_expired_cannot_commit(store: Store, client_id: UUID, now: datetime) -> None:
    slow = _claim(store, client_id, now)
    quick = _claim(store, client_id, now + CLAIMED_FOR)
    with pytest.raises(Conflict):
        _keep(store, slow)
    with store.db.writing() as w:
        idempotency.release(w, slow)
    _keep(store, quick)
    assert _answer(store, Claim.to(client_id, "key"), now + CLAIMED_FOR) == RESPONSE


def test_sweep_deletes_keys_that_are_a_day_old(store: Store, client_id: UUID, now: datetime) -> None:
    _keep(store, _claim(store, client_id, now))
    with store.db.writing() as w:
        assert idempotency.sweep(w, now + RETAINED_FOR - MOMENT, 9) == 0
        assert idempotency.sweep(w, now + RETAINED_FOR, 9) == 1
        assert idempotency.sweep(w, now + RETAINED_FOR, 9) == 0


def test_sweep_deletes_a_limited_number_oldest_first(store: Store, client_id: UUID, now: datetime) -> None:
    claims = [Claim.to(client_id, str(number)) for number in range(3)]
    for number, claim in enumerate(claims):
        assert _answer(store, claim, now + number * MOMENT) is None
        _keep(store, claim)
    with store.db.writing() as w:
        assert idempotency.sweep(w, now + RETAINED_FOR + 3 * MOMENT, 2) == 2
    assert _answer(store, Claim.to(client_id, "2"), now + RETAINED_FOR) == RESPONSE
    assert _answer(store, Claim.to(client_id, "1"), now + RETAINED_FOR) is None


@on_postgresql
def test_key_claimed_again_during_a_sweep_stays(store: Store, client_id: UUID, now: datetime) -> None:
    _keep(store, _claim(store, client_id, now))

    def sweep() -> int:
        with store.db.writing() as w:
            return idempotency.sweep(w, now + RETAINED_FOR, 9)

    again = Claim.to(client_id, "key")
    with ThreadPoolExecutor(1) as pool:
        with store.db.writing() as w:
            assert idempotency.claim(w, again, BODY, now + RETAINED_FOR) is None
            sweeping = pool.submit(sweep)
            wait([sweeping], timeout=0.3)
        assert sweeping.result() == 0
    _keep(store, again)
