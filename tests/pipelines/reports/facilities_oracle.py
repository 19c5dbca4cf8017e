"""The table of facilities computed again in plain Python: one facility after the other, day by day.

Which rows make up a facility is given (`facility_id`); all its figures are counted here. Rates and the share of
takings kept back are not decimals by nature: they are floats here, and figures that depend on them are compared with a
tolerance.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from decimal import ROUND_HALF_EVEN, Decimal
from functools import cache
from itertools import pairwise
from math import ceil, exp, floor, log, sqrt
from statistics import fmean, median, stdev, variance
from uuid import UUID

import holidays

from pipelines.enrichment.facilities.products import PRODUCTS
from pipelines.enrichment.facilities.terms import ASSUMED, TERMS_MONTHS
from tests.pipelines.reports.examples import Row, posted_rows

DAY, ZERO = timedelta(days=1), Decimal(0)
PERIOD = {
    "business_daily": 7 / 5,
    "weekly": 7.0,
    "fortnightly": 14.0,
    "four_weekly": 28.0,
    "twice_monthly": 365.25 / 24,
    "monthly": 365.25 / 12,
    "quarterly": 365.25 / 4,
    "yearly": 365.25,
}
MONTHS = {"monthly": 1, "quarterly": 3, "yearly": 12}


def facilities(rows: Iterable[Row], as_of: date) -> list[Row]:
    """Return the table's row of each facility, by its id, from rows of one customer."""
    posted = [r for r in posted_rows(rows) if r["date"] <= as_of]
    posted.sort(key=lambda r: (r["date"], r["transaction_id"]))
    found = _facilities(posted)
    for each in found:
        each.withheld = sum_withheld(each, found, posted)
    for each in found:
        each.remaining, each.method = remaining(each)
    for each in found:
        each.renewed = is_renewed(each, found)
    for each in found:
        each.status = status_of(each)
    return sorted(map(show_facility, found), key=lambda row: str(row["facilityId"]))


@dataclass
class Facility:
    """`drawn` and `tried`: fundings and attempts at repayment in order of time; `came_back`: ids of those that were
    returned. `through`: the last day that the statements of its accounts show."""

    id: bytes
    product: str
    drawn: list[Row]
    tried: list[Row]
    came_back: set[bytes]
    through: date
    withheld: Decimal = ZERO
    remaining: Decimal | None = None
    method: str = "unknown"
    renewed: bool = False
    status: str = "active"
    slots: list[date] = field(init=False)
    frequency: str | None = field(init=False)

    def __post_init__(self) -> None:
        self.slots = slots(self)
        self.frequency = frequency(self.slots)

    @property
    def rows(self) -> list[Row]:
        return sorted([*self.drawn, *self.tried], key=lambda r: (r["date"], r["transaction_id"]))

    @property
    def paid(self) -> list[Row]:
        return [r for r in self.tried if r["transaction_id"] not in self.came_back]

    @property
    def lent(self) -> Decimal | None:
        return sum((r["amount"] for r in self.drawn), ZERO) if self.drawn else None

    @property
    def repaid(self) -> Decimal:
        return -sum((r["amount"] for r in self.paid), ZERO)

    @property
    def usual(self) -> float | None:
        return median(float(-r["amount"]) for r in self.paid) if self.paid else None

    @property
    def is_revolving(self) -> bool:
        return PRODUCTS[self.product].revolving

    @property
    def bounced_days(self) -> set[date]:
        """Days on which an attempt was returned."""
        return {r["date"] for r in self.tried} - {r["date"] for r in self.paid}

    @property
    def funded_on(self) -> date | None:
        return self.drawn[0]["date"] if self.drawn else None

    @property
    def last_paid(self) -> date | None:
        return self.paid[-1]["date"] if self.paid else None


def product_of(r: Row) -> str | None:
    for slug, product in PRODUCTS.items():
        if r["category"] in (product.fundings if r["amount"] > 0 else product.repayments) and r["amount"]:
            return slug
    return None


def _facilities(posted: Sequence[Row]) -> list[Facility]:
    members: dict[bytes, list[Row]] = defaultdict(list)
    for r in posted:
        if r["facility_id"] is not None:
            members[r["facility_id"]].append(r)
    came_back = returned_ids([r for its in members.values() for r in its])
    result = []
    for facility, its in members.items():
        flows = [r for r in its if product_of(r) and not (r["amount"] > 0 and r["transaction_id"] in came_back)]
        if flows:
            accounts = {r["account_id"] for r in flows}
            through = max(r["date"] for r in posted if r["account_id"] in accounts)
            drawn, tried = ([r for r in flows if (r["amount"] > 0) == funds] for funds in (True, False))
            result.append(Facility(facility, str(product_of(flows[0])), drawn, tried, came_back, through))
    return result


