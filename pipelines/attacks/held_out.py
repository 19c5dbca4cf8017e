"""The held-out attacks and lookalikes, written from their descriptions alone, before any rule detected them."""

from collections.abc import Iterator, Mapping
from datetime import date, timedelta
from decimal import Decimal
from itertools import takewhile
from random import Random
from typing import Literal

import polars as pl

from pipelines.attacks.attack import Applicant, Change
from pipelines.attacks.choosing import (
    CUSTOMERS,
    PaymentWriter,
    draw_days,
    draw_invoice,
    first_day,
    next_business_day,
    previous_business_day,
    trading_account,
)
from pipelines.attacks.ledger import Movement, add_account, change_texts, hide_balances, remove_rows
from pipelines.vocabulary.taxonomy import GROUPS

LENDERS = ("Prospa", "Moula", "Lumi", "OnDeck", "Capify", "Bizcap", "ScotPac")
_CENT = Decimal("0.01")
_HUNDRED = Decimal(100)
_ADVERSE = (
    *(category for category, group in GROUPS.items() if group == "distress"),
    "dishonoured_receipt",
    "returned_payment",
    "tax_interest",
    "tax_payment_plan",
    "interest_charged",
)


def round_trip(
    applicant: Applicant,
    rng: Random,
    *,
    count: int = 6,
    share: Decimal = Decimal("0.15"),
    days: int = 1,
    within: int = 80,
    first: Literal["in", "out"] = "in",
) -> pl.DataFrame:
    """Pay sums near `share` of a month's turnover in and back (or out and back) `days` later, with one party."""
    writer = PaymentWriter(applicant, rng)
    party = writer.draw_customer()
    starts = draw_days(rng, applicant.applied_on - timedelta(days=days + 3), within, count)
    return writer.insert(
        [each for start in starts for each in _there_and_back(writer, party, start, share, days, first)]
    )


def _there_and_back(
    writer: PaymentWriter, party: str, start: date, share: Decimal, days: int, first: Literal["in", "out"]
) -> Iterator[Movement]:
    amount = writer.draw_sum(share)
    back = next_business_day(start + timedelta(days=days))
    on_in, on_out = (start, back) if first == "in" else (back, start)
    yield writer.transfer(on_in, amount, party, draw_invoice(writer.rng), "unknown_credit")
    yield writer.transfer(
        on_out, -amount, party, writer.rng.choice(("", "refund", draw_invoice(writer.rng))), "unknown_debit"
    )


def deposit_returned(
    applicant: Applicant, rng: Random, *, count: int = 2, share: Decimal = Decimal("0.15")
) -> pl.DataFrame:
    """Pay deposits for jobs that are cancelled, and return each in full within three weeks."""
    writer = PaymentWriter(applicant, rng)
    made: list[Movement] = []
    for start in draw_days(rng, applicant.applied_on - timedelta(days=25), 300, count):
        party, amount = writer.draw_customer(), writer.draw_sum(share, Decimal(50))
        back = next_business_day(start + timedelta(days=rng.randrange(4, 21)))
        made.append(writer.transfer(start, amount, party, "deposit", "customer_transfer"))
        made.append(writer.transfer(back, -amount, party, "deposit refund", "refund_paid"))
    return writer.insert(made)


def invoice_overpaid(
    applicant: Applicant, rng: Random, *, count: int = 2, share: Decimal = Decimal("0.1")
) -> pl.DataFrame:
    """Let customers pay an invoice twice, and return the second payment some days later."""
    writer = PaymentWriter(applicant, rng)
    made: list[Movement] = []
    for start in draw_days(rng, applicant.applied_on - timedelta(days=20), 300, count):
        party, amount, reference = writer.draw_customer(), writer.draw_sum(share), draw_invoice(rng)
        again = next_business_day(start + timedelta(days=rng.randrange(1, 8)))
        back = next_business_day(again + timedelta(days=rng.randrange(1, 6)))
        made.append(writer.transfer(start, amount, party, reference, "customer_transfer"))
        made.append(writer.transfer(again, amount, party, reference, "customer_transfer"))
        made.append(writer.transfer(back, -amount, party, f"{reference} paid twice", "refund_paid"))
    return writer.insert(made)


