"""A submission as it is sent, and an enriched transaction as it is shown."""

from datetime import date
from decimal import Decimal
from typing import Annotated, Any, ClassVar, Final, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, ValidationInfo, WithJsonSchema, field_validator

from api.core.schemas.common import Counts, Paging, Received, View
from api.core.schemas.examples import show_example
from api.core.schemas.rules import (
    ListItem,
    Parameter,
    Rule,
    UncheckedObject,
    choice_parameter,
    day,
    distinct,
    identifier,
    identifier_parameter,
    money,
    one_of,
    optional,
    optional_text,
    refusal,
    text,
)
from api.intake.cursors import parse_cursor
from pipelines.enrichment.flags import FLAGS
from pipelines.figures.row_filter import RowFilter
from pipelines.intake.accounts import Account, Oddity, identify
from pipelines.intake.as_sent import Digest
from pipelines.intake.currencies import CURRENCY
from pipelines.vocabulary import schemas
from storage.enrichment.client_listing import Cursor

CURSOR_MESSAGE = "cursor must be empty or the nextCursor of a response, given once and without page."
MAX_TRANSACTIONS = 50_000
MAX_IDS = 100  # of transactions in a query
OVERLAP, APPEND = "overlap", "append"
Day = date  # a field named `date` would hide the type
Money = Annotated[Decimal, WithJsonSchema({"type": "number"})]  # exact: the encoder writes its digits


class TransactionItem(BaseModel):
    """One transaction as sent. Fields that begin with `context_` are the client's own, for its model of categories."""

    model_config = ConfigDict(json_schema_extra=show_example, extra="allow")

    date: str = Field(
        description="ISO date or date-time. A date-time that ends in `Z` gives the date in the service's time zone."
    )
    description: str = Field(description="1 to 1,000 characters.")
    amount: Decimal | str = Field(description="At most 2 decimals. Negative is money out.")
    type: Literal["credit", "debit"] | None = Field(None, description="Direction of a positive amount.")
    balance: Decimal | str | None = Field(None, description="Balance of the account after this transaction.")
    transactionId: str | None = Field(None, description="The client's own id, at most 128 characters.")  # noqa: N815
    currency: Literal["AUD"] | None = None
    valueDate: str | None = None  # noqa: N815 - named as in the request
    status: Literal["posted", "pending"] | None = Field(None, description="Pending rows are left out of reports.")


Item = Annotated[
    dict[str, Any], UncheckedObject(TransactionItem, "Anything else is refused as a row; the job says why.")
]


def _account_text(name: str, max_characters: int, description: str = "") -> Rule:
    return optional_text(name, f"Submission.Invalid{name[0].upper()}{name[1:]}", max_characters, description)


