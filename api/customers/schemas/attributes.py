"""A customer's attributes as they are sent and shown."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal, InvalidOperation
from typing import Annotated, Any

from pydantic import (
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    ValidatorFunctionWrapHandler,
    WithJsonSchema,
    field_validator,
    model_validator,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

from api.core.schemas.common import Counts, Received, View
from api.core.schemas.rules import Rule, day, moment, optional, refusal, text
from pipelines.intake.masking import mask_text
from pipelines.vocabulary.strict_json import Number
from storage.monitoring.attributes import MOST_PER_CUSTOMER, Attribute, NewAttribute, Value

MAX_TEXT = 1_000  # characters
MAX_SOURCE = 200  # characters
INTEGER_DIGITS = DECIMALS = 18
NAME = r"^[A-Za-z][A-Za-z0-9_.-]{0,63}$"

Plain = Annotated[Value | None, WithJsonSchema({"type": ["string", "number", "boolean", "null"]})]


def plain_value(given: Any) -> Value:
    """Text, true or false, or a number exactly as it was written."""
    if type(given) is bool:
        return given
    return _exact(given) if type(given) is Number else mask_text(text(MAX_TEXT)(given))


def _exact(number: Number) -> Decimal:
    """Every digit counts: there is no rounding, so a number with too many is refused."""
    if len(number) > 2 * (INTEGER_DIGITS + DECIMALS):
        raise ValueError
    try:
        exact = Decimal(number)
    except InvalidOperation:  # its exponent is beyond any
        raise ValueError from None
    if exact == 0:
        return Decimal(0)
    exponent = exact.as_tuple().exponent
    if exact.adjusted() >= INTEGER_DIGITS or not isinstance(exponent, int) or exponent < -DECIMALS:
        raise ValueError
    return Decimal(f"{exact:f}")


INVALID_VALUE = "Attribute.InvalidValue"
VALUE_SAYS = (
    f"A value is text of 1 to {MAX_TEXT:,} characters, true or false, or a number of at most {INTEGER_DIGITS} digits "
    f"before and {DECIMALS} after the point."
)
VALUE_SCHEMAS: Sequence[dict[str, Any]] = (
    {"type": "string", "minLength": 1, "maxLength": MAX_TEXT},
    {"type": "number", "exclusiveMinimum": -(10**INTEGER_DIGITS), "exclusiveMaximum": 10**INTEGER_DIGITS},
    {"type": "boolean"},
)
VALUE = Rule(plain_value, INVALID_VALUE, VALUE_SAYS, {"anyOf": list(VALUE_SCHEMAS)})


@dataclass(frozen=True)
class BareOrWhole:
    """A bare value stands for an attribute that has nothing but its value."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_wrap_validator_function(self._read, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {"anyOf": [handler(schema), *VALUE_SCHEMAS]}

    @staticmethod
    def _read(given: Any, whole: ValidatorFunctionWrapHandler) -> Any:
        if isinstance(given, dict):
            return whole(given)
        try:
            return SentAttribute.model_construct(value=plain_value(given))
        except ValueError:
            raise refusal(INVALID_VALUE, VALUE_SAYS) from None


class SentAttribute(Received):
    value: Annotated[Value, VALUE]
    source: Annotated[
        str | None,
        Rule(
            optional(lambda given: mask_text(text(MAX_SOURCE)(given))),
            "Attribute.InvalidSource",
            f"source is text of at most {MAX_SOURCE} characters.",
            {"type": ["string", "null"], "maxLength": MAX_SOURCE, "description": "Where the value is from."},
        ),
    ] = None
    evidence_date: Annotated[
        date | None,
        Rule(
            optional(day),
            "Attribute.InvalidEvidenceDate",
            "evidenceDate is a date (YYYY-MM-DD).",
            {
                "anyOf": [{"type": "string", "format": "date"}, {"const": ""}, {"type": "null"}],
                "description": "The day of the evidence for it.",
            },
        ),
    ] = None
    expires_at: Annotated[
        datetime | None,
        Rule(
            optional(moment),
            "Attribute.InvalidExpiry",
            "expiresAt is an ISO 8601 date-time with its offset.",
            {
                "anyOf": [{"type": "string", "format": "date-time"}, {"const": ""}, {"type": "null"}],
                "description": "From then on the value is not available.",
            },
        ),
    ] = None

    @model_validator(mode="before")
    @classmethod
    def _with_value(cls, given: Any) -> Any:
        """One without a value has a wrong one."""
        return {"value": None, **given} if isinstance(given, dict) else given

    def record(self) -> NewAttribute:
        return NewAttribute(self.value, self.source, self.evidence_date, self.expires_at)


class SentAttributes(Received):
    attributes: dict[str, Annotated[SentAttribute, BareOrWhole()] | None] = Field(
        description="Names that are given are set, or removed for null; the others stay as they are.",
        json_schema_extra={"propertyNames": {"pattern": NAME}, "maxProperties": MOST_PER_CUSTOMER},
    )

    @field_validator("attributes", mode="before")
    @classmethod
    def _named(cls, given: Any) -> Any:
        """Tell wrong names before any value, and without repeating them."""
        if isinstance(given, dict) and len(given) > MOST_PER_CUSTOMER:
            raise refusal("Attribute.InvalidCount", f"{MOST_PER_CUSTOMER} attributes at most.")
        if isinstance(given, dict) and not all(re.fullmatch(NAME.strip("^$"), name) for name in given):
            raise refusal(
                "Attribute.InvalidName", "A name is an ASCII letter and up to 63 more letters, digits, _, . or -."
            )
        return given

    def records(self) -> dict[str, NewAttribute | None]:
        return {name: None if sent is None else sent.record() for name, sent in self.attributes.items()}


class AttributeView(View):
    """What holds under a name."""

    value: Plain = Field(description="Null once it has expired.")
    source: str | None
    evidence_date: date | None
    expires_at: datetime | None
    available: bool = Field(description="False once it has expired.")
    date_set: datetime
    set_by: str = Field(description="Id of the API key.")


class AttributeChangeView(View):
    name: str
    value: Plain = Field(description="Null when the attribute was removed.")
    source: str | None
    evidence_date: date | None
    expires_at: datetime | None
    date_set: datetime = Field(validation_alias="set_at")
    set_by: str = Field(description="Id of the API key.")


class AttributesView(View):
    attributes: dict[str, AttributeView]


class AttributeHistoryView(Counts):
    attributes: dict[str, AttributeView] = Field(description="What holds now, by name.")
    history: list[AttributeChangeView] = Field(description="Every change, newest first; this is what pages count.")


def shown(found: Sequence[Attribute], now: datetime) -> dict[str, AttributeView]:
    """What holds, by name; an expired value is withheld."""
    return {attribute.name: _view(attribute, available=attribute.available(now)) for attribute in found}


def _view(attribute: Attribute, *, available: bool) -> AttributeView:
    return AttributeView(
        value=attribute.value if available else None,
        source=attribute.source,
        evidence_date=attribute.evidence_date,
        expires_at=attribute.expires_at,
        available=available,
        date_set=attribute.set_at,
        set_by=attribute.set_by,
    )
