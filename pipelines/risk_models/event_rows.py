"""Find the rows of events.

Only rows whose category comes from a correction, a client's rule, a list or a phrase count: the learned model alone
never caps a rating. For some customers such rows are ordinary business (`Role`). A role is recognised from several
other rows, so that neither a single row nor a further adverse one excuses those before it. Debts of workers are the one
exception: only their payment on every pay day distinguishes them from the employer's own debts.

A row counts for `days` days. They are counted up to the customer's last row of a category that no event reads, so that
a later sign of trouble doesn't let an earlier one expire.
"""

from collections.abc import Callable, Mapping
from datetime import timedelta
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
_NO_ROWS = ROWS.to_frame()
_READ = (*COLUMNS, "category_source", "description")
SURE = ("correction", "client_rule", "counterparty", "pattern")

# All numbers are our judgement.
# Practitioners or collectors are regular clients of a business that received money from them on at least CLIENTS_FROM
# days. The first and the last of these days are at least CLIENTS_FOR days apart.
CLIENTS_FROM, CLIENTS_FOR = 6, 90
MOST_WORDS, LEAST_LETTERS = 3, 6  # of a phrase that is recognised although somebody mistyped it
PAYMENTS_BEFORE, PAID_OUT = 2, 3  # a loan's last payment of at least PAID_OUT times the usual one may have paid it out
REFINANCED = 14  # days before that payment in which the money of a new lender came
AFTER_PAY_DAY, OF_WAGES = 3, Decimal("0.25")  # days; the largest share of a pay day's wages that is withheld
WITHHELD_FROM, WITHHELD_ON = 3, Decimal("0.75")  # fewest pay days with a payment, and the share of the pay days
WITHHELD_ALIKE = 2  # the largest payment of a worker's debt is at most this many times the smallest
RHYTHM = 6  # fewest pay days that show a rhythm
LEAST_PAID = Decimal("0.1")  # of a usual day's wages or super; less doesn't count as paid
ON_USUAL_DAYS = Decimal("0.9")  # share of all wages or super that is paid on days with the usual sum or more
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
    return pl.concat([_NO_ROWS, *found.values()])


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
    return _by_day(worded) if event.counted == "days" else _by_lender(worded, facts)


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
    wanted, unwanted = (search_literals(phrases) for phrases in (texts.any, texts.unless))
    has_any = _text().str.contains_any(wanted) if wanted else pl.lit(value=True)
    return has_any & ~_text().str.contains_any(unwanted) if unwanted else has_any


@cache
def _text() -> pl.Expr:
    """Return a row's text as phrases are searched in it: all references in it are alike."""
    return words_of(matching_text(pl.col("description").fill_null("")))


# -- what is counted --------------------------------------------------------------------------------------------------


def _by_day(rows: pl.DataFrame) -> pl.DataFrame:
    """Return the rows; the first row of each day counts."""
    return rows.sort(BY_CUSTOMER, "date", "transaction_id").with_columns(
        counts=pl.struct(BY_CUSTOMER, "date").is_first_distinct()
    )


def _by_lender(rows: pl.DataFrame, facts: Facts) -> pl.DataFrame:
    """Return the rows of lenders that a list names and that no new lender paid out; the last row of each counts."""
    lender = (BY_CUSTOMER, "counterparty_lender_id")
    lent = rows.filter(pl.col("counterparty_lender_id").is_not_null()).sort(BY_CUSTOMER, "date", "transaction_id")
    is_last, size = pl.struct(lender).is_last_distinct(), -pl.col("amount").cast(pl.Float64)
    is_repayment = pl.col("category_group") == "debt_service"
    usual, many = size.filter(is_repayment).median().over(lender), is_repayment.sum().over(lender) > PAYMENTS_BEFORE
    # Only the last row of a lender can be a payout: a fee or a collector after it shows that something is still owed.
    payouts = lent.filter(is_last & is_repayment & many & (size >= PAID_OUT * usual))
    rest = lent if payouts.is_empty() else lent.join(_refinanced(payouts, facts), on=lender, how="anti")
    return rest.sort(BY_CUSTOMER, "date", "transaction_id").with_columns(counts=is_last)