class Submission(Received):
    """Transactions of one account. All account fields may be left out; null and `""` mean absent."""

    ROWS: ClassVar = "transactions"

    _lines: bytes = PrivateAttr(b"")
    transactions: list[Annotated[Item, ListItem()]] = Field(
        description="A service may be set to take fewer at a time.",
        json_schema_extra={"minItems": 1, "maxItems": MAX_TRANSACTIONS},
    )
    account_name: Annotated[
        str | None, _account_text("accountName", 200, "Without an account number, part of what identifies the account.")
    ] = None
    bsb: Annotated[str | None, _account_text("bsb", 32, "An invalid one gives a warning on the job.")] = None
    account_number: Annotated[str | None, _account_text("accountNumber", 64, "Spaces and hyphens are ignored.")] = None
    bank_name: Annotated[
        str | None, _account_text("bankName", 200, "Without an account number, part of what identifies the account.")
    ] = None
    account_type: Annotated[
        str | None,
        _account_text(
            "accountType", 64, f"{', '.join(schemas.ACCOUNT_TYPES)}; however spelled; other text is read as other."
        ),
    ] = None
    credit_limit: Annotated[
        Decimal | None,
        Rule(
            optional(money),
            "Submission.InvalidCreditLimit",
            "creditLimit must be an amount of at least 0 with at most 2 decimals.",
            {
                "anyOf": [
                    {"type": "number", "minimum": 0, "exclusiveMaximum": 10**13, "multipleOf": 0.01},
                    {"type": "string", "pattern": r"^([0-9]{1,13}(\.[0-9]{1,2})?)?$"},
                    {"type": "null"},
                ],
                "description": "Approved limit, in AUD. If left out, the one stated before stays; 0 ends it.",
            },
        ),
    ] = None
    currency: Annotated[
        str | None,
        Rule(
            optional(one_of(CURRENCY)),
            "Submission.UnsupportedCurrency",
            f"currency must be {CURRENCY}.",
            {"type": ["string", "null"], "enum": [CURRENCY, "", None], "description": "Of all transactions."},
        ),
    ] = None
    mode: Annotated[
        str,
        Rule(
            one_of(OVERLAP, APPEND),
            "Submission.InvalidMode",
            "mode must be overlap or append.",
            {
                "type": "string",
                "enum": [OVERLAP, APPEND],
                "description": "append is for feeds that never overlap: rows without an id are not matched against "
                "stored rows.",
            },
        ),
    ] = OVERLAP

    @field_validator("transactions", mode="before")
    @classmethod
    def _check_count(cls, value: Any, info: ValidationInfo) -> Any:
        """Refuse a wrong count before any item is checked."""
        assert info.context is not None
        max_rows = info.context["caller"].store.settings.max_transactions
        if isinstance(value, list) and not 0 < len(value) <= max_rows:
            raise refusal("Submission.WrongCount", f"A submission must have 1 to {max_rows:,} transactions.")
        return value

    def model_post_init(self, context: Any, /) -> None:
        self._lines = context["lines"]

    @property
    def lines(self) -> bytes:
        """The transactions as they were sent, each as JSON on a line."""
        return self._lines

    def account_of(self, customer_id: UUID, digest: Digest) -> tuple[Account, tuple[Oddity, ...]]:
        """Return the submission's account and the oddities in its details."""
        return identify(
            customer_id,
            account_name=self.account_name,
            bsb=self.bsb,
            account_number=self.account_number,
            bank_name=self.bank_name,
            account_type=self.account_type,
            credit_limit=self.credit_limit,
            digest=digest,
        )


def _day_parameter(name: str, description: str) -> Parameter:
    schema = {"type": "string", "format": "date", "description": description}
    return Parameter(day, "Transaction.InvalidDay", f"{name} must be a date, YYYY-MM-DD, given once.", schema)


def _amount_parameter(name: str, description: str) -> Parameter:
    schema = {"type": "string", "pattern": r"^[0-9]{1,13}(\.[0-9]{1,2})?$", "description": description}
    message = f"{name} must be an amount of at least 0 with at most 2 decimals, given once."
    return Parameter(money, "Transaction.InvalidAmount", message, schema)


def _text_parameter(name: str, code: str, max_characters: int, description: str) -> Parameter:
    schema = {"type": "string", "minLength": 1, "maxLength": max_characters, "description": description}
    return Parameter(
        text(max_characters), code, f"{name} must be text of 1 to {max_characters:,} characters, given once.", schema
    )


NEWEST_FIRST: Final = "-date"


def _transaction_ids(value: Any) -> tuple[UUID, ...]:
    if type(value) is not str:
        raise ValueError
    return tuple(distinct(identifier, MAX_IDS)(value.split(",")))