def returned_ids(rows: Sequence[Row]) -> set[bytes]:
    """Return ids of returned payments. Each return is matched to the latest unmatched payment of its amount in its
    account, at most five business days before: first of the same name, else of any that no name contradicts."""
    rows = sorted(rows, key=lambda r: (r["date"], is_return(r), r["transaction_id"]))
    met: dict[bytes, bytes] = {}
    for named in (True, False):
        for place, r in enumerate(rows):
            if is_return(r) and r["transaction_id"] not in met.values() and (r["counterparty_name"] or not named):
                before = [p for p in rows[:place] if is_opposite(p, r) and p["transaction_id"] not in met]
                alike = [p for p in before if not named or p["counterparty_name"] == r["counterparty_name"]]
                if alike and weekdays(alike[-1]["date"], r["date"]) <= 5 and fits(alike[-1], r):
                    met[alike[-1]["transaction_id"]] = r["transaction_id"]
    return set(met)


def is_return(r: Row) -> bool:
    return bool(r["category"] == ("returned_payment" if r["amount"] > 0 else "dishonoured_receipt"))


def is_opposite(paid: Row, back: Row) -> bool:
    same = paid["account_id"] == back["account_id"] and paid["amount"] == -back["amount"]
    return bool(same and not is_return(paid))


def fits(paid: Row, back: Row) -> bool:
    one, other = paid["counterparty_name"], back["counterparty_name"]
    return one is None or other is None or one.startswith(other) or other.startswith(one)


# Days.


@cache
def closed_days() -> frozenset[date]:
    """Return holidays that New South Wales and Victoria share: direct entry is closed on them."""
    shared = [set(holidays.country_holidays("AU", subdiv=state, years=range(2024, 2029))) for state in ("NSW", "VIC")]
    return frozenset(shared[0] & shared[1])


def is_open(day: date) -> bool:
    return day.weekday() < 5 and day not in closed_days()


def weekdays(first: date, until: date) -> int:
    return sum((first + DAY * n).weekday() < 5 for n in range((until - first).days))


def open_days(after: date, until: date) -> int:
    """Count the open days after the one day up to the other, which is included."""
    return sum(is_open(after + DAY * n) for n in range(1, (until - after).days + 1))


def slots(facility: Facility) -> list[date]:
    """Return days on which a repayment was due. A second try comes soon after one that bounced, unless repayments are
    due that often anyway."""
    days = sorted({r["date"] for r in facility.tried})
    gaps = [(later - day).days for day, later in pairwise(days)]
    seldom = bool(gaps) and median(gaps) > 5
    retries = {
        later for day, later in pairwise(days) if seldom and (later - day).days <= 5 and day in facility.bounced_days
    }
    return [day for day in days if day not in retries]


def frequency(days: Sequence[date]) -> str | None:
    if len(days) < 3:
        return None
    gaps = [(later - day).days for day, later in pairwise(days)]
    open_gaps = [sum(is_open(day + DAY * n) for n in range((later - day).days)) for day, later in pairwise(days)]
    middle = median(gaps)
    holds = {
        "business_daily": median(open_gaps) <= 1,
        "weekly": 6 <= middle <= 8,
        "fortnightly": 13 <= middle <= 15 and nearly(gaps, 14),
        "twice_monthly": 13 <= middle <= 17,
        "four_weekly": 27 <= middle <= 29 and nearly(gaps, 28) and len(days) > 3,
        "monthly": 27 <= middle <= 34,
        "quarterly": 85 <= middle <= 97,
        "yearly": 355 <= middle <= 376,
    }
    return next((name for name, it_holds in holds.items() if it_holds), None)


def nearly(gaps: Sequence[int], length: int) -> bool:
    return sum(abs(gap - length) <= 1 for gap in gaps) / len(gaps) >= 0.7


def expected_day(day: date, nth: int, every: str) -> date:
    if every == "business_daily":
        while not is_open(day):
            day -= DAY
        for _ in range(nth):
            day += DAY
            while not is_open(day):
                day += DAY
        return day
    if every in MONTHS:
        day = months_later(day, MONTHS[every] * nth)
    else:
        day += DAY * round(PERIOD[every] * nth)
    while not is_open(day):
        day += DAY
    return day


