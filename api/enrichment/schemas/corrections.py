"""Corrections as they are sent and shown."""

from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import ConfigDict, Field
from pydantic.config import JsonDict

from api.core.schemas.common import Counts, Received, View
from api.core.schemas.rules import Rule, flag_rule, identifier, masked_text, one_of, optional
from api.intake.schemas.transactions import Money
from pipelines.enrichment.counterparties.corrections import MAX_WORDS, key_of
from pipelines.vocabulary.errors import Fault, InvalidRequest
from pipelines.vocabulary.taxonomy import SIDES, TAXONOMY
from storage.enrichment.corrections import MAX_EXAMPLES, Correction, NewCorrection, Reach, Similar

MAX_NAME = MAX_PATTERN = 200  # characters
CUSTOMER, CLIENT = "customer", "client"
TARGETS = ("transactionId", "counterparty", "pattern")


def _with_letters(max_characters: int) -> Callable[[Any], str]:
    """Parse text with at least one letter or digit, masked as descriptions are."""

    def parse(given: Any) -> str:
        words = masked_text(max_characters)(given)
        if not key_of(words):
            raise ValueError
        return words

    return parse


def _pattern(given: Any) -> str:
    words = _with_letters(MAX_PATTERN)(given)
    if len(key_of(words).split(" ")) > MAX_WORDS:
        raise ValueError
    return words


def _text_schema(description: str) -> dict[str, Any]:
    return {"type": ["string", "null"], "maxLength": MAX_NAME, "description": description}


def _require_text(name: str) -> JsonDict:
    return {"required": [name], "properties": {name: {"type": "string", "minLength": 1}}}


def _only(target: str) -> JsonDict:
    """Require one of the targets and forbid the others."""
    absent: JsonDict = {other: {"enum": ["", None]} for other in TARGETS if other != target}
    return {"required": [target], "properties": {target: {"type": "string", "minLength": 1}, **absent}}


class SentCorrection(Received):
    """Exactly one of `transactionId`, `counterparty` and `pattern` selects the transactions; `category`,
    `counterpartyName` or both correct them. Null and `""` mean absent.
    """

    model_config = ConfigDict(
        json_schema_extra={
            "oneOf": [_only(target) for target in TARGETS],
            "anyOf": [_require_text("category"), _require_text("counterpartyName")],
        }
    )

    transaction_id: Annotated[
        UUID | None,
        Rule(
            optional(identifier),
            "Correction.InvalidTransactionId",
            "transactionId must be one UUID.",
            {
                "anyOf": [{"type": "string", "format": "uuid"}, {"const": ""}, {"type": "null"}],
                "description": "This transaction.",
            },
        ),
    ] = None
    counterparty: Annotated[
        str | None,
        Rule(
            optional(_with_letters(MAX_NAME)),
            "Correction.InvalidCounterparty",
            f"counterparty must be text of at most {MAX_NAME} characters with a letter or a digit.",
            _text_schema("All transactions with this counterparty, by its name in transactions."),
        ),
    ] = None
    pattern: Annotated[
        str | None,
        Rule(
            optional(_pattern),
            "Correction.InvalidPattern",
            f"pattern must be text of at most {MAX_PATTERN} characters with 1 to {MAX_WORDS} words.",
            _text_schema(
                "All transactions whose description contains these whole words one after another. Case, and the "
                "characters between words, are ignored. No character has a special meaning."
            ),
        ),
    ] = None
    direction: Annotated[
        str | None,
        Rule(
            optional(one_of(*SIDES)),
            "Correction.InvalidDirection",
            "direction must be credit or debit.",
            {
                "enum": [*SIDES, "", None],
                "description": "Only money in, or only money out. Default: the side of the category.",
            },
        ),
    ] = None
    category: Annotated[
        str | None,
        Rule(
            optional(one_of(*TAXONOMY.categories)),
            "Correction.InvalidCategory",
            "category must be a slug of the taxonomy.",
            {
                "enum": [*TAXONOMY.categories, "", None],
                "description": "The category of the selected transactions. It must be one for their side of the "
                "account: see GET /v1/taxonomy.",
            },
        ),
    ] = None
    counterparty_name: Annotated[
        str | None,
        Rule(
            optional(_with_letters(MAX_NAME)),
            "Correction.InvalidCounterpartyName",
            f"counterpartyName must be text of at most {MAX_NAME} characters with a letter or a digit.",
            _text_schema("The name of the counterparty."),
        ),
    ] = None
    scope: Annotated[
        str,
        Rule(
            one_of(CUSTOMER, CLIENT),
            "Correction.InvalidScope",
            "scope must be customer or client.",
            {"type": "string", "enum": [CUSTOMER, CLIENT], "description": "client: for all customers of the client."},
        ),
    ] = CUSTOMER
    preview: Annotated[
        bool,
        flag_rule("preview", "Correction.InvalidPreview", "true: show what would change, and change nothing."),
    ] = False

    def record(self) -> NewCorrection:
        """Return the correction to store.

        Raises:
            InvalidRequest: Its fields contradict each other.
        """
        if faults := self._faults():
            one_code = len({fault.code for fault in faults}) == 1
            code, says = (faults[0].code, faults[0].message) if one_code else (SEVERAL, SEVERAL_MESSAGE)
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
            CHANGES_NOTHING: self.category is None and self.counterparty_name is None,
            WRONG_SCOPE: self.scope == CLIENT and self.transaction_id is not None,
            WRONG_SIDE: bool(self.direction and side and side != self.direction),
        }
        return [fault for fault, holds in wrong.items() if holds]

    def _side(self) -> str | None:
        """Return the category's side of the account, or None without a category or if it can be on both sides."""
        sign = TAXONOMY.categories[self.category].sign if self.category else "either"
        return None if sign == "either" else sign


