"""Coverage: how much of the evidence for a reading is there, from 0 to 1.

    coverage of a reading of rows      = smaller of (share of rows, share of money) categorised × share of days seen
    coverage of a reading of balances  = share of days whose balances are proven

Only rows and days count that the reading needs (`NeededEvidence`): credits or debits, kinds of accounts, a period. A
row is categorised if a correction, rule, list or phrase gave its category, or the model with a confidence of at least
MIN_CONFIDENCE. Readings of history (months with activity) need no words: any row covers them in full.

Days are days of expected accounts in the period. Every supplied account is expected: from the beginning of the
period, or from its first row if it began with a balance of zero. One more account is expected in part. There are two
signs of it, and the one that shows the larger part counts:

- Own transfers or card repayments of the last year name accounts that were not supplied, however many, or at least
  MIN_UNNAMED own transfers of the last year have no other side and name no account. Then LEAST_UNSUPPLIED of an account
  is expected, and more if the supplied accounts rely on it. What it paid in and what it received are compared with what
  all others did, and the larger of the two shares (at most MAX_RELIANCE) is added for each supplied account: once for
  readings of rows, because what was earned and paid there isn't seen; RELIANCE_FOR_BALANCES times for readings of
  balances, up to a whole account.
- Rows of the last year have no words, which might name an account: their share of the rows.

| a day of an account                                  | seen, for readings of rows     | for readings of balances |
|------------------------------------------------------|--------------------------------|--------------------------|
| its balances follow from earlier ones (`proven`)     | 1                              | 1                        |
| with or near a row, but nothing is proven (`silent`) | ½; 1 if no balances expected   | 0                        |
| any other day                                        | 0                              | 0                        |

Readings of balances add up all cash accounts. If one that may be overdrawn never states a balance, the sum is unknown,
and no day of the customer is seen for them: what was left out may be far below zero.

For counts of bad rows, no day of an account is proven if in the period a row is missing or has a text in another style,
and nobody resolved it (open `rows_withheld`, `dishonours_withheld`, `texts_reworded`): that row may be one of them. If
texts of instalments seem to be forged (open `instalments_reworded`), no day is seen for any reading that other texts of
debits would improve: whoever changed some texts may have changed that of any bad row or repayment, in any account and
period.

A day is near a row if it is at most ALLOWED_SILENCE days before one, or after the account's last row. No day of a
silence that the account's rhythm makes improbable counts as seen (open finding `month_withheld`).

Readings that compare parts of a period (trends, growth, volatility) have no day seen if such a silence lies in it: what
was left out of one part may look like growth in another.

Rows of next to no money (`figures.negligible`) count neither as categorised nor as uncategorised, and end no silence:
otherwise a few cents would be evidence, and lines of 0.00 for information would count against a customer.

Leaving evidence out hardly ever raises coverage. Balances can only add to the days seen, and words only to the rows
categorised. An account that is left out lowers coverage if others mention it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import lru_cache, reduce
from itertools import chain
from typing import Any, Literal

import polars as pl

from pipelines.figures import words
from pipelines.figures.accounts import BY_ACCOUNT, ROUNDING
from pipelines.figures.facts import OF_ACCOUNT, Facts
from pipelines.figures.lineage import Constant, Formula, Sum, Trace, contributions
from pipelines.figures.mentions import mentions
from pipelines.figures.negligible import is_negligible
from pipelines.figures.offsets import offsets
from pipelines.figures.periods import BY_CUSTOMER
from pipelines.integrity import counts_unproven_until, open_silences, reworded_customers, unproven_since
from pipelines.metrics.definition import (
    Arithmetic,
    Balances,
    Days,
    Definition,
    Groups,
    History,
    Metric,
    Metrics,
    Months,
    Transactions,
    Where,
    Window,
)
from pipelines.scorecards.expected import Expected
from pipelines.scorecards.scorecard import COVERAGE, COVERAGE_OF
from pipelines.vocabulary.plans import AS_WRITTEN, SHARING, collect
from pipelines.vocabulary.report_values import ratio
from pipelines.vocabulary.taxonomy import TAXONOMY, TRANSFER

MIN_CONFIDENCE = 0.7  # of the model; calibrated, so at least seven in ten of these answers are right
ALLOWED_SILENCE = 35  # days: an account with monthly payments has a row by then; our judgement, like ½ and MIN_UNNAMED
MIN_UNNAMED = 3  # one-sided own transfers that name no account
NEVER_OVERDRAWN = ("savings", "term_deposit")  # kinds of cash accounts
MAX_RELIANCE = 9  # then about a tenth of the days are seen; our judgement
# How much is expected of an account that others only mention: enough that leaving one out improves almost no rating,
# and no more, since sound businesses have such accounts as often as failing ones (`make bench PARTS=risk`).
LEAST_UNSUPPLIED, RELIANCE_FOR_BALANCES = 0.25, 2
YEAR = 365  # days; also the period of readings that read all history
_MONTHS_IN_YEAR = 12
_COUNTED = ("count", "per month")
_COMPARING = ("monthly_slope", "monthly_volatility")
_BY_MEANING = ("counterparty", "lender", "category", "series", "facility")
CARD_REPAYMENT = TAXONOMY.categories["card_repayment"]
Kind = Literal["balances", "rows", "history"]
Side = Literal["credit", "debit"] | None


@dataclass(frozen=True)
class NeededEvidence:
    """The evidence that a reading needs.

    Attributes:
        kind: days of proven `balances`, categorised `rows`, or any rows (`history`).
        side: which rows; None: both.
        account_types: the rows of which accounts; empty: all.
        since, until: how many days before the customer's last row the period begins and ends.
        by_meaning: the reading depends on what payments are for.
        beyond_revenue: it depends on more than which rows are revenue.
        counts_bad_rows: it counts rows of which a single one matters.
        trusts_texts: it would be better if debits that it reads had other texts.
        compares_periods: it compares parts of the period with each other, as a trend does.
    """

    kind: Kind
    side: Side = None
    account_types: frozenset[str] = frozenset()
    since: int = 0
    until: int = 0
    by_meaning: bool = False
    beyond_revenue: bool = False
    counts_bad_rows: bool = False
    trusts_texts: bool = False
    compares_periods: bool = False

    def is_expected(self, expected: Expected) -> bool:
        if self.kind == "balances":
            return expected.balances
        return expected.words or not self.beyond_revenue


def find_needed_evidence(metric: Metric, among: Metrics) -> NeededEvidence:
    """Return the evidence that a metric needs: all that its inputs need, or only the balances if any needs balances."""
    parts = list(_needs_of_inputs(metric, among))
    balances = [part for part in parts if part.kind == "balances"]
    need = reduce(_combine_needs, balances or parts)
    periods = {(part.since, part.until) for part in parts if part.kind == "rows"}
    reads_bad_rows = metric.direction == "lower_is_better" and need.beyond_revenue
    return replace(
        need,
        counts_bad_rows=reads_bad_rows and metric.unit in _COUNTED,
        trusts_texts=reads_bad_rows and need.side != "credit",
        compares_periods=need.compares_periods or (need.kind == "rows" and len(periods) > 1),
    )


def _needs_of_inputs(metric: Metric, among: Metrics) -> Iterator[NeededEvidence]:
    match metric.definition:
        case Arithmetic(inputs=inputs):
            for slug in inputs:
                yield from _needs_of_inputs(among[slug], among)
            if not inputs:
                yield NeededEvidence("history")
        case History():
            yield NeededEvidence("history")
        case Balances(window=window):
            yield NeededEvidence("balances", None, frozenset(), *_ages(window))
        case definition:
            yield _need_of_rows(definition)


@lru_cache(maxsize=1_000)
def _need_of_rows(definition: Transactions | Groups) -> NeededEvidence:
    """Return the evidence needed by a metric of rows, including the rows that it divides by."""
    wheres = [definition.where]
    grouping: Any = "facility" if isinstance(definition, Groups) else definition.by
    if isinstance(definition, Transactions):
        wheres += [definition.of] if definition.of else []
    by_meaning = grouping in _BY_MEANING or any(_filters_by_meaning(each) for each in wheres)
    needs_words = by_meaning or any(each.external is not None for each in wheres)
    return NeededEvidence(
        "rows" if needs_words else "history",
        _common_side({_side(definition, each) for each in wheres}),
        frozenset(kind for each in wheres for kind in each.account_types),
        *_ages(definition.window),
        by_meaning,
        by_meaning and (grouping in _BY_MEANING or not all(_names_revenue(each) for each in wheres)),
        compares_periods=definition.aggregate in _COMPARING,
    )


def _side(definition: Definition, where: Where) -> Side:
    measure = getattr(definition, "measure", "amount")
    side = {"money_in": "credit", "money_out": "debit"}.get(measure, where.direction)
    return side if side in ("credit", "debit") else None


def _common_side(sides: set[Side]) -> Side:
    return next(iter(sides)) if len(sides) == 1 else None


def _ages(window: Window) -> tuple[int, int]:
    match window:
        case Days(days=days, offset=offset):
            return offset + days, offset
        case Months(months=months, offset=offset):
            return (offset + months) * YEAR // _MONTHS_IN_YEAR, offset * YEAR // _MONTHS_IN_YEAR
        case None:
            return YEAR, 0


def _combine_needs(one: NeededEvidence, other: NeededEvidence) -> NeededEvidence:
    if "history" in (one.kind, other.kind) and one.kind != other.kind:
        return other if one.kind == "history" else one
    kinds = one.account_types | other.account_types
    return replace(
        one,
        side=_common_side({one.side, other.side}),
        account_types=kinds if one.account_types and other.account_types else frozenset(),
        since=max(one.since, other.since),
        until=min(one.until, other.until),
        by_meaning=one.by_meaning or other.by_meaning,
        beyond_revenue=one.beyond_revenue or other.beyond_revenue,
        compares_periods=one.compares_periods or other.compares_periods,
    )


def _filters_by_meaning(where: Where) -> bool:
    """Return whether the filter depends on what a row is for, not only on its day, amount, account and balance."""
    plain = ("direction", "external", "account_types", "unreconciled", "at_least", "at_most")
    return where.model_copy(update=dict.fromkeys(plain)) != Where().model_copy(update=dict.fromkeys(plain))


def _names_revenue(where: Where) -> bool:
    return where.groups == ("revenue",) or not _filters_by_meaning(where)


def is_covered() -> pl.Expr:
    """Match rows that count as categorised."""
    source = pl.col("category_source")
    unsure = (source == "learned") & (pl.col("confidence").fill_null(0) < MIN_CONFIDENCE)
    return words.is_categorised() & ~unsure.fill_null(value=False) & source.ne_missing(pl.lit("fallback"))


# Coverage of many readings


def coverage(facts: Facts, slugs: Sequence[str], among: Metrics, expected: Expected) -> pl.DataFrame:
    """Return `customer_number`, COVERAGE_OF + slug (COVERAGE) and `documented` of every customer.

    Coverage is null where the reading's evidence isn't expected, and 0 for customers without rows. `documented` is the
    share of the expected days of the last YEAR that are seen.
    """
    needs = {slug: find_needed_evidence(among[slug], among) for slug in slugs}
    alike = tuple(dict.fromkeys(_ignore_meaning(each) for each in needs.values()))
    inputs = _sum_inputs(facts, tuple(dict.fromkeys([*alike, LAST_YEAR])), expected)
    # Collected separately, because only the plan of the inputs has large parts in common.
    summed = inputs.collect(engine="in-memory", optimizations=SHARING).lazy()
    covered = summed.select(_coverage_columns(alike, expected)).select(_columns_by_slug(tuple(needs.items()), expected))
    return covered.collect(engine="in-memory", optimizations=AS_WRITTEN)


@lru_cache(maxsize=100)
def _columns_by_slug(needs: Sequence[tuple[str, NeededEvidence]], expected: Expected) -> Sequence[pl.Expr]:
    by_slug = (_coverage_if_expected(each, expected).alias(COVERAGE_OF + slug) for slug, each in needs)
    return pl.col(BY_CUSTOMER), *by_slug, pl.col("documented")


@lru_cache(maxsize=100)
def _coverage_columns(needs: Sequence[NeededEvidence], expected: Expected) -> Sequence[pl.Expr]:
    days, expected_days = day_columns(LAST_YEAR)
    return (
        pl.col(BY_CUSTOMER),
        *(_coverage_column(each, expected).alias(_column_name("coverage", each)) for each in needs),
        _share(pl.col(days), pl.col(expected_days)).alias("documented"),
    )


LAST_YEAR = NeededEvidence("rows", since=YEAR)


def explain_coverage(facts: Facts, need: NeededEvidence, expected: Expected) -> Formula:
    """Explain one customer's coverage of evidence that is expected. `facts`: of this customer alone."""
    if need.kind == "history":
        return Formula(
            "1 where there are rows, else 0", {"rows": facts.rows.height}, lambda values: _apply_shares(need, values)
        )
    rows, days = _row_parts(need), _day_parts(need, expected)
    traced: dict[str, Trace | Constant] = {}
    if need.kind == "rows" and expected.words:
        of_rows = _counted_rows(facts, [need])
        traced |= {name: Sum(contributions(of_rows, part.cast(pl.Decimal(38, 2)))) for name, part in rows.items()}
    traced |= {name: _sum_days(facts, part) for name, part in days.items()}
    text = "the smaller of the shares of rows and money categorised" if len(traced) > len(days) else "1"
    text = f"{text}, times days / expected_days (of all accounts together)"
    return Formula(text, traced, lambda values: _apply_shares(need, values))


