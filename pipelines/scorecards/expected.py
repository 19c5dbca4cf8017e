"""Expected evidence: what a client can be expected to supply for every customer.

It is set for all customers together, never for one: otherwise a customer could choose what counts.
"""

from collections.abc import Iterable
from dataclasses import dataclass, fields


@dataclass(frozen=True)
class Expected:
    """Whether texts, balances, every account, and every month of a reading's period are expected."""

    words: bool = True
    balances: bool = True
    accounts: bool = True
    months: bool = True

    @classmethod
    def of(cls, names: Iterable[str]) -> "Expected":
        """Return the expected evidence with these names.

        Raises:
            ValueError: a name is not in NAMES.
        """
        given = set(names)
        if unknown := sorted(given - set(NAMES)):
            raise ValueError(f"there is no evidence {', '.join(unknown)}; there is {', '.join(NAMES)}")
        return cls(**{name: name in given for name in NAMES})

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for name in NAMES if getattr(self, name))


NAMES = tuple(each.name for each in fields(Expected))
EVERYTHING = Expected()
