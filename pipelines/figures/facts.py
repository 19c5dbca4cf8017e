"""Facts: the rows, accounts and balances that reports and metrics are computed from, for one customer or thousands.

Each fact is computed once and cached here; no report or metric prepares it again. Only rows dated up to `as_of` count,
so today's report and its replay next year are the same computation.
"""

from collections.abc import Callable
from datetime import date
from functools import cached_property

import polars as pl

from pipelines.figures import accounts, words
from pipelines.figures.accounts import BY_ACCOUNT
from pipelines.figures.context import NO_CONTEXT, Context
from pipelines.figures.periods import BY_CUSTOMER, age, days_behind, posted_month
from pipelines.vocabulary import schemas
from pipelines.vocabulary.checkpoints import checkpoint
from pipelines.vocabulary.places import sort_rows
from pipelines.vocabulary.plans import collect, collect_groups

_ROW_COLUMNS = {
    "month": posted_month(),
    "is_external": words.is_external(),
    "money_in": words.money_in(),
    "money_out": words.money_out(),
    "is_revenue": words.is_revenue(),
    "is_unreconciled": words.is_unreconciled(),
}


# Of a row, this is what its own submission stated, which may be nothing: a figure reads it of the account.
OF_ACCOUNT = "account_type"
# Columns that no figure uses: leaving them out saves memory when many customers are read.
NOT_READ = (
    *("job_id", "client_transaction_id", "account_type_text", "value_date", "location", "card_last_four", "ordinal"),
    *("foreign_amount", "foreign_currency", "intermediaries", "category_basis", "alternatives", "effective_date"),
    *("statement_id", "client_transaction_id_digest", "description_digest", "read_by", "as_read"),
)
COLUMNS = tuple(name for name in schemas.TRANSACTIONS if name not in NOT_READ)


def select_as_known(transactions: pl.DataFrame, received_seq: int) -> pl.DataFrame:
    """Return TRANSACTIONS as they were right after the job with this `received_seq`.

    Their enrichment is today's, not that of the time.
    """
    was_retracted = (pl.col("retracted_seq") <= received_seq).fill_null(value=False)
    return transactions.filter(pl.col("since_seq") <= received_seq, ~was_retracted).with_columns(
        superseded_seq=pl.when(pl.col("superseded_seq") <= received_seq).then("superseded_seq"),
        retracted_seq=pl.lit(None, schemas.TRANSACTIONS["retracted_seq"]),
    )


