"""From a number and a seed to a business: traits drawn, movements planned, days lived, statements printed."""

from collections.abc import Iterable, Iterator
from datetime import date
from decimal import Decimal
from itertools import chain
from random import Random

import polars as pl

from pipelines.sandbox.days import Window, window
from pipelines.sandbox.faults import injected
from pipelines.sandbox.habits import Habits
from pipelines.sandbox.ledger import Ledger, in_booking_order
from pipelines.sandbox.model import LABELLED, Booked, Business, Role, SandboxAccount
from pipelines.sandbox.narratives import BankStyle, narrative
from pipelines.sandbox.profile import Profile, drawn
from pipelines.sandbox.spending import spending
from pipelines.sandbox.takings import takings
from pipelines.schemas import MONEY

_CENT = Decimal("0.01")
_EPOCH = date(1970, 1, 1).toordinal()
_NAMES: dict[Role, str] = {
    "main": "Business Transaction Account",
    "second": "Business Everyday Account",
    "savings": "Business Online Saver",
    "card": "Business Credit Card",
}
_TYPES: dict[Role, str] = {
    "main": "transaction",
    "second": "transaction",
    "savings": "savings",
    "card": "credit_card",
}


def book(customers: int, months: int, seed: int, until: date, faults: bool = False) -> Iterator[Business]:
    """`customers` businesses, one at a time: memory doesn't grow with their number.

    Each is seen over the `months` months that end on `until`. `faults=True` injects gaps and re-submissions.
    """
    return (business(n, months, seed, until, faults) for n in range(customers))


def business(n: int, months: int, seed: int, until: date, faults: bool = False) -> Business:
    """Business number `n` of a book, counted from 0: it depends on nothing but these five values."""
    rng = Random(f"{seed}/{n}/{months}/{until}")  # text seeds are hashed by SHA-512, the same in every process
    profile, days = drawn(rng), window(months, until)
    ledger = lived(profile, days, rng)
    accounts = tuple(_account(profile, role, rows, rng) for role, rows in ledger.rows.items() if rows)
    made = Business(profile.abn, profile.name, profile.trade.slug, profile.state, accounts)
    return injected(made, Random(f"{seed}/{n}/faults")) if faults else made


def lived(profile: Profile, days: Window, rng: Random) -> Ledger:
    """The business's ledger after every day of the window."""
    planned = in_booking_order(chain(takings(profile, days, rng), spending(profile, days, rng)))
    ledger, habits = Ledger(profile, days, rng), Habits(profile, days, rng)
    for day in days:
        ledger.book_day(day, planned.get(day, ()))
        habits.follow(day, ledger)
    return ledger


def _account(profile: Profile, role: Role, rows: list[Booked], rng: Random) -> SandboxAccount:
    bank = profile.second_bank if role == "second" and profile.second_bank else profile.bank
    branch = rng.randrange(10**6) % 10 ** (6 - len(bank.bsb_prefix))
    bsb = f"{bank.bsb_prefix}{branch:0{6 - len(bank.bsb_prefix)}}"
    return SandboxAccount(
        account_name=f"{profile.name} {_NAMES[role]}",
        bsb=f"{bsb[:3]}-{bsb[3:]}",
        account_number=profile.numbers[role],
        bank_name=bank.name,
        account_type=_TYPES[role],
        credit_limit=_credit_limit(profile, role),
        transactions=_statement(profile, bank, rows, rng),
    )


def _credit_limit(profile: Profile, role: Role) -> str | None:
    cents = {"main": profile.overdraft, "card": profile.card_limit}.get(role, 0)
    return f"{Decimal(cents).scaleb(-2):.2f}" if cents else None


def _statement(profile: Profile, bank: BankStyle, rows: list[Booked], rng: Random) -> pl.DataFrame:
    card = str(rng.randrange(1_000, 10_000))
    ids = _ids(rng, len(rows)) if bank.gives_ids else [None] * len(rows)
    return pl.DataFrame(
        {
            "date": pl.Series([row.movement.day - _EPOCH for row in rows], dtype=pl.Int32).cast(pl.Date),
            "description": [narrative(bank, rng, profile.state, card, row) for row in rows],
            "amount": _money(row.movement.cents for row in rows),
            "balance": _money(row.balance for row in rows),
            "transaction_id": ids,
            "submission": pl.Series([0] * len(rows), dtype=pl.UInt8),
            "category": [row.movement.category for row in rows],
            "transfer_pair": [row.pair for row in rows],
            "injected": [None] * len(rows),
        },
        schema_overrides=LABELLED,
    )


def _ids(rng: Random, count: int) -> list[str]:
    return [f"txn_{rng.getrandbits(64):016x}" for _ in range(count)]


def _money(cents: Iterable[int]) -> pl.Series:
    return (pl.Series(cents, dtype=pl.Int64).cast(MONEY) * _CENT).cast(MONEY)
