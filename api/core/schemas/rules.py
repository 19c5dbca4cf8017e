"""How a field of a request is read: one rule for its parsing, its error code, its sentence and its schema.

Pydantic walks the model and gathers the faults; what a field means is decided here, strictly: `1` is no text, `"+1"` is
no whole number, and a parameter given twice is no parameter.
"""

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from pydantic import (
    BaseModel,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    ValidationError,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError, PydanticOmit, core_schema

MAX_INTEGER_DIGITS = 10
MAX_FAULTS = 100  # of one request, that are told
CENT, NOISE = Decimal("0.01"), Decimal("0.000001")


def refusal(code: str, says: str) -> PydanticCustomError:
    """For a validator to raise; what it says is told as it stands."""
    return PydanticCustomError(code, says)  # pyrefly: ignore[bad-argument-type]  # as a template it would be a literal


@dataclass(frozen=True)
class Rule:
    """A field's whole story: `parse` returns the value, or raises ValueError for anything that is not one."""

    parse: Callable[[Any], object]
    code: str
    says: str
    schema: dict[str, Any]

    def __get_pydantic_core_schema__(self, _source: object, _handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(self._read)

    def __get_pydantic_json_schema__(self, _schema: CoreSchema, _handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return dict(self.schema)

    @property
    def sentence(self) -> str:
        """What the rule says, with every value of an enumeration."""
        allowed = [value for value in self.schema.get("enum", ()) if isinstance(value, str) and value]
        if all(value in self.says for value in allowed):
            return self.says
        return f"{self.says} Valid values: {', '.join(allowed)}."

    def _read(self, value: Any) -> object:
        try:
            return self.parse(value)
        except (ValueError, OverflowError):
            raise refusal(self.code, self.sentence) from None


@dataclass(frozen=True)
class Parameter(Rule):
    """A rule for a query parameter. One that is given twice arrives as a list (`api.http.route`), and is refused."""

    def _read(self, value: str | list[str]) -> object:
        return super()._read(None if isinstance(value, list) else value)


@dataclass(frozen=True)
class Shown:
    """A JSON object that is taken as it came. The model tells readers of the documentation what a good one is."""

    model: type[BaseModel]
    otherwise: str

    def __get_pydantic_core_schema__(self, _source: object, _handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.is_instance_schema(dict)

    def __get_pydantic_json_schema__(self, _schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        good = handler(self.model.__pydantic_core_schema__)
        return {"anyOf": [good, {"type": "object", "description": self.otherwise}]}


class OneOfMany:
    """For the items of a list: once more faults are known than will be told, no further item is looked at."""

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.with_info_wrap_validator_function(self._read, handler(source))

    @staticmethod
    def _read(value: object, read: ValidatorFunctionWrapHandler, info: ValidationInfo) -> object:
        assert info.context is not None
        known: Counter[str] = info.context["faults"]
        if known.total() > MAX_FAULTS:
            raise PydanticOmit
        try:
            return read(value)
        except ValidationError as error:
            known["reported"] += error.error_count()
            raise


def text(max_characters: int) -> Callable[[Any], str]:
    """Text of 1 to `max_characters`; a JSON number is a subclass of str here, and no text."""

    def parse(value: Any) -> str:
        if type(value) is not str or not 0 < len(value) <= max_characters or "\0" in value:
            raise ValueError
        return value

    return parse


def optional(parse: Callable[[Any], object]) -> Callable[[Any], object]:
    """The same, where null and `""` mean absent."""
    return lambda value: None if value is None or value == "" else parse(value)


def or_null(parse: Callable[[Any], object]) -> Callable[[Any], object]:
    """The same, or null."""
    return lambda value: None if value is None else parse(value)


def one_of(*allowed: str) -> Callable[[Any], str]:
    def parse(value: Any) -> str:
        if type(value) is not str or value not in allowed:
            raise ValueError
        return value

    return parse


def whole(low: int, high: int) -> Callable[[Any], int]:
    """A plain decimal integer in text: no sign, no point, no leading zero."""

    def parse(value: Any) -> int:
        if not isinstance(value, str) or not re.fullmatch("0|[1-9][0-9]*", value):
            raise ValueError
        if len(value) > MAX_INTEGER_DIGITS or not low <= int(value) <= high:
            raise ValueError
        return int(value)

    return parse


def identifier(value: Any) -> UUID:
    """A UUID in its usual form of 36 characters, in either case."""
    if type(value) is not str or len(value) != 36 or str(UUID(value)) != value.lower():
        raise ValueError
    return UUID(value)


def day(value: Any) -> date:
    """An ISO date, YYYY-MM-DD."""
    if type(value) is not str or not re.fullmatch("[0-9]{4}-[0-9]{2}-[0-9]{2}", value):
        raise ValueError
    return date.fromisoformat(value)


def moment(value: Any) -> datetime:
    """An ISO 8601 date-time with its offset, as UTC."""
    if type(value) is not str or "T" not in value:
        raise ValueError
    found = datetime.fromisoformat(value)
    if found.tzinfo is None:
        raise ValueError
    return found.astimezone(UTC)


def money(value: Any) -> Decimal:
    """An amount of at least zero as a JSON number or text, exact to the cent.

    Binary noise below 10⁻⁶ is rounded away: 0.1 + 0.2 is thirty cents.
    """
    if not isinstance(value, str) or not re.fullmatch(r"[0-9]{1,13}(\.[0-9]{1,40})?", value):
        raise ValueError
    exact = Decimal(value)
    cents = exact.quantize(CENT)
    if abs(exact - cents) >= NOISE:
        raise ValueError
    return cents
