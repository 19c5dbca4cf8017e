"""Statements of a ledger: every account's rows in its bank's words, with the truth about each row."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from datetime import date
from decimal import Decimal
from random import Random

import polars as pl

from pipelines.synthetic.businesses.profile import Profile
from pipelines.synthetic.ledger.ledger import Ledger
from pipelines.synthetic.ledger.narratives import Teller
from pipelines.synthetic.world.brands import is_held_out
from pipelines.synthetic.world.model import LABELLED, LedgerEntry, Movement, Role, SyntheticAccount, dollars
from pipelines.synthetic.world.styles import BankStyle
from pipelines.vocabulary.schemas import MONEY

A_SERIES_FROM = 3  # payments; fewer show no rhythm
_CENT = Decimal("0.01")
_EPOCH = date(1970, 1, 1).toordinal()
_NAMES: dict[Role, str] = {
    "main": "Business Transaction Account",
    "second": "Business Everyday Account",
    "savings": "Business Online Saver",
    "tax": "Tax Provision Account",
    "card": "Business Credit Card",
}
_TYPES: dict[Role, str] = {
    "main": "transaction",
    "second": "transaction",
    "savings": "savings",
    "tax": "savings",
    "card": "credit_card",
}


def accounts(profile: Profile, ledger: Ledger, rng: Random) -> tuple[SyntheticAccount, ...]:
    """Return the accounts that have rows and that the business hands over."""
    numbers: dict[tuple[Role, str], int] = {}
    made = [
        _account(profile, role, rows, numbers, rng)
        for role, rows in ledger.rows.items()
        if rows and role != profile.not_supplied
    ]
    return without_lone_legs(made) if profile.not_supplied else tuple(made)


def without_lone_legs(handed_over: Iterable[SyntheticAccount]) -> tuple[SyntheticAccount, ...]:
    """Remove the pair number of every transfer whose other side is not handed over. The row stays an own transfer."""
    known = tuple(handed_over)
    sides = pl.concat([account.transactions["transfer_pair"].drop_nulls().unique() for account in known])
    whole = sides.filter(sides.is_duplicated()).unique().implode()
    pair = pl.col("transfer_pair")
    retained = pl.when(pair.is_in(whole)).then(pair).alias("transfer_pair")
    return tuple(replace(account, transactions=account.transactions.with_columns(retained)) for account in known)


def _account(
    profile: Profile, role: Role, rows: list[LedgerEntry], numbers: dict[tuple[Role, str], int], rng: Random
) -> SyntheticAccount:
    bank = profile.second_bank if role == "second" and profile.second_bank else profile.bank
    return SyntheticAccount(
        account_name=f"{profile.name} {_NAMES[role]}",
        bsb=branch_bsb(bank, rng),
        account_number=profile.numbers[role],
        bank_name=bank.name,
        account_type=_TYPES[role],
        credit_limit=_credit_limit(profile, role),
        transactions=statement(role, bank, profile.state, rows, numbers, rng),
    )


def branch_bsb(bank: BankStyle, rng: Random) -> str:
    """Return the BSB of a made-up branch of the bank."""
    branch = rng.randrange(10**6) % 10 ** (6 - len(bank.bsb_prefix))
    bsb = f"{bank.bsb_prefix}{branch:0{6 - len(bank.bsb_prefix)}}"
    return f"{bsb[:3]}-{bsb[3:]}"


def _credit_limit(profile: Profile, role: Role) -> str | None:
    cents = {"main": profile.overdraft, "card": profile.card_limit}.get(role, 0)
    return str(dollars(cents)) if cents else None


def statement(
    role: Role,
    bank: BankStyle,
    state: str,
    rows: list[LedgerEntry],
    numbers: dict[tuple[Role, str], int],
    rng: Random,
) -> pl.DataFrame:
    """Print an account's rows in its bank's words, with the truth about each (LABELLED).

    `numbers`: of the series of the customer's accounts so far; new ones join it.
    """
    teller = Teller(bank, rng, state, str(rng.randrange(1_000, 10_000)))
    ids = [f"txn_{rng.getrandbits(64):016x}" for _ in rows] if bank.gives_ids else [None] * len(rows)
    movements = [row.movement for row in rows]
    brands = [movement.party.brand or None for movement in movements]
    series, periods = _series(role, movements, numbers)
    return pl.DataFrame(
        {
            "date": pl.Series([movement.day - _EPOCH for movement in movements], dtype=pl.Int32).cast(pl.Date),
            "description": [teller.narrative(row) for row in rows],
            "amount": _money(movement.cents for movement in movements),
            "balance": _money(row.balance for row in rows),
            "transaction_id": ids,
            "submission": pl.Series([0] * len(rows), dtype=pl.UInt8),
            "category": [movement.category for movement in movements],
            "counterparty": brands,
            "transfer_pair": [row.pair for row in rows],
            "series": series,
            "series_period": periods,
            "facility": [movement.facility or None for movement in movements],
            "held_out": _held_out(bank, movements),
            "injected": [None] * len(rows),
            "lookalike": [movement.lookalike for movement in movements],
        },
        schema_overrides=LABELLED,
    )


def _series(
    role: Role, movements: list[Movement], numbers: dict[tuple[Role, str], int]
) -> tuple[list[int | None], list[str | None]]:
    """Return numbers and periods of the series that come often enough in this account. New ones join `numbers`."""
    names = [movement.series.name if movement.series else "" for movement in movements]
    often = {name for name, times in Counter(names).items() if name and times >= A_SERIES_FROM}
    numbered = [numbers.setdefault((role, name), len(numbers) + 1) if name in often else None for name in names]
    periods = [
        movement.series.period if number is not None and movement.series else None
        for number, movement in zip(numbered, movements, strict=True)
    ]
    return numbered, periods


def _held_out(bank: BankStyle, movements: list[Movement]) -> list[bool]:
    if bank.held_out:
        return [True] * len(movements)
    parties = (movement.party for movement in movements)
    return [not party.person and is_held_out(party.brand) for party in parties]


def _money(cents: Iterable[int]) -> pl.Series:
    return (pl.Series(cents, dtype=pl.Int64).cast(MONEY) * _CENT).cast(MONEY)
