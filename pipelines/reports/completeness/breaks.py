"""Breaks: between which two transactions the running balance doesn't continue, and how much money is missing there.

The order of rows within a day is unknown, so a day is read as *pieces*: each row leads from its opening
(`balance - amount`) to its balance. Where one row's balance is another's opening, they follow each other, whatever the
order they were sent in. The unmatched openings and balances are the day's beginnings and ends: one of each in a whole
day. An end must be a beginning of the account's next day. An end and a beginning of the same or the next day that
differ by at most ROUNDING are rounding. The other ends and beginnings are paired in the order of days: between such a
pair money is missing, exactly `opening - balance`.

On some days all openings and balances match, apart from rounding, and yet the balances don't follow in the order sent.
If they follow in another order (`orders`), no money is missing: the day has one break, `ordering`. If they follow in no
order, for example because rows of another account are among them, each balance that doesn't follow is a break.

Days on which only some rows state a balance add their amounts to the next; but if only the first or the last row
of a day does, it is taken to close the day. No order is sought among the rows of such a day. Where this shows no break
of an account whose balances don't hold, each balance on a day that doesn't hold is compared with the one stated before
it, in the order sent. Enrichment has already checked all balances (`balance_verified`), so only accounts with a balance
that doesn't hold are read here.
"""

from decimal import Decimal

import polars as pl

from pipelines.figures.accounts import BALANCE, BY_ACCOUNT, ROUNDING
from pipelines.figures.facts import Facts
from pipelines.reports.completeness.cached import cached
from pipelines.reports.completeness.coverage import is_break, steps
from pipelines.reports.completeness.orders import Day
from pipelines.vocabulary.plans import collect
from pipelines.vocabulary.schemas import UUID

MAX_ROUNDED = 10  # breaks of an account in a calendar year; further ones don't count as rounding; our judgement
CAUSES = ("rows_missing", "sign", "repeated_row", "rounding", "ordering")
_DAY = (*BY_ACCOUNT, "date")
_CENT = Decimal("0.01")
_ROUNDED = pl.LazyFrame(
    [(cents * _CENT, days) for days in (0, 1) for cents in (-2, -1, 1, 2)],
    schema={"by": BALANCE, "days": pl.Int64()},
    orient="row",
)
_BREAKS = pl.Schema(
    {
        "customer_number": pl.Int64(),
        "account_id": UUID,
        "after_id": UUID,  # the row before the break
        "last_seen": pl.Date(),
        "balance": BALANCE,
        "before_id": UUID,  # the row after the break
        "next_seen": pl.Date(),
        "opening": BALANCE,  # of the row after the break: its balance minus its amount
        "carried": BALANCE,  # amount of rows without a balance in between
        "likely": pl.String(),  # one of CAUSES
    }
)
_NO_BREAKS = _BREAKS.to_frame(eager=False)
_JUMPS = pl.Schema(
    {
        **{name: _BREAKS[name] for name in (*BY_ACCOUNT, "after_id", "last_seen", "before_id", "next_seen", "likely")},
        **dict.fromkeys(("ended", "begun", "carried_before", "carried_through", "amount"), BALANCE),
        "has_twin": pl.Boolean(),
        "nth": pl.UInt32(),
    }
)
_AFTER = {"after_id": "transaction_id", "last_seen": "date", "ended": "value", "carried_before": "carried"}
_BEFORE = {
    "before_id": "transaction_id",
    "next_seen": "date",
    "begun": "value",
    "carried_through": "carried",
    "amount": "amount",
    "has_twin": "has_twin",
}


