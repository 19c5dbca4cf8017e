"""Fields of forms for the inputs and attributes that a policy declares."""

import re
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

from starlette.datastructures import FormData

from api.console.calls import Refused
from pipelines.pages.document import UNPRINTABLE

FLAGS = {"yes": True, "no": False}
PERCENT = "percent"
YEAR_MONTH = "yearMonth"
Faults = dict[str, str]  # by the name of the input or attribute

_NUMBER = re.compile(
    r"(?P<minus>-?) ?(?P<dollar>\$ ?)?(?P<digits>(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]+|(?=\.[0-9]))(?:\.[0-9]*)?)"
    r"(?P<percent> ?%)?"
)
_YEAR_MONTH = re.compile(r"[1-9][0-9]{3}(0[1-9]|1[0-2])")


def fields(
    declared: Iterable[Mapping[str, Any]], prefix: str, values: Mapping[str, Any], faults: Mapping[str, str]
) -> list[dict[str, Any]]:
    """Return what a template needs to draw the fields. Their names begin with the prefix.

    Args:
        values: the fields of a form that was sent, or values as the API has them, under the fields' names.
    """
    return [_field(each, f"{prefix}.{each['name']}", values, faults.get(each["name"], "")) for each in declared]


def _field(declared: Mapping[str, Any], name: str, values: Mapping[str, Any], fault: str) -> dict[str, Any]:
    value = as_text(values.get(name), declared["format"])
    shown = values.get(_shown(name), value)
    has_lines = any("\n" in as_typed(text) for text in (value, shown))
    return {**declared, "field": name, "value": value, "shown": shown, "has_lines": has_lines, "fault": fault}


def _shown(field: str) -> str:
    """Return the name of the hidden field with the text that a field had when its page was shown."""
    return f"shown.{field}"


def as_text(value: Any, value_format: str | None = None) -> str:
    """Return a value as its field shows it: a share as percent. Text is what somebody typed."""
    match value:
        case None | bool():
            return {None: "", True: "yes", False: "no"}[value]
        case Decimal() | int():
            number = Decimal(value)
            return f"{number.scaleb(2) if value_format == PERCENT else number:f}"
    return str(value)


def read(declared: Iterable[Mapping[str, Any]], form: FormData, prefix: str) -> tuple[dict[str, Any], Faults]:
    """Return the values of the fields that are not empty, by the names of what is declared, and faults."""
    values, faults = dict[str, Any](), Faults()
    for each in declared:
        if text := as_typed(str(form.get(f"{prefix}.{each['name']}", ""))).strip():
            try:
                values[each["name"]] = read_value(each, text)
            except ValueError as fault:
                faults[each["name"]] = str(fault)
    return values, faults


def read_changes(declared: Iterable[Mapping[str, Any]], form: FormData, prefix: str) -> tuple[dict[str, Any], Faults]:
    """Return the values of the fields that somebody changed, None for those that were emptied, and faults.

    They are compared with what the page showed, not with what is stored by now: a value that has been stored since, or
    that the page did not show, must not be replaced.
    """
    fields = {each["name"]: f"{prefix}.{each['name']}" for each in declared}
    changed = [
        each
        for each in declared
        if (name := fields[each["name"]]) in form and not is_same(str(form[name]), str(form.get(_shown(name), "")))
    ]
    values, faults = read(changed, form, prefix)
    return {each["name"]: values.get(each["name"]) for each in changed}, faults


def changed_fields(form: FormData, names: Iterable[str]) -> dict[str, str]:
    """Return the fields that somebody changed, so that a form doesn't replace what others have changed meanwhile."""
    texts = {name: str(form.get(name, "")) for name in names}
    return {name: text for name, text in texts.items() if not is_same_line(text, str(form.get(_shown(name), "")))}


def as_typed(text: str) -> str:
    """Return a field's text with the line breaks that people mean: browsers send each as two characters."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def is_same(sent: str, stored: str) -> bool:
    """Return whether a field still has the text that its page showed, where what can't be printed is replaced."""
    return as_typed(sent) == UNPRINTABLE.sub("\ufffd", as_typed(stored))


def is_same_line(sent: str, stored: str) -> bool:
    """Return whether a field of one line, from which browsers drop line breaks, still has the text of its page."""
    return is_same(sent, as_typed(stored).replace("\n", ""))


def faults_of(refusal: Refused, member: str) -> Faults:
    """Return the faults of a refused body's member, such as `inputs`, by name."""
    start = f"/{member}/"
    return {
        pointer.removeprefix(start).partition("/")[0]: message
        for pointer, message in refusal.faults.items()
        if pointer.startswith(start)
    }


def as_plain_number(text: str) -> str:
    """Return a number without `$` and commas between thousands. Other text stays as it is, for the API to refuse."""
    try:
        return f"{_number(text, None):f}"
    except ValueError:
        return text


def as_number(form: FormData, name: str) -> int | None:
    """Return a whole number of a form, or None."""
    return as_whole(str(form.get(name, "")))


def as_whole(text: str) -> int | None:
    """Return a whole number of at most 9 digits, or None."""
    return int(text) if text.isdecimal() and len(text) < 10 else None


def read_value(declared: Mapping[str, Any], text: str) -> Any:
    """Return the value of a field. Raise ValueError, with words for the page, if the text is not one of its kind."""
    if declared["kind"] == "decimal":
        return _number(text, declared["format"])
    if declared["kind"] == "boolean":
        if text not in FLAGS:
            raise ValueError("Choose yes or no.")
        return FLAGS[text]
    return text


def _number(text: str, value_format: str | None) -> Decimal:
    """Return a number with commas only between thousands, as `1.000,50` would else be 1.0005 and `1,5` be 15.

    A unit is accepted where the field has it: `62%` where a share is expected as 0.62 must not become 62.
    """
    if value_format == YEAR_MONTH and _YEAR_MONTH.fullmatch(text) is None:
        raise ValueError("Type the year and the month, such as 202606.")
    match = _NUMBER.fullmatch(text)
    if match is None or (match["dollar"] and value_format == PERCENT) or (match["percent"] and value_format != PERCENT):
        raise ValueError("Type a number, such as 1,000.50.")
    number = Decimal(f"{match['minus']}{match['digits'].replace(',', '')}")
    return number.scaleb(-2) if value_format == PERCENT else number
