"""A submission as it is sent, and an enriched transaction as it is shown."""

from datetime import date
from decimal import Decimal
from typing import Annotated, Any, ClassVar, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, ValidationInfo, WithJsonSchema, field_validator

from api.core.schemas.common import Counts, Paging, Received, View
from api.core.schemas.rules import OneOfMany, Parameter, Rule, Shown, identifier, money, one_of, optional, refusal, text
from pipelines.intake.accounts import Account, Oddity, identify
from pipelines.intake.as_sent import Digest
from pipelines.vocabulary import schemas

MAX_TRANSACTIONS = 50_000
OVERLAP, APPEND = "overlap", "append"
EXAMPLE_ITEM: dict[str, Any] = {
    "date": "2026-06-30",
    "description": "EFTPOS PURCHASE BUNNINGS 405000 ALEXANDRIA",
    "amount": -184.5,
    "balance": 10421.07,
    "transactionId": "20260630-0007",
}
EXAMPLE_SUBMISSION: dict[str, Any] = {
    "accountName": "Harbour Coffee Pty Ltd",
    "bsb": "062-000",
    "accountNumber": "12345678",
    "bankName": "Commonwealth Bank",
    "accountType": "transaction",
    "transactions": [EXAMPLE_ITEM],
}
EXAMPLE_TRANSACTION: dict[str, Any] = {
    "transactionId": "8d1f5a52-7d0e-5a5e-9e0e-1c5a5f0e7b11",
    "clientTransactionId": "20260630-0007",
    "customerId": "0b51c1a4-4a52-4f6e-9b8e-6a3f1e6f8a01",
    "jobId": "5f0c8e55-3c0e-4f4e-8f43-0f7f6c1b2d10",
    "account": {
        "accountId": "2b1a7b0e-1f0f-5c6e-8a53-1d3c0f6a9b42",
        "accountName": "Harbour Coffee Pty Ltd",
        "bsb": "062-000",
        "accountNumberMasked": "xxxx5678",
        "bankName": "Commonwealth Bank",
        "accountType": "transaction",
    },
    "date": "2026-06-30",
    "description": "EFTPOS PURCHASE BUNNINGS 405000 ALEXANDRIA",
    "cleanDescription": "BUNNINGS",
    "amount": -184.5,
    "currency": "AUD",
    "direction": "debit",
    "balance": 10421.07,
    "balanceVerified": True,
    "status": "posted",
    "channel": "eftpos",
    "reference": None,
    "location": "ALEXANDRIA",
    "cardLastFour": None,
    "effectiveDate": None,
    "foreignAmount": None,
    "foreignCurrency": None,
    "otherAccountMasked": None,
    "category": "materials",
    "categoryGroup": "cost_of_sales",
    "confidence": 0.9,
    "categorySource": "counterparty",
    "categoryBasis": "BUNNINGS",
    "alternatives": [{"category": "suppliers", "confidence": 0.06}],
    "counterparty": {"name": "Bunnings", "kind": "business", "lenderId": None, "abn": None, "group": "bunnings"},
    "intermediaries": [],
    "relatedParty": None,
    "isTransfer": False,
    "transferPairId": None,
    "recurrence": {
        "seriesId": "1f0f7b0e-1f0f-8c6e-8a53-1d3c0f6a9b42",
        "period": "weekly",
        "nextExpectedDate": "2026-07-07",
    },
    "facilityId": None,
    "flags": [],
    "revision": 1,
    "enrichmentVersion": 2,
}
Day = date  # a field named so would hide it
Money = Annotated[Decimal, WithJsonSchema({"type": "number"})]  # exact: the encoder writes its digits


class TransactionItem(BaseModel):
    """One transaction as sent."""

    model_config = ConfigDict(json_schema_extra={"examples": [EXAMPLE_ITEM]}, extra="allow")

    date: str = Field(description="ISO date. Of a date-time its own date counts, of one in `Z` the business's.")
    description: str = Field(description="1 to 1,000 characters.")
    amount: Decimal | str = Field(description="At most 2 decimals. Negative is money out.")
    type: Literal["debit", "credit"] | None = Field(None, description="With a positive amount: its direction.")
    balance: Decimal | str | None = Field(None, description="Of the account, after this transaction.")
    transactionId: str | None = Field(None, description="The client's own id, at most 128 characters.")  # noqa: N815
    currency: Literal["AUD"] | None = None
    valueDate: str | None = None  # noqa: N815 - the wire's own names
    status: Literal["posted", "pending"] | None = Field(None, description="Pending rows stay out of reports.")


Item = Annotated[dict[str, Any], Shown(TransactionItem, "Anything else is refused as a row, and the job tells why.")]


def _account_text(name: str, max_characters: int, description: str = "") -> Rule:
    return Rule(
        optional(text(max_characters)),
        f"Submission.Invalid{name[0].upper()}{name[1:]}",
        f"{name} is text of at most {max_characters} characters.",
        {"type": ["string", "null"], "maxLength": max_characters, "description": description},
    )