def round_trip_delayed(
    applicant: Applicant,
    rng: Random,
    *,
    count: int = 4,
    share: Decimal = Decimal("0.25"),
    least_days: int = 21,
    most_days: int = 42,
    first: Literal["in", "out"] = "in",
) -> pl.DataFrame:
    """Pay sums in and back (or out and back) three to six weeks later, before the application."""
    writer = PaymentWriter(applicant, rng)
    party = writer.draw_customer()
    starts = draw_days(rng, applicant.applied_on - timedelta(days=most_days + 3), 90, count)
    trips = ((start, rng.randint(least_days, most_days)) for start in starts)
    made = [each for start, days in trips for each in _there_and_back(writer, party, start, share, days, first)]
    return writer.insert(made)


def bond_paid_and_returned(
    applicant: Applicant, rng: Random, *, count: int = 1, share: Decimal = Decimal("0.2")
) -> pl.DataFrame:
    """Pay a bond, which comes back in full after one or two months."""
    writer = PaymentWriter(applicant, rng)
    made: list[Movement] = []
    for start in draw_days(rng, applicant.applied_on - timedelta(days=65), 240, count):
        party, amount = rng.choice(CUSTOMERS), writer.draw_sum(share, Decimal(100))
        back = next_business_day(start + timedelta(days=rng.randrange(30, 62)))
        made.append(writer.transfer(start, -amount, party, "bond", "unknown_debit"))
        made.append(writer.transfer(back, amount, party, "bond release", "refund_received"))
    return writer.insert(made)


def money_held_for_others(
    applicant: Applicant, rng: Random, *, count: int = 4, share: Decimal = Decimal("0.25"), fee_percent: int = 4
) -> pl.DataFrame:
    """Receive money for other people, and pass it on to them after some weeks, less a fee."""
    writer = PaymentWriter(applicant, rng)
    made: list[Movement] = []
    for start in draw_days(rng, applicant.applied_on - timedelta(days=45), 250, count):
        payer, payee = rng.sample(CUSTOMERS, 2)
        amount, job = writer.draw_sum(share), rng.randrange(100, 999)
        on = next_business_day(start + timedelta(days=rng.randrange(14, 42)))
        passed_on = (amount * (100 - fee_percent) / 100).quantize(_CENT)
        made.append(writer.transfer(start, amount, payer, f"trust {job}", "unknown_credit"))
        made.append(writer.transfer(on, -passed_on, payee, f"settlement {job}", "unknown_debit"))
    return writer.insert(made)


def month_end_parking(
    applicant: Applicant, rng: Random, *, months: int = 6, share: Decimal = Decimal("0.5"), days: int = 4
) -> pl.DataFrame:
    """Let somebody's money arrive at each month's end and go back within the first days of the next month."""
    writer = PaymentWriter(applicant, rng)
    party = applicant.owner or rng.choice(CUSTOMERS)
    made: list[Movement] = []
    for end in _month_ends(applicant.applied_on, months):
        amount = writer.draw_sum(share, _HUNDRED)
        start = previous_business_day(end)
        back = next_business_day(end + timedelta(days=rng.randint(1, days)))
        made.append(writer.transfer(start, amount, party, "", "unknown_credit"))
        made.append(writer.transfer(back, -amount, party, "", "unknown_debit"))
    return writer.insert(made)


def _month_ends(last: date, months: int) -> list[date]:
    """Return the last days of the latest months that have ended by a day, or end on it, oldest first."""
    ends: list[date] = []
    day = last + timedelta(days=1)
    while len(ends) < months:
        day = day.replace(day=1) - timedelta(days=1)
        ends.append(day)
    return ends[::-1]


def month_end_customer_payments(
    applicant: Applicant, rng: Random, *, months: int = 6, share: Decimal = Decimal("0.5"), margin_percent: int = 15
) -> pl.DataFrame:
    """Let customers pay at each month's end, and pay suppliers out of it in the first days of the next month."""
    writer = PaymentWriter(applicant, rng)
    payers, payees = CUSTOMERS[:4], CUSTOMERS[4:]
    made: list[Movement] = []
    for end in _month_ends(applicant.applied_on, months):
        for payer, payee in zip(payers, payees, strict=True):
            amount = writer.draw_sum(share / len(payers))
            cost = (writer.draw_sum(share / len(payers)) * (100 - margin_percent) / 100).quantize(_CENT)
            on = next_business_day(end + timedelta(days=rng.randint(1, 4)))
            made.append(
                writer.transfer(previous_business_day(end), amount, payer, draw_invoice(rng), "customer_transfer")
            )
            made.append(writer.transfer(on, -cost, payee, draw_invoice(rng), "suppliers"))
    return writer.insert(made)


