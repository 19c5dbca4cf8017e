"""Corrections as they are sent and shown."""

from collections.abc import Mapping, Sequence
from datetime import date, datetime
from typing import Annotated, Any, ClassVar, Literal
from uuid import UUID

from pydantic import ConfigDict, Field
from pydantic.config import JsonDict

from api.core.schemas.common import Counts, Received, View
from api.core.schemas.jobs import EXAMPLE_CORRECTION
from api.core.schemas.rules import Rule, identifier, one_of, optional, text
from api.intake.schemas.transactions import EXAMPLE_TRANSACTION, Money
from pipelines.enrichment.counterparties.corrections import MOST_WORDS, key_of
from pipelines.intake.masking import mask_text
from pipelines.vocabulary.errors import Fault, InvalidRequest
from pipelines.vocabulary.taxonomy import SIDES, TAXONOMY
from storage.enrichment.corrections import MOST_EXAMPLES, Correction, NewCorrection, Reach

MAX_NAME = MAX_PATTERN = 200  # characters
CUSTOMER, CLIENT = "customer", "client"
TARGETS = ("transactionId", "counterparty", "pattern")
EXAMPLE_SENT: dict[str, Any] = {
    "transactionId": EXAMPLE_TRANSACTION["transactionId"],
    "category": "repairs",
    "counterpartyName": "Bunnings Warehouse",
}
EXAMPLE_ID = "c3b8e5d2-9c1f-4d0a-9f53-1a2b3c4d5e6f"
EXAMPLE_SHOWN: dict[str, Any] = {
    "correctionId": EXAMPLE_ID,
    "transactionId": None,
    "counterparty": "Bunnings",
    "pattern": None,
    "direction": "debit",
    "category": "repairs",
    "counterpartyName": None,
    "scope": CUSTOMER,
    "transactionCount": 37,
    "dateMade": "2026-07-01T02:15:00Z",
    "madeBy": "7d1e2a3b-59c4-4f6e-8a0b-1c2d3e4f5a6b",
    "dateRevoked": None,
    "revokedBy": None,
}


def _with_letters(max_characters: int, given: Any) -> str:
    """Text that holds at least one letter or digit, masked as descriptions are."""
    masked = mask_text(text(max_characters)(given))
    if not key_of(masked):
        raise ValueError
    return masked


def _pattern(given: Any) -> str:
    masked = _with_letters(MAX_PATTERN, given)
    if len(key_of(masked).split(" ")) > MOST_WORDS:
        raise ValueError
    return masked


def _flag(given: Any) -> bool:
    if type(given) is not bool:
        raise ValueError
    return given


def _text_schema(description: str) -> dict[str, Any]:
    return {"type": ["string", "null"], "maxLength": MAX_NAME, "description": description}


def _filled(name: str) -> JsonDict:
    return {"required": [name], "properties": {name: {"type": "string", "minLength": 1}}}


def _only(target: str) -> JsonDict:
    """This one of the targets, and no other."""
    absent: JsonDict = {other: {"enum": ["", None]} for other in TARGETS if other != target}
    return {"required": [target], "properties": {target: {"type": "string", "minLength": 1}, **absent}}


