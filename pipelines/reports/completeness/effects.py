"""Effects: by how many points the completeness score would rise if a reason were resolved, alone or with all others.

Resolving a reason changes the worth of days (`coverage`), never downwards:

| reason                                    | if it is resolved                                                       |
|-------------------------------------------|-------------------------------------------------------------------------|
| `BalanceBreaks`, `Rounding`, `RowOrder`   | the account's balances follow on the days with these breaks             |
| `NoBalances`, `PartialBalances`           | every row states a balance, and it follows                              |
| `UnreconciledStatement`                   | the statement's balances prove the rows of its period                   |
| `Silences`, `SeriesMissing`, `Statement…` | the days between the gap's two rows have rows: they are plausible       |
| `OneSidedTransfers`, `MentionedAccount`   | these transfers have their other side                                   |
| `Stale`                                   | all accounts have rows up to `as_of`                                    |
| `ShortHistory`                            | all accounts have rows since 90 days before the last one                |
| `FewDaysSeen`                             | an account documents every day of the last year                         |

Supplied days are proven if all rows of the account state balances, else plausible. If a day stays unproven for another
reason, resolving the first alone has no effect on it; resolving all has. Reasons without a row here don't change the
score, or their effect is unknown until the data are supplied (UNKNOWN).
"""

from collections.abc import Iterator, Mapping
from decimal import Decimal

import polars as pl

from pipelines.figures.accounts import BY_ACCOUNT
from pipelines.figures.facts import Facts
from pipelines.figures.periods import BY_CUSTOMER
from pipelines.figures.tables import Column, Derived, Source, Table, Total
from pipelines.reports.completeness.across import MUCH_ONE_SIDED, TRANSFERS, mentioning_rows
from pipelines.reports.completeness.breaks import breaks
from pipelines.reports.completeness.cached import cached
from pipelines.reports.completeness.coverage import (
    EARLIER_DAYS,
    NON_TRADING,
    PLAUSIBLE,
    PROVEN,
    YEAR_DAYS,
    best_days,
    best_of,
    clip_stretches,
    epoch,
    is_break,
    is_proven,
    steps,
    worth,
    worth_if_proven,
)
from pipelines.reports.completeness.documents import statements
from pipelines.reports.completeness.gaps import gaps
from pipelines.reports.completeness.score import EARLIER_POINTS, YEAR_POINTS, documented_days, points, score_of_worth
from pipelines.vocabulary.plans import collect
from pipelines.vocabulary.report_values import RATIO, score

STALE_AFTER = 14  # days; our judgement, like the next
SHORT_HISTORY = 90  # days
ALL = "All"
# Reasons whose effect is unknown.
UNKNOWN = ("NoTransactions", "AccountEnds", "RejectedRows", "UnsharedLender", "BasVariance")
_CAUSES = ("is_missing", "is_rounded", "is_shuffled", "is_unstated", "is_unreconciled")
_CODES_OF_BREAKS = {"BalanceBreaks": "is_missing", "Rounding": "is_rounded", "RowOrder": "is_shuffled"}
_CODES_OF_GAPS = {
    "silence": "Silences",
    "series_missing": "SeriesMissing",
    "statement_period": "StatementPeriodMissing",
    "statement_missing": "StatementMissing",
}
_BY = (BY_CUSTOMER, "code", "subject")
_STRETCHES = pl.Schema(
    {
        BY_CUSTOMER: pl.Int64(),
        "code": pl.String(),
        "subject": pl.String(),
        "account_type": pl.String(),
        "transaction_id": pl.Binary(),
        "first_day": pl.Int32(),
        "last_day": pl.Int32(),
        "worth": RATIO,
    }
)
_NO_STRETCHES = _STRETCHES.to_frame(eager=False)


