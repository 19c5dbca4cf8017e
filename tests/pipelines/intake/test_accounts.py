"""Which details identify an account, and which are only warned about."""

from typing import Any
from uuid import UUID

import polars as pl
import pytest

from pipelines.intake.accounts import Account, identify, mask_account_number
from pipelines.intake.as_sent import temporary_digest

CUSTOMER = UUID(int=1)
FIELDS = ("account_name", "bsb", "account_number", "bank_name", "account_type", "credit_limit")


def account(customer: UUID = CUSTOMER, **fields: Any) -> Account:
    return identify(customer, digest=temporary_digest, **{**dict.fromkeys(FIELDS), **fields})[0]


def test_spaces_in_a_number_do_not_change_the_account() -> None:
    spaced = account(bsb="062-000", account_number="1234 5678")
    assert spaced.account_id == account(bsb="062000", account_number="12345678", account_name="Other").account_id


def test_another_bsb_or_another_customer_is_another_account() -> None:
    mine = account(bsb="062000", account_number="12345678").account_id
    assert account(bsb="062001", account_number="12345678").account_id != mine
    assert account(UUID(int=2), bsb="062000", account_number="12345678").account_id != mine


def test_without_a_number_bank_name_and_type_identify_an_account() -> None:
    everyday = account(bank_name="ANZ", account_name="Trading", account_type="transaction")
    assert everyday.identified
    assert everyday.account_id != account(bank_name="ANZ", account_name="Tax", account_type="savings").account_id
    assert (
        everyday.account_id == account(bank_name="anz ", account_name="trading", account_type="transaction").account_id
    )


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"bsb": "1:2", "account_number": "3"}, {"bsb": "1", "account_number": "2:3"}),
        ({"bank_name": "A:B", "account_name": "C"}, {"bank_name": "A", "account_name": "B:C"}),
        ({"bank_name": "A\\", "account_name": "B"}, {"bank_name": "A", "account_name": "\\B"}),
        ({"bank_name": "A\\:B", "account_name": "C"}, {"bank_name": "A\\", "account_name": "B:C"}),
        ({"account_name": "A:savings"}, {"account_name": "A", "account_type": "savings:"}),
    ],
)
def test_a_colon_moves_nothing_from_one_field_to_the_next(one: dict[str, str], other: dict[str, str]) -> None:
    assert account(CUSTOMER, **one).account_id != account(CUSTOMER, **other).account_id


def test_without_anything_it_is_the_one_unidentified_account() -> None:
    nothing = account(account_name="", bsb=None, account_number="")
    assert not nothing.identified
    assert nothing.account_id == account().account_id


def test_an_unknown_account_type_is_stored_and_read_as_other() -> None:
    offset = account(account_number="1234", account_type="offset")
    assert (offset.account_type, offset.account_type_text) == ("other", "offset")


@pytest.mark.parametrize("spelling", ["Credit Card", "CREDIT_CARD", "creditCard", " credit-card "])
def test_the_spelling_of_an_account_type_does_not_matter(spelling: str) -> None:
    """A card that is read as `other` counts as cash."""
    card = account(bank_name="ANZ", account_type=spelling)
    assert (card.account_type, card.account_type_text) == ("credit_card", None)
    assert card.account_id == account(bank_name="ANZ", account_type="credit_card").account_id


def test_a_card_number_as_account_number_is_masked_and_still_identifies() -> None:
    card = account(account_number="4111 1111 1111 1111")
    assert card.account_number == "411111xxxxxx1111"
    assert card.account_id != account(account_number="4242 4242 4242 4242").account_id


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"bsb": "62000"}, "Account.OddBsb"),
        ({"account_number": "A?"}, "Account.OddNumber"),
        ({"account_type": "Visa Platinum"}, "Account.UnknownType"),
    ],
)
def test_an_odd_detail_is_a_warning(fields: dict[str, str], code: str) -> None:
    _, oddities = identify(CUSTOMER, digest=temporary_digest, **{**dict.fromkeys(FIELDS), **fields})  # pyrefly: ignore[bad-argument-type]  # all optional
    assert [oddity.code for oddity in oddities] == [code]


@pytest.mark.parametrize(
    ("number", "shown"),
    [(None, None), ("12345678", "xxxx5678"), ("1234 56", "xx3456"), ("123", "xxx"), ("1234", "xxxx")],
)
def test_a_number_is_shown_by_its_last_four(number: str | None, shown: str | None) -> None:
    assert pl.select(mask_account_number(pl.lit(number, pl.String))).item() == shown


def test_placeholders_for_a_number_identify_no_account() -> None:
    one, other = ({"bank_name": bank, "account_name": "Main"} for bank in ("CBA", "ANZ"))
    for number in ("0", "0000 0000", "N/A", "n/a", "-", "unknown", "null", "xxxx", "****"):
        assert account(account_number=number, **one) == account(**one), number
        assert account(account_number=number, **one).account_id != account(account_number=number, **other).account_id, (
            number
        )
        sent: dict[str, Any] = {**dict.fromkeys(FIELDS), **one, "account_number": number}
        _, [oddity] = identify(CUSTOMER, digest=temporary_digest, **sent)
        assert oddity.code == "Account.OddNumber", number
    for bsb in ("000-000", "N/A"):
        assert account(bsb=bsb, account_number="12345678") == account(account_number="12345678"), bsb
    for number in ("MAIN", "100", "xxxx1234", "0001"):
        assert account(account_number=number, **one).account_number == number, number
