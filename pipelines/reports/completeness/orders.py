"""Orders: whether a day's rows can be arranged so that every balance follows from the one before.

A row leads from one balance (its opening) to another (its closing). So a day's rows are the edges of a directed graph
of balances, and an order in which each row continues the one before is an Eulerian trail through all of them. It exists
exactly if the edges are connected and at most one balance has one more outgoing than incoming edge. Checking that takes
linear time; trying all orders would take n! steps. (Euler 1736; Hierholzer 1873.)

A *join* bridges a difference of a few cents. It counts as an edge that links two trails.
"""

from collections import Counter
from collections.abc import Iterable
from decimal import Decimal

Edge = tuple[Decimal, Decimal]  # from one balance to another


class Day:
    """The rows of one account's day: trails through balances, joined one by one."""

    def __init__(self, rows: Iterable[Edge]) -> None:
        self._group: dict[Decimal, Decimal] = {}
        self._left_over: Counter[Decimal] = Counter()  # how often a balance is left more than entered
        for opening, closing in rows:
            self._add(opening, closing)

    def join(self, end: Decimal, begin: Decimal) -> bool:
        """Let the trail that begins at `begin` continue the one at `end`, unless they are one trail already."""
        if self._find(end) == self._find(begin):
            return False
        self._add(end, begin)
        return True

    def follows_from(self, before: Decimal | None) -> bool:
        """Return whether an order exists that joins all rows. A day that ends where it began must contain `before`."""
        begins = sum(count for count in self._left_over.values() if count > 0)
        groups = {self._find(balance) for balance in self._group}
        if len(groups) > 1 or begins > 1:
            return False
        return begins == 1 or before is None or before in self._group

    def _add(self, opening: Decimal, closing: Decimal) -> None:
        self._left_over[opening] += 1
        self._left_over[closing] -= 1
        self._group[self._find(opening)] = self._find(closing)

    def _find(self, balance: Decimal) -> Decimal:
        while (above := self._group.setdefault(balance, balance)) != balance:
            self._group[balance] = self._group[above]
            balance = self._group[balance]
        return balance