def explain_documented(facts: Facts, expected: Expected) -> Formula:
    """Explain the share of the last YEAR's days that is seen."""
    parts = {name: _sum_days(facts, part) for name, part in _day_parts(LAST_YEAR, expected).items()}
    return Formula("days / expected_days (of all accounts together)", parts, _apply_share)


def _sum_days(facts: Facts, half_days: pl.Expr) -> Sum:
    return Sum(contributions(find_stretches(facts).lazy(), half_days.cast(pl.Decimal(38, 4)) / 2))


def _apply_shares(need: NeededEvidence, values: Mapping[str, Constant]) -> Constant:
    parts = [pl.lit(value, pl.Decimal(38, 4)) for value in values.values()]
    found: Constant = pl.select(multiply_shares(need, parts)).item()
    return found


def _apply_share(values: Mapping[str, Constant]) -> Constant:
    days, expected_days = (pl.lit(value, pl.Decimal(38, 4)) for value in values.values())
    found: Constant = pl.select(_share(days, expected_days)).item()
    return found


def _coverage_column(need: NeededEvidence, expected: Expected) -> pl.Expr:
    return multiply_shares(need, [pl.col(name) for name in input_columns(need, expected)]).cast(COVERAGE)


def _coverage_if_expected(need: NeededEvidence, expected: Expected) -> pl.Expr:
    is_expected = need.is_expected(expected)
    return pl.col(_column_name("coverage", need)) if is_expected else pl.lit(None, COVERAGE)


