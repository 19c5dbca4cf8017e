"""Check a document's shape: read it strictly, and report each fault in plain words.

A fault's place is a JSON pointer into the document as it was sent.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from functools import partial
from math import inf
from typing import Any, TypeVar

from pydantic import ValidationError

from pipelines.decisions import policy as documents
from pipelines.decisions.check.findings import Finding, Problem, finding
from pipelines.metrics.definition import SLUG, Strict
from pipelines.vocabulary.errors import build_pointer
from pipelines.vocabulary.strict_json import Number

_LARGEST_INTEGER = 10**18

Document = TypeVar("Document", bound=Strict)


def plain(document: Any) -> Any:
    """Return the document with numbers as numbers: `strict_json` reads them as text."""
    match document:
        case dict():
            return {name: plain(each) for name, each in document.items()}
        case list():
            return [plain(each) for each in document]
        case Number():
            return json.loads(document) if len(document) < 20 else float(document)
        case Decimal():
            return float(document)
        case int() if abs(document) > _LARGEST_INTEGER:  # writing its digits takes quadratic time
            return inf
        case _:
            return document


def parse_shape(document: object, model: type[Document]) -> tuple[Document | None, list[Finding]]:
    """Return the document as the model, or all faults of its shape.

    Args:
        document: as `plain` returns it, and within the limits of `bounds`.
    """
    try:
        return model.model_validate_json(json.dumps(document), strict=True), []
    except ValidationError as error:
        found = [_in_words(document, details) for details in error.errors(include_url=False)]
        return None, [each for each in found if each]


def _in_words(document: Any, details: Mapping[str, Any]) -> Finding | None:
    kind = details["type"]
    path = _path(document, tuple(details["loc"]), kind) or ()
    value = _value_at(document, path)
    if kind == "too_short" and isinstance(value, list) and len(value) >= details["ctx"]["min_length"]:
        return None  # pydantic does not count members that have faults of their own
    if kind == "union_tag_not_found":
        return finding(build_pointer((*path, "source")), "Missing", "`source` is missing.")
    if details["loc"] and details["loc"][-1] == documents.CONSTANT_FORM:
        return finding(build_pointer(path), *_not_a_constant(value, _is_compared(path)))
    return finding(build_pointer(path), *_WORDS.get(kind, _describe_unexpected)(details, value))


def _path(document: Any, loc: tuple[int | str, ...], kind: str) -> tuple[int | str, ...] | None:
    """Return the path to a fault without the names of forms that pydantic inserts; None if there is no such path."""
    if not loc:
        return ()
    step, rest = loc[0], loc[1:]
    if kind in {"missing", "extra_forbidden"} and not rest:
        return (step,) if isinstance(document, (dict, list)) else None
    deeper, skipped = partial(_step_into, document, step, rest, kind), partial(_path, document, rest, kind)
    paths = (skipped, deeper) if rest and rest[0] == step else (deeper, skipped)
    return next((path for path in (find() for find in paths) if path is not None), None)


def _step_into(document: Any, step: int | str, rest: tuple[int | str, ...], kind: str) -> tuple[int | str, ...] | None:
    if not _has_step(document, step):
        return None
    below = _path(document[step], rest, kind)
    return None if below is None else (step, *below)


def _has_step(document: Any, step: int | str) -> bool:
    if isinstance(document, list):
        return isinstance(step, int) and step < len(document)
    return isinstance(document, dict) and step in document


def _value_at(document: Any, path: Sequence[int | str]) -> Any:
    for step in path:
        if not _has_step(document, step):
            return None
        document = document[step]
    return document


# Messages


def _describe_missing(details: Mapping[str, Any], _: object) -> Problem:
    name = details["loc"][-1]
    return "Missing", "One more operand is needed." if isinstance(name, int) else f"`{name}` is missing."


def _not_text(_: object, value: object) -> Problem:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return "NotText", 'Text is needed. Numbers are written as text, so that no digit is lost: "0.25".'
    return "NotText", "Text is needed."


def _is_compared(path: Sequence[int | str]) -> bool:
    """Return whether the value is an operand of a comparison that an author might use for texts."""
    return path[-2:-1] in {("equals",), ("differs",)}


def _not_a_constant(value: object, is_compared: bool) -> Problem:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return _not_text(None, value)
    if isinstance(value, str):
        hint = " Texts are compared with `oneOf`." if is_compared and any(map(str.isalpha, value)) else ""
        return "NotADecimal", f"{_DECIMALS[documents.CONSTANT]}{hint}"
    return "NotANumber", 'A number is needed: a decimal as text, such as "0.25", or an object of one key.'


def _wrong_pattern(details: Mapping[str, Any], _: object) -> Problem:
    pattern = details["ctx"]["pattern"].removeprefix("^").removesuffix("$")
    return ("NotADecimal", _DECIMALS[pattern]) if pattern in _DECIMALS else ("BadName", _NAMES.get(pattern, _A_NAME))


def _unknown_form(details: Mapping[str, Any], value: object) -> Problem:
    tags = details["ctx"]["expected_tags"].replace("'", "`")
    forms = tags.removeprefix(f"`{documents.CONSTANT_FORM}`, ")
    or_constant = "" if forms == tags else ', or a constant, which is the text itself: "0.25"'
    if isinstance(value, dict) and len(value) != 1 and details["ctx"]["discriminator"] == "_form()":
        return "NotOneKey", f"An object of exactly one key is needed: one of {forms}{or_constant}."
    return "UnknownForm", f"There is no such form here: one of {forms} is needed{or_constant}."


def _own_message(details: Mapping[str, Any], _: object) -> Problem:
    """Return the message of one of our own validators."""
    words = str(details["ctx"]["error"])
    return "InvalidValue", f"{words[:1].upper()}{words[1:]}."


def _describe_unexpected(_details: object, _value: object) -> Problem:
    return "InvalidValue", "This value is not valid here."


def _write_problem(code: str, words: str) -> Callable[[Mapping[str, Any], object], Problem]:
    return lambda details, _: (code, words.format(**details.get("ctx", {})))


_AN_ID = 'An id is needed, such as "00000000-0000-4000-8000-000000000000".'
_WORDS: Mapping[str, Callable[[Mapping[str, Any], object], Problem]] = {
    "missing": _describe_missing,
    "extra_forbidden": _write_problem("UnknownField", "There is no such field here."),
    "string_type": _not_text,
    "string_pattern_mismatch": _wrong_pattern,
    "string_too_short": _write_problem("Empty", "This may not be empty."),
    "string_too_long": _write_problem("TooLong", "At most {max_length:,} characters are allowed."),
    "too_short": _write_problem("TooFew", "Too few entries: at least {min_length} needed."),
    "too_long": _write_problem("TooMany", "Too many entries: at most {max_length} allowed."),
    "int_type": _write_problem("NotAnInteger", "A whole number is needed, without quotes."),
    "finite_number": _write_problem("NotAnInteger", "A whole number is needed, without quotes."),
    "int_from_float": _write_problem("NotAnInteger", "A whole number is needed, without quotes."),
    "greater_than_equal": _write_problem("OutOfRange", "This may not be less than {ge}."),
    "less_than_equal": _write_problem("OutOfRange", "This may not be more than {le}."),
    "bool_type": _write_problem("NotABoolean", "`true` or `false` is needed, without quotes."),
    "literal_error": _write_problem("UnknownValue", "One of these is needed: {expected}."),
    "tuple_type": _write_problem("NotAList", "A list is needed."),
    "model_type": _write_problem("NotAnObject", "An object is needed."),
    "dict_type": _write_problem("NotAnObject", "An object is needed."),
    "model_attributes_type": _write_problem("NotAnObject", "An object is needed."),
    "union_tag_invalid": _unknown_form,
    "value_error": _own_message,
    "uuid_parsing": _write_problem("NotAnId", _AN_ID),
    "uuid_type": _write_problem("NotAnId", _AN_ID),
}
_A_NAME = "A name is needed: letters, digits, `_`, `.` and `-`, beginning with a letter, 64 characters at most."
_DECIMALS: Mapping[str, str] = {
    documents.CONSTANT: (
        'A decimal is needed, without separators: at most 15 digits before the point and 8 after it, such as "1250.5".'
    ),
    documents.CENTS: 'A decimal in whole cents is needed, not below zero, such as "0" or "2000.50".',
    documents.SOME_CENTS: 'A decimal above zero in whole cents is needed, such as "0.05" or "500".',
}
_NAMES: Mapping[str, str] = {
    SLUG.pattern: (
        "A slug is needed: lower-case letters, digits and `_`, beginning with a letter, 80 characters at most."
    ),
    documents.POLICY_SLUG: "A slug is needed: lower-case letters, digits and `-`, 63 characters at most.",
}
