"""Coverage: how much of the evidence for a reading is there, from 0 to 1.

    coverage of a reading of rows      = smaller of (share of rows, share of money) categorised × share of days seen
    coverage of a reading of balances  = share of days whose balances are proven

Only rows and days count that the reading needs (`needed_evidence`): credits or debits, kinds of accounts, a period. A
row is categorised if a correction, rule, list or phrase gave its category, or the model with a confidence of at least
MIN_CONFIDENCE. Readings of history (months with activity) need no words: any row covers them in full.

Days are days of expected accounts in the period (`covered_days`); ½ is our judgement:

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

Readings that compare parts of a period (trends, growth, volatility) have no day seen if an improbable silence lies in
it (open `month_withheld`): what was left out of one part may look like growth in another.

Rows of next to no money (`figures.negligible`) count neither as categorised nor as uncategorised, and end no silence:
otherwise a few cents would be evidence, and lines of 0.00 for information would count against a customer.

Leaving evidence out hardly ever raises coverage. Balances can only add to the days seen, and words only to the rows
categorised. An account that is left out lowers coverage if others mention it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from functools import lru_cache
from itertools import chain

import polars as pl

from pipelines.figures import words
from pipelines.figures.facts import OF_ACCOUNT, Facts
from pipelines.figures.lineage import Constant, Formula, Sum, Trace, contributions
from pipelines.figures.negligible import is_negligible
from pipelines.figures.periods import BY_CUSTOMER
from pipelines.metrics.definition import Metrics
from pipelines.risk_models.covered_days import find_stretches
from pipelines.risk_models.needed_evidence import LAST_YEAR, NeededEvidence, find_needed_evidence
from pipelines.scorecards.expected import Expected
from pipelines.scorecards.scorecard import COVERAGE, COVERAGE_OF
from pipelines.vocabulary.plans import AS_WRITTEN, SHARING
from pipelines.vocabulary.report_values import ratio

MIN_CONFIDENCE = 0.7  # of the model; calibrated, so at least seven in ten of these answers are right


def is_covered() -> pl.Expr:
    """Match rows that count as categorised."""
    source = pl.col("category_source")
    unsure = (source == "learned") & (pl.col("confidence").fill_null(0) < MIN_CONFIDENCE)
    return words.is_categorised() & ~unsure.fill_null(value=False) & source.ne_missing(pl.lit("fallback"))


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
