"""Convert the synthetic portfolio to accepted rows with the true labels."""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from decimal import Decimal
from uuid import UUID

import polars as pl

from pipelines.intake.accounts import identify
from pipelines.intake.as_sent import temporary_digest
from pipelines.synthetic import LABELLED, Business, Person, SyntheticAccount
from pipelines.vocabulary.schemas import ACCEPTED, MONEY, AccountType

RECEIVED = datetime(2026, 11, 1, tzinfo=UTC)
TRUTH = (
    "category",
    "counterparty",
    "transfer_pair",
    "series",
    "series_period",
    "facility",
    "held_out",
    "injected",
    "lookalike",
)


def in_groups(customers: Iterable[Business | Person], rows: int) -> Iterator[pl.DataFrame]:
    """Yield rows of ACCEPTED with `true_…` columns, about `rows` at a time, of whole customers.

    The n-th customer has the number n, and its rows are one submission.
    """
    group: list[pl.DataFrame] = []
    for number, customer in enumerate(customers, start=1):
        group.append(_of_customer(number, customer))
        if sum(frame.height for frame in group) >= rows:
            yield pl.concat(group)
            group = []
    if group:
        yield pl.concat(group)


def accept_all(customers: Iterable[Business | Person]) -> pl.DataFrame:
    """Return the rows of all customers at once."""
    return pl.concat(in_groups(customers, 1))


def _of_customer(number: int, customer: Business | Person) -> pl.DataFrame:
    customer_id = UUID(int=number)
    rows = pl.concat([_of_account(customer_id, account) for account in customer.accounts]).with_row_index("position")
    filled = rows.with_columns(
        customer_number=pl.lit(number, pl.Int64),
        job_id=pl.lit(customer_id.bytes),
        received_seq=pl.lit(number, pl.Int64),
        received_at=pl.lit(RECEIVED),
        appended=pl.lit(value=False),
        status=pl.lit("posted"),
    )
    blank = [pl.lit(None, kind).alias(name) for name, kind in ACCEPTED.items() if name not in filled.columns]
    truth = pl.col([f"true_{name}" for name in TRUTH])
    return filled.with_columns(blank).select(*(pl.col(name).cast(kind) for name, kind in ACCEPTED.items()), truth)


def _of_account(customer: UUID, account: SyntheticAccount) -> pl.DataFrame:
    identified, _ = identify(
        customer,
        account_name=account.account_name,
        bsb=account.bsb,
        account_number=account.account_number,
        bank_name=account.bank_name,
        account_type=account.account_type,
        credit_limit=None if account.credit_limit is None else Decimal(account.credit_limit),
        digest=temporary_digest,
    )
    return account.transactions.filter(pl.col("injected").ne_missing("duplicate")).select(
        "date",
        "description",
        "amount",
        "balance",
        client_transaction_id="transaction_id",
        account_id=pl.lit(identified.account_id.bytes),
        account_identified=pl.lit(value=True),
        account_name=pl.lit(account.account_name),
        bsb=pl.lit(account.bsb),
        account_number=pl.lit(account.account_number),
        bank_name=pl.lit(account.bank_name),
        account_type=pl.lit(account.account_type, AccountType),
        credit_limit=pl.lit(account.credit_limit).cast(MONEY),
        **{f"true_{name}": pl.col(name).cast(LABELLED[name]) for name in TRUTH},
    )