class SentCorrection(Received):
    """Exactly one of `transactionId`, `counterparty` and `pattern` says which transactions are meant, and `category`,
    `counterpartyName` or both say what they are. Null and `""` mean absent.
    """

    EXAMPLE: ClassVar = EXAMPLE_SENT
    model_config = ConfigDict(
        json_schema_extra={
            "oneOf": [_only(target) for target in TARGETS],
            "anyOf": [_filled("category"), _filled("counterpartyName")],
        }
    )

    transaction_id: Annotated[
        UUID | None,
        Rule(
            optional(identifier),
            "Correction.InvalidTransactionId",
            "transactionId is one UUID.",
            {
                "anyOf": [{"type": "string", "format": "uuid"}, {"const": ""}, {"type": "null"}],
                "description": "This transaction.",
            },
        ),
    ] = None
    counterparty: Annotated[
        str | None,
        Rule(
            optional(lambda given: _with_letters(MAX_NAME, given)),
            "Correction.InvalidCounterparty",
            f"counterparty is text of at most {MAX_NAME} characters with a letter or a digit.",
            _text_schema("All transactions with this counterparty, called as transactions show it."),
        ),
    ] = None
    pattern: Annotated[
        str | None,
        Rule(
            optional(_pattern),
            "Correction.InvalidPattern",
            f"pattern is text of at most {MAX_PATTERN} characters with 1 to {MOST_WORDS} words.",
            _text_schema(
                "All transactions whose description holds these words whole and side by side. Upper and lower case, "
                "and whatever stands between words, make no difference; nothing in it has a special meaning."
            ),
        ),
    ] = None
    direction: Annotated[
        str | None,
        Rule(
            optional(one_of(*SIDES)),
            "Correction.InvalidDirection",
            "direction is credit or debit.",
            {
                "enum": [*SIDES, "", None],
                "description": "Only money in, or only money out. Left out, it is the side that the category is on.",
            },
        ),
    ] = None
    category: Annotated[
        str | None,
        Rule(
            optional(one_of(*TAXONOMY.categories)),
            "Correction.InvalidCategory",
            "category is a slug of the taxonomy.",
            {
                "enum": [*TAXONOMY.categories, "", None],
                "description": "What they are, for the side of the account that they are on: see GET /v1/taxonomy.",
            },
        ),
    ] = None
    counterparty_name: Annotated[
        str | None,
        Rule(
            optional(lambda given: _with_letters(MAX_NAME, given)),
            "Correction.InvalidCounterpartyName",
            f"counterpartyName is text of at most {MAX_NAME} characters with a letter or a digit.",
            _text_schema("With whom they are."),
        ),
    ] = None
    scope: Annotated[
        str,
        Rule(
            one_of(CUSTOMER, CLIENT),
            "Correction.InvalidScope",
            "scope is customer or client.",
            {"type": "string", "enum": [CUSTOMER, CLIENT], "description": "client: all customers of the client."},
        ),
    ] = CUSTOMER
    preview: Annotated[
        bool,
        Rule(
            _flag,
            "Correction.InvalidPreview",
            "preview is true or false.",
            {"type": "boolean", "description": "true: tell what would change, and change nothing."},
        ),
    ] = False

    def record(self) -> NewCorrection:
        """What is to be corrected.

        Raises:
            InvalidRequest: its parts don't fit each other.
        """
        if faults := self._faults():
            one_code = len({fault.code for fault in faults}) == 1
            code, says = (faults[0].code, faults[0].message) if one_code else (SEVERAL, SEVERAL_SAYS)
            raise InvalidRequest(code, says, tuple(faults))
        return NewCorrection(
            self.transaction_id,
            self.counterparty,
            self.pattern,
            self.direction or self._side(),
            self.category,
            self.counterparty_name,
            self.scope == CLIENT,
        )

    def _faults(self) -> list[Fault]:
        side = self._side()
        targets = [self.transaction_id, self.counterparty, self.pattern]
        wrong = {
            WRONG_TARGET: sum(target is not None for target in targets) != 1,
            NOTHING_SAID: self.category is None and self.counterparty_name is None,
            WRONG_SCOPE: self.scope == CLIENT and self.transaction_id is not None,
            WRONG_SIDE: bool(self.direction and side and side != self.direction),
        }
        return [fault for fault, holds in wrong.items() if holds]

    def _side(self) -> str | None:
        """The one side of the account that the category is on; null where there is no category, or it is on both."""
        sign = TAXONOMY.categories[self.category].sign if self.category else "either"
        return None if sign == "either" else sign


