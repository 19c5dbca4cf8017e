"""Events as data: which rows make one, how many it takes, how long it lasts, and the best rating that it allows."""

import json
from collections.abc import Mapping
from decimal import Decimal
from functools import cache
from importlib.resources import files
from typing import Annotated, Literal, Self

from pydantic import Field, TypeAdapter, model_validator

from pipelines.metrics.definition import Size, Strict, Where
from pipelines.vocabulary.rule_files import parse

FILE = "events.yaml"
# Roles of a customer in which the rows of an event are ordinary business; `event_rows` recognises them.
Role = Literal[
    "paid_by_practitioners",
    "trades_with_practitioners",
    "withheld_from_wages",
    "guessed_facility",
    "collects_for_the_customer",
]


class Texts(Strict):
    """Phrases (`wording.phrases`): a row's text contains one of `any`, unless that is empty, and none of `unless`."""

    any: tuple[str, ...] = ()
    unless: tuple[str, ...] = ()


class Level(Strict):
    """The best rating that is possible from this count on."""

    count: Annotated[int, Field(ge=1)]
    ceiling: Literal["B", "C", "D", "E"]


class Event(Strict):
    """An event; `events.yaml` explains the fields."""

    name: str
    sentence: str
    where: Where
    texts: Texts = Texts()
    except_for: str | None = None
    unless: Role | None = None
    counted: Literal["days", "lenders", "gaps"]
    least: Size = Decimal(0)
    days: Annotated[int, Field(ge=1)]
    levels: Annotated[tuple[Level, ...], Field(min_length=1)]
    why: str

    @model_validator(mode="after")
    def _gets_worse(self) -> Self:
        """Check that a higher count never allows a better rating."""
        counts, letters = ([getattr(level, name) for level in self.levels] for name in ("count", "ceiling"))
        if counts != sorted(set(counts)) or letters != sorted(letters):
            raise ValueError("levels must be in order: a higher count has a worse ceiling")
        return self


@cache
def definitions() -> Mapping[str, Event]:
    """Return every event by its code, in the order of the file."""
    document = parse(files("pipelines.risk_models").joinpath(FILE).read_text("utf-8"), FILE)
    return TypeAdapter(dict[str, Event]).validate_json(json.dumps(document), strict=True)
