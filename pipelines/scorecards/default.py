"""The scorecard that comes with Tidemark: our judgement, not fitted to outcomes. Its weights are points out of 100.

A weight says how much we would want to know the reading if we could know only some of them. Balances come first: debts
are paid from them, and a balance needs no interpretation, so it is informative even if nothing else is known. Features
of balances measure how near to zero the money came, how long it stayed there, and how large the reserve is. They count
in days of the customer's own spending, so that size does not matter. Each limit is about the same multiple of the one
before, from a few days to a quarter of a year or more. So they tell apart businesses that live from week to week, and
also customers with large savings: if most customers earned all points, chance would decide between them. Recent
shortage says more than old shortage, but money that came last week may leave again. So the recent reading is the lowest
balance of 60 days, which money that came within them can't raise, and averages are over half a year. Then come plain
signs of distress, which are rare but rarely wrong; the direction of income over a quarter and a year; existing debt;
and tenure. Bands are where credit officers usually draw lines for small businesses. No feature separates one category
of people from another. Owners' drawings are not a feature, because owners draw in good years as well as in bad ones.
Gambling is not a feature, because it describes how people live.

Counts have steps. All other readings earn points on a straight line between two limits, so that a small change of a
reading is a small change of the points.

Only evidence earns points: what is unknown earns none, so leaving data out never helps.

The link: at 24 points default is as likely as not, and every 10 points halve the odds. So 74 points are odds of 1 to 32
(3 %, about the rate of small businesses in a usual year), 100 points 1 to 194 (0.5 %) and 0 points 5 to 1.
"""

from decimal import Decimal

from pipelines.scorecards.scorecard import Band, Feature, Link, Scorecard

_FINE, _WHOLE = Decimal("0.0001"), Decimal(1)  # the smallest difference between two readings


def _more_is_better(metric: str, bands: str, reason: str) -> Feature:
    """Return a feature of a ratio or of days: more is better, and points lie on straight lines."""
    return Feature(metric, True, _bands(bands), reason, step=_FINE, stepped=False)


def _less_is_better(metric: str, bands: str, reason: str) -> Feature:
    """Return a feature of a ratio or of days: less is better, and points lie on straight lines."""
    return Feature(metric, False, _bands(bands), reason, step=_FINE, stepped=False)


def _more_is_better_in_steps(metric: str, bands: str, reason: str) -> Feature:
    """Return a feature of a count: more is better, in steps."""
    return Feature(metric, True, _bands(bands), reason, step=_WHOLE)


def _less_is_better_in_steps(metric: str, bands: str, reason: str) -> Feature:
    """Return a feature of a count: less is better, in steps."""
    return Feature(metric, False, _bands(bands), reason, step=_WHOLE)


def _bands(text: str) -> tuple[Band, ...]:
    """Parse limits and their points from a text like `"12:5 6:3"`; a reading that reaches no limit earns nothing."""
    pairs = (band.split(":") for band in text.split())
    return (*(Band(Decimal(limit), Decimal(points)) for limit, points in pairs), Band(None, Decimal(0)))


