"""Choose accounts, sums, days and texts for an attack, from what an attacker can learn from the ledger."""

import re
from collections.abc import Sequence
from datetime import date, timedelta
from decimal import Decimal
from random import Random

import polars as pl

from pipelines.attacks.attack import Applicant
from pipelines.attacks.ledger import PRINTED_DAY, Movement, insert_rows
from pipelines.vocabulary.taxonomy import GROUPS

TURNOVER_DAYS = 180  # days over which the turnover is averaged
DAYS_PER_MONTH = Decimal("30.4")
CENT = Decimal("0.01")
MIN_TURNOVER = Decimal(2_000)  # AUD a month; with less, the sums of an attack would not be worth it
CUSTOMERS = (  # made-up firms
    "Tarwin Joinery",
    "Mallee Plastering",
    "Corinella Fitouts",
    "Brindle Street Holdings",
    "Ninderry Landscapes",
    "Wattle Creek Projects",
    "Perrin & Oakes",
    "Lomandra Interiors",
)
_IS_CREDIT = pl.col("amount") > 0
_NOT_BY_TRANSFER = pl.col("description").str.contains("(?i)purchase|direct debit|bpay|visa|eftpos|cheque")
_PAID_BY_TRANSFER = ("wages", "owner_drawings", "suppliers", "subcontractors")
_TRANSFER_IN = _IS_CREDIT & (pl.col("category") == "customer_transfer") & ~_NOT_BY_TRANSFER
_TRANSFER_OUT = ~_IS_CREDIT & pl.col("category").is_in(_PAID_BY_TRANSFER) & ~_NOT_BY_TRANSFER
_DIRECT_DEBIT = ~_IS_CREDIT & pl.col("description").str.contains("(?i)direct debit")
_RECEIPT_NUMBER = re.compile(r"\b\d{5,}\b")


def trading_account(ledger: pl.DataFrame) -> str:
    """Return the account with the most rows; a transaction account if there is one."""
    ranked = ledger.group_by("account", maintain_order=True).agg(
        is_trading=(pl.col("account_type") == "transaction").any().fill_null(value=False), rows=pl.len()
    )
    chosen: str = ranked.sort("is_trading", "rows", descending=True, maintain_order=True)["account"][0]
    return chosen


def is_receipt() -> pl.Expr:
    """Return whether a row is a receipt: money in that is neither an own transfer, nor a loan, nor the owner's."""
    group = pl.col("category").replace_strict(GROUPS, default="unknown", return_dtype=pl.String).fill_null("unknown")
    return _IS_CREDIT & ~group.is_in(["transfer", "debt_inflow", "owner"])


def monthly_turnover(applicant: Applicant) -> Decimal:
    """Return the mean monthly receipts of the trading account in the last 180 days, at least MIN_TURNOVER."""
    receipts = applicant.ledger.filter(
        pl.col("account") == trading_account(applicant.ledger),
        pl.col("date") > applicant.applied_on - timedelta(days=TURNOVER_DAYS),
        is_receipt(),
    )
    return max(MIN_TURNOVER, Decimal(receipts["amount"].sum() or 0) / TURNOVER_DAYS * DAYS_PER_MONTH)


def draw_sum_near(rng: Random, target: Decimal, unit: Decimal = CENT) -> Decimal:
    """Draw a sum within a fifth of a target, in whole units, at least one."""
    drawn = target * Decimal(rng.randrange(800, 1_201)) / 1_000
    return max(unit, (drawn / unit).to_integral_value() * unit).quantize(CENT)


def previous_business_day(day: date) -> date:
    """Return the day, or the Friday before a weekend."""
    return day - timedelta(days=max(0, day.weekday() - 4))


def next_business_day(day: date) -> date:
    """Return the day, or the Monday after a weekend."""
    return day + timedelta(days=(7 - day.weekday()) % 7) if day.weekday() > 4 else day


def draw_days(rng: Random, last: date, within: int, count: int) -> list[date]:
    """Draw business days among the `within` days up to `last`, sorted; a day may occur twice."""
    return sorted(previous_business_day(last - timedelta(days=rng.randrange(within))) for _ in range(count))


def first_day(ledger: pl.DataFrame) -> date:
    """Return the date of the ledger's first row."""
    first: date = ledger["date"].min()  # pyrefly: ignore[bad-assignment]
    return first


def draw_invoice(rng: Random) -> str:
    """Draw a reference to an invoice, such as `INV 4417`."""
    return f"{rng.choice(('Inv', 'INV', 'Invoice', 'inv'))} {rng.randrange(1_000, 9_999)}"


