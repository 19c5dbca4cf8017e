"""What money was for: by category and month, over the last year, and as a cash profit and loss statement."""

from collections.abc import Callable

import polars as pl

from pipelines.figures.facts import Facts
from pipelines.figures.periods import BY_CUSTOMER
from pipelines.figures.tables import Column, Derived, Source, Table, Total, sum_totals
from pipelines.reports.aggregate.cash_flow import MONTH, PARTIAL, months
from pipelines.reports.aggregate.flows import NET
from pipelines.vocabulary.plans import collect
from pipelines.vocabulary.report_values import ratio
from pipelines.vocabulary.taxonomy import TAXONOMY

GROUP = Column("categoryGroup", "text", meaning="group of the taxonomy")
CATEGORY = Column("category", "text", meaning="category of the taxonomy")
OWN_TRANSFER = Column("ownTransfer", "boolean", meaning="between own accounts: neither income nor cost")
_KEYS = ("categoryGroup", "category", "ownTransfer")
_SUMMED = ("money_in", "money_out", "amount")


def rows_by_category(facts: Facts) -> pl.LazyFrame:
    """Return all rows with their keys; own transfers are marked."""
    named = facts.rows.lazy().with_columns(categoryGroup="category_group", ownTransfer=~pl.col("is_external"), rows=1)
    return _in_window(named, facts).pipe(_add_line)


def by_category_and_month(facts: Facts) -> pl.DataFrame:
    """Sum rows for all tables of this module."""
    named = facts.rows.lazy().with_columns(categoryGroup="category_group", ownTransfer=~pl.col("is_external"))
    sums = named.group_by(BY_CUSTOMER, *_KEYS, "month", "is_external").agg(pl.col(_SUMMED).sum(), rows=pl.len())
    return _in_window(sums, facts).pipe(_add_line).pipe(collect)


def _in_window(frame: pl.LazyFrame, facts: Facts) -> pl.LazyFrame:
    """Add `in_window`: the month is one of the last twelve that the history covers fully."""
    first, last = pl.col("first_date"), pl.col("data_through")
    first_full = pl.when(first.dt.day() == 1).then(first).otherwise(first.dt.month_start().dt.offset_by("1mo"))
    next_day = last + pl.duration(days=1)
    end = next_day.dt.month_start()
    begin = pl.max_horizontal(first_full, end.dt.offset_by("-12mo"))
    window = facts.history.lazy().select(BY_CUSTOMER, begin=begin, end=end)
    within = (pl.col("month") >= pl.col("begin")) & (pl.col("month") < pl.col("end"))
    return frame.join(window, on=BY_CUSTOMER, validate="m:1").with_columns(in_window=within)


def _sum_coarser(keys: tuple[str, ...], totals: tuple[Total, ...]) -> Callable[[Facts], pl.LazyFrame]:
    """Sum totals from `by_category_and_month`, which is faster than from rows and gives the same."""
    return lambda facts: sum_totals(facts.cached(by_category_and_month).lazy(), keys, totals)


def _source(keys: tuple[str, ...], totals: tuple[Total, ...]) -> Source:
    return Source(rows_by_category, totals, keys, _sum_coarser(keys, totals))


_FLOWS = (
    Total("moneyIn", "AUD", pl.col("money_in"), meaning="what came in"),
    Total("moneyOut", "AUD", pl.col("money_out"), meaning="what went out"),
    Total("transactionCount", "count", pl.col("rows"), meaning="posted rows"),
)


def _add_line(frame: pl.LazyFrame) -> pl.LazyFrame:
    """Add `line` of the cash profit and loss statement."""
    lines = {slug: category.line for slug, category in TAXONOMY.categories.items()}
    line = pl.col("category").replace_strict(lines, default="unallocated", return_dtype=pl.String())
    return frame.with_columns(line=line)


CATEGORIES = Table(
    id="category_by_month",
    name="Categories by month",
    hierarchy="category",
    type="time_series",
    meaning="A row for each category and month with transactions. Own transfers are included and marked.",
    keys=(GROUP, CATEGORY, OWN_TRANSFER, MONTH),
    sources=(_source((*_KEYS, "month"), _FLOWS),),
    derived=(NET,),
    order=(*_KEYS, "month"),
)


def _last_year(total: Total) -> Total:
    within = pl.when("in_window").then(total.part)
    return Total(f"{total.name}12m", total.unit, within, meaning=f"{total.meaning} in the last 12 complete months")


def _external(name: str, part: str) -> Total:
    return Total(name, "AUD", pl.when(pl.col("in_window") & pl.col("is_external")).then(part))


