"""Identify the customer's account that a submission belongs to.

An account is identified by its number (with the BSB, if sent). Without a number, or with a placeholder for one (`N/A`),
the bank, name and type together identify it. Without any of these, it is the customer's one unidentified account. The
id is derived from these fields, so the same account always has the same id. Card numbers are masked wherever they are
stored; a digest of the number as sent still distinguishes the accounts (`intake.as_sent`).
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from uuid import UUID, uuid5

import polars as pl

from pipelines.intake.as_sent import Digest, comparable_or_digest
from pipelines.intake.masking import mask_text
from pipelines.vocabulary.schemas import ACCOUNT_TYPES

SHOWN_DIGITS = 4
# Accounts of several banks may share these, so they identify none.
_NO_DIGITS = re.compile(r"[\W_0xX]*")
_NO_NUMBER = {"N/A", "NA", "NONE", "NULL", "NIL", "UNKNOWN", "NOTAVAILABLE", "NOTPROVIDED", "UNDEFINED", "TBC", "TBA"}
_TYPES = {name.replace("_", ""): name for name in ACCOUNT_TYPES}


@dataclass(frozen=True)
class Account:
    """An account as one submission describes it. Texts are as sent, with card numbers masked; null if absent."""

    account_id: UUID
    identified: bool
    account_name: str | None
    bsb: str | None
    account_number: str | None
    bank_name: str | None
    account_type: str | None  # one of ACCOUNT_TYPES; null if none was sent
    account_type_text: str | None  # as sent, if it is not in ACCOUNT_TYPES
    credit_limit: Decimal | None


@dataclass(frozen=True)
class Oddity:
    """A warning on the job about an account's fields."""

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
    """Return the account that these fields identify, and warnings about them. Empty text means absent.

    Args:
        digest: applied to texts as sent where masking changes them.
    """
    stated_type = _none_if_blank(account_type)
    known_type = _TYPES.get(re.sub(r"[\s_-]", "", stated_type or "").lower())  # `Credit Card`, `creditCard`
    numbers = (None if _is_placeholder(text or "") else _none_if_blank(text) for text in (bsb, account_number))
    sent = [*numbers, *(_none_if_blank(text) for text in (bank_name, account_name, known_type or stated_type))]
    branch, number, bank, name, kind = map(_mask, sent)
    number = _mask_number(sent[1])
    account = Account(
        account_id=uuid5(customer_id, _identity(*sent, digest=digest)),
        identified=any(sent),
        account_name=name,
        bsb=branch,
        account_number=number,
        bank_name=bank,
        account_type=known_type or ("other" if kind else None),
        account_type_text=None if known_type else kind,
        credit_limit=credit_limit,
    )
    oddities = _oddities(account, is_masked=sent != [branch, number, bank, name, kind])
    if _is_placeholder(account_number or ""):
        message = "The account number stands for no number: the account is identified as if none had been sent."
        return account, (*oddities, Oddity("Account.OddNumber", message))
    return account, oddities


def mask_account_number(account_number: pl.Expr) -> pl.Expr:
    """Replace all but the last four characters of account numbers by x; numbers of four or fewer are hidden whole."""
    compact = account_number.str.replace_all(r"[\s-]", "").str.to_uppercase()
    length = compact.str.len_chars()
    shown = pl.when(length > SHOWN_DIGITS).then(SHOWN_DIGITS).otherwise(0)
    return compact.str.head(length - shown).str.replace_all(".", "x") + compact.str.tail(shown)


def _none_if_blank(text: str | None) -> str | None:
    return (text.strip() or None) if text else None


def _is_placeholder(text: str) -> bool:
    """Return whether a number is only zeros and marks, or a word for a number that is missing (`N/A`)."""
    return bool(text.strip()) and (bool(_NO_DIGITS.fullmatch(text)) or _compact(text) in _NO_NUMBER)


def _mask(text: str | None) -> str | None:
    return mask_text(text) if text else None


def _mask_number(text: str | None) -> str | None:
    """Mask a card number however its digits are grouped."""
    compact = _compact(text or "")
    return _mask(text) if mask_text(compact) == compact else mask_text(compact)


def _identity(
    bsb: str | None, number: str | None, bank: str | None, name: str | None, kind: str | None, *, digest: Digest
) -> str:
    def part(text: str | None, normalise: Callable[[str], str]) -> str:
        return comparable_or_digest(text or "", normalise(text or ""), digest)

    if number is not None:
        return f"number:{part(bsb, _compact)}:{part(number, _compact)}"
    if bank or name or kind:
        return f"name:{part(bank, _fold)}:{part(name, _fold)}:{part(kind, _fold)}"
    return "unidentified"


def _compact(text: str) -> str:
    return re.sub(r"[\s-]", "", text).upper()


def _fold(text: str) -> str:
    return " ".join(text.split()).casefold()


def _oddities(account: Account, *, is_masked: bool) -> tuple[Oddity, ...]:
    bsb, number = account.bsb, account.account_number
    oddities: list[Oddity] = []
    if is_masked:
        message = "A card or tax file number is masked wherever the account is shown; it still identifies the account."
        oddities.append(Oddity("Account.MaskedNumber", message))
    if bsb is not None and not re.fullmatch(r"\d{6}", _compact(bsb)):
        oddities.append(Oddity("Account.OddBsb", "The BSB is not six digits; accepted as sent."))
    if number is not None and not re.fullmatch(r"[\dX]{4,20}", _compact(number)):
        oddities.append(Oddity("Account.OddNumber", "The account number is not 4 to 20 digits; accepted as sent."))
    if account.account_type_text is not None:
        message = f"The account type is none of {', '.join(ACCOUNT_TYPES)}: the account counts as cash at bank."
        oddities.append(Oddity("Account.UnknownType", message))
    return tuple(oddities)
