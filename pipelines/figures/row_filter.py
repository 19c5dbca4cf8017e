"""Choose transactions by what they are, and add up their amounts."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from functools import partial
from typing import Any
from uuid import UUID

import polars as pl


@dataclass(frozen=True)
class RowFilter:
    """Conditions on transactions (TRANSACTIONS), all of which must be true. Those that are None don't apply."""

    first_day: date | None = None
    last_day: date | None = None
    text: str | None = None  # part of the description, in any case
    category: str | None = None
    account_id: UUID | None = None
    direction: str | None = None
    status: str | None = None
    least: Decimal | None = None  # of the amount without its sign, as the next
    most: Decimal | None = None
    flag: str | None = None
    transaction_id: UUID | None = None
    transaction_ids: tuple[UUID, ...] | None = None  # any of these

    @property
    def conditions(self) -> list[pl.Expr]:
        size = pl.col("amount").abs()
        lowered = pl.col("description").str.to_lowercase()
        comparisons: Iterable[tuple[Callable[[Any], pl.Expr], object]] = (
            (pl.col("date").ge, self.first_day),
            (pl.col("date").le, self.last_day),
            (partial(lowered.str.contains, literal=True), None if self.text is None else self.text.lower()),
            (pl.col("category").eq, self.category),
            (pl.col("account_id").eq, self.account_id and self.account_id.bytes),
            (pl.col("direction").eq, self.direction),
            (pl.col("status").eq, self.status),
            (size.ge, self.least),
            (size.le, self.most),
            (pl.col("flags").list.contains, self.flag),
            (pl.col("transaction_id").eq, self.transaction_id and self.transaction_id.bytes),
            (pl.col("transaction_id").is_in, self.transaction_ids and [each.bytes for each in self.transaction_ids]),
        )
        return [compare(value) for compare, value in comparisons if value is not None]


@dataclass(frozen=True)
class Totals:
    """Sums of transactions' amounts, in AUD. `money_out` isn't negative."""

    count: int
    money_in: Decimal
    money_out: Decimal

    @property
    def net(self) -> Decimal:
        return self.money_in - self.money_out


NO_ROWS = Totals(0, Decimal(0), Decimal(0))


def total(rows: pl.LazyFrame) -> Totals:
    """Count the rows, and add up their amounts."""
    amount = pl.col("amount")
    sums = (amount.filter(amount > 0).sum(), -amount.filter(amount < 0).sum().alias("money_out"))
    return Totals(*rows.select(pl.len(), *sums).collect().row(0))
