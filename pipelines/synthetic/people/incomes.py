"""The regular payers of a person: who pays, when, how much, and which payments fail to come.

A `Stream` is drawn, and `pay` draws its payments. The shares of missed days, pauses and moved days are our judgement:
they make incomes hard to recognise, and don't estimate how often this happens.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import date
from random import Random

from pipelines.synthetic.people.situations import Agency, agency_party, client, employer, property_manager, situations
from pipelines.synthetic.world.blanks import Blanks, fill_in
from pipelines.synthetic.world.days import Window, next_business_day
from pipelines.synthetic.world.model import IncomeKind, Movement, Part, Party
from pipelines.synthetic.world.names import payee
from pipelines.synthetic.world.typed_texts import mistype

PAUSE_DAYS = 61  # unpaid leave, a lost job, an empty flat
_CATEGORY: dict[IncomeKind, str] = {
    "wages": "salary_received",
    "benefit": "government_receipt",
    "pension": "government_receipt",
    "rent": "rent_received",
    "contract_revenue": "customer_transfer",
    "regular": "unknown_credit",  # the taxonomy has no category for money from family
}
_PAYMENTS_A_MONTH = {"weekly": 52 / 12, "fortnightly": 26 / 12, "monthly": 1.0, "quarterly": 1 / 3, "irregular": 1.4}
_MONTHS_BETWEEN = {"monthly": 1, "quarterly": 3}


@dataclass(frozen=True)
class Stream:
    """A payer with its habits. `day`: a weekday from 0, or a day of the month for a monthly payer."""

    kind: IncomeKind
    payer: Party
    rail: str
    text: str  # with blanks
    monthly: int  # cents
    period: str  # a key of _PAYMENTS_A_MONTH; irregular: payments have no fixed dates
    day: int = 0
    varies: float = 0.0  # standard deviation of the logarithm of payments
    misses: float = 0.0  # share of due dates without payment
    multiple_of: int = 1  # cents, as people pay round amounts
    pauses: bool = False
    moves: bool = False  # changes its day halfway
    category: str = ""


@dataclass(frozen=True)
class Payments:
    """What a stream paid within the window, and how many due dates it had."""

    stream: Stream
    movements: tuple[Movement, ...]
    due: int


def pay(stream: Stream, days: Window, rng: Random) -> Payments:
    """Draw a stream's payments within the window."""
    due = list(_due_days(stream, days, rng))
    pause = range(0)
    if stream.pauses:
        begins = rng.randrange(days.first + 30, max(days.first + 31, days.last - PAUSE_DAYS - 30))
        pause = range(begins, begins + PAUSE_DAYS)
    paid = [day for day in due if day not in pause and rng.random() >= stream.misses]
    return Payments(stream, tuple(_movement(stream, day, rng) for day in paid), len(due))


def _due_days(stream: Stream, days: Window, rng: Random) -> Iterator[int]:
    if stream.period == "irregular":
        yield from _irregular_days(days, rng)
        return
    for span, day in _spans(stream, days):
        if months := _MONTHS_BETWEEN.get(stream.period):
            yield from span.monthly(day, months)
        else:
            yield from span.weekly(day, 1 if stream.period == "weekly" else 2)


def _spans(stream: Stream, days: Window) -> tuple[tuple[Window, int], ...]:
    """Return the spans of days in which a stream keeps its day, and its day in each."""
    if not stream.moves:
        return ((days, stream.day),)
    half = (days.first + days.last) // 2
    later = (stream.day + 12) % 28 + 1 if stream.period == "monthly" else (stream.day + 2) % 5
    return (Window(days.first, half), stream.day), (Window(half + 1, days.last), later)


def _irregular_days(days: Window, rng: Random) -> Iterator[int]:
    """Yield days a few weeks apart, as invoices are paid."""
    usual = rng.choice((12, 18, 24, 30))
    day = days.first + rng.randrange(usual)
    while day <= days.last:
        yield next_business_day(day)
        day += max(3, round(usual * rng.lognormvariate(0, 0.35)))


