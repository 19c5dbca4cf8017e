"""What a statement prints: the postings of one account, made from synthetic businesses and worded as its bank would.

A statement of thousands of rows merges the days of several businesses into one account.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import date, timedelta
from decimal import Decimal
from random import Random

from pipelines.synthetic.businesses.profile import Profile, draw_profile
from pipelines.synthetic.ledger.narratives import Teller
from pipelines.synthetic.pdf.layout import paper_texts
from pipelines.synthetic.portfolio import run_ledger
from pipelines.synthetic.world.blanks import digits
from pipelines.synthetic.world.days import window
from pipelines.synthetic.world.model import LedgerEntry, Role
from pipelines.synthetic.world.names import names
from pipelines.synthetic.world.styles import BankStyle

CENT = Decimal("0.01")
_ROWS_PER_MONTH: dict[Role, int] = {"main": 90, "card": 9}  # of a usual business
_LONGEST = 12  # months


@dataclass(frozen=True)
class Posting:
    """A row before it is printed."""

    day: date
    value_day: date
    rail: str
    description: str
    amount: Decimal


@dataclass(frozen=True)
class Holder:
    name: str
    street: str
    suburb: str


@dataclass(frozen=True)
class AccountPostings:
    """An account with its opening balance and the postings that follow it."""

    holder: Holder
    bsb: str  # six digits
    number: str
    credit_limit: Decimal
    opening: Decimal
    postings: tuple[Posting, ...]

    def truncate(self, count: int) -> "AccountPostings":
        """Return the account with its first postings only."""
        return replace(self, postings=self.postings[:count])


def draw_account(
    style: BankStyle, bsb_prefix: str, role: Role, count: int, until: date, rng: Random
) -> AccountPostings:
    """Return an account with `count` postings (at least 1), none of them after `until`."""
    months = max(2, min(_LONGEST, count // _ROWS_PER_MONTH[role] + 2))
    businesses = _draw_businesses(style, role, months, until, rng)
    profile, entries, state = next(businesses)
    rows = list(entries)
    while len(rows) < count:
        rows += next(businesses)[1]
    rows = sorted(rows, key=lambda row: row.movement.day)[-count:]
    teller = Teller(style, rng, state, str(rng.randrange(1_000, 10_000)))
    limit = Decimal(rng.randrange(5, 60) * 1000)
    return AccountPostings(
        holder=_draw_holder(profile, rng),
        bsb=_draw_bsb(bsb_prefix, rng),
        number=_draw_card_number(rng) if role == "card" else digits(rng, style.account_digits),
        credit_limit=limit,
        opening=-CENT * rng.randrange(10_000, 400_000) if role == "card" else CENT * rng.randrange(50_000, 9_000_000),
        postings=tuple(_make_posting(row, teller) for row in rows),
    )


def draw_loan(bsb_prefix: str, count: int, until: date, rng: Random) -> AccountPostings:
    """Return a home loan, repaid every fortnight and charged interest at the end of each month."""
    profile = draw_profile(rng, window(2, until), None)[0]
    owed = CENT * rng.randrange(20_000_000, 80_000_000)
    return AccountPostings(
        holder=_draw_holder(profile, rng),
        bsb=_draw_bsb(bsb_prefix, rng),
        number=digits(rng, 9),
        credit_limit=owed,
        opening=-owed,
        postings=tuple(_loan_postings(owed, count, until, rng)),
    )


def _loan_postings(owed: Decimal, count: int, until: date, rng: Random) -> Iterator[Posting]:
    repayment = (owed * Decimal("0.0031")).quantize(CENT)
    days = [until - timedelta(days=n) for n in range(count * 10, -1, -1)]
    made = 0
    for day in days:
        due: list[tuple[str, Decimal]] = []
        if day.toordinal() % 14 == 3:
            due.append(("Repayment by direct debit", repayment))
        if (day + timedelta(days=1)).day == 1:
            due.append(("Interest charged", -(owed * Decimal("0.0051")).quantize(CENT)))
            due.append(("Loan administration fee", Decimal(-10)))
        if rng.random() < 0.02:
            due.append(("Redraw", -CENT * rng.randrange(50_000, 500_000)))
        for description, amount in due[: count - made]:
            made += 1
            owed -= amount
            yield Posting(day, day, "loan", description, amount)


def _draw_businesses(
    style: BankStyle, role: Role, months: int, until: date, rng: Random
) -> Iterator[tuple[Profile, list[LedgerEntry], str]]:
    """Yield businesses that have such an account, as customers of the bank."""
    while True:
        profile, days = draw_profile(rng, window(months, until), None)
        if role not in profile.roles:
            continue
        customer = replace(profile, bank=style)
        rows = [row for row in run_ledger(customer, days, rng).rows.get(role, ()) if row.movement.cents]
        if rows:
            yield customer, rows, customer.state


def _make_posting(row: LedgerEntry, teller: Teller) -> Posting:
    movement = row.movement
    posted_on = date.fromordinal(movement.day)
    earlier = timedelta(days=movement.day % 3 if movement.rail.startswith(("card", "purchase")) else 0)
    return Posting(posted_on, posted_on - earlier, movement.rail, teller.narrative(row), CENT * movement.cents)


def _draw_holder(profile: Profile, rng: Random) -> Holder:
    place = rng.choice(names().suburbs[profile.state])
    street = f"{rng.randrange(1, 200)} {rng.choice(paper_texts().streets)}"
    return Holder(profile.name, street, f"{place} {profile.state} {rng.randrange(2000, 6999)}")


def _draw_bsb(prefix: str, rng: Random) -> str:
    return prefix + digits(rng, 6 - len(prefix))


def _draw_card_number(rng: Random) -> str:
    return f"5{digits(rng, 15)}"
