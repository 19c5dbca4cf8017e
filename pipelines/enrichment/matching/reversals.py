"""Find returned payments, charges given back, refunds, and charges that look like a repetition of another.

Each is a pair of rows of one customer, found by exact amounts and close dates, one to one. A return is the whole
payment coming back within days. A refund may be a part of the payment, months later, but only between the same two
parties. Both take the latest payment that is still free, because the latest mistake is usually corrected first.
"""

from functools import cache

import polars as pl

from pipelines.enrichment.matching.pairing import NO_PAIRS, PAIRS, pair_latest_first
from pipelines.vocabulary.plans import collect
from pipelines.vocabulary.schemas import MONEY, posted

RETURN_BUSINESS_DAYS = 5  # direct entry gives banks two business days to return an item, a cheque takes up to five
GIVEN_BACK_DAYS = 60  # a customer complains about a fee on this statement or the next (our judgement)
REFUND_DAYS = 120  # the longest period in which card schemes let a sale be disputed
REFUND_LOOK_BACK = 20  # payments with the counterparty to search for one that was refunded in part (our judgement)
DUPLICATE_DAYS = 3  # our judgement
DUPLICATE_FROM = 10  # AUD: a smaller amount twice is a habit, like a coffee (our judgement)
HABIT_ROWS = 5  # this many equal charges, most within DUPLICATE_DAYS of each other, are regular (our judgement)

_RETURNS = ("returned_payment", "dishonoured_receipt")
_REFUNDS = ("refund_received", "refund_paid")
# What a bank takes for itself, and may give back.
_CHARGES = ("bank_fees", "dishonour_fee", "overdrawn_fee", "late_fee")
_REPEATED_BY_NATURE = ("bank_fees", "merchant_fees", "interest_charged", "loan_fees")  # a fee for each event
_REPEATED_BY_NATURE_GROUPS = ("transfer", "distress", "high_risk")  # includes dishonour fees, cash and bets

_OUT = pl.col("amount") < 0
_SIZE = pl.col("amount").abs()
_ORDER = ("date", "closes", "transaction_id")  # on one day, what is undone comes before what undoes it


@cache
def party() -> pl.Expr:
    """Return the counterparty of a payment: equal for all spellings of its name, where they are known."""
    return pl.coalesce("counterparty_group", "counterparty_name")


def pair_returns(numbered: pl.DataFrame) -> pl.DataFrame:
    """Pair payments and receipts that bounced (`opened`) with the rows that return them (`closed`): PAIRS.

    A return has the same amount in the same account, in the other direction, at most RETURN_BUSINESS_DAYS later. Pairs
    with the same counterparty come first, then any whose names don't differ: many banks print a return with a name cut
    short, or none.

    Args:
        numbered: rows of whole customers with their number in `row` (UInt32).
    """
    posted_rows = _select_posted(numbered).select(*_OF_AN_EVENT, "amount", "category")
    returns = posted_rows.filter(_is_return()).pipe(collect)
    if returns.is_empty():
        return NO_PAIRS
    counter = returns.select("customer_number", amount=-pl.col("amount")).lazy()
    items = posted_rows.filter(~_is_return()).join(counter, on=["customer_number", "amount"], how="semi").pipe(collect)
    events = _stack_events(items, returns)
    named = _keep_within_days(
        events, pair_latest_first(events.filter(~pl.col("party").is_null()), [*_ITEM, "party"], _ORDER)
    )
    rest = _drop_paired(events, named)
    return pl.concat([named, _keep_within_days(rest, pair_latest_first(rest, _ITEM, _ORDER))])


def pair_charges_given_back(numbered: pl.DataFrame) -> pl.DataFrame:
    """Pair the bank's charges (`opened`) with the credits that give them back in full (`closed`): PAIRS.

    The credit has the charge's amount, account, channel and party (usually none), comes at most GIVEN_BACK_DAYS later,
    and is itself of such a category or a refund ("FEE REVERSAL"). The channel shows that it is the bank's: on a
    transfer, anybody can write such a text.
    """
    posted_rows = _select_posted(numbered)
    charges = posted_rows.filter(_OUT, pl.col("category").is_in(_CHARGES)).pipe(collect)
    if charges.is_empty():
        return NO_PAIRS
    repaid = posted_rows.filter(~_OUT, pl.col("category").is_in((*_CHARGES, "refund_received"))).collect(
        engine="in-memory"
    )
    events = _stack_events(charges, repaid, "channel")
    pairs = pair_latest_first(events, [*_ITEM, "channel", "party"], _ORDER)
    return pairs.pipe(_add_dates, events).filter(_within(GIVEN_BACK_DAYS)).select(PAIRS.names())


