"""Estimate what is left to repay from what was lent and what was repaid.

A statement shows neither the rate nor the term of a contract. So each estimate depends on an assumption, stated here,
and has a confidence. Money is in decimals. Growth factors are rounded to six digits, amounts with interest to the cent.

| method | remaining | for |
|---|---|---|
| `assumed_factor` | lent × factor − repaid | cash advances, payday credit |
| `amortised` | lent less repaid, each with interest to the last day | instalment loans |
| `drawn_less_repaid` | drawn − repaid, not below zero | revolving credit whose first row is a draw |
| `payments_ended` | nothing | facilities likely repaid |
| `rolled_over` | nothing: the renewal paid it out | renewed facilities |
| `unknown` | | facilities drawn before the statements begin |
"""

from collections.abc import Mapping
from functools import cache
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from pipelines.enrichment.facilities.products import REVOLVING
from pipelines.enrichment.facilities.rhythm import period_days
from pipelines.vocabulary.plans import AS_WRITTEN

TOTAL = pl.Decimal(38, 2)  # room for any number of amounts
_GROWTH = pl.Decimal(38, 6)
Floats = NDArray[np.float64]


class Assumed(NamedTuple):
    """A product's usual price. `least`: when payments end, the facility is repaid if repaid ÷ lent is at least this.

    Over the whole term, most facilities repay between `lowest` and `highest` times what was lent.
    """

    factor: str | None = None  # repaid ÷ lent over the whole term
    yearly_rate: float | None = None
    least: str = "1.00"
    lowest: str = "1.00"
    highest: str = "1.05"


# Cash advances are sold with a factor of 1.1 to 1.5; this is the middle. Payday credit may by law (National Consumer
# Credit Protection Act 2009, s 31A) cost 20 % at once and 4 % a month; this is for two months. The rest is our
# judgement, to be replaced by what a lender knows: unsecured business loans cost between 10 % a year at a bank and over
# 30 % at an online lender, loans for vehicles and equipment about 9 %, for property about 6.5 % (over 30 years, 2.30).
ASSUMED: Mapping[str, Assumed] = {
    "cash_advance": Assumed(factor="1.30", least="1.10", lowest="1.10", highest="1.40"),
    "payday_credit": Assumed(factor="1.28", least="1.00", lowest="1.20", highest="1.40"),
    "term_loan": Assumed(yearly_rate=0.18, least="1.02", lowest="1.05", highest="1.30"),
    "asset_finance": Assumed(yearly_rate=0.09, lowest="1.05", highest="1.30"),
    "mortgage": Assumed(yearly_rate=0.065, highest="2.30"),
    "line_of_credit": Assumed(),
    "invoice_finance": Assumed(lowest="1.01", highest="1.05"),
    "trade_credit": Assumed(highest="1.10"),
    "card": Assumed(highest="1.10"),
    "director_loan": Assumed(highest="1.00"),
}

# Confidence in each method (our judgement): never as high as for a balance that a lender states.
CONFIDENCE: Mapping[str, float] = {
    "assumed_factor": 0.4,
    "amortised": 0.6,
    "drawn_less_repaid": 0.5,
    "payments_ended": 0.7,
    "rolled_over": 0.7,
    "unknown": 0.0,
}
GUESSED = 0.6  # factor on the confidence if a loan's rate is assumed, not implied by level repayments (our judgement)
UNFUNDED = 0.6  # factor on the confidence if it is unknown what was lent (our judgement)

SPREAD = 0.1  # standard deviation over mean, up to which repayments are level (our judgement)
TERMS_MONTHS = (3, 6, 9, 12, 18, 24, 30, 36, 48, 60, 72, 84, 120, 180, 240, 300, 360)
MIN_RATE, MAX_RATE = 0.05, 0.9  # yearly: a rate outside means that the term is wrong (our judgement)
HALVINGS = 60  # of an interval no wider than 1: more than the 53 bits of a float
_MIN_INTEREST = 1e-9  # per interval; not 0, because a rate of 0 solves the formula for any loan


def factor() -> pl.Expr:
    """Return `Assumed.factor` of the product; null if none is assumed."""
    return _look_up_assumed("factor")


