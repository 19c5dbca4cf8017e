"""Attacks and lookalikes that change, move or leave out existing rows.

Each is written from its paragraph in `attacks.yaml`. Its defaults are our judgement of what an applicant would dare.
"""

import re
from collections.abc import Collection, Mapping
from datetime import date, timedelta
from decimal import Decimal
from random import Random
from typing import Literal

import polars as pl

from pipelines.attacks.attack import Applicant, Change
from pipelines.attacks.choosing import (
    CENT,
    Wording,
    is_receipt,
    next_business_day,
    previous_business_day,
    trading_account,
)
from pipelines.attacks.ledger import add_account, change_amounts, change_texts, move_rows, remove_rows
from pipelines.vocabulary.taxonomy import GROUPS

Balances = Literal["printed", "corrected"]
"""What happens to the printed balances: they stay and show the change, or are corrected to agree with it."""

DISTRESS = tuple(slug for slug, group in GROUPS.items() if group == "distress")
ADVERSE = (*DISTRESS, "tax_interest", "fines", "gambling")
REFUNDS = ("refund_paid", "chargeback", "dishonoured_receipt")
FIXED_COSTS = ("rent", "insurance", "bank_fees", "telecommunications", "term_loan_repayment", "asset_finance_repayment")
HARMLESS = {  # the category that a bad row is made to look like, and the text if the account has no row of it
    "garnishee": ("suppliers", "Boronia Wholesale"),
    "dishonour_fee": ("bank_fees", "Account fee"),
    "overdrawn_fee": ("bank_fees", "Account fee"),
    "late_fee": ("bank_fees", "Account fee"),
    "debt_collector": ("professional_fees", "Ellery Accountants"),
    "insolvency": ("professional_fees", "Ellery Accountants"),
    "payday_credit": ("customer_transfer", "Lomandra Interiors"),
    "tax_interest": ("utilities", "Origin Energy"),
    "fines": ("parking", "Secure Parking"),
    "gambling": ("meals", "Corner Cafe"),
    "term_loan_repayment": ("software", "Xero subscription"),
    "cash_advance_repayment": ("software", "Xero subscription"),
}
_BY_CARD = "(?i)purchase|visa|eftpos|foreign|intl"


def month_withheld(
    applicant: Applicant,
    rng: Random,
    *,
    accounts: Literal["all", "one"] | None = None,
    balances: Balances | None = None,
) -> pl.DataFrame:
    """Leave out all rows of the worst month of the last twelve.

    Args:
        accounts: `all`, or `one`: the trading account; drawn if None.
        balances: drawn if None.
    """
    ledger = applicant.ledger
    touched = accounts or rng.choice(("all", "one"))
    in_month = pl.col("date").dt.month_start() == _worst_month(applicant)
    in_account = pl.lit(value=True) if touched == "all" else pl.col("account") == trading_account(ledger)
    stays = balances or rng.choice(("printed", "corrected"))
    return remove_rows(ledger, _row_numbers(ledger, in_month & in_account), rebalance=stays == "corrected")


def _worst_month(applicant: Applicant) -> date | None:
    """Return the worst complete month of the last year: least receipts, less three times the amounts of bad rows."""
    month, this_month = pl.col("date").dt.month_start(), applicant.applied_on.replace(day=1)
    worth = pl.when(is_receipt()).then("amount").when(pl.col("category").is_in(ADVERSE)).then(pl.col("amount") * 3)
    months = applicant.ledger.group_by(month=month).agg(worth=worth.sum()).sort("month")[1:]
    of_year = pl.col("month").is_between(this_month - timedelta(days=365), this_month, closed="left")
    worst: date | None = months.filter(of_year).sort("worth", "month")["month"].first()  # pyrefly: ignore[bad-assignment]
    return worst


def quiet_month(applicant: Applicant, rng: Random) -> pl.DataFrame:
    """Close the business for a month: only fixed costs, own transfers and card repayments stay. Balances agree."""
    last = applicant.applied_on - timedelta(days=rng.randrange(45, 300))
    in_month = pl.col("date").is_between(last - timedelta(days=rng.randrange(25, 33)), last)
    stays = pl.col("category").is_in((*FIXED_COSTS, "own_transfer", "card_repayment")).fill_null(value=False)
    return remove_rows(applicant.ledger, _row_numbers(applicant.ledger, in_month & ~stays))


