"""A request as a value: what an operation sends, and the type of the `data` in its response."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Generic, Self, TypeVar
from urllib.parse import quote

Data = TypeVar("Data")
Item = TypeVar("Item")


@dataclass(frozen=True)
class Request(Generic[Data]):
    """A request that a client can send.

    Attributes:
        body: JSON, or None. Decimals and dates in it are sent as text, so that none loses a digit.
        takes_idempotency_key: whether the operation honours `Idempotency-Key`.
    """

    method: str
    path: str
    query: Mapping[str, object] = field(default_factory=dict)
    body: object = None
    takes_idempotency_key: bool = False

    @property
    def is_repeatable(self) -> bool:
        """Whether sending it twice has the effect of sending it once."""
        return self.takes_idempotency_key or self.method in ("GET", "PUT", "DELETE")

    def with_query(self, **values: object) -> Self:
        return replace(self, query={**self.query, **values})


@dataclass(frozen=True)
class PagedRequest(Request[Data], Generic[Data, Item]):
    """A request for a list that has pages; `items` is the name of the list in the response."""

    items: str = ""


def path_part(name: str) -> str:
    """Return an id or a slug as it is written in a path."""
    return quote(name, safe="")
