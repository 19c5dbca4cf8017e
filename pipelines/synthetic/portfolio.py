"""Make a business from a number and a seed: draw its traits, plan movements, post each day's, and print statements."""

from collections.abc import Iterator
from datetime import date
from random import Random

from pipelines.synthetic.businesses import risk
from pipelines.synthetic.businesses.circumstances import draw_circumstances
from pipelines.synthetic.businesses.disguise import Disguise, disguise
from pipelines.synthetic.businesses.profile import Profile, draw_profile
from pipelines.synthetic.ledger.faults import inject_faults
from pipelines.synthetic.ledger.habits import Habits
from pipelines.synthetic.ledger.ledger import Ledger, in_posting_order
from pipelines.synthetic.ledger.lookalikes import with_lookalikes
from pipelines.synthetic.ledger.spending import spending
from pipelines.synthetic.ledger.standing import facilities
from pipelines.synthetic.ledger.statements import accounts
from pipelines.synthetic.ledger.takings import takings
from pipelines.synthetic.ledger.treasury import Treasury
from pipelines.synthetic.world.days import DAYS_PER_MONTH, Window, window
from pipelines.synthetic.world.model import Business, Facility, Lookalike, Outcome, Part


def portfolio(
    customers: int,
    months: int,
    seed: int,
    until: date,
    faults: bool = False,
    part: Part | None = None,
    lookalikes: bool = False,
    lenders: Disguise | None = None,
) -> Iterator[Business]:
    """Yield `customers` businesses, one at a time: memory doesn't grow with their number.

    Each is seen over the `months` months that end on `until`. `faults=True` injects gaps and re-submissions.
    `part="train"` gives other businesses, without the brands and banks that are held out. `part="test"` gives yet
    others, with held-out brands and banks where possible (`brands`). `lookalikes=True` gives the same businesses, each
    kind of lookalike in at least a tenth of them. `lenders` gives the same businesses with disguised lenders.
    """
    return (business(n, months, seed, until, faults, part, lookalikes, lenders) for n in range(customers))


def business(
    n: int,
    months: int,
    seed: int,
    until: date,
    faults: bool = False,
    part: Part | None = None,
    lookalikes: bool = False,
    lenders: Disguise | None = None,
) -> Business:
    """Return business number `n` of a portfolio, counted from 0. It depends on nothing but these values."""
    stream = f"{seed}/{n}/{months}/{until}" if part is None else f"{seed}/{n}/{months}/{until}/{part}"
    rng = Random(stream)  # text seeds are hashed by SHA-512, the same in every process
    drawn, days = draw_profile(rng, window(months, until), part)
    placed = draw_circumstances(drawn, days, stream, often=lookalikes)
    made = settle(disguise(placed, lenders) if lenders else placed, days, rng)
    return inject_faults(made, Random(f"{seed}/{n}/faults")) if faults else made


def settle(profile: Profile, days: Window, rng: Random) -> Business:
    """Return the business with what happened in the window."""
    ledger = run_ledger(profile, days, rng)
    owed = facilities(profile, ledger, days)
    return Business(
        abn=profile.abn,
        name=profile.name,
        trade=profile.trade.slug,
        state=profile.state,
        accounts=accounts(profile, ledger, rng),
        condition=profile.condition,
        related=profile.related,
        facilities=owed,
        outcome=_outcome(profile, ledger, days, owed, rng),
        applied_on=date.fromordinal(profile.applied_on),
        lookalikes=_lookalikes(profile, ledger),
        missed_wages=ledger.missed.total(),
        not_supplied=profile.not_supplied and profile.numbers[profile.not_supplied],
    )


def run_ledger(profile: Profile, days: Window, rng: Random) -> Ledger:
    """Return the business's ledger after the last day of the window."""
    usual = [*takings(profile, days, rng), *spending(profile, days, rng)]
    planned = in_posting_order(with_lookalikes(profile, days, usual))
    ledger, habits = Ledger(profile, days, rng), Habits(profile, days, rng)
    treasury = Treasury(profile, days, planned)
    for day in days:
        ledger.post_day(day, planned.get(day, ()))
        habits.follow(day, ledger)
        treasury.follow(day, ledger)
    return ledger


def _lookalikes(profile: Profile, ledger: Ledger) -> tuple[Lookalike, ...]:
    """Return the lookalikes that occur in accounts that the lender sees."""
    seen = (rows for role, rows in ledger.rows.items() if role != profile.not_supplied)
    return tuple(sorted({row.movement.lookalike for rows in seen for row in rows if row.movement.lookalike}))


def _outcome(profile: Profile, ledger: Ledger, days: Window, owed: tuple[Facility, ...], rng: Random) -> Outcome:
    latents = profile.latents
    aside = sum(ledger.balances.get(role, 0) for role in ("second", "savings", "tax"))
    left = ledger.headroom() + aside + ledger.pooled - ledger.held
    ended = latents.shock_at * (days.last - days.first) / DAYS_PER_MONTH + latents.shock_months
    since = (days.last - days.first) / DAYS_PER_MONTH - ended
    late = max((facility.days_past_due for facility in owed), default=0)
    return risk.draw_outcome(rng, latents, left / profile.turnover, late, since)
