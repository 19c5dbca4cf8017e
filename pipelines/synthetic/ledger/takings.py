"""Money that trade brings in: card settlements, platform payouts, cash and cheques banked, invoices paid, refunds.

Amounts are drawn at random and rounded to whole cents at once: floats choose an amount, they never add amounts up.
"""

from collections import Counter
from collections.abc import Iterator
from math import log
from random import Random

from pipelines.synthetic.businesses.borrowing import Borrowing
from pipelines.synthetic.businesses.profile import LEAD_DAYS, Profile
from pipelines.synthetic.businesses.trades import Platform
from pipelines.synthetic.world.blanks import digits, fill_in
from pipelines.synthetic.world.brands import canonical
from pipelines.synthetic.world.days import (
    DAYS_PER_MONTH,
    Window,
    is_business_day,
    month_key,
    next_business_day,
    weekday,
)
from pipelines.synthetic.world.merchants import Processor, merchants
from pipelines.synthetic.world.model import NOBODY, Movement, Party, Role, Series
from pipelines.synthetic.world.names import payee
from pipelines.synthetic.world.typed_texts import typed_out, typed_reference, words

DAILY = "business_daily"
STEADY = 0.75  # share of days with card sales; with fewer there is no visible rhythm


class Withheld:
    """The shares of payouts that lenders to merchants retain until nothing is owed any more."""

    def __init__(self, profile: Profile) -> None:
        split = [borrowing for borrowing in profile.borrowings if borrowing.withheld]
        self._by_payer: dict[str, Borrowing] = {borrowing.party.brand: borrowing for borrowing in split}
        self._owed = {borrowing.number: borrowing.to_repay for borrowing in split}

    def subtract_from(self, movement: Movement) -> Movement:
        """Return the payout less the lender's share. Payouts must come in the order of their days."""
        loan = self._by_payer.get(movement.party.brand)
        if loan is None or movement.day <= loan.drawn:
            return movement
        cents = min(self._owed[loan.number], round(movement.cents * loan.withheld))
        if not cents:
            return movement
        self._owed[loan.number] -= cents
        return movement._replace(cents=movement.cents - cents, facility=loan.number, owed=-cents)


def takings(profile: Profile, window: Window, rng: Random) -> Iterator[Movement]:
    """Yield all movements of money that trade brings in, without an order."""
    withheld = Withheld(profile)
    for processor, share in profile.processors:
        settled = list(card_settlements(profile, window, rng, processor, share))
        yield from map(withheld.subtract_from, settled)
        if processor.fee == merchants().bank_terminal.fee:
            yield from merchant_fees(settled, window, rng)
    for platform in profile.platforms:
        yield from map(withheld.subtract_from, payouts(profile, window, rng, platform))
    yield from cash_deposits(profile, window, rng)
    yield from invoices_paid(profile, window, rng)
    yield from refunds(profile, window, rng)


def pace(profile: Profile, window: Window, day: int) -> float:
    """Return the day's turnover relative to a usual day's: season, growth, good and bad months (`profile`)."""
    return profile.paces[day - window.first + LEAD_DAYS]


def sold_by_card(profile: Profile, window: Window, rng: Random, day: int) -> float:
    """Return a day's card sales: steady behind a counter, now and then where most customers pay by invoice."""
    chance = chance_of_sales(profile)
    if rng.random() >= chance:
        return 0.0
    return takings_on(profile, window, rng, day) * profile.trade.card / chance


def chance_of_sales(profile: Profile) -> float:
    """Return the chance of selling anything by card on a day."""
    return min(1.0, profile.trade.card * 1.5)


def takings_on(profile: Profile, window: Window, rng: Random, day: int) -> float:
    """Return a day's takings in cents, by all ways of paying: by weekday, less on public holidays."""
    weekdays = profile.trade.weekdays
    usual = profile.turnover / DAYS_PER_MONTH * 7 * weekdays[weekday(day)] / sum(weekdays)
    holiday = weekday(day) < 5 and not is_business_day(day)
    return (
        usual
        * (0.35 if holiday else 1)
        * pace(profile, window, day)
        * rng.lognormvariate(-(profile.latents.volatility**2) / 2, profile.latents.volatility)
    )


def card_settlements(
    profile: Profile, window: Window, rng: Random, processor: Processor, share: float
) -> Iterator[Movement]:
    """Yield a credit for each day's takings on the next business day, net of the fee. Some merge a weekend's."""
    party = Party(processor.name, code=processor.code, brand=canonical(processor.name))
    reference = fill_in(rng, processor.reference) if processor.fee == 0 else processor.reference
    steady = chance_of_sales(profile) >= STEADY
    series = Series(f"settlement {party.name}", DAILY) if steady else None
    for arrives, cents in _card_credits(profile, window, rng, processor, share * (1 - processor.fee)):
        if cents and arrives in window:
            text = fill_in(rng, reference)
            yield Movement(arrives, cents, "direct_credit", party, text, processor.category, series=series)


def _card_credits(
    profile: Profile, window: Window, rng: Random, processor: Processor, share: float
) -> Iterator[tuple[int, int]]:
    """Yield days and cents of credits. If weekends are merged, each day has one credit."""
    by_day: Counter[int] = Counter()
    for day in range(window.first - LEAD_DAYS, window.last):
        cents = round(sold_by_card(profile, window, rng, day) * share)
        arrives = next_business_day(day + 1)
        if processor.merges_weekend:
            by_day[arrives] += cents
        else:
            yield arrives, cents
    yield from by_day.items()


