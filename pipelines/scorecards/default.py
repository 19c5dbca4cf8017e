"""The scorecard that comes with Tidemark: our judgement, not fitted to outcomes. Its weights are points out of 100.

A weight says how much we would want to know the reading if we could know only some of them. Balances come first: cash
pays, and a balance needs no interpretation, so it also tells about customers of whom nothing else is known. They say
how near to nothing the money came, how long it stayed there, and whether that is getting worse, in days of the
customer's own spending and income, so that size does not matter. Then come the plain signs of distress with missed
instalments, which are rare but rarely wrong; existing debt; revenue; and tenure. Bands are where credit officers
usually draw lines for small businesses; no feature separates one category of people from another. What owners take out
is no feature, because it is taken from good years as well as from bad ones; gambling is none, because it says how
people live.

Counts have steps. All else is worth what lies on a straight line between two limits, so that no small change of a
reading is a large one of the points.

Points are earned by evidence: what is unknown earns none, so leaving data out never helps.

The link: at 30 points default is as likely as not, and every 10 points halve the odds. So 100 points are odds of 1 to
128 (0.8 %), 80 points 1 to 32 (3 %, about the rate of small businesses in a usual year) and 0 points 8 to 1.
"""

from decimal import Decimal

from pipelines.scorecards.scorecard import Band, Feature, Link, Scorecard

_FINE, _WHOLE = Decimal("0.0001"), Decimal(1)  # the smallest difference between two readings


def _more(metric: str, bands: str, reason: str) -> Feature:
    return Feature(metric, True, _bands(bands), reason, step=_FINE, stepped=False)


def _less(metric: str, bands: str, reason: str) -> Feature:
    return Feature(metric, False, _bands(bands), reason, step=_FINE, stepped=False)


def _many(metric: str, bands: str, reason: str) -> Feature:
    return Feature(metric, True, _bands(bands), reason, step=_WHOLE)


def _few(metric: str, bands: str, reason: str) -> Feature:
    return Feature(metric, False, _bands(bands), reason, step=_WHOLE)


def _bands(text: str) -> tuple[Band, ...]:
    """Parse limits and their points from a text like `"12:5 6:3"`; a reading that reaches no limit earns nothing."""
    pairs = (band.split(":") for band in text.split())
    return (*(Band(Decimal(limit), Decimal(points)) for limit, points in pairs), Band(None, Decimal(0)))


BALANCES = (
    _less(
        "overdrawn_day_share_180d",
        "0:6 0.02:4 0.10:2 0.25:1 0.40:0",
        "Days beyond the approved limit are the plainest sign that money runs out; within it they are no distress.",
    ),
    _more(
        "min_balance_days_180d",
        "10:9 4:6 1:3 0:0",
        "How near to nothing the money came at its worst, in days of usual spending.",
    ),
    _less(
        "below_7d_outflow_share_180d",
        "0:8 0.10:6 0.30:4 0.60:2 1:0",
        "A week of spending is the least that absorbs a late payer; who lives below it has no slack.",
    ),
    _less(
        "below_30d_inflow_share_180d",
        "0.10:3 0.40:2 0.80:1 1:0",
        "A month of income held back is what pays wages and tax through a bad month.",
    ),
    _less(
        "longest_below_7d_outflow_180d",
        "0:3 7:2 30:1 60:0",
        "A low balance before the next pay run is common; weeks of it are not.",
    ),
    _less(
        "below_7d_outflow_trend_90d",
        "0:3 0.10:2 0.30:1 0.50:0",
        "More days at low balances than in the quarter before: reserves are being used up, whatever revenue says.",
    ),
    _more(
        "buffer_days_180d",
        "30:8 14:6 7:3 3:1 1:0",
        "How many days of usual spending the average balance would cover when income stops.",
    ),
)
FLOWS = (
    _more(
        "inflow_to_outflow_180d",
        "1.03:3 0.97:2 0.90:1 0.83:0",
        "Who spends more than comes in lives on reserves or on borrowed money.",
    ),
    _more(
        "revenue_trend_90d",
        "1.00:6 0.85:4 0.70:2 0.50:0",
        "Revenue of the last 90 days to the 90 before: takings that shrink pay less debt.",
    ),
    _less(
        "revenue_volatility_12m",
        "0.15:3 0.30:2 0.50:1 0.70:0",
        "Instalments are even: uneven takings miss some of them.",
    ),
    _less(
        "income_concentration_180d",
        "0.30:2 0.50:1 0.75:0",
        "A business of one customer fails with that customer.",
    ),
    _less(
        "months_under_target_share_12m",
        "0.10:3 0.25:2 0.40:1 0.55:0",
        "Months far under the usual one are where arrears begin.",
    ),
)
DEBT = (
    _less(
        "debt_service_to_revenue_180d",
        "0.05:6 0.12:4 0.20:2 0.30:0",
        "What lenders already take of each dollar of revenue leaves less for the next one.",
    ),
    _few(
        "lenders_repaid_45d",
        "1:2 3:1",
        "Each further lender was needed because the last one was not enough.",
    ),
    _few(
        "stacked_running_180d",
        "1:3 2:1",
        "Facilities for working capital that run side by side: one often pays for the other.",
    ),
    _less(
        "new_debt_to_revenue_180d",
        "0.02:2 0.10:1 0.25:0",
        "Money borrowed lately is money that trade did not bring in.",
    ),
    _few(
        "missed_repayments_180d",
        "0:5 1:2",
        "Who missed an instalment is nearest to missing the third.",
    ),
)
DISTRESS = (
    _less(
        "dishonours_per_month_180d",
        "0:8 0.20:5 0.60:2 1:0",
        "A payment the bank refused was a promise that could not be kept.",
    ),
    _few(
        "collector_payments_180d",
        "0:4 1:1",
        "A debt that went to a collector was in default already.",
    ),
    _few(
        "over_limit_fees_180d",
        "0:3 1:2 3:1",
        "The bank's own word that the limit was passed, also where balances are not known.",
    ),
    _few(
        "tax_arrears_signs_180d",
        "0:5 1:2",
        "Payment plans, interest and garnishees of the tax office: the creditor who waits longest was not paid.",
    ),
)
BEHAVIOUR = (
    _less(
        "cash_share_180d",
        "0.05:1 0.30:0",
        "Cash taken out can't be followed, and what can't be seen can't be relied on.",
    ),
)
TENURE = (
    _many(
        "months_of_history",
        "12:4 9:3 6:1",
        "A business seen through a year has shown every season; one seen for a month has shown little.",
    ),
)
DEFAULT = Scorecard(
    name="default",
    version="3",
    calibration="none",
    features=(*BALANCES, *FLOWS, *DEBT, *DISTRESS, *BEHAVIOUR, *TENURE),
    link=Link(even=Decimal(30), doubling=Decimal(10)),
)
