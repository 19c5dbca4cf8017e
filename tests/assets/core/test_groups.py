"""Two related customers of one client: each sees the other side of a transfer, whichever submits first."""

from datetime import UTC, datetime

import pytest

from storage.core.store import Store
from storage.enrichment import related_parties
from storage.enrichment.related_parties import Party
from storage.jobs.jobs import Job
from tests.assets.conftest import FillStore
from tests.assets.lender import Item, Lender

SISTERS_ABN = "33051775556"
OUT: Item = {"date": "2026-03-02", "description": "OSKO PAYMENT 88123", "amount": "-5000.00"}
IN: Item = {"date": "2026-03-03", "description": "OSKO DEPOSIT 99812", "amount": "5000.00"}


class Group:
    """A customer and a related one with another ABN, both of one client."""

    def __init__(self, store: Store) -> None:
        self.here = Lender(store)
        self.there = Lender(store, SISTERS_ABN, self.here.customer.client_id)

    def declare(self, whose: Lender, other: Lender) -> None:
        party = Party("Sister Pty Ltd", other.customer.abn, True, "group_company")
        with whose.store.db.writing() as w:
            related_parties.put(w, whose.customer, [party], "key", datetime.now(UTC))

    def settle(self) -> None:
        for _ in range(4):
            self.here.end_all()


@pytest.fixture
def group(fill_store: FillStore) -> Group:
    return fill_store(group_declared_by_both)


def group_declared_by_both(store: Store) -> Group:
    group = Group(store)
    group.declare(group.here, group.there)
    group.declare(group.there, group.here)
    group.here.submit_and_end(OUT)
    assert categories(group.here) != ["related_entity"]
    group.there.submit_and_end(IN)
    group.settle()
    return group


@pytest.fixture
def one_sided(fill_store: FillStore) -> tuple[Group, Job]:
    return fill_store(group_declared_by_one)


def group_declared_by_one(store: Store) -> tuple[Group, Job]:
    """Return a group that only one side declares, and the other side's submission."""
    group = Group(store)
    group.declare(group.here, group.there)
    group.here.submit_and_end(OUT)
    submission = group.there.submit_and_end(IN)
    group.settle()
    return group, submission


def categories(lender: Lender) -> list[str]:
    return [row["category"] for row in lender.rows()]


def test_the_customer_with_earlier_data_gets_the_pair_too(group: Group) -> None:
    assert (categories(group.here), categories(group.there)) == (["related_entity"], ["related_entity"])
    [mine], [theirs] = group.here.rows(), group.there.rows()
    assert mine["transfer_pair_id"] == theirs["transfer_pair_id"] is not None


def test_only_the_customer_that_declared_the_other_sees_a_group(one_sided: tuple[Group, Job]) -> None:
    group, _ = one_sided
    assert categories(group.here) == ["related_entity"]
    assert categories(group.there) != ["related_entity"]


def test_recomputation_ends_when_nothing_changes(group: Group) -> None:
    version = group.here.customer.data_version
    group.settle()
    assert group.here.customer.data_version == version


def test_retracting_one_side_removes_the_pair(one_sided: tuple[Group, Job]) -> None:
    group, submission = one_sided
    assert categories(group.here) == ["related_entity"]
    group.there.retract_and_end(submission)
    group.settle()
    assert categories(group.here) != ["related_entity"]


def test_another_clients_customer_with_the_same_abn_is_not_related(store: Store) -> None:
    here, stranger = Lender(store), Lender(store, SISTERS_ABN)
    party = Party("Sister Pty Ltd", SISTERS_ABN, True, "group_company")
    with store.db.writing() as w:
        related_parties.put(w, here.customer, [party], "key", datetime.now(UTC))
        assert related_parties.find_relations_declared_by(w, [here.customer.number]) == []
        assert related_parties.find_relations_to(w, [stranger.customer.number]) == []
