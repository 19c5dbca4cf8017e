"""Pages as in the contract: numbered from 1; without a requested page, everything is on one page."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from sqlalchemy import func, select

from storage.core.database import AnySelect, Reading

MAX_COUNTED = 1_000  # items of a list that may have millions; counting and sorting this many is fast (our judgement)

T = TypeVar("T")


@dataclass(frozen=True)
class Page:
    """A requested page: `number` ≥ 1, with `count` items per page."""

    number: int
    count: int

    @property
    def offset(self) -> int:
        return (self.number - 1) * self.count


@dataclass(frozen=True)
class Paged(Generic[T]):
    """The items of one page (all items if `page` is None) and their total number."""

    items: Sequence[T]
    total: int
    page: Page | None
    has_more: bool = False  # than `total`, because counting has stopped at MAX_COUNTED

    @property
    def current_page(self) -> int | None:
        return self.page.number if self.page else None

    @property
    def page_size(self) -> int:
        return self.page.count if self.page else len(self.items)

    @property
    def total_pages(self) -> int:
        if self.page is None:
            return 1 if self.total else 0
        return -(-self.total // self.page.count)


def count_total(r: Reading, query: AnySelect) -> int:
    return r.execute(select(func.count()).select_from(query.order_by(None).subquery())).scalar_one()


def count_some(r: Reading, query: AnySelect) -> int:
    """Count the items up to one more than MAX_COUNTED, at a cost that doesn't grow with their number."""
    return count_total(r, query.limit(MAX_COUNTED + 1))


def limit_to_page(query: AnySelect, page: Page | None) -> AnySelect:
    return query if page is None else query.limit(page.count).offset(page.offset)
