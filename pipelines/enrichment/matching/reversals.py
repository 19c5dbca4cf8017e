"""What was undone or done twice: returned payments, refunds, and charges that look like one charged again.

Each is a pair of rows of one customer, found by exact amounts and near dates, one to one. A return is the whole payment
coming back within days. A refund may be part of what was paid, months later, but only ever between the same two. Both
meet the latest payment that is still free: what went wrong last is put right first.
"""

import polars as pl

from pipelines.enrichment.matching.pairing import PAIRS, pair_latest_first
from pipelines.vocabulary.schemas import MONEY, posted

RETURN_BUSINESS_DAYS = 5  # direct entry gives banks two business days to return an item, a cheque takes up to five
REFUND_DAYS = 120  # the longest in which card schemes let a sale be disputed
REFUND_LOOK_BACK = 20  # payments to, or from, the same counterparty among which the one refunded in part is sought
DUPLICATE_DAYS = 3
DUPLICATE_FROM = 10  # AUD: below, the same amount twice is a habit
HABIT_ROWS = 5  # so many equal charges, most within DUPLICATE_DAYS of each other, have a rhythm of their own

_RETURNS = ("returned_payment", "dishonoured_receipt")
_REFUNDS = ("refund_received", "refund_paid")
_REPEATED_BY_NATURE = ("bank_fees", "merchant_fees", "interest_charged", "loan_fees")  # a fee for each event
_REPEATED_BY_NATURE_GROUPS = ("transfer", "distress", "high_risk")  # as are fees for refusal, cash and bets

_OUT = pl.col("amount") < 0
_SIZE = pl.col("amount").abs()
_ORDER = ("date", "closes", "transaction_id")  # on one day, what is undone comes before what undoes it


def party() -> pl.Expr:
    """Whom a payment is with: the same for one counterparty in all its spellings, as far as that is known."""
    return pl.coalesce("counterparty_group", "counterparty_name")


def pair_returns(numbered: pl.DataFrame) -> pl.DataFrame:
    """Payments and receipts that bounced (`opened`) and the rows that bring them back (`closed`): PAIRS.

    The same amount in the same account the other way, at most RETURN_BUSINESS_DAYS later. The same counterparty's
    first, then any that no name speaks against: many banks print a return with a name cut short, or none.

    Args:
        numbered: rows of whole customers with their number in `row` (UInt32).
    """
    booked = _select_booked(numbered)
    returns = booked.filter(_is_return()).collect()
    counter = returns.select("customer_number", amount=-pl.col("amount")).lazy()
    items = booked.filter(~_is_return()).join(counter, on=["customer_number", "amount"], how="semi").collect()
    events = _stack_events(items, returns)
    named = _keep_within_days(
        events, pair_latest_first(events.filter(~pl.col("party").is_null()), [*_ITEM, "party"], _ORDER)
    )
    rest = _drop_paired(events, named)
    return pl.concat([named, _keep_within_days(rest, pair_latest_first(rest, _ITEM, _ORDER))])


def pair_refunds(numbered: pl.DataFrame, undone: pl.Series) -> pl.DataFrame:
    """Purchases and sales (`opened`) and what was refunded of them (`closed`): PAIRS.

    Between the same two, at most REFUND_DAYS later and not more than was paid. Refunds of the whole amount choose
    first; then parts, each of the latest payment that is large enough and still free.

    Args:
        undone: rows that bounced, so that there was nothing to refund.
    """
    booked = _select_booked(numbered)
    given_back = booked.filter(pl.col("party").is_not_null(), pl.col("category").is_in(_REFUNDS)).collect()
    dealt_with = given_back.select("customer_number", "party").lazy()
    paid = (
        booked.filter(_is_refundable(), ~pl.col("row").is_in(undone.implode()))
        .join(dealt_with, on=["customer_number", "party"], how="semi")
        .collect()
    )
    events = _stack_events(paid, given_back)
    whole = pair_latest_first(events, [*_DEALING, "size"], _ORDER).pipe(_add_dates, events).filter(_soon_enough())
    whole = whole.select(PAIRS.names())
    return pl.concat([whole, _pair_partial_refunds(_drop_paired(events, whole))])


def find_duplicate_charges(numbered: pl.DataFrame, undone: pl.Series) -> pl.Series:
    """Rows that charge the same amount from the same account to the same counterparty as one up to DUPLICATE_DAYS ago.

    The later of the two. Not what has that rhythm of its own (daily remittances, a series of every business day), nor
    what comes once an event (fees, cash, bets), nor the second try of a payment that bounced (`undone`).
    """
    charge = ("customer_number", "account_id", "amount", "party")
    charges = (
        _select_booked(numbered)
        .filter(pl.col("amount") <= pl.lit(-DUPLICATE_FROM, MONEY))
        .filter(pl.len().over("customer_number", "amount") > 1)  # few are left, cheaply
        .with_columns(party=pl.coalesce("party", "clean_description"))
        .filter(~_repeats_by_nature(), pl.col("party").is_not_null())
        .filter(~pl.col("row").is_in(undone.implode()))
        .select("row", *charge, "date", "transaction_id")
        .sort(*charge, "date", "transaction_id")
        .collect()
    )
    gaps = charges.with_columns(gap=(pl.col("date") - pl.col("date").shift(1).over(charge)).dt.total_days())
    habit = (pl.len().over(charge) >= HABIT_ROWS) & (pl.col("gap").median().over(charge) <= DUPLICATE_DAYS)
    return gaps.filter(pl.col("gap") <= DUPLICATE_DAYS, ~habit)["row"]