def least_repaid() -> pl.Expr:
    """Return `Assumed.least` of the product."""
    return _look_up_assumed("least")


@cache
def _look_up_assumed(name: str) -> pl.Expr:
    table = {product: getattr(assumed, name) for product, assumed in ASSUMED.items()}
    return pl.col("product").replace_strict(table, default=None, return_dtype=pl.String()).cast(pl.Decimal(18, 4))


def add_rates(known: pl.DataFrame) -> pl.DataFrame:
    """Add `yearly_rate` of instalment loans, and whether it is `implied` by level repayments or else assumed.

    `term_total` is the sum of the implied term's repayments (AUD, null if no term is implied).

    Given the amount lent P, the instalment A and its frequency, only the term of n instalments is unknown. Loans are
    sold with round terms, so the shortest of TERMS_MONTHS with a plausible rate is chosen. The rate i per interval then
    follows from the level-payment formula A = P i / (1 − (1 + i)^−n). It has no closed solution, so i is searched
    between 0 and A / P.

    Args:
        known: one row per facility: `facility_id`, `product`, `funding_amount`, `repayment_usual`, `frequency`,
            `repayment_mean`, `repayment_spread`.
    """
    assumed = _assumed_rate()
    loans = known.filter(assumed.is_not_null(), is_level())
    if loans.is_empty():  # true of many customers
        return known.with_columns(term_total=pl.lit(None, TOTAL), yearly_rate=assumed, implied=pl.lit(value=False))
    payment = pl.col("repayment_usual") / pl.col("funding_amount").cast(pl.Float64)
    level = loans.lazy().select("facility_id", a_year=365.25 / period_days(), payment=payment)
    terms = pl.LazyFrame({"years": [months / 12 for months in TERMS_MONTHS]})
    payments, interest = pl.col("payments"), pl.col("payment") * pl.col("payments") - 1
    roughly = 2 * interest / pl.col("years") * payments / (payments + 1)  # on average, half of the loan is owed
    sold = (
        level.join(terms, how="cross")
        .with_columns(payments=(pl.col("a_year") * pl.col("years")).round())
        .filter(payments >= 2, roughly.is_between(MIN_RATE, MAX_RATE))
        .sort("facility_id", "years")
        .unique("facility_id", keep="first", maintain_order=True)
        .collect(engine="in-memory", optimizations=AS_WRITTEN)
    )
    share, n = sold["payment"].to_numpy(), sold["payments"].to_numpy()
    implied = sold.lazy().select(
        "facility_id",
        "payments",
        implied_rate=(1 + pl.lit(pl.Series(_implied_interest(share, n)))) ** pl.col("a_year") - 1,
    )
    rated = known.lazy().join(implied, on="facility_id", how="left", validate="1:1")
    return rated.select(
        pl.exclude("implied_rate", "payments"),
        term_total=(pl.col("repayment_usual") * pl.col("payments")).round(2).cast(TOTAL),
        yearly_rate=pl.coalesce("implied_rate", assumed),
        implied=pl.col("implied_rate").is_not_null(),
    ).collect(engine="in-memory", optimizations=AS_WRITTEN)


@cache
def _assumed_rate() -> pl.Expr:
    rates = {product: assumed.yearly_rate for product, assumed in ASSUMED.items() if assumed.yearly_rate}
    return pl.col("product").replace_strict(rates, default=None, return_dtype=pl.Float64())


def _implied_interest(payment: Floats, payments: Floats) -> Floats:
    """Solve `_paid_above_interest` for the rate of an interval by bisection, all loans at once.

    The root is unique between (almost) 0, where payments exceed the interest, and A / P, where they are all interest.
    `scipy.optimize` would give the same root, but importing it takes a second, for every command.

    Args:
        payment: A / P, each payment as a share of the loan.
        payments: n, their number.
    """
    low, high = np.full(payment.size, _MIN_INTEREST), payment
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        is_below_root = _paid_above_interest(middle, payment, payments) > 0
        low, high = np.where(is_below_root, middle, low), np.where(is_below_root, high, middle)
    return (low + high) / 2


def _paid_above_interest(rate: Floats, payment: Floats, payments: Floats) -> Floats:
    """Return A / P · (1 − (1 + i)^−n) − i, which is 0 at the rate i that the n payments imply."""
    return payment * (1 - (1 + rate) ** -payments) - rate


