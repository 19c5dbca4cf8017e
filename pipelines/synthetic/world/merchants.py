"""Whom small businesses pay, and what statements print (`merchants.yaml` and `bills.csv`).

Regular bills, card spending, card processors, public bodies. Amounts are dollars. In a text, `{n7}` stands for a
random number of seven digits, `~meals` for a made-up local firm of that kind and `{person}` for a made-up person.
"""

from collections import defaultdict
from collections.abc import Mapping
from functools import cache

from pipelines.synthetic.data_files import Record, load, load_table
from pipelines.synthetic.world.brands import canonical
from pipelines.synthetic.world.model import Party


class Bill(Record, frozen=True):
    """A recurring payment. Its amount is chosen once and then varies by a few per cent."""

    name: str
    rail: str
    category: str
    low: int
    high: int
    reference: str = ""
    wobble: float = 0.0  # share by which the amount varies
    every: int = 1  # months between payments
    weeks: int = 0  # weeks between payments, instead
    code: str = ""
    incoming: bool = False
    family: str = ""  # a business has at most one bill of a family
    state: str = ""  # only businesses of this state have the bill; empty: all


class Spend(Record, frozen=True):
    """Irregular purchases by card, at a few shops near the business or from web merchants (`head_offices`)."""

    shops: tuple[str, ...]
    category: str
    a_month: tuple[float, float]
    low: int
    high: int


class Processor(Record, frozen=True):
    """Who settles card takings, in what wording and for which fee."""

    name: str
    reference: str
    fee: float  # share of the takings that it retains
    merges_weekend: bool = False
    code: str = ""
    category: str = "card_settlement"


class Clearing(Record, frozen=True):
    """Who moves money by direct entry, with its user id."""

    name: str
    code: str

    def party(self, brand: str) -> Party:
        return Party(self.name, code=self.code, brand=brand)


class StateBodies(Record, frozen=True):
    """The public bodies that every business of a state pays."""

    revenue: str  # payroll and land tax
    registration: str
    fines: str
    compensation: str
    council: str


class Merchants(Record, frozen=True):
    """The content of `merchants.yaml`, which explains the fields."""

    processors: tuple[Processor, ...]
    amex: Processor
    bank_terminal: Processor
    bill_families: dict[str, float]
    agents: tuple[str, ...]
    shared_spends: dict[str, Spend]
    everyday_spends: tuple[Spend, ...]
    super_funds: tuple[Clearing, ...]
    tax_refunds: Clearing
    wagering: tuple[str, ...]
    head_offices: dict[str, tuple[str, str]]
    us_dollar_regions: frozenset[str]
    state_bodies: dict[str, StateBodies]


@cache
def merchants() -> Merchants:
    return load("merchants.yaml", Merchants)


@cache
def bills_by_family() -> Mapping[str, tuple[Bill, ...]]:
    families: defaultdict[str, list[Bill]] = defaultdict(list)
    for bill in load_table("bills.csv", Bill):
        families[bill.family].append(bill)
    return {family: tuple(bills) for family, bills in families.items()}


def water_bill(state: str) -> Bill:
    return next(bill for bill in bills_by_family()["water"] if bill.state == state)


def card_merchant(name: str, suburb: str, brand: str = "") -> Party:
    """Return a merchant at the place that card statements print for it: its head office, or else the suburb."""
    start = name.split("{", maxsplit=1)[0].split(maxsplit=1)[0]
    place, region = merchants().head_offices.get(start, (suburb, ""))
    return Party(name, place, region, brand=brand or canonical(name))
