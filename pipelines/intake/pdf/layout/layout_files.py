"""Parse the files of `pipelines/intake/layouts` strictly, and find every mistake with its place."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import yaml

from pipelines.intake.pdf.page.result import Kind

DATE_FORMATS = (
    "DD/MM/YYYY", "DD/MM/YY", "DD/MM", "DD-MM-YYYY", "DD-MM-YY", "DD.MM.YYYY", "DD.MM.YY", "YYYY-MM-DD",
    "DD Mon", "DD Mon YY", "DD Mon YYYY", "DDMon", "DDMonYY", "DDMonYYYY", "DD-Mon", "DD-Mon-YY", "DD-Mon-YYYY",
    "Mon DD", "Mon DD YYYY", "Weekday, DD Mon", "Weekday DD Mon YYYY",
)  # fmt: skip
ROLES = ("date", "value_date", "description", "reference", "kind", "debit", "credit", "amount", "balance", "sign")
ACCOUNT_TYPES = ("transaction", "savings", "credit_card", "loan", "term_deposit", "other")


_MONTH = "(?i:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[A-Za-z]*"


def _shape(form: str) -> re.Pattern[str]:
    """Return a pattern for dates of this form at the beginning of a line. A form without a year must not be followed by
    one.
    """
    parts = {"YYYY": "[0-9]{4}", "YY": "[0-9]{2}", "DD": "[0-9]{1,2}(?:st|nd|rd|th)?", "MM": "[0-9]{1,2}"}
    named = {"Weekday": "[A-Za-z]+day", "Mon": _MONTH}
    shape = re.sub("|".join((*parts, *named)), lambda part: {**parts, **named}[part[0]], re.escape(form))
    no_year = "" if "YY" in form else r"(?! ?'?[0-9]{2,4}(?![0-9.,]))"
    return re.compile(rf"{shape}(?![0-9A-Za-z/.-]){no_year}")


DATE_SHAPES = {form: _shape(form) for form in DATE_FORMATS}


def parse_yaml(text: str) -> tuple[Any, Sequence[str]]:
    """Return a file's content as plain data (None if there are mistakes), and what is wrong with its YAML."""
    loader = yaml.CSafeLoader(text)
    try:
        node = loader.get_single_node()
        repeated = list(_repeated_keys(node))
        return (None, repeated) if repeated or node is None else (loader.construct_document(node), ())
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else "?"
        return None, (f"line {line}: {error.problem}",)
    finally:
        loader.dispose()


def _repeated_keys(node: yaml.Node | None) -> Iterator[str]:
    """Yield repeated keys, because PyYAML would silently drop their first value."""
    if isinstance(node, yaml.MappingNode):
        keys: set[str] = set()
        for key, value in node.value:
            if key.value in keys:
                yield f"line {key.start_mark.line + 1}: {key.value!r} is repeated"
            keys.add(key.value)
            yield from _repeated_keys(value)
    elif isinstance(node, yaml.SequenceNode):
        for item in node.value:
            yield from _repeated_keys(item)


Complaints = Iterator[tuple[str, str]]  # pointer within the value, and what is wrong
Check = Callable[[Any], Complaints]


def _test(test: Callable[[Any], bool], takes: str) -> Check:
    """Return a check that complains with the message `takes` unless the test holds."""

    def check(value: Any) -> Complaints:
        if not test(value):
            yield "", takes

    return check


def _list_of(check: Check) -> Check:
    def check_each(value: Any) -> Complaints:
        if not isinstance(value, list):
            yield "", "takes a list"
            return
        for position, item in enumerate(value):
            yield from ((f"/{position}{pointer}", takes) for pointer, takes in check(item))

    return check_each


def _map_of(keys: Sequence[str] | None, check: Check) -> Check:
    def check_each(value: Any) -> Complaints:
        if not isinstance(value, dict):
            yield "", "takes a mapping"
            return
        for key, item in value.items():
            if not isinstance(key, str) or (keys is not None and key not in keys):
                yield f"/{key}", f"is not one of {', '.join(keys)}" if keys else "takes a text as its key"
            yield from ((f"/{key}{pointer}", takes) for pointer, takes in check(item))

    return check_each


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and value == value.strip() != ""