def input_columns(need: NeededEvidence, expected: Expected) -> tuple[str, ...]:
    """Return the columns from which coverage is computed, in the order that `multiply_shares` takes them."""
    if need.kind == "history":
        return ("rows_of_any_kind",)
    days = day_columns(need)
    if need.kind == "balances" or not expected.words:
        return days
    return (*(_column_name(each, _which_rows(need)) for each in _SHARES), *days)


def _ignore_meaning(need: NeededEvidence) -> NeededEvidence:
    """Return what decides which rows and days are counted, so that equal counts are computed once."""
    return replace(need, by_meaning=False, beyond_revenue=False)


def _which_rows(need: NeededEvidence) -> NeededEvidence:
    """Return what decides which rows are counted."""
    return replace(need, counts_bad_rows=False, trusts_texts=False, compares_periods=False)


def _which_days(need: NeededEvidence) -> NeededEvidence:
    """Return what decides which days are counted."""
    return replace(need, side=None, account_types=frozenset())


def day_columns(need: NeededEvidence) -> tuple[str, str]:
    """Return the names of the columns with the days seen and the days expected, both in half days."""
    days = _which_days(need)
    return _column_name("days", days), _column_name("expected_days", _which_rows(days))


_SHARES = ("categorised_rows", "all_rows", "categorised_money", "all_money")


