"""Credit products, with the categories of money that comes from a lender and goes back."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

import polars as pl


@dataclass(frozen=True)
class Product:
    """A kind of credit.

    `revolving`: drawn and repaid at will under one agreement, so that another draw starts no new facility.
    `working_capital`: repaid from the takings of the business; several at once are stacked on the same takings.
    """

    slug: str
    fundings: tuple[str, ...] = ()
    repayments: tuple[str, ...] = ()
    revolving: bool = False
    working_capital: bool = False


PRODUCTS: Mapping[str, Product] = {
    product.slug: product
    for product in (
        Product("term_loan", ("term_loan_funding",), ("term_loan_repayment",), working_capital=True),
        Product(
            "line_of_credit",
            ("line_of_credit_draw",),
            ("line_of_credit_repayment",),
            revolving=True,
            working_capital=True,
        ),
        Product("cash_advance", ("cash_advance_funding",), ("cash_advance_repayment",), working_capital=True),
        Product(
            "invoice_finance",
            ("invoice_finance_funding",),
            ("invoice_finance_repayment",),
            revolving=True,
            working_capital=True,
        ),
        Product("asset_finance", ("asset_finance_funding",), ("asset_finance_repayment",)),
        Product("mortgage", ("mortgage_funding",), ("mortgage_repayment",)),
        Product("card", ("card_advance",), ("card_repayment",), revolving=True),
        Product("trade_credit", ("trade_credit_funding",), ("trade_credit_repayment",), revolving=True),
        Product("director_loan", ("director_loan_in",), ("director_loan_out",), revolving=True),
        Product("tax_payment_plan", (), ("tax_payment_plan",)),
        Product("payday_credit", ("payday_credit",), ("payday_credit",), working_capital=True),
    )
}
REVOLVING = tuple(slug for slug, product in PRODUCTS.items() if product.revolving)
WORKING_CAPITAL = tuple(slug for slug, product in PRODUCTS.items() if product.working_capital)

_BY_FUNDING = {category: slug for slug, product in PRODUCTS.items() for category in product.fundings}
_BY_REPAYMENT = {category: slug for slug, product in PRODUCTS.items() for category in product.repayments}


@cache
def credit_product() -> pl.Expr:
    """Return the product that a row funds (money in) or repays (money out); null for all other rows."""
    category = pl.col("category")
    funds = category.replace_strict(_BY_FUNDING, default=None, return_dtype=pl.String())
    repays = category.replace_strict(_BY_REPAYMENT, default=None, return_dtype=pl.String())
    return pl.when(pl.col("amount") > 0).then(funds).when(pl.col("amount") < 0).then(repays)
