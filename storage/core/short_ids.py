"""Ids by their first digits, for people who type them."""

from typing import Any
from uuid import UUID

from sqlalchemy import Column, select

from storage.core.database import Reading

DIGITS = 32  # of a whole id
FEWEST_DIGITS = 6  # there are 16 million prefixes of this length, so even of a million ids few share one; our judgement


def find_ids_starting_with(r: Reading, column: Column[Any], digits: str) -> list[UUID]:
    """Return the ids in a column that start with these hexadecimal digits: at most two, to show that it is ambiguous.

    Args:
        column: unique ids, with an index.
    """
    first, last = UUID(digits.ljust(DIGITS, "0")), UUID(digits.ljust(DIGITS, "f"))
    return list(r.execute(select(column).where(column.between(first, last)).limit(2)).scalars())