SEVERAL, SEVERAL_MESSAGE = "Request.Invalid", "Several things are wrong with the request."
WRONG_TARGET = Fault("", "Correction.WrongTarget", "Give exactly one of transactionId, counterparty and pattern.")
CHANGES_NOTHING = Fault("", "Correction.ChangesNothing", "Give a category, a counterparty, or both.")
WRONG_SCOPE = Fault("/scope", "Correction.WrongScope", "The scope of a correction of one transaction must be customer.")
WRONG_SIDE = Fault("/category", "Correction.WrongSide", "The category is for the other side of the account.")
FAULTS = (WRONG_TARGET, CHANGES_NOTHING, WRONG_SCOPE, WRONG_SIDE)


class CategoryCountView(View):
    category: str = Field(description="Current category.")
    count: int = Field(description="Transactions of this category that change.")


class ChangedTransactionView(View):
    """A transaction before the correction."""

    transaction_id: UUID
    date: date
    description: str = Field(description="As in the transaction, with card and tax file numbers masked.")
    amount: Money = Field(description="Negative is money out.")
    category: str = Field(description="A slug of the taxonomy, before the change.")
    counterparty: str | None = Field(description="Before the change; null if none is named.")


class SimilarView(View):
    """The other transactions that are like the corrected one, and what to send to correct all of them."""

    counterparty: str | None = Field(description="What to send as `counterparty`. Null if the pattern is to be sent.")
    pattern: str | None = Field(description="What to send as `pattern`, for transactions without a counterparty.")
    direction: Literal["credit", "debit"] = Field(description="What to send as `direction`.")
    transaction_count: int = Field(description="Stored transactions that this selects besides the corrected one.")
    changed_count: int = Field(description="Selected transactions that it changes.")
    examples: Sequence[ChangedTransactionView] = Field(
        description=f"The first transactions that would change, at most {MAX_EXAMPLES}."
    )


class MadeCorrectionView(View):
    preview: bool = Field(description="True: nothing was stored or changed.")
    correction_id: UUID | None = Field(description="Null in a preview.")
    job_id: UUID | None = Field(description="The job that applies it to this customer. Null in a preview.")
    transaction_count: int = Field(description="Stored transactions that it selects.")
    changed_count: int = Field(description="Selected transactions that it changes.")
    customer_count: int = Field(description="Customers with selected transactions.")
    by_category: Sequence[CategoryCountView] = Field(
        description="Changed transactions by current category, most first."
    )
    examples: Sequence[ChangedTransactionView] = Field(
        description=f"In a preview: the first transactions that would change, at most {MAX_EXAMPLES}."
    )
    similar: SimilarView | None = Field(
        description="In a preview of a correction of one transaction: the similar ones. Null if there are none."
    )


def describe_made(
    reached: Reach, made: Mapping[str, UUID] | None, similar: Similar | None = None
) -> MadeCorrectionView:
    """Return the response to a correction. `made` holds the ids of the correction and its job; None in a preview."""
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
        similar=None if similar is None else _describe_similar(similar),
    )


def _describe_similar(similar: Similar) -> SimilarView:
    correction, reached = similar.correction, similar.reach
    return SimilarView.of(
        {
            "counterparty": correction.counterparty,
            "pattern": correction.words,
            "direction": correction.direction,
            "transaction_count": reached.decided,
            "changed_count": reached.changed,
            "examples": [_example(row) for row in reached.examples],
        }
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

    correction_id: UUID
    transaction_id: UUID | None = Field(
        description="The only transaction that it corrects; null if it selects by counterparty or words."
    )
    counterparty: str | None = Field(description="Selects by the counterparty; null if not.")
    pattern: str | None = Field(description="Selects by these words in the text; null if not.")
    direction: Literal["credit", "debit"] | None = Field(description="Null: both.")
    category: str | None = Field(description="Null: not corrected.")
    counterparty_name: str | None = Field(description="Null: not corrected.")
    scope: Literal["customer", "client"] = Field(description="client: applies to all customers of the client.")
    transaction_count: int = Field(description="Transactions of this customer that it selects now.")
    date_made: datetime
    made_by: str = Field(description="Id of the user or the API key.")
    date_revoked: datetime | None = Field(description="It does not apply from this moment on.")
    revoked_by: str | None = Field(description="Id of the user or the API key; null unless revoked.")


class CorrectionListView(Counts):
    corrections: list[CorrectionView] = Field(description="Newest first, with revoked ones.")


def describe_correction(correction: Correction, count: int) -> CorrectionView:
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
