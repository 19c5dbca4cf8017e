"""Money that a business spends: suppliers, wages, super, tax, bills, small purchases, and bad habits."""

from collections.abc import Iterator
from datetime import date
from random import Random

from pipelines.synthetic.businesses.borrowing import repayments
from pipelines.synthetic.businesses.profile import WITHHELD, Profile, RegularBill, Supplier, Worker
from pipelines.synthetic.ledger.occasions import draw_occasions
from pipelines.synthetic.ledger.takings import pace
from pipelines.synthetic.world.blanks import fill_in
from pipelines.synthetic.world.days import DAYS_PER_MONTH, Window, is_business_day, month_of
from pipelines.synthetic.world.merchants import Spend, merchants
from pipelines.synthetic.world.model import Movement, Party, Role, Series
from pipelines.synthetic.world.typed_texts import mistype, typed_out, words

ON_CREDIT_CARD = {"card": "purchase", "card_foreign": "purchase_foreign"}
BUSINESS_DAYS_PER_MONTH = 21  # on average
SMALL_TEAM = 5  # people whom an owner pays one by one
_TAX = Party("TAX OFFICE PAYMENTS", code="75556", brand="Australian Taxation Office")


def spending(profile: Profile, window: Window, rng: Random) -> Iterator[Movement]:
    """Yield all money that the business spends in the window, by kind."""
    for supplier in profile.suppliers:
        yield from supplies(profile, window, rng, supplier)
    yield from wages(profile, window, rng)
    yield from superannuation(profile, window)
    yield from tax(profile, window, rng)
    for bill in profile.bills:
        yield from bills(profile, window, rng, bill)
    for spend, shops in profile.spends:
        yield from purchases(profile, window, rng, spend, shops)
    yield from cash_withdrawals(profile, window, rng)
    yield from wagers(profile, window, rng)
    for borrowing in profile.borrowings:
        yield from repayments(borrowing, window, rng)
    yield from draw_occasions(profile, window, rng)


def supplies(profile: Profile, window: Window, rng: Random, supplier: Supplier) -> Iterator[Movement]:
    """Yield a supplier's invoices. They follow takings, but only halfway in a decline, which is why a decline hurts."""
    supply = supplier.supply
    for day in window:
        if not is_business_day(day) or rng.random() >= supply.times / BUSINESS_DAYS_PER_MONTH:
            continue
        season = profile.trade.season[month_of(day) - 1]
        volume = 0.5 * (season + pace(profile, window, day)) if profile.distressed else pace(profile, window, day)
        cents = -max(500, round(supplier.cents * volume * rng.lognormvariate(-0.05, 0.3)))
        name = fill_in(rng, supplier.party.name)
        reference = fill_in(rng, supply.reference)
        yield Movement(day, cents, supply.rail, supplier.party._replace(name=name), reference, supply.category)


def wages(profile: Profile, window: Window, rng: Random) -> Iterator[Movement]:
    """Yield wages: one transfer a worker in a small team, one batch in a larger one."""
    batch = len(profile.staff) > SMALL_TEAM
    period = "weekly" if profile.pay_weeks == 1 else "fortnightly"
    wording = rng.choice(words().wages)
    for day in window.weekly(profile.pay_weekday, profile.pay_weeks):
        pays = [_pay(rng, worker, profile.pay_weeks) for worker in profile.staff]
        when = date.fromordinal(day)
        if batch:
            series = Series("wages", period)
            yield Movement(day, -sum(pays), "payroll", Party("WAGES"), f"Payroll {when:%d %b}", "wages", series=series)
            continue
        reference = wording.format(w=when.isocalendar().week, d=f"{when.day}/{when.month}")
        for worker, cents in zip(profile.staff, pays, strict=True):
            series = Series(f"wages {worker.party.name}", period)
            text = mistype(rng, reference)
            yield Movement(day, -cents, "pay_anyone", worker.party, text, "wages", series=series)


def _pay(rng: Random, worker: Worker, weeks: int) -> int:
    """Return a worker's pay in cents. Salaries repeat to the cent; casual hours don't."""
    usual = worker.weekly * weeks
    return round(usual * rng.uniform(0.8, 1.15)) if worker.casual else usual


