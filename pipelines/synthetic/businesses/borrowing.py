"""What a business borrows: which facilities it takes, when they are drawn, and how they are repaid.

All instalments are planned here; the ledger decides which are really paid. Instalments that were due before the window
count as paid.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import count
from math import ceil
from random import Random

from pipelines.synthetic.businesses.lenders import Lender, credit, lenders_of, merchant_lender
from pipelines.synthetic.world.blanks import fill_in
from pipelines.synthetic.world.brands import available, canonical
from pipelines.synthetic.world.days import (
    DAYS_PER_MONTH,
    Window,
    is_business_day,
    next_business_day,
    same_day_of_month,
)
from pipelines.synthetic.world.model import Condition, Movement, Part, Party, Series
from pipelines.synthetic.world.typed_texts import words

REFINANCED = ("term_loan", "cash_advance", "asset_finance", "trade_credit", "payday_credit")
REFINANCED_AFTER = 60  # days since it was drawn
_DAYS_BETWEEN = {"business_daily": 1.45, "weekly": 7, "fortnightly": 14, "monthly": DAYS_PER_MONTH}


@dataclass(frozen=True)
class Borrowing:
    """A facility as agreed. Amounts are cents, days are ordinals."""

    number: int
    lender: Lender
    party: Party
    reference: str
    drawn: int  # day of the funding, in the window or before it
    lent: int
    instalment: int
    payments: int  # 0 where it revolves or is retained from takings
    renews: int = 0  # number of the facility that its funding pays out first
    pays_out: "Borrowing | None" = None  # another lender's facility, which the business pays out with the funding
    ends: int | None = None  # the day of its renewal or payout; from then on no instalments are due
    withheld: float = 0.0  # share of takings, where that is how it is repaid
    funded_here: bool = True  # False: no money comes in, because a dealer is paid or a tax debt deferred

    @property
    def to_repay(self) -> int:
        if self.payments:
            return self.instalment * self.payments
        return round(self.lent * self.lender.factor) if self.withheld else 0

    def due(self) -> Iterator[int]:
        """Yield the days on which instalments are due."""
        for day in _instalment_days(self.drawn, self.lender.cadence, self.payments):
            if self.ends is not None and day >= self.ends:
                return
            yield day

    def paid_before(self, first: int) -> int:
        """Return what was repaid before the window's first day."""
        return sum(self.instalment for day in self.due() if day < first)


def borrowings(
    rng: Random,
    turnover: int,
    leverage: float,
    state: Condition,
    days: Window,
    settled_by: tuple[str, ...],
    invoices: bool,
    abn: str,
    part: Part | None,
) -> Iterator[Borrowing]:
    """Yield facilities until their repayments take about the share of turnover that the business's leverage states."""
    numbers, service, stressed = count(1), 0.0, state in ("distressed", "failing")
    own_processors = filter(None, map(merchant_lender, settled_by))
    if (processor := next(own_processors, None)) and rng.random() < (0.6 if stressed else 0.25):
        yield _draw_advance(rng, next(numbers), processor, turnover, days)
    if rng.random() < (0.55 if stressed else 0.02):
        yield _draw_tax_plan(rng, next(numbers), turnover, days, abn)
    for _ in range(5):
        lender = _draw_lender(rng, state, invoices, part)
        if service >= leverage * rng.uniform(0.5, 1.2) or lender is None:
            return
        taken = _draw_facility(rng, next(numbers), lender, turnover, days)
        service += _monthly_instalments(taken) / turnover
        again = _draw_renewal(rng, taken, turnover, days) if stressed else None
        if again is None:
            yield taken
        else:
            next(numbers)
            yield replace(taken, ends=again.drawn)
            yield again


def repayments(borrowing: Borrowing, window: Window, rng: Random) -> Iterator[Movement]:
    """Yield every movement that the facility plans in the window."""
    cadence = borrowing.lender.cadence
    if cadence == "on_collection":
        yield from _advance_invoices(borrowing, window, rng)
        return
    if not borrowing.payments and not borrowing.withheld:
        yield from _use_credit_line(borrowing, window, rng)
        return
    if borrowing.drawn in window and borrowing.funded_here:
        yield _funding(borrowing, borrowing.drawn, borrowing.lent, borrowing.to_repay)
        yield from _establishment_fee(borrowing, rng)
    if borrowing.pays_out:
        yield from _pay_out_other_lender(borrowing, borrowing.pays_out, window)
    series = Series(f"facility {borrowing.number}", cadence)
    for day in borrowing.due():
        if day in window:
            yield _repayment(borrowing, day, borrowing.instalment, series)
    if borrowing.lender.rail == "loan_repayment":
        fee = -rng.choice((1000, 1200, 1500, 3500))
        for day in window.month_ends():
            yield Movement(day, fee, "loan_fee", Party(""), "", "loan_fees", series=Series("loan fee", "monthly"))