class TransactionsQuery(Paging):
    job_id: Annotated[
        UUID | None,
        identifier_parameter(
            "jobId", "Transaction.InvalidJobId", "Only rows that this job added or revised, as they are now."
        ),
    ] = None
    from_: Annotated[date | None, _day_parameter("from", "Only rows from this day on.")] = Field(None, alias="from")
    to: Annotated[date | None, _day_parameter("to", "Only rows up to this day.")] = None
    text: Annotated[
        str | None,
        _text_parameter(
            "text", "Transaction.InvalidText", 200, "Only rows whose description contains this, in any case."
        ),
    ] = None
    category: Annotated[
        str | None,
        _text_parameter("category", "Transaction.InvalidCategory", 64, "Only rows of the category with this slug."),
    ] = None
    account_id: Annotated[
        UUID | None, identifier_parameter("accountId", "Transaction.InvalidAccountId", "Only rows of this account.")
    ] = None
    direction: Annotated[
        str | None,
        choice_parameter(
            "direction", "Transaction.InvalidDirection", schemas.Direction.categories, "Only money in, or money out."
        ),
    ] = None
    status: Annotated[
        str | None,
        choice_parameter(
            "status",
            "Transaction.InvalidRowStatus",
            schemas.TransactionStatus.categories,
            "Only rows with this status.",
        ),
    ] = None
    min_amount: Annotated[
        Decimal | None, _amount_parameter("minAmount", "Only rows of at least this amount, in or out.")
    ] = None
    max_amount: Annotated[
        Decimal | None, _amount_parameter("maxAmount", "Only rows of at most this amount, in or out.")
    ] = None
    flag: Annotated[
        str | None, choice_parameter("flag", "Transaction.InvalidFlag", FLAGS, "Only rows with this flag.")
    ] = None

    transaction_id: Annotated[
        UUID | None, identifier_parameter("transactionId", "Transaction.InvalidId", "Only this row.")
    ] = None
    transaction_ids: Annotated[
        tuple[UUID, ...] | None,
        Parameter(
            _transaction_ids,
            "Transaction.InvalidIds",
            f"transactionIds must be 1 to {MAX_IDS} different UUIDs, separated by commas, given once.",
            {
                "type": "string",
                "minLength": 1,
                "description": f"Only these rows: at most {MAX_IDS} ids, separated by commas.",
            },
        ),
    ] = None
    sort: Annotated[
        str,
        choice_parameter("sort", "Transaction.InvalidSort", ("date", NEWEST_FIRST), "`-date`: the newest row first."),
    ] = "date"

    @property
    def row_filter(self) -> RowFilter | None:
        """The filter, or None if no parameter of it is given."""
        chosen = RowFilter(
            self.from_,
            self.to,
            self.text,
            self.category,
            self.account_id,
            self.direction,
            self.status,
            self.min_amount,
            self.max_amount,
            self.flag,
            self.transaction_id,
            self.transaction_ids,
        )
        return None if chosen == RowFilter() else chosen


class ClientTransactionsQuery(Paging):
    cursor: Annotated[
        Cursor | None,
        Parameter(
            parse_cursor,
            "Pagination.InvalidCursor",
            CURSOR_MESSAGE,
            {
                "type": "string",
                "description": "Instead of `page`: empty for the first rows, then each response's `nextCursor`.",
            },
        ),
    ] = None

    @field_validator("cursor")
    @classmethod
    def _instead_of_a_page(cls, cursor: Cursor | None, info: ValidationInfo) -> Cursor | None:
        if cursor is not None and info.data.get("page") is not None:
            raise refusal("Pagination.InvalidCursor", CURSOR_MESSAGE)
        return cursor


class AccountView(View):
    account_id: UUID = Field(description="The same for all submissions of the account.")
    account_name: str | None = Field(description="As sent or printed; null if not stated.")
    bsb: str | None = Field(description="As sent or printed; null if not stated.")
    account_number_masked: str | None = Field(description="Only the last digits are shown; null if not stated.")
    bank_name: str | None = Field(description="As sent or printed; null if not stated.")
    account_type: Literal[schemas.ACCOUNT_TYPES] | None = Field(  # pyrefly: ignore[invalid-literal]  # a tuple of its literals
        description="Null if the row's submission states none."
    )


class CounterpartyView(View):
    name: str | None = Field(description="Null if the text names nobody.")
    kind: str | None = Field(description="business, person, bank, processor, government, lender or own.")
    lender_id: str | None = Field(description="Set for lenders; the same for all products of a lender.")
    abn: str | None = Field(description="As printed in the text, with valid check digits.")
    group: str | None = Field(description="Key of the counterparty, the same for all its spellings.")


class AlternativeView(View):
    category: str = Field(description="A slug of the taxonomy.")
    confidence: float = Field(ge=0, le=1, description="The confidence that it would have as the category.")


