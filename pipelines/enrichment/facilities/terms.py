"""What is left to repay, estimated from what was lent and what has come back.

A statement shows neither the contract's rate nor its term, so each estimate rests on an assumption that is stated here,
and says how far it is to be trusted. Money is counted in decimals; growth factors are rounded to six digits, and what
grows by them to the cent.

| method | remaining | for |
|---|---|---|
| `assumed_factor` | lent × factor − repaid | cash advances, payday credit |
| `amortised` | lent less repaid, each with interest to the last day | instalment loans |
| `drawn_less_repaid` | drawn − repaid, not below zero | revolving credit whose first row is a draw |
| `payments_ended` | nothing | facilities likely repaid |
| `rolled_over` | nothing: the renewal paid it out | renewed ones |
| `unknown` | | drawn before the statements begin |
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from pipelines.enrichment.facilities.products import REVOLVING
from pipelines.enrichment.facilities.rhythm import period_days

TOTAL = pl.Decimal(38, 2)  # room for any number of amounts
_GROWTH = pl.Decimal(38, 6)
Floats = NDArray[np.float64]


class Assumed(NamedTuple):
    """A product's usual price. `least`: repaid ÷ lent from which a facility whose payments end is taken for repaid."""

    factor: str | None = None  # repaid ÷ lent over the whole term
    yearly_rate: float | None = None
    least: str = "1.00"


# Cash advances are sold by a factor of 1.1 to 1.5: the middle of it. Payday credit may by law (National Consumer Credit
# Protection Act 2009, s 31A) cost 20 % at once and 4 % a month: two months. Rates of instalment loans lie for unsecured
# business loans between a bank's 10 % and an online lender's 30 % and more, for vehicles and equipment around 9 %, for
# property around 6.5 %: judgement, to be replaced by what a lender knows.
ASSUMED: Mapping[str, Assumed] = {
    "cash_advance": Assumed(factor="1.30", least="1.10"),
    "payday_credit": Assumed(factor="1.28", least="1.00"),
    "term_loan": Assumed(yearly_rate=0.18, least="1.02"),
    "asset_finance": Assumed(yearly_rate=0.09),
    "mortgage": Assumed(yearly_rate=0.065),
}

# How far an estimate is to be trusted, by judgement: never as far as a balance that a lender states.
CONFIDENCE: Mapping[str, float] = {
    "assumed_factor": 0.4,
    "amortised": 0.6,
    "drawn_less_repaid": 0.5,
    "payments_ended": 0.7,
    "rolled_over": 0.7,
    "unknown": 0.0,
}
GUESSED = 0.6  # of the confidence, where a loan's rate is assumed and not implied by its level repayments
UNFUNDED = 0.6  # of the confidence, where nothing shows what was lent

SPREAD = 0.1  # of their mean, up to which repayments are level
TERMS_MONTHS = (3, 6, 9, 12, 18, 24, 30, 36, 48, 60, 72, 84, 120, 180, 240, 300, 360)
LEAST_RATE, MOST_RATE = 0.05, 0.9  # a year: what is outside is the wrong term
HALVINGS = 60  # of an interval no wider than 1: more than the 53 bits of a float
_LEAST_INTEREST = 1e-9  # an interval: at 0 the formula is solved by any loan


def factor() -> pl.Expr:
    return _look_up_assumed("factor")


def least_repaid() -> pl.Expr:
    """Repaid ÷ lent, see `Assumed`."""
    return _look_up_assumed("least")


def _look_up_assumed(name: str) -> pl.Expr:
    table = {product: getattr(assumed, name) for product, assumed in ASSUMED.items()}
    return pl.col("product").replace_strict(table, default=None, return_dtype=pl.String()).cast(pl.Decimal(18, 4))


def add_rates(known: pl.DataFrame) -> pl.DataFrame:
    """`yearly_rate` of instalment loans, and whether it is `implied` by level repayments or else assumed.

    What was lent, the instalment A and its frequency leave one thing open: the term of n instalments. Loans are sold
    for round terms, so the shortest of TERMS_MONTHS that costs a plausible rate is taken, and the rate i an interval
    follows from the level-payment formula A = P i / (1 − (1 + i)^−n). That has no closed solution: i
    is searched between 0 and A / P.

    Args:
        known: one row a facility: `facility_id`, `product`, `funding_amount`, `repayment_usual`, `frequency`,
            `repayment_mean`, `repayment_spread`.
    """
    rates = {product: assumed.yearly_rate for product, assumed in ASSUMED.items() if assumed.yearly_rate}
    assumed = pl.col("product").replace_strict(rates, default=None, return_dtype=pl.Float64())
    a_year = 365.25 / period_days()
    level = known.filter(assumed.is_not_null(), is_level()).select(
        "facility_id", a_year=a_year, payment=pl.col("repayment_usual") / pl.col("funding_amount").cast(pl.Float64)
    )
    terms = pl.DataFrame({"years": [months / 12 for months in TERMS_MONTHS]})
    payments, interest = pl.col("payments"), pl.col("payment") * pl.col("payments") - 1
    roughly = 2 * interest / pl.col("years") * payments / (payments + 1)  # on half of the loan, on average
    sold = (
        level.join(terms, how="cross")
        .with_columns(payments=(pl.col("a_year") * pl.col("years")).round())
        .filter(payments >= 2, roughly.is_between(LEAST_RATE, MOST_RATE))
        .sort("facility_id", "years")
        .unique("facility_id", keep="first", maintain_order=True)
    )
    payment, n = sold["payment"].to_numpy(), sold["payments"].to_numpy()
    implied = sold.select(
        "facility_id", implied_rate=(1 + pl.lit(pl.Series(_implied_interest(payment, n)))) ** pl.col("a_year") - 1
    )
    return known.join(implied, on="facility_id", how="left", validate="1:1").select(
        pl.exclude("implied_rate"),
        yearly_rate=pl.coalesce("implied_rate", assumed),
        implied=pl.col("implied_rate").is_not_null(),
    )