def loans_stacked(
    applicant: Applicant, rng: Random, *, lenders: int = 3, share: Decimal = Decimal("0.5"), within: int = 30
) -> pl.DataFrame:
    """Let several lenders pay out loans before the application; weekly repayments begin, the money stays."""
    writer = PaymentWriter(applicant, rng)
    chosen = rng.sample(LENDERS, lenders)
    days = draw_days(rng, applicant.applied_on - timedelta(days=2), within, lenders)
    made = [
        each
        for day, lender in zip(days, chosen, strict=True)
        for each in _loan(writer, lender, day, writer.draw_sum(share))
    ]
    return writer.insert(made)


def _loan(writer: PaymentWriter, lender: str, day: date, amount: Decimal) -> Iterator[Movement]:
    """Pay out a loan in whole hundreds, and repay it weekly over a year with 20 % interest."""
    lent = max(_HUNDRED, amount // 100 * 100)
    agreement = f"{writer.rng.randrange(100_000, 999_999)}"
    yield writer.transfer(day, lent, lender, f"loan {agreement}", "term_loan_funding")
    dues = (next_business_day(day + timedelta(weeks=week)) for week in range(1, 53))
    for due in takewhile(lambda due: due <= writer.last, dues):
        yield writer.transfer(due, -lent * Decimal("1.2") / 52, lender, agreement, "term_loan_repayment")


def refinancing(
    applicant: Applicant, rng: Random, *, share: Decimal = Decimal("1.0"), within: int = 30
) -> pl.DataFrame:
    """Let one new lender pay out, and pay off the older lenders with it. A business without a lender stays as it is."""
    writer = PaymentWriter(applicant, rng)
    owing = applicant.ledger.filter(
        pl.col("category").is_in(["term_loan_repayment", "cash_advance_repayment"]), pl.col("amount") < 0
    )
    old = owing["counterparty"].drop_nulls().unique().sort().to_list()
    if not old:
        return applicant.ledger
    day = draw_days(rng, applicant.applied_on - timedelta(days=4), within, 1)[0]
    new = rng.choice([lender for lender in LENDERS if lender not in old])
    amount = writer.draw_sum(share)
    on = next_business_day(day + timedelta(days=rng.randrange(3)))
    paid = (amount * Decimal("0.97") / len(old)).quantize(_CENT)
    final = [writer.transfer(on, -paid, lender, "final payout", "term_loan_repayment") for lender in old]
    return writer.insert([*_loan(writer, new, day, amount), *final])


def equipment_loan(
    applicant: Applicant, rng: Random, *, share: Decimal = Decimal("1.0"), within: int = 40
) -> pl.DataFrame:
    """Let one lender pay out, and buy equipment for nearly all of it within a week."""
    writer = PaymentWriter(applicant, rng)
    day = draw_days(rng, applicant.applied_on - timedelta(days=9), within, 1)[0]
    amount = writer.draw_sum(share)
    on = next_business_day(day + timedelta(days=rng.randrange(1, 7)))
    price = (amount * Decimal("0.96")).quantize(_CENT)
    bought = writer.transfer(on, -price, rng.choice(CUSTOMERS), f"machine {draw_invoice(rng)}", "equipment")
    return writer.insert([*_loan(writer, rng.choice(LENDERS), day, amount), bought])


def adverse_rows_withheld(
    applicant: Applicant,
    rng: Random,
    *,
    share: Decimal = Decimal(1),
    balances: Literal["printed", "corrected", "left_out"] = "printed",
) -> pl.DataFrame:
    """Leave out rows that look bad, and treat the balances as `balances` says. `left_out`: none is printed."""
    ledger = applicant.ledger
    adverse = ledger.filter(pl.col("category").is_in(_ADVERSE))["row"].to_list()
    chosen = sorted(rng.sample(adverse, round(len(adverse) * share)))
    if not chosen:
        return ledger
    left = remove_rows(ledger, chosen, rebalance=balances == "corrected")
    return hide_balances(left, left["row"].to_list()) if balances == "left_out" else left


def export_without_fees(applicant: Applicant, _rng: Random, *, at_most: Decimal = Decimal(30)) -> pl.DataFrame:
    """Leave small account fees and interest out, so that balances jump by them."""
    small = pl.col("category").is_in(["bank_fees", "interest_received"]) & (pl.col("amount").abs() <= at_most)
    return remove_rows(applicant.ledger, applicant.ledger.filter(small)["row"].to_list(), rebalance=False)


def account_withheld(applicant: Applicant, _rng: Random) -> pl.DataFrame:
    """Leave out an account: the one with the most rows that look bad, else the one that is deepest in debt."""
    ledger = applicant.ledger
    ranked = (
        ledger.filter(pl.col("account") != trading_account(ledger))
        .group_by("account", maintain_order=True)
        .agg(adverse=pl.col("category").is_in(_ADVERSE).sum(), closing=pl.col("balance").last(), rows=pl.col("row"))
        .sort("adverse", "closing", descending=[True, False], maintain_order=True)
    )
    return remove_rows(ledger, ranked["rows"][0].to_list()) if ranked.height else ledger


def account_opened_recently(
    applicant: Applicant, rng: Random, *, weeks: int = 8, share: Decimal = Decimal("0.05")
) -> pl.DataFrame:
    """Open a savings account some weeks ago, and put a sum aside in it each week."""
    writer = PaymentWriter(applicant, rng)
    bank = applicant.ledger.filter(pl.col("account") == writer.account)["bank"][0]
    number = f"{rng.randrange(10**8, 10**9)}"
    last = previous_business_day(applicant.applied_on)
    days = [day for week in range(weeks, 0, -1) if (day := last - timedelta(weeks=week)) > first_day(applicant.ledger)]
    saved = [writer.draw_sum(share, Decimal(50)) for _ in days]
    if not days:
        return applicant.ledger
    legs = [
        writer.transfer(day, -amount, "Savings", f"xx{number[-4:]}", "own_transfer")._replace(counterparty=None)
        for day, amount in zip(days, saved, strict=True)
    ]
    rows = pl.DataFrame(
        {
            "account": number,
            "account_type": "savings",
            "bank": bank,
            "date": days,
            "description": [f"Transfer from xx{writer.account[-4:]}" if leg.description else "" for leg in legs],
            "amount": saved,
            "category": "own_transfer",
        }
    ).with_columns(balance=pl.col("amount").cum_sum())
    return add_account(writer.insert(legs), rows)


def own_transfers_as_receipts(
    applicant: Applicant, rng: Random, *, share: Decimal = Decimal(1), parties: int = 3
) -> pl.DataFrame:
    """Give receipts from own accounts the text of customers' payments."""
    writer = PaymentWriter(applicant, rng)
    received = applicant.ledger.filter(
        pl.col("account") == writer.account, pl.col("category") == "own_transfer", pl.col("amount") > 0
    )
    chosen = set(rng.sample(received["row"].to_list(), round(received.height * share)))
    customers = rng.sample(CUSTOMERS, parties)
    texts = {
        row: writer.wording.write(rng, day, True, rng.choice(customers), draw_invoice(rng))
        for row, day in received.select("row", "date").iter_rows()
        if row in chosen
    }
    return change_texts(applicant.ledger, texts)


def equal_amounts_same_day(
    applicant: Applicant, rng: Random, *, count: int = 4, share: Decimal = Decimal("0.1")
) -> pl.DataFrame:
    """Let a customer pay a sum on the same day as an equal sum is paid to a supplier from another account."""
    writer = PaymentWriter(applicant, rng)
    others = applicant.ledger.filter(pl.col("account") != writer.account)["account"].unique(maintain_order=True)
    if others.is_empty():
        return applicant.ledger
    other = PaymentWriter(applicant, rng, rng.choice(others.to_list()))
    made: list[Movement] = []
    for day in draw_days(rng, applicant.applied_on, 250, count):
        amount = writer.draw_sum(share, _HUNDRED)
        made.append(writer.transfer(day, amount, writer.draw_customer(), draw_invoice(rng), "customer_transfer"))
        made.append(other.transfer(day, -amount, rng.choice(CUSTOMERS), draw_invoice(rng), "suppliers"))
    return writer.insert(made)


CHANGES: Mapping[str, Change] = {
    change.__name__: change
    for change in (
        round_trip,
        deposit_returned,
        invoice_overpaid,
        round_trip_delayed,
        bond_paid_and_returned,
        money_held_for_others,
        month_end_parking,
        month_end_customer_payments,
        loans_stacked,
        refinancing,
        equipment_loan,
        adverse_rows_withheld,
        export_without_fees,
        account_withheld,
        account_opened_recently,
        own_transfers_as_receipts,
        equal_amounts_same_day,
    )
}