class RecurrenceView(View):
    series_id: UUID = Field(description="Id in the customer's list of series.")
    period: Literal[schemas.SERIES_PERIODS] = Field(  # pyrefly: ignore[invalid-literal]  # a tuple of its literals
        description="business_daily is every day on which banks are open; four_weekly is every 28 days."
    )
    next_expected_date: date | None = Field(description="Null once the series has ended.")


class TransactionView(View):
    """An enriched transaction. This model is documentation; `api.intake.transactions_json` writes the rows."""

    transaction_id: UUID = Field(description="Stable: recomputation never changes it.")
    client_transaction_id: str | None = Field(description="The `transactionId` as sent; null if none was sent.")
    customer_id: UUID
    job_id: UUID = Field(description="The submission that the row came with.")
    account: AccountView = Field(description="The account as the row's submission described it.")
    date: Day = Field(description="As sent or printed, in the service's time zone.")
    description: str = Field(description="As sent, with card and tax file numbers masked.")
    clean_description: str = Field(
        description="Who or what the text is about, without channel, dates, card and references."
    )
    amount: Money = Field(description="Negative is money out.")
    currency: Literal["AUD"] = Field(description="Of the amount and the balance.")
    direction: Literal["credit", "debit"] = Field(description="credit is money in, debit is money out.")
    balance: Money | None = Field(
        description="Balance of the account after the transaction, as sent or printed; null if not stated."
    )
    balance_verified: bool | None = Field(description="Null if there is nothing to check the balance against.")
    status: Literal["posted", "pending"] = Field(description="Pending rows are left out of reports.")
    channel: str = Field(description="How the payment was made: card, direct_debit, npp, bpay, cash, …")
    reference: str | None = Field(description="Reference of the payment that the payer or the bank printed.")
    location: str | None = Field(description="Location of the terminal.")
    card_last_four: str | None = Field(description="Last digits of the card as printed; null if none is.")
    effective_date: Day | None = Field(description="The value date as sent, or else as printed.")
    foreign_amount: Money | None = Field(description="As printed, never negative.")
    foreign_currency: str | None = Field(description="ISO 4217.")
    other_account_masked: str | None = Field(description="The other account that the text names.")
    category: str = Field(description="A slug of the taxonomy.")
    category_group: str = Field(description="The category's group in the taxonomy.")
    confidence: float = Field(ge=0, le=1, description="Calibrated: of rows with 0.9, nine in ten are right.")
    category_source: str = Field(description="client_rule, correction, counterparty, pattern, learned or fallback.")
    category_basis: str | None = Field(description="What decided it: the matched words, the correction or the model.")
    alternatives: list[AlternativeView] = Field(description="Up to three, most likely first.")
    counterparty: CounterpartyView = Field(description="The other side of the transaction.")
    intermediaries: list[str] = Field(description="Payment intermediaries, outermost first.")
    related_party: str | None = Field(description="The declared related party that the text names.")
    is_transfer: bool = Field(description="Whether it moves money between the customer's own accounts.")
    transfer_pair_id: UUID | None = Field(
        description="Shared by both sides of a transfer; null without the other side."
    )
    recurrence: RecurrenceView | None = Field(description="The recurring series that it belongs to; null if none.")
    facility_id: UUID | None = Field(description="The credit facility that the row funds or repays.")
    flags: list[str] = Field(description="Sorted; empty if none applies.")
    revision: int = Field(description="1 for the first version of the transaction.")
    enrichment_version: int = Field(description="Version of the enrichment that first gave the row these values.")


class TotalsView(View):
    """Sums over all pages, in AUD. Pending rows count, too, unlike in reports."""

    money_in: Money = Field(description="Sum of the credits.")
    money_out: Money = Field(description="Without its sign.")
    net: Money = Field(description="Money in less money out.")


class TransactionListView(Counts):
    transactions: list[TransactionView] = Field(description="Oldest first, unless `sort` says otherwise.")


class CustomerTransactionListView(TransactionListView):
    totals: TotalsView = Field(description="Sums of all listed rows, on all pages.")


class ClientTransactionListView(TransactionListView):
    next_cursor: str | None = Field(
        None, description="Only with `cursor`: the cursor of the next rows; null if these are the last."
    )
