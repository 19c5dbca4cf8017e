"""Faults that clients cause, with labels: rows or accounts that were never sent, rows sent twice, a wrong sign.

Rows are removed after the balances were computed, so that the statement's balance jumps where they are missing.

`inject_faults` damages some businesses of a portfolio as clients do; `with_fault` injects one given fault into one
business, to measure what detects it.
"""

from dataclasses import replace
from datetime import date, timedelta
from random import Random
from typing import Literal, get_args

import polars as pl

from pipelines.synthetic.ledger.statements import without_lone_legs
from pipelines.synthetic.world.model import LABELLED, Business

Fault = Literal["row_deleted", "week_deleted", "month_deleted", "row_repeated", "sign_flipped", "account_dropped"]
FAULTS: tuple[Fault, ...] = get_args(Fault)


def inject_faults(business: Business, rng: Random) -> Business:
    """Return the business with a damaged trading account: one in three has a gap, one in three an overlap."""
    fault = rng.choice((with_gap, with_overlap, None))
    main, *others = business.accounts
    stretch = _draw_stretch(main.transactions, rng)
    if fault is None or stretch is None:
        return business
    damaged = replace(main, transactions=fault(main.transactions, *stretch))
    return replace(business, accounts=without_lone_legs((damaged, *others)))


def with_gap(rows: pl.DataFrame, first: date, last: date) -> pl.DataFrame:
    """Return the rows without those from `first` to `last`. The next one, where the balance jumps, is labelled."""
    without = _leave_out_days(rows, first, last, "gap")
    return rows if without is None else without


def _leave_out_days(rows: pl.DataFrame, first: date, last: date, fault: str) -> pl.DataFrame | None:
    """Return the rows without those from `first` to `last`, the next one labelled; None if no balance would jump."""
    missing = pl.col("date").is_between(first, last)
    if rows.filter(missing)["amount"].sum() == 0:
        return None
    return rows.with_columns(_label(fault, _is_first_after(last))).filter(~missing)


def with_overlap(rows: pl.DataFrame, first: date, last: date) -> pl.DataFrame:
    """Return the rows up to `last` as one submission and those since `first` as a second: whole days come twice."""
    earlier = rows.filter(pl.col("date") <= last)
    later = rows.filter(pl.col("date") >= first).with_columns(
        pl.lit(1, pl.UInt8).alias("submission"), _label("duplicate", pl.col("date") <= last)
    )
    return pl.concat([earlier, later])


def _is_first_after(last: date) -> pl.Expr:
    follows = pl.col("date") > last
    return follows & (follows.cum_sum() == 1)


def _label(fault: str, where: pl.Expr) -> pl.Expr:
    return pl.when(where).then(pl.lit(fault, LABELLED["injected"])).otherwise("injected").alias("injected")


def _draw_stretch(rows: pl.DataFrame, rng: Random) -> tuple[date, date] | None:
    """Return 14 or 30 days (at most a third) within the account's days; None if it covers less than a week."""
    dates = rows["date"].to_list()
    covered = (dates[-1] - dates[0]).days
    days = min(rng.choice((14, 30)), covered // 3)
    if covered < 7:
        return None
    first: date = dates[0] + timedelta(days=rng.randrange(1, covered - days))
    return first, first + timedelta(days=days - 1)


def with_fault(business: Business, fault: Fault, rng: Random) -> Business | None:
    """Return the business with one fault; None if it can't have it.

    The fault is in its trading account, or one of its other accounts is missing. The row after removed rows is
    labelled; a wrong or repeated row is labelled itself.
    """
    main, *others = business.accounts
    if fault == "account_dropped":
        return _leave_out_account(business, rng)
    rows = main.transactions
    inner = range(1, rows.height - 1)
    if not inner:
        return None
    if fault in ("week_deleted", "month_deleted"):
        changed = _leave_out_week_or_month(rows, fault, rng)
    else:
        place = rng.choice([nth for nth in inner if rows["amount"][nth] != 0])
        changed = _FAULT_AT[fault](rows, place)
    if changed is None:
        return None
    return replace(business, accounts=without_lone_legs((replace(main, transactions=changed), *others)))


def without_row(rows: pl.DataFrame, place: int) -> pl.DataFrame:
    nth = pl.int_range(pl.len())
    return rows.with_columns(_label("row_deleted", nth == place + 1)).filter(nth != place)


def with_row_repeated(rows: pl.DataFrame, place: int) -> pl.DataFrame:
    """Return the rows with one row repeated after itself, with another id: else it would be a duplicate."""
    again = rows[place : place + 1].with_columns(
        _label("row_repeated", pl.lit(value=True)), transaction_id=pl.col("transaction_id") + "-again"
    )
    return pl.concat([rows[: place + 1], again, rows[place + 1 :]])


def with_sign_flipped(rows: pl.DataFrame, place: int) -> pl.DataFrame:
    here = pl.int_range(pl.len()) == place
    amount = pl.when(here).then(-pl.col("amount")).otherwise("amount").alias("amount")
    return rows.with_columns(_label("sign_flipped", here), amount)


_FAULT_AT = {"row_deleted": without_row, "row_repeated": with_row_repeated, "sign_flipped": with_sign_flipped}


def _leave_out_week_or_month(rows: pl.DataFrame, fault: Fault, rng: Random) -> pl.DataFrame | None:
    """Return the rows without seven days or a calendar month from their middle; None if no balance would jump."""
    begins: date = rows["date"][0]
    ends: date = rows["date"][-1]
    if fault == "week_deleted":
        firsts = [begins + timedelta(days=nth) for nth in range(1, (ends - begins).days - 7)]
        stretches = [(first, first + timedelta(days=6)) for first in firsts]
    else:
        months = pl.select(pl.date_range(begins, ends, "1d")).to_series().dt.truncate("1mo").unique().sort()
        lasts = months.dt.month_end()
        stretches = [(month, last) for month, last in zip(months, lasts, strict=True) if begins < month and last < ends]
    if not stretches:
        return None
    return _leave_out_days(rows, *rng.choice(stretches), fault)


def _leave_out_account(business: Business, rng: Random) -> Business | None:
    """Return the business without an account that has transfers with another one; never its trading account."""
    main, *others = business.accounts
    paired = [account for account in others if account.transactions["transfer_pair"].drop_nulls().len()]
    if not paired:
        return None
    dropped = rng.choice(paired)
    return replace(business, accounts=without_lone_legs((main, *(other for other in others if other is not dropped))))
