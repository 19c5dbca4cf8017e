"""Days of accounts: which days are proven or near a row, and which are expected.

A day is near a row if it is at most ALLOWED_SILENCE days before one, or after the account's last row. No day of a
silence that the account's rhythm makes improbable counts as seen (open finding `month_withheld`).

Every supplied account is expected: from the beginning of the period, or from its first row if it began with a balance
of zero. One more account is expected in part. There are two signs of it, and the one that shows the larger part counts:

- Own transfers or card repayments of the last year name accounts that were not supplied, however many, or at least
  MIN_UNNAMED own transfers of the last year have no other side and name no account. Then LEAST_UNSUPPLIED of an account
  is expected, and more if the supplied accounts rely on it. What it paid in and what it received are compared with what
  all others did, and the larger of the two shares (at most MAX_RELIANCE) is added for each supplied account: once for
  readings of rows, because what was earned and paid there isn't seen; RELIANCE_FOR_BALANCES times for readings of
  balances, up to a whole account.
- Rows of the last year have no words, which might name an account: their share of the rows.
"""

import polars as pl

from pipelines.figures import words
from pipelines.figures.accounts import BY_ACCOUNT, ROUNDING
from pipelines.figures.facts import Facts
from pipelines.figures.mentions import mentions
from pipelines.figures.negligible import is_negligible
from pipelines.figures.offsets import offsets
from pipelines.figures.periods import BY_CUSTOMER
from pipelines.integrity import counts_unproven_until, open_silences, reworded_customers, unproven_since
from pipelines.risk_models.needed_evidence import YEAR
from pipelines.vocabulary.plans import collect
from pipelines.vocabulary.taxonomy import TAXONOMY, TRANSFER

ALLOWED_SILENCE = 35  # days: an account with monthly payments has a row by then; our judgement, like the next
MIN_UNNAMED = 3  # one-sided own transfers that name no account
NEVER_OVERDRAWN = ("savings", "term_deposit")  # kinds of cash accounts
MAX_RELIANCE = 9  # then about a tenth of the days are seen; our judgement
# How much is expected of an account that others only mention: enough that leaving one out improves almost no rating,
# and no more, since sound businesses have such accounts as often as failing ones (`make bench PARTS=risk`).
LEAST_UNSUPPLIED, RELIANCE_FOR_BALANCES = 0.25, 2
CARD_REPAYMENT = TAXONOMY.categories["card_repayment"]


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
