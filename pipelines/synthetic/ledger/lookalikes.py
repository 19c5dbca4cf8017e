"""Honest rows that look like trouble or like window dressing, planned before any money moves (`circumstances`).

Most are the events of `circumstances.yaml`. What follows from balances (a debit on a morning when the money was in
savings, sweeps between companies) is decided while the ledger grows (`treasury`); `borrowing` plans a refinanced loan.
"""

from collections.abc import Iterator, Sequence
from random import Random

from pipelines.synthetic.businesses.circumstances import Event, Leg, circumstances, draw_events, stream_of
from pipelines.synthetic.businesses.parties import choose_name, counterparty
from pipelines.synthetic.businesses.profile import Profile
from pipelines.synthetic.ledger.occasions import TYPED, party_of
from pipelines.synthetic.world.blanks import fill_in
from pipelines.synthetic.world.days import Window, is_business_day, next_business_day
from pipelines.synthetic.world.model import Lookalike, Movement, Party, Series
from pipelines.synthetic.world.typed_texts import typed_out, words

RECENT = 25  # days before the application; one invoice of these days is paid twice, if there is one


def with_lookalikes(profile: Profile, window: Window, planned: Sequence[Movement]) -> Sequence[Movement]:
    """Return the plan with the rows of the business's lookalikes added.

    A quiet business, whose distress is not visible, has no lookalikes: its adverse rows are removed instead.
    """
    if profile.quiet:
        return [movement for movement in planned if movement.category not in circumstances().adverse_categories]
    if "employee_garnishee" in profile.lookalikes:
        planned = list(_deduct_from_wages(profile, planned, stream_of(profile, "employee_garnishee")))
    added = [
        movement._replace(lookalike=lookalike)
        for lookalike in sorted(profile.lookalikes)
        for movement in _make_rows(profile, window, planned, lookalike)
    ]
    return [*planned, *added]


def _make_rows(
    profile: Profile, window: Window, planned: Sequence[Movement], lookalike: Lookalike
) -> Iterator[Movement]:
    rng = stream_of(profile, lookalike)
    if lookalike == "overpaid_invoice":
        yield from _overpay_invoices(profile, window, planned, rng)
    for event in draw_events(profile, lookalike, rng):
        for day in _draw_days(event, profile, window, rng):
            yield from _make_event_rows(event, profile, window, rng, day)


def _draw_days(event: Event, profile: Profile, window: Window, rng: Random) -> Iterator[int]:
    if event.weekly:
        for day in window.weekly(rng.randrange(5)):
            yield from [day] * rng.randint(*event.times)
        return
    first = max(window.first, profile.applied_on - event.last_days) if event.last_days else window.first
    open_to = [day for day in range(first, profile.applied_on + 1) if is_business_day(day)]
    yield from rng.choices(open_to, k=rng.randint(*event.times)) if open_to else ()


def _make_event_rows(event: Event, profile: Profile, window: Window, rng: Random, day: int) -> Iterator[Movement]:
    """Yield a row of an event and the one that follows it.

    If the second one falls after the window, weekly events have only the first row, and other events do not happen.
    """
    party, cents = _party(event.first, profile, rng), _draw_amount(event, profile, rng)
    if party is None:
        return
    first = _row(event.first, party, day, cents, rng)
    if event.then is None:
        yield first
        return
    later = next_business_day(day + rng.randint(*event.after))
    back = round(cents * (1 - rng.uniform(*event.retained)))
    payee = _party(event.then, profile, rng) if event.then.names else party
    if later in window and payee is not None:
        yield first._replace(owed=back)
        yield _row(event.then, payee, later, back, rng)._replace(owed=-back)
    elif event.weekly:
        yield first._replace(owed=back)


def _party(leg: Leg, profile: Profile, rng: Random) -> Party | None:
    party = party_of(profile, rng, leg.names, leg.rail)
    return party._replace(code=leg.code) if party and leg.code else party


def _draw_amount(event: Event, profile: Profile, rng: Random) -> int:
    unit = profile.turnover if event.of_turnover else 100
    cents = event.low * (event.high / event.low) ** rng.random() * unit
    return max(event.round_to, round(cents / event.round_to) * event.round_to)


def _row(leg: Leg, party: Party, day: int, cents: int, rng: Random) -> Movement:
    reference = fill_in(rng, rng.choice(leg.references))
    if leg.rail in TYPED:
        reference = typed_out(rng, (reference,))
    return Movement(day, leg.sign * cents, leg.rail, party, reference, leg.category)


def _overpay_invoices(profile: Profile, window: Window, planned: Sequence[Movement], rng: Random) -> Iterator[Movement]:
    """Yield second payments of invoices, and their return in full to the same customer."""
    paid = [
        each for each in planned if (each.rail, each.category, each.role) == ("osko_in", "customer_transfer", "main")
    ]
    recent = [each for each in paid if profile.applied_on - RECENT <= each.day <= profile.applied_on]
    chosen = [*rng.sample(paid, min(len(paid), rng.randint(1, 3))), *rng.sample(recent, min(len(recent), 1))]
    for invoice in dict.fromkeys(chosen):
        again = next_business_day(invoice.day + rng.randrange(4))
        back = next_business_day(again + rng.randrange(1, 8))
        if back in window:
            reference = typed_out(rng, words().overpaid)
            yield invoice._replace(day=again)
            yield Movement(back, -invoice.cents, "osko_out", invoice.party, reference, "refund_paid")


def _deduct_from_wages(profile: Profile, planned: Sequence[Movement], rng: Random) -> Iterator[Movement]:
    """Yield the plan with a part of one worker's wages paid to a court or an agency."""
    known, worker = circumstances().employee_garnishee, rng.choice(profile.staff)
    name = choose_name(rng, known.names, profile.part) or known.names[0]
    payee, reference = counterparty(rng, name, profile.part), fill_in(rng, rng.choice(known.references))
    usual = round(worker.weekly * profile.pay_weeks * rng.uniform(*known.share))
    for movement in planned:
        if movement.category != "wages" or (movement.rail != "payroll" and movement.party != worker.party):
            yield movement
            continue
        deducted = min(usual, -movement.cents // 2)
        yield movement._replace(cents=movement.cents + deducted)
        series = movement.series and Series(f"deducted {worker.party.name}", movement.series.period)
        yield Movement(
            movement.day,
            -deducted,
            "pay_anyone",
            payee,
            reference,
            "wages",
            "main",
            series,
            lookalike="employee_garnishee",
        )