def _movement(stream: Stream, day: int, rng: Random) -> Movement:
    usual = stream.monthly / _PAYMENTS_A_MONTH[stream.period]
    cents = usual * (rng.lognormvariate(0, stream.varies) if stream.varies else 1)
    when = date.fromordinal(day)
    text = mistype(rng, stream.text.format_map(Blanks(rng, {"d": f"{when.day}/{when.month:02}"})))
    rounded = max(stream.multiple_of, round(cents / stream.multiple_of) * stream.multiple_of)
    return Movement(day, rounded, stream.rail, stream.payer, text, stream.category or _CATEGORY[stream.kind])


# What people in a situation live on


def streams(situation: str, rng: Random, part: Part | None) -> tuple[Stream, ...]:
    """Draw the payers of a person in this situation."""
    return tuple(_OF_SITUATION[situation](rng, part))


def _salaried(rng: Random, part: Part | None) -> Iterator[Stream]:
    yield _job(rng, part)
    if rng.random() < 0.15:
        yield _family(rng, part)
    if rng.random() < 0.15:
        yield _investment(rng, part)


def _casual(rng: Random, part: Part | None) -> Iterator[Stream]:
    for _ in range(rng.choice((1, 1, 1, 2))):
        yield _shifts(rng, part)


def _beneficiary(rng: Random, part: Part | None) -> Iterator[Stream]:
    reduced = rng.random() < 0.4  # by what the person earns
    benefit = _agency_stream(rng, "benefit", rng.choice(situations().benefits.of(part)), (500, 2_600), "fortnightly")
    yield replace(benefit, varies=0.15 if reduced else 0.0, pauses=rng.random() < 0.2)
    if reduced:
        yield _shifts(rng, part)


def _pensioner(rng: Random, part: Part | None) -> Iterator[Stream]:
    yield _agency_stream(rng, "pension", rng.choice(situations().age_pensions.of(part)), (700, 2_300), "fortnightly")
    if rng.random() < 0.7:
        fund = rng.choice(situations().super_pensions.of(part))
        period = rng.choice(("monthly", "monthly", "fortnightly"))
        yield replace(_agency_stream(rng, "pension", fund, (600, 4_500), period), category="unknown_credit")
    if rng.random() < 0.2:
        yield _investment(rng, part)


def _landlord(rng: Random, part: Part | None) -> Iterator[Stream]:
    yield _job(rng, part)
    yield _managed_rent(rng, part) if rng.random() < 0.55 else _rent_of_tenant(rng, part)


def _contractor(rng: Random, part: Part | None) -> Iterator[Stream]:
    for _ in range(rng.choice((1, 2))):
        yield _invoices(rng, part)


def _supported(rng: Random, part: Part | None) -> Iterator[Stream]:
    if rng.random() < 0.25:
        yield replace(_agency_stream(rng, "regular", situations().maintenance, (150, 1_400), "monthly"), misses=0.1)
    else:
        yield _family(rng, part)
    if rng.random() < 0.5:
        yield _shifts(rng, part)


_OF_SITUATION: dict[str, Callable[[Random, Part | None], Iterator[Stream]]] = {
    "salaried": _salaried,
    "casual": _casual,
    "beneficiary": _beneficiary,
    "pensioner": _pensioner,
    "landlord": _landlord,
    "contractor": _contractor,
    "supported": _supported,
}


def _job(rng: Random, part: Part | None) -> Stream:
    period = rng.choice(("weekly", "fortnightly", "fortnightly", "monthly"))
    return Stream(
        "wages",
        employer(rng, part),
        "direct_credit",
        rng.choice(situations().wages.of(part)),
        _cents(rng, 1_800, 9_500),
        period,
        day=rng.randrange(1, 29) if period == "monthly" else rng.choice((1, 2, 3, 3)),
        varies=rng.choice((0.0, 0.0, 0.03, 0.1, 0.25)),
        pauses=rng.random() < 0.15,
        moves=rng.random() < 0.1,
    )