def _is_pattern(value: Any) -> bool:
    try:
        return _is_text(value) and bool(re.compile(value, re.IGNORECASE))
    except re.error:
        return False


def _is_abn(value: Any) -> bool:
    """Return whether a value has eleven digits with valid check digits (weights of the Australian
    Business Register).
    """
    plain = value.replace(" ", "") if isinstance(value, str) else ""
    if not re.fullmatch("[0-9]{11}", plain):
        return False
    weights = (10, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19)
    figures = (int(plain[0]) - 1, *map(int, plain[1:]))
    return sum(weight * figure for weight, figure in zip(weights, figures, strict=True)) % 89 == 0


def _digits(least: int, most: int) -> Check:
    return _test(
        lambda value: isinstance(value, str) and re.fullmatch(rf"[0-9]{{{least},{most}}}", value) is not None,
        f"takes {least} to {most} digits in quotes",
    )


_TEXT = _test(_is_text, "takes a text")
_TEXTS = _list_of(_TEXT)
_READING: Mapping[str, Check] = {  # how to read a document: set for all of a bank's documents, or for one
    "dates": _list_of(_test(lambda value: value in DATE_FORMATS, f"is not one of {', '.join(DATE_FORMATS)}")),
    "headings": _map_of(ROLES, _TEXTS),
    "section_signs": _map_of(None, _test(lambda value: value in ("in", "out"), "takes in or out")),
    "ignored_lines": _list_of(_test(_is_pattern, "takes a regular expression")),
    "balance_owing": _test(lambda value: isinstance(value, bool), "takes true or false"),
}
_DOCUMENT: Mapping[str, Check] = {
    "kind": _test(lambda value: value in tuple(Kind), f"takes one of {', '.join(Kind)}"),
    "account_type": _test(lambda value: value in ACCOUNT_TYPES, f"takes one of {', '.join(ACCOUNT_TYPES)}"),
    "marks": _TEXTS,
    **_READING,
}
_BANK: Mapping[str, Check] = {
    "name": _TEXT,
    "names": _TEXTS,
    "logos": _TEXTS,
    "products": _map_of(ACCOUNT_TYPES, _TEXTS),
    "web": _TEXTS,
    "abn": _list_of(_test(_is_abn, "takes the eleven digits of an ABN in quotes, with valid check digits")),
    "licences": _list_of(_digits(6, 6)),
    "bsb_of": _TEXTS,
    "bsb": _list_of(_digits(2, 6)),
    "words": _TEXTS,
    "producers": _TEXTS,
    "documents": _map_of(None, _test(lambda value: isinstance(value, dict), "takes a mapping")),
    **_READING,
}  # fmt: skip


def find_mistakes(bank: Any, banks: frozenset[str]) -> Iterator[str]:
    """Yield the mistakes in a bank's file.

    Args:
        banks: the names of banks in enrichment's list of BSBs.
    """
    if not isinstance(bank, dict):
        yield "/: takes a mapping"
        return
    yield from _faulty_fields("", bank, _BANK, needed=("name", "names", "documents"))
    documents = bank.get("documents")
    for name, document in documents.items() if isinstance(documents, dict) else ():
        if isinstance(document, dict):
            yield from _faulty_fields(f"/documents/{name}", document, _DOCUMENT, needed=("kind",))
    named = bank.get("bsb_of", [])
    for position, name in enumerate(named if isinstance(named, list) else ()):
        if name not in banks:
            yield f"/bsb_of/{position}: enrichment's list has no BSB of {name!r}"


def _faulty_fields(
    at: str, value: Mapping[str, Any], fields: Mapping[str, Check], needed: Sequence[str]
) -> Iterator[str]:
    yield from (f"{at}/{name}: is missing" for name in needed if not value.get(name))
    for name, given in value.items():
        if name not in fields:
            yield f"{at}/{name}: is not a field; fields are {', '.join(fields)}"
        else:
            yield from (f"{at}/{name}{pointer}: {takes}" for pointer, takes in fields[name](given))


def find_mistakes_in_programs(groups: Any, known: Sequence[str]) -> Iterator[str]:
    """Yield the mistakes in the list of programs that make files (`producers.yaml`)."""
    yield from (f"/{pointer.lstrip('/')}: {takes}" for pointer, takes in _map_of(known, _TEXTS)(groups))