@cached
def breaks(facts: Facts) -> pl.LazyFrame:
    """Return one row per break (schema _BREAKS), in order; `opening - carried - balance` is missing there.

    `likely` distinguishes breaks with missing money from `rounding` and `ordering`.
    """
    broken = steps(facts).filter(is_break()).select(*BY_ACCOUNT, date=pl.col("day").cast(pl.Date))
    days = broken.pipe(collect)
    if days.is_empty():
        return _NO_BREAKS
    units = _units(facts, days.lazy().select(BY_ACCOUNT).unique()).pipe(collect)
    pieces = units.lazy().pipe(_pieces).pipe(collect)
    found = _pair_ends_with_beginnings(units, pieces).lazy().with_columns(likely=_likely_cause()).pipe(collect)
    others = _order_breaks(units, pieces, days, found)
    unseen = days.join(pl.concat([found, others]), on=BY_ACCOUNT, how="anti")
    return (
        pl.concat([found, others, _jumps_of_stated(facts, unseen).select(found.columns)])
        .lazy()
        .sort(*BY_ACCOUNT, "next_seen", "nth")
        .with_columns(
            balance=pl.col("ended") + pl.col("carried_before"),
            opening=pl.col("begun") + pl.col("carried_through"),
            carried=pl.col("carried_through") - pl.col("carried_before"),
        )
        .select(_BREAKS.names())
        .match_to_schema(_BREAKS)
    )


def _missing_amount() -> pl.Expr:
    return pl.col("begun") - pl.col("ended")


def _is_small() -> pl.Expr:
    return _missing_amount().abs() <= pl.lit(ROUNDING, BALANCE)


def _likely_cause() -> pl.Expr:
    """Name the likely cause: a wrong sign leaves −2 times the row's amount missing, a repeated row −1 times."""
    nth = _is_small().cum_sum().over(*BY_ACCOUNT, pl.col("next_seen").dt.year())
    return (
        pl.when(_is_small() & (nth <= MAX_ROUNDED))
        .then(pl.lit("rounding"))
        .when(_missing_amount() == -2 * pl.col("amount"))
        .then(pl.lit("sign"))
        .when((_missing_amount() == -pl.col("amount")) & pl.col("has_twin"))
        .then(pl.lit("repeated_row"))
        .otherwise(pl.lit("rows_missing"))
    )


def _pair_ends_with_beginnings(units: pl.DataFrame, pieces: pl.DataFrame) -> pl.DataFrame:
    """Pair the unmatched ends with the unmatched beginnings: first those that differ by rounding, then by day.

    Returns an account's keys, the columns of _AFTER and _BEFORE, and `nth`, by which an account's breaks are sorted.
    """
    left = pieces.lazy().pipe(_unmatched_ends).sort(*_DAY, "order").with_row_index("nth").pipe(collect)
    ends, begins = left.filter(pl.col("left_over") > 0), left.filter(pl.col("left_over") < 0)
    rounded = _pair_by_rounding(units, ends, begins)
    by_day = _pair_by_day(
        ends.join(rounded, left_on="nth", right_on="end", how="anti"),
        begins.join(rounded, left_on="nth", right_on="begin", how="anti"),
    )
    after = ends.select(*BY_ACCOUNT, end="nth", **_columns(_AFTER))
    before = begins.select(begin="nth", **_columns(_BEFORE))
    pairs = pl.concat([rounded, by_day]).join(after, on="end", validate="1:1").join(before, on="begin", validate="1:1")
    return pairs.sort("begin").rename({"begin": "nth"}).drop("end")


def _columns(names: dict[str, str]) -> dict[str, pl.Expr]:
    return {name: pl.col(column) for name, column in names.items()}


def _pair_by_day(ends: pl.DataFrame, begins: pl.DataFrame) -> pl.DataFrame:
    """Pair an account's ends with its beginnings, by day. Its first beginning and its last end have no other side."""
    place = pl.int_range(pl.len()).over(BY_ACCOUNT)
    numbered = ends.select(*BY_ACCOUNT, end="nth", place=place)
    return numbered.join(
        begins.select(*BY_ACCOUNT, begin="nth", place=place - 1), on=[*BY_ACCOUNT, "place"], validate="1:1"
    ).select("end", "begin")


