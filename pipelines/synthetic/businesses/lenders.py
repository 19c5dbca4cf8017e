"""Who lends to small businesses, on what terms, and what statements print (`lenders.csv` and `credit.yaml`)."""

from functools import cache
from typing import Literal

from pipelines.synthetic.data_files import Record, load, load_table
from pipelines.synthetic.world.model import Condition


class Product(Record, frozen=True):
    """The categories of money in and money out for a kind of credit."""

    funding: str
    repayment: str


class Credit(Record, frozen=True):
    """The content of `credit.yaml`: the products, and how often a business of each condition takes them."""

    products: dict[str, Product]
    appetite: dict[Condition, dict[str, int]]


class Lender(Record, frozen=True):
    """A lender's terms. `cadence`: `split_settlement` withholds a share of takings, `on_collection` is repaid when the
    customer pays the invoice.
    """

    product: str
    cadence: Literal["business_daily", "weekly", "fortnightly", "monthly", "split_settlement", "on_collection"]
    factor: float  # what is repaid, divided by what is lent
    payments: int  # 0 where it revolves or is retained from takings
    size_from: float  # lent, in months of turnover
    size_to: float
    name: str = ""  # empty: the business's own bank
    reference: str = ""
    code: str = ""
    rail: str = "direct_debit"
    lends_to_merchants_of: str = ""  # a card processor or platform, which repays itself from its payouts


@cache
def credit() -> Credit:
    return load("credit.yaml", Credit)


@cache
def _lenders() -> tuple[Lender, ...]:
    return load_table("lenders.csv", Lender)


@cache
def lenders_of(product: str) -> tuple[Lender, ...]:
    """Return the lenders of a product that lend to any business."""
    return tuple(lender for lender in _lenders() if lender.product == product and not lender.lends_to_merchants_of)


@cache
def merchant_lender(brand: str) -> Lender | None:
    """Return who lends to merchants of a card processor or platform (canonical name)."""
    return next((lender for lender in _lenders() if brand and lender.lends_to_merchants_of == brand), None)
