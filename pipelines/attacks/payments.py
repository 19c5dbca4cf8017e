"""Attacks and lookalikes that add payments to an account: round trips, injections, circles, disguised loans.

Each is written from its paragraph in `attacks.yaml`. Its defaults are our judgement of what an applicant would dare.

Unless a function says otherwise, `share` is each sum as a share of a month's turnover, `count` how many sums there are,
and `within` in how many days before the application they move.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import date, timedelta
from decimal import ROUND_FLOOR, Decimal
from random import Random

import polars as pl

from pipelines.attacks.attack import Applicant, Change
from pipelines.attacks.choosing import (
    CUSTOMERS,
    PaymentWriter,
    draw_days,
    draw_invoice,
    draw_sum_near,
    first_day,
    next_business_day,
    previous_business_day,
)
from pipelines.attacks.ledger import Movement

HUNDRED = Decimal(100)
SUPPLIERS = (  # made-up firms
    "Coolibah Timber",
    "Yarran Steel Supply",
    "Boronia Wholesale",
    "Kestrel Packaging",
    "Redgum Hardware",
    "Saltbush Catering Supply",
)
SUBCONTRACTORS = ("Dale Hobbs Electrical", "Minh Tran", "JK Rendering", "Ridge Plumbing", "Sofia Marin")
OTHER_NAMES = (  # under which a disguised lender collects
    "Bluestone Services",
    "PBC Collections",
    "Orchard Admin",
    "Merribee Business Services",
)
INTERMEDIARIES = ("Hallam & Reid Trust Acct", "Quay Nominees", "Fernhill Trading", "Castlerock Partners")
FAMILY = ("Vance", "Morello", "Petrov", "Hughes", "Lam")
RELATIVES = ("Anna", "Peter", "Lena", "George", "Mary")


def round_trip_related(
    applicant: Applicant, rng: Random, *, count: int = 4, share: Decimal = Decimal("0.3"), within: int = 60
) -> pl.DataFrame:
    """Let one company of the same owner pay invoices. A day or two later, pay as much to another, or to the owner."""
    writer = PaymentWriter(applicant, rng)
    payer, *payees = _related_parties(applicant, rng)
    movements: list[Movement] = []
    for day in draw_days(rng, writer.last - timedelta(days=3), within, count):
        amount, back = writer.draw_sum(share), next_business_day(day + timedelta(days=rng.randrange(1, 3)))
        movements += [
            writer.transfer(day, amount, payer, draw_invoice(rng), "related_entity"),
            writer.transfer(back, -amount, rng.choice(payees), draw_invoice(rng), "related_entity"),
        ]
    return writer.insert(movements)


def _related_parties(applicant: Applicant, rng: Random) -> list[str]:
    """Return a payer and at least one payee: declared related parties first, then names of the owner's family."""
    family = applicant.owner.split()[-1] if applicant.owner else rng.choice(FAMILY)
    made_up = [f"{family} Holdings", f"{family} Family Trust", f"{family} Investments"]
    return [*[*applicant.related, *made_up][:2], applicant.owner or f"{rng.choice(RELATIVES)} {family}"]


def group_cash_pooling(applicant: Applicant, rng: Random, *, floor: Decimal = Decimal("0.4")) -> pl.DataFrame:
    """Sweep what exceeds a fixed balance to the holding company every Friday; it comes back when money is short.

    Args:
        floor: the balance that stays, as a share of a month's turnover.
    """
    writer = PaymentWriter(applicant, rng)
    fixed = writer.turnover * floor
    holding = applicant.related[0] if applicant.related else f"{rng.choice(FAMILY)} Group Holdings"
    movements: list[Movement] = []
    pooled = Decimal(0)
    closings = _closing_balances(writer)
    for day in (day for day in closings if day.weekday() == 4):
        ahead = min(closings.get(day + timedelta(days=later), closings[day]) for later in range(8)) - pooled
        if moved := max(-pooled, _to_hundreds(ahead - fixed)):
            movements.append(writer.transfer(day, -moved, holding, "loan account", "related_entity"))
            pooled += moved
    return writer.insert(movements)


def _closing_balances(writer: PaymentWriter) -> Mapping[date, Decimal]:
    """Return the account's balance at the end of each day, counted from 0 where none are printed."""
    rows = writer.applicant.ledger.filter(pl.col("account") == writer.account)
    balance = pl.coalesce("balance", pl.col("amount").cum_sum())
    closings = rows.select("date", balance=balance).group_by("date", maintain_order=True).last()
    daily = closings.set_sorted("date").upsample("date", every="1d").select("date", pl.col("balance").forward_fill())
    return dict(daily.iter_rows())


def _to_hundreds(amount: Decimal) -> Decimal:
    return (amount / HUNDRED).to_integral_value(ROUND_FLOOR) * HUNDRED


