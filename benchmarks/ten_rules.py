"""The policy that is measured, customers with ready metrics, and the right decision for each of them.

The right decisions are computed separately in plain Python with exact decimals, so that no engine is its own oracle.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Decimal
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import polars as pl
import yaml

from pipelines.decisions import Policy
from pipelines.figures.periods import BY_CUSTOMER
from pipelines.metrics import cause_of
from pipelines.metrics.outcome import INSUFFICIENT_HISTORY, SCALE, VALUE

REQUESTED = Decimal(120_000)  # AUD, requested by every customer
MISSING_SHARE = 0.15

Drawn: TypeAlias = "np.ndarray[Any, np.dtype[np.int64]]"
Known: TypeAlias = Mapping[str, Decimal | None]  # a customer's metrics; None: unavailable


def document() -> dict[str, Any]:
    """Return the policy as an author writes it."""
    loaded: dict[str, Any] = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text())
    return loaded


def policy() -> Policy:
    return Policy.model_validate(document())


def stricter_policy() -> Policy:
    """Return a second version: earnings must cover more debt, the balance must last a month, and less is lent."""
    changed = document()
    _, cover, buffer = (rule["condition"]["atLeast"] for rule in changed["steps"][2]["rules"])
    cover[1]["multiply"][1] = "1.5"
    buffer[1] = "30"
    changed["limits"][0]["caps"][1]["value"] = "20000"
    return Policy.model_validate(changed)


# Customers


class _Draw:
    """Random figures in ten-thousandths, the precision of metrics."""

    def __init__(self, count: int, seed: int) -> None:
        self._random, self._count = np.random.default_rng(seed), count

    def wholes(self, mean: float) -> Drawn:
        return self._random.poisson(mean, self._count).astype(np.int64) * 10_000

    def shares(self, a: float, b: float) -> Drawn:
        return (self._random.beta(a, b, self._count) * 10_000).astype(np.int64)

    def money(self, median: float) -> Drawn:
        """Draw amounts in whole cents."""
        return np.round(self._random.lognormal(np.log(median * 100), 0.8, self._count)).astype(np.int64) * 100

    def missing(self) -> "np.ndarray[Any, np.dtype[np.bool_]]":
        return self._random.random(self._count) < MISSING_SHARE


def with_gaps(count: int, seed: int) -> pl.DataFrame:
    """Return `metrics.values` of customers in which each metric is missing with probability MISSING_SHARE."""
    draw = _Draw(count, seed)
    figures = {
        "dishonours_90d": draw.wholes(0.7),
        "overdrawn_day_share_180d": draw.shares(1, 12),
        "days_behind": draw.wholes(20),
        "debt_service_180d": draw.money(30_000),
        "seen_revenue_180d": draw.money(180_000),
        "income_concentration_180d": draw.shares(2, 6),
        "revenue_90d": draw.money(90_000),
        "revenue_prior_90d": draw.money(85_000),
        "closing_balance": draw.money(20_000),
        "mean_balance_90d": draw.money(20_000),
        "days_since_revenue": draw.wholes(5),
        "tax_arrears_signs_180d": draw.wholes(0.05),
        "revenue_monthly_mean_6m": draw.money(30_000),
        "operating_cash_flow_180d": draw.money(90_000),
        "buffer_days_180d": draw.wholes(15),
    }
    return _frame(figures).with_columns(
        expression
        for slug in figures
        for gap in [pl.Series(draw.missing())]  # the same for the value and its cause
        for expression in (
            pl.when(~gap).then(slug).alias(slug),
            pl.when(gap).then(pl.lit(INSUFFICIENT_HISTORY)).alias(cause_of(slug)),
        )
    )


def on_the_cent(count: int, seed: int) -> pl.DataFrame:
    """Return customers without gaps who pass all rules, with one figure that equals its threshold to the cent: debt to
    revenue, revenue to previous revenue, or earnings to debt.
    """
    drawn = _Draw(count, seed).money(50_000) // 2_000 * 2_000  # multiples of twenty cents, whose shares are whole cents
    equal_pair = np.arange(count) % 3
    sound = {
        "dishonours_90d": 0,
        "overdrawn_day_share_180d": "0.01",
        "days_behind": 3,
        "debt_service_180d": 100,
        "seen_revenue_180d": 200_000_000,
        "income_concentration_180d": "0.2",
        "revenue_90d": 90_000_000,
        "revenue_prior_90d": 80_000,
        "closing_balance": 10_000,
        "mean_balance_90d": 20_000,
        "days_since_revenue": 1,
        "tax_arrears_signs_180d": 0,
        "revenue_monthly_mean_6m": 30_000,
        "operating_cash_flow_180d": 1_000_000_000,
        "buffer_days_180d": 10,
    }
    figures = {slug: np.full(count, int(Decimal(str(value)).scaleb(SCALE))) for slug, value in sound.items()}
    compared = (
        ("debt_service_180d", "seen_revenue_180d", 45),
        ("revenue_90d", "revenue_prior_90d", 85),
        ("operating_cash_flow_180d", "debt_service_180d", 120),
    )
    for place, (figure, other, hundredths) in enumerate(compared):
        figures[other] = np.where(equal_pair == place, drawn, figures[other])
        figures[figure] = np.where(equal_pair == place, drawn // 100 * hundredths, figures[figure])
    return _frame(figures).with_columns(pl.lit(None, pl.String).alias(cause_of(slug)) for slug in figures)


def _frame(figures: Mapping[str, Drawn]) -> pl.DataFrame:
    unit = pl.lit(Decimal(1).scaleb(-SCALE), VALUE)
    counts = pl.DataFrame({slug: pl.Series(drawn, dtype=pl.Int64) for slug, drawn in figures.items()})
    return (
        counts.select((pl.col(slug).cast(VALUE) * unit).cast(VALUE) for slug in figures)
        .with_row_index(BY_CUSTOMER)
        .with_columns(pl.col(BY_CUSTOMER).cast(pl.Int64))
    )


def list_metrics(customers: pl.DataFrame) -> list[dict[str, Decimal | None]]:
    """Return each customer's metrics."""
    return customers.select(pl.selectors.decimal()).to_dicts()