def texts_blanked(
    applicant: Applicant, rng: Random, *, share: Decimal | None = None, text: str | None = None
) -> pl.DataFrame:
    """Empty the descriptions of rows that look bad, or replace them by dashes.

    Args:
        share: of the other rows, how many lose their descriptions, too; 0 or 0.3 is drawn if None.
        text: what replaces the descriptions; drawn if None.
    """
    ledger = applicant.ledger
    others = rng.choice((Decimal(0), Decimal("0.3"))) if share is None else share
    blank = rng.choice(("", "-", "---")) if text is None else text
    bad = set(_row_numbers(ledger, _is_adverse()))
    hidden = [row for row in _row_numbers(ledger, pl.col("description") != "") if row in bad or rng.random() < others]
    return change_texts(ledger, dict.fromkeys(hidden, blank))


def bank_shortens_texts(applicant: Applicant, rng: Random, *, length: int | None = None) -> pl.DataFrame:
    """Cut every text of the trading account, or print nothing but the kind of row where the text names one.

    Args:
        length: characters that stay; 0: the kind of row alone; drawn if None.
    """
    stays = rng.choice((0, 14, 18, 22)) if length is None else length
    named = _texts_by_row(applicant.ledger, pl.col("account") == trading_account(applicant.ledger))
    short = {row: text[:stays].strip() if stays else _kind_of(text) for row, text in named.items()}
    return change_texts(applicant.ledger, {row: text for row, text in short.items() if text != named[row]})


def _kind_of(text: str) -> str:
    """Return "Direct debit" or "Transfer" for such rows, and other texts as they are."""
    if re.search("(?i)direct debit", text):
        return "Direct debit"
    return "Transfer" if re.search("(?i)transfer|osko|pay ?anyone|direct credit|tfr", text) else text


def adverse_texts_reworded(applicant: Applicant, rng: Random, *, loans: bool = True) -> pl.DataFrame:
    """Give rows that look bad the texts of harmless rows of the same account.

    Args:
        loans: whether instalments to lenders get such texts, too.
    """
    ledger = applicant.ledger
    bad = ledger.filter(_is_adverse() | (pl.col("category").is_in(list(HARMLESS)) & pl.lit(loans)))
    wordings = {account: Wording(ledger, account) for account in bad["account"].unique(maintain_order=True)}
    texts = {
        row: wordings[account].write_like(rng, day, *HARMLESS[category])
        for row, account, day, category in bad.select("row", "account", "date", "category").iter_rows()
    }
    return change_texts(ledger, texts)


def bank_renames_texts(applicant: Applicant, rng: Random) -> pl.DataFrame:
    """Word all rows of the trading account in a new way from one day on; the parties' names stay."""
    start = applicant.applied_on - timedelta(days=rng.randrange(30, 300))
    later = (pl.col("account") == trading_account(applicant.ledger)) & (pl.col("date") >= start)
    heads = rng.choice((("Payment received", "Payment made"), ("CR", "DR"), ("Inward Credit", "Outward Debit")))
    rows = applicant.ledger.filter(later, pl.col("description") != "")
    named = rows.select("row", "description", "counterparty", "amount").iter_rows()
    return change_texts(
        applicant.ledger,
        {row: f"{heads[amount < 0]}: {_from_name_on(text, party)}" for row, text, party, amount in named},
    )


def _from_name_on(text: str, party: str | None) -> str:
    """Return the text from the party's name on, or all of it."""
    return text[max(0, text.lower().find(party.lower())) if party else 0 :].title()


def dishonours_withheld(applicant: Applicant, _rng: Random, *, within: int = 5) -> pl.DataFrame:
    """Leave out returned payments, each with the payment that came back.

    Args:
        within: days from a payment to its return, at most.
    """
    ledger, left_out = applicant.ledger, list[int]()
    paid = ledger.filter(pl.col("amount") < 0).select("row", "account", "amount", "date").rows()
    returned = ledger.filter(pl.col("category") == "returned_payment", pl.col("amount") > 0)
    for row, account, amount, day in returned.select("row", "account", "amount", "date").iter_rows():
        payments = [
            number
            for number, at, sent, on in paid
            if (at, sent) == (account, -amount) and 0 <= (day - on).days <= within and number not in left_out
        ]
        left_out += [row, payments[-1]] if payments else []
    return remove_rows(ledger, left_out)


def dishonour_fees_charged_later(applicant: Applicant, _rng: Random) -> pl.DataFrame:
    """Charge the fees for dishonours on the last business day of their month."""
    fees = applicant.ledger.filter(pl.col("category") == "dishonour_fee").select("row", pl.col("date").dt.month_end())
    later = {row: previous_business_day(day) for row, day in fees.iter_rows()}
    return move_rows(applicant.ledger, {row: min(day, applicant.applied_on) for row, day in later.items()})