class Wording:
    """Writes texts as the account's bank writes them for payments; empty ones if the ledger has no texts."""

    def __init__(self, ledger: pl.DataFrame, account: str) -> None:
        self._rows = ledger.filter(pl.col("account") == account)
        self._heads = {
            credit: _heads(self._rows, is_alike) for credit, is_alike in ((True, _TRANSFER_IN), (False, _TRANSFER_OUT))
        }
        self._direct_debit_heads = _heads(self._rows, _DIRECT_DEBIT)
        self._has_words = bool((ledger["description"] != "").any())
        first_word = pl.col("description").str.extract(r"(\p{L}{2,})")
        share = self._rows.select((first_word == first_word.str.to_uppercase()).mean()).item()
        self._has_capitals = (share or 0) * 2 > 1

    def write(self, rng: Random, day: date, credit: bool, party: str, reference: str) -> str:
        """Return the text of a payment from (`credit`) or to a party."""
        heads = self._heads[credit] or [self._as_bank_writes(f"Transfer {'from' if credit else 'to'} ")]
        return self._after_head(rng, day, heads, f"{party} {reference}")

    def write_direct_debit(self, rng: Random, day: date, party: str, reference: str) -> str:
        """Return the text of a direct debit by a party."""
        heads = self._direct_debit_heads or [self._as_bank_writes("Direct Debit ")]
        return self._after_head(rng, day, heads, f"{party} {reference}")

    def write_like(self, rng: Random, day: date, category: str, otherwise: str) -> str:
        """Return the text of one of the account's rows of a category, with another day and other numbers."""
        texts = self._rows.filter(pl.col("category") == category, pl.col("description") != "")["description"]
        return self._after_head(rng, day, texts.to_list() or [self._as_bank_writes(otherwise)], "")

    def _as_bank_writes(self, text: str) -> str:
        return text.upper() if self._has_capitals else text

    def _after_head(self, rng: Random, day: date, heads: Sequence[str], tail: str) -> str:
        if not self._has_words:
            return ""
        head = _RECEIPT_NUMBER.sub(lambda found: _redraw(rng, found[0]), rng.choice(heads))
        head = PRINTED_DAY.sub(lambda found: f"{day:%d}{found[1]}{day:%b}", head)
        return f"{head}{tail}".strip()


def _heads(rows: pl.DataFrame, is_alike: pl.Expr) -> Sequence[str]:
    """Return what comes before the party's name in the texts of the rows that `is_alike` matches."""
    named = rows.filter(is_alike).select("description", "counterparty").drop_nulls().iter_rows()
    places = [(text, text.lower().find(name.lower())) for text, name in named]
    return [text[:place] for text, place in places if place > 0]


def _redraw(rng: Random, digits: str) -> str:
    return "".join(rng.choice("0123456789") for _ in digits)


class PaymentWriter:
    """Makes payments of one applicant in one account, with sums and texts that fit the account."""

    def __init__(self, applicant: Applicant, rng: Random, account: str | None = None) -> None:
        self.applicant, self.rng = applicant, rng
        self.account = trading_account(applicant.ledger) if account is None else account
        self.wording = Wording(applicant.ledger, self.account)
        self.turnover = monthly_turnover(applicant)
        self.last = applicant.applied_on

    def transfer(self, day: date, amount: Decimal, party: str, reference: str, category: str) -> Movement:
        """Return a transfer from a party, or to it if the amount is negative."""
        text = self.wording.write(self.rng, day, amount > 0, party, reference)
        return Movement(self.account, day, text, amount.quantize(CENT), category, party)

    def direct_debit(self, day: date, amount: Decimal, party: str, reference: str, category: str) -> Movement:
        """Return a direct debit by a party."""
        text = self.wording.write_direct_debit(self.rng, day, party, reference)
        return Movement(self.account, day, text, amount.quantize(CENT), category, party)

    def cash_deposit(self, day: date, amount: Decimal, category: str = "cash_deposit") -> Movement:
        """Return a cash deposit."""
        text = self.wording.write_like(self.rng, day, "cash_deposit", "Cash deposit")
        return Movement(self.account, day, text, amount.quantize(CENT), category)

    def draw_sum(self, share: Decimal, unit: Decimal = CENT) -> Decimal:
        """Draw a sum near a share of a month's turnover."""
        return draw_sum_near(self.rng, self.turnover * share, unit)

    def draw_customer(self) -> str:
        """Draw a customer that pays by transfer, or a made-up one."""
        paid = self.applicant.ledger.filter(
            pl.col("account") == self.account, pl.col("category") == "customer_transfer", _IS_CREDIT
        )
        names = paid["counterparty"].drop_nulls().unique().sort().to_list()
        return self.rng.choice([*names, *CUSTOMERS])

    def insert(self, movements: list[Movement]) -> pl.DataFrame:
        """Insert the movements that lie within the ledger's days."""
        first = first_day(self.applicant.ledger)
        return insert_rows(self.applicant.ledger, [each for each in movements if first <= each.date <= self.last])