def round_trip_similar_name(
    applicant: Applicant, rng: Random, *, count: int = 3, share: Decimal = Decimal("0.35"), within: int = 60
) -> pl.DataFrame:
    """Get money under one name and pay as much back, a day to four later, under a name that differs a little."""
    writer = PaymentWriter(applicant, rng)
    payer, payee = rng.sample(_spellings(rng), 2)
    movements: list[Movement] = []
    for day in draw_days(rng, writer.last - timedelta(days=6), within, count):
        amount, back = writer.draw_sum(share), next_business_day(day + timedelta(days=rng.randrange(1, 5)))
        movements += [
            writer.transfer(day, amount, payer, draw_invoice(rng), "customer_transfer"),
            writer.transfer(back, -amount, payee, draw_invoice(rng), "suppliers"),
        ]
    return writer.insert(movements)


def _spellings(rng: Random) -> Sequence[str]:
    place, trade = rng.choice(("Harbour", "Parkmoor", "Wattletree", "Seabourne")), rng.choice(("Tiling", "Joinery"))
    shorter = place.replace("our", "or").replace("oor", "or").replace("tree", "")
    return f"{place} {trade}", f"{shorter} {trade} Services", f"{place[0]}. {trade}", f"{place} {trade} Co"


def supplier_with_similar_name(applicant: Applicant, rng: Random, *, share: Decimal = Decimal("0.08")) -> pl.DataFrame:
    """Have a customer and an unrelated supplier with similar names, each on its own days; some amounts are alike."""
    writer = PaymentWriter(applicant, rng)
    place = rng.choice(("Coastal", "Summit", "Riverside"))
    movements: list[Movement] = []
    usual = writer.draw_sum(share, HUNDRED)
    for month in range(_count_months(writer)):
        received = writer.last - timedelta(days=30 * month + rng.randrange(8, 20))
        paid = writer.last - timedelta(days=30 * month + rng.randrange(0, 8))
        amounts = [usual if rng.random() < 0.3 else writer.draw_sum(share) for _ in range(2)]
        movements += [
            writer.transfer(
                previous_business_day(received), amounts[0], f"{place} Timber", draw_invoice(rng), "customer_transfer"
            ),
            writer.transfer(
                previous_business_day(paid), -amounts[1], f"{place} Tiling", draw_invoice(rng), "suppliers"
            ),
        ]
    return writer.insert(movements)


def _count_months(writer: PaymentWriter) -> int:
    return (writer.last - first_day(writer.applicant.ledger)).days // 30


def round_trip_split(
    applicant: Applicant, rng: Random, *, count: int = 2, share: Decimal = Decimal("0.7"), within: int = 75
) -> pl.DataFrame:
    """Send a receipt back in two to four uneven parts, or several receipts back in one sum, over one or two weeks."""
    writer = PaymentWriter(applicant, rng)
    movements: list[Movement] = []
    for day in draw_days(rng, writer.last - timedelta(days=16), within, count):
        movements += _split_trip(writer, day, writer.draw_sum(share), comes_at_once=rng.random() < 0.6)
    return writer.insert(movements)


def _split_trip(writer: PaymentWriter, day: date, amount: Decimal, comes_at_once: bool) -> Iterator[Movement]:
    parts = _uneven_parts(writer.rng, amount, writer.rng.randrange(2, 5))
    days = sorted(next_business_day(day + timedelta(days=writer.rng.randrange(1, 14))) for _ in parts)
    payer, payees = writer.draw_customer(), writer.rng.sample(SUPPLIERS, writer.rng.randrange(1, 3))
    if comes_at_once:
        yield writer.transfer(day, amount, payer, draw_invoice(writer.rng), "customer_transfer")
        for on, part in zip(days, parts, strict=True):
            yield writer.transfer(on, -part, writer.rng.choice(payees), draw_invoice(writer.rng), "suppliers")
    else:
        for on, part in zip([day, *days[:-1]], parts, strict=True):
            yield writer.transfer(on, part, payer, draw_invoice(writer.rng), "customer_transfer")
        yield writer.transfer(days[-1], -amount, payees[0], draw_invoice(writer.rng), "suppliers")


def _uneven_parts(rng: Random, amount: Decimal, count: int) -> list[Decimal]:
    """Divide an amount into parts whose sum is the amount to the cent."""
    weights = [rng.randrange(60, 200) for _ in range(count)]
    parts = [(amount * weight / sum(weights)).quantize(Decimal("0.01")) for weight in weights[:-1]]
    return [*parts, amount - sum(parts)]


