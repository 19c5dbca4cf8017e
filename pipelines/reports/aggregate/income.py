"""Regular income: who pays again and again, how regularly, and what kind of income it probably is."""

import polars as pl

from pipelines.enrichment.income import PAYER, PROBABILITIES
from pipelines.figures.facts import Facts
from pipelines.figures.income import income_rows, regular_payers
from pipelines.figures.periods import BY_CUSTOMER
from pipelines.figures.tables import UNITS, Column, Derived, Source, Table, Total
from pipelines.vocabulary.report_values import ratio, uuid_text

WINDOW = 180  # days; our judgement
_ONE, _AMOUNT = pl.lit(1), pl.col("amount")
_WORDS = {
    "wages": "pay by an employer",
    "benefit": "a benefit or compensation",
    "pension": "an age, service or super pension or an annuity",
    "rent": "rent, by a tenant or an agent",
    "contract_revenue": "a customer's payments for work or goods",
    "regular": "none of these: family, dividends, whatever else is only regular",
}


def _column(kind: str) -> str:
    """Return the report's name of a kind's probability: `contractRevenueProbability`."""
    first, *others = kind.split("_")
    return f"{first}{''.join(map(str.title, others))}Probability"


def _payers(facts: Facts) -> pl.LazyFrame:
    """Return a row for each payer that pays regularly."""
    paid_days = (pl.col("last_date") - pl.col("first_date")).dt.total_days()
    usual_gap = (paid_days / (pl.col("dates_paid") - 1)).round().cast(pl.Int64)
    seen_days = (pl.col("data_through") - pl.col("first_date")).dt.total_days() + usual_gap
    through = facts.history.lazy().select(BY_CUSTOMER, "data_through")
    payers = regular_payers(facts).lazy().join(through, on=BY_CUSTOMER, validate="m:1")
    return payers.select(
        *(BY_CUSTOMER, "payer", "kind", "signs", "period"),
        accountId=uuid_text("account_id"),
        counterparty="name",
        usualDay="anchor",
        dueDates="due_dates",
        datesPaid="dates_paid",
        longestGap="longest_gap",
        firstDate="first_date",
        lastDate="last_date",
        nextExpectedDate="next_date",
        variation=pl.col("variation").cast(UNITS["ratio"]),
        recentDays=seen_days.clip(upper_bound=WINDOW),
        **{_column(kind): pl.col(name).cast(UNITS["probability"]) for kind, name in PROBABILITIES.items()},
    )


def _payments(facts: Facts) -> pl.LazyFrame:
    """Return the payments of these payers; `is_usual` marks one of each payer."""
    through = facts.history.lazy().select(BY_CUSTOMER, "data_through")
    place, number = pl.int_range(pl.len()).over(PAYER), pl.len().over(PAYER)
    age = (pl.col("data_through") - pl.col("date")).dt.total_days()
    return (
        income_rows(facts)
        .lazy()
        .join(through, on=BY_CUSTOMER, validate="m:1")
        .sort(*PAYER, "amount", "transaction_id")
        .with_columns(accountId=uuid_text("account_id"), is_recent=age < WINDOW, is_usual=place == (number - 1) // 2)
    )


REGULAR_INCOME = Table(
    id="regular_income",
    name="Regular income",
    hierarchy="payer",
    type="summary",
    is_usually_empty=True,
    meaning="Everyone who pays regularly into an account, however many payments are missing, and the probability of "
    "each kind of income. Takings that a processor passes on, cash, refunds, returned payments, interest, loans, "
    "owners' money and own transfers are left out.",
    keys=(
        Column("accountId", "text", meaning="account that is paid"),
        Column("payer", "text", meaning="the payer's counterparty group, or the words that recur if nobody is named"),
    ),
    details=(
        Column("counterparty", "text", meaning="counterparty of its latest payment that names one"),
        Column("kind", "text", meaning="the likeliest kind"),
        *(Column(_column(kind), "probability", meaning=f"that it is {words}") for kind, words in _WORDS.items()),
        Column("signs", "text", meaning="the evidence for the probabilities"),
        Column("period", "text", meaning="how often: business_daily to quarterly"),
        Column("usualDay", "text", meaning="the day that payments fall on; null: irregular"),
        Column("dueDates", "count", meaning="due dates since its first payment; until its last one if it has stopped"),
        Column("datesPaid", "count", meaning="due dates with a payment"),
        Column("longestGap", "count", meaning="most due dates in a row without a payment, between two payments"),
        Column("firstDate", "date", meaning="date of its first payment"),
        Column("lastDate", "date", meaning="date of its latest payment"),
        Column("nextExpectedDate", "date", meaning="null once it has stopped"),
        Column(
            "variation",
            "ratio",
            meaning="1.4826 × the median difference from the median payment, divided by the median payment",
        ),
        Column(
            "recentDays",
            "count",
            meaning="days of the last 180 in which it has been paying, from one usual gap before its first payment on",
        ),
    ),
    listed=_payers,
    sources=(
        Source(
            _payments,
            (
                Total("payments", "count", _ONE, meaning="payments seen"),
                Total("amount", "AUD", _AMOUNT, meaning="paid in all"),
                Total("usualAmount", "AUD", pl.when("is_usual").then(_AMOUNT), meaning="the (lower) median payment"),
                Total("recentAmount", "AUD", pl.when("is_recent").then(_AMOUNT), meaning="paid in the last 180 days"),
            ),
        ),
    ),
    derived=(
        Derived(
            "paidShare",
            "ratio",
            ("datesPaid", "dueDates"),
            ratio(pl.col("datesPaid"), pl.col("dueDates")),
            "datesPaid / dueDates",
        ),
        Derived(
            "monthlyAmount",
            "AUD",
            ("recentAmount", "recentDays", "nextExpectedDate"),
            pl.when(pl.col("nextExpectedDate").is_not_null()).then(
                pl.col("recentAmount") * 487 / (pl.col("recentDays") * 16)  # 365.25 / 12 = 487 / 16
            ),
            "recentAmount × 365.25 / 12 / recentDays; null once it has stopped",
        ),
    ),
    order=("accountId", "payer"),
)