# What is right


@dataclass(frozen=True)
class Verdict:
    """`limit` in AUD; None: indeterminate."""

    outcome: str
    limit: Decimal | None


def decide_exactly(customers: Iterable[Known]) -> list[Verdict]:
    """Return the right verdict for each customer, whose metrics are exact decimals."""
    return [_decide(each) for each in customers]


def _decide(known: Known) -> Verdict:
    outcome = _outcome(known)
    limit = {"blocked": Decimal(0), "indeterminate": None}
    return Verdict(outcome, limit[outcome] if outcome in limit else _limit(known))


def _outcome(known: Known) -> str:
    for outcome, matched in (
        ("blocked", _knocked_out(known)),
        ("conditional", _is_referred(known)),
        ("proceed", _is_approved(known)),
    ):
        if matched is None:
            return "indeterminate"
        if matched:
            return outcome
    return "conditional"


def _knocked_out(known: Known) -> bool | None:
    return _any_of(
        _at_least(known["dishonours_90d"], Decimal(3)),
        _is_more(known["overdrawn_day_share_180d"], Decimal("0.25")),
        _is_more(known["days_behind"], Decimal(45)),
        _is_more(known["debt_service_180d"], _share(known["seen_revenue_180d"], "0.45")),
    )


def _is_referred(known: Known) -> bool | None:
    return _any_of(
        _is_more(known["income_concentration_180d"], Decimal("0.6")),
        _all_of(
            _is_more(_share(known["revenue_prior_90d"], "0.85"), known["revenue_90d"]),
            _is_more(known["mean_balance_90d"], known["closing_balance"]),
        ),
        _any_of(
            _is_more(known["days_since_revenue"], Decimal(21)), _at_least(known["tax_arrears_signs_180d"], Decimal(1))
        ),
    )


def _is_approved(known: Known) -> bool | None:
    return _all_of(
        _at_least(known["revenue_monthly_mean_6m"], Decimal(10_000)),
        _at_least(known["operating_cash_flow_180d"], _share(known["debt_service_180d"], "1.2")),
        _at_least(known["buffer_days_180d"], Decimal(5)),
    )


def _limit(known: Known) -> Decimal | None:
    revenue, cash = _share(known["revenue_monthly_mean_6m"], "1.2"), _share(known["operating_cash_flow_180d"], "0.35")
    if revenue is None or cash is None:
        return None
    multiples = (min(REQUESTED, revenue, cash, Decimal(250_000)) / 500).to_integral_value(ROUND_FLOOR)
    return multiples * 500 if multiples * 500 >= 5_000 else Decimal(0)


def _share(amount: Decimal | None, share: str) -> Decimal | None:
    return None if amount is None else amount * Decimal(share)


def _is_more(left: Decimal | None, right: Decimal | None) -> bool | None:
    return None if left is None or right is None else left > right


def _at_least(left: Decimal | None, right: Decimal | None) -> bool | None:
    return None if left is None or right is None else left >= right


def _any_of(*conditions: bool | None) -> bool | None:
    return True if True in conditions else None if None in conditions else False


def _all_of(*conditions: bool | None) -> bool | None:
    return False if False in conditions else None if None in conditions else True


@dataclass(frozen=True)
class Wrong:
    """The number of wrong decisions."""

    verdicts: int
    limits: int  # among those with the right verdict
    decisions: int

    def describe(self) -> str:
        return f"{self.verdicts:,} verdicts, {self.limits:,} limits of {self.decisions:,}"


def count_wrong(decided: Sequence[Verdict], expected: Sequence[Verdict]) -> Wrong:
    pairs = list(zip(decided, expected, strict=True))
    same = [(a, b) for a, b in pairs if a.outcome == b.outcome]
    return Wrong(len(pairs) - len(same), sum(a.limit != b.limit for a, b in same), len(pairs))