@cached
def gained_days(facts: Facts) -> pl.LazyFrame:
    """Return the days that are worth more if a reason is resolved: _BY, `transaction_id` of a row that documents it.

    `year_gain` and `before_gain` of the day, and `is_new` if no account documents it now, in the last year.
    """
    resolved = pl.concat([_NO_STRETCHES, *(_as_stretches(each) for each in _stretches(facts))])
    days = resolved.pipe(clip_stretches, facts.as_of).pipe(best_of, _BY)
    now = best_days(facts).select(BY_CUSTOMER, "day", now="worth")
    gain = (pl.col("worth") - pl.col("now").fill_null(0)).cast(RATIO)
    in_year = pl.col("day") >= epoch(facts.as_of) - YEAR_DAYS
    return (
        days.join(now, on=[BY_CUSTOMER, "day"], how="left", validate="m:1")
        .filter(gain > 0)
        .select(
            *_BY,
            "transaction_id",
            year_gain=pl.when(in_year).then(gain),
            before_gain=pl.when(~in_year).then(gain),
            is_new=in_year & pl.col("now").is_null(),
        )
        # With all reasons resolved, `FewDaysSeen` counts every unseen day as proven, whichever account documents it.
        .filter(~(pl.col("is_new") & (pl.col("code") == ALL)))
    )


def _as_stretches(rows: pl.LazyFrame) -> pl.LazyFrame:
    return rows.select(pl.col(name).cast(kind) for name, kind in _STRETCHES.items())


def _stretches(facts: Facts) -> Iterator[pl.LazyFrame]:
    """Yield the days that resolving each reason would change, with their worth then (schema _STRETCHES)."""
    with_causes = _steps_with_causes(facts)
    # An empty frame costs as much to plan as a full one, so causes that no customer has are left out.
    flags = with_causes.select(pl.col(*_CAUSES, "is_stale", "is_short").any(), is_open=(pl.col("open_rows") > 0).any())
    found = flags.pipe(collect).row(0, named=True)
    for code, cause in _CODES_OF_BREAKS.items():
        if found[cause]:
            yield from _days_if_proven(with_causes, _is_proven_without(cause), code, pl.col("accountId"))
    if found["is_unstated"]:
        unstated = pl.when(pl.col("stated") == 0).then(pl.lit("NoBalances")).otherwise(pl.lit("PartialBalances"))
        yield from _days_if_proven(with_causes, _is_proven_without("is_unstated"), unstated, _no_subject())
    if found["is_unreconciled"]:
        by_statement = _steps_by_statement(with_causes, facts)
        yield from _days_if_proven(
            by_statement, _is_proven_without("is_unreconciled"), "UnreconciledStatement", pl.col("about")
        )
    if found["is_open"]:
        yield from _days_if_transfers_complete(with_causes, pl.col("open_rows") > 0, "OneSidedTransfers", _no_subject())
        mentioned = pl.col("open_rows") == pl.col("found")
        yield from _days_if_transfers_complete(
            _steps_by_mention(with_causes, facts), mentioned, "MentionedAccount", _mention()
        )
    if any(found[cause] for cause in _CAUSES):
        yield _silent_days_in_gaps(with_causes, facts)
    evidence = pl.when("all_stated").then(worth(PROVEN)).otherwise(worth(PLAUSIBLE))
    if found["is_stale"]:
        yield from _days_after_last_row(with_causes, facts, evidence, "Stale", is_proven() & pl.col("all_stated"))
    if found["is_short"]:
        yield from _days_before_first_row(
            with_causes, evidence, "ShortHistory", pl.col("all_stated"), pl.col("next_holds")
        )
    yield from _days_if_all_resolved(with_causes, facts, found)


def _no_subject() -> pl.Expr:
    return pl.lit(None, pl.String())


def _mention() -> pl.Expr:
    return pl.coalesce("maskedNumber", "name")


