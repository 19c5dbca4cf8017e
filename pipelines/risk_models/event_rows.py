"""Find the rows of events.

Only rows whose category comes from a correction, a client's rule, a list or a phrase count: the learned model alone
never caps a rating. For some customers such rows are ordinary business (`Role`). A role is recognised from other rows,
so that a further adverse row never excuses the ones before it.

A row counts for `days` days. They are counted up to the customer's last row of a category that no event reads, so that
a later sign of trouble doesn't let an earlier one expire.
"""

from collections.abc import Callable, Mapping
from decimal import Decimal
from functools import cache

import polars as pl

from pipelines.enrichment.wording.phrases import search_literals, words_of
from pipelines.enrichment.wording.text import matching_text
from pipelines.figures import words
from pipelines.figures.facts import Facts
from pipelines.figures.periods import BY_CUSTOMER
from pipelines.metrics.rows import COLUMNS, is_met
from pipelines.risk_models.event_definitions import Event, Role, Texts, definitions
from pipelines.vocabulary.plans import AS_WRITTEN
from pipelines.vocabulary.schemas import MONEY, UUID

ROWS = pl.Schema(
    {
        BY_CUSTOMER: pl.Int64(),
        "code": pl.String(),  # of the event
        "transaction_id": UUID,
        "date": pl.Date(),  # from which the row counts for `days`
        "amount": MONEY,  # never negative
        "counts": pl.Boolean(),  # it adds 1 to the event's count
    }
)
_READ = (*COLUMNS, "category_source", "description")
SURE = ("correction", "client_rule", "counterparty", "pattern")

# All numbers are our judgement.
# Practitioners are regular clients of a business that received money from them on at least CLIENTS_FROM days. The first
# and the last of these days are at least CLIENTS_FOR days apart.
CLIENTS_FROM, CLIENTS_FOR = 6, 90
SALES_PER_OTHER = 4  # payments for sales for each other one: people mistype a text now and then
PAYMENTS_BEFORE, PAID_OUT = 2, 3  # a loan's last payment of at least PAID_OUT times the usual one has paid it out
NEAR_PAY_DAY, OF_WAGES = 3, Decimal("0.25")  # days around a pay day; the largest share of its wages that is withheld
RHYTHM = 6  # fewest pay days that show a rhythm
PAY_DAYS_MISSED, GRACE = 2, 7  # wages are missed after this many usual gaps plus this many days
SUPER_SILENT = 130  # days: more than a quarter and the 28 days that are allowed for payment
SUPER_BEFORE = 2  # fewest days with super before it can be missed
_LENT = ("debt", "debt_service")  # groups of rows that belong to a facility


def event_rows(facts: Facts) -> pl.DataFrame:
    """Return all rows of events (schema ROWS), however old, sorted by event and date."""
    return facts.cached(_event_rows)


@cache
def searched_categories() -> tuple[str, ...]:
    """Return the categories of all rows that matter to any event."""
    return tuple(sorted({*_DISTRESS, *(slug for each in definitions().values() for slug in each.where.categories)}))


def _searched_rows(facts: Facts) -> pl.DataFrame:
    return facts.rows.select(_READ).filter(pl.col("category").is_in(searched_categories()))


def _event_rows(facts: Facts) -> pl.DataFrame:
    found: dict[str | None, pl.DataFrame] = {}
    occur = facts.cached(_searched_rows).select(is_event.any() for is_event in _event_filters()).row(0)
    for (code, event), occurs in zip(definitions().items(), occur, strict=True):
        if occurs:  # rarely, and checking texts and roles of no rows still takes time
            counted = _count_rows(facts, code, event, found.get(event.except_for))
            found |= {} if counted.is_empty() else {code: _as_rows(code, counted)}
    return pl.concat([pl.DataFrame(schema=ROWS), *found.values()])


@cache
def _event_filters() -> tuple[pl.Expr, ...]:
    """Return for each event whether a row could be one of its rows."""
    return tuple(is_met(event.where).alias(code) for code, event in definitions().items())