def multiply_shares(need: NeededEvidence, parts: Sequence[pl.Expr]) -> pl.Expr:
    """Return the coverage: the share of rows or money categorised times the share of days seen.

    Args:
        parts: columns in the order of `input_columns`.
    """
    if need.kind == "history":
        return pl.when(parts[0] > 0).then(pl.lit(Decimal(1), COVERAGE)).otherwise(pl.lit(Decimal(0), COVERAGE))
    seen = _share(parts[-2], parts[-1])
    if len(parts) == 2:
        return seen
    categorised = pl.min_horizontal(_share(parts[0], parts[1], of_nothing=1), _share(parts[2], parts[3], of_nothing=1))
    return (categorised * seen).cast(COVERAGE)


def _share(part: pl.Expr, whole: pl.Expr, *, of_nothing: int = 0) -> pl.Expr:
    """Return a share from 0 to 1, or `of_nothing` if the whole is 0: without rows, none is uncategorised."""
    return ratio(part, whole).fill_null(of_nothing).clip(0, 1)


def _column_name(what: str, need: NeededEvidence) -> str:
    flags = f"{' counts' * need.counts_bad_rows}{' texts' * need.trusts_texts}{' compared' * need.compares_periods}"
    return f"{what} {need.kind} {need.side} {sorted(need.account_types)} {need.since} {need.until}{flags}"