@cached
def _steps_with_causes(facts: Facts) -> pl.LazyFrame:
    """Return `coverage.steps` with the causes (_CAUSES) for which each is not proven, by account and day.

    `next_holds`; `stated`, the customer's rows with balances; `all_stated`, whether all rows of the account have one;
    `is_last` of the account; `is_stale`, `is_short` and `begins` of the customer (`_histories`).
    """
    by_day = [*BY_ACCOUNT, "day"]
    likely = pl.col("likely")
    causes = (
        breaks(facts)
        .group_by(*BY_ACCOUNT, day=pl.col("next_seen").dt.epoch("d"))
        .agg(
            is_rounded=(likely == "rounding").any(),
            is_shuffled=(likely == "ordering").any(),
            is_missing=~likely.is_in(("rounding", "ordering")).all(),
        )
    )
    named = pl.any_horizontal("is_rounded", "is_shuffled", "is_missing")
    of_break = {
        name: pl.col(name).fill_null(value=False) & is_break() for name in ("is_rounded", "is_shuffled", "is_missing")
    }
    partly = pl.col("rows_with_balance") < pl.col("rows")
    unstated = partly | (~pl.col("is_checked") & ~named)
    return (
        steps(facts)
        .join(causes, on=by_day, how="left", validate="1:1")
        .with_columns(**of_break)
        .with_columns(
            is_unstated=unstated & pl.col("previous_day").is_not_null() & ~is_proven(),
            next_holds=is_proven().shift(-1).over(BY_ACCOUNT).fill_null(value=False),
            stated=pl.col("rows_with_balance").sum().over(BY_CUSTOMER),
            all_stated=(pl.col("rows_with_balance") == pl.col("rows")).all().over(BY_ACCOUNT),
            is_last=pl.int_range(pl.len()).over(BY_ACCOUNT) == pl.len().over(BY_ACCOUNT) - 1,
        )
        .join(_histories(facts), on=BY_CUSTOMER, validate="m:1")
        .sort(*BY_ACCOUNT, "day")
    )


def _is_proven_without(cause: str) -> pl.Expr:
    """Match steps that would be proven if this cause were resolved."""
    others = [name for name in _CAUSES if name != cause]
    return pl.col(cause) & ~pl.any_horizontal(others) & pl.col("previous_day").is_not_null() & ~is_proven()


def _days_if_proven(
    with_causes: pl.LazyFrame, holds: pl.Expr, code: str | pl.Expr, subject: pl.Expr
) -> Iterator[pl.LazyFrame]:
    """Yield the days that would be worth more if the steps that `holds` matches were proven."""
    named = {"code": pl.lit(code) if isinstance(code, str) else code, "subject": subject}
    account_and_subject = [*BY_ACCOUNT, "subject"]
    marked = with_causes.with_columns(**named, holds=holds).with_columns(
        holds_after=pl.col("next_holds") | pl.col("holds").shift(-1).over(account_and_subject).fill_null(value=False)
    )
    resolved = marked.filter("holds")
    yield resolved.with_columns(first_day=pl.col("previous_day") + 1, last_day=pl.col("day") - 1, worth=worth(PROVEN))
    own = pl.col("holds") | (is_proven() & pl.col("holds_after") & ~pl.col("next_holds"))
    day = worth_if_proven(pl.col("holds_after"))
    yield marked.filter(own).with_columns(first_day="day", last_day="day", worth=day)


def _days_if_transfers_complete(
    with_causes: pl.LazyFrame, closes: pl.Expr, code: str, subject: pl.Expr
) -> Iterator[pl.LazyFrame]:
    """Yield days that are open only because transfers lack their other side, with the worth of a complete day."""
    yield with_causes.filter(is_proven() & pl.col("next_holds") & (pl.col("open_rows") > 0) & closes).with_columns(
        code=pl.lit(code), subject=subject, first_day="day", last_day="day", worth=worth(PROVEN)
    )


def _steps_by_statement(with_causes: pl.LazyFrame, facts: Facts) -> pl.LazyFrame:
    """Return the steps of accounts with statements that don't reconcile: each marks the causes of its own period."""
    of_account = statements(facts).filter(pl.col("verdict") == "unreconciled")
    periods = of_account.select(*BY_ACCOUNT, "period_start", "period_end", about="statementId")
    begun = pl.col("period_start").dt.epoch("d").fill_null(-(10**6)) <= pl.col("day")
    within = begun & (pl.col("day") <= pl.col("period_end").dt.epoch("d").fill_null(10**6))
    joined = with_causes.join(periods, on=BY_ACCOUNT, how="inner", validate="m:m", maintain_order="left")
    return joined.with_columns(is_unreconciled=pl.col("is_unreconciled") & within)


