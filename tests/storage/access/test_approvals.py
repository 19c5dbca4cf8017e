"""Requests for actions that need a second person or key: superseded, decided once, and never changed."""

from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from uuid import UUID, uuid4

import pytest

from pipelines.vocabulary.errors import Conflict, NotFound
from storage.access import approvals, keys
from storage.access.approvals import REQUIRABLE, Approval, Request
from storage.core.models import ApprovalKind, ApprovalStatus
from storage.core.paging import Page
from storage.core.store import Store
from tests.storage.examples import a_client

PUBLISH, OVERRIDE, ACTIVATE = REQUIRABLE


def a_request(version: int = 1, subject_id: str = "loan", kind: ApprovalKind = PUBLISH) -> Request:
    return Request(kind, subject_id, {"slug": subject_id}, {"version": version})


def request(store: Store, client_id: UUID, asked: Request, now: datetime, who: str = "first") -> Approval:
    with store.db.writing() as w:
        return approvals.request(w, client_id, asked, who, now)[0]


def read_approval(store: Store, approval: Approval) -> Approval:
    with store.db.reading() as r:
        return approvals.get(r, approval.client_id, approval.approval_id)


def refusal(decide: object) -> str:
    assert callable(decide)
    with pytest.raises(Conflict) as refused:
        decide()
    return refused.value.code


def test_a_client_needs_approvals_for_the_actions_that_are_set(store: Store, now: datetime) -> None:
    client_id, other = a_client(store, now), a_client(store, now)
    for kinds in ((), (OVERRIDE, PUBLISH), (ACTIVATE,), ()):
        with store.db.writing() as w:
            approvals.set_four_eyes(w, client_id, kinds)
        with store.db.reading() as r:
            assert approvals.read_four_eyes(r, client_id) == sorted(kinds, key=REQUIRABLE.index)
            assert {kind for kind in ApprovalKind if approvals.is_needed(r, client_id, kind)} == set(kinds)
            assert not any(approvals.is_needed(r, other, kind) for kind in ApprovalKind)
            assert next(each.four_eyes for each in keys.find_clients(r) if each.client_id == client_id) == sorted(
                kinds, key=list(ApprovalKind).index
            )
    with store.db.writing() as w, pytest.raises(NotFound):
        approvals.set_four_eyes(w, uuid4(), ())


def test_a_request_is_stored_as_it_was_made(store: Store, now: datetime) -> None:
    client_id = a_client(store, now)
    made = request(store, client_id, a_request(), now)
    assert read_approval(store, made) == made
    assert (made.status, made.requested_by, made.requested_at) == (ApprovalStatus.PENDING, "first", now)
    assert (made.decided_by, made.decided_at, made.reason) == (None, None, None)
    with store.db.reading() as r, pytest.raises(NotFound):
        approvals.get(r, a_client(store, now), made.approval_id)


def test_an_equal_request_is_the_same_and_another_one_supersedes_it(store: Store, now: datetime) -> None:
    client_id, later = a_client(store, now), now + timedelta(hours=1)
    made = request(store, client_id, a_request(), now)
    others = [
        request(store, client_id, a_request(subject_id="overdraft"), now),
        request(store, client_id, a_request(kind=ACTIVATE), now),
        request(store, a_client(store, now), a_request(), now),
    ]
    assert request(store, client_id, a_request(), later, "second") == made
    with store.db.writing() as w:
        newer, superseded = approvals.request(w, client_id, a_request(version=2), "second", later)
    assert superseded == read_approval(store, made)
    assert superseded is not None
    assert (superseded.status, superseded.decided_by, superseded.decided_at) == ("superseded", "second", later)
    for each in (newer, *others):
        assert read_approval(store, each).status == ApprovalStatus.PENDING


def test_another_one_than_the_requester_decides_and_only_once(store: Store, now: datetime) -> None:
    client_id, later = a_client(store, now), now + timedelta(hours=1)
    for nth, decided in enumerate((ApprovalStatus.APPROVED, ApprovalStatus.DECLINED)):
        made = request(store, client_id, a_request(subject_id=f"p-{nth}"), now)
        with store.db.writing() as w:
            assert refusal(lambda made=made: approvals.approve(w, made, "first", later)) == "Approval.SamePerson"
            assert refusal(lambda made=made: approvals.decline(w, made, "No", "first", later)) == "Approval.SamePerson"
            if decided is ApprovalStatus.APPROVED:
                approvals.approve(w, made, "second", later)
            else:
                approvals.decline(w, made, "No.", "second", later)
        found = read_approval(store, made)
        assert (found.status, found.decided_by, found.decided_at) == (decided, "second", later)
        assert found.reason == (None if decided is ApprovalStatus.APPROVED else "No.")
        with store.db.writing() as w:
            assert refusal(lambda made=made: approvals.approve(w, made, "third", later)) == "Approval.Decided"
            assert refusal(lambda made=made: approvals.decline(w, made, "No", "third", later)) == "Approval.Decided"
        assert request(store, client_id, a_request(subject_id=f"p-{nth}"), later) != made  # decided: no longer equal


