"""The largest payers and payees, and how much of revenue depends on a few payers."""

import polars as pl

from pipelines.enrichment.matching.reversals import party
from pipelines.figures import words
from pipelines.figures.facts import Facts
from pipelines.figures.periods import BY_CUSTOMER
from pipelines.figures.tables import Column, Derived, Source, Table, Total
from pipelines.reports.aggregate.revenue import FEE_RATES
from pipelines.vocabulary.plans import collect
from pipelines.vocabulary.report_values import ratio
from pipelines.vocabulary.schemas import most_frequent

WINDOW = 365  # days; this and the next two are our judgement
TREND = 90  # days
MAX_LISTED = 10  # counterparties in each direction
MAX_SQUARED = 10**15  # AUD; squares of larger amounts, summed over any history, would not fit a decimal

_SIZE, _AGE = pl.col("amount").abs(), pl.col("age")
_IN_LAST_QUARTER, _IN_QUARTER_BEFORE = _AGE < TREND, (_AGE >= TREND) & (_AGE < 2 * TREND)
_ONE = pl.lit(1)


def _payments(facts: Facts) -> pl.LazyFrame:
    """Return rows of the window with other parties, by `direction` and `party` (null: the row names nobody)."""
    direction = pl.when(words.is_credit()).then(pl.lit("in")).otherwise(pl.lit("out"))
    rows = facts.rows.lazy().filter(pl.col("is_external"), _AGE < WINDOW, pl.col("amount") != 0)
    return rows.with_columns(direction=direction, party=party())


_BY_PARTY = (BY_CUSTOMER, "direction", "party")


def top_counterparties(facts: Facts) -> pl.DataFrame:
    """Return the MAX_LISTED counterparties of each direction that paid or were paid most, with all their figures."""
    named = _payments(facts).filter(pl.col("party").is_not_null())
    sums = named.group_by(_BY_PARTY).agg(
        amount=_SIZE.sum(),
        transactionCount=pl.len(),
        monthsSeen=pl.col("month").n_unique(),
        firstDate=pl.col("date").min(),
        lastDate=pl.col("date").max(),
        lastQuarter=_SIZE.filter(_IN_LAST_QUARTER).sum(),
        quarterBefore=_SIZE.filter(_IN_QUARTER_BEFORE).sum(),
    )
    order = (BY_CUSTOMER, "direction", "amount", "party")
    rank = pl.int_range(1, pl.len() + 1).over(BY_CUSTOMER, "direction")
    largest = (
        sums.sort(order, descending=[False, False, True, False])
        .with_columns(rank=rank)
        .filter(pl.col("rank") <= MAX_LISTED)
    )
    details = (
        named.join(largest.select(*_BY_PARTY), on=_BY_PARTY, how="semi")
        .group_by(_BY_PARTY)
        .agg(name=most_frequent("counterparty_name"), kind=most_frequent("counterparty_kind"))
    )
    return largest.join(details, on=_BY_PARTY, how="left", validate="1:1").pipe(collect)


def _ranked_rows(facts: Facts) -> pl.LazyFrame:
    shown = facts.cached(top_counterparties).lazy().select(*_BY_PARTY, "rank")
    month = (*_BY_PARTY, "month")
    first = pl.col("transaction_id") == pl.col("transaction_id").min().over(month)
    return _payments(facts).join(shown, on=_BY_PARTY, validate="m:1").with_columns(first_of_month=first)


_TOTALS = (
    Total("amount", "AUD", _SIZE, meaning="paid by or to the counterparty; a refund counts in the other direction"),
    Total("transactionCount", "count", _ONE, meaning="payments"),
    Total("monthsSeen", "count", pl.when("first_of_month").then(_ONE), meaning="calendar months with a payment"),
    Total(
        "lastQuarter", "AUD", pl.when(_IN_LAST_QUARTER).then(_SIZE), meaning="the part of `amount` in the last 90 days"
    ),
    Total(
        "quarterBefore",
        "AUD",
        pl.when(_IN_QUARTER_BEFORE).then(_SIZE),
        meaning="the part of `amount` in the 90 days before",
    ),
)
TOP_COUNTERPARTIES = Table(
    id="top_counterparties",
    name="Top counterparties",
    hierarchy="counterparty",
    type="summary",
    meaning="The ten that paid most and the ten that were paid most, in the 365 days to the customer's last row. All "
    "spellings of a counterparty count as one. Payments that name nobody have no row, but `share` is a share of all "
    "payments, including these. Own transfers are left out.",
    keys=(
        Column("direction", "text", meaning="`in`: it paid; `out`: it was paid"),
        Column("rank", "count", meaning="by amount; of equals, by name"),
    ),
    details=(
        Column("name", "text", meaning="its most frequent spelling"),
        Column("kind", "text", meaning="business, person, bank, processor, government, lender; null: not known"),
        Column("firstDate", "date", meaning="date of its first payment in the window"),
        Column("lastDate", "date", meaning="date of its last payment in the window"),
    ),
    listed=lambda facts: facts.cached(top_counterparties).lazy().drop("party"),
    sources=(
        Source(_ranked_rows, _TOTALS, is_listed=True),
        Source(_payments, (Total("allPayments", "AUD", _SIZE),), keys=("direction",)),
    ),
    derived=(
        Derived(
            "share",
            "ratio",
            ("amount", "allPayments"),
            ratio(pl.col("amount"), pl.col("allPayments")),
            "amount / all money of that direction in the window, own transfers left out",
        ),
        Derived(
            "trend",
            "ratio",
            ("lastQuarter", "quarterBefore"),
            ratio(pl.col("lastQuarter"), pl.col("quarterBefore")),
            "lastQuarter / quarterBefore; null when nothing was paid in the 90 days before",
        ),
    ),
    hidden=("allPayments",),
    order=("direction", "rank"),
)


