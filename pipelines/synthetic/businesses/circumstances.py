"""The day on which a business applies for credit, its honest lookalikes, and whether its trouble leaves adverse rows.

They are drawn from a random stream of their own for each business. So lookalikes don't change anything else about a
business, and a portfolio with more lookalikes has the same businesses with more rows.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from random import Random
from typing import Literal

from pipelines.synthetic.businesses.borrowing import can_be_refinanced, refinance
from pipelines.synthetic.businesses.profile import Profile
from pipelines.synthetic.data_files import Record, load
from pipelines.synthetic.world.days import Window
from pipelines.synthetic.world.model import Lookalike

Who = Literal[
    "everyone", "saver", "employer", "without_tax_plan", "serves_practitioners", "invoicing", "in_group", "indebted"
]


class Carriers(Record, frozen=True):
    """Which businesses can have a lookalike, and how probable it is that one of them has it."""

    usual: float  # probability for a business that can have it
    often: float  # the same in a portfolio that is made to have many
    who: Who = "everyone"


class Leg(Record, frozen=True):
    """A row of an event."""

    category: str
    sign: Literal[-1, 1]
    rail: str
    references: tuple[str, ...]
    names: tuple[str, ...] = ()  # none: the party of the row before
    code: str = ""


class Event(Record, frozen=True):
    """Rows of a lookalike; `circumstances.yaml` explains the fields."""

    lookalike: Lookalike
    first: Leg
    low: float
    high: float
    then: Leg | None = None
    after: tuple[int, int] = (1, 1)
    retained: tuple[float, float] = (0.0, 0.0)
    of_turnover: bool = False
    round_to: int = 1
    times: tuple[int, int] = (1, 1)
    weekly: bool = False
    last_days: int = 0
    variant: str = ""
    trades: tuple[str, ...] = ()


class PassedOn(Record, frozen=True):
    """Who gets what an employer deducts from a worker's wages."""

    names: tuple[str, ...]
    references: tuple[str, ...]
    share: tuple[float, float]


class Circumstances(Record, frozen=True):
    """The content of `circumstances.yaml`, which explains the fields."""

    days_after_application: tuple[int, ...]
    quiet: float
    adverse_categories: frozenset[str]
    insolvency_endings: dict[str, tuple[str, ...]]
    employee_garnishee: PassedOn
    lookalikes: dict[Lookalike, Carriers]
    events: tuple[Event, ...]


@cache
def circumstances() -> Circumstances:
    return load("circumstances.yaml", Circumstances)


def draw_circumstances(profile: Profile, days: Window, stream: str, *, often: bool) -> Profile:
    """Return the business with its day of application, its lookalikes, and whether it is quiet."""
    known, rng = circumstances(), Random(f"{stream}/circumstances")
    applied_on = max(days.first, days.last - rng.choice(known.days_after_application))
    quiet = rng.random() < known.quiet and profile.distressed
    placed = replace(profile, stream=stream, applied_on=applied_on, quiet=quiet)
    chosen = frozenset(
        kind
        for kind, carriers in known.lookalikes.items()
        if rng.random() < (carriers.often if often else carriers.usual) and _may_have(placed, carriers.who)
    )
    return _refinance(_in_insolvency_trade(replace(placed, lookalikes=chosen)), days)


def _may_have(profile: Profile, who: Who) -> bool:
    return not profile.distressed and _CAN_HAVE[who](profile)


_CAN_HAVE: Mapping[Who, Callable[[Profile], bool]] = {
    "everyone": lambda _: True,
    "saver": lambda profile: "savings" in profile.roles and not profile.overdraft,
    "employer": lambda profile: bool(profile.staff),
    "without_tax_plan": lambda profile: not profile.has_plan(),
    "serves_practitioners": lambda profile: bool(variants("insolvency_trade", profile.trade.slug)),
    "invoicing": lambda profile: profile.trade.invoice > 0.25,
    "in_group": lambda profile: bool(profile.related),
    "indebted": lambda profile: any(can_be_refinanced(each, profile.applied_on) for each in profile.borrowings),
}


@cache
def variants(lookalike: Lookalike, trade: str) -> tuple[str, ...]:
    """Return the variants of a lookalike that a business of the trade can have."""
    events = (event for event in circumstances().events if event.lookalike == lookalike)
    return tuple(dict.fromkeys(event.variant for event in events if not event.trades or trade in event.trades))


def draw_events(profile: Profile, lookalike: Lookalike, rng: Random) -> list[Event]:
    """Return the events of a variant of a lookalike, drawn from those of its trade; empty if it has no events."""
    if not (open_to := variants(lookalike, profile.trade.slug)):
        return []
    variant = rng.choice(open_to)
    return [event for event in circumstances().events if (event.lookalike, event.variant) == (lookalike, variant)]


def _in_insolvency_trade(profile: Profile) -> Profile:
    """Return the business with a name that says what it does for insolvency practitioners."""
    if "insolvency_trade" not in profile.lookalikes:
        return profile
    rng = stream_of(profile, "insolvency_trade")
    variant = rng.choice(variants("insolvency_trade", profile.trade.slug))
    endings = circumstances().insolvency_endings.get(variant)
    ending = next(each for each in profile.trade.endings if profile.name.endswith(f" {each}"))
    return replace(profile, name=profile.name.removesuffix(ending) + rng.choice(endings)) if endings else profile


def _refinance(profile: Profile, days: Window) -> Profile:
    """Return the business with one of its loans paid off by another lender, shortly before the application."""
    if "refinanced" not in profile.lookalikes:
        return profile
    rng = stream_of(profile, "refinanced")
    borrowings = refinance(rng, profile.borrowings, days, profile.applied_on, profile.part)
    return replace(profile, borrowings=borrowings)


def stream_of(profile: Profile, lookalike: Lookalike) -> Random:
    """Return the random stream of a business's lookalike, which nothing else uses."""
    return Random(f"{profile.stream}/{lookalike}")