def refunds_hidden(
    applicant: Applicant,
    rng: Random,
    *,
    method: Literal["removal", "text"] | None = None,
    balances: Balances | None = None,
) -> pl.DataFrame:
    """Leave refunds, chargebacks and returned receipts out, or give them the text of a purchase.

    Args:
        method: `removal` or `text`; drawn if None.
        balances: after a removal; drawn if None.
    """
    ledger = applicant.ledger
    refunds = ledger.filter(pl.col("category").is_in(REFUNDS), pl.col("amount") < 0)
    if (method or rng.choice(("removal", "text"))) == "removal":
        stays = balances or rng.choice(("printed", "corrected"))
        return remove_rows(ledger, refunds["row"].to_list(), rebalance=stays == "corrected")
    wordings = {account: Wording(ledger, account) for account in refunds["account"].unique(maintain_order=True)}
    rows = refunds.select("row", "account", "date").iter_rows()
    return change_texts(ledger, {row: wordings[at].write_like(rng, day, *_A_PURCHASE) for row, at, day in rows})


_A_PURCHASE = ("suppliers", "Boronia Wholesale")


def refunds_netted_by_processor(applicant: Applicant, rng: Random) -> pl.DataFrame:
    """Deduct refunds from the next card settlement, instead of posting them, from some month on."""
    start = (applicant.applied_on - timedelta(days=rng.randrange(60, 300))).replace(day=1)
    later = applicant.ledger.filter(pl.col("date") >= start)
    settlements = later.filter(pl.col("category") == "card_settlement").select("row", "date", "amount").rows()
    amounts, netted = {row: amount for row, _, amount in settlements}, list[int]()
    refunds = later.filter(pl.col("category").is_in(REFUNDS[:2]), pl.col("amount") < 0)
    for refund, day, amount in refunds.select("row", "date", "amount").iter_rows():
        following = (row for row, on, _ in settlements if on >= day and amounts[row] + amount > 0)
        if (settlement := next(following, None)) is not None:
            amounts[settlement] += amount
            netted.append(refund)
    smaller = {row: amounts[row] for row, _, amount in settlements if amounts[row] != amount}
    return remove_rows(change_amounts(applicant.ledger, smaller), netted)


def receipts_backdated(
    applicant: Applicant, rng: Random, *, share: Decimal = Decimal("0.4"), within: int = 45
) -> pl.DataFrame:
    """Move receipts of the last weeks to earlier months, within the history. Texts keep the day that they print.

    Args:
        share: of those receipts, how many are moved.
        within: days before the application whose receipts are moved.
    """
    ledger = applicant.ledger
    recent = pl.col("date") > applicant.applied_on - timedelta(days=within)
    in_account = pl.col("account") == trading_account(ledger)
    first: date = ledger.filter(in_account)["date"].min()  # pyrefly: ignore[bad-assignment]
    rows = ledger.filter(recent, in_account, is_receipt()).select("row", "date").iter_rows()
    moved = {
        row: previous_business_day(day - timedelta(days=rng.randrange(60, 200)))
        for row, day in rows
        if rng.random() < share
    }
    return move_rows(ledger, {row: max(first, day) for row, day in moved.items()})


def late_booking(applicant: Applicant, rng: Random, *, share: Decimal = Decimal("0.5")) -> pl.DataFrame:
    """Post a share of the card and foreign payments some days after the day that their texts print."""
    paid_by_card = pl.col("description").str.contains(_BY_CARD) & ~is_receipt()
    rows = applicant.ledger.filter(paid_by_card).select("row", "date").iter_rows()
    later = {
        row: next_business_day(day + timedelta(days=rng.randrange(1, 6))) for row, day in rows if rng.random() < share
    }
    return move_rows(applicant.ledger, {row: day for row, day in later.items() if day <= applicant.applied_on})