def _shifts(rng: Random, part: Part | None) -> Stream:
    """Draw casual work, paid on one weekday or, in some households, whenever there was some."""
    household = rng.random() < situations().households
    return Stream(
        "wages",
        payee(rng) if household else employer(rng, part),
        "osko_in" if household else rng.choice(("direct_credit", "direct_credit", "osko_in")),
        rng.choice(situations().casual_wages.of(part)),
        _cents(rng, 200, 3_600),
        "irregular" if household and rng.random() < 0.3 else "weekly",
        day=rng.choice((3, 4, 4, 4)),
        varies=rng.uniform(0.1, 0.5),
        misses=rng.uniform(0.1, 0.7),
        multiple_of=500 if household else 1,
        pauses=rng.random() < 0.15,
    )


def _agency_stream(rng: Random, kind: IncomeKind, agency: Agency, dollars: tuple[int, int], period: str) -> Stream:
    return Stream(
        kind,
        agency_party(agency),
        "direct_credit",
        fill_in(rng, rng.choice(agency.texts)),  # the customer's own number
        _cents(rng, *dollars),
        period,
        day=rng.randrange(1, 29) if period == "monthly" else rng.randrange(5),
    )


def _investment(rng: Random, part: Part | None) -> Stream:
    agency = rng.choice(situations().investments.of(part))
    return replace(
        _agency_stream(rng, "regular", agency, (20, 600), "quarterly"), day=rng.randrange(10, 20), varies=0.3
    )


def _managed_rent(rng: Random, part: Part | None) -> Stream:
    return Stream(
        "rent",
        property_manager(rng, part),
        "direct_credit",
        rng.choice(situations().managers_rent.of(part)),
        _cents(rng, 1_400, 3_600),
        "monthly",
        day=rng.choice((1, 15, 28)),
        varies=rng.uniform(0.02, 0.2),  # fees and repairs are deducted
        pauses=rng.random() < 0.15,
    )


def _rent_of_tenant(rng: Random, part: Part | None) -> Stream:
    return Stream(
        "rent",
        payee(rng),
        "osko_in",
        rng.choice(situations().tenants_rent.of(part)),
        _cents(rng, 600, 3_200),
        rng.choice(("weekly", "fortnightly", "monthly")),
        day=rng.randrange(1, 5),
        misses=rng.choice((0.0, 0.05, 0.15)),
        multiple_of=500,
        pauses=rng.random() < 0.1,
    )


def _invoices(rng: Random, part: Part | None) -> Stream:
    """Draw a client who pays invoices on irregular days, or a retainer regularly."""
    period = rng.choice(("irregular", "irregular", "irregular", "monthly", "fortnightly"))
    return Stream(
        "contract_revenue",
        payee(rng) if rng.random() < situations().households else client(rng, part),
        rng.choice(("osko_in", "direct_credit")),
        rng.choice(situations().invoices.of(part)),
        _cents(rng, 800, 9_000),
        period,
        day=rng.randrange(1, 29) if period == "monthly" else rng.randrange(5),
        varies=rng.uniform(0.0, 0.55),
        misses=rng.choice((0.0, 0.1, 0.3)),
        multiple_of=rng.choice((1, 1_000)),
    )


def _family(rng: Random, part: Part | None) -> Stream:
    return Stream(
        "regular",
        payee(rng),
        "osko_in",
        rng.choice(situations().family.of(part)),
        _cents(rng, 100, 2_200),
        rng.choice(("weekly", "fortnightly", "monthly", "irregular")),
        day=rng.randrange(1, 5),
        varies=rng.choice((0.0, 0.0, 0.2, 0.5)),
        misses=rng.choice((0.0, 0.1, 0.25)),
        multiple_of=1_000,
    )


def _cents(rng: Random, low: int, high: int) -> int:
    ratio: float = (high / low) ** rng.random()
    return round(low * ratio * 100)