def _pair_by_rounding(units: pl.DataFrame, ends: pl.DataFrame, begins: pl.DataFrame) -> pl.DataFrame:
    """Return the `end` and `begin` of pairs that rounding explains: the smallest differences first."""
    key = [*BY_ACCOUNT, "nth_day", "value", "copy"]
    copy = pl.int_range(pl.len()).over(*BY_ACCOUNT, "nth_day", "value")
    near = ends.lazy().with_columns(copy=copy).join(_ROUNDED, how="cross")
    candidates = (
        near.select(
            *BY_ACCOUNT,
            "copy",
            "by",
            "days",
            end="nth",
            ended="value",
            value=pl.col("value") + pl.col("by"),
            nth_day=pl.col("nth_day") + pl.col("days"),
        )
        .join(begins.lazy().with_columns(copy=copy).select(*key, "date", begin="nth"), on=key)
        .sort(pl.col("by").abs(), pl.col("days"), "begin", descending=[False, True, False])
        .pipe(collect)
    )
    within = _by_day(units.join(candidates.filter(pl.col("days") == 0), on=_DAY, how="semi"))
    chosen: dict[int, int] = {}
    ended: set[int] = set()
    for pair in candidates.iter_rows(named=True):
        if pair["begin"] in chosen or pair["end"] in ended:
            continue
        day = tuple(pair[name] for name in _DAY)
        if pair["days"] or within[day].join(pair["ended"], pair["value"]):
            chosen[pair["begin"]] = pair["end"]
            ended.add(pair["end"])
    pairs = {"end": list(chosen.values()), "begin": list(chosen)}
    return pl.DataFrame(pairs, schema={"end": pl.UInt32(), "begin": pl.UInt32()})


def _by_day(units: pl.DataFrame) -> dict[tuple[object, ...], Day]:
    by_day = units.group_by(_DAY).agg("opening", "closing")
    return {(*day,): Day(zip(openings, closings, strict=True)) for *day, openings, closings in by_day.iter_rows()}


def _order_breaks(units: pl.DataFrame, pieces: pl.DataFrame, broken: pl.DataFrame, found: pl.DataFrame) -> pl.DataFrame:
    """Return the breaks of `broken` days that only the order of rows explains, or that no order explains."""
    explained = found.filter(pl.col("likely") != "rounding").select(*BY_ACCOUNT, date="next_seen")
    unexplained = broken.join(explained, on=_DAY, how="anti")
    key = [*BY_ACCOUNT, "next_seen"]
    jumps = _jumps(units).join(unexplained, left_on=key, right_on=_DAY, how="semi")
    if jumps.is_empty():
        return found.clear()
    ordered = _ordered_days(units, pieces, found, jumps)
    own = jumps.join(ordered, left_on=key, right_on=_DAY, how="left", validate="m:1")
    tested = own.join(ordered, left_on=[*BY_ACCOUNT, "last_seen"], right_on=_DAY, how="left", suffix="_before")
    follows = (pl.col("follows") & pl.col("follows_before").fill_null(value=True)).all().over(key)
    is_first = pl.int_range(pl.len()).over(key) == 0
    return (
        tested.with_columns(likely=pl.when(follows).then(pl.lit("ordering")).otherwise(pl.lit("rows_missing")))
        .filter(is_first | (pl.col("likely") != "ordering"))
        .select(found.columns)
    )


def _jumps(units: pl.DataFrame) -> pl.DataFrame:
    """Return neighbouring rows, in the order sent, between which the balance differs by more than rounding."""
    rows = units.lazy().sort(*_DAY, "order").with_row_index("nth")
    after = {name: pl.col(column).shift(1).over(BY_ACCOUNT) for name, column in {**_AFTER, "ended": "closing"}.items()}
    before = _columns({**_BEFORE, "begun": "opening"})
    return rows.select(*BY_ACCOUNT, "nth", **after, **before).filter(~_is_small()).pipe(collect)


