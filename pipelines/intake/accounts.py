"""Which of the customer's accounts a submission speaks of.

An account is its number (with the BSB, when given); without a number, the bank, the name and the type together; without
any of them, the customer's one unidentified account. The id is derived, so the same account is the same id for ever.
The number of a card is masked wherever it is kept, and tells accounts apart all the same (`intake.as_sent`).
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from uuid import UUID, uuid5

import polars as pl

from pipelines.intake.as_sent import Digest, distinguished_by
from pipelines.intake.masking import mask_text
from pipelines.vocabulary.schemas import ACCOUNT_TYPES

SHOWN_DIGITS = 4


@dataclass(frozen=True)
class Account:
    """An account as one submission describes it. Texts are as sent, with numbers masked; null when absent."""

    account_id: UUID
    identified: bool
    account_name: str | None
    bsb: str | None
    account_number: str | None
    bank_name: str | None
    account_type: str | None  # one of ours; null when none was sent
    account_type_text: str | None  # as sent, when it is none of ours
    credit_limit: Decimal | None


@dataclass(frozen=True)
class Oddity:
    """What whoever sent the account should know: a warning on the job."""

    code: str
    message: str


def identify(
    customer_id: UUID,
    *,
    account_name: str | None,
    bsb: str | None,
    account_number: str | None,
    bank_name: str | None,
    account_type: str | None,
    credit_limit: Decimal | None,
    digest: Digest,
) -> tuple[Account, tuple[Oddity, ...]]:
    """The account that these fields speak of, and what is odd about them. Empty text means absent.

    Args:
        digest: of what masking changes, as it was sent.
    """
    given = [_given(text) for text in (bsb, account_number, bank_name, account_name, account_type)]
    branch, number, bank, name, kind = map(_shown, given)
    number = _shown_number(given[1])
    known = kind is not None and kind in ACCOUNT_TYPES
    account = Account(
        account_id=uuid5(customer_id, _identity(*given, digest=digest)),
        identified=any(given),
        account_name=name,
        bsb=branch,
        account_number=number,
        bank_name=bank,
        account_type=kind if known or kind is None else "other",
        account_type_text=None if known else kind,
        credit_limit=credit_limit,
    )
    return account, _oddities(branch, number, is_masked=given != [branch, number, bank, name, kind])


def masked(account_number: pl.Expr) -> pl.Expr:
    """Account numbers with all but the last four characters as x; shorter ones are hidden whole."""
    compact = account_number.str.replace_all(r"[\s-]", "").str.to_uppercase()
    length = compact.str.len_chars()
    shown = pl.when(length > SHOWN_DIGITS).then(SHOWN_DIGITS).otherwise(0)
    return compact.str.head(length - shown).str.replace_all(".", "x") + compact.str.tail(shown)


def _given(text: str | None) -> str | None:
    return (text.strip() or None) if text else None


def _shown(text: str | None) -> str | None:
    return mask_text(text) if text else None


def _shown_number(text: str | None) -> str | None:
    """A card's number is masked however it is grouped."""
    compact = _compact(text or "")
    return _shown(text) if mask_text(compact) == compact else mask_text(compact)


def _identity(
    bsb: str | None, number: str | None, bank: str | None, name: str | None, kind: str | None, *, digest: Digest
) -> str:
    def of(text: str | None, form: Callable[[str], str]) -> str:
        return distinguished_by(text or "", form(text or ""), digest)

    if number is not None:
        return f"number:{of(bsb, _compact)}:{of(number, _compact)}"
    if bank or name or kind:
        return f"name:{of(bank, _folded)}:{of(name, _folded)}:{of(kind, _folded)}"
    return "unidentified"


def _compact(text: str) -> str:
    return re.sub(r"[\s-]", "", text).upper()


def _folded(text: str) -> str:
    return " ".join(text.split()).casefold()


def _oddities(bsb: str | None, number: str | None, *, is_masked: bool) -> tuple[Oddity, ...]:
    found = []
    if is_masked:
        message = "A card or tax file number is masked wherever the account is shown; accounts are told apart by it."
        found.append(Oddity("Account.MaskedNumber", message))
    if bsb is not None and not re.fullmatch(r"\d{6}", _compact(bsb)):
        found.append(Oddity("Account.OddBsb", "The BSB is not six digits; it was taken as sent."))
    if number is not None and not re.fullmatch(r"[\dX]{4,20}", _compact(number)):
        found.append(Oddity("Account.OddNumber", "The account number is not 4 to 20 digits; it was taken as sent."))
    return tuple(found)