_ITEM = ("customer_number", "account_id", "was_out", "size")
_DEALING = ("customer_number", "was_out", "party")


def _select_booked(numbered: pl.DataFrame) -> pl.LazyFrame:
    """Rows that stand and are with somebody else, and with whom."""
    return numbered.lazy().filter(posted(), ~_is_transfer()).with_columns(party=party())


def _is_return() -> pl.Expr:
    sides = (pl.col("category") == "returned_payment") & ~_OUT | (pl.col("category") == "dishonoured_receipt") & _OUT
    return sides.fill_null(value=False)


def _is_transfer() -> pl.Expr:
    return pl.col("is_transfer").eq_missing(True)


def _is_refundable() -> pl.Expr:
    """Money spent, or taken in trade; not what is itself a refund or a return."""
    undoes = pl.col("category").is_in((*_REFUNDS, *_RETURNS)).fill_null(value=False)
    return ~undoes & (_OUT | pl.col("category_group").eq_missing("revenue"))


def _repeats_by_nature() -> pl.Expr:
    by_category = pl.col("category").is_in(_REPEATED_BY_NATURE)
    by_group = pl.col("category_group").is_in(_REPEATED_BY_NATURE_GROUPS)
    daily = pl.col("series_period") == "business_daily"
    return pl.any_horizontal(holds.fill_null(value=False) for holds in (by_category, by_group, daily))


def _stack_events(done: pl.DataFrame, undone: pl.DataFrame) -> pl.DataFrame:
    """Both sides under each other. `was_out`: whether the payment that is, or may be, undone left the account."""
    sides = [
        side.select(
            "row",
            "customer_number",
            "account_id",
            "date",
            "transaction_id",
            "counterparty_name",
            "party",
            size=_SIZE,
            was_out=_OUT if opens else ~_OUT,
            opens=pl.lit(opens),
            closes=pl.lit(not opens),
        )
        for side, opens in ((done, True), (undone, False))
    ]
    return pl.concat(sides)


def _add_dates(pairs: pl.DataFrame, events: pl.DataFrame) -> pl.DataFrame:
    """Pairs with what their two rows say: the names of the events' columns, `_then` for the earlier row."""
    read = events.select("row", "date", "size", "counterparty_name")
    return pairs.join(read, left_on="closed", right_on="row", validate="1:1").join(
        read, left_on="opened", right_on="row", suffix="_then", validate="1:1"
    )


def _keep_within_days(events: pl.DataFrame, pairs: pl.DataFrame) -> pl.DataFrame:
    soon = pl.business_day_count("date_then", "date") <= RETURN_BUSINESS_DAYS
    return pairs.pipe(_add_dates, events).filter(soon, ~_names_differ()).select(PAIRS.names())


def _names_differ() -> pl.Expr:
    """Two known names, neither of which is the other one cut short."""
    name, then = pl.col("counterparty_name").str.to_lowercase(), pl.col("counterparty_name_then").str.to_lowercase()
    return ~(name.str.starts_with(then) | then.str.starts_with(name)).fill_null(value=True)


def _soon_enough() -> pl.Expr:
    return (pl.col("date") - pl.col("date_then")).dt.total_days() <= REFUND_DAYS


def _drop_paired(events: pl.DataFrame, pairs: pl.DataFrame) -> pl.DataFrame:
    """Events that are still free."""
    return events.filter(~pl.col("row").is_in(pl.concat([pairs["opened"], pairs["closed"]]).implode()))


def _pair_partial_refunds(free: pl.DataFrame) -> pl.DataFrame:
    """Refunds of a part, each tried with the latest payment, then the one before it, and so on.

    One payment is tried a round, so the work is bounded by the number of refunds times REFUND_LOOK_BACK.
    """
    ordered = free.sort(*_DEALING, *_ORDER)
    paid = ordered.filter("opens").select(opened="row", date_then="date", size_then="size")
    opens = pl.col("opens").cast(pl.Int64)
    waiting = (
        ordered.with_columns(place=opens.cum_sum(), earlier=opens.cum_sum().over(_DEALING))
        .filter("closes", pl.col("earlier") > 0)
        .select("place", "earlier", "date", "transaction_id", "size", closed="row")
    )
    found = pl.DataFrame(schema=PAIRS)
    for back in range(1, REFUND_LOOK_BACK + 1):
        if waiting.is_empty():
            break
        met = (
            pl.concat([waiting, paid[waiting["place"] - back]], how="horizontal")
            .filter(pl.col("size") <= pl.col("size_then"), _soon_enough())
            .join(found, on="opened", how="anti")
            .sort("date", "transaction_id")
            .unique("opened", keep="first", maintain_order=True)
            .select(PAIRS.names())
        )
        found = pl.concat([found, met])
        waiting = waiting.join(met, on="closed", how="anti").filter(pl.col("earlier") > back)
    return found