def _jumps_of_stated(facts: Facts, days: pl.DataFrame) -> pl.DataFrame:
    """Return where a balance on these days differs from the last one stated before it, and the rows in between.

    Rows without a balance are among those of these days, so that no unit shows the break.
    """
    if days.is_empty():
        return pl.DataFrame(schema=_JUMPS)
    place, amount = pl.int_range(pl.len()).over(_DAY), pl.col("amount").cast(BALANCE)
    silent = pl.when(pl.col("balance").is_null()).then(amount).otherwise(pl.lit(0, BALANCE))
    after = {name: pl.col(column).shift(1).over(BY_ACCOUNT) for name, column in {**_AFTER, "ended": "closing"}.items()}
    return (
        facts.rows.lazy()
        .select(*_DAY, "transaction_id", "amount", "balance", "description", order=place)
        .join(days.lazy().select(BY_ACCOUNT).unique(), on=BY_ACCOUNT, how="semi")
        .with_columns(
            amount=amount,
            balance=pl.col("balance").cast(BALANCE),
            order=pl.when(_newest_first()).then(-pl.col("order")).otherwise("order"),
            has_twin=pl.len().over(*_DAY, "amount", "description") > 1,
        )
        .sort(*_DAY, "order")
        .with_columns(carried=silent.cum_sum().over(BY_ACCOUNT), nth=pl.int_range(pl.len(), dtype=pl.UInt32))
        .filter(pl.col("balance").is_not_null())
        .with_columns(closing=pl.col("balance") - pl.col("carried"))
        .with_columns(opening=pl.col("closing") - pl.col("amount"))
        .select(*BY_ACCOUNT, "nth", **after, **_columns({**_BEFORE, "begun": "opening"}))
        .filter(~_is_small())
        .join(days.lazy(), left_on=[*BY_ACCOUNT, "next_seen"], right_on=_DAY, how="semi")
        .with_columns(likely=_likely_cause())
        .pipe(collect)
    )


def _ordered_days(units: pl.DataFrame, pieces: pl.DataFrame, found: pl.DataFrame, jumps: pl.DataFrame) -> pl.DataFrame:
    """Return days with jumps, and days before them that end as they began; `follows`: whether an order of rows does.

    A day without pieces ends as it began: no other day's balance shows it, so it must contain the one before.
    """
    days, before = (jumps.select(*BY_ACCOUNT, date=name).unique() for name in ("next_seen", "last_seen"))
    rings = before.join(pieces, on=_DAY, how="anti").join(days, on=_DAY, how="anti")
    ends = pieces.filter(pl.col("uses") > 0).select(*_DAY, before="value").sort("date")
    tested = pl.concat([days, rings]).sort("date")
    entered = tested.join_asof(ends, on="date", by=list(BY_ACCOUNT), allow_exact_matches=False, check_sortedness=False)
    read = _by_day(units.join(tested, on=_DAY, how="semi"))
    for *day, ended, begun in _joined_within(found, tested).iter_rows():
        read[(*day,)].join(ended, begun)
    follows = [read[(*day,)].follows_from(balance) for *day, balance in entered.select(*_DAY, "before").iter_rows()]
    return entered.select(*_DAY, follows=pl.Series(follows, dtype=pl.Boolean()))


def _joined_within(found: pl.DataFrame, tested: pl.DataFrame) -> pl.DataFrame:
    """Return the balances on both sides of rounding within a day."""
    within = found.filter(pl.col("likely") == "rounding", pl.col("last_seen") == pl.col("next_seen"))
    return (
        within.select(*BY_ACCOUNT, "ended", "begun", date="next_seen")
        .join(tested, on=_DAY, how="semi")
        .select(*_DAY, "ended", "begun")
    )


def _units(facts: Facts, broken: pl.LazyFrame) -> pl.LazyFrame:
    """Return the units of `broken` accounts that state a balance: single rows, or whole days.

    A unit has its `amount`, the balance before it (`opening`) and after it (`closing`), both minus the amounts of
    days without a usable balance so far (`carried`). `order` counts from the day's first movement on, even if the bank
    lists the newest row first.
    """
    amount, known = pl.col("amount").cast(BALANCE), pl.col("balance").is_not_null()
    place = pl.int_range(pl.len()).over(_DAY)
    rows = (
        facts.rows.lazy()
        .select(*_DAY, "transaction_id", "amount", "balance", "description")
        .join(broken, on=BY_ACCOUNT, how="semi")
        .with_columns(
            amount=amount,
            balance=pl.col("balance").cast(BALANCE),
            order=place,
            rows=pl.len().over(_DAY),
            known=known.sum().over(_DAY),
            net=amount.sum().over(_DAY),
        )
        .with_columns(at_an_end=(pl.col("order") == 0) | (pl.col("order") == pl.col("rows") - 1))
        .with_columns(
            is_whole=pl.col("known") == pl.col("rows"),
            closes=(pl.col("known") == 1) & pl.col("at_an_end") & known,
            has_twin=pl.len().over(*_DAY, "amount", "description") > 1,
        )
        .with_columns(is_read=pl.col("is_whole") | pl.col("closes").any().over(_DAY))
        .sort(*_DAY, "order")
    )
    carried = pl.when(~pl.col("is_read")).then("amount").otherwise(pl.lit(0, BALANCE))
    moved = pl.when("is_whole").then("amount").otherwise("net")
    return (
        rows.with_columns(carried=carried.cum_sum().over(BY_ACCOUNT))
        .filter(pl.col("is_whole") | pl.col("closes"))
        .with_columns(order=pl.when(_newest_first()).then(-pl.col("order")).otherwise("order"))
        .select(
            *_DAY,
            "transaction_id",
            "order",
            "amount",
            "has_twin",
            "carried",
            closing=pl.col("balance") - pl.col("carried"),
            opening=pl.col("balance") - moved - pl.col("carried"),
        )
    )


