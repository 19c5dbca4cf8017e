"""Everything else in a personal account: spending, savings, and money that comes in without being an income."""

from collections.abc import Iterator
from random import Random

from pipelines.synthetic.businesses.parties import shop
from pipelines.synthetic.people.situations import situations
from pipelines.synthetic.world.blanks import fill_in
from pipelines.synthetic.world.days import DAYS_PER_MONTH, Window
from pipelines.synthetic.world.merchants import Spend, merchants
from pipelines.synthetic.world.model import NOBODY, Movement, Part
from pipelines.synthetic.world.names import payee

_TAX_OFFICE = "Australian Taxation Office"


def spend_and_receive(days: Window, suburb: str, monthly: float, part: Part | None, rng: Random) -> Iterator[Movement]:
    """Yield rent in proportion to what comes in (`monthly` cents), card spending, and what comes in occasionally."""
    home = payee(rng)
    rent = -round(monthly * rng.uniform(0.2, 0.4) / 2 / 500) * 500
    for day in days.weekly(rng.randrange(5), 2):
        yield Movement(day, rent, "pay_anyone", home, "rent", "rent")
    yield from _purchases(days, suburb, part, rng)
    yield from _occasional_receipts(days, rng)


def _purchases(days: Window, suburb: str, part: Part | None, rng: Random) -> Iterator[Movement]:
    for spend in situations().spending:
        shops = [shop(rng, name, suburb, part) for name in rng.sample(spend.shops, min(3, len(spend.shops)))]
        for day in _random_days(rng.uniform(*spend.a_month), days, rng):
            chosen = rng.choice(shops)
            where = chosen._replace(name=fill_in(rng, chosen.name))
            yield Movement(day, -_random_price(spend, rng), "card", where, "", spend.category)
            if rng.random() < 0.01:  # taken back to the shop
                yield Movement(day, _random_price(spend, rng), "card_refund", where, "", "refund_received")


def _occasional_receipts(days: Window, rng: Random) -> Iterator[Movement]:
    """Yield friends' shares, second-hand sales, a tax refund and the bank's interest."""
    for _ in range(rng.randrange(4)):
        friend = payee(rng)
        for day in _random_days(rng.uniform(0.1, 0.6), days, rng):
            text = rng.choice(situations().occasional)
            yield Movement(day, rng.randrange(8, 240) * 100, "osko_in", friend, text, "unknown_credit")
    for day in days.monthly(12, 12, phase=rng.choice((2, 3, 4))):
        cents = round(rng.uniform(200, 2_800) * 100)
        office, reference = merchants().tax_refunds.party(_TAX_OFFICE), fill_in(rng, "ATO{n9}")
        yield Movement(day, cents, "direct_credit", office, reference, "tax_refund")
    for day in days.month_ends():
        yield Movement(day, rng.randrange(4, 900), "interest_paid", NOBODY, "", "interest_received")
    if rng.random() < 0.06:  # a personal loan, drawn in parts
        for day in _random_days(0.5, days, rng):
            yield Movement(day, rng.randrange(5, 60) * 10_000, "loan_drawdown", NOBODY, "", "term_loan_funding")


def days_of_allowance(days: Window, rng: Random) -> Iterator[int]:
    """Yield the days on which some people move a weekly allowance from their savings into this account."""
    return days.weekly(rng.randrange(5)) if rng.random() < 0.25 else iter(())


def _random_days(a_month: float, days: Window, rng: Random) -> Iterator[int]:
    day = float(days.first)
    while a_month:
        day += rng.expovariate(a_month / DAYS_PER_MONTH)
        if day > days.last:
            return
        yield int(day)


def _random_price(spend: Spend, rng: Random) -> int:
    return round(spend.low * (spend.high / spend.low) ** rng.random() * 100)