def job_paid_to_subcontractors(
    applicant: Applicant, rng: Random, *, count: int = 2, share: Decimal = Decimal("0.7"), within: int = 120
) -> pl.DataFrame:
    """Pay two to four subcontractors 70 to 90 % of a large invoice in the two weeks after it is paid."""
    writer = PaymentWriter(applicant, rng)
    movements: list[Movement] = []
    for day in draw_days(rng, writer.last - timedelta(days=16), within, count):
        amount, subcontractors = writer.draw_sum(share), rng.sample(SUBCONTRACTORS, rng.randrange(2, 5))
        cost = amount * rng.randrange(70, 91) / 100
        movements.append(writer.transfer(day, amount, writer.draw_customer(), draw_invoice(rng), "customer_transfer"))
        for name, part in zip(subcontractors, _uneven_parts(rng, cost, len(subcontractors)), strict=True):
            on = next_business_day(day + timedelta(days=rng.randrange(1, 14)))
            movements.append(writer.transfer(on, -part, name, draw_invoice(rng), "subcontractors"))
    return writer.insert(movements)


def last_minute_injection(
    applicant: Applicant, rng: Random, *, share: Decimal = Decimal("0.4"), within: int = 10
) -> pl.DataFrame:
    """Pay in two or three round sums in the last days: cash, or a transfer from the owner or a relative.

    Args:
        share: each sum, as a share of a month's turnover.
    """
    writer = PaymentWriter(applicant, rng)
    family = applicant.owner.split()[-1] if applicant.owner else rng.choice(FAMILY)
    giver = applicant.owner if applicant.owner and rng.random() < 0.5 else f"{rng.choice(RELATIVES)} {family}"
    is_cash = rng.random() < 0.4
    movements: list[Movement] = []
    for day in draw_days(rng, writer.last, within, rng.randrange(2, 4)):
        amount = writer.draw_sum(share, Decimal(500))
        of_giver = writer.transfer(day, amount, giver, "", "owner_contribution")
        movements.append(writer.cash_deposit(day, amount, "owner_contribution") if is_cash else of_giver)
    return writer.insert(movements)


def lasting_equity(applicant: Applicant, rng: Random, *, share: Decimal = Decimal("0.8")) -> pl.DataFrame:
    """Put money into the business for good and say so, months ago or now; stock or equipment is paid out of it."""
    writer = PaymentWriter(applicant, rng)
    owner = applicant.owner or f"{rng.choice(RELATIVES)} {rng.choice(FAMILY)}"
    day = previous_business_day(
        writer.last - timedelta(days=rng.choice((rng.randrange(3, 12), rng.randrange(60, 240))))
    )
    amount = writer.draw_sum(share, Decimal(1000))
    spent_on = next_business_day(day + timedelta(days=rng.randrange(1, 12)))
    bought, category = rng.choice((("Equipment", "equipment"), ("Stock order", "suppliers")))
    spent = -amount * rng.randrange(60, 96) / 100
    return writer.insert(
        [
            writer.transfer(day, amount, owner, "capital contribution", "owner_contribution"),
            writer.transfer(spent_on, spent, rng.choice(SUPPLIERS), bought, category),
        ]
    )


def seasonal_cash_takings(
    applicant: Applicant, rng: Random, *, weeks: int = 10, share: Decimal = Decimal("0.12")
) -> pl.DataFrame:
    """Pay in each week's cash takings in a season that ends with the application, and in the same weeks a year ago."""
    writer = PaymentWriter(applicant, rng)
    last = writer.last - timedelta(days=(writer.last.weekday() - rng.randrange(3)) % 7)
    ends = (last, last - timedelta(weeks=52))
    days = [end - timedelta(weeks=week) for end in ends for week in range(weeks)]
    return writer.insert([writer.cash_deposit(day, writer.draw_sum(share, Decimal(5))) for day in days])


def late_large_receipt(applicant: Applicant, rng: Random, *, share: Decimal = Decimal("0.9")) -> pl.DataFrame:
    """Receive a grant, a claim or the price of an asset within the last 30 days, with a text that says so."""
    writer = PaymentWriter(applicant, rng)
    party, reference, category = rng.choice(
        (
            ("Business Victoria", "small business grant", "grant"),
            ("Allianz Claims", "claim settlement", "insurance_payout"),
            ("Pickles Auctions", "sale of vehicle", "asset_sale"),
        )
    )
    day = previous_business_day(writer.last - timedelta(days=rng.randrange(2, 28)))
    return writer.insert([writer.transfer(day, writer.draw_sum(share), party, reference, category)])