def merchant_fees(settled: list[Movement], window: Window, rng: Random) -> Iterator[Movement]:
    """Yield a bank's fees for its own terminals: it settles gross and bills a month's fee early in the next month."""
    sales: Counter[tuple[int, int]] = Counter()
    for payout in settled:
        sales[month_key(payout.day)] += payout.cents
    party, reference = Party("", code=digits(rng, 6)), digits(rng, 8)
    rate = rng.uniform(0.009, 0.017)
    series = Series("merchant fee", "monthly")
    for day in window.monthly(3):
        billed = sales[month_key(day - 20)]
        if billed:
            yield Movement(
                day, -1_650 - round(billed * rate), "merchant_fee", party, reference, "merchant_fees", series=series
            )


def payouts(profile: Profile, window: Window, rng: Random, platform: Platform) -> Iterator[Movement]:
    """Yield a week's sales through a marketplace, health fund or pay-later provider. Some businesses have none."""
    share = profile.trade.platform / len(profile.platforms) * rng.choice((0.0, 0.7, 1.0, 1.6))
    party = Party(platform.name, code=platform.code, brand=canonical(platform.name))
    role: Role = "second" if "second" in profile.roles else "main"
    series = Series(f"payout {platform.name} {platform.weekday}", "weekly")
    for day in window.weekly(platform.weekday):
        cents = round(profile.turnover * share * 7 / DAYS_PER_MONTH * _weekly_factor(profile, window, rng, day))
        if cents:
            reference = fill_in(rng, platform.reference)
            yield Movement(day, cents, "direct_credit", party, reference, platform.category, role, series)


def _weekly_factor(profile: Profile, window: Window, rng: Random, day: int) -> float:
    return pace(profile, window, day) * rng.lognormvariate(-0.03, 0.25)


def cash_deposits(profile: Profile, window: Window, rng: Random) -> Iterator[Movement]:
    """Yield the notes carried to the bank once a week, in multiples of five dollars."""
    party = NOBODY._replace(place=profile.suburbs[0])
    series = Series("cash banked", "weekly")
    for day in window.weekly(rng.randrange(5)):
        dollars = profile.turnover / 100 * profile.trade.cash * 7 / DAYS_PER_MONTH
        cents = round(dollars * _weekly_factor(profile, window, rng, day) / 5) * 500
        if cents:
            yield Movement(day, cents, "cash_deposit", party, "", "cash_deposit", series=series)


def invoices_paid(profile: Profile, window: Window, rng: Random) -> Iterator[Movement]:
    """Yield payments of numbered invoices: most on a weekday, some by direct entry, more by Osko."""
    low, high = profile.trade.invoice_size
    usual_cents = (high - low) / log(high / low) * 100
    a_day = profile.turnover * profile.trade.invoice / usual_cents / 21
    next_number = rng.randrange(200, 6_000)
    unpaid = list(range(next_number - 9, next_number))
    for day in window:
        expected = a_day * pace(profile, window, day) * (1 if is_business_day(day) else 0.08)
        for _ in range(int(expected + rng.random())):
            paid = unpaid.pop(rng.randrange(len(unpaid)))
            unpaid.append(next_number)
            next_number += 1
            yield _invoice_paid(profile, rng, day, paid)


def _invoice_paid(profile: Profile, rng: Random, day: int, number: int) -> Movement:
    low, high = profile.trade.invoice_size
    dollars = low * (high / low) ** rng.random()
    cents = round(dollars) * 100 if rng.random() < 0.45 else round(dollars * 100)
    party = rng.choice(profile.customers)
    role = _receiving_role(profile, rng)
    how = rng.random()
    if is_business_day(day) and how < 0.4:
        reference = rng.choice((f"INV {number}", f"INV-{number:05}", f"{number}", profile.name.upper(), "CREDITOR PMT"))
        payer = party._replace(name=party.name.upper())
        return Movement(day, cents, "direct_credit", payer, reference, "customer_transfer", role)
    if is_business_day(day) and how > 0.975:
        place = NOBODY._replace(place=profile.suburbs[0])
        return Movement(day, cents, "cheque_deposit", place, "", "cheque_deposit")
    return Movement(day, cents, "osko_in", party, typed_reference(rng, number, profile.name), "customer_transfer", role)


def _receiving_role(profile: Profile, rng: Random) -> Role:
    """Return the account paid into. If no platform pays into the second one, some customers do."""
    second = "second" in profile.roles and not profile.platforms and rng.random() < 0.3
    return "second" if second else "main"


def refunds(profile: Profile, window: Window, rng: Random) -> Iterator[Movement]:
    """Yield refunds to customers, now and then, in trades that mostly sell without invoices."""
    if profile.trade.invoice > 0.5:
        return
    for day in window:
        if rng.random() < 0.012:
            cents = -round(rng.uniform(18, 240) * 100)
            number = rng.randrange(1_000, 9_999)
            references = tuple(text.format(n=number) for text in words().refund)
            yield Movement(day, cents, "osko_out", payee(rng), typed_out(rng, references), "refund_paid")