SEVERAL, SEVERAL_SAYS = "Request.Invalid", "Several things are wrong with the request."
WRONG_TARGET = Fault(
    "", "Correction.WrongTarget", "Exactly one of transactionId, counterparty and pattern says which are meant."
)
NOTHING_SAID = Fault("", "Correction.NothingSaid", "category, counterpartyName or both say what they are.")
WRONG_SCOPE = Fault("/scope", "Correction.WrongScope", "One transaction is one customer's: the scope is customer.")
WRONG_SIDE = Fault("/category", "Correction.WrongSide", "The category is for the other side of the account.")
FAULTS = (WRONG_TARGET, NOTHING_SAID, WRONG_SCOPE, WRONG_SIDE)


class CategoryCountView(View):
    category: str = Field(description="As it is now.")
    count: int


class ChangedTransactionView(View):
    """A transaction as it is now."""

    transaction_id: UUID
    date: date
    description: str
    amount: Money
    category: str
    counterparty: str | None


class MadeCorrectionView(View):
    EXAMPLE: ClassVar[Mapping[str, Any]] = {
        "preview": False,
        "correctionId": EXAMPLE_ID,
        "jobId": EXAMPLE_CORRECTION["jobId"],
        "transactionCount": 37,
        "changedCount": 35,
        "customerCount": 1,
        "byCategory": [{"category": EXAMPLE_TRANSACTION["category"], "count": 35}],
        "examples": [],
    }

    preview: bool
    correction_id: UUID | None = Field(description="Null in a preview.")
    job_id: UUID | None = Field(description="The job that carries it through for this customer. Null in a preview.")
    transaction_count: int = Field(description="Transactions held now that it decides.")
    changed_count: int = Field(description="Those of them of which it says what was not said.")
    customer_count: int = Field(description="Customers with transactions that it decides.")
    by_category: Sequence[CategoryCountView] = Field(description="What it changes, by category now, most first.")
    examples: Sequence[ChangedTransactionView] = Field(
        description=f"In a preview: the first of what it would change, at most {MOST_EXAMPLES}."
    )


def described(reached: Reach, made: Mapping[str, UUID] | None) -> MadeCorrectionView:
    """What is told of a correction; `made` holds its ids, nothing in a preview."""
    counts = sorted(reached.by_category.items(), key=lambda pair: (-pair[1], pair[0]))
    return MadeCorrectionView(
        preview=made is None,
        correction_id=None if made is None else made["correction_id"],
        job_id=None if made is None else made["job_id"],
        transaction_count=reached.decided,
        changed_count=reached.changed,
        customer_count=len(reached.customers),
        by_category=[CategoryCountView(category=category, count=count) for category, count in counts],
        examples=[_example(row) for row in reached.examples] if made is None else [],
    )


def _example(row: Mapping[str, Any]) -> ChangedTransactionView:
    return ChangedTransactionView.of(
        {
            **row,
            "transaction_id": UUID(bytes=row["transaction_id"]),
            "counterparty": row["counterparty_name"],
        }
    )


class CorrectionView(View):
    """A correction as it was made."""

    EXAMPLE: ClassVar = EXAMPLE_SHOWN

    correction_id: UUID
    transaction_id: UUID | None
    counterparty: str | None
    pattern: str | None
    direction: Literal["credit", "debit"] | None = Field(description="Null: both.")
    category: str | None = Field(description="Null: left as it was.")
    counterparty_name: str | None = Field(description="Null: left as it was.")
    scope: Literal["customer", "client"] = Field(description="client: it holds for all customers of the client.")
    transaction_count: int = Field(description="Transactions of this customer that it decides now.")
    date_made: datetime
    made_by: str = Field(description="Id of the API key.")
    date_revoked: datetime | None = Field(description="From then on it holds no more.")
    revoked_by: str | None


class CorrectionListView(Counts):
    EXAMPLE: ClassVar = {"corrections": [CorrectionView.EXAMPLE], **Counts.EXAMPLE}

    corrections: list[CorrectionView]


def shown(correction: Correction, count: int) -> CorrectionView:
    return CorrectionView.of(
        {
            **vars(correction),
            "pattern": correction.words,
            "scope": CLIENT if correction.client_wide else CUSTOMER,
            "transaction_count": count,
            "date_made": correction.made_at,
            "date_revoked": correction.revoked_at,
        }
    )
