"""A business that can have every attack and lookalike."""

from collections.abc import Iterator, Mapping
from datetime import date, timedelta

import polars as pl

from pipelines.attacks.attack import Applicant, Manipulation
from pipelines.attacks.ledger import LEDGER, as_ledger
from pipelines.attacks.registry import attacks, lookalikes

APPLIED = date(2026, 6, 30)
FIRST = date(2025, 7, 1)
CHANGES: Mapping[str, Manipulation] = {**attacks(), **lookalikes()}
Row = tuple[str, str, date, str, str, str, str | None]


def rows() -> Iterator[Row]:
    for week in range(52):
        day = FIRST + timedelta(weeks=week)
        yield (
            "10001",
            "transaction",
            day,
            "Osko Deposit 03Jul18:25 MEI ZHANG inv1",
            "9000.00",
            "customer_transfer",
            "Mei Zhang",
        )
        yield "10001", "transaction", day, "Osko Payment to Ana Vale wages", "-7000.00", "wages", "Ana Vale"
        yield "10001", "transaction", day, "Direct Debit BIGLOAN", "-300.00", "term_loan_repayment", "Bigloan"
        if week % 4 == 0:
            yield "10001", "transaction", day, "Account fee", "-10.00", "bank_fees", None
            yield "10001", "transaction", day, "Direct Debit GYMCO", "-70.00", "fitness", "Gymco"
            yield "10001", "transaction", day, "Returned GYMCO", "70.00", "returned_payment", "Gymco"
            yield "10001", "transaction", day, "Dishonour fee", "-15.00", "dishonour_fee", None
            yield "10001", "transaction", day, "Tfr from xx0002", "500.00", "own_transfer", None
            yield "20002", "savings", day, "Tfr to xx0001", "-500.00", "own_transfer", None
            yield "20002", "savings", day, "Interest", "3.00", "interest_received", None
            yield "10001", "transaction", day, "Eftpos settlement 71824", "2000.00", "card_settlement", None
            yield "10001", "transaction", day, "Cash deposit branch 12", "400.00", "cash_deposit", None
            yield "10001", "transaction", day, "Osko Payment to Mei Zhang refund", "-80.00", "refund_paid", "Mei Zhang"
            yield (
                "10001",
                "transaction",
                day,
                f"Visa Purchase {day:%d%b} Officeworks",
                "-60.00",
                "suppliers",
                "Officeworks",
            )
            yield "10001", "transaction", day, "Garnishee notice ATO", "-90.00", "garnishee", None


def untouched_ledger() -> pl.DataFrame:
    schema = {name: LEDGER[name] for name in ("account", "account_type", "date", "description")}
    further = {"amount": pl.String(), "category": pl.String(), "counterparty": pl.String()}
    frame = pl.DataFrame(list(rows()), schema={**schema, **further}, orient="row")
    exact = frame.with_columns(pl.col("amount").cast(LEDGER["amount"]), bank=pl.lit("Some Bank"))
    return as_ledger(exact.with_columns(balance=pl.col("amount").cum_sum().over("account") + 10_000))


LEDGER_BEFORE = untouched_ledger()
APPLICANT = Applicant(LEDGER_BEFORE, APPLIED, name="Vale Joinery", owner="Tom Vale")


def list_inserted(slug: str, **parameters: object) -> pl.DataFrame:
    after = CHANGES[slug].apply(APPLICANT, "7", **parameters)
    return after.filter(pl.col("touch") == "inserted").sort("date", maintain_order=True)


def list_touched(slug: str, kind: str, **parameters: object) -> pl.DataFrame:
    """Return the rows that the change touched in this way, as they are afterwards."""
    return CHANGES[slug].apply(APPLICANT, "7", **parameters).filter(pl.col("touch") == kind)
