"""Ids by their first digits, for people who type them."""

from typing import Any
from uuid import UUID

from sqlalchemy import Column, select

from storage.core.database import Reading

DIGITS = 32  # of a whole id
MIN_DIGITS = 6  # 16 million prefixes, so among a million ids most still have one of their own; our judgement


def find_ids_starting_with(r: Reading, column: Column[Any], digits: str) -> list[UUID]:
    """Return the ids in a column that start with these hexadecimal digits: at most two, because two are ambiguous.

    Args:
        column: unique ids, with an index.
    """
    first, last = UUID(digits.ljust(DIGITS, "0")), UUID(digits.ljust(DIGITS, "f"))
    return list(r.execute(select(column).where(column.between(first, last)).limit(2)).scalars())
