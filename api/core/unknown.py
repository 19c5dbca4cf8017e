"""Names in a request that nobody knows: they are accepted, and the answer's `message` says so.

One list belongs to a request. Whatever reads a part of it adds what it doesn't know, and the answer names it.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import islice
from types import UnionType
from typing import Any, Union, get_args, get_origin

from pydantic import BaseModel

from pipelines.intake.masking import mask_text
from pipelines.vocabulary import nearest

MOST_NAMED = 10
LONGEST_NAME = 64

_names: ContextVar[list[str] | None] = ContextVar("unknown", default=None)


@contextmanager
def collecting() -> Iterator[None]:
    """Collect the names of one request: the threads that work for it share the list."""
    before = _names.set([])
    try:
        yield
    finally:
        _names.reset(before)


def note(given: Iterable[str], known: Iterable[str]) -> None:
    """Add those of the given names that are not known."""
    collected, all_known = _names.get(), frozenset(known)
    if collected is None:
        return
    # masked, as answers may be kept, and before they are cut, as half a card's number is none
    unknown = (mask_text(name[: 2 * LONGEST_NAME])[:LONGEST_NAME] for name in given if name not in all_known)
    for name in islice(unknown, MOST_NAMED + 1 - len(collected)):  # there may be millions, and likeness takes long
        described = nearest.suggest(name, sorted(all_known))
        if described not in collected:
            collected.append(described)


def note_fields(model: type[BaseModel], document: Any) -> None:
    """Add the fields of an object that its model doesn't have, and those of objects in it; items of lists are not read.

    A model that takes any field sees to them itself.
    """
    if not isinstance(document, Mapping) or model.model_config.get("extra") == "allow":
        return
    fields = {field.alias or name: field for name, field in model.model_fields.items()}
    note(document, fields)
    for name, field in fields.items():
        is_union = get_origin(field.annotation) in (Union, UnionType)
        for inner in get_args(field.annotation) if is_union else (field.annotation,):
            if isinstance(inner, type) and issubclass(inner, BaseModel):
                note_fields(inner, document.get(name))


def forget() -> None:
    """Keep quiet about them, for an answer whose message the contract says is null."""
    collected = _names.get()
    if collected is not None:
        collected.clear()


def message(other: str | None) -> str | None:
    """Return what an answer says: its own message, and the names that nobody knew."""
    collected = _names.get()
    if not collected:
        return other
    more = " and others" if len(collected) > MOST_NAMED else ""
    unknown = f"Unknown, and ignored: {', '.join(collected[:MOST_NAMED])}{more}."
    return unknown if other is None else f"{other} {unknown}"