def _sum_inputs(facts: Facts, needs: Sequence[NeededEvidence], expected: Expected) -> pl.LazyFrame:
    """Return every customer's `input_columns` for all needs."""
    of_rows, of_days = _inputs_of_rows_and_days(needs, expected)
    rows = _counted_rows(facts, needs).select(BY_CUSTOMER, *of_rows)
    days = find_stretches(facts).lazy().select(BY_CUSTOMER, *of_days)
    joined = facts.customers.lazy()
    for parts in (rows, days):
        joined = joined.join(parts.group_by(BY_CUSTOMER).agg(pl.all().sum()), on=BY_CUSTOMER, how="left")
    return joined.with_columns(pl.exclude(BY_CUSTOMER).fill_null(0)).sort(BY_CUSTOMER)


def _counted_rows(facts: Facts, needs: Sequence[NeededEvidence]) -> pl.LazyFrame:
    """Return rows with what coverage reads of them: also their `size`, whether each `is_covered` or `is_negligible`,
    and the `account_type` if a need asks for it.
    """
    is_typed = any(each.account_types for each in needs)
    rows = facts.add_account_type(facts.rows) if is_typed else facts.rows
    read = (BY_CUSTOMER, "transaction_id", "age", "amount", *([OF_ACCOUNT] if is_typed else []))
    return rows.lazy().select(
        *read,
        size=pl.col("amount").abs(),
        is_covered=is_covered(),
        is_negligible=is_negligible([BY_CUSTOMER]),
    )


@lru_cache(maxsize=100)
def _inputs_of_rows_and_days(
    needs: Sequence[NeededEvidence], expected: Expected
) -> tuple[Sequence[pl.Expr], Sequence[pl.Expr]]:
    """Return what a row adds to the `input_columns`, and what a stretch of days adds."""
    row_needs = dict.fromkeys(_which_rows(each) for each in needs if each.kind == "rows")
    day_needs = dict.fromkeys(_which_days(each) for each in needs if each.kind != "history")
    rows = (_name_columns(each, _row_parts(each)) for each in row_needs)
    days = (zip(day_columns(each), _day_parts(each, expected).values(), strict=True) for each in day_needs)
    of_days = [part.alias(name) for name, part in dict(chain(*days)).items()]
    return [pl.lit(1, pl.Int64).alias("rows_of_any_kind"), *chain(*rows)], of_days


def _name_columns(need: NeededEvidence, parts: Mapping[str, pl.Expr]) -> Iterator[pl.Expr]:
    return (part.alias(_column_name(name, need)) for name, part in parts.items())


def _row_parts(need: NeededEvidence) -> Mapping[str, pl.Expr]:
    size, needed = pl.col("size"), is_needed_row(need)
    both = needed & pl.col("is_covered")
    one = pl.when(~pl.col("is_negligible")).then(pl.lit(1, pl.Int64))
    parts = (pl.when(rows).then(part) for part in (one, size) for rows in (both, needed))
    return dict(zip(_SHARES, parts, strict=True))


def is_needed_row(need: NeededEvidence) -> pl.Expr:
    """Match the rows that the reading needs: of its period, side and kinds of accounts."""
    matches = (pl.col("age") < need.since) & (pl.col("age") >= need.until)
    if need.side is not None:
        matches &= pl.col("amount") > 0 if need.side == "credit" else pl.col("amount") < 0
    if need.account_types:
        matches &= pl.col("account_type").is_in(sorted(need.account_types)).fill_null(value=False)
    return matches


# Days of accounts