def _count_rows(facts: Facts, code: str, event: Event, besides: pl.DataFrame | None) -> pl.DataFrame:
    """Return the rows of one event, without those of the event `besides`, and whether each `counts`."""
    searched = facts.cached(_searched_rows).filter(is_met(event.where))
    rows = searched if besides is None else searched.join(besides, on="transaction_id", how="anti")
    if event.counted == "gaps":
        return _GAPS[code](facts, rows)
    sure = rows.filter(_is_sure())
    if sure.is_empty():
        return sure
    worded = sure.filter(_is_worded(event.texts)).pipe(_LEAVE_OUT[event.unless], facts)
    return _by_day(worded) if event.counted == "days" else _by_lender(worded)


def _as_rows(code: str, counted: pl.DataFrame) -> pl.DataFrame:
    return counted.select(
        BY_CUSTOMER,
        pl.lit(code).alias("code"),
        "transaction_id",
        "date",
        pl.col("amount").abs().cast(MONEY),
        "counts",
    ).sort(BY_CUSTOMER, "date", "transaction_id")


@cache
def _is_sure() -> pl.Expr:
    return pl.col("category_source").is_in(SURE).fill_null(value=False)


@cache
def _is_worded(texts: Texts) -> pl.Expr:
    text = words_of(matching_text(pl.col("description").fill_null("")))
    wanted, unwanted = (search_literals(phrases) for phrases in (texts.any, texts.unless))
    has_any = text.str.contains_any(wanted) if wanted else pl.lit(value=True)
    return has_any & ~text.str.contains_any(unwanted) if unwanted else has_any


# -- what is counted --------------------------------------------------------------------------------------------------


def _by_day(rows: pl.DataFrame) -> pl.DataFrame:
    """Return the rows; the first row of each day counts."""
    return rows.sort(BY_CUSTOMER, "date", "transaction_id").with_columns(
        counts=pl.struct(BY_CUSTOMER, "date").is_first_distinct()
    )


def _by_lender(rows: pl.DataFrame) -> pl.DataFrame:
    """Return the rows of lenders that a list names and that were not paid out; the last row of each lender counts."""
    lender = (BY_CUSTOMER, "counterparty_lender_id")
    lent = rows.filter(pl.col("counterparty_lender_id").is_not_null()).sort(BY_CUSTOMER, "date", "transaction_id")
    is_last, size = pl.struct(lender).is_last_distinct(), -pl.col("amount").cast(pl.Float64)
    usual = size.filter(pl.col("category_group") == "debt_service").median().over(lender)
    is_large = (pl.len().over(lender) > PAYMENTS_BEFORE) & (size >= PAID_OUT * usual)
    # A fee or a collector after that shows that something is still owed.
    is_payout = is_last & (pl.col("category_group") == "debt_service") & is_large
    return lent.with_columns(counts=is_last).filter(~is_payout.any().over(lender).fill_null(value=False))


# -- roles in which such rows are ordinary business -------------------------------------------------------------------


def _leave_out_nobody(rows: pl.DataFrame, facts: Facts) -> pl.DataFrame:  # noqa: ARG001  one signature for all
    return rows


def _leave_out_trade_with_practitioners(rows: pl.DataFrame, facts: Facts) -> pl.DataFrame:
    """Leave out customers whom insolvency practitioners pay regularly and at least as much as they receive."""
    received = facts.cached(_searched_rows).filter(_is_sure(), pl.col("category") == "insolvency", words.is_credit())
    day = pl.col("date")
    clients = received.group_by(BY_CUSTOMER).agg(
        days=day.n_unique(), span=(day.max() - day.min()).dt.total_days(), received=pl.col("amount").sum()
    )
    paid = rows.group_by(BY_CUSTOMER).agg(paid=-pl.col("amount").sum())
    trade = clients.join(paid, on=BY_CUSTOMER, how="inner", validate="1:1").filter(
        pl.col("days") >= CLIENTS_FROM, pl.col("span") >= CLIENTS_FOR, pl.col("received") >= pl.col("paid")
    )
    return rows.join(trade, on=BY_CUSTOMER, how="anti", maintain_order="left")


