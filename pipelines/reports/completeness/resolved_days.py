"""Which days would be worth more if a reason were resolved, and how much (`effects` says what resolving means).

Each function below yields frames with the columns of RESOLVED_DAYS, and others, from steps with their causes.
"""

from collections.abc import Iterator, Mapping

import polars as pl

from pipelines.figures.accounts import BY_ACCOUNT
from pipelines.figures.facts import Facts
from pipelines.figures.periods import BY_CUSTOMER
from pipelines.reports.completeness.across import MUCH_ONE_SIDED, TRANSFERS, mentioning_rows
from pipelines.reports.completeness.causes import CAUSES, steps_with_causes
from pipelines.reports.completeness.coverage import (
    PLAUSIBLE,
    PROVEN,
    epoch,
    is_proven,
    worth,
    worth_if_proven,
)
from pipelines.reports.completeness.documents import statements
from pipelines.reports.completeness.gaps import gaps
from pipelines.vocabulary.plans import collect
from pipelines.vocabulary.report_values import RATIO

ALL = "All"
RESOLVED_DAYS = pl.Schema(
    {
        BY_CUSTOMER: pl.Int64(),
        "code": pl.String(),  # of the reason, or ALL
        "subject": pl.String(),  # what the reason is about; null if it is about all accounts
        "account_type": pl.String(),
        "transaction_id": pl.Binary(),
        "first_day": pl.Int32(),  # epoch, like the last
        "last_day": pl.Int32(),
        "worth": RATIO,  # of each day from the first to the last
    }
)
_CODES_OF_BREAKS = {"BalanceBreaks": "is_missing", "Rounding": "is_rounded", "RowOrder": "is_shuffled"}
_CODES_OF_GAPS = {
    "silence": "Silences",
    "series_missing": "SeriesMissing",
    "statement_period": "StatementPeriodMissing",
    "statement_missing": "StatementMissing",
}


def resolved_days(facts: Facts) -> pl.LazyFrame:
    """Return the days that resolving each reason would change, with their worth then (RESOLVED_DAYS)."""
    none = RESOLVED_DAYS.to_frame(eager=False)
    return pl.concat([none, *(_select_columns(days) for days in _list_days(facts))])


def _select_columns(days: pl.LazyFrame) -> pl.LazyFrame:
    return days.select(pl.col(name).cast(kind) for name, kind in RESOLVED_DAYS.items())


def _list_days(facts: Facts) -> Iterator[pl.LazyFrame]:
    with_causes = steps_with_causes(facts)
    found = _find_causes(with_causes)
    yield from _days_of_breaks(with_causes, found)
    yield from _days_of_balances(with_causes, facts, found)
    if found["is_open"]:
        yield _days_if_transfers_complete(with_causes, pl.col("open_rows") > 0, "OneSidedTransfers", no_subject())
        by_mention, all_mention = _steps_by_mention(with_causes, facts), pl.col("open_rows") == pl.col("mentioning")
        subject = pl.coalesce("maskedNumber", "name")
        yield _days_if_transfers_complete(by_mention, all_mention, "MentionedAccount", subject)
    if any(found[cause] for cause in CAUSES):
        yield _silent_days_in_gaps(with_causes, facts)
    yield from _days_of_histories(with_causes, facts, found)
    yield from _days_if_all_resolved(with_causes, facts, found)


def _find_causes(with_causes: pl.LazyFrame) -> Mapping[str, bool]:
    """Return which causes any customer has: CAUSES, `is_stale`, `is_short`, and `is_open` for one-sided transfers.

    An empty frame costs as much to plan as a full one, so the days of causes that no customer has are left out.
    """
    flags = with_causes.select(pl.col(*CAUSES, "is_stale", "is_short").any(), is_open=(pl.col("open_rows") > 0).any())
    return flags.pipe(collect).row(0, named=True)


def no_subject() -> pl.Expr:
    return pl.lit(None, pl.String())


# Balances


def _days_of_breaks(with_causes: pl.LazyFrame, found: Mapping[str, bool]) -> Iterator[pl.LazyFrame]:
    for code, cause in _CODES_OF_BREAKS.items():
        if found[cause]:
            yield from _days_if_proven(with_causes, _is_proven_without(cause), code, pl.col("accountId"))


def _days_of_balances(with_causes: pl.LazyFrame, facts: Facts, found: Mapping[str, bool]) -> Iterator[pl.LazyFrame]:
    """Yield the days of balances that are not stated, and of statements that don't reconcile."""
    if found["is_unstated"]:
        code = pl.when(pl.col("stated") == 0).then(pl.lit("NoBalances")).otherwise(pl.lit("PartialBalances"))
        yield from _days_if_proven(with_causes, _is_proven_without("is_unstated"), code, no_subject())
    if found["is_unreconciled"]:
        by_statement, is_proven_then = _steps_by_statement(with_causes, facts), _is_proven_without("is_unreconciled")
        yield from _days_if_proven(by_statement, is_proven_then, "UnreconciledStatement", pl.col("statementId"))


