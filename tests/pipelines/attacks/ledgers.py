"""Small ledgers for tests, and what makes one consistent."""

from datetime import date, timedelta
from decimal import Decimal
from itertools import accumulate

import polars as pl
from hypothesis import strategies as st

from pipelines.attacks.ledger import LEDGER, as_ledger

FIRST = date(2026, 1, 1)


def account(number: str, *amounts: str, opening: str = "100.00", printed: bool = True) -> pl.DataFrame:
    """Return an account with one row a day from FIRST."""
    exact = [Decimal(amount) for amount in amounts]
    balances = list(accumulate(exact, initial=Decimal(opening)))[1:]
    return pl.DataFrame(
        {
            "account": [number] * len(exact),
            "date": [FIRST + timedelta(days=nth) for nth in range(len(exact))],
            "description": [f"row {nth}" for nth in range(len(exact))],
            "amount": exact,
            "balance": balances if printed else [None] * len(exact),
        },
        schema={name: LEDGER[name] for name in ("account", "date", "description", "amount", "balance")},
    )


def ledger(*accounts: pl.DataFrame) -> pl.DataFrame:
    return as_ledger(pl.concat(accounts))


def breaks(of: pl.DataFrame) -> list[Decimal]:
    """Return by how much each printed balance differs from the one before plus the amounts since, if it does."""
    implied = pl.col("balance") - pl.col("amount").cum_sum().over("account")
    openings = of.with_columns(implied=implied).filter(pl.col("balance").is_not_null())
    steps = openings.select(pl.col("implied").diff().over("account")).to_series().drop_nulls()
    return [step for step in steps if step]


def balances(of: pl.DataFrame) -> list[str | None]:
    return [None if balance is None else str(balance) for balance in of["balance"]]


CENTS = st.integers(-10_000_000, 10_000_000).map(lambda cents: Decimal(cents).scaleb(-2))


@st.composite
def any_ledger(draw: st.DrawFn) -> pl.DataFrame:
    """Draw one to three accounts, some of whose balances are not printed."""
    parts = []
    for number in range(draw(st.integers(1, 3))):
        amounts = draw(st.lists(CENTS, min_size=1, max_size=12))
        rows = account(str(number), *map(str, amounts), opening=str(draw(CENTS)))
        hidden = draw(st.lists(st.booleans(), min_size=rows.height, max_size=rows.height))
        parts.append(rows.with_columns(balance=pl.when(~pl.Series(hidden)).then("balance")))
    return ledger(*parts)