def find_stretches(facts: Facts) -> pl.DataFrame:
    """Return stretches: consecutive days of an account that count alike.

    Ages are in days before the customer's last row. Columns:

    - `customer_number`, `account_id`, and `transaction_id` of the stretch's last row
    - `newest` and `oldest`: the ages of its last and first day; `oldest` is null if days are `expected` from the
      beginning of the period
    - `begun`: of `expected` days, the age of the account's first day
    - `is_cash`: whether it is of a cash account
    - `counts_unproven`: the age of the day up to which bad rows of the account can't be counted; null: none
    - `silent`: the age of the customer's last day after an improbable silence
    - `is_total_unknown`: whether an account that may be overdrawn states no balance
    - `is_reworded`: whether texts of the customer seem to be forged
    - `what`: `proven`, `silent` (unproven), `expected`, or `unsupplied` (expected of an account that was not supplied)
    - only for `unsupplied`: the account counts as `rows` / `all_rows` accounts for readings of rows, and as
      `rows_of_balances` / `all_rows` for readings of balances; `is_mentioned`: whether other accounts mention it
    """
    return facts.cached(_find_stretches)


def _find_stretches(facts: Facts) -> pl.DataFrame:
    days = _days_with_rows(facts).pipe(collect).lazy()
    first, last = _age(pl.col("date").first()), _age(pl.col("date").last())
    accounts = days.group_by("account", maintain_order=True).agg(
        pl.col(*_ACCOUNT, "may_be_overdrawn").last(),
        begun=first,
        ended=last,
        states_any=pl.col("offset").is_not_null().any(),
        opened_at_zero=(pl.col("offset").drop_nulls().first().abs() <= pl.lit(ROUNDING)).fill_null(value=False),
    )
    after = accounts.filter(pl.col("ended") > 0).select(
        *_ACCOUNT,
        what=pl.lit("silent"),
        newest=(pl.col("ended") - ALLOWED_SILENCE).clip(lower_bound=0),
        oldest=pl.col("ended") - 1,
    )
    expected = accounts.select(
        *_ACCOUNT,
        "begun",
        what=pl.lit("expected"),
        newest=pl.lit(0, pl.Int64),
        oldest=pl.when("opened_at_zero").then("begun"),
    )
    parts = pl.concat([_stretches(days), after, expected, _unsupplied_accounts(facts)], how="diagonal_relaxed")
    unproven = facts.cached(counts_unproven_until).lazy()
    reworded = facts.cached(reworded_customers)[BY_CUSTOMER].implode()
    total_unknown = accounts.filter(pl.col("may_be_overdrawn"), ~pl.col("states_any")).pipe(collect)
    history = facts.history.lazy().select(BY_CUSTOMER, "data_through")
    silent = facts.cached(open_silences).lazy().group_by(BY_CUSTOMER).agg(silent_until=pl.col("date").max())
    return (
        parts.join(unproven, on=BY_ACCOUNT, how="left", validate="m:1", maintain_order="left")
        .join(history, on=BY_CUSTOMER, how="left", validate="m:1", maintain_order="left")
        .join(silent, on=BY_CUSTOMER, how="left", validate="m:1", maintain_order="left")
        .with_columns(
            is_reworded=pl.col(BY_CUSTOMER).is_in(reworded),
            is_total_unknown=pl.col(BY_CUSTOMER).is_in(total_unknown[BY_CUSTOMER].implode()),
            counts_unproven=(pl.col("data_through") - pl.col("counts_unproven_until")).dt.total_days(),
            silent=(pl.col("data_through") - pl.col("silent_until")).dt.total_days(),
        )
        .drop("counts_unproven_until", "silent_until", "data_through")
        .pipe(collect)
    )


_ACCOUNT = (*BY_ACCOUNT, "transaction_id", "is_cash")


def _stretches(days: pl.LazyFrame) -> pl.LazyFrame:
    """Join consecutive days with rows into stretches of days that count alike, with the silent days before each."""
    long_silence = ~pl.col("holds") & (pl.col("pause") > ALLOWED_SILENCE)
    differs = (pl.col("account") != pl.col("account").shift()) | (pl.col("holds") != pl.col("holds").shift())
    begins = differs | long_silence | pl.col("ends_silence")
    # The day with rows itself and the days before it, of which there may be none.
    covered_days = pl.when("holds").then("pause").otherwise(pl.min_horizontal("pause", ALLOWED_SILENCE))
    return (
        days.with_columns(stretch=begins.fill_null(value=True).cum_sum(), covered_days=covered_days)
        .group_by("stretch", maintain_order=True)
        .agg(
            pl.col(*_ACCOUNT).last(),
            what=pl.when(pl.col("holds").first()).then(pl.lit("proven")).otherwise(pl.lit("silent")),
            newest=_age(pl.col("date").last()).first(),
            oldest=(_age(pl.col("date").first()) + pl.col("covered_days").first() - 1).first(),
        )
        .drop("stretch")
    )


