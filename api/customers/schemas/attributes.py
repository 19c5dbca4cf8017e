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
from api.core.schemas.rules import MOMENT, Rule, day, masked_text, moment, optional, optional_text, refusal
from pipelines.vocabulary.strict_json import Number
from storage.monitoring.attributes import MAX_PER_CUSTOMER, Attribute, NewAttribute, Value

MAX_TEXT = 1_000  # characters
MAX_SOURCE = 200  # characters
INTEGER_DIGITS = DECIMALS = 18
NAME = r"^[A-Za-z][A-Za-z0-9_.-]{0,63}$"

Plain = Annotated[Value | None, WithJsonSchema({"type": ["string", "number", "boolean", "null"]})]


def plain_value(given: Any) -> Any:
    """Parse text, true or false, or a number exactly as it was written."""
    if type(given) is bool:
        return given
    return _exact(given) if type(given) is Number else masked_text(MAX_TEXT)(given)


def _exact(number: Number) -> Decimal:
    """Parse a number without rounding; one with too many digits is refused."""
    if len(number) > 2 * (INTEGER_DIGITS + DECIMALS):
        raise ValueError
    try:
        exact = Decimal(number)
    except InvalidOperation:  # the exponent is out of range
        raise ValueError from None
    if exact == 0:
        return Decimal(0)
    exponent = exact.as_tuple().exponent
    if exact.adjusted() >= INTEGER_DIGITS or not isinstance(exponent, int) or exponent < -DECIMALS:
        raise ValueError
    return Decimal(f"{exact:f}")


INVALID_VALUE = "Attribute.InvalidValue"
VALUE_SAYS = (
    f"A value must be text of 1 to {MAX_TEXT:,} characters, true or false, or a number of at most {INTEGER_DIGITS} "
    f"digits before and {DECIMALS} after the point."
)
VALUE_SCHEMAS: Sequence[dict[str, Any]] = (
    {"type": "string", "minLength": 1, "maxLength": MAX_TEXT},
    {"type": "number", "exclusiveMinimum": -(10**INTEGER_DIGITS), "exclusiveMaximum": 10**INTEGER_DIGITS},
    {"type": "boolean"},
)
VALUE = Rule(
    plain_value,
    INVALID_VALUE,
    VALUE_SAYS,
    {
        "anyOf": list(VALUE_SCHEMAS),
        "description": "Numbers keep all their digits; card and tax file numbers in text are masked.",
    },
)


@dataclass(frozen=True)
class BareOrWhole:
    """An attribute as an object, or as its bare value when nothing else is known about it."""

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
        optional_text(
            "source", "Attribute.InvalidSource", MAX_SOURCE, "Where the value comes from.", parse=masked_text
        ),
    ] = None
    evidence_date: Annotated[
        date | None,
        Rule(
            optional(day),
            "Attribute.InvalidEvidenceDate",
            "evidenceDate must be a date (YYYY-MM-DD).",
            {
                "anyOf": [{"type": "string", "format": "date"}, {"const": ""}, {"type": "null"}],
                "description": "The day of the evidence for the value.",
            },
        ),
    ] = None
    expires_at: Annotated[
        datetime | None,
        Rule(
            optional(moment),
            "Attribute.InvalidExpiry",
            f"expiresAt must be {MOMENT}.",
            {
                "anyOf": [{"type": "string", "format": "date-time"}, {"const": ""}, {"type": "null"}],
                "description": "The value is not available from this moment on.",
            },
        ),
    ] = None

    @model_validator(mode="before")
    @classmethod
    def _with_value(cls, given: Any) -> Any:
        """Treat a missing value as an invalid one."""
        return {"value": None, **given} if isinstance(given, dict) else given

    def record(self) -> NewAttribute:
        return NewAttribute(self.value, self.source, self.evidence_date, self.expires_at)


class SentAttributes(Received):
    attributes: dict[str, Annotated[SentAttribute, BareOrWhole()] | None] = Field(
        description="Named attributes are set, or removed if null. The others do not change.",
        json_schema_extra={"propertyNames": {"pattern": NAME}, "maxProperties": MAX_PER_CUSTOMER},
    )

    @field_validator("attributes", mode="before")
    @classmethod
    def _check_names(cls, given: Any) -> Any:
        """Refuse wrong names before any value is checked, without repeating the names."""
        if isinstance(given, dict) and len(given) > MAX_PER_CUSTOMER:
            raise refusal("Attribute.InvalidCount", f"A customer may have at most {MAX_PER_CUSTOMER} attributes.")
        if isinstance(given, dict) and not all(re.fullmatch(NAME.strip("^$"), name) for name in given):
            raise refusal(
                "Attribute.InvalidName", "A name must be an ASCII letter and up to 63 more letters, digits, _, . or -."
            )
        return given

    def records(self) -> dict[str, NewAttribute | None]:
        return {name: None if sent is None else sent.record() for name, sent in self.attributes.items()}


class AttributeView(View):
    """The current value of an attribute."""

    value: Plain = Field(description="Null once it has expired.")
    source: str | None = Field(description="Where the value comes from; null if not stated.")
    evidence_date: date | None = Field(description="The day of the evidence; null if not stated.")
    expires_at: datetime | None = Field(description="When the value stops being available; null: never.")
    available: bool = Field(description="False once it has expired.")
    date_set: datetime = Field(description="When this value was set.")
    set_by: str = Field(description="Id of the user or the API key.")


class AttributeChangeView(View):
    name: str
    value: Plain = Field(description="Null when the attribute was removed.")
    source: str | None = Field(description="Where the value comes from; null if not stated.")
    evidence_date: date | None = Field(description="The day of the evidence; null if not stated.")
    expires_at: datetime | None = Field(description="When the value stops being available; null: never.")
    date_set: datetime = Field(validation_alias="set_at", description="When the value was set or removed.")
    set_by: str = Field(description="Id of the user or the API key.")


class AttributesView(View):
    attributes: dict[str, AttributeView] = Field(description="By name. Expired ones are listed without their values.")


class AttributeHistoryView(Counts):
    attributes: dict[str, AttributeView] = Field(description="The current attributes, by name.")
    history: list[AttributeChangeView] = Field(description="Every change, newest first. Paging applies to this field.")


def describe_attributes(found: Sequence[Attribute], now: datetime) -> dict[str, AttributeView]:
    """Return the current attributes by name, without expired values."""
    return {attribute.name: _view(attribute, available=attribute.is_available(now)) for attribute in found}


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