def _is_proven_without(cause: str) -> pl.Expr:
    """Match steps that would be proven if this cause were resolved."""
    others = [name for name in CAUSES if name != cause]
    return pl.col(cause) & ~pl.any_horizontal(others) & pl.col("previous_day").is_not_null() & ~is_proven()


def _days_if_proven(
    with_causes: pl.LazyFrame, is_resolved: pl.Expr, code: str | pl.Expr, subject: pl.Expr
) -> Iterator[pl.LazyFrame]:
    """Yield the days that would be worth more if the steps that `is_resolved` matches were proven.

    These are the silent days of such steps, their own days, and each proven day before such a step, which is no longer
    open.
    """
    code = pl.lit(code) if isinstance(code, str) else code
    resolved_after = pl.col("is_resolved").shift(-1).over(*BY_ACCOUNT, "subject").fill_null(value=False)
    marked = with_causes.with_columns(code=code, subject=subject, is_resolved=is_resolved).with_columns(
        holds_after=pl.col("next_holds") | resolved_after
    )
    yield marked.filter("is_resolved").with_columns(
        first_day=pl.col("previous_day") + 1, last_day=pl.col("day") - 1, worth=worth(PROVEN)
    )
    no_longer_open = is_proven() & pl.col("holds_after") & ~pl.col("next_holds")
    day_worth = worth_if_proven(pl.col("holds_after"))
    yield marked.filter(pl.col("is_resolved") | no_longer_open).with_columns(
        first_day="day", last_day="day", worth=day_worth
    )


def _steps_by_statement(with_causes: pl.LazyFrame, facts: Facts) -> pl.LazyFrame:
    """Return the steps of accounts with statements that don't reconcile: each marks the causes of its own period."""
    of_account = statements(facts).filter(pl.col("verdict") == "unreconciled")
    periods = of_account.select(*BY_ACCOUNT, "period_start", "period_end", "statementId")
    begun = pl.col("period_start").dt.epoch("d").fill_null(-(10**6)) <= pl.col("day")
    within = begun & (pl.col("day") <= pl.col("period_end").dt.epoch("d").fill_null(10**6))
    joined = with_causes.join(periods, on=BY_ACCOUNT, how="inner", validate="m:m", maintain_order="left")
    return joined.with_columns(is_unreconciled=pl.col("is_unreconciled") & within)


# Transfers


def _days_if_transfers_complete(
    with_causes: pl.LazyFrame, is_completed: pl.Expr, code: str, subject: pl.Expr
) -> pl.LazyFrame:
    """Return days that are open only because transfers lack their other side, with the worth of a complete day."""
    is_open = is_proven() & pl.col("next_holds") & (pl.col("open_rows") > 0)
    return with_causes.filter(is_open & is_completed).with_columns(
        code=pl.lit(code), subject=subject, first_day="day", last_day="day", worth=worth(PROVEN)
    )


def _steps_by_mention(with_causes: pl.LazyFrame, facts: Facts) -> pl.LazyFrame:
    """Return the steps on whose day transfers mention an account, and how many do (`mentioning`)."""
    counts = (
        mentioning_rows(facts)
        .filter("is_one_sided")
        .group_by(*BY_ACCOUNT, "maskedNumber", "name", day=pl.col("date").dt.epoch("d"))
        .agg(mentioning=pl.len())
    )
    return with_causes.join(counts, on=[*BY_ACCOUNT, "day"], how="inner", validate="1:m")


# Gaps and histories


def _silent_days_in_gaps(with_causes: pl.LazyFrame, facts: Facts) -> pl.LazyFrame:
    """Return the silent days of unproven steps within gaps, which are plausible once they have rows."""
    of_reasons = gaps(facts).filter(pl.col("evidence").is_in(list(_CODES_OF_GAPS)))
    spans = of_reasons.select(*BY_ACCOUNT, "lastSeen", "nextSeen", gap="evidence")
    begins, ends = pl.col("lastSeen").dt.epoch("d") + 1, pl.col("nextSeen").dt.epoch("d") - 1
    return (
        with_causes.filter(~is_proven(), pl.col("previous_day") + 1 < pl.col("seen_from"))
        .join(spans, on=BY_ACCOUNT, how="inner", validate="m:m")
        .with_columns(
            code=pl.col("gap").replace_strict(_CODES_OF_GAPS),
            subject="accountId",
            first_day=pl.max_horizontal(pl.col("previous_day") + 1, begins),
            last_day=pl.min_horizontal(pl.col("seen_from") - 1, ends),
            worth=worth(PLAUSIBLE),
        )
    )


