"""How a field of a request is checked: one rule holds its parser, its error code, its message and its JSON Schema.

Pydantic walks the model and collects the faults. What a field means is decided here, strictly: the number `1` is not
text, `"+1"` is not a whole number, and a parameter that is given twice is refused.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import StrEnum
from typing import Any
from uuid import UUID

from pydantic import (
    BaseModel,
    BeforeValidator,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    ValidationError,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError, PydanticOmit, core_schema

from pipelines.intake.masking import mask_text
from pipelines.vocabulary.strict_json import Number

MAX_INTEGER_DIGITS = 10
MAX_FAULTS = 100  # how many faults of one request are reported
CENT, NOISE = Decimal("0.01"), Decimal("0.000001")
MOMENT = "an ISO 8601 date-time with its offset"

Parse = Callable[[Any], object]


def refusal(code: str, message: str) -> PydanticCustomError:
    """Return the error that a validator raises."""
    return PydanticCustomError(code, message)  # pyrefly: ignore[bad-argument-type]  # it expects literal strings


@dataclass(frozen=True)
class Rule:
    """The rule of a field. `parse` returns the value, or raises ValueError or ArithmeticError for anything else."""

    parse: Parse
    code: str
    message: str
    schema: dict[str, Any]

    def __get_pydantic_core_schema__(self, _source: object, _handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(self._parse)

    def __get_pydantic_json_schema__(self, _schema: CoreSchema, _handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return dict(self.schema)

    @property
    def sentence(self) -> str:
        """The message, with every value of an enumeration."""
        allowed = [value for value in self.schema.get("enum", ()) if isinstance(value, str) and value]
        if all(value in self.message for value in allowed):
            return self.message
        return f"{self.message} Valid values: {', '.join(allowed)}."

    def _parse(self, value: Any) -> object:
        try:
            return self.parse(value)
        except (ValueError, ArithmeticError):
            raise refusal(self.code, self.sentence) from None


@dataclass(frozen=True)
class Parameter(Rule):
    """The rule of a query parameter. If it is given twice, it arrives as a list (`api.http.route`) and is refused."""

    def _parse(self, value: str | list[str]) -> object:
        return super()._parse(None if isinstance(value, list) else value)


@dataclass(frozen=True)
class UncheckedObject:
    """A JSON object that is accepted unchecked. The documentation shows `model`, the form of a valid one."""

    model: type[BaseModel]
    otherwise: str  # what happens to an object of another form

    def __get_pydantic_core_schema__(self, _source: object, _handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.is_instance_schema(dict)

    def __get_pydantic_json_schema__(self, _schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        good = handler(self.model.__pydantic_core_schema__)
        return {"anyOf": [good, {"type": "object", "description": self.otherwise}]}


class ListItem:
    """An item of a list. Once more faults are known than are reported, the remaining items are skipped."""

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.with_info_wrap_validator_function(self._validate, handler(source))

    @staticmethod
    def _validate(value: object, validate: ValidatorFunctionWrapHandler, info: ValidationInfo) -> object:
        assert info.context is not None
        known: Counter[str] = info.context["faults"]
        if known.total() > MAX_FAULTS:
            raise PydanticOmit
        try:
            return validate(value)
        except ValidationError as error:
            known["reported"] += error.error_count()
            raise


def count_between(low: int, high: int, code: str, message: str) -> BeforeValidator:
    """Refuse a list with a wrong number of items before its items are checked."""

    def check(value: Any) -> Any:
        if isinstance(value, list) and not low <= len(value) <= high:
            raise refusal(code, message)
        return value

    return BeforeValidator(check)


# Rules that several models need


def optional_text(
    name: str, code: str, max_characters: int, description: str = "", *, parse: Callable[[int], Parse] | None = None
) -> Rule:
    """Return the rule of text that may be left out, null or empty."""
    return Rule(
        optional((parse or text)(max_characters)),
        code,
        f"{name} must be text of at most {max_characters:,} characters.",
        _add_description({"type": ["string", "null"], "maxLength": max_characters}, description),
    )


def required_text(
    name: str, code: str, max_characters: int, description: str = "", *, parse: Callable[[int], Parse] | None = None
) -> Rule:
    """Return the rule of text that must be given."""
    return Rule(
        (parse or text)(max_characters),
        code,
        f"{name} must be text of 1 to {max_characters:,} characters.",
        _add_description({"type": "string", "minLength": 1, "maxLength": max_characters}, description),
    )


def identifiers_or_null(name: str, code: str, max_items: int, description: str) -> Rule:
    """Return the rule of a list of different UUIDs, or null."""
    schema = {"type": "array", "items": {"type": "string", "format": "uuid"}, "minItems": 1, "maxItems": max_items}
    return Rule(
        or_null(distinct(identifier, max_items)),
        code,
        f"{name} must be a list of 1 to {max_items:,} different UUIDs.",
        {"anyOf": [schema, {"type": "null"}], "description": description},
    )


def number_rule(name: str, code: str, low: int, high: int, description: str) -> Rule:
    """Return the rule of a whole JSON number."""
    return Rule(
        number(low, high),
        code,
        f"{name} must be a whole number from {low:,} to {high:,}.",
        {"type": "integer", "minimum": low, "maximum": high, "description": description},
    )


def flag_rule(name: str, code: str, description: str = "") -> Rule:
    """Return the rule of a JSON true or false."""
    return Rule(flag, code, f"{name} is true or false.", _add_description({"type": "boolean"}, description))


def whole_parameter(name: str, code: str, low: int, high: int, description: str) -> Parameter:
    """Return the rule of a query parameter that is a whole number."""
    return Parameter(
        whole(low, high),
        code,
        f"{name} must be a whole number from {low:,} to {high:,}, given once.",
        {"type": "integer", "minimum": low, "maximum": high, "description": description},
    )


def moment_parameter(name: str, code: str, description: str) -> Parameter:
    """Return the rule of a query parameter that is a moment."""
    schema = {"type": "string", "format": "date-time", "description": description}
    return Parameter(moment, code, f"{name} must be {MOMENT}, given once.", schema)


def identifier_parameter(name: str, code: str, description: str) -> Parameter:
    """Return the rule of a query parameter that is a UUID."""
    schema = {"type": "string", "format": "uuid", "description": description}
    return Parameter(identifier, code, f"{name} must be one UUID, given once.", schema)


def choice_parameter(name: str, code: str, allowed: type[StrEnum] | Iterable[str], description: str) -> Parameter:
    """Return the rule of a query parameter that is one of several words, or a member of an enumeration."""
    words = list(allowed)
    return Parameter(
        allowed if isinstance(allowed, type) else one_of(*words),
        code,
        f"{name} must be given once, as one of {', '.join(words)}.",
        {"type": "string", "enum": words, "description": description},
    )


def flag_parameter(name: str, code: str, description: str) -> Parameter:
    """Return the rule of a query parameter that is true or false."""
    return Parameter(
        lambda value: one_of("true", "false")(value) == "true",
        code,
        f"{name} must be true or false, given once.",
        {"type": "boolean", "description": description},
    )


def _add_description(schema: dict[str, Any], description: str) -> dict[str, Any]:
    return schema | {"description": description} if description else schema


# Parsers: each returns the value, or raises ValueError or ArithmeticError


def text(max_characters: int) -> Callable[[Any], str]:
    """Parse text of 1 to `max_characters`. A JSON number, which is a subclass of str here, is not text."""

    def parse(value: Any) -> str:
        if type(value) is not str or not 0 < len(value) <= max_characters or "\0" in value:
            raise ValueError
        return value

    return parse


def masked_text(max_characters: int) -> Callable[[Any], str]:
    """Parse text of 1 to `max_characters`, with card and tax file numbers masked."""
    parse = text(max_characters)
    return lambda value: mask_text(parse(value))


def optional(parse: Parse) -> Parse:
    """Let null and `""` mean absent."""
    return lambda value: None if value is None or value == "" else parse(value)


def or_null(parse: Parse) -> Parse:
    """Let null mean absent."""
    return lambda value: None if value is None else parse(value)


def one_of(*allowed: str) -> Callable[[Any], str]:
    """Parse one of several words."""

    def parse(value: Any) -> str:
        if type(value) is not str or value not in allowed:
            raise ValueError
        return value

    return parse


def distinct(parse: Parse, max_items: int) -> Callable[[Any], list[Any]]:
    """Parse a list of 1 to `max_items` values, all different."""

    def parse_list(value: Any) -> list[Any]:
        if not isinstance(value, list) or not 1 <= len(value) <= max_items:
            raise ValueError
        parsed = [parse(item) for item in value]
        if len(set(parsed)) != len(parsed):
            raise ValueError
        return parsed

    return parse_list


def flag(value: Any) -> bool:
    """Parse a JSON true or false."""
    if type(value) is not bool:
        raise ValueError
    return value


def whole(low: int, high: int) -> Callable[[Any], int]:
    """Parse a plain decimal integer in text: no sign, no point, no leading zero."""

    def parse(value: Any) -> int:
        if not isinstance(value, str) or not re.fullmatch("0|[1-9][0-9]*", value):
            raise ValueError
        if len(value) > MAX_INTEGER_DIGITS or not low <= int(value) <= high:
            raise ValueError
        return int(value)

    return parse


def number(low: int, high: int) -> Callable[[Any], int]:
    """Parse a whole JSON number. 2.0 is one, as in JSON Schema."""

    def parse(value: Any) -> int:
        if type(value) is not Number:
            raise ValueError
        exact = Decimal(value)
        if not low <= exact <= high or exact != exact.to_integral_value():
            raise ValueError
        return int(exact)

    return parse


def identifier(value: Any) -> UUID:
    """Parse a UUID in its usual form of 36 characters, in either case."""
    if type(value) is not str or len(value) != 36 or str(UUID(value)) != value.lower():
        raise ValueError
    return UUID(value)


def day(value: Any) -> date:
    """Parse an ISO date, YYYY-MM-DD."""
    if type(value) is not str or not re.fullmatch("[0-9]{4}-[0-9]{2}-[0-9]{2}", value):
        raise ValueError
    return date.fromisoformat(value)


def moment(value: Any) -> datetime:
    """Parse an ISO 8601 date-time with its offset, as UTC."""
    if type(value) is not str or "T" not in value:
        raise ValueError
    parsed = datetime.fromisoformat(value)
    if parsed.tzinfo is None:
        raise ValueError
    return parsed.astimezone(UTC)


def money(value: Any) -> Decimal:
    """Parse an amount of at least zero, as a JSON number or text, exact to the cent.

    Binary noise below 10⁻⁶ is rounded away: 0.1 + 0.2 is thirty cents.
    """
    if not isinstance(value, str) or not re.fullmatch(r"[0-9]{1,13}(\.[0-9]{1,40})?", value):
        raise ValueError
    exact = Decimal(value)
    cents = exact.quantize(CENT)
    if abs(exact - cents) >= NOISE:
        raise ValueError
    return cents
