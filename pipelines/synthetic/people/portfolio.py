"""Make a person from a number and a seed: draw the situation, post what comes in and goes out, print a statement."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from itertools import accumulate
from random import Random

from pipelines.synthetic.businesses.profile import make_abn, usable_banks
from pipelines.synthetic.ledger.statements import branch_bsb, statement
from pipelines.synthetic.people.incomes import Payments, pay, streams
from pipelines.synthetic.people.living import days_of_allowance, spend_and_receive
from pipelines.synthetic.people.situations import situations
from pipelines.synthetic.world.blanks import digits
from pipelines.synthetic.world.days import Window, window
from pipelines.synthetic.world.model import (
    Income,
    LedgerEntry,
    Movement,
    Part,
    Party,
    Person,
    Series,
    SyntheticAccount,
)
from pipelines.synthetic.world.names import names, person, states_by_weight

A_PAYER_FROM = 4  # payments in the window; fewer show no regularity


def people(customers: int, months: int, seed: int, until: date, part: Part | None = None) -> Iterator[Person]:
    """Yield `customers` people, each seen over the `months` months that end on `until`.

    `part="test"` gives people whose payers and wordings occur in no other part (`people.yaml`), at held-out banks;
    `part="calibration"` others again, at the usual banks.
    """
    streams_of = (f"people/{seed}/{n}/{months}/{until}/{part}" for n in range(customers))
    return (_person(Random(seeded), months, until, part) for seeded in streams_of)


def _person(rng: Random, months: int, until: date, part: Part | None) -> Person:
    days, weights = window(months, until), situations().situations
    [situation] = rng.choices(tuple(weights), tuple(weights.values()))
    name, state = person(rng), rng.choice(states_by_weight())
    paid = [pay(stream, days, rng) for stream in streams(situation, rng, part)]
    monthly = sum(each.stream.monthly for each in paid)
    spent = spend_and_receive(days, rng.choice(names().suburbs[state]), monthly, part, rng)
    incoming = (movement for each in paid for movement in each.movements)
    entries = _entries([*incoming, *spent, *_allowance(name, days, monthly, rng)], rng)
    return Person(
        abn=make_abn(rng),
        name=name,
        situation=situation,
        state=state,
        accounts=(_account(name, state, entries, part, rng),),
        incomes=tuple(_incomes(paid)),
    )


def _allowance(name: str, days: Window, monthly: float, rng: Random) -> Iterator[Movement]:
    """Yield a weekly transfer from the person's own savings account, which the lender does not see."""
    cents = max(1, round(monthly / 10 / 1_000)) * 1_000
    for day in days_of_allowance(days, rng):
        yield Movement(day, cents, "own_in", Party(name), "", "own_transfer", series=Series("allowance", "weekly"))


def _entries(movements: Sequence[Movement], rng: Random) -> list[LedgerEntry]:
    """Post movements by day. The account opens with enough to never be overdrawn."""
    in_order = sorted(movements, key=lambda movement: (movement.day, movement.cents < 0))
    after = list(accumulate(movement.cents for movement in in_order))
    opening = max(0, -min(after, default=0)) + rng.randrange(1_000, 250_000)
    other = digits(rng, 9)
    return [
        LedgerEntry(movement, opening + balance, other=other if movement.category == "own_transfer" else "")
        for movement, balance in zip(in_order, after, strict=True)
    ]


def _account(name: str, state: str, rows: list[LedgerEntry], part: Part | None, rng: Random) -> SyntheticAccount:
    bank = rng.choice(usable_banks(part))
    return SyntheticAccount(
        account_name=f"{name} {rng.choice(('Everyday Account', 'Access Account', 'Smart Access', 'Everyday'))}",
        bsb=branch_bsb(bank, rng),
        account_number=digits(rng, bank.account_digits),
        bank_name=bank.name,
        account_type="transaction",
        credit_limit=None,
        transactions=statement("main", bank, state, rows, {}, rng),
    )


def _incomes(paid: Iterable[Payments]) -> Iterator[Income]:
    for each in paid:
        if len(each.movements) >= A_PAYER_FROM:
            stream, payments = each.stream, len(each.movements)
            yield Income(stream.payer.brand, stream.kind, stream.period, payments, each.due - payments)
