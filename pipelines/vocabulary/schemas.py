"""The columns of every frame that intake, enrichment, reports and storage share.

Units: money is AUD as `Decimal(18, 2)`; negative amounts leave the account. Dates are posting dates in the service's
time zone; timestamps are UTC. Ids are the 16 bytes of a UUID (`Binary`): less than half the size of its text, and read
in a tenth of the time.
"""

from collections.abc import Sequence
from functools import cache

import polars as pl

MONEY = pl.Decimal(18, 2)
UUID = pl.Binary()
TIMESTAMP = pl.Datetime("us", "UTC")

ACCOUNT_TYPES = ("transaction", "savings", "credit_card", "loan", "term_deposit", "other")
AccountType = pl.Enum(ACCOUNT_TYPES)
TransactionStatus = pl.Enum(("posted", "pending"))
Direction = pl.Enum(("credit", "debit"))
Channel = pl.Enum(
    (
        "card",
        "eftpos",
        "atm",
        "direct_credit",
        "direct_debit",
        "npp",
        "bpay",
        "transfer",
        "cheque",
        "cash",
        "international",
        "fee",
        "interest",
        "other",
    )
)
CategorySource = pl.Enum(("client_rule", "correction", "counterparty", "pattern", "learned", "fallback"))
CounterpartyKind = pl.Enum(("business", "person", "bank", "processor", "government", "lender", "own"))
SERIES_PERIODS = (
    "business_daily",
    "weekly",
    "fortnightly",
    "four_weekly",
    "twice_monthly",
    "monthly",
    "quarterly",
    "yearly",
)
SeriesPeriod = pl.Enum(SERIES_PERIODS)
# How far balances prove the rows of a PDF statement; see `intake.pdf.page.result.Verdict`.
StatementVerdict = pl.Enum(("reconciled", "reconciled_dates_doubtful", "partial", "unreconciled"))
ALTERNATIVE = pl.Struct({"category": pl.String(), "confidence": pl.Float64()})

# A submitted item as it arrived, field by field, as text: a JSON number keeps its digits as sent. If a value has a JSON
# type that the field can't have (true, a list, a number as description), the field is null, its name is in `malformed`,
# and the value is in `extra`, together with every unknown field.
LANDED = pl.Schema(
    {
        "position": pl.UInt32(),  # index in the submission's `transactions`, from 0
        "date": pl.String(),
        "description": pl.String(),
        "amount": pl.String(),
        "type": pl.String(),
        "balance": pl.String(),
        "transactionId": pl.String(),
        "currency": pl.String(),
        "valueDate": pl.String(),
        "status": pl.String(),
        "malformed": pl.List(pl.String()),  # names of fields whose JSON type is wrong
        "extra": pl.String(),  # JSON object of all other fields and malformed values; null when there are none
        "masked": pl.Boolean(),  # whether a card or tax file number was masked in any field
        # Digests of masked texts as sent (`intake.as_sent`): they distinguish rows that look equal.
        "transactionIdDigest": pl.Binary(),
        "descriptionDigest": pl.Binary(),
    }
)

JOB_COLUMNS = ("customer_number", "job_id", "received_seq", "received_at", "appended")

# What the job knows about all rows of its submission; the batch joins it to LANDED.
SUBMISSION = pl.Schema(
    {
        "customer_number": pl.Int64(),  # internal sort and group key of a customer
        "job_id": UUID,
        "received_seq": pl.Int64(),  # order of receipt in the whole service
        "received_at": TIMESTAMP,
        "appended": pl.Boolean(),  # mode `append`: not matched with the rows that the account already has
        "account_id": UUID,
        "account_identified": pl.Boolean(),  # false for the customer's one unidentified account
        "account_name": pl.String(),
        "bsb": pl.String(),
        "account_number": pl.String(),
        "bank_name": pl.String(),
        "account_type": AccountType,
        "account_type_text": pl.String(),  # as sent, if it was not one of ACCOUNT_TYPES
        "credit_limit": MONEY,
        "statement_id": UUID,  # the PDF statement with the row; null when it came as JSON
        "statement_verdict": StatementVerdict,  # of that statement; null when the row came as JSON
        "statement_proved": pl.Boolean(),  # the row is between two balances of the statement that agree with its rows
    }
)

# The columns of SUBMISSION that each row of PDF statements has itself, because such a submission may have several
# accounts.
STATEMENT_COLUMNS = pl.Schema({name: kind for name, kind in SUBMISSION.items() if name not in JOB_COLUMNS})

# A row of a PDF statement, with its place on the pages in points from the top left corner.
BOX = pl.Struct(
    {"page": pl.UInt32(), "left": pl.Float64(), "top": pl.Float64(), "right": pl.Float64(), "bottom": pl.Float64()}
)
STATEMENT_ROWS = pl.Schema(
    {
        "statement_id": UUID,
        "row": pl.UInt32(),  # in the statement, from 1, oldest first
        "position": pl.UInt32(),  # in the submission; null if the row repeats one of another statement in it
        "date": pl.Date(),
        "value_date": pl.Date(),
        "description": pl.String(),  # card and tax file numbers masked
        "description_digest": pl.Binary(),  # of the description as printed, where it was masked
        "amount": MONEY,
        "balance": MONEY,  # after the row
        "balance_printed": pl.Boolean(),
        "currency": pl.String(),  # ISO 4217, if not the statement's; null in older files
        "proved": pl.Boolean(),  # between two printed balances that agree with the rows; null in older files
        "boxes": pl.List(BOX),
    }
)