def can_be_refinanced(borrowing: Borrowing, applied_on: int) -> bool:
    """Return whether a named lender's facility, drawn two months or more before the application, is still owed."""
    lasts = borrowing.ends is None and borrowing.lender.product in REFINANCED
    begun = borrowing.drawn + REFINANCED_AFTER <= applied_on
    return lasts and begun and bool(borrowing.lender.name) and _planned_debt(borrowing, applied_on) > 0


def refinance(
    rng: Random, agreed: tuple[Borrowing, ...], days: Window, applied_on: int, part: Part | None
) -> tuple[Borrowing, ...]:
    """Return the facilities with one of them paid off by another lender's, in the weeks before the application."""
    old = rng.choice([each for each in agreed if can_be_refinanced(each, applied_on)])
    offers = [lender for lender in lenders_of(old.lender.product) if lender.name and lender.name != old.lender.name]
    if not (open_to := available(offers, _brand, part)):
        return agreed
    lender = rng.choice(open_to)
    drawn = next_business_day(max(days.first, applied_on - rng.randrange(5, 55)))
    lent = ceil(_planned_debt(old, drawn) * rng.uniform(1.02, 1.3) / 50_000) * 50_000
    ended = replace(old, ends=drawn)
    new = Borrowing(
        number=max(each.number for each in agreed) + 1,
        lender=lender,
        party=_party(lender),
        reference=fill_in(rng, lender.reference),
        drawn=drawn,
        lent=lent,
        instalment=ceil(lent * lender.factor / lender.payments),
        payments=lender.payments,
        pays_out=ended,
    )
    return (*(ended if each is old else each for each in agreed), new)


def _planned_debt(borrowing: Borrowing, on: int) -> int:
    return max(0, borrowing.to_repay - borrowing.paid_before(on)) if borrowing.payments else 0


def _pay_out_other_lender(new: Borrowing, old: Borrowing, window: Window) -> Iterator[Movement]:
    """Yield the payout of another lender. The ledger limits it to what is really owed."""
    day = next_business_day(new.drawn + 1)
    if day in window:
        payout = _repayment(old, day, old.to_repay, None)
        reference = f"PAYOUT {old.reference}"
        yield payout._replace(rail="pay_anyone", reference=reference, lookalike="refinanced")


def _draw_lender(rng: Random, state: Condition, invoices: bool, part: Part | None) -> Lender | None:
    appetite = credit().appetite[state]
    (product,) = rng.choices(list(appetite), weights=list(appetite.values()))
    if product == "invoice_finance" and not invoices:
        product = "term_loan"
    offers = available(lenders_of(product), _brand, part)
    return rng.choice(offers) if offers else None


def _brand(lender: Lender) -> str:
    return canonical(lender.name) if lender.name else ""


def _party(lender: Lender) -> Party:
    return Party(lender.name, code=lender.code, brand=_brand(lender))


def _draw_amount(rng: Random, lender: Lender, turnover: int, least: int) -> int:
    """Return what the lender lends, a multiple of $500."""
    return max(least, round(turnover * rng.uniform(lender.size_from, lender.size_to) / 50_000) * 50_000)