def _implied_interest(payment: Floats, payments: Floats) -> Floats:
    """Solve `_paid_above_interest` for the rate of an interval by bisection, all loans at once.

    The root is unique between (almost) 0, where payments exceed the interest, and A / P, where they are all interest.
    `scipy.optimize` would give the same root, but importing it takes a second, which every command would pay.

    Args:
        payment: A / P, each payment as a share of the loan.
        payments: n, their number.
    """
    low, high = np.full(payment.size, _LEAST_INTEREST), payment
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        is_below_root = _paid_above_interest(middle, payment, payments) > 0
        low, high = np.where(is_below_root, middle, low), np.where(is_below_root, high, middle)
    return (low + high) / 2


def _paid_above_interest(rate: Floats, payment: Floats, payments: Floats) -> Floats:
    """A / P · (1 − (1 + i)^−n) − i: nothing at the rate i that the n payments imply."""
    return payment * (1 - (1 + rate) ** -payments) - rate


def is_level() -> pl.Expr:
    """Repayments of a known frequency that hardly differ."""
    even = pl.col("repayment_spread") <= SPREAD * pl.col("repayment_mean").cast(pl.Float64)
    return pl.col("frequency").is_not_null() & even.fill_null(value=False)


def grown_size() -> pl.Expr:
    """`size` with interest at `yearly_rate` from `date` to `through`, on daily balances, to the cent; null without a
    rate.

    What was lent less what was repaid, both grown, is the balance of any loan, paid regularly or not (the retrospective
    method: Kellison, *The Theory of Interest*, on outstanding loan balances). With k level repayments A at equal
    intervals it is the textbook's P (1 + i)^k − A ((1 + i)^k − 1) / i.
    """
    years = (pl.col("through") - pl.col("date")).dt.total_days() / 365
    growth = ((1 + pl.col("yearly_rate")) ** years).round(6).cast(_GROWTH, strict=False)
    return (pl.col("size").cast(_GROWTH) * growth).round(2).cast(TOTAL)


def add_remaining(known: pl.DataFrame) -> pl.DataFrame:
    """`estimated_remaining` (TOTAL), `remaining_method` and `remaining_confidence` before a status is known.

    Args:
        known: one row a facility: `product`, `funding_amount`, `repaid_total`, `grown_balance`, `implied`,
            `repaid_first` (before anything was drawn), `withheld_estimate`, `inferred_confidence`.
    """
    lent, repaid = pl.col("funding_amount"), pl.col("repaid_total") + pl.col("withheld_estimate").fill_null(0)
    revolving = pl.col("product").is_in(REVOLVING)
    method = (
        pl.when(lent.is_null() | (revolving & pl.col("repaid_first")))
        .then(pl.lit("unknown"))
        .when(revolving)
        .then(pl.lit("drawn_less_repaid"))
        .when(factor().is_not_null())
        .then(pl.lit("assumed_factor"))
        .when(pl.col("grown_balance").is_not_null())
        .then(pl.lit("amortised"))
        .otherwise(pl.lit("unknown"))
    )
    estimate = estimate_remaining(pl.col("remaining_method"), lent, factor(), repaid, pl.col("grown_balance"))
    return known.with_columns(remaining_method=method).with_columns(
        estimated_remaining=estimate, remaining_confidence=_confidence()
    )


def estimate_remaining(
    method: pl.Expr, lent: pl.Expr, factor: pl.Expr, repaid: pl.Expr, grown_balance: pl.Expr
) -> pl.Expr:
    """What remains by that method (TOTAL), not below zero; null where it is unknown.

    Args:
        method: one of CONFIDENCE.
        factor: repaid ÷ lent over the whole term, where one is assumed.
        grown_balance: what was lent less what was repaid, each as `grown`.
    """
    by_factor = (lent.cast(_GROWTH) * factor.cast(_GROWTH)).round(2).cast(TOTAL) - repaid
    nothing = pl.lit(0, TOTAL)
    left = (
        pl.when(method == "assumed_factor")
        .then(by_factor)
        .when(method == "amortised")
        .then(grown_balance)
        .when(method == "drawn_less_repaid")
        .then(lent - repaid)
        .when(method.is_in(("payments_ended", "rolled_over")))
        .then(nothing)
    )
    return pl.when(left.is_not_null()).then(pl.max_horizontal(left, nothing))


def _confidence() -> pl.Expr:
    usual = pl.col("remaining_method").replace_strict(CONFIDENCE, return_dtype=pl.Float64())
    guessed = (pl.col("remaining_method") == "amortised") & ~pl.col("implied")
    return usual * pl.when(guessed).then(GUESSED).otherwise(1.0) * pl.col("inferred_confidence").fill_null(1.0)