# A validated row: SUBMISSION plus the item in its exact types. Facts only, nothing derived from other rows.
ACCEPTED = pl.Schema(
    {
        **SUBMISSION,
        "position": pl.UInt32(),
        "client_transaction_id": pl.String(),  # card and tax file numbers masked
        "client_transaction_id_digest": pl.Binary(),  # of the id as sent, where it was masked
        "date": pl.Date(),
        "value_date": pl.Date(),
        "description": pl.String(),  # as sent, card and tax file numbers masked
        "description_digest": pl.Binary(),  # of the description as sent, where it was masked
        "amount": MONEY,
        "balance": MONEY,  # after the transaction, as stated
        "status": TransactionStatus,
        "own_columns": pl.String(),  # JSON object of the client's own columns (`own_columns`); null without any
    }
)

# A refused item and the reason. One row per item, with its first fault in the order of the checks.
REJECTED = pl.Schema(
    {
        "job_id": UUID,
        "position": pl.UInt32(),
        "field": pl.String(),
        "code": pl.String(),  # `Transaction.…`
        "message": pl.String(),
    }
)

# A row that repeats a stored transaction, or has the same id as an earlier row of its submission.
DUPLICATES = pl.Schema({"job_id": UUID, "position": pl.UInt32(), "transaction_id": UUID})

# Columns that are read in a row itself, and that a later step of the enrichment may overwrite.
OVERWRITTEN = (
    *("category", "category_group", "confidence", "category_source", "category_basis"),
    *("counterparty_name", "counterparty_kind", "counterparty_lender_id", "counterparty_abn", "counterparty_group"),
)

# A customer's enriched transactions, always replaced as a whole, sorted by SORT_KEY. Superseded revisions, pending rows
# with a posting, rows of statements that later ones replaced, and retracted rows stay and are marked. The rows held
# right after job n are those with since_seq <= n < superseded_seq.
TRANSACTIONS = pl.Schema(
    {
        **ACCEPTED,
        "transaction_id": UUID,
        "ordinal": pl.UInt32(),  # place among rows with the same matching key, from 0; for rows without client id
        "revision": pl.UInt32(),  # 1 for the first version of a transaction
        "since_seq": pl.Int64(),  # received_seq of the job that made the row as it is: its own, or a retraction
        "superseded_seq": pl.Int64(),  # received_seq of the job that replaced or retracted this row; null while current
        "retracted_seq": pl.Int64(),  # received_seq of the retraction that made this row history
        "direction": Direction,
        "clean_description": pl.String(),  # counterparty and purpose, without rails, dates and references
        "channel": Channel,
        "reference": pl.String(),  # printed by the payer or the bank to distinguish this payment from others
        "location": pl.String(),  # of a terminal: suburb, town or country
        "card_last_four": pl.String(),
        "effective_date": pl.Date(),  # the value date as sent, else as the text prints it
        "foreign_amount": MONEY,  # as printed, never negative, in foreign_currency
        "foreign_currency": pl.String(),  # ISO 4217
        "other_account": pl.String(),  # last digits of an account that the text names as the other side
        "category": pl.String(),  # a slug of the taxonomy
        "category_group": pl.String(),
        "confidence": pl.Float64(),  # 0–1
        "category_source": CategorySource,
        "category_basis": pl.String(),  # why: the words found, the correction, or the model's name
        "alternatives": pl.List(ALTERNATIVE),  # up to three other categories, the most likely first
        "counterparty_name": pl.String(),
        "counterparty_kind": CounterpartyKind,
        "counterparty_lender_id": pl.String(),
        "counterparty_abn": pl.String(),  # printed in the text, with a valid check digit
        "counterparty_group": pl.String(),  # equal for all spellings of one counterparty
        "intermediaries": pl.List(pl.String()),  # who passed the payment on (PayPal, Square …), outermost first
        "related_party": pl.String(),  # name of the customer's declared related party that the text names
        "is_transfer": pl.Boolean(),
        "transfer_pair_id": UUID,  # shared by both sides
        "series_id": UUID,  # of the recurring series that the row belongs to
        "series_period": SeriesPeriod,
        "series_next_date": pl.Date(),  # when the series' next payment is expected
        "facility_id": UUID,  # of the credit facility that the row funds or repays
        "balance_verified": pl.Boolean(),  # null: no balance to check, or nothing to check it against
        "flags": pl.List(pl.String()),  # sorted
        "enrichment_version": pl.UInt32(),  # the first version of the enrichment that gave the row these values
        "read_by": pl.String(),  # program, lists and model that read the row itself (`enrichment.reading`)
        "as_read": pl.String(),  # JSON object of OVERWRITTEN before a later step changed any of it; null if none did
    }
)
READ = (  # columns that are read in a row itself
    *("clean_description", "channel", "reference", "location", "card_last_four", "effective_date"),
    *("foreign_amount", "foreign_currency", "other_account", "alternatives", "intermediaries"),
    *OVERWRITTEN,
)
SORT_KEY = ("customer_number", "date", "received_seq", "position", "transaction_id", "since_seq")


@cache
def current() -> pl.Expr:
    """Return whether a row is current: neither revised, nor replaced by its posting, nor retracted."""
    return pl.col("superseded_seq").is_null()


@cache
def not_retracted() -> pl.Expr:
    """Return whether a row was submitted and not retracted: current, or revised, or replaced by its posting."""
    return pl.col("retracted_seq").is_null()


@cache
def posted() -> pl.Expr:
    """Return whether reports may count a row: it is current and not pending."""
    return current() & (pl.col("status") == "posted")


def last_stated(names: Sequence[str]) -> pl.Expr:
    """Return for each of these columns what the last submission that states it states, on its latest day."""
    return pl.col(names).sort_by("received_seq", "date").drop_nulls().last()


def most_frequent(name: str) -> pl.Expr:
    """Return the most frequent text of a column; of equally frequent ones, the first in alphabetical order."""
    return pl.col(name).cast(pl.String).drop_nulls().mode().min()