def months_later(day: date, months: int) -> date:
    year, month = divmod(day.year * 12 + day.month - 1 + months, 12)
    last = (date(year + (month + 1) // 12, (month + 1) % 12 + 1, 1) - DAY).day
    return date(year, month + 1, min(day.day, last))


def find_passed_over(facility: Facility) -> list[date]:
    """Return repayments that bounced, and those missing between one slot and the next."""
    bounced = [day for day in facility.slots if day in facility.bounced_days]
    every = facility.frequency
    if every is None or facility.is_revolving:
        return bounced
    missing: list[date] = []
    for day, later in pairwise(facility.slots):
        working = open_days(day, later)
        periods = min((later - day).days / PERIOD[every], working / (PERIOD[every] * 5 / 7))
        count = working - 1 if every == "business_daily" else round(periods) - 1
        missing += dates_missing(day, count, every)
    return bounced + missing


def overdue(facility: Facility) -> list[date]:
    """Return repayments missing since the last slot: each may be five days late, or two business days if daily."""
    every = facility.frequency
    if every is None or facility.is_revolving:
        return []
    last = facility.slots[-1]
    late = floor(((facility.through - last).days - 5) / PERIOD[every])
    count = open_days(last, facility.through) - 2 if every == "business_daily" else late
    return dates_missing(last, count, every)


def dates_missing(day: date, count: int, every: str) -> list[date]:
    """Return at most six missing dates, within a hundred days: afterwards a facility has ended."""
    most = max(6, floor(100 / PERIOD[every]))
    return [expected_day(day, nth, every) for nth in range(1, min(count, most) + 1)]


# What remains.


def remaining(facility: Facility) -> tuple[Decimal | None, str]:
    """Return the estimate before the status is known, and its method."""
    lent, repaid, product = facility.lent, facility.repaid + facility.withheld, facility.product
    assumed = ASSUMED.get(product)
    repaid_first = bool(facility.paid and facility.drawn) and facility.paid[0]["date"] < facility.drawn[0]["date"]
    if lent is None or (facility.is_revolving and repaid_first):
        return None, "unknown"
    if facility.is_revolving:
        return max(ZERO, lent - repaid), "drawn_less_repaid"
    if assumed and assumed.factor:
        return max(ZERO, cents(lent * Decimal(assumed.factor)) - repaid), "assumed_factor"
    if assumed and assumed.yearly_rate:
        return max(ZERO, grown(facility, yearly_rate(facility, lent, assumed.yearly_rate))), "amortised"
    return None, "unknown"


def cents(value: Decimal) -> Decimal:
    return value.quantize(Decimal("0.01"), ROUND_HALF_EVEN)


def grown(facility: Facility, rate: float) -> Decimal:
    """Return what was lent minus what was repaid, each with interest to the last day."""
    balance = ZERO
    for r in [*facility.drawn, *facility.paid]:
        growth = (1 + rate) ** ((facility.through - r["date"]).days / 365)
        balance += cents(r["amount"] * Decimal(growth).quantize(Decimal("0.000001")))
    return balance


def yearly_rate(facility: Facility, lent: Decimal, assumed: float) -> float:
    """Return the rate that level repayments imply over the shortest round term with a plausible rate."""
    sizes = [float(-r["amount"]) for r in facility.paid]
    if facility.frequency is None or len(sizes) < 2 or stdev(sizes) > 0.1 * fmean(sizes):
        return assumed
    a_year, payment = 365.25 / PERIOD[facility.frequency], median(sizes) / float(lent)
    for months in TERMS_MONTHS:
        years = months / 12
        count = round(a_year * years)
        # The cost a year of the loan, on half of it on average.
        if count >= 2 and 0.05 <= 2 * (payment * count - 1) / years * count / (count + 1) <= 0.9:
            return float((1 + interest(payment, count)) ** a_year - 1)
    return assumed


def interest(payment: float, count: int) -> float:
    """Return, by bisection, the rate at which this many payments, each this share of the loan, repay it."""
    low, high = 1e-9, payment
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if payment * (1 - (1 + middle) ** -count) > middle else (low, middle)
    return low


def sum_withheld(facility: Facility, others: Sequence[Facility], posted: Sequence[Row]) -> Decimal:
    """Return what seems to have been kept back of card takings since the customer's latest cash advance without
    repayments; zero where nothing shows it."""
    unserved = [each for each in others if each.product == "cash_advance" and not each.tried]
    latest = max(unserved, key=lambda each: (each.drawn[0]["date"], each.id), default=None)
    if facility is not latest:
        return ZERO
    lender, start = most_often(r["counterparty_name"] for r in facility.drawn), facility.drawn[0]["date"]
    takings = [r for r in posted if r["category_group"] == "revenue" and r["amount"] > 0 and not r["is_transfer"]]
    brand = [r for r in takings if lender and r["counterparty_name"] and lender.startswith(r["counterparty_name"])]
    card = brand or [r for r in takings if r["category"] == "card_settlement"]
    weekly: dict[int, list[Decimal]] = defaultdict(lambda: [ZERO, ZERO])
    for r in takings:
        weekly[(r["date"] - start).days // 7][0 if r in card else 1] += r["amount"]
    ratios = {week: log(float(sums[0]) / float(sums[1])) for week, sums in weekly.items() if all(sums)}
    before, after = ([ratios[week] for week in ratios if week in weeks] for weeks in (range(-13, 0), range(13)))
    if min(len(before), len(after)) < 4:
        return ZERO
    decrease = fmean(before) - fmean(after)
    error = sqrt(variance(before) / len(before) + variance(after) / len(after))
    share = 1 - exp(-decrease)
    if not 0.03 <= share <= 0.6 or decrease < 2 * error:
        return ZERO
    since = sum((sums[0] for week, sums in weekly.items() if week >= 0), ZERO)
    return cents(since * Decimal(share / (1 - share)))


def most_often(values: Iterable[str | None]) -> str | None:
    """Return the most frequent value; of several, the alphabetically first."""
    counts = Counter(value for value in values if value is not None)
    return min(counts, key=lambda value: (-counts[value], value), default=None)


# What has become of it.


def is_renewed(facility: Facility, others: Sequence[Facility]) -> bool:
    """Tell whether the lender lent again within 10 days before and 45 after the last repayment of a debt still owed."""
    owed, last, usual = facility.remaining, facility.last_paid, facility.usual
    if facility.is_revolving or last is None or (facility.frequency is not None and not overdue(facility)):
        return False
    if owed is not None and float(owed) <= max(usual or 0, 0.1 * float(facility.lent or 0)):
        return False
    return any(
        other.funded_on is not None
        and agreement(other) == agreement(facility)
        and -10 <= (other.funded_on - last).days <= 45
        and (facility.funded_on is None or other.funded_on > facility.funded_on)
        for other in others
    )


def agreement(facility: Facility) -> tuple[str, str]:
    """Return the product and the lender."""
    first = facility.rows[0]
    name = first["counterparty_lender_id"] or first["counterparty_group"] or first["counterparty_name"]
    owner = "related_party" if facility.product == "director_loan" else None
    return facility.product, owner or name or first["other_account"] or ""


def status_of(facility: Facility) -> str:
    if facility.renewed:
        return "renewed"
    daily = facility.frequency == "business_daily"
    silent = facility.last_paid is not None and (facility.through - facility.last_paid).days > 100
    stopped = len(overdue(facility)) >= (5 if daily else 2) or (facility.frequency is None and silent)
    clean = not facility.tried or facility.tried[-1] in facility.paid
    at_will = facility.is_revolving or facility.frequency is None
    ended = stopped and clean and repaid_enough(facility) and facility.product != "tax_payment_plan"
    if ended or (at_will and facility.remaining == 0):
        return "likely_repaid"
    if short(facility) >= (3 if daily else 0.5) or (at_will and not clean) or (stopped and not facility.is_revolving):
        return "in_arrears"
    return "active"


def repaid_enough(facility: Facility) -> bool:
    """Tell whether the product's cost was repaid, up to one repayment; if the loan is unknown, whether anything was."""
    lent, owed, assumed = facility.lent, facility.remaining, ASSUMED.get(facility.product)
    if lent is None:
        return True
    all_of_it = assumed is not None and facility.repaid >= lent * Decimal(assumed.least)
    return all_of_it or (owed is not None and facility.usual is not None and float(owed) <= facility.usual)


def short(facility: Facility) -> float:
    """Return how many recent instalments are missing and were not made up for by additional ones."""
    period = PERIOD[facility.frequency] if facility.frequency else 0
    since = facility.through - DAY * max(90, ceil(3 * period))
    missed = sum(day > since for day in [*find_passed_over(facility), *overdue(facility)])
    paid = [r for r in facility.paid if r["date"] > since]
    instalments = sum(float(-r["amount"]) / (facility.usual or 1) for r in paid)
    due = sum(day > since and day not in facility.bounced_days for day in facility.slots)
    return missed - max(0, instalments - due)


def show_facility(facility: Facility) -> Row:
    over = facility.renewed or facility.status == "likely_repaid"
    resolutions = over and (facility.renewed or facility.remaining != 0)
    runs = facility.status in ("active", "in_arrears")
    return {
        "facilityId": str(UUID(bytes=facility.id)),
        "lenderName": most_often(r["counterparty_name"] for r in facility.rows),
        "lenderId": most_often(r["counterparty_lender_id"] for r in facility.rows),
        "product": facility.product,
        "status": facility.status,
        "fundingDate": facility.funded_on,
        "lastRepaymentDate": facility.last_paid,
        "missedPayments": len(find_passed_over(facility)) + (len(overdue(facility)) if runs else 0),
        "estimatedRemaining": ZERO if resolutions else facility.remaining,
        "remainingMethod": ("rolled_over" if facility.renewed else "payments_ended")
        if resolutions
        else facility.method,
        "fundingAmount": facility.lent,
        "repaymentCount": len(facility.paid),
        "repaidTotal": facility.repaid,
    }