def _share(name: str, part: str, whole: str, words: str) -> Derived:
    share = pl.when(~pl.col("ownTransfer")).then(ratio(pl.col(part), pl.col(whole)))
    return Derived(name, "ratio", ("ownTransfer", part, whole), share, words)


CATEGORY_SUMMARY = Table(
    id="category_summary",
    name="Categories",
    hierarchy="category",
    type="summary",
    meaning="Every category over the whole history, and over the last twelve calendar months that the history covers "
    "fully (or as many as there are).",
    keys=(GROUP, CATEGORY, OWN_TRANSFER),
    sources=(
        _source(_KEYS, (*_FLOWS, *(_last_year(each) for each in _FLOWS))),
        _source((), (_external("allMoneyIn12m", "money_in"), _external("allMoneyOut12m", "money_out"))),
    ),
    derived=(
        NET,
        _share(
            "shareOfMoneyIn12m",
            "moneyIn12m",
            "allMoneyIn12m",
            "moneyIn12m / all that came in from others in these months; null for own transfers",
        ),
        _share(
            "shareOfMoneyOut12m",
            "moneyOut12m",
            "allMoneyOut12m",
            "moneyOut12m / all that went out to others in these months; null for own transfers",
        ),
    ),
    hidden=("allMoneyIn12m", "allMoneyOut12m"),
    order=_KEYS,
)


def _income(name: str, line: str, meaning: str) -> Total:
    return Total(name, "AUD", pl.when(pl.col("is_external") & (pl.col("line") == line)).then("amount"), meaning=meaning)


def _cost(name: str, line: str, meaning: str) -> Total:
    part = pl.when(pl.col("is_external") & (pl.col("line") == line)).then(-pl.col("amount"))
    return Total(name, "AUD", part, meaning=meaning)


_LINES = (
    _income("revenue", "revenue", "trading receipts less refunds and chargebacks"),
    _cost("costOfSales", "cost_of_sales", "goods, materials, subcontractors, freight, payment fees"),
    _income("otherIncome", "other_income", "interest, grants, refunds from suppliers and the like"),
    _cost("payroll", "payroll", "wages, superannuation, payroll tax and the like"),
    _cost("premises", "premises", "rent, utilities, repairs, rates and the like"),
    _cost("operations", "operations", "software, insurance, advertising, professional fees and the like"),
    _cost("vehicleTravel", "vehicle_travel", "fuel, vehicles, travel"),
    _cost("financeCosts", "finance_costs", "interest, fees of banks and lenders, penalties"),
    _cost("tax", "tax", "GST and income tax paid, less refunds"),
    _income("financing", "financing", "borrowed less repaid (net)"),
    _income("investing", "investing", "proceeds from selling assets (net)"),
    _income("owner", "owner", "paid in by owners less taken out (net)"),
    _income(
        "returnedPayments",
        "none",
        "own payments that came back; the line of the original payment still counts it in full",
    ),
    _income("unallocated", "unallocated", "money that belongs to no line: cash, crypto, unknown (net)"),
)


def _result(name: str, plus: tuple[str, ...], minus: tuple[str, ...], meaning: str) -> Derived:
    value = pl.sum_horizontal(*(pl.col(each) for each in plus), *(-pl.col(each) for each in minus))
    words = " − ".join([" + ".join(plus), *minus])
    return Derived(name, "AUD", (*plus, *minus), value, words, meaning=meaning)


PROFIT_AND_LOSS = Table(
    id="profit_and_loss",
    name="Cash profit and loss",
    hierarchy="customer",
    type="time_series",
    meaning="A row for each calendar month, a column for each line of the taxonomy. Cash basis: "
    "money counts when it moves, GST included. Costs are positive; own transfers are left out.",
    keys=(MONTH,),
    details=(PARTIAL,),
    listed=lambda facts: facts.cached(months).lazy().select(BY_CUSTOMER, "month", "partial"),
    sources=(_source(("month",), _LINES),),
    derived=(
        _result("grossProfit", ("revenue",), ("costOfSales",), "before running costs"),
        _result(
            "operatingResult",
            ("grossProfit", "otherIncome"),
            ("payroll", "premises", "operations", "vehicleTravel"),
            "before finance costs and tax",
        ),
        _result("resultAfterTax", ("operatingResult",), ("financeCosts", "tax"), "after finance costs and tax paid"),
        _result(
            "net",
            ("resultAfterTax", "financing", "investing", "owner", "returnedPayments", "unallocated"),
            (),
            "all that moved; the same as `net` of `monthly_cash_flow`",
        ),
    ),
    order=("month",),
)