def superannuation(profile: Profile, window: Window) -> Iterator[Movement]:
    """Yield the guarantee on gross pay, monthly or by the 28th after each quarter."""
    every, day_of_month = (1, 14) if profile.monthly_super else (3, 26)
    for day in window.monthly(day_of_month, every, phase=2):
        cents = round(profile.weekly_gross * guarantee_rate(day) * 52 / 12 * every)
        if cents:
            reference = f"PC{date.fromordinal(day):%d%m%y}-{profile.abn[-7:]}"
            series = Series("super", "monthly" if profile.monthly_super else "quarterly")
            yield Movement(day, -cents, "direct_debit", profile.super_fund, reference, "superannuation", series=series)


def guarantee_rate(day: int) -> float:
    """Return the superannuation guarantee as a share of gross pay: 11 % in 2023–24, 11.5 % in 2024–25, then 12 %.

    Earlier days, whose true rates were lower, get 11 %, too.
    """
    if day >= date(2025, 7, 1).toordinal():
        return 0.12
    return 0.115 if day >= date(2024, 7, 1).toordinal() else 0.11


def tax(profile: Profile, window: Window, rng: Random) -> Iterator[Movement]:
    """Yield payments of activity statements each quarter: GST, and withheld tax unless it is paid monthly.

    A business with a payment plan pays the plan's instalments instead (`borrowing`), and sometimes interest on it.
    """
    reference = f"00{profile.abn}060"
    weekly_withheld = profile.weekly_gross * WITHHELD
    monthly = weekly_withheld * 52 > 2_500_000  # as by law above $25,000 a year
    gst = profile.turnover * 3 * profile.trade.taxed
    if monthly:
        yield from _withholding_payments(window, rng, weekly_withheld, f"{reference} PAYGW")
    if profile.has_plan():
        yield from _tax_interest(window, rng, gst + weekly_withheld * 13, reference)
        return
    yield from _taxes_beside_statements(profile, window, rng, reference)
    series = Series("bas", "quarterly")
    for due in window.bas_due():
        quarter = gst * pace(profile, window, max(window.first, due - 60)) + (0 if monthly else weekly_withheld * 13)
        cents = round(quarter * rng.uniform(0.75, 1.2) / 100) * 100
        if profile.trade.taxed < 0.04 and rng.random() < 0.15:
            refund = merchants().tax_refunds.party(_TAX.brand)
            yield Movement(due, cents // 3, "direct_credit", refund, f"ATO00{profile.abn}", "tax_refund")
        elif cents:
            yield Movement(due, -cents, "bpay", _TAX, reference, "bas", series=series)


def _withholding_payments(window: Window, rng: Random, weekly: float, reference: str) -> Iterator[Movement]:
    series = Series("withheld", "monthly")
    for day in window.monthly(21):
        cents = round(weekly * 52 / 12 * rng.uniform(0.9, 1.1) / 100) * 100
        yield Movement(day, -cents, "bpay", _TAX, reference, "payg_withholding", series=series)


def _tax_reference(rng: Random, reference: str, notes: tuple[str, ...]) -> str:
    """Return the tax office's number with what the payer adds. One payer in five leaves the number out."""
    note = typed_out(rng, notes)
    return note if rng.random() < 0.2 else f"{reference} {note}"


def _tax_interest(window: Window, rng: Random, debt: float, reference: str) -> Iterator[Movement]:
    for day in window.monthly(16):
        if rng.random() < 0.2:
            cents = -round(debt * rng.uniform(0.004, 0.02))
            text = _tax_reference(rng, reference, words().tax_interest)
            yield Movement(day, cents, "bpay", _TAX, text, "tax_interest")


def _taxes_beside_statements(profile: Profile, window: Window, rng: Random, reference: str) -> Iterator[Movement]:
    """Yield income tax, in quarterly instalments, once a year or both, or fringe benefits tax. Some pay none."""
    how, usual = rng.random(), profile.turnover * 0.03
    series = Series("payg instalment", "quarterly")
    if how < 0.4:
        for due in window.bas_due():
            cents = -round(usual * rng.uniform(0.8, 1.2) / 100) * 100
            text = _tax_reference(rng, reference, words().payg_instalment)
            yield Movement(due, cents, "bpay", _TAX, text, "payg_instalment", series=series)
    if 0.3 < how < 0.75:
        for day in window.monthly(15, 12, phase=7):
            cents = -round(usual * 4 * rng.uniform(0.3, 1.4) / 100) * 100
            yield Movement(day, cents, "bpay", _TAX, _tax_reference(rng, reference, words().income_tax), "income_tax")
    if how > 0.9:
        for day in window.monthly(21, 12, phase=7):
            cents = -round(usual * rng.uniform(0.5, 2) / 100) * 100
            text = _tax_reference(rng, reference, words().fringe_benefits_tax)
            yield Movement(day, cents, "bpay", _TAX, text, "fringe_benefits_tax")


def bills(profile: Profile, window: Window, rng: Random, bill: RegularBill) -> Iterator[Movement]:
    """Yield the payments of a regular bill, every few weeks or months."""
    template = bill.template
    if bill.weeks:
        days = window.weekly(bill.day_of_month % 5, bill.weeks)
    else:
        days = window.monthly(bill.day_of_month, bill.every, bill.phase)
    for day in days:
        cents = round(template.cents * rng.uniform(1 - bill.wobble, 1 + bill.wobble))
        party = template.party._replace(name=fill_in(rng, template.party.name))
        yield _by_card(profile, template._replace(day=day, cents=cents, party=party), "card")


def purchases(
    profile: Profile, window: Window, rng: Random, spend: Spend, shops: tuple[Party, ...]
) -> Iterator[Movement]:
    """Yield card spending of one kind, at the branches this business goes to, mostly on working days."""
    a_day = rng.uniform(*spend.a_month) / DAYS_PER_MONTH * 1.2  # makes up for those that are skipped below
    role: Role = "card" if rng.random() < 0.6 else "main"
    day = window.first - 1
    while a_day > 0:
        day += 1 + int(rng.expovariate(a_day))
        if day > window.last:
            return
        if not is_business_day(day) and rng.random() > 0.45:
            continue
        shop = rng.choice(shops)
        party = shop._replace(name=fill_in(rng, shop.name)) if "{" in shop.name else shop
        cents = -round(spend.low * (spend.high / spend.low) ** rng.random() * 100)
        rail = "card_foreign" if shop.region in merchants().us_dollar_regions else "card"
        yield _by_card(profile, Movement(day, cents, rail, party, "", spend.category), role)


def _by_card(profile: Profile, movement: Movement, role: Role) -> Movement:
    """Move a purchase to the credit card, if `role` is the card's and the business has one."""
    rail = ON_CREDIT_CARD.get(movement.rail)
    if role != "card" or rail is None or "card" not in profile.roles:
        return movement
    return movement._replace(role="card", rail=rail)


def cash_withdrawals(profile: Profile, window: Window, rng: Random) -> Iterator[Movement]:
    """Yield round amounts of cash, mostly from machines."""
    for day in window:
        if rng.random() < profile.atm_a_month / DAYS_PER_MONTH:
            cents = -rng.choice((100, 200, 200, 300, 400, 500, 800)) * 100
            party = Party("", rng.choice(profile.suburbs))
            rail = "atm" if rng.random() < 0.85 else "branch_withdrawal"
            yield Movement(day, cents, rail, party, "", "cash_withdrawal")


def wagers(profile: Profile, window: Window, rng: Random) -> Iterator[Movement]:
    """Yield the owner's bets from the business account: small stakes in runs, and a win now and then."""
    if profile.wagering is None:
        return
    for day in window:
        if rng.random() < 0.14:
            for _ in range(rng.randrange(1, 4)):
                cents = -rng.choice((20, 50, 50, 100, 100, 200, 250, 500)) * 100
                yield Movement(day, cents, "card", profile.wagering, "", "gambling")
        elif rng.random() < 0.015:
            cents = round(rng.uniform(80, 1_400) * 100)
            yield Movement(day, cents, "osko_in", profile.wagering, "withdrawal", "gambling")