def pair_refunds(numbered: pl.DataFrame, undone: pl.Series) -> pl.DataFrame:
    """Pair purchases and sales (`opened`) with their refunds (`closed`): PAIRS.

    Both rows are with the same counterparty, the refund at most REFUND_DAYS later and no larger than the payment.
    Refunds of the whole amount choose first. Then partial ones take the latest payment that is large enough and free.

    Args:
        undone: rows that bounced, so that there was nothing to refund.
    """
    posted_rows = _select_posted(numbered)
    refunds = posted_rows.filter(pl.col("party").is_not_null(), pl.col("category").is_in(_REFUNDS)).collect(
        engine="in-memory"
    )
    if refunds.is_empty():
        return NO_PAIRS
    parties = refunds.select("customer_number", "party").lazy()
    paid = (
        posted_rows.filter(_is_refundable(), ~pl.col("row").is_in(undone.implode()))
        .select(*_OF_AN_EVENT, "amount")
        .join(parties, on=["customer_number", "party"], how="semi")
        .pipe(collect)
    )
    events = _stack_events(paid, refunds)
    whole = pair_latest_first(events, [*_DEALING, "size"], _ORDER).pipe(_add_dates, events).filter(_within(REFUND_DAYS))
    whole = whole.select(PAIRS.names())
    return pl.concat([whole, _pair_partial_refunds(_drop_paired(events, whole))])


def find_duplicate_charges(numbered: pl.DataFrame, undone: pl.Series) -> pl.Series:
    """Return rows that repeat a charge made at most DUPLICATE_DAYS before: same amount, account and counterparty.

    The later row of the two is returned. Left out are charges that recur this often anyway (daily remittances, a series
    of every business day), those made once per event (fees, cash, bets), and the second try of a payment that bounced
    (`undone`).
    """
    charge = ("customer_number", "account_id", "amount", "party")
    charges = (
        _select_posted(numbered)
        .filter(pl.col("amount") <= pl.lit(-DUPLICATE_FROM, MONEY))
        .filter(pl.len().over("customer_number", "amount") > 1)  # a cheap filter that leaves few rows
        .with_columns(party=pl.coalesce("party", "clean_description"))
        .filter(~_repeats_by_nature(), pl.col("party").is_not_null())
        .filter(~pl.col("row").is_in(undone.implode()))
        .select("row", *charge, "date", "transaction_id")
        .sort("date", "transaction_id")
        .pipe(collect)
    )
    gaps = charges.with_columns(gap=(pl.col("date") - pl.col("date").shift(1).over(charge)).dt.total_days())
    habit = (pl.len().over(charge) >= HABIT_ROWS) & (pl.col("gap").median().over(charge) <= DUPLICATE_DAYS)
    return gaps.filter(pl.col("gap") <= DUPLICATE_DAYS, ~habit)["row"]


_OF_AN_EVENT = ("row", "customer_number", "account_id", "date", "transaction_id", "counterparty_name", "party")
_ITEM = ("customer_number", "account_id", "was_out", "size")
_DEALING = ("customer_number", "was_out", "party")


def _select_posted(numbered: pl.DataFrame) -> pl.LazyFrame:
    """Select posted rows that are not transfers between own accounts, and add their `party`."""
    return numbered.lazy().filter(posted(), ~_is_transfer()).with_columns(party=party())


@cache
def _is_return() -> pl.Expr:
    sides = (pl.col("category") == "returned_payment") & ~_OUT | (pl.col("category") == "dishonoured_receipt") & _OUT
    return sides.fill_null(value=False)


@cache
def _is_transfer() -> pl.Expr:
    return pl.col("is_transfer").eq_missing(True)