def _leave_out_trade_or_sales(rows: pl.DataFrame, facts: Facts) -> pl.DataFrame:
    """Also leave out customers that pay practitioners the proceeds of sales, regularly, and hardly anything else.

    Such payments are those that the texts of `insolvency` exclude.
    """
    event, day, paid = definitions()["insolvency"], pl.col("date"), facts.cached(_searched_rows)
    sales = paid.filter(_is_sure(), is_met(event.where), ~_is_worded(event.texts))
    sellers = sales.group_by(BY_CUSTOMER).agg(days=day.n_unique(), span=(day.max() - day.min()).dt.total_days())
    others = rows.group_by(BY_CUSTOMER).agg(others=day.n_unique())
    trade = others.join(sellers, on=BY_CUSTOMER, how="inner", validate="1:1").filter(
        pl.col("days") >= pl.max_horizontal(CLIENTS_FROM, SALES_PER_OTHER * pl.col("others")),
        pl.col("span") >= CLIENTS_FOR,
    )
    rest = rows.join(trade, on=BY_CUSTOMER, how="anti", maintain_order="left")
    return _leave_out_trade_with_practitioners(rest, facts)


def _leave_out_withheld_wages(rows: pl.DataFrame, facts: Facts) -> pl.DataFrame:
    """Leave out rows near a pay day that are small compared with its wages: an employer passes on a worker's debt."""
    wages = facts.cached(_searched_rows).filter(pl.col("category") == "wages", words.is_debit(), pl.col("is_external"))
    near = (pl.col("date") - pl.col("paid_on")).dt.total_days().abs() <= NEAR_PAY_DAY
    withheld = (
        rows.select(BY_CUSTOMER, "transaction_id", "date", taken=-pl.col("amount"))
        .join(wages.select(BY_CUSTOMER, paid_on="date", wage=-pl.col("amount")), on=BY_CUSTOMER, how="inner")
        .filter(near)
        .group_by("transaction_id")
        .agg(pl.col("taken").first(), pl.col("wage").sum())
        .filter(pl.col("taken").cast(_WIDE) <= pl.col("wage").cast(_WIDE) * pl.lit(OF_WAGES, _WIDE))
    )
    return rows.join(withheld, on="transaction_id", how="anti", maintain_order="left")


_WIDE = pl.Decimal(38, 4)


def _leave_out_guessed(rows: pl.DataFrame, facts: Facts) -> pl.DataFrame:
    """Leave out rows of facilities that only the model recognised."""
    is_of_facility = pl.col("facility_id").is_not_null() & pl.col("category_group").is_in(_LENT)
    known = facts.rows.select(_READ).filter(is_of_facility, _is_sure())
    return rows.join(known, on=[BY_CUSTOMER, "facility_id"], how="semi", maintain_order="left")


def _leave_out_own_collectors(rows: pl.DataFrame, facts: Facts) -> pl.DataFrame:
    """Leave out agencies that pay the customer at least as much as it pays them: they collect debts owed to it."""
    party = [BY_CUSTOMER, "counterparty_group"]
    paid = rows.filter(pl.col("counterparty_group").is_not_null()).group_by(party).agg(paid=-pl.col("amount").sum())
    received = (
        facts.rows.select(*party, "amount", "category")
        .filter(words.is_credit(), pl.col("category").ne_missing("returned_payment"))
        .join(paid, on=party, how="semi")
        .group_by(party)
        .agg(received=pl.col("amount").sum())
    )
    agents = received.join(paid, on=party, how="inner", validate="1:1").filter(pl.col("received") >= pl.col("paid"))
    return rows.join(agents, on=party, how="anti", maintain_order="left")


_LEAVE_OUT: Mapping[Role | None, Callable[[pl.DataFrame, Facts], pl.DataFrame]] = {
    None: _leave_out_nobody,
    "paid_by_practitioners": _leave_out_trade_with_practitioners,
    "trades_with_practitioners": _leave_out_trade_or_sales,
    "withheld_from_wages": _leave_out_withheld_wages,
    "guessed_facility": _leave_out_guessed,
    "collects_for_the_customer": _leave_out_own_collectors,
}


# -- payments that are missing ----------------------------------------------------------------------------------------

# Signs of trouble that distinguish missed wages from staff who left.
_DISTRESS = (
    *("returned_payment", "dishonour_fee", "overdrawn_fee", "late_fee", "debt_collector", "garnishee", "insolvency"),
    "tax_interest",
)


