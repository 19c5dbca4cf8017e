"""Money that trade costs: suppliers, wages, super, tax, bills, small purchases, borrowing and bad habits."""

from collections.abc import Iterator
from datetime import date
from random import Random

from pipelines.sandbox.blanks import filled
from pipelines.sandbox.days import Window, is_business_day, month_of, next_business_day
from pipelines.sandbox.merchants import FOREIGN, TAX_OFFICE, TAX_REFUNDS, Spend
from pipelines.sandbox.model import Movement, Party, Role
from pipelines.sandbox.profile import Facility, Profile, Standing, Supplier, Worker
from pipelines.sandbox.takings import DAYS_A_MONTH, pace

ON_CREDIT_CARD = {"card": "purchase", "card_foreign": "purchase_foreign"}


def spending(profile: Profile, window: Window, rng: Random) -> Iterator[Movement]:
    for supplier in profile.suppliers:
        yield from supplies(profile, window, rng, supplier)
    yield from wages(profile, window, rng)
    yield from superannuation(profile, window)
    yield from tax(profile, window, rng)
    for standing in profile.bills:
        yield from bills(profile, window, rng, standing)
    for spend, shops in profile.spends:
        yield from purchases(profile, window, rng, spend, shops)
    yield from cash_withdrawn(profile, window, rng)
    yield from wagers(profile, window, rng)
    for facility in profile.facilities:
        yield from borrowing(window, facility)


def supplies(profile: Profile, window: Window, rng: Random, supplier: Supplier) -> Iterator[Movement]:
    """A supplier's invoices: they follow the season, and growth, but not a decline (see `Profile.distressed`)."""
    supply = supplier.supply
    for day in window:
        if not is_business_day(day) or rng.random() >= supply.times / 21:
            continue
        volume = profile.trade.season[month_of(day) - 1] if profile.distressed else pace(profile, window, day)
        cents = -max(500, round(supplier.cents * volume * rng.lognormvariate(-0.05, 0.3)))
        name = filled(rng, supplier.party.name)
        reference = filled(rng, supply.reference)
        yield Movement(day, cents, supply.rail, supplier.party._replace(name=name), reference, supply.category)


def wages(profile: Profile, window: Window, rng: Random) -> Iterator[Movement]:
    """One transfer a worker in a small team; one batch when there are more than five."""
    batch = len(profile.staff) > 5
    for day in window.weekly(profile.pay_weekday, profile.pay_weeks):
        pays = [_pay(rng, worker, profile.pay_weeks) for worker in profile.staff]
        if batch:
            reference = f"Payroll {date.fromordinal(day):%d %b}"
            yield Movement(day, -sum(pays), "payroll", Party("WAGES"), reference, "wages")
            continue
        for worker, cents in zip(profile.staff, pays, strict=True):
            yield Movement(day, -cents, "pay_anyone", Party(worker.name), "Wages", "wages")


def _pay(rng: Random, worker: Worker, weeks: int) -> int:
    """Salaries repeat to the cent; casual hours don't."""
    usual = worker.weekly * weeks
    return round(usual * rng.uniform(0.8, 1.15)) if worker.casual else usual


def superannuation(profile: Profile, window: Window) -> Iterator[Movement]:
    """The guarantee on gross pay (net over 0.81), monthly or by the 28th after each quarter."""
    every, day_of_month = (1, 14) if profile.monthly_super else (3, 26)
    weekly_gross = sum(worker.weekly for worker in profile.staff) / 0.81
    for day in window.monthly(day_of_month, every, phase=2):
        cents = round(weekly_gross * guarantee_rate(day) * 52 / 12 * every)
        if cents:
            reference = f"PC{date.fromordinal(day):%d%m%y}-{profile.abn[-7:]}"
            yield Movement(day, -cents, "direct_debit", profile.super_fund, reference, "superannuation")


def guarantee_rate(day: int) -> float:
    """The superannuation guarantee: 11 % in 2023–24, 11.5 % in 2024–25, 12 % from July 2025."""
    if day >= date(2025, 7, 1).toordinal():
        return 0.12
    return 0.115 if day >= date(2024, 7, 1).toordinal() else 0.11