def _draw_facility(rng: Random, number: int, lender: Lender, turnover: int, days: Window) -> Borrowing:
    lent = _draw_amount(rng, lender, turnover, 50_000)
    instalment = ceil(lent * lender.factor / lender.payments) if lender.payments else max(2_500, lent // 26)
    drawn = _draw_drawdown_day(rng, lender, days)
    # Most lenders of asset finance pay the dealer, so the money does not come to the business.
    here = lender.product != "asset_finance" or rng.random() < 0.35
    reference, payments = fill_in(rng, lender.reference), lender.payments
    return Borrowing(number, lender, _party(lender), reference, drawn, lent, instalment, payments, funded_here=here)


def _draw_drawdown_day(rng: Random, lender: Lender, days: Window) -> int:
    """Return the day of the drawdown. Most short facilities are drawn in the window."""
    length = lender.payments * _DAYS_BETWEEN.get(lender.cadence, DAYS_PER_MONTH) or 365.0
    earliest = days.first - 0.8 * min(length, 1_400)
    return next_business_day(round(rng.uniform(earliest, days.last - (days.last - days.first) * 0.1)))


def _draw_advance(rng: Random, number: int, lender: Lender, turnover: int, days: Window) -> Borrowing:
    """Return an advance that is repaid by a share of the takings."""
    lent = _draw_amount(rng, lender, turnover, 100_000)
    drawn = next_business_day(round(days.first + rng.uniform(0.0, 0.8) * (days.last - days.first)))
    share = rng.choice((0.08, 0.1, 0.12, 0.15, 0.2))
    return Borrowing(number, lender, _party(lender), fill_in(rng, lender.reference), drawn, lent, 0, 0, withheld=share)


def _draw_tax_plan(rng: Random, number: int, turnover: int, days: Window, abn: str) -> Borrowing:
    """Return a tax debt in equal monthly instalments. Its funding brings no money in."""
    (office,) = lenders_of("tax_payment_plan")
    lent = round(turnover * rng.uniform(office.size_from, office.size_to) / 10_000) * 10_000
    payments = rng.choice((12, 18, 24))
    drawn = round(days.first + rng.uniform(-0.6, 0.4) * (days.last - days.first))
    note = rng.choice(words().tax_plan)
    reference = f"00{abn}060 {note}".rstrip()
    instalment = ceil(lent * office.factor / payments)
    return Borrowing(number, office, _party(office), reference, drawn, lent, instalment, payments, funded_here=False)


def _draw_renewal(rng: Random, old: Borrowing, turnover: int, days: Window) -> Borrowing | None:
    """Return the facility that renews another one: once 60 % is repaid, new money pays out the rest of the old."""
    if old.lender.product not in ("cash_advance", "term_loan") or not old.lender.name or rng.random() < 0.6:
        return None
    due = list(old.due())
    at = next_business_day(due[len(due) * 6 // 10])
    if not days.first + 20 < at < days.last - 40:
        return None
    lent = _draw_amount(rng, old.lender, turnover, old.lent)
    instalment = ceil(lent * old.lender.factor / old.payments)
    reference = fill_in(rng, old.lender.reference)
    return Borrowing(
        old.number + 1, old.lender, old.party, reference, at, lent, instalment, old.payments, renews=old.number
    )


def _monthly_instalments(borrowing: Borrowing) -> float:
    return borrowing.instalment * DAYS_PER_MONTH / _DAYS_BETWEEN.get(borrowing.lender.cadence, DAYS_PER_MONTH)


def _funding(borrowing: Borrowing, day: int, cents: int, owed: int) -> Movement:
    rail = "loan_drawdown" if borrowing.lender.rail == "loan_repayment" else "direct_credit"
    category = credit().products[borrowing.lender.product].funding
    return Movement(
        day,
        cents,
        rail,
        borrowing.party,
        borrowing.reference,
        category,
        facility=borrowing.number,
        owed=owed,
        lookalike="refinanced" if borrowing.pays_out else None,
    )


def _repayment(borrowing: Borrowing, day: int, cents: int, series: Series | None) -> Movement:
    category = credit().products[borrowing.lender.product].repayment
    rail, reference = borrowing.lender.rail, borrowing.reference
    return Movement(
        day, -cents, rail, borrowing.party, reference, category, "main", series, borrowing.number, owed=-cents
    )


def _establishment_fee(borrowing: Borrowing, rng: Random) -> Iterator[Movement]:
    """Yield the fee of lenders that debit it a day later. Most subtract it from the funding."""
    if borrowing.lender.product in ("term_loan", "cash_advance") and rng.random() < 0.3:
        cents = -max(9_900, borrowing.lent * 2 // 100)
        day = next_business_day(borrowing.drawn + 1)
        yield Movement(day, cents, "direct_debit", borrowing.party, "ESTABLISHMENT FEE", "loan_fees")


def _use_credit_line(borrowing: Borrowing, window: Window, rng: Random) -> Iterator[Movement]:
    """Yield a line of credit's movements: drawn in round amounts below the limit, a part of it repaid each week."""
    owed, series = 0, Series(f"facility {borrowing.number}", "weekly")
    paying_weekday = (borrowing.drawn - 1) % 7
    begins = max(borrowing.drawn, window.first)
    for day in range(begins, window.last + 1):
        if owed < borrowing.lent // 2 and is_business_day(day) and (day == begins or rng.random() < 0.03):
            cents = max(50_000, round((borrowing.lent - owed) * rng.uniform(0.3, 0.9) / 50_000) * 50_000)
            owed += cents
            yield _funding(borrowing, day, cents, cents)
        elif owed and (day - 1) % 7 == paying_weekday:
            cents = min(owed, borrowing.instalment)
            due = next_business_day(day)
            if due in window:
                owed -= cents
                yield _repayment(borrowing, due, cents, series)


def _advance_invoices(borrowing: Borrowing, window: Window, rng: Random) -> Iterator[Movement]:
    """Yield advances on invoices. Advance and fee are repaid when the customer has paid."""
    for day in range(max(borrowing.drawn, window.first), window.last + 1):
        if not is_business_day(day) or rng.random() >= 1 / 14:
            continue
        cents = round(borrowing.lent * rng.uniform(0.2, 0.5))
        back = round(cents * borrowing.lender.factor)
        reference = fill_in(rng, borrowing.lender.reference)
        advance = _funding(borrowing, day, cents, back)
        yield advance._replace(reference=reference)
        collected = next_business_day(day + rng.randrange(24, 52))
        if collected in window:
            yield _repayment(borrowing, collected, back, None)._replace(reference=reference)


def _instalment_days(drawn: int, cadence: str, payments: int) -> Iterator[int]:
    """Yield every business day after the drawdown, the same weekday, or the same day of the month."""
    day = drawn
    for number in range(1, payments + 1):
        if cadence == "business_daily":
            day = next_business_day(day + 1)
        elif cadence == "monthly":
            day = same_day_of_month(drawn, number)
        else:
            day += {"weekly": 7, "fortnightly": 14}[cadence]
        yield next_business_day(day)