def _days_of_histories(with_causes: pl.LazyFrame, facts: Facts, found: Mapping[str, bool]) -> Iterator[pl.LazyFrame]:
    """Yield the days after a stale history, and before a short one."""
    day_worth = pl.when("all_stated").then(worth(PROVEN)).otherwise(worth(PLAUSIBLE))
    if found["is_stale"]:
        yield from _days_after_last_row(with_causes, facts, day_worth, "Stale", is_proven() & pl.col("all_stated"))
    if found["is_short"]:
        yield from _days_before_first_row(
            with_causes, day_worth, "ShortHistory", pl.col("all_stated"), pl.col("next_holds")
        )


def _days_after_last_row(
    with_causes: pl.LazyFrame, facts: Facts, day_worth: pl.Expr, code: str, is_proven_then: pl.Expr
) -> Iterator[pl.LazyFrame]:
    """Yield the days after an account's last row, and that row's day, which is then no longer the end."""
    last = with_causes.filter("is_stale", "is_last").with_columns(code=pl.lit(code), subject=no_subject())
    yield last.with_columns(first_day=pl.col("day") + 1, last_day=pl.lit(epoch(facts.as_of) - 1), worth=day_worth)
    yield last.filter(is_proven_then).with_columns(
        first_day="day", last_day="day", worth=worth_if_proven(pl.lit(value=True))
    )


def _days_before_first_row(
    with_causes: pl.LazyFrame, day_worth: pl.Expr, code: str, is_proven_then: pl.Expr, holds_after: pl.Expr
) -> Iterator[pl.LazyFrame]:
    """Yield the days before an account's first row, and that row's day, which is then no longer the beginning."""
    first = with_causes.filter("is_short", pl.col("previous_day").is_null()).with_columns(
        code=pl.lit(code), subject=no_subject()
    )
    yield first.with_columns(first_day="begins", last_day="begins", worth=worth(PLAUSIBLE))
    yield first.with_columns(first_day=pl.col("begins") + 1, last_day=pl.col("day") - 1, worth=day_worth)
    yield first.filter(is_proven_then).with_columns(first_day="day", last_day="day", worth=worth_if_proven(holds_after))


# All reasons at a time


def _days_if_all_resolved(with_causes: pl.LazyFrame, facts: Facts, found: Mapping[str, bool]) -> Iterator[pl.LazyFrame]:
    """Yield what days would be worth if all reasons were resolved. `found`: which reasons any customer has."""
    closed = with_causes.with_columns(was_open="open_rows")
    if found["is_open"]:
        closed = closed.pipe(_open_if_resolved, facts)
    follows = pl.col("previous_day").is_not_null()
    holds_after = ~pl.col("is_last") | pl.col("is_stale")
    all_named = closed.with_columns(code=pl.lit(ALL), subject=no_subject())
    changed = follows & (~is_proven() | ~pl.col("next_holds") | (pl.col("open_rows") < pl.col("was_open")))
    yield all_named.filter(follows & ~is_proven()).with_columns(
        first_day=pl.col("previous_day") + 1, last_day=pl.col("day") - 1, worth=worth(PROVEN)
    )
    yield all_named.filter(changed).with_columns(first_day="day", last_day="day", worth=worth_if_proven(holds_after))
    if found["is_stale"]:
        yield from _days_after_last_row(closed, facts, worth(PROVEN), ALL, follows)
    if found["is_short"]:
        # `~follows` matches every first row. A constant would do, but Polars fails when it filters many rows by one.
        yield from _days_before_first_row(closed, worth(PROVEN), ALL, ~follows, holds_after)


def _open_if_resolved(with_causes: pl.LazyFrame, facts: Facts) -> pl.LazyFrame:
    """Set `open_rows` to the transfers that would still lack their other side if all reasons were resolved.

    None would if `OneSidedTransfers` is among the reasons, which asks for all other sides. Otherwise reasons ask only
    for the accounts that transfers mention, so transfers that mention none stay open.
    """
    rows = mentioning_rows(facts).filter("is_one_sided")
    mentions = rows.group_by(*BY_ACCOUNT, day=pl.col("date").dt.epoch("d")).agg(mentioning=pl.len())
    much = TRANSFERS.rows(facts).select(BY_CUSTOMER, much=pl.col("oneSidedShare") > pl.lit(MUCH_ONE_SIDED).cast(RATIO))
    left = pl.when("much").then(0).otherwise(pl.col("open_rows") - pl.col("mentioning").fill_null(0))
    return (
        with_causes.join(mentions, on=[*BY_ACCOUNT, "day"], how="left", validate="1:1", maintain_order="left")
        .join(much, on=BY_CUSTOMER, validate="m:1", maintain_order="left")
        .with_columns(open_rows=left)
    )