def _age(day: pl.Expr) -> pl.Expr:
    return (pl.col("data_through").first() - day).dt.total_days()


def _days_with_rows(facts: Facts) -> pl.LazyFrame:
    """Return one row per account and day with rows, by account and day.

    Besides the columns of `offsets`: `account`, a number; `pause`, the days since the account's previous day with rows
    (1 on its first, and on the first after an improbable silence: `ends_silence`); `holds`, whether the balances stated
    before and after the day agree with the rows between them.
    """
    is_cash = words.is_cash_account()
    may_be_overdrawn = is_cash & ~pl.col("account_type").is_in(NEVER_OVERDRAWN).fill_null(value=False)
    of_accounts = facts.accounts.lazy().select(*BY_ACCOUNT, is_cash=is_cash, may_be_overdrawn=may_be_overdrawn)
    kinds = of_accounts.with_row_index("account")
    described = kinds.join(facts.history.lazy().select(BY_CUSTOMER, "data_through"), on=BY_CUSTOMER, how="left")
    offset, known = pl.col("offset"), pl.col("offset").is_not_null()
    before = offset.forward_fill().shift().over("account")
    pause = (pl.col("date") - pl.col("date").shift()).dt.total_days().over("account")
    is_stated = offset.forward_fill().over("account").is_not_null()
    is_doubted = (pl.col("date") >= pl.col("unproven_since")).fill_null(value=False)
    return (
        _outside_silences(offsets(facts).lazy(), facts.cached(open_silences).lazy())
        .join(described, on=BY_ACCOUNT, how="left", validate="m:1")
        .join(facts.cached(unproven_since).lazy(), on=BY_ACCOUNT, how="left", validate="m:1")
        .sort("account", "date")
        .with_columns(
            follows=pl.when(known).then((offset - before).abs() <= pl.lit(ROUNDING)),
            pause=pl.when("ends_silence").then(1).otherwise(pause.fill_null(1)),
        )
        .with_columns(
            holds=(pl.col("follows").backward_fill().over("account") & is_stated & ~is_doubted).fill_null(value=False)
        )
    )


def _outside_silences(days: pl.LazyFrame, silences: pl.LazyFrame) -> pl.LazyFrame:
    """Leave out days within improbable silences (rows there move next to no money), and add `ends_silence`."""
    within = (
        days.select(*BY_ACCOUNT, "date")
        .join(silences.rename({"date": "until"}), on=BY_ACCOUNT, how="inner")
        .filter(pl.col("date") > pl.col("silent_since"), pl.col("date") < pl.col("until"))
    )
    ends = silences.select(*BY_ACCOUNT, "date", ends_silence=pl.lit(value=True))
    return (
        days.join(within, on=[*BY_ACCOUNT, "date"], how="anti")
        .join(ends, on=[*BY_ACCOUNT, "date"], how="left", validate="m:1")
        .with_columns(pl.col("ends_silence").fill_null(value=False))
    )


def _unsupplied_accounts(facts: Facts) -> pl.LazyFrame:
    """Return the account that is expected of a customer although nobody supplied it, from its first sign on.

    Its signs are rows of the last YEAR that mention it, and rows without words. The one that shows more counts.
    """
    mentioning = _mentioning_rows(facts).select("transaction_id", mention="transaction_id")
    is_mention, is_wordless = pl.col("mention").is_not_null(), _is_wordless() & pl.col("counts")
    is_sign = is_mention | is_wordless
    least = pl.when("is_mentioned").then(LEAST_UNSUPPLIED).otherwise(0)
    of_balances = (least + RELIANCE_FOR_BALANCES * pl.col("reliance")).clip(upper_bound=1)
    return (
        facts.rows.lazy()
        .with_columns(counts=~is_negligible([BY_CUSTOMER]))
        .filter(pl.col("age") < YEAR)
        .join(mentioning, on="transaction_id", how="left")
        .group_by(BY_CUSTOMER)
        .agg(
            pl.col("transaction_id").filter(is_sign).max(),
            newest=pl.lit(0, pl.Int64),
            oldest=pl.col("age").filter(is_sign).max().cast(pl.Int64),
            all_rows=pl.col("counts").sum().clip(lower_bound=1).cast(pl.Int64),
            wordless=is_wordless.sum().cast(pl.Int64),
            is_mentioned=is_mention.any(),
            reliance=pl.col("account_id").n_unique() * _reliance(is_mention),
        )
        .drop_nulls("transaction_id")
        .with_columns(
            rows=_larger_part("wordless", least + pl.col("reliance")),
            rows_of_balances=_larger_part("wordless", of_balances),
            account_id=pl.lit(None, pl.Binary),
            is_cash=pl.lit(value=True),
            what=pl.lit("unsupplied"),
        )
        .drop("wordless", "reliance")
    )


