"""Find rows that an account holds twice or more, because they were sent again and matching didn't recognise them.

A feed may be sent again with other words, ids or balances: as one file, or in pieces of any size. Nobody says which
submissions belong together. So each day is judged by itself, receipts and payments separately: it is *repeated* if its
amounts occur as if everything came in two or more copies. One such day may be a coincidence, so repeated days count
only where they are the rule.
"""

import polars as pl

from pipelines.figures.accounts import BY_ACCOUNT
from pipelines.figures.facts import Facts
from pipelines.figures.negligible import CENTS
from pipelines.vocabulary.plans import collect
from pipelines.vocabulary.schemas import TRANSACTIONS

MIN_EXCESS = 5  # days of evidence more than days that aren't repeated; our judgement
_SIDE = (*BY_ACCOUNT, "is_receipt")
_DATE = (*BY_ACCOUNT, "date")
_DAY = (*_DATE, "is_receipt")
_AMOUNT = (*_DAY, "cents")
_SENT = pl.col("received_seq")
_FOUND = pl.Schema({name: TRANSACTIONS[name] for name in (*BY_ACCOUNT, "date", "transaction_id")})
_NONE_FOUND = _FOUND.to_frame()


def rows_sent_again(facts: Facts) -> pl.DataFrame:
    """Return `customer_number`, `account_id`, `date`, `transaction_id` of each row that repeats one received before.

    Only days are judged on which several submissions have rows. Such a day is repeated if each amount that several of
    them have occurs in equal copies, and at most one of them has amounts that no other has. It is evidence if chance
    hardly explains that: either an amount in copies occurs on no other day, or all submissions have the same rows and
    no earlier repeated day has their sum. (A shop with one price that sends each sale by itself has an even number of
    equal rows on every second day.)

    A repeated day counts if some stretch of the judged days around it has at least MIN_EXCESS more days of evidence
    than days that aren't repeated.
    """
    rows = facts.rows.lazy().filter(pl.col("amount") != 0)
    sent = rows.select(*_FOUND, "received_seq", "balance_verified", is_receipt=pl.col("amount") > 0, cents=CENTS)
    several = _SENT.n_unique().alias("submissions")
    shared = sent.group_by(_DAY).agg(several).filter(pl.col("submissions") > 1).pipe(collect)
    if shared.height < MIN_EXCESS:  # true for most customers
        return _NONE_FOUND
    amounts = _count_amounts(sent, shared.lazy()).pipe(collect)
    judged = _judge_days(amounts.lazy()).pipe(collect).lazy()
    counting = _find_stretches(judged).join(judged.filter("is_repeated"), on=_DATE).with_columns(copies=_usual_copies())
    copied = amounts.lazy().filter("is_shared").drop("copies").join(counting.select(*_DAY, "copies"), on=_DAY)
    return (
        sent.join(copied.select(*_AMOUNT, stay=pl.col("rows") // pl.col("copies")), on=_AMOUNT, maintain_order="left")
        .filter(pl.int_range(pl.len()).over(_AMOUNT) >= pl.col("stay"))
        .select(_FOUND.names())
        .pipe(collect)
    )


def _count_amounts(sent: pl.LazyFrame, shared: pl.LazyFrame) -> pl.LazyFrame:
    """Return the amounts of days on which several submissions have rows.

    `submissions`: how many have rows on that day; `submitted`: how many have the amount, `since`: the first of these,
    `is_shared`: whether they are several; `rows`, and the `most` in one submission; `copies` in which the day's shared
    amounts may have come; `dates`: on how many days the account has the amount; `is_proven`: whether every row has a
    balance that follows.
    """
    rows, most = pl.col("rows"), pl.col("most")
    dates = sent.group_by(*_SIDE, "cents").agg(dates=pl.col("date").n_unique())
    follows = pl.col("balance_verified").eq_missing(other=True).all()
    return (
        sent.join(shared, on=_DAY)
        .group_by(*_AMOUNT, "received_seq", "submissions")
        .agg(rows=pl.len(), is_proven=follows)
        .group_by(*_AMOUNT, "submissions")
        .agg(rows.sum(), pl.col("is_proven").all(), most=rows.max(), submitted=pl.len(), since=_SENT.min())
        .with_columns(is_shared=pl.col("submitted") > 1)
        .with_columns(copies=pl.when("is_shared").then(rows // most).min().over(_DAY))
        .join(dates, on=(*_SIDE, "cents"))
    )


def _judge_days(amounts: pl.LazyFrame) -> pl.LazyFrame:
    """Return the days of `_count_amounts` in order: _DAY, `copies`, `is_repeated`, and their `weight`."""
    rows, copies, is_shared = pl.col("rows"), pl.col("copies"), pl.col("is_shared")
    submissions, own = pl.col("submissions").first(), pl.col("since").filter(~is_shared)
    # Equal rows may each be a submission of their own. Then only balances distinguish them from rows sent again.
    is_proven = pl.col("is_proven").all() & (rows.sum() == submissions)
    is_repeated = (copies.first() > 1) & (~is_shared | (rows % copies == 0)).all() & (own.n_unique() < 2) & ~is_proven
    is_equal = (rows == pl.col("most") * pl.col("submitted")) & (pl.col("submitted") == submissions)
    judged = amounts.group_by(_DAY).agg(
        copies.first(),
        is_repeated=is_repeated.fill_null(value=False),
        has_own_amount=(is_shared & (pl.col("dates") == 1)).any(),
        is_equal=is_equal.all(),
        content=pl.struct(count=(rows // copies).sum(), moved=(rows // copies * pl.col("cents")).sum()),
    )
    is_new = pl.when("is_repeated").then("content").is_first_distinct().over(_SIDE)
    is_evidence = pl.col("has_own_amount") | (pl.col("is_equal") & is_new)
    return judged.sort(_DAY).select(
        *_DAY, "copies", "is_repeated", weight=pl.when("is_repeated").then(is_evidence.cast(pl.Int64)).otherwise(-1)
    )


def _find_stretches(judged: pl.LazyFrame) -> pl.LazyFrame:
    """Return the days (_DATE) of stretches with MIN_EXCESS more days of evidence than days that aren't repeated."""
    weight = pl.col("weight")
    until, since = weight.cum_sum(), weight.cum_sum(reverse=True)
    ending = until - until.shift(1, fill_value=0).cum_min()
    beginning = since - since.shift(-1, fill_value=0).cum_min(reverse=True)
    best = (ending + beginning - weight).over(BY_ACCOUNT)
    # A day with receipts and payments counts once. If only one of them is repeated, it tells nothing.
    days = judged.group_by(_DATE).agg(weight.sum().clip(-1, 1)).sort(_DATE)
    return days.filter(best >= MIN_EXCESS).select(_DATE)


def _usual_copies() -> pl.Expr:
    """Return the number of copies that most of the account's repeated days came in, or the day's own if that can't be.

    Four equal rows, each a submission of its own, are four copies of one row or two copies of two.
    """
    usual = pl.col("copies").mode().min().over(BY_ACCOUNT)
    return pl.when(pl.col("copies") % usual == 0).then(usual).otherwise("copies")