def _steps_by_mention(with_causes: pl.LazyFrame, facts: Facts) -> pl.LazyFrame:
    """Return the steps on whose day transfers mention an account, and how many do (`found`)."""
    counts = (
        mentioning_rows(facts)
        .filter("is_one_sided")
        .group_by(*BY_ACCOUNT, "maskedNumber", "name", day=pl.col("date").dt.epoch("d"))
        .agg(found=pl.len())
    )
    return with_causes.join(counts, on=[*BY_ACCOUNT, "day"], how="inner", validate="1:m")


def _silent_days_in_gaps(with_causes: pl.LazyFrame, facts: Facts) -> pl.LazyFrame:
    """Return the silent days of unproven steps within gaps, which are plausible once they have rows."""
    code = pl.col("gap").replace_strict(_CODES_OF_GAPS)
    found = gaps(facts).filter(pl.col("evidence").is_in(list(_CODES_OF_GAPS)))
    spans = found.select(*BY_ACCOUNT, "lastSeen", "nextSeen", gap="evidence")
    begins, ends = pl.col("lastSeen").dt.epoch("d") + 1, pl.col("nextSeen").dt.epoch("d") - 1
    return (
        with_causes.filter(~is_proven(), pl.col("previous_day") + 1 < pl.col("seen_from"))
        .join(spans, on=BY_ACCOUNT, how="inner", validate="m:m")
        .with_columns(
            code=code,
            subject="accountId",
            first_day=pl.max_horizontal(pl.col("previous_day") + 1, begins),
            last_day=pl.min_horizontal(pl.col("seen_from") - 1, ends),
            worth=worth(PLAUSIBLE),
        )
    )


def _histories(facts: Facts) -> pl.LazyFrame:
    """Return each customer's `is_stale`, `is_short`, and `begins`: the first of the 90 days up to the last row."""
    first, through = (pl.col(name).dt.epoch("d") for name in ("first_date", "data_through"))
    return facts.history.lazy().select(
        BY_CUSTOMER,
        is_stale=epoch(facts.as_of) - through > STALE_AFTER,
        is_short=through - first + 1 < SHORT_HISTORY,
        begins=through - SHORT_HISTORY + 1,
    )


def _days_after_last_row(
    with_causes: pl.LazyFrame, facts: Facts, evidence: pl.Expr, code: str, proven: pl.Expr
) -> Iterator[pl.LazyFrame]:
    """Yield the days after an account's last row, and that row's day, which is then no longer the end."""
    last = with_causes.filter("is_stale", "is_last").with_columns(code=pl.lit(code), subject=_no_subject())
    yield last.with_columns(first_day=pl.col("day") + 1, last_day=pl.lit(epoch(facts.as_of) - 1), worth=evidence)
    yield last.filter(proven).with_columns(first_day="day", last_day="day", worth=worth_if_proven(pl.lit(value=True)))


def _days_before_first_row(
    with_causes: pl.LazyFrame, evidence: pl.Expr, code: str, proven: pl.Expr, holds_after: pl.Expr
) -> Iterator[pl.LazyFrame]:
    """Yield the days before an account's first row, and that row's day, which is then no longer the beginning."""
    first = with_causes.filter("is_short", pl.col("previous_day").is_null()).with_columns(
        code=pl.lit(code), subject=_no_subject()
    )
    yield first.with_columns(first_day="begins", last_day="begins", worth=worth(PLAUSIBLE))
    yield first.with_columns(first_day=pl.col("begins") + 1, last_day=pl.col("day") - 1, worth=evidence)
    yield first.filter(proven).with_columns(first_day="day", last_day="day", worth=worth_if_proven(holds_after))


def _days_if_all_resolved(with_causes: pl.LazyFrame, facts: Facts, found: Mapping[str, bool]) -> Iterator[pl.LazyFrame]:
    """Yield what days would be worth if all reasons were resolved. `found`: which reasons any customer has."""
    dated = with_causes.with_columns(was_open="open_rows")
    closed = dated.pipe(_open_if_resolved, facts) if found["is_open"] else dated
    follows = pl.col("previous_day").is_not_null()
    holds_after = ~pl.col("is_last") | pl.col("is_stale")
    all_named = closed.with_columns(code=pl.lit(ALL), subject=_no_subject())
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
    mentions = rows.group_by(*BY_ACCOUNT, day=pl.col("date").dt.epoch("d")).agg(found=pl.len())
    much = TRANSFERS.rows(facts).select(BY_CUSTOMER, much=pl.col("oneSidedShare") > pl.lit(MUCH_ONE_SIDED).cast(RATIO))
    left = pl.when("much").then(0).otherwise(pl.col("open_rows") - pl.col("found").fill_null(0))
    return (
        with_causes.join(mentions, on=[*BY_ACCOUNT, "day"], how="left", validate="1:1", maintain_order="left")
        .join(much, on=BY_CUSTOMER, validate="m:1", maintain_order="left")
        .with_columns(open_rows=left)
    )


