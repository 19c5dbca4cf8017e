"""Irregular movements: claims, grants, machines sold, chargebacks, fines, bad cheques, money sent home.

`occasions.yaml` lists the occasions, the businesses that they happen to, and how often a year. The only movement on
fixed days is payroll tax: other bills are in `merchants`. Movements that depend on the balance are decided by the
ledger.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from random import Random
from typing import Literal

from pipelines.synthetic.businesses.parties import choose_name, counterparty, shop
from pipelines.synthetic.businesses.profile import Profile
from pipelines.synthetic.data_files import Record, load
from pipelines.synthetic.world.blanks import fill_in
from pipelines.synthetic.world.days import Window, next_business_day
from pipelines.synthetic.world.model import Movement, Party, Role, Series
from pipelines.synthetic.world.typed_texts import typed_out

DAYS_PER_YEAR = 365.25
TYPED = ("osko_in", "osko_out", "pay_anyone")  # rails whose references people type
_BODIES = frozenset({"{revenue}", "{registration}", "{fines}", "{compensation}", "{council}"})

Who = Literal[
    "everyone", "troubled", "failing", "starting", "employer", "card_seller", "invoicing", "careless", "holds_card"
]
_HAPPENS_TO: Mapping[Who, Callable[[Profile], bool]] = {
    "everyone": lambda _: True,
    "troubled": lambda profile: profile.distressed,
    "failing": lambda profile: profile.condition == "failing",
    "starting": lambda profile: profile.condition == "start_up",
    "employer": lambda profile: bool(profile.staff),
    "card_seller": lambda profile: profile.trade.card + profile.trade.platform > 0.4,
    "invoicing": lambda profile: profile.trade.invoice > 0.5,
    "careless": lambda profile: profile.latents.prudence < 0.5,
    "holds_card": lambda profile: "card" in profile.roles,
}


class Occasion(Record, frozen=True):
    category: str
    sign: Literal[-1, 1]
    rail: str
    a_year: float
    low: int  # dollars
    high: int
    names: tuple[str, ...] = ("",)  # as in `parties`; "" is nobody
    references: tuple[str, ...] = ("",)
    who: Who = "everyone"
    round_to: int = 1  # cents
    role: Role = "main"


@cache
def _occasions() -> tuple[Occasion, ...]:
    return load("occasions.yaml", tuple[Occasion, ...])


def draw_occasions(profile: Profile, window: Window, rng: Random) -> Iterator[Movement]:
    for occasion in _occasions():
        if _HAPPENS_TO[occasion.who](profile):
            yield from _make_occasion_rows(occasion, profile, window, rng)
    yield from _payroll_tax(profile, window, rng)


def _make_occasion_rows(occasion: Occasion, profile: Profile, window: Window, rng: Random) -> Iterator[Movement]:
    day: float = window.first
    while (day := day + rng.expovariate(occasion.a_year / DAYS_PER_YEAR)) <= window.last:
        party = party_of(profile, rng, occasion.names, occasion.rail)
        posted_on = next_business_day(int(day))
        if party is None or posted_on not in window:
            return
        reference = fill_in(rng, rng.choice(occasion.references))
        if occasion.rail in TYPED:
            reference = typed_out(rng, (reference,))
        cents = _draw_amount(occasion, rng)
        if cents:
            yield Movement(posted_on, cents, occasion.rail, party, reference, occasion.category, occasion.role)


def _draw_amount(occasion: Occasion, rng: Random) -> int:
    dollars: float = occasion.low * (occasion.high / occasion.low) ** rng.random()
    step = occasion.round_to
    return occasion.sign * max(step, round(dollars * 100 / step) * step)


def party_of(profile: Profile, rng: Random, names: tuple[str, ...], rail: str) -> Party | None:
    """Return one of the parties by those names; None if this business has no such party."""
    name = choose_name(rng, names, profile.part)
    if name in _RELATIONS:
        return _RELATIONS[name](profile, rng)
    if name in _BODIES:
        return counterparty(rng, getattr(profile.bodies, name.strip("{}")), None, "")
    if not name:
        return Party("", profile.suburbs[0]) if name == "" else None
    if rail.startswith("card"):
        party = shop(rng, name, profile.suburbs[0], profile.part)
        return party._replace(name=fill_in(rng, party.name))
    return counterparty(rng, name, profile.part)


def _choose_related(profile: Profile, rng: Random) -> Party | None:
    name = rng.choice(profile.related) if profile.related else None
    return Party(name, brand=name) if name else None


_RELATIONS: Mapping[str | None, Callable[[Profile, Random], Party | None]] = {
    "{customer}": lambda profile, rng: rng.choice(profile.customers),
    "{owner}": lambda profile, _: Party(profile.owner, brand=profile.owner, person=True),
    "{related}": _choose_related,
}


def _payroll_tax(profile: Profile, window: Window, rng: Random) -> Iterator[Movement]:
    """Yield a state's monthly tax on large payrolls: here from eight people on, so that the portfolio has some."""
    if len(profile.staff) < 8:
        return
    office = counterparty(rng, profile.bodies.revenue)
    for day in window.monthly(7):
        cents = -round(profile.weekly_gross * 52 / 12 * 0.0485 * rng.uniform(0.1, 0.35))
        reference, series = f"PAYROLL TAX {profile.abn[-8:]}", Series("payroll tax", "monthly")
        yield Movement(day, cents, "bpay", office, reference, "payroll_tax", series=series)