def _newest_first() -> pl.Expr:
    """Return whether the account's rows follow each other backwards more often than forwards."""
    opening = pl.col("balance") - pl.col("amount")
    before = pl.col("balance").shift(1).over(_DAY)
    opening_before = opening.shift(1).over(_DAY)
    forwards, backwards = opening == before, pl.col("balance") == opening_before
    return backwards.sum().over(BY_ACCOUNT) > forwards.sum().over(BY_ACCOUNT)


def _pieces(units: pl.LazyFrame) -> pl.LazyFrame:
    """Return a day's ends (`uses` > 0) and beginnings (< 0): balances that no row of the day continues or leads to."""
    own = ("transaction_id", "order", "amount", "has_twin", "carried")
    closings = units.select(*_DAY, *own, value="closing", uses=1)
    openings = units.select(*_DAY, *own, value="opening", uses=-1)
    # If a row is repeated, the first copy ends the piece before it, and the last one begins the piece after it.
    ends, begins = pl.col("uses") > 0, pl.col("uses") < 0
    details = pl.when(pl.col("uses").sum() > 0)
    return (
        pl.concat([closings, openings])
        .group_by(*_DAY, "value")
        .agg(
            pl.col("uses").sum(),
            **{
                name: details.then(pl.col(name).filter(ends).sort_by(pl.col("order").filter(ends)).first()).otherwise(
                    pl.col(name).filter(begins).sort_by(pl.col("order").filter(begins)).last()
                )
                for name in own
            },
        )
        .filter(pl.col("uses") != 0)
    )


def _unmatched_ends(pieces: pl.LazyFrame) -> pl.LazyFrame:
    """Return ends that the account's next day doesn't continue, and beginnings that the day before didn't lead to.

    One row for each, with `left_over` 1 or -1. The account's very first beginning and last end are among them.
    """
    numbered = pieces.with_columns(nth_day=pl.col("date").rank("dense").over(BY_ACCOUNT).cast(pl.Int64))
    key = [*BY_ACCOUNT, "nth_day", "value"]
    ends = numbered.filter(pl.col("uses") > 0).select(*key, there="uses")
    begins = numbered.filter(pl.col("uses") < 0).select(*key, there="uses")
    led_to = ends.with_columns(pl.col("nth_day") + 1)
    goes_on = begins.with_columns(pl.col("nth_day") - 1)
    across = pl.concat([led_to, goes_on])
    met = pl.min_horizontal(pl.col("uses").abs(), pl.col("there").abs().fill_null(0))
    opposite = pl.when((pl.col("uses") > 0) != (pl.col("there") > 0)).then("there")
    return (
        numbered.join(across, on=key, how="left")
        .with_columns(there=opposite)
        .sort(*_DAY, "value", "there", nulls_last=True)
        .unique([*_DAY, "value"], keep="first", maintain_order=True)
        .with_columns(left=pl.col("uses").abs() - met)
        .filter(pl.col("left") > 0)
        .with_columns(left_over=pl.col("uses").sign().repeat_by("left"))
        .explode("left_over")
    )