def amounts_inflated(
    applicant: Applicant, rng: Random, *, raised_by: Decimal | None = None, balances: Balances | None = None
) -> pl.DataFrame:
    """Raise all receipts of the last 180 days by a share, or put a digit in front of one in fifteen.

    Args:
        raised_by: the share; 0: a digit in front; drawn if None.
        balances: drawn if None.
    """
    ledger = applicant.ledger
    raised = rng.choice((Decimal(0), Decimal("0.15"), Decimal("0.3"))) if raised_by is None else raised_by
    recent = pl.col("date") > applicant.applied_on - timedelta(days=180)
    amounts = _amounts_by_row(ledger, recent & is_receipt())
    if raised:
        changed = {row: _raise(amount, raised) for row, amount in amounts.items()}
    else:
        chosen = rng.sample(sorted(amounts), -(-len(amounts) // 15))
        changed = {row: Decimal(f"{rng.randrange(1, 3)}{amounts[row]}") for row in chosen}
    stays = balances or rng.choice(("printed", "corrected"))
    return change_amounts(ledger, changed, rebalance=stays == "corrected")


def prices_raised(applicant: Applicant, rng: Random, *, raised_by: Decimal | None = None) -> pl.DataFrame:
    """Raise all receipts by the same share from some month on; balances agree."""
    raised = Decimal(rng.randrange(6, 16)) / 100 if raised_by is None else raised_by
    start = (applicant.applied_on - timedelta(days=rng.randrange(60, 240))).replace(day=1)
    amounts = _amounts_by_row(applicant.ledger, (pl.col("date") >= start) & is_receipt())
    return change_amounts(applicant.ledger, {row: _raise(amount, raised) for row, amount in amounts.items()})


def account_supplied_twice(
    applicant: Applicant, rng: Random, *, wording: Literal["same", "capitals"] | None = None, adverse: bool = True
) -> pl.DataFrame:
    """Supply the trading account again under another number.

    Args:
        wording: of the second copy: `same`, or `capitals`: in capitals, cut to 22 characters; drawn if None.
        adverse: whether the second copy has the rows that look bad.
    """
    ledger = applicant.ledger
    printed = wording or rng.choice(("same", "capitals"))
    text = pl.col("description") if printed == "same" else pl.col("description").str.to_uppercase().str.head(22)
    copied = ledger.filter(pl.col("account") == trading_account(ledger))
    if not adverse:
        copied = remove_rows(copied, _row_numbers(copied, _is_adverse()))
    number = pl.lit(str(rng.randrange(10**7, 10**8)))
    return add_account(ledger, copied.drop("row", "touch").with_columns(account=number, description=text))


def second_shop(applicant: Applicant, rng: Random, *, size: Decimal | None = None) -> pl.DataFrame:
    """Add the account of a second shop with the same fixed costs on the same days, and trade of its own.

    Args:
        size: of its receipts and purchases, as a share of the first shop's; 0.3 to 0.8 is drawn if None.
    """
    ledger = applicant.ledger
    share = Decimal(rng.randrange(30, 81)) / 100 if size is None else size
    first = ledger.filter(pl.col("account") == trading_account(ledger))
    is_trade = (is_receipt() | (pl.col("category") == "suppliers")).fill_null(value=False)
    is_shared = pl.col("category").is_in(FIXED_COSTS).fill_null(value=False)
    copied = {row for row in _row_numbers(first, is_trade) if rng.random() < share}
    copied.update(_row_numbers(first, is_shared))
    rows = remove_rows(first, [row for row in first["row"] if row not in copied])
    traded = {row: _raise(amount, share - 1) for row, amount in _amounts_by_row(rows, ~is_shared).items()}
    shop = change_amounts(rows, traded).drop("row", "touch")
    return add_account(ledger, shop.with_columns(account=pl.lit(str(rng.randrange(10**7, 10**8)))))


def _is_adverse() -> pl.Expr:
    return pl.col("category").is_in(ADVERSE)


def _row_numbers(ledger: pl.DataFrame, chosen: pl.Expr) -> Collection[int]:
    return ledger.filter(chosen)["row"].to_list()


def _texts_by_row(ledger: pl.DataFrame, chosen: pl.Expr) -> Mapping[int, str]:
    return dict(ledger.filter(chosen, pl.col("description") != "").select("row", "description").iter_rows())


def _amounts_by_row(ledger: pl.DataFrame, chosen: pl.Expr) -> Mapping[int, Decimal]:
    return dict(ledger.filter(chosen).select("row", "amount").iter_rows())


def _raise(amount: Decimal, share: Decimal) -> Decimal:
    return (amount * (1 + share)).quantize(CENT)


CHANGES: Mapping[str, Change] = {
    each.__name__: each
    for each in (
        month_withheld,
        quiet_month,
        texts_blanked,
        bank_shortens_texts,
        adverse_texts_reworded,
        bank_renames_texts,
        dishonours_withheld,
        dishonour_fees_charged_later,
        refunds_hidden,
        refunds_netted_by_processor,
        receipts_backdated,
        late_booking,
        amounts_inflated,
        prices_raised,
        account_supplied_twice,
        second_shop,
    )
}