def invoice_circle(
    applicant: Applicant, rng: Random, *, turns: int = 5, share: Decimal = Decimal("0.35"), within: int = 90
) -> pl.DataFrame:
    """Pay a supplier; a few days later another firm pays an invoice of the same sum, or of a little less; repeat."""
    writer = PaymentWriter(applicant, rng)
    supplier, customer = rng.choice(SUPPLIERS), rng.choice(CUSTOMERS)
    amount, fee = writer.draw_sum(share, HUNDRED), Decimal(rng.choice((0, 0, 1, 2))) / 100
    step = max(7, within // turns)
    movements: list[Movement] = []
    for turn in range(turns):
        day = previous_business_day(writer.last - timedelta(days=within - turn * step + rng.randrange(3)))
        back = next_business_day(day + timedelta(days=rng.randrange(2, 6)))
        movements.append(writer.transfer(day, -amount, supplier, draw_invoice(rng), "suppliers"))
        amount *= 1 - fee
        movements.append(writer.transfer(back, amount, customer, draw_invoice(rng), "customer_transfer"))
    return writer.insert(movements)


def steady_margin_trade(applicant: Applicant, rng: Random, *, share: Decimal = Decimal("0.2")) -> pl.DataFrame:
    """Buy from one supplier and sell to one customer every two weeks of the whole history, with a steady margin."""
    writer = PaymentWriter(applicant, rng)
    supplier, customer, margin = rng.choice(SUPPLIERS), rng.choice(CUSTOMERS), Decimal(rng.randrange(112, 126)) / 100
    movements: list[Movement] = []
    for fortnight in range((writer.last - first_day(applicant.ledger)).days // 14):
        day = previous_business_day(writer.last - timedelta(days=14 * fortnight + 6))
        cost, sold = writer.draw_sum(share), next_business_day(day + timedelta(days=rng.randrange(2, 6)))
        movements += [
            writer.transfer(day, -cost, supplier, draw_invoice(rng), "suppliers"),
            writer.transfer(sold, cost * margin, customer, draw_invoice(rng), "customer_transfer"),
        ]
    return writer.insert(movements)


def loan_as_revenue(
    applicant: Applicant, rng: Random, *, share: Decimal = Decimal("0.9"), cost: Decimal = Decimal("1.3")
) -> pl.DataFrame:
    """Receive a loan as if it were an invoice, and repay it weekly or on each business day under other names.

    Args:
        share: what is lent, as a share of a month's turnover.
        cost: what is to be repaid within half a year, for each dollar lent.
    """
    writer = PaymentWriter(applicant, rng)
    day, amount = (
        previous_business_day(writer.last - timedelta(days=rng.randrange(15, 76))),
        writer.draw_sum(share, HUNDRED),
    )
    lent = writer.transfer(day, amount, rng.choice(INTERMEDIARIES), draw_invoice(rng), "term_loan_funding")
    every, instalments = rng.choice(((7, 26), (1, 130)))
    instalment, collectors = amount * cost / instalments, rng.sample(OTHER_NAMES, 2)
    return writer.insert([lent, *_repayments(writer, day, every, instalment, collectors)])


def _repayments(
    writer: PaymentWriter, lent_on: date, every: int, instalment: Decimal, collectors: Sequence[str]
) -> Iterator[Movement]:
    for nth in range(1, (writer.last - lent_on).days // every + 1):
        day = lent_on + timedelta(days=nth * every)
        if day.weekday() < 5:
            reference = str(writer.rng.randrange(100_000, 999_999))
            yield writer.direct_debit(day, -instalment, writer.rng.choice(collectors), reference, "term_loan_repayment")


def new_large_customer(applicant: Applicant, rng: Random, *, share: Decimal = Decimal("0.6")) -> pl.DataFrame:
    """Win a customer that pays a large invoice each month, and pay a new supplier weekly to serve it."""
    writer = PaymentWriter(applicant, rng)
    customer, supplier = rng.choice(CUSTOMERS), rng.choice(SUPPLIERS)
    start = previous_business_day(writer.last - timedelta(days=rng.randrange(40, 90)))
    weekly = writer.turnover * share / 8
    receipts = [next_business_day(start + timedelta(days=30 * month)) for month in range(4)]
    deliveries = [start + timedelta(weeks=week) for week in range(1, (writer.last - start).days // 7 + 1)]
    return writer.insert(
        [
            *(
                writer.transfer(day, writer.draw_sum(share), customer, draw_invoice(rng), "customer_transfer")
                for day in receipts
            ),
            *(
                writer.direct_debit(day, -draw_sum_near(rng, weekly), supplier, draw_invoice(rng), "suppliers")
                for day in deliveries
            ),
        ]
    )


CHANGES: Mapping[str, Change] = {
    each.__name__: each
    for each in (
        round_trip_related,
        group_cash_pooling,
        round_trip_similar_name,
        supplier_with_similar_name,
        round_trip_split,
        job_paid_to_subcontractors,
        last_minute_injection,
        lasting_equity,
        seasonal_cash_takings,
        late_large_receipt,
        invoice_circle,
        steady_margin_trade,
        loan_as_revenue,
        new_large_customer,
    )
}