_BASES = ("all_payers", "direct_payers")
_PAYER = (BY_CUSTOMER, "basis", "party")


def _receipts(facts: Facts) -> pl.LazyFrame:
    """Return receipts of revenue in the window, by `basis` and `party`: all, and those not paid out by a processor."""
    bases = pl.LazyFrame({"basis": _BASES})
    received = (pl.col("is_revenue"), words.is_credit(), _AGE < WINDOW)
    rows = facts.rows.lazy().filter(*received).with_columns(party=party())
    through_processor = pl.col("counterparty_kind").eq_missing(pl.lit("processor")) | pl.col("category").is_in(
        FEE_RATES["category"].unique().to_list()
    ).fill_null(value=False)
    return rows.join(bases, how="cross").filter((pl.col("basis") == _BASES[0]) | ~through_processor)


def payers(facts: Facts) -> pl.DataFrame:
    """Return what each payer paid, and its rank, the largest first. The rank is null where nobody is named."""
    is_named = pl.col("party").is_not_null()
    return (
        _receipts(facts)
        .group_by(_PAYER)
        .agg(paid=pl.col("money_in").sum())
        .sort(BY_CUSTOMER, "basis", "paid", "party", descending=[False, False, True, False])
        .with_columns(rank=pl.when(is_named).then(is_named.cum_sum().over(BY_CUSTOMER, "basis")))
        .pipe(collect)
    )


def _receipts_by_payer(facts: Facts) -> pl.LazyFrame:
    """Return receipts with `whole` (all receipts of the basis) and `first_of_payer` (marks one row per payer)."""
    first = pl.col("transaction_id") == pl.col("transaction_id").min().over(_PAYER)
    whole = pl.col("money_in").sum().over(BY_CUSTOMER, "basis")
    paid = facts.cached(payers).lazy()
    rows = _receipts(facts).with_columns(first_of_payer=first, whole=whole)
    return rows.join(paid, on=_PAYER, how="left", validate="m:1")


def _concentrations(facts: Facts) -> pl.LazyFrame:
    paid, rank = pl.col("paid"), pl.col("rank")
    from_largest = (paid.filter(rank <= count).sum().alias(_name_of_largest(count)) for count in _LARGEST)
    squares = _square("paid", paid.sum()).filter(rank.is_not_null()).sum()
    by_basis = facts.cached(payers).lazy().group_by(BY_CUSTOMER, "basis")
    return by_basis.agg(*from_largest, receipts=paid.sum(), payerCount=rank.count(), squares=squares)


def _square(factor: str, whole: pl.Expr) -> pl.Expr:
    """Return what a payment adds to the sum of squares of payers' totals: `factor` times the total of its payer."""
    exact = pl.Decimal(38, 4)
    return pl.when(whole < MAX_SQUARED).then(pl.col(factor)).cast(exact) * pl.when(whole < MAX_SQUARED).then(
        "paid"
    ).cast(exact)


def _name_of_largest(count: int) -> str:
    return f"fromLargest{count}"


def _from_largest(count: int) -> Total:
    return Total(_name_of_largest(count), "AUD", pl.when(pl.col("rank") <= count).then("money_in"))


def _share_of_largest(count: int) -> Derived:
    name = _name_of_largest(count)
    who = "the largest payer" if count == 1 else f"the {count} largest payers"
    return Derived(
        f"largest{count}Share",
        "ratio",
        (name, "receipts"),
        ratio(pl.col(name), pl.col("receipts")),
        f"what {who} paid / receipts",
    )


def _herfindahl() -> Derived:
    small = pl.when(pl.col("receipts") < MAX_SQUARED).then("receipts").cast(pl.Decimal(38, 4))
    return Derived(
        "hhi",
        "ratio",
        ("squares", "receipts"),
        ratio(pl.col("squares"), small * small),
        "Herfindahl index: the sum of the squares of payers' shares of receipts; 1 if one payer pays everything, near "
        "0 if there are many small payers; null if the receipts are 10^15 AUD or more",
    )


_LARGEST = (1, 3, 5, 10)
REVENUE_CONCENTRATION = Table(
    id="revenue_concentration",
    name="Concentration of revenue",
    hierarchy="customer",
    type="summary",
    meaning="How much of the receipts of revenue in the 365 days to the customer's last row comes from the largest "
    "payers, refunds not deducted. Receipts that name nobody count in the total, as if each came from another payer. "
    "A processor pays out what many customers paid: `direct_payers` leaves its payouts out, also from the total.",
    keys=(Column("basis", "text", meaning="`all_payers`, or `direct_payers`: without payouts of processors"),),
    sources=(
        Source(
            _receipts_by_payer,
            (
                Total("receipts", "AUD", pl.col("money_in"), meaning="all receipts of revenue on this basis"),
                Total(
                    "payerCount",
                    "count",
                    pl.when(pl.col("first_of_payer") & pl.col("rank").is_not_null()).then(_ONE),
                    meaning="known payers",
                ),
                *(_from_largest(count) for count in _LARGEST),
                Total("squares", "AUD squared", _square("money_in", pl.col("whole"))),
            ),
            summed=_concentrations,
        ),
    ),
    derived=(*(_share_of_largest(count) for count in _LARGEST), _herfindahl()),
    hidden=(*(_name_of_largest(count) for count in _LARGEST), "squares"),
    order=("basis",),
)