class Submission(Received):
    """Transactions of one account. All account fields may be left out; null and `""` mean absent."""

    EXAMPLE: ClassVar = EXAMPLE_SUBMISSION
    ROWS: ClassVar = "transactions"

    _lines: bytes = PrivateAttr(b"")
    transactions: list[Annotated[Item, OneOfMany()]] = Field(
        json_schema_extra={"minItems": 1, "maxItems": MAX_TRANSACTIONS}
    )
    account_name: Annotated[str | None, _account_text("accountName", 200)] = None
    bsb: Annotated[str | None, _account_text("bsb", 32, "An odd one is a warning on the job.")] = None
    account_number: Annotated[str | None, _account_text("accountNumber", 64, "Spaces and hyphens are ignored.")] = None
    bank_name: Annotated[str | None, _account_text("bankName", 200)] = None
    account_type: Annotated[
        str | None,
        _account_text("accountType", 64, f"{', '.join(schemas.ACCOUNT_TYPES)}; other text is read as other."),
    ] = None
    credit_limit: Annotated[
        Decimal | None,
        Rule(
            optional(money),
            "Submission.InvalidCreditLimit",
            "creditLimit is an amount of at least 0 with at most 2 decimals.",
            {
                "anyOf": [
                    {"type": "number", "minimum": 0, "exclusiveMaximum": 10**13, "multipleOf": 0.01},
                    {"type": "string", "pattern": r"^([0-9]{1,13}(\.[0-9]{1,2})?)?$"},
                    {"type": "null"},
                ],
                "description": "Approved limit, in AUD.",
            },
        ),
    ] = None
    mode: Annotated[
        str,
        Rule(
            one_of(OVERLAP, APPEND),
            "Submission.InvalidMode",
            "mode is overlap or append.",
            {
                "type": "string",
                "enum": [OVERLAP, APPEND],
                "description": "append is for feeds that never overlap: rows without an id are not matched against "
                "what is held.",
            },
        ),
    ] = OVERLAP

    @field_validator("transactions", mode="before")
    @classmethod
    def _counted(cls, value: Any, info: ValidationInfo) -> Any:
        """Tell a wrong count before looking at any item."""
        assert info.context is not None
        most = info.context["caller"].store.settings.max_transactions
        if isinstance(value, list) and not 0 < len(value) <= most:
            raise refusal("Submission.WrongCount", f"1 to {most:,} transactions.")
        return value

    def model_post_init(self, context: Any, /) -> None:
        self._lines = context["lines"]

    @property
    def lines(self) -> bytes:
        """The transactions as they were sent, each as JSON on a line."""
        return self._lines

    def account_of(self, customer_id: UUID, digest: Digest) -> tuple[Account, tuple[Oddity, ...]]:
        """The account that the submission speaks of, and what is odd about it."""
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


class TransactionsQuery(Paging):
    job_id: Annotated[
        UUID | None,
        Parameter(
            identifier,
            "Transaction.InvalidJobId",
            "jobId must be one UUID.",
            {"type": "string", "format": "uuid", "description": "Only rows that this job added or revised, as of now."},
        ),
    ] = None


class AccountView(View):
    account_id: UUID
    account_name: str | None
    bsb: str | None
    account_number_masked: str | None
    bank_name: str | None
    account_type: Literal[schemas.ACCOUNT_TYPES]  # pyrefly: ignore[invalid-literal]  # a tuple of its literals


class CounterpartyView(View):
    name: str | None
    kind: str | None = Field(description="business, person, bank, processor, government, lender or own.")
    lender_id: str | None
    abn: str | None = Field(description="As the text prints it, with valid check digits.")
    group: str | None = Field(description="The same for one counterparty in all its spellings.")


class AlternativeView(View):
    category: str
    confidence: float = Field(ge=0, le=1)


class RecurrenceView(View):
    series_id: UUID
    period: Literal[schemas.SERIES_PERIODS]  # pyrefly: ignore[invalid-literal]  # a tuple of its literals
    next_expected_date: date | None


class TransactionView(View):
    """An enriched transaction. This model describes; `api.intake.transactions_json` makes the rows from frames."""

    EXAMPLE: ClassVar = EXAMPLE_TRANSACTION

    transaction_id: UUID = Field(description="Stable: recomputing never changes it.")
    client_transaction_id: str | None
    customer_id: UUID
    job_id: UUID
    account: AccountView
    date: date
    description: str = Field(description="As sent; card and tax file numbers are masked.")
    clean_description: str
    amount: Money = Field(description="Negative is money out.")
    currency: Literal["AUD"]
    direction: Literal["credit", "debit"]
    balance: Money | None
    balance_verified: bool | None = Field(description="Null when there is nothing to check it against.")
    status: Literal["posted", "pending"]
    channel: str
    reference: str | None = Field(description="What the payer or the bank printed to tell this payment from others.")
    location: str | None = Field(description="Of a terminal.")
    card_last_four: str | None
    effective_date: Day | None = Field(description="The value date as sent, else as printed.")
    foreign_amount: Money | None = Field(description="As printed, never negative.")
    foreign_currency: str | None = Field(description="ISO 4217.")
    other_account_masked: str | None = Field(description="The account that the text names as the other side.")
    category: str
    category_group: str
    confidence: float = Field(ge=0, le=1, description="Calibrated: of the rows said 0.9, nine in ten are right.")
    category_source: str
    category_basis: str | None = Field(description="What decided: the words found, the correction, or the model.")
    alternatives: list[AlternativeView] = Field(description="Up to three, the likeliest first.")
    counterparty: CounterpartyView
    intermediaries: list[str] = Field(description="Who passed the payment on, outermost first.")
    related_party: str | None = Field(description="The declared related party that the text names.")
    is_transfer: bool
    transfer_pair_id: UUID | None
    recurrence: RecurrenceView | None
    facility_id: UUID | None = Field(description="The credit facility that the row funds or repays.")
    flags: list[str]
    revision: int
    enrichment_version: int


class TransactionListView(Counts):
    EXAMPLE: ClassVar = {"transactions": [TransactionView.EXAMPLE], **Counts.EXAMPLE}

    transactions: list[TransactionView]