BALANCES = (
    _less_is_better(
        "overdrawn_day_share_180d",
        "0:3 0.02:2 0.10:1 0.25:0.5 0.40:0",
        "Days beyond the approved limit are the clearest sign that money runs out; use within it is not distress.",
    ),
    _more_is_better(
        "min_balance_days_60d",
        "90:10 30:8.5 14:7 7:5.5 3:4 0:1.5 -7:0",
        "What was left when money was shortest: money that came in the last two months can't raise it.",
    ),
    _more_is_better(
        "min_balance_days_180d",
        "90:6 30:5 14:4 7:3 3:2 0:1 -7:0",
        "How near to zero, or how far below it, the balance came at its lowest, in days of usual spending.",
    ),
    _less_is_better(
        "below_7d_outflow_share_180d",
        "0:6 0.10:4.5 0.30:3 0.60:1.5 1:0",
        "It takes a week of spending to absorb a late payer; a business below that has no reserve.",
    ),
    _less_is_better(
        "below_7d_outflow_share_365d",
        "0:6 0.10:4.5 0.30:3 0.60:1.5 1:0",
        "The same over a year: a customer that is short in its good months, too, has no reserve for the weak ones.",
    ),
    _less_is_better(
        "below_30d_outflow_share_180d",
        "0:3 0.10:2.5 0.50:1.5 1:0",
        "A month of spending bridges the loss of a customer; few small businesses always have it.",
    ),
    _more_is_better(
        "buffer_days_180d",
        "180:8 90:7 30:5 14:3.5 7:2 3:1 0:0",
        "How many days of usual spending the average balance would cover if income stopped.",
    ),
)
FLOWS = (
    _more_is_better(
        "inflow_to_outflow_180d",
        "1.03:3 0.97:2 0.90:1 0.83:0",
        "A business that spends more than comes in lives on reserves or on borrowed money.",
    ),
    _more_is_better(
        "revenue_trend_90d",
        "1.00:6 0.85:4 0.70:2 0.50:0",
        "Revenue of the last 90 days, divided by that of the 90 days before: shrinking takings repay less debt.",
    ),
    _more_is_better(
        "revenue_growth_12m",
        "0:6 -0.02:4 -0.06:0",
        "3 % less each month is almost a third less in a year, although no quarter looks alarming.",
    ),
    _less_is_better(
        "revenue_volatility_12m",
        "0.15:1 0.70:0",
        "Instalments are equal from month to month: uneven takings may not cover all of them.",
    ),
    _less_is_better(
        "income_concentration_180d",
        "0.30:2 0.50:1 0.75:0",
        "A business that lives on one customer fails if that customer does.",
    ),
)
DEBT = (
    _less_is_better(
        "debt_service_to_revenue_180d",
        "0.05:6 0.12:4 0.20:2 0.30:0",
        "The more lenders already take of each dollar of revenue, the less is left for a new one.",
    ),
    _less_is_better_in_steps(
        "lenders_repaid_45d",
        "1:2 3:1",
        "A further lender is needed when the loans before it are not enough.",
    ),
    _less_is_better_in_steps(
        "stacked_running_180d",
        "1:4 2:2",
        "Of several facilities for working capital at the same time, one often repays another.",
    ),
    _less_is_better(
        "new_debt_to_revenue_180d",
        "0.02:2 0.10:1 0.25:0",
        "Money that was borrowed recently did not come from trade.",
    ),
    _less_is_better_in_steps(
        "missed_repayments_180d",
        "0:3 1:1",
        "A business that missed instalments is the most likely to miss more.",
    ),
)
DISTRESS = (
    _less_is_better(
        "dishonours_per_month_180d",
        "0:8 0.20:5 0.60:2 1:0",
        "A payment that the bank refused is a promise that the business could not keep.",
    ),
    _less_is_better_in_steps(
        "collector_payments_180d",
        "0:4 1:2 2:1",
        "A debt that went to a collector was already in default.",
    ),
    _less_is_better_in_steps(
        "over_limit_fees_180d",
        "0:3 1:2 3:1",
        "The bank itself says that the limit was exceeded, even where balances are unknown.",
    ),
    _less_is_better_in_steps(
        "tax_arrears_signs_180d",
        "0:5 1:2 3:1",
        "Payment plans, interest and garnishees of the tax office: even the creditor who waits longest was not paid.",
    ),
)
TENURE = (
    _more_is_better_in_steps(
        "months_of_history",
        "12:3 9:2 6:1",
        "A year of rows shows every season of the business; a month shows little.",
    ),
)
DEFAULT = Scorecard(
    name="default",
    version="5",
    calibration="none",
    features=(*BALANCES, *FLOWS, *DEBT, *DISTRESS, *TENURE),
    link=Link(even=Decimal(24), doubling=Decimal(10)),
)
