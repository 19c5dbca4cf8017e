"""Customers that the sandbox generated: the values that determine each, and the day until which its rows were sent.

The same values give the same business again, with the rows of later days (`pipelines.synthetic.sandbox`).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

from sqlalchemy import insert, select, update

from pipelines.intake import rows
from pipelines.intake.accounts import identify
from pipelines.intake.lines import as_lines
from storage.core.database import Reading, Writing, read_values
from storage.core.models import sandbox_customers
from storage.core.store import Store
from storage.customers.customers import Customer
from storage.intake import submissions
from storage.intake.submissions import Landing
from storage.jobs.jobs import Job


@dataclass(frozen=True)
class SandboxCustomer:
    customer_number: int
    profile: str
    seed: int
    months: int  # of the history
    until: date  # the last day of the history
    sent_through: date  # the last day whose rows were sent


def add(w: Writing, made: SandboxCustomer) -> None:
    w.execute(insert(sandbox_customers).values(vars(made)))


def find_behind(r: Reading, through: date, feed_days: int) -> list[SandboxCustomer]:
    """Return the customers with days up to `through` that were not sent, of the `feed_days` days after the history."""
    rows = r.execute(
        select(sandbox_customers)
        .where(sandbox_customers.c.sent_through < through)
        .where(sandbox_customers.c.until > through - timedelta(days=feed_days))
        .order_by(sandbox_customers.c.customer_number)
    )
    return [SandboxCustomer(**read_values(row)) for row in rows]


def advance(w: Writing, made: SandboxCustomer, through: date) -> bool:
    """Record that the days up to `through` are sent. Return False if another process has sent some of them already."""
    statement = update(sandbox_customers).where(
        sandbox_customers.c.customer_number == made.customer_number,
        sandbox_customers.c.sent_through == made.sent_through,
    )
    return w.execute(statement.values(sent_through=through)).rowcount == 1


@dataclass(frozen=True)
class LandedBody:
    """A body of `POST …/transactions` whose rows are stored."""

    account: Mapping[str, Any]  # the other members
    landing: Landing


def land(store: Store, bodies: Iterable[Mapping[str, Any]], now: datetime) -> Sequence[LandedBody]:
    """Store the rows of bodies, which must be valid."""
    return [
        LandedBody(
            {name: value for name, value in body.items() if name != "transactions"},
            submissions.land(store, rows.land_lines(as_lines(body["transactions"]), store.vault.digest), now),
        )
        for body in bodies
    ]


def accept(
    w: Writing, store: Store, customer: Customer, landed: Iterable[LandedBody], who: str | None, now: datetime
) -> Iterator[Job]:
    """Accept stored bodies as submissions of the customer, and yield their jobs."""
    for body in landed:
        limit = body.account.get("creditLimit")
        identified = identify(
            customer.customer_id,
            account_name=body.account["accountName"],
            bsb=body.account["bsb"],
            account_number=body.account["accountNumber"],
            bank_name=body.account["bankName"],
            account_type=body.account["accountType"],
            credit_limit=None if limit is None else Decimal(limit),
            digest=store.vault.digest,
        )
        yield submissions.accept(w, store, customer, identified, body.landing, appended=False, who=who, now=now)