def _larger_part(rows: str, share: pl.Expr) -> pl.Expr:
    """Return the larger of the column `rows` and a share of `all_rows`."""
    return pl.max_horizontal(rows, (pl.col("all_rows") * share).cast(pl.Int64))


def _reliance(is_mention: pl.Expr) -> pl.Expr:
    """Return what an unsupplied account paid in or received, as a share of what others did; the larger of the two."""
    # Cents: a sum of floats depends on the order of the rows.
    amount = pl.col("amount").to_physical().cast(pl.Int64)
    between_supplied = pl.col("is_transfer").fill_null(value=False)
    shares = list[pl.Expr]()
    for size in (amount.clip(lower_bound=0), (-amount).clip(lower_bound=0)):
        by_it, by_others = size.filter(is_mention).sum(), size.filter(~is_mention, ~between_supplied).sum()
        shares.append(pl.when(by_it > 0).then((by_it / by_others).clip(upper_bound=MAX_RELIANCE)).otherwise(0))
    return pl.max_horizontal(shares)


def _mentioning_rows(facts: Facts) -> pl.LazyFrame:
    """Return `transaction_id` of the transfers that mention an account that nobody supplied.

    They are own transfers and card repayments that name one. Own transfers of the last YEAR that have no other side and
    name no account count, too, if there are at least MIN_UNNAMED: a single one may be a payment to anybody.
    """
    own = pl.col("category").is_in((TRANSFER.slug, CARD_REPAYMENT.slug))
    one_sided = pl.col("category").eq_missing(TRANSFER.slug) & ~pl.col("is_transfer").fill_null(value=False)
    unnamed = (
        facts.rows.lazy()
        .filter(one_sided, pl.col("age") < YEAR)
        .join(mentions(facts).lazy(), on="transaction_id", how="anti")
        .filter(pl.len().over(BY_CUSTOMER) >= MIN_UNNAMED)
    )
    return pl.concat([mentions(facts).lazy().filter(own).select("transaction_id"), unnamed.select("transaction_id")])


def _is_wordless() -> pl.Expr:
    return (pl.col("description").fill_null("").str.strip_chars() == "") & ~words.is_categorised()


def _day_parts(need: NeededEvidence, expected: Expected) -> Mapping[str, pl.Expr]:
    """Return what a stretch adds to the days seen and to the days expected, both in half days."""
    what, is_of_balances = pl.col("what"), need.kind == "balances"
    begun = pl.col("oldest") if expected.months else pl.coalesce("oldest", "begun")
    oldest = pl.min_horizontal(begun.fill_null(need.since), need.since - 1)
    days = (oldest - pl.max_horizontal("newest", need.until) + 1).clip(lower_bound=0)
    if is_of_balances:
        days = pl.when("is_cash").then(days).otherwise(0)
    unproven = 0 if is_of_balances else 1 if expected.balances else 2
    proven: int | pl.Expr = 2
    if need.counts_bad_rows:
        # One row that is missing may be one that counts: then proven days prove nothing.
        proven = pl.when(pl.col("counts_unproven") < need.since).then(unproven).otherwise(2)
    seen = days * pl.when(what == "proven").then(proven).when(what == "silent").then(unproven).otherwise(0)
    if is_of_balances:
        seen = pl.when("is_total_unknown").then(0).otherwise(seen)
    if need.trusts_texts:
        seen = pl.when("is_reworded").then(0).otherwise(seen)
    if need.compares_periods:
        # What was left out of one part may look like growth in another.
        seen = pl.when(pl.col("silent") < need.since).then(0).otherwise(seen)
    wanted = pl.when(what == "expected").then(2 * days).otherwise(0)
    if expected.accounts and expected.words:  # only words mention accounts
        rows = pl.col("rows_of_balances" if is_of_balances else "rows")
        half_days = 2 * (need.since - need.until) * rows // pl.col("all_rows")
        wanted = pl.when((what == "unsupplied") & (days > 0)).then(half_days).otherwise(wanted)
    return {"days": seen, "expected_days": wanted}
