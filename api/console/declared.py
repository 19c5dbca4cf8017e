"""Fields of forms for the inputs and attributes that a policy declares."""

from collections.abc import Iterable, Mapping
from decimal import Decimal, InvalidOperation
from typing import Any

from starlette.datastructures import FormData

from api.console.calls import Refused

FLAGS = {"yes": True, "no": False}
PERCENT = "percent"
Faults = dict[str, str]  # by the name of the input or attribute


def fields(
    declared: Iterable[Mapping[str, Any]], prefix: str, values: Mapping[str, Any], faults: Mapping[str, str]
) -> list[dict[str, Any]]:
    """Return what a template needs to draw the fields. Their names begin with the prefix.

    Args:
        values: the fields of a form that was sent, or values as the API has them, under the fields' names.
    """
    return [
        {**each, "field": (name := f"{prefix}.{each['name']}"), "value": as_text(values.get(name), each["format"]),
         "fault": faults.get(each["name"], "")}
        for each in declared
    ]  # fmt: skip


def as_text(value: Any, shape: str | None = None) -> str:
    """Return a value as its field shows it: a share as percent. Text is what somebody typed."""
    match value:
        case None | bool():
            return {None: "", True: "yes", False: "no"}[value]
        case Decimal() | int():
            number = Decimal(value)
            return f"{number.scaleb(2) if shape == PERCENT else number:f}"
    return str(value)


def read(declared: Iterable[Mapping[str, Any]], form: FormData, prefix: str) -> tuple[dict[str, Any], Faults]:
    """Return the values of the fields that are not empty, by the names of what is declared, and faults."""
    values, faults = dict[str, Any](), Faults()
    for each in declared:
        text = str(form.get(f"{prefix}.{each['name']}", "")).strip()
        if text:
            try:
                values[each["name"]] = _value(each, text)
            except (InvalidOperation, KeyError):
                faults[each["name"]] = "Type a number." if each["kind"] == "decimal" else "Choose yes or no."
    return values, faults


def faults_of(refusal: Refused, member: str) -> Faults:
    """Return the faults of a refused body's member, such as `inputs`, by name."""
    start = f"/{member}/"
    return {
        pointer.removeprefix(start).partition("/")[0]: message
        for pointer, message in refusal.faults.items()
        if pointer.startswith(start)
    }


def as_number(form: FormData, name: str) -> int | None:
    """Return a whole number of a form, or None."""
    text = str(form.get(name, ""))
    return int(text) if text.isdecimal() and len(text) < 10 else None


def _value(declared: Mapping[str, Any], text: str) -> Any:
    """Return the value of a field. Raise InvalidOperation or KeyError if the text is not a value of its kind."""
    if declared["kind"] == "decimal":
        number = Decimal(text.replace(",", "").removeprefix("$").removesuffix("%").strip())
        if not number.is_finite():
            raise InvalidOperation
        return number.scaleb(-2) if declared["format"] == PERCENT else number
    return FLAGS[text] if declared["kind"] == "boolean" else text