def test_of_two_approvers_at_once_one_decides(store: Store, now: datetime) -> None:
    made = request(store, a_client(store, now), a_request(), now)

    def approve(who: str) -> str:
        try:
            with store.db.writing() as w:
                return str(approvals.approve(w, made, who, now).decided_by)
        except Conflict as refused:
            return refused.code

    with ThreadPoolExecutor(8) as threads:
        results = list(threads.map(approve, [f"approver {nth}" for nth in range(8)]))
    [decider] = [each for each in results if each != "Approval.Decided"]
    assert read_approval(store, made).decided_by == decider


def test_the_requester_withdraws_a_pending_request(store: Store, now: datetime) -> None:
    client_id, later = a_client(store, now), now + timedelta(hours=1)
    made = request(store, client_id, a_request(), now)
    with store.db.writing() as w:
        assert refusal(lambda: approvals.withdraw(w, made, "second", later)) == "Approval.OtherPerson"
        approvals.withdraw(w, made, "first", later)
    found = read_approval(store, made)
    assert (found.status, found.decided_by, found.decided_at) == (ApprovalStatus.WITHDRAWN, "first", later)
    with store.db.writing() as w:
        assert refusal(lambda: approvals.withdraw(w, made, "first", later)) == "Approval.Decided"
        assert refusal(lambda: approvals.approve(w, made, "second", later)) == "Approval.Decided"
        assert refusal(lambda: approvals.decline(w, made, "No", "second", later)) == "Approval.Decided"
    again = request(store, client_id, a_request(), later)
    assert again.approval_id != made.approval_id
    with store.db.writing() as w:
        approvals.approve(w, again, "second", later)
        assert refusal(lambda: approvals.withdraw(w, again, "first", later)) == "Approval.Decided"


def test_of_a_withdrawal_and_approvals_at_once_one_succeeds(store: Store, now: datetime) -> None:
    client_id = a_client(store, now)
    for nth in range(5):
        made = request(store, client_id, a_request(subject_id=f"p-{nth}"), now)

        def decide(who: str, made: Approval = made) -> str:
            act = approvals.withdraw if who == "first" else approvals.approve
            try:
                with store.db.writing() as w:
                    return str(act(w, made, who, now).status)
            except Conflict as refused:
                return refused.code

        with ThreadPoolExecutor(4) as threads:
            results = list(threads.map(decide, ("second", "first", "third", "first")))
        [done] = [each for each in results if each != "Approval.Decided"]
        assert read_approval(store, made).status == done


def test_of_two_requests_at_once_one_is_pending(store: Store, now: datetime) -> None:
    client_id = a_client(store, now)
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda nth: request(store, client_id, a_request(version=nth), now), range(8)))
    with store.db.reading() as r:
        assert approvals.find(r, client_id, status=ApprovalStatus.PENDING).total == 1
        assert approvals.find(r, client_id).total == 8


def test_approvals_are_found_newest_first_by_kind_and_status(store: Store, now: datetime) -> None:
    client_id = a_client(store, now)
    request(store, a_client(store, now), a_request(), now)
    one = request(store, client_id, a_request(), now)
    two = request(store, client_id, a_request(kind=OVERRIDE), now)
    three = request(store, client_id, a_request(subject_id="overdraft"), now)
    with store.db.writing() as w:
        one = approvals.approve(w, one, "second", now)
    with store.db.reading() as r:
        assert approvals.find(r, client_id).items == [three, two, one]
        assert approvals.find(r, client_id, kind=PUBLISH).items == [three, one]
        assert approvals.find(r, client_id, status=ApprovalStatus.PENDING).items == [three, two]
        page = approvals.find(r, client_id, page=Page(2, 2))
    assert (page.items, page.total) == ([one], 3)