def _missed_wages(facts: Facts, paid: pl.DataFrame) -> pl.DataFrame:
    """Return the last wages before each gap in which regular pay days were missed, dated at the gap's end.

    Wages that only the model recognised count as paid, but not towards the RHYTHM. A gap counts only if it contains
    another sign of trouble.
    """
    ends = facts.history.select(BY_CUSTOMER, pl.col("data_through").alias("last"))
    gaps = _gaps(paid, ends).with_columns(usual=pl.col("gap").median().over(BY_CUSTOMER))
    silent = gaps.filter(
        pl.col("sure_days") >= RHYTHM, pl.col("gap") >= PAY_DAYS_MISSED * pl.col("usual") + GRACE
    ).sort("date")
    if silent.is_empty():  # true for most customers
        return silent
    distress = facts.cached(_searched_rows).filter(
        _is_sure(), pl.col("category").is_in(_DISTRESS), _is_against_the_customer()
    )
    seen = silent.join_asof(
        distress.select(BY_CUSTOMER, "date", troubled_on="date").sort("date"),
        on="date",
        by=BY_CUSTOMER,
        strategy="forward",
        check_sortedness=False,
    )
    return _rows_before(paid, seen.filter(pl.col("troubled_on") <= pl.col("end")))


def _is_against_the_customer() -> pl.Expr:
    return pl.when(pl.col("category") == "returned_payment").then(words.is_credit()).otherwise(words.is_debit())


def _missed_super(facts: Facts, paid: pl.DataFrame) -> pl.DataFrame:
    """Return the last super before each gap of SUPER_SILENT days or more, dated at the gap's end.

    A gap ends with the last wages at the latest, because super is due only while wages are paid.
    """
    wages = facts.cached(_searched_rows).filter(
        pl.col("category") == "wages", words.is_debit(), pl.col("is_external"), _is_sure()
    )
    staffed = wages.group_by(BY_CUSTOMER).agg(last=pl.col("date").max(), pay_days=pl.col("date").n_unique())
    gaps = _gaps(paid, staffed.filter(pl.col("pay_days") >= RHYTHM).select(BY_CUSTOMER, "last"))
    silent = gaps.filter(pl.col("sure_days") >= SUPER_BEFORE, pl.col("gap") >= SUPER_SILENT, pl.col("nth") > 0)
    return silent if silent.is_empty() else _rows_before(paid, silent)


def _gaps(paid: pl.DataFrame, ends: pl.DataFrame) -> pl.DataFrame:
    """Return each day with a payment, the days from it to the next one or the `last` day, and the gap's `end`.

    `sure_days`: how many of the customer's days have a payment that not only the model recognised. `nth`: the gap's
    number, from 0.
    """
    days = paid.lazy().group_by(BY_CUSTOMER, "date").agg(sure=_is_sure().any()).sort(BY_CUSTOMER, "date")
    end = pl.coalesce(pl.col("date").shift(-1).over(BY_CUSTOMER), "last")
    return (
        days.join(ends.lazy(), on=BY_CUSTOMER, how="inner", validate="m:1", maintain_order="left")
        .with_columns(
            end=end, sure_days=pl.col("sure").sum().over(BY_CUSTOMER), nth=pl.int_range(pl.len()).over(BY_CUSTOMER)
        )
        .with_columns(gap=(pl.col("end") - pl.col("date")).dt.total_days())
        .drop("last")
        .collect(engine="in-memory", optimizations=AS_WRITTEN)
    )


def _rows_before(paid: pl.DataFrame, gaps: pl.DataFrame) -> pl.DataFrame:
    """Return the payments on the last day before each gap, dated at the gap's end; the first of them counts."""
    before = paid.join(gaps.select(BY_CUSTOMER, "date", "end"), on=[BY_CUSTOMER, "date"], how="inner", validate="m:1")
    return _by_day(before).with_columns(date="end")


_GAPS: Mapping[str, Callable[[Facts, pl.DataFrame], pl.DataFrame]] = {
    "missed_wages": _missed_wages,
    "missed_super": _missed_super,
}