def _unseen_worth(facts: Facts) -> pl.LazyFrame:
    """Return what a customer's unseen days are worth if only their reason is resolved (`alone`).

    They are then proven if an account that is used for trading states all its balances.
    """
    trading = ~pl.col("account_type").is_in(NON_TRADING).fill_null(value=False)
    proven = (trading & pl.col("all_stated")).any()
    worths = pl.when(proven).then(worth(PROVEN)).otherwise(worth(PLAUSIBLE))
    return _steps_with_causes(facts).group_by(BY_CUSTOMER).agg(alone=worths)


def listed_effects(facts: Facts) -> pl.LazyFrame:
    """Return the reasons with an effect, and ALL for every customer: _BY, and `unseenWorth` (0: none are added)."""
    alone = _unseen_worth(facts)
    no_subject = {"subject": _no_subject()}
    unseen = alone.select(BY_CUSTOMER, code=pl.lit("FewDaysSeen"), **no_subject, unseenWorth="alone")
    everything = alone.select(BY_CUSTOMER, code=pl.lit(ALL), **no_subject, unseenWorth=worth(PROVEN))
    others = gained_days(facts).filter(pl.col("code") != ALL).select(*_BY, unseenWorth=worth(Decimal(0))).unique()
    return pl.concat([unseen, everything, others])


_RESOLVED_YEAR = pl.col("yearWorth") + pl.col("yearGain") + pl.col("unseenWorth") * pl.col("unseenDays")
_RESOLVED_BEFORE = pl.col("beforeWorth") + pl.col("beforeGain")

EFFECTS = Table(
    id="effects",
    name="Effects of resolving reasons",
    hierarchy="customer",
    type="summary",
    keys=(Column("code", "text"), Column("subject", "text")),
    details=(Column("unseenWorth", "ratio"),),
    listed=listed_effects,
    sources=(
        Source(
            gained_days,
            (
                Total("yearGain", "ratio", pl.col("year_gain")),
                Total("beforeGain", "ratio", pl.col("before_gain")),
                Total("newDays", "days", pl.when("is_new").then(pl.lit(1))),
            ),
        ),
        Source(
            documented_days,
            (
                Total("yearWorth", "ratio", pl.when("in_year").then("worth")),
                Total("beforeWorth", "ratio", pl.when(~pl.col("in_year")).then("worth")),
                Total("daysSeen", "days", pl.when("in_year").then(pl.lit(1))),
            ),
            keys=(),
        ),
    ),
    derived=(
        Derived("now", "points", ("yearWorth", "beforeWorth"), score_of_worth(), "completenessScore"),
        Derived(
            "unseenDays",
            "days",
            ("daysSeen", "newDays"),
            YEAR_DAYS - pl.col("daysSeen") - pl.col("newDays"),
            f"{YEAR_DAYS} − daysSeen − newDays",
        ),
        Derived(
            "completenessScore",
            "points",
            ("yearWorth", "yearGain", "unseenWorth", "unseenDays", "beforeWorth", "beforeGain"),
            score(points(_RESOLVED_YEAR, _RESOLVED_BEFORE)),
            f"{YEAR_POINTS} × (yearWorth + yearGain + unseenWorth × unseenDays) / {YEAR_DAYS} + {EARLIER_POINTS} × "
            f"(beforeWorth + beforeGain) / {EARLIER_DAYS}",
        ),
        Derived(
            "effect",
            "points",
            ("completenessScore", "now"),
            pl.col("completenessScore") - pl.col("now"),
            "completenessScore once it is resolved − completenessScore now",
        ),
    ),
    order=("code", "subject"),
)