def _refinanced(payouts: pl.DataFrame, facts: Facts) -> pl.DataFrame:
    """Return the payouts before which another lender's money came: at least as much as all payouts that followed it."""
    funds = facts.rows.select(_READ).filter(
        pl.col("category_group") == "debt_inflow", pl.col("category") != "director_loan_in", _is_sure()
    )
    lent = funds.select(BY_CUSTOMER, "counterparty_lender_id", funds="transaction_id", on="date", lent="amount")
    since = (pl.col("date") - pl.col("on")).dt.total_days()
    pairs = payouts.join(lent, on=BY_CUSTOMER, suffix="_new").filter(
        since.is_between(0, REFINANCED),
        pl.col("counterparty_lender_id").ne_missing(pl.col("counterparty_lender_id_new")),
    )
    return pairs.filter(pl.col("lent") >= -pl.col("amount").sum().over("funds"))


# -- roles in which such rows are ordinary business -------------------------------------------------------------------


def _leave_out_nobody(rows: pl.DataFrame, facts: Facts) -> pl.DataFrame:  # noqa: ARG001  one signature for all
    return rows


def _leave_out_trade_with_practitioners(rows: pl.DataFrame, facts: Facts) -> pl.DataFrame:
    """Leave out customers whom insolvency practitioners pay regularly and at least as much as they receive."""
    received = facts.cached(_searched_rows).filter(_is_sure(), pl.col("category") == "insolvency", words.is_credit())
    return _leave_out_clients(rows, received, [BY_CUSTOMER])


def _leave_out_clients(rows: pl.DataFrame, received: pl.DataFrame, party: list[str]) -> pl.DataFrame:
    """Leave out parties that pay the customer regularly and at least as much as it pays them."""
    day = pl.col("date")
    clients = received.group_by(party).agg(
        days=day.n_unique(), span=(day.max() - day.min()).dt.total_days(), received=pl.col("amount").sum()
    )
    paid = rows.group_by(party).agg(paid=-pl.col("amount").sum())
    trade = clients.join(paid, on=party, how="inner", validate="1:1").filter(
        pl.col("days") >= CLIENTS_FROM, pl.col("span") >= CLIENTS_FOR, pl.col("received") >= pl.col("paid")
    )
    return rows.join(trade, on=party, how="anti", maintain_order="left")


def _leave_out_trade_or_sales(rows: pl.DataFrame, facts: Facts) -> pl.DataFrame:
    """Also leave out rows of customers with sales if their text has a mistyped phrase of sales.

    Sales are rows that the texts of `insolvency` exclude by their phrases `unless`.
    """
    event, paid = definitions()["insolvency"], facts.cached(_searched_rows)
    sales = paid.filter(_is_sure(), is_met(event.where), ~_is_worded(event.texts))
    mistyped = _find_mistyped(rows.join(sales, on=BY_CUSTOMER, how="semi"), event.texts.unless)
    return _leave_out_trade_with_practitioners(rows.join(mistyped, on="transaction_id", how="anti"), facts)


def _find_mistyped(rows: pl.DataFrame, phrases: tuple[str, ...]) -> pl.DataFrame:
    """Return the rows whose text has one of these phrases with one slip, if it is long enough to be recognised.

    A slip is a letter that is missing, doubled, wrong or in its neighbour's place: phrase and words are equal if at
    most one character is left out of each.
    """
    if rows.is_empty():  # true for most customers
        return rows
    wanted = pl.DataFrame({"words": [phrase.removesuffix("*") for phrase in phrases]})
    words_in_order = rows.select("transaction_id", word=_text().str.strip_chars().str.split(" ")).explode("word")
    following = [pl.col("word").shift(-n).over("transaction_id") for n in range(1, MOST_WORDS)]
    runs = [
        words_in_order.select("transaction_id", words=pl.concat_str("word", *following[:n], separator=" "))
        for n in range(MOST_WORDS)
    ]
    texts = pl.concat(runs).filter(pl.col("words").str.len_chars() >= LEAST_LETTERS)
    slips = _with_slips(wanted.filter(pl.col("words").str.len_chars() >= LEAST_LETTERS))
    return rows.join(_with_slips(texts).join(slips, on="words", how="semi"), on="transaction_id", how="semi")


