"""Limits of a document's size, checked before anything is built from it, so that a hostile document does no harm.

All limits are our judgement.
"""

from collections.abc import Collection, Iterator, Sequence
from decimal import Decimal
from typing import TypeAlias

from pydantic.alias_generators import to_camel

from pipelines.decisions.check.findings import Finding, Problem, finding
from pipelines.decisions.numbers import ARITHMETIC, COMPARISONS
from pipelines.vocabulary.errors import build_pointer

MAX_DEPTH = 20  # operators within each other
# Operators, references and constants: each is a column of every evaluation. The shipped policies have a tenth of this,
# and a policy with twice as many took two seconds per customer.
MAX_NODES = 2_000
MAX_LEVELS = 100  # of nested objects and lists
MAX_VALUES = 20_000
MAX_CHARACTERS = 1_000_000  # of all texts and names together
LONGEST_NAME = 100  # of a member of an object

_OF_NUMBERS = frozenset(map(to_camel, (*ARITHMETIC, *COMPARISONS, "between")))  # operators with a list of numbers
_OF_BANDS = frozenset(("below", "value", "otherwise"))

Trail: TypeAlias = "tuple[Trail, int | str] | None"  # path from a value back to the root


def find_broken_bound(document: object, calculating: Collection[str]) -> Finding | None:
    """Return the first bound that a document breaks.

    This takes limited time for documents of any size, and no recursion that deep nesting could exhaust.

    Args:
        calculating: the members of the document that contain numbers and conditions.
    """
    values = characters = nodes = 0
    waiting: list[tuple[object, Trail, int, int]] = [(document, None, 0, 0)]
    while waiting:
        value, trail, level, depth = waiting.pop()
        values += 1
        characters += len(value) if isinstance(value, str) else 0
        if level > MAX_LEVELS or values > MAX_VALUES or characters > MAX_CHARACTERS:
            return _describe_excess(level, values)
        if problem := _find_problem(value):
            return finding(_pointer(trail), *problem)
        if isinstance(value, dict):
            is_operator = len(value) == 1 and _root(trail) in calculating
            nodes, depth = nodes + is_operator, depth + is_operator
            characters += sum(map(len, value))
        elif isinstance(value, str):
            nodes += _is_constant(trail) and _root(trail) in calculating
        if nodes > MAX_NODES:
            says = f"A document may contain at most {MAX_NODES:,} operators, references and constants."
            return finding("", "TooCostly", says)
        if depth > MAX_DEPTH:
            return finding(_pointer(trail), "TooDeep", f"Operators may be nested at most {MAX_DEPTH} deep.")
        if values + len(waiting) + _count_members(value) > MAX_VALUES:
            return _describe_excess(level, MAX_VALUES + 1)
        waiting.extend((each, (trail, name), level + 1, depth) for name, each in _list_members(value))
    return None


def _describe_excess(level: int, values: int) -> Finding:
    if level > MAX_LEVELS:
        return finding("", "TooDeep", f"Objects and lists may be nested at most {MAX_LEVELS} deep.")
    if values > MAX_VALUES:
        return finding("", "TooLarge", f"A document may contain at most {MAX_VALUES:,} values.")
    return finding("", "TooLarge", f"The texts of a document may have at most {MAX_CHARACTERS:,} characters.")


def _root(trail: Trail) -> int | str | None:
    """Return the top-level member of the document that contains the value."""
    steps = [*_steps_to_root(trail)]
    return steps[-1] if steps else None


def _is_constant(trail: Trail) -> bool:
    """Return whether a text at this place is a number to calculate with: an operand in a list, or part of a band."""
    *_, name, place = (None, None, *reversed([*_steps_to_root(trail)]))
    return name in _OF_NUMBERS if isinstance(place, int) else place in _OF_BANDS


def _count_members(value: object) -> int:
    return len(value) if isinstance(value, (dict, list)) else 0


def _list_members(value: object) -> Iterator[tuple[int | str, object]]:
    if isinstance(value, dict):
        yield from value.items()
    elif isinstance(value, list):
        yield from enumerate(value)


def _find_problem(value: object) -> Problem | None:
    """Return the problem with a value that JSON can't hold (YAML has dates, and keys that aren't texts), or that the
    database can't store.
    """
    if isinstance(value, dict):
        if not all(isinstance(name, str) for name in value):
            return "NotPlain", "The names of an object are texts: put them in quotes."
        return _find_bad_name(list(value))
    if isinstance(value, str):
        return _find_bad_text(value)
    if value is None or isinstance(value, (list, bool, int, float, Decimal)):
        return None
    return "NotPlain", "Text is needed: put it in quotes."


def _find_bad_name(names: Sequence[str]) -> Problem | None:
    if any(len(name) > LONGEST_NAME for name in names):
        return "UnknownField", f"The name of a field has more than {LONGEST_NAME} characters."
    return next(filter(None, map(_find_bad_text, names)), None)


def _find_bad_text(text: str) -> Problem | None:
    if "\0" in text or any("\ud800" <= character <= "\udfff" for character in text):
        return "BadText", "A text contains a character that is not allowed: NUL or an unpaired surrogate."
    return None


def _pointer(trail: Trail) -> str:
    return build_pointer(reversed([*_steps_to_root(trail)]))


def _steps_to_root(trail: Trail) -> Iterator[int | str]:
    while trail is not None:
        trail, step = trail  # pyrefly: ignore[not-iterable]  # its narrowing stops at a recursive alias
        yield step
