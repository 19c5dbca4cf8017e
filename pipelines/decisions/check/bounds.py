"""How large a document may be: found out before anything is built of it, so that none made to hurt gets further."""

from collections.abc import Collection, Iterator, Sequence
from decimal import Decimal
from typing import TypeAlias

from pydantic.alias_generators import to_camel

from pipelines.decisions.check.findings import Finding, Problem, finding, pointer_of
from pipelines.decisions.numbers import ARITHMETIC, COMPARISONS

MOST_DEPTH = 20  # operators within each other
MOST_NODES = 2_000  # operators and what they read, constants too: each is a column of every evaluation. Our judgement:
# shipped policies have a tenth, and twice as many took two seconds a customer
MOST_LEVELS = 100  # of objects and lists within each other
MOST_VALUES = 20_000
MOST_CHARACTERS = 1_000_000  # of all texts and names together
LONGEST_NAME = 100  # of a member of an object

_CALCULATES = frozenset(map(to_camel, (*ARITHMETIC, *COMPARISONS, "between")))  # whose operands are numbers in a list
_OF_BANDS = frozenset(("below", "value", "otherwise"))

Trail: TypeAlias = "tuple[Trail, int | str] | None"  # from a value back to the root


def beyond_bounds(document: object, calculating: Collection[str]) -> Finding | None:
    """The first bound that a document breaks. Takes no longer for a larger one, and never recurses.

    Args:
        calculating: the members of the document below which numbers and conditions stand.
    """
    values = characters = nodes = 0
    waiting: list[tuple[object, Trail, int, int]] = [(document, None, 0, 0)]
    while waiting:
        value, trail, level, depth = waiting.pop()
        values += 1
        characters += len(value) if isinstance(value, str) else 0
        if level > MOST_LEVELS or values > MOST_VALUES or characters > MOST_CHARACTERS:
            return _too_much(level, values)
        if wrong := _unusable(value):
            return finding(_pointer(trail), *wrong)
        if isinstance(value, dict):
            is_operator = len(value) == 1 and _root(trail) in calculating
            nodes, depth = nodes + is_operator, depth + is_operator
            characters += sum(map(len, value))
        elif isinstance(value, str):
            nodes += _is_constant(trail) and _root(trail) in calculating
        if nodes > MOST_NODES:
            says = f"At most {MOST_NODES:,} operators, readings and constants may stand in a document."
            return finding("", "TooCostly", says)
        if depth > MOST_DEPTH:
            return finding(_pointer(trail), "TooDeep", f"At most {MOST_DEPTH} operators may stand within each other.")
        if values + len(waiting) + _members(value) > MOST_VALUES:
            return _too_much(level, MOST_VALUES + 1)
        waiting.extend((each, (trail, name), level + 1, depth) for name, each in _below(value))
    return None


def _too_much(level: int, values: int) -> Finding:
    if level > MOST_LEVELS:
        return finding("", "TooDeep", f"Objects and lists may stand {MOST_LEVELS} deep within each other at most.")
    if values > MOST_VALUES:
        return finding("", "TooLarge", f"A document may hold {MOST_VALUES:,} values at most.")
    return finding("", "TooLarge", f"The texts of a document may have {MOST_CHARACTERS:,} characters at most.")


def _root(trail: Trail) -> int | str | None:
    """The member of the document that it stands in."""
    steps = [*_upwards(trail)]
    return steps[-1] if steps else None


def _is_constant(trail: Trail) -> bool:
    """Whether a text there is a number that is calculated with: an operand in a list, or of a band."""
    *_, name, place = (None, None, *reversed([*_upwards(trail)]))
    return name in _CALCULATES if isinstance(place, int) else place in _OF_BANDS


def _members(value: object) -> int:
    return len(value) if isinstance(value, (dict, list)) else 0


def _below(value: object) -> Iterator[tuple[int | str, object]]:
    if isinstance(value, dict):
        yield from value.items()
    elif isinstance(value, list):
        yield from enumerate(value)


def _unusable(value: object) -> Problem | None:
    """What no JSON can hold (YAML has dates, and names that are no texts), or what no store takes."""
    if isinstance(value, dict):
        if not all(isinstance(name, str) for name in value):
            return "NotPlain", "The names of an object are texts: put them in quotes."
        return _bad_name(list(value))
    if isinstance(value, str):
        return _bad_text(value)
    if value is None or isinstance(value, (list, bool, int, float, Decimal)):
        return None
    return "NotPlain", "Text is needed: put it in quotes."


def _bad_name(names: Sequence[str]) -> Problem | None:
    if any(len(name) > LONGEST_NAME for name in names):
        return "UnknownField", "The name of a member is too long to be one."
    return next(filter(None, map(_bad_text, names)), None)


def _bad_text(text: str) -> Problem | None:
    if "\0" in text or any("\ud800" <= character <= "\udfff" for character in text):
        return "BadText", "A text holds a character that is none."
    return None


def _pointer(trail: Trail) -> str:
    return pointer_of(reversed([*_upwards(trail)]))


def _upwards(trail: Trail) -> Iterator[int | str]:
    while trail is not None:
        trail, step = trail  # pyrefly: ignore[not-iterable]  # its narrowing stops at a recursive alias
        yield step