def _with_slips(texts: pl.DataFrame) -> pl.DataFrame:
    """Return the texts (`words`), each also without any one of its characters."""
    at = pl.int_ranges(pl.col("words").str.len_chars())
    without = pl.col("words").str.head(pl.col("at")) + pl.col("words").str.slice(pl.col("at") + 1)
    shorter = texts.with_columns(at=at).explode("at").with_columns(words=without).drop("at")
    return pl.concat([texts, shorter])


def _leave_out_withheld_wages(rows: pl.DataFrame, facts: Facts) -> pl.DataFrame:
    """Leave out payees of similar small parts of the wages, on nearly every pay day and no other: debts of workers."""
    wages = facts.cached(_searched_rows).filter(pl.col("category") == "wages", words.is_debit(), pl.col("is_external"))
    payee, paid_on, taken = [BY_CUSTOMER, "counterparty_group"], pl.col("paid_on"), -pl.col("amount").cast(_WIDE)
    pay_days = _days_paid(wages).select(BY_CUSTOMER, pl.col("paid").cast(_WIDE), paid_on="date").sort("paid_on")
    after = rows.sort("date").join_asof(
        pay_days,
        left_on="date",
        right_on="paid_on",
        by=BY_CUSTOMER,
        tolerance=timedelta(days=AFTER_PAY_DAY),
        check_sortedness=False,
    )
    is_small = (taken <= pl.col("paid") * pl.lit(OF_WAGES, _WIDE)).fill_null(value=False)
    regular = (
        after.group_by(payee)
        .agg(first=paid_on.min(), last=paid_on.max(), met=paid_on.n_unique(), small=is_small.all(), taken=taken)
        .filter("small", pl.col("met") >= WITHHELD_FROM)
        .filter(pl.col("taken").list.max() <= WITHHELD_ALIKE * pl.col("taken").list.min())
        .join(pay_days, on=BY_CUSTOMER)
        .filter(paid_on.is_between("first", "last"))
        .group_by(*payee, "met")
        .len()
        .filter(pl.col("met") >= pl.col("len") * pl.lit(WITHHELD_ON, _WIDE))
    )
    return rows.join(regular, on=payee, how="anti", nulls_equal=True, maintain_order="left")


_WIDE = pl.Decimal(38, 4)


def _leave_out_guessed(rows: pl.DataFrame, facts: Facts) -> pl.DataFrame:
    """Leave out rows of facilities that only the model recognised."""
    is_of_facility = pl.col("facility_id").is_not_null() & pl.col("category_group").is_in(_LENT)
    known = facts.rows.select(_READ).filter(is_of_facility, _is_sure())
    return rows.join(known, on=[BY_CUSTOMER, "facility_id"], how="semi", maintain_order="left")


def _leave_out_own_collectors(rows: pl.DataFrame, facts: Facts) -> pl.DataFrame:
    """Leave out agencies that pay the customer regularly and at least as much as it pays them: they collect for it."""
    party = [BY_CUSTOMER, "counterparty_group"]
    received = (
        facts.rows.select(*party, "date", "amount", "category")
        .filter(words.is_credit(), pl.col("category").ne_missing("returned_payment"))
        .join(rows, on=party, how="semi")
    )
    return _leave_out_clients(rows, received, party)


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


def _days_paid(paid: pl.DataFrame) -> pl.DataFrame:
    """Return each day with its payments, the sum `paid` and whether any is `sure`, without days of hardly any money.

    ON_USUAL_DAYS makes the usual sum independent of small payments, however many, and of a few large ones.
    """
    days = paid.group_by(BY_CUSTOMER, "date").agg(paid=-pl.col("amount").sum(), sure=_is_sure().any())
    largest = pl.col("paid").cast(_WIDE).sort(descending=True)
    usual = largest.filter(largest.cum_sum() >= largest.sum() * pl.lit(ON_USUAL_DAYS, _WIDE)).first().over(BY_CUSTOMER)
    return days.filter(pl.col("paid") >= usual * pl.lit(LEAST_PAID, _WIDE)).sort(BY_CUSTOMER, "date")


def _gaps(paid: pl.DataFrame, ends: pl.DataFrame) -> pl.DataFrame:
    """Return each day of `_days_paid`, the days from it to the next one or the `last` day, and the gap's `end`.

    `sure_days`: how many of the customer's days have a payment that not only the model recognised. `nth`: the gap's
    number, from 0.
    """
    days = _days_paid(paid).lazy()
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