def tax(profile: Profile, window: Window, rng: Random) -> Iterator[Movement]:
    """Quarterly activity statements (GST and withheld tax); in distress mostly a monthly payment plan instead."""
    reference = f"00{profile.abn}060"
    withheld = sum(worker.weekly for worker in profile.staff) / 0.81 * 0.19
    quarter = profile.turnover * 3 * profile.trade.taxed + withheld * 13
    if profile.distressed and rng.random() < 0.6:
        for day in window.monthly(rng.randrange(5, 25)):
            yield Movement(day, -round(quarter / 6), "bpay", TAX_OFFICE, reference, "tax_payment_plan")
        return
    for due in window.bas_due():
        cents = round(quarter * rng.uniform(0.75, 1.2) / 100) * 100
        if profile.trade.taxed < 0.04 and rng.random() < 0.15:
            yield Movement(due, cents // 3, "direct_credit", TAX_REFUNDS, f"ATO00{profile.abn}", "tax_refund")
        elif cents:
            yield Movement(due, -cents, "bpay", TAX_OFFICE, reference, "bas")


def bills(profile: Profile, window: Window, rng: Random, standing: Standing) -> Iterator[Movement]:
    template = standing.template
    for day in window.monthly(standing.day_of_month, standing.every, standing.phase):
        cents = round(template.cents * rng.uniform(1 - standing.wobble, 1 + standing.wobble))
        party = template.party._replace(name=filled(rng, template.party.name))
        yield _by_card(profile, template._replace(day=day, cents=cents, party=party), "card")


def purchases(
    profile: Profile, window: Window, rng: Random, spend: Spend, shops: tuple[Party, ...]
) -> Iterator[Movement]:
    """Card spending of one kind, at the branches this business goes to; mostly on working days."""
    a_day = rng.uniform(*spend.a_month) / DAYS_A_MONTH
    role: Role = "card" if rng.random() < 0.6 else "main"
    for day in window:
        if rng.random() < a_day * (1.2 if is_business_day(day) else 0.55):
            shop = rng.choice(shops)
            party = shop._replace(name=filled(rng, shop.name))
            cents = -round(spend.low * (spend.high / spend.low) ** rng.random() * 100)
            rail = "card_foreign" if shop.region in FOREIGN else "card"
            yield _by_card(profile, Movement(day, cents, rail, party, "", spend.category), role)


def _by_card(profile: Profile, movement: Movement, role: Role) -> Movement:
    """The same purchase on the credit card, when that is where it goes and the business has one."""
    rail = ON_CREDIT_CARD.get(movement.rail)
    if role != "card" or rail is None or "card" not in profile.roles:
        return movement
    return movement._replace(role="card", rail=rail)


def cash_withdrawn(profile: Profile, window: Window, rng: Random) -> Iterator[Movement]:
    for day in window:
        if rng.random() < profile.atm_a_month / DAYS_A_MONTH:
            cents = -rng.choice((100, 200, 200, 300, 400, 500, 800)) * 100
            party = Party("", rng.choice(profile.suburbs))
            yield Movement(day, cents, "atm", party, "", "cash_withdrawal")


def wagers(profile: Profile, window: Window, rng: Random) -> Iterator[Movement]:
    """Where the owner bets from the business account: small stakes in runs, and a win now and then."""
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


def borrowing(window: Window, facility: Facility) -> Iterator[Movement]:
    """The money drawn, then equal instalments of lent × factor until they have all been asked for."""
    lender, party = facility.lender, Party(facility.lender.name, code=facility.lender.code)
    drawn = next_business_day(window.first + round(facility.drawn_at * (window.last - window.first)))
    if drawn in window:
        yield Movement(drawn, facility.cents, "direct_credit", party, facility.reference, lender.funding)
    instalment = -round(facility.cents * lender.factor / lender.payments)
    for day in instalment_days(drawn, lender.cadence, lender.payments):
        if day in window:
            yield Movement(day, instalment, lender.rail, party, facility.reference, lender.repayment)


def instalment_days(drawn: int, cadence: str, payments: int) -> Iterator[int]:
    """Every business day after the drawdown, or the same weekday of every week."""
    day = drawn
    for _ in range(payments):
        day = next_business_day(day + 1) if cadence == "daily" else day + 7
        yield next_business_day(day)