@cache
def _is_refundable() -> pl.Expr:
    """Return whether a row spends money or is revenue, and is not itself a refund or a return."""
    undoes = pl.col("category").is_in((*_REFUNDS, *_RETURNS)).fill_null(value=False)
    return ~undoes & (_OUT | pl.col("category_group").eq_missing("revenue"))


@cache
def _repeats_by_nature() -> pl.Expr:
    by_category = pl.col("category").is_in(_REPEATED_BY_NATURE)
    by_group = pl.col("category_group").is_in(_REPEATED_BY_NATURE_GROUPS)
    daily = pl.col("series_period") == "business_daily"
    return pl.any_horizontal(holds.fill_null(value=False) for holds in (by_category, by_group, daily))


def _stack_events(done: pl.DataFrame, undone: pl.DataFrame, *also: str) -> pl.DataFrame:
    """Stack both sides in one frame, with the columns `also`. `was_out`: whether the payment that may have been undone
    left the account.
    """
    sides = [
        side.select(
            *_OF_AN_EVENT,
            *also,
            size=_SIZE,
            was_out=_OUT if opens else ~_OUT,
            opens=pl.lit(opens),
            closes=pl.lit(not opens),
        )
        for side, opens in ((done, True), (undone, False))
    ]
    return pl.concat(sides)


def _add_dates(pairs: pl.DataFrame, events: pl.DataFrame) -> pl.DataFrame:
    """Add to pairs the columns of their two rows; those of the earlier row end with `_then`."""
    read = events.select("row", "date", "size", "counterparty_name")
    return pairs.join(read, left_on="closed", right_on="row", validate="1:1").join(
        read, left_on="opened", right_on="row", suffix="_then", validate="1:1"
    )


def _keep_within_days(events: pl.DataFrame, pairs: pl.DataFrame) -> pl.DataFrame:
    soon = pl.business_day_count("date_then", "date") <= RETURN_BUSINESS_DAYS
    return pairs.pipe(_add_dates, events).filter(soon, ~_names_differ()).select(PAIRS.names())


@cache
def _names_differ() -> pl.Expr:
    """Return whether both names are known and neither is the beginning of the other."""
    name, then = pl.col("counterparty_name").str.to_lowercase(), pl.col("counterparty_name_then").str.to_lowercase()
    return ~(name.str.starts_with(then) | then.str.starts_with(name)).fill_null(value=True)


def _within(days: int) -> pl.Expr:
    return (pl.col("date") - pl.col("date_then")).dt.total_days() <= days


def _drop_paired(events: pl.DataFrame, pairs: pl.DataFrame) -> pl.DataFrame:
    """Drop the events that are in a pair."""
    return events.filter(~pl.col("row").is_in(pl.concat([pairs["opened"], pairs["closed"]]).implode()))


def _pair_partial_refunds(free: pl.DataFrame) -> pl.DataFrame:
    """Pair partial refunds. Each tries the latest payment, then the one before it, and so on.

    Each round tries one payment, so the work is bounded by the number of refunds times REFUND_LOOK_BACK.
    """
    ordered = free.sort(*_DEALING, *_ORDER)
    paid = ordered.filter("opens").select(opened="row", date_then="date", size_then="size")
    opens = pl.col("opens").cast(pl.Int64)
    waiting = (
        ordered.with_columns(place=opens.cum_sum(), earlier=opens.cum_sum().over(_DEALING))
        .filter("closes", pl.col("earlier") > 0)
        .select("place", "earlier", "date", "transaction_id", "size", closed="row")
    )
    found = NO_PAIRS
    for back in range(1, REFUND_LOOK_BACK + 1):
        if waiting.is_empty():
            break
        pairs = (
            pl.concat([waiting, paid[waiting["place"] - back]], how="horizontal")
            .filter(pl.col("size") <= pl.col("size_then"), _within(REFUND_DAYS))
            .join(found, on="opened", how="anti")
            .sort("date", "transaction_id")
            .unique("opened", keep="first", maintain_order=True)
            .select(PAIRS.names())
        )
        found = pl.concat([found, pairs])
        waiting = waiting.join(pairs, on="closed", how="anti").filter(pl.col("earlier") > back)
    return found
