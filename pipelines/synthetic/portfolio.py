"""Make a business from a number and a seed: draw its traits, plan movements, book each day, print statements."""

from collections.abc import Iterator
from datetime import date
from itertools import chain
from random import Random

from pipelines.synthetic.businesses import risk
from pipelines.synthetic.businesses.profile import Profile, draw_profile
from pipelines.synthetic.ledger.faults import inject_faults
from pipelines.synthetic.ledger.habits import Habits
from pipelines.synthetic.ledger.ledger import Ledger, in_booking_order
from pipelines.synthetic.ledger.spending import spending
from pipelines.synthetic.ledger.standing import facilities
from pipelines.synthetic.ledger.statements import accounts
from pipelines.synthetic.ledger.takings import takings
from pipelines.synthetic.world.days import DAYS_A_MONTH, Window, window
from pipelines.synthetic.world.model import Business, Facility, Outcome, Part


def portfolio(
    customers: int, months: int, seed: int, until: date, faults: bool = False, part: Part | None = None
) -> Iterator[Business]:
    """Yield `customers` businesses, one at a time: memory doesn't grow with their number.

    Each is seen over the `months` months that end on `until`. `faults=True` injects gaps and re-submissions.
    `part="train"` gives other businesses, without the brands and banks that are held out. `part="test"` gives yet
    others, with held-out brands and banks where possible (`brands`).
    """
    return (business(n, months, seed, until, faults, part) for n in range(customers))


def business(n: int, months: int, seed: int, until: date, faults: bool = False, part: Part | None = None) -> Business:
    """Return business number `n` of a portfolio, counted from 0. It depends on nothing but these values."""
    stream = f"{seed}/{n}/{months}/{until}" if part is None else f"{seed}/{n}/{months}/{until}/{part}"
    rng = Random(stream)  # text seeds are hashed by SHA-512, the same in every process
    profile, days = draw_profile(rng, window(months, until), part)
    ledger = run_ledger(profile, days, rng)
    owed = facilities(profile, ledger, days)
    made = Business(
        abn=profile.abn,
        name=profile.name,
        trade=profile.trade.slug,
        state=profile.state,
        accounts=accounts(profile, ledger, rng),
        condition=profile.condition,
        related=profile.related,
        facilities=owed,
        outcome=_outcome(profile, ledger, days, owed, rng),
        not_supplied=profile.not_supplied and profile.numbers[profile.not_supplied],
    )
    return inject_faults(made, Random(f"{seed}/{n}/faults")) if faults else made


def run_ledger(profile: Profile, days: Window, rng: Random) -> Ledger:
    """Return the business's ledger after the last day of the window."""
    planned = in_booking_order(chain(takings(profile, days, rng), spending(profile, days, rng)))
    ledger, habits = Ledger(profile, days, rng), Habits(profile, days, rng)
    for day in days:
        ledger.post_day(day, planned.get(day, ()))
        habits.follow(day, ledger)
    return ledger


def _outcome(profile: Profile, ledger: Ledger, days: Window, owed: tuple[Facility, ...], rng: Random) -> Outcome:
    latents = profile.latents
    left = ledger.headroom() + sum(ledger.balances.get(role, 0) for role in ("second", "savings", "tax"))
    ended = latents.shock_at * (days.last - days.first) / DAYS_A_MONTH + latents.shock_months
    since = (days.last - days.first) / DAYS_A_MONTH - ended
    late = max((facility.days_past_due for facility in owed), default=0)
    return risk.outcome(rng, latents, left / profile.turnover, late, since)
