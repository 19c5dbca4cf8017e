"""Facts: what reports and metrics are computed from, each thing worked out once, for one customer or thousands.

Whoever computes something of customers asks here for rows, accounts and balances, and never prepares them again. Only
rows dated up to `as_of` count: a report of today and its replay next year are the same computation.
"""

from collections.abc import Callable
from datetime import date
from functools import cached_property

import polars as pl

from pipelines import schemas
from pipelines.figures import accounts, words
from pipelines.figures.accounts import BY_ACCOUNT
from pipelines.figures.context import NO_CONTEXT, Context
from pipelines.figures.periods import BY_CUSTOMER, booked_month

_PUT = {
    "month": booked_month(),
    "is_external": words.is_external(),
    "money_in": words.money_in(),
    "money_out": words.money_out(),
    "is_revenue": words.is_revenue(),
}


# Columns that no figure looks at: a batch of many customers is read without them.
UNREAD = (
    *("job_id", "client_transaction_id", "account_type_text", "value_date", "location", "card_last_four", "ordinal"),
    *("foreign_amount", "foreign_currency", "intermediaries", "category_basis", "alternatives", "effective_date"),
)
COLUMNS = tuple(name for name in schemas.TRANSACTIONS if name not in UNREAD)


def as_known(transactions: pl.DataFrame, received_seq: int) -> pl.DataFrame:
    """TRANSACTIONS as they stood right after the job with this number of receipt. What enrichment says of them is what
    it says today."""
    stood = (pl.col("since_seq") <= received_seq) & (pl.col("superseded_seq") > received_seq).fill_null(value=True)
    return transactions.filter(stood).with_columns(superseded_seq=pl.lit(None, schemas.TRANSACTIONS["superseded_seq"]))


def _are_sorted(rows: pl.DataFrame) -> bool:
    """Whether rows stand in SORT_KEY's order by its numbers alone, as they do where they are stored: looking is cheaper
    than sorting, which holds everything twice.
    """
    goes_on = pl.lit(value=False)  # of rows with equal numbers nothing is known: they are sorted
    for name in reversed(_NUMBERS):
        step = pl.col(name).diff()
        goes_on = (step > 0) | ((step == 0) & goes_on)
    numbers = rows.lazy().select(pl.col(name).cast(pl.Int64) for name in _NUMBERS)
    return bool(numbers.select(goes_on.slice(1).all()).collect(engine="in-memory").item())


_NUMBERS = ("customer_number", "date", "received_seq", "position")  # SORT_KEY's first


class Facts:
    """Facts of the customers in a frame of TRANSACTIONS, marked history included. Frames are sorted by their keys."""

    def __init__(self, transactions: pl.DataFrame, as_of: date, context: Context = NO_CONTEXT) -> None:
        self.transactions = transactions
        self.as_of = as_of
        self.context = context
        self._kept: dict[Callable[[Facts], pl.DataFrame], pl.DataFrame] = {}

    def once(self, compute: Callable[["Facts"], pl.DataFrame]) -> pl.DataFrame:
        """`compute(self)`, worked out when it is first asked for: what several tables are made from."""
        if compute not in self._kept:
            self._kept[compute] = compute(self)
        return self._kept[compute]

    def of_customer(self, customer_number: int) -> "Facts":
        """The same day's facts of one customer alone."""
        mine = self.transactions.filter(pl.col(BY_CUSTOMER) == customer_number)
        return Facts(mine, self.as_of, self.context.of_customer(customer_number))

    @cached_property
    def customers(self) -> pl.DataFrame:
        """`customer_number` of every customer, posted rows or not: each gets a report."""
        return self.transactions.select(BY_CUSTOMER).unique().sort(BY_CUSTOMER)

    @cached_property
    def rows(self) -> pl.DataFrame:
        """Posted rows dated up to `as_of`, in SORT_KEY's order, with what figures are made of:

        `month` (its first day), `age` (days before the customer's last row), `is_external`, `is_revenue`, and
        `money_in` and `money_out` (AUD, never negative; transfers included).
        """
        counted = self.transactions.lazy().filter(schemas.posted(), pl.col("date") <= self.as_of)
        rows = counted.select(pl.exclude(UNREAD)).collect(engine="in-memory")
        in_order = rows if _are_sorted(rows) else rows.sort(schemas.SORT_KEY)
        age = (pl.col("date").max().over(BY_CUSTOMER) - pl.col("date")).dt.total_days()
        return in_order.with_columns(**_PUT, age=age)

    @cached_property
    def history(self) -> pl.DataFrame:
        """A customer with rows: `customer_number`, `first_date`, `data_through`."""
        dates = pl.col("date")
        return self.rows.group_by(BY_CUSTOMER).agg(first_date=dates.min(), data_through=dates.max()).sort(BY_CUSTOMER)

    @cached_property
    def accounts(self) -> pl.DataFrame:
        """An account: its keys and `accounts.DETAILS`, in the words of the submission received last."""
        return accounts.described(self.rows.lazy()).collect(engine="in-memory").sort(BY_ACCOUNT)

    @cached_property
    def stated_closings(self) -> pl.DataFrame:
        """An account's day with rows, of any kind of account: `accounts.closing_balances`, by account and day."""
        return accounts.closing_balances(self.rows.lazy()).collect(engine="in-memory").sort(*BY_ACCOUNT, "date")

    @cached_property
    def closings(self) -> pl.DataFrame:
        """A cash account's day with rows: what stood in it at the day's end, and for how long that held.

        `customer_number, account_id, date, closing_balance` (null: unknown), `transaction_id` (of the row that states
        it), `credit_limit`, `days_held` (calendar days until the account's next day with rows, or through
        the customer's last row).
        """
        until = pl.coalesce(pl.col("date").shift(-1).over(BY_ACCOUNT), pl.col("data_through") + pl.duration(days=1))
        return (
            self.stated_closings.lazy()
            .join(self.accounts.lazy().filter(words.is_cash_account()), on=BY_ACCOUNT, how="inner", validate="m:1")
            .join(self.history.lazy(), on=BY_CUSTOMER, how="left", validate="m:1")
            .sort(*BY_ACCOUNT, "date")
            .select(
                *BY_ACCOUNT,
                "date",
                "closing_balance",
                "transaction_id",
                "credit_limit",
                days_held=(until - pl.col("date")).dt.total_days(),
            )
            .collect(engine="in-memory")
        )