def is_level() -> pl.Expr:
    """Return whether repayments have a known frequency and hardly differ."""
    even = pl.col("repayment_spread") <= SPREAD * pl.col("repayment_mean").cast(pl.Float64)
    return pl.col("frequency").is_not_null() & even.fill_null(value=False)


def grown_size() -> pl.Expr:
    """Return `size` with interest at `yearly_rate` from `date` to `through`, to the cent; null without a rate.

    What was lent less what was repaid, both with interest, is the balance of any loan, repaid regularly or not (the
    retrospective method: Kellison, *The Theory of Interest*, on outstanding loan balances). For k level repayments A at
    equal intervals it equals P (1 + i)^k − A ((1 + i)^k − 1) / i.
    """
    years = (pl.col("through") - pl.col("date")).dt.total_days() / 365
    growth = ((1 + pl.col("yearly_rate")) ** years).round(6).cast(_GROWTH, strict=False)
    return (pl.col("size").cast(_GROWTH) * growth).round(2).cast(TOTAL)


def add_remaining(known: pl.LazyFrame) -> pl.LazyFrame:
    """Add `estimated_remaining` (TOTAL), `remaining_method` and `remaining_confidence`, before the status is known.

    Args:
        known: one row per facility: `product`, `funding_amount`, `repaid_total`, `grown_balance`, `implied`,
            `repaid_first` (before anything was drawn), `withheld_estimate`, `inferred_confidence`, `term_total`,
            `last_bounced` (null if no repayment was tried).
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
    return (
        known.with_columns(remaining_method=method)
        .with_columns(estimated_remaining=estimate, remaining_confidence=_confidence())
        .with_columns(**_remaining_range(lent, repaid))
    )


def _remaining_range(lent: pl.Expr, repaid: pl.Expr) -> dict[str, pl.Expr]:
    """Return `remaining_low` and `remaining_high`: what is left to pay if it is paid off now, or runs its term.

    If level repayments imply a term, all of them are left at most, and the balance at least. Otherwise both follow from
    `Assumed.lowest` and `highest`. The estimate is always between them.
    """
    known, estimate = pl.col("remaining_method") != "unknown", pl.col("estimated_remaining")
    low, high = (lent.cast(_GROWTH) * _look_up_assumed(name).cast(_GROWTH) - repaid for name in ("lowest", "highest"))
    short = pl.col("product") != "mortgage"  # several of the terms that mortgages have are plausible
    amortised = (pl.col("remaining_method") == "amortised") & pl.col("term_total").is_not_null() & short
    least = pl.when(amortised).then(estimate).otherwise(low.round(2).cast(TOTAL))
    most = pl.when(amortised).then(pl.col("term_total") - repaid).otherwise(high.round(2).cast(TOTAL))
    nothing = pl.lit(0, TOTAL)
    untried = pl.col("last_bounced").is_null() & (pl.col("product") == "cash_advance")  # perhaps withheld from takings
    least = pl.when(untried).then(nothing).otherwise(least)
    return {
        "remaining_low": pl.when(known & least.is_not_null()).then(
            pl.min_horizontal(pl.max_horizontal(least, nothing), estimate)
        ),
        "remaining_high": pl.when(known & most.is_not_null()).then(pl.max_horizontal(most, estimate)),
    }


def estimate_remaining(
    method: pl.Expr, lent: pl.Expr, factor: pl.Expr, repaid: pl.Expr, grown_balance: pl.Expr
) -> pl.Expr:
    """Return what remains by a method (TOTAL), not below zero; null if unknown.

    Args:
        method: one of CONFIDENCE.
        factor: repaid ÷ lent over the whole term, if one is assumed.
        grown_balance: what was lent less what was repaid, each as `grown_size`.
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


@cache
def _confidence() -> pl.Expr:
    usual = pl.col("remaining_method").replace_strict(CONFIDENCE, return_dtype=pl.Float64())
    guessed = (pl.col("remaining_method") == "amortised") & ~pl.col("implied")
    return usual * pl.when(guessed).then(GUESSED).otherwise(1.0) * pl.col("inferred_confidence").fill_null(1.0)
