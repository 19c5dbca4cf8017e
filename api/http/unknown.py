"""Collect a request's unknown fields and parameters. They are ignored, and the response's `message` lists them.

Each request has one list; everything that reads a part of the request adds the names it doesn't know.
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

MAX_NAMED = 10
LONGEST_NAME = 64

_names: ContextVar[list[str] | None] = ContextVar("unknown", default=None)


@contextmanager
def collecting() -> Iterator[None]:
    """Collect the unknown names of one request; threads that work for it share the list."""
    before = _names.set([])
    try:
        yield
    finally:
        _names.reset(before)


def note(names: Iterable[str], known: Iterable[str]) -> None:
    """Add those of `names` that are not known."""
    collected, all_known = _names.get(), frozenset(known)
    if collected is None:
        return
    # A name may contain a card number, and responses may be stored, so names are masked. Masking comes before cutting,
    # because half a card number would not be recognised.
    unknown = (mask_text(name[: 2 * LONGEST_NAME])[:LONGEST_NAME] for name in names if name not in all_known)
    for name in islice(unknown, MAX_NAMED + 1 - len(collected)):  # there may be millions; finding similar ones is slow
        described = nearest.suggest(name, sorted(all_known))
        if described not in collected:
            collected.append(described)


def note_fields(model: type[BaseModel], document: Any) -> None:
    """Add the fields that an object's model doesn't have, also in nested objects, but not in items of lists.

    A model that allows any field is skipped: it notes unknown names itself.
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
    """Drop the names, for a response whose message must be null by the contract."""
    collected = _names.get()
    if collected is not None:
        collected.clear()


def message(other: str | None) -> str | None:
    """Return a response's message: its own, followed by the unknown names."""
    collected = _names.get()
    if not collected:
        return other
    more = " and others" if len(collected) > MAX_NAMED else ""
    unknown = f"Unknown, and ignored: {', '.join(collected[:MAX_NAMED])}{more}."
    return unknown if other is None else f"{other} {unknown}"
