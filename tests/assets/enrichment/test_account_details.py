"""Details of an account that a submission states in vain, because all its rows are stored already."""

from assets.enrichment.transactions import UNCHANGED_DETAILS
from storage.core.store import Store
from tests.assets.lender import COFFEE, RENT, Lender


def test_details_that_only_repeated_rows_state_are_a_warning(store: Store) -> None:
    lender = Lender(store)
    first = lender.submit_and_end(RENT)
    assert lender.submit_and_end(RENT, account_type="credit_card").warnings == [UNCHANGED_DETAILS]
    lender.retract_and_end(first)
    assert lender.rows()[0]["account_type"] == "credit_card"
    assert lender.submit_and_end(RENT, account_type="credit_card").warnings == []


def test_details_beside_a_new_row_and_those_left_out_are_none(store: Store) -> None:
    lender = Lender(store)
    lender.submit_and_end(RENT, account_type="transaction")
    assert lender.submit_and_end(RENT, COFFEE, account_type="credit_card").warnings == []
    assert lender.submit_and_end(RENT).warnings == []