class Facts:
    """Facts of the customers in a frame of TRANSACTIONS, superseded rows included. Frames are sorted by their keys."""

    def __init__(self, transactions: pl.DataFrame, as_of: date, context: Context = NO_CONTEXT) -> None:
        self.transactions = transactions
        self.as_of = as_of
        self.context = context
        self._cached: dict[Callable[[Facts], pl.DataFrame], pl.DataFrame] = {}

    def cached(self, compute: Callable[["Facts"], pl.DataFrame]) -> pl.DataFrame:
        """Return `compute(self)`, computed on the first call only, because several tables share it."""
        if compute not in self._cached:
            checkpoint()
            self._cached[compute] = compute(self)
        return self._cached[compute]

    def of_customer(self, customer_number: int) -> "Facts":
        """Return the facts of one customer, as of the same day."""
        own = self.transactions.filter(pl.col(BY_CUSTOMER) == customer_number)
        return Facts(own, self.as_of, self.context.of_customer(customer_number))

    @cached_property
    def customers(self) -> pl.DataFrame:
        """`customer_number` of every customer, even without posted rows: each gets a report."""
        return self.transactions.select(BY_CUSTOMER).unique().sort(BY_CUSTOMER)

    @cached_property
    def rows(self) -> pl.DataFrame:
        """Posted rows dated up to `as_of`, sorted by SORT_KEY, with the columns that figures are made of; OF_ACCOUNT is
        added by `add_account_type`.

        Added: `month` (its first day), `age` (days before the customer's last row), `is_external`, `is_revenue`,
        `is_unreconciled`, and `money_in` and `money_out` (AUD, never negative; transfers included).
        """
        counted = self.transactions.lazy().filter(schemas.posted(), pl.col("date") <= self.as_of)
        rows = counted.select(pl.exclude(*NOT_READ, OF_ACCOUNT)).pipe(collect)
        return sort_rows(rows).with_columns(pl.col(BY_CUSTOMER).set_sorted(), **_ROW_COLUMNS, age=age())

    @cached_property
    def history(self) -> pl.DataFrame:
        """One row per customer with rows: `customer_number`, `first_date`, `data_through`."""
        first, last = pl.col("date").first(), pl.col("date").last()
        by_customer = self.rows.lazy().group_by(BY_CUSTOMER, maintain_order=True)
        return by_customer.agg(first_date=first, data_through=last).pipe(collect)

    @property
    def days_behind(self) -> pl.Expr:
        """Expression over `history`: days from a customer's last row to `as_of`."""
        return days_behind(self.as_of)

    shares_rows = False  # True in a subclass whose customers are snapshots: one customer on several days

    @property
    def shared_rows(self) -> pl.DataFrame:
        """`rows`. If customers are snapshots (`shares_rows`): the rows that they share, each once."""
        return self.rows

    @property
    def whole(self) -> "Facts":
        """These facts. If customers are snapshots: the facts of the customers whose rows they share."""
        return self

    @property
    def place(self) -> pl.Expr:
        """Expression over `history`: the customer's index among the customers of `shared_rows`."""
        return pl.int_range(pl.len(), dtype=pl.Int64)

    @cached_property
    def accounts(self) -> pl.DataFrame:
        """One row per account with rows: its keys and `accounts.DETAILS`."""
        return accounts.describe_accounts(self.stated_details.lazy()).sort(BY_ACCOUNT).pipe(collect)

    @cached_property
    def stated_details(self) -> pl.DataFrame:
        """`accounts.state_details` of rows dated up to `as_of`, sorted by customer and date."""
        by_then = self.transactions.lazy().filter(pl.col("date") <= self.as_of)
        return accounts.state_details(by_then).sort(BY_CUSTOMER, "date").pipe(collect_groups, self.transactions.height)

    def add_account_type(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Add `account_type` to rows of these facts: the type of the row's account, as in `accounts`."""
        types = self.accounts.lazy().select(*BY_ACCOUNT, OF_ACCOUNT)
        typed = rows.lazy().join(types, on=BY_ACCOUNT, how="left", validate="m:1", maintain_order="left")
        return typed.with_columns(pl.col(BY_CUSTOMER).set_sorted()).pipe(collect)

    @cached_property
    def stated_closings(self) -> pl.DataFrame:
        """`accounts.closing_balances` of all accounts, cash or not."""
        return accounts.closing_balances(self.rows.lazy()).pipe(collect_groups, self.rows.height)

    @cached_property
    def closings(self) -> pl.DataFrame:
        """Closing balances of cash accounts as stated, one row per account and day with rows.

        `customer_number, account_id, date, closing_balance` (null: unknown), `transaction_id` (of the row that states
        it), `credit_limit`, `days_held` (calendar days until the account's next day with rows, or through
        the customer's last row).
        """
        return self._describe_closings(self.stated_closings).with_columns(
            transaction_id=pl.when(pl.col("closing_balance").is_not_null()).then("transaction_id")
        )

    @cached_property
    def derived_closings(self) -> pl.DataFrame:
        """`closings` of the accounts that state any balance; `accounts.derive_unknown` fills the unknown ones."""
        return self._describe_closings(accounts.derive_unknown(self.stated_closings)).drop_nulls("closing_balance")

    def _describe_closings(self, closings: pl.DataFrame) -> pl.DataFrame:
        cash = self.accounts.lazy().filter(words.is_cash_account()).select(*BY_ACCOUNT, "credit_limit")
        described = cash.join(self.history.lazy(), on=BY_CUSTOMER, how="left", validate="m:1")
        goes_on = pl.all_horizontal(pl.col(name).eq_missing(pl.col(name).shift(-1)) for name in BY_ACCOUNT)
        ended = pl.col("data_through") + pl.duration(days=1)
        until = pl.when(goes_on).then(pl.col("date").shift(-1)).otherwise(ended)
        return (
            closings.lazy()
            .join(described, on=BY_ACCOUNT, how="inner", validate="m:1", maintain_order="left")
            .select(
                *BY_ACCOUNT,
                "date",
                "closing_balance",
                "transaction_id",
                "credit_limit",
                days_held=(until - pl.col("date")).dt.total_days(),
            )
            .pipe(collect)
        )
