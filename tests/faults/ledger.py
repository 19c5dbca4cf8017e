"""The service's promises, recorded outside of it: one line of JSON for every answer, written before it is relied on.

The file outlives whatever a test breaks, and a failure's message names it. Submitted rows are kept only in memory,
to be compared with the visible ones.
"""

import json
import os
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

ACKNOWLEDGED = (201, 202)


class Row(NamedTuple):
    """The fields of a transaction that the client's item and the enriched row have in common."""

    date: str
    description: str
    amount: str
    balance: str | None  # if both have one: it distinguishes equal payments of a day

    @classmethod
    def of(cls, item: dict[str, Any]) -> "Row":
        balance = item.get("balance")
        return cls(item["date"], item["description"], _in_cents(item["amount"]), balance and _in_cents(balance))


def _in_cents(money: str | float) -> str:
    return f"{float(money):.2f}"


@dataclass(frozen=True)
class Entry:
    """One answer. `status` is None if none came: the request may or may not have been executed."""

    method: str
    path: str
    status: int | None
    location: str | None = None
    code: str | None = None  # of a problem
    key: str | None = None  # the Idempotency-Key that was sent

    @property
    def acknowledged(self) -> bool:
        return self.status in ACKNOWLEDGED


class Ledger:
    """The promises made to one client."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.entries: list[Entry] = []
        self.rows: defaultdict[str, defaultdict[str, Counter[Row]]] = defaultdict(lambda: defaultdict(Counter))
        self.subscriptions: list[Subscription] = []
        self._file = path.open("a")

    def write(self, entry: Entry) -> None:
        self._file.write(json.dumps(asdict(entry)) + "\n")
        self._file.flush()
        os.fsync(self._file.fileno())
        self.entries.append(entry)

    def add_submission(self, customer_id: str, account_number: str, items: list[dict[str, Any]]) -> None:
        """Add a submission, which may overlap earlier ones: only rows beyond the count already held are new."""
        self.rows[customer_id][account_number] |= Counter(map(Row.of, items))

    def acknowledged_locations(self, resource: str = "") -> Iterator[str]:
        """Yield the location of each created or accepted resource once."""
        found = (entry.location for entry in self.entries if entry.acknowledged and entry.location)
        yield from dict.fromkeys(location for location in found if resource in location)

    def job_ids(self) -> list[str]:
        return [location.split("/")[3] for location in self.acknowledged_locations("/v1/jobs/")]

    def count_keys_by_path(self) -> Counter[str]:
        """Count the idempotency keys with which something was created or accepted, by path."""
        asked = {entry.key: entry.path for entry in self.entries if entry.key and entry.acknowledged}
        return Counter(asked.values())

    def close(self) -> None:
        self._file.close()


@dataclass(frozen=True)
class Subscription:
    """A webhook subscription that was created, with its own path at the receiver."""

    subscription_id: str
    event_type: str
    path: str
    secret: str
    before_jobs: int  # the number of jobs acknowledged before it
