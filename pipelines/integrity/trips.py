"""Detect money that comes in and goes out again, or the other way round: round trips, circles, month-end parking.

A receipt and a payment of equal size are a pair. How many days may lie between them depends on their parties: six weeks
if the same party is on both sides, but only three days if a party is unknown. One pair proves nothing, because deposits
are returned and invoices are paid twice, so each finding needs several. All thresholds are our judgement.
"""

import polars as pl

from pipelines.figures.facts import Facts
from pipelines.figures.periods import BY_CUSTOMER
from pipelines.integrity.candidates import RECENT, candidates, plain_words
from pipelines.vocabulary.plans import collect

SAME_PARTY_DAYS = 45  # six weeks, and the days that a bank takes
RELATED_DAYS = 21
AT_ONCE_DAYS = 3  # if at least one party is unknown
MIN_TRIPS = 2  # trips with one party: a deposit or a second payment of an invoice is returned only once
MIN_ANY = 3  # trips with several parties, or with unknown ones
MIN_SHARE_OF_PAYER = 0.5  # of a payer's receipts that go to a similar or related name
MIN_TURNS = 3  # of a circle
CIRCLE_DAYS = 14
MIN_THROUGH = 0.94  # share of a payment that comes back in a circle; whoever passes it on keeps a small fee
MAX_PARKED_DAYS = 9  # between the two rows of parked money
DAYS_AT_MONTHS_END, DAYS_OF_NEXT_MONTH = 4, 8  # parked money comes in the first of these, and leaves in the second
MIN_MONTHS_PARKED = 2  # in which the same happened
_STEADY = ("payroll", "premises", "rent_received")  # fixed by contracts, so the same pair recurs every month
_KEY, _PARTY = (BY_CUSTOMER, "size"), (BY_CUSTOMER, "party")
# Words that many names of businesses share, so that sharing them means nothing.
COMMON = ("the", "and", "pty", "ltd", "limited", "trust", "services", "group", "holdings", "australia", "company")


def pairs(facts: Facts) -> pl.DataFrame:
    """Return receipts paired with payments of equal size, each row in at most one pair of each `relation`.

    Columns: `transaction_id`, `date`, `party` and others of the receipt; the same of the payment, with the suffix
    `_out`; `gap`, the days from receipt to payment (negative: the payment came first); and `relation` of the two
    parties: `same`, `similar`, `related`, `unknown` or `other`.
    """
    matched = _match_sizes(facts)
    if matched.is_empty():  # true for most customers, and naming the relations of no pairs still takes time
        return matched.with_columns(relation=pl.lit(""))
    return (
        matched.lazy()
        .with_columns(plain_words("name"), plain_words("name_out"))
        .with_columns(relation=_relation())
        .filter(pl.col("gap").abs() <= _longest_gap())
        .sort(*_KEY, pl.col("gap").abs(), "transaction_id", "transaction_id_out")
        .unique(["relation", "transaction_id"], keep="first", maintain_order=True)
        .unique(["relation", "transaction_id_out"], keep="first", maintain_order=True)
        .sort(BY_CUSTOMER, "date", "transaction_id")
        .pipe(collect)
    )


def _match_sizes(facts: Facts) -> pl.DataFrame:
    """Return receipts with payments of equal size within SAME_PARTY_DAYS."""
    recent = facts.cached(candidates).lazy().filter(pl.col("age") < RECENT + SAME_PARTY_DAYS)
    columns = (*_KEY, "transaction_id", "date", "age", "party", "name", "category")
    receipts, payments = (recent.filter(pl.col(side)).select(columns) for side in ("is_receipt", "is_payment"))
    gap = (pl.col("date_out") - pl.col("date")).dt.total_days()
    return (
        receipts.join(payments, on=_KEY, how="inner", suffix="_out")
        .with_columns(gap=gap)
        .filter(pl.col("gap").abs() <= SAME_PARTY_DAYS, pl.min_horizontal("age", "age_out") < RECENT)
        .pipe(collect)
    )


def _relation() -> pl.Expr:
    """Return the relation of a pair's parties: the first of these that applies."""
    same = pl.col("party") == pl.col("party_out")
    unknown = pl.col("party").is_null() | pl.col("party_out").is_null()
    return (
        pl.when(same.fill_null(value=False))
        .then(pl.lit("same"))
        .when(is_similar().fill_null(value=False))
        .then(pl.lit("similar"))
        .when(_is_related().fill_null(value=False))
        .then(pl.lit("related"))
        .when(unknown)
        .then(pl.lit("unknown"))
        .otherwise(pl.lit("other"))
    )


def _longest_gap() -> pl.Expr:
    days = {"same": SAME_PARTY_DAYS, "similar": SAME_PARTY_DAYS, "related": RELATED_DAYS, "other": CIRCLE_DAYS}
    return pl.col("relation").replace_strict(days, default=AT_ONCE_DAYS, return_dtype=pl.Int64)


def is_similar() -> pl.Expr:
    """Return whether `name` and `name_out` could be two spellings of one name: their first two words agree.

    Two words agree if they are equal, if one is the other's initial, or if their first five letters are equal and their
    lengths differ by at most two. So Harbour and Harbor agree; timber and tiling don't.
    """
    first, second = (_words_agree(nth) for nth in (0, 1))
    return first & second


def _words_agree(nth: int) -> pl.Expr:
    one, other = (_nth_word(name, nth) for name in ("name", "name_out"))
    initial = ((one.str.len_chars() == 1) | (other.str.len_chars() == 1)) & (one.str.head(1) == other.str.head(1))
    length = one.str.len_chars().cast(pl.Int64) - other.str.len_chars().cast(pl.Int64)
    return (one == other) | initial | ((one.str.head(5) == other.str.head(5)) & (length.abs() <= 2))


def _nth_word(name: str, nth: int) -> pl.Expr:
    return pl.col(name).str.split(" ").list.get(nth, null_on_oob=True)


def _is_related() -> pl.Expr:
    """Return whether the money went to an owner or a related entity, or both names share an uncommon word."""
    to_owner = pl.col("category_out").is_in(["owner_drawings", "director_loan_out", "dividend_paid", "related_entity"])
    words = (_uncommon_words(name) for name in ("name", "name_out"))
    shared = next(words).list.set_intersection(next(words)).list.len() > 0
    return to_owner | shared


def _uncommon_words(name: str) -> pl.Expr:
    return (
        pl.col(name)
        .str.split(" ")
        .list.eval(pl.element().filter((pl.element().str.len_chars() >= 4) & ~pl.element().is_in(COMMON)))
    )


def round_trips(facts: Facts) -> pl.LazyFrame:
    """Return trips whose receipt and payment have the same party.

    There must be at least MIN_TRIPS with that party, or MIN_ANY with all such parties together.
    """
    same = facts.cached(pairs).lazy().filter(pl.col("relation") == "same")
    with_party, of_all = pl.len().over(BY_CUSTOMER, "party"), pl.len().over(BY_CUSTOMER)
    return same.filter((with_party >= MIN_TRIPS) | (of_all >= MIN_ANY)).pipe(_both_sides, pl.col("name"))


def similar_trips(facts: Facts) -> pl.LazyFrame:
    """Return trips between similar names, of payers with MIN_SHARE_OF_PAYER of their receipts in trips."""
    returned = _find_mostly_returned(facts, "similar")
    return returned.filter(pl.len().over(BY_CUSTOMER) >= MIN_TRIPS).pipe(_both_sides, pl.col("name"))


def related_trips(facts: Facts) -> pl.LazyFrame:
    """Return trips between related parties, of payers with MIN_SHARE_OF_PAYER of their receipts in trips.

    Where nothing shows that the payees are related to the payer, MIN_ANY of its receipts must have been passed on.
    """
    related, any_payee = _find_mostly_returned(facts, "related"), _find_mostly_returned(facts, "related", "other")
    several = related.filter(pl.len().over(BY_CUSTOMER) >= MIN_TRIPS)
    passed_on = any_payee.filter(pl.col("gap") > 0).filter(pl.len().over(BY_CUSTOMER, "party") >= MIN_ANY)
    return pl.concat([several, passed_on]).unique(maintain_order=True).pipe(_both_sides, pl.col("name"))


def _find_mostly_returned(facts: Facts, *relations: str) -> pl.LazyFrame:
    """Return trips of these relations, of payers with MIN_SHARE_OF_PAYER of their receipts in such trips."""
    receipts = (
        facts.cached(candidates)
        .lazy()
        .filter("is_receipt", pl.col("age") < RECENT)
        .group_by(BY_CUSTOMER, "party")
        .agg(in_all=pl.len())
    )
    trips = facts.cached(pairs).lazy().filter(pl.col("relation").is_in(relations))
    counted = trips.join(receipts, on=[BY_CUSTOMER, "party"], how="left", nulls_equal=True, validate="m:1")
    returned = pl.col("transaction_id").n_unique().over(BY_CUSTOMER, "party")
    return counted.filter(returned >= MIN_SHARE_OF_PAYER * pl.col("in_all"))


def unnamed_trips(facts: Facts) -> pl.LazyFrame:
    """Return trips in which at most one party is known: at least MIN_ANY, each within AT_ONCE_DAYS.

    A pair on one day, or with the payment first, doesn't count: it may be a payment that failed and that the bank
    returned.
    """
    unknown = facts.cached(pairs).lazy().filter(pl.col("relation") == "unknown", pl.col("gap") > 0)
    return unknown.filter(pl.len().over(BY_CUSTOMER) >= MIN_ANY).pipe(_both_sides, pl.lit(None, pl.String))


def circle_turns(facts: Facts) -> pl.DataFrame:
    """Return payments that come back from another party, in full or less the same small fee, MIN_TURNS times.

    Besides the columns of `pairs`: `through`, how much came back, in thousandths of the payment.
    """
    is_steady = pl.col("category_group").is_in(_STEADY) | pl.col("category").is_in(_STEADY)
    rows = facts.cached(candidates).lazy()
    recent = rows.filter(pl.col("age") < RECENT, pl.col("party").is_not_null(), ~is_steady)
    columns = (BY_CUSTOMER, "transaction_id", "date", "party", "name", "size", "is_revenue")
    receipts = recent.filter(pl.col("is_receipt")).select(*columns, *_periods(0))
    payments = recent.filter(pl.col("is_payment")).select(*columns, *_periods(0, 1)).explode("period")
    through = (pl.col("size") * 1000 / pl.col("size_out")).round()
    gap = (pl.col("date") - pl.col("date_out")).dt.total_days()
    turns = (
        receipts.join(payments, on=[BY_CUSTOMER, "period"], how="inner", suffix="_out")
        .filter(
            pl.col("party") != pl.col("party_out"),
            pl.col("size").is_between(pl.col("size_out") * MIN_THROUGH, pl.col("size_out")),
            gap.is_between(1, CIRCLE_DAYS),
        )
        .with_columns(through=through, gap=gap)
        .pipe(collect)
    )
    if turns.height < MIN_TURNS:
        return turns.clear()
    return (
        turns.lazy()
        .sort(BY_CUSTOMER, "gap", "transaction_id", "transaction_id_out")
        .unique([BY_CUSTOMER, "party", "party_out", "transaction_id"], keep="first", maintain_order=True)
        .unique([BY_CUSTOMER, "party", "party_out", "transaction_id_out"], keep="first", maintain_order=True)
        .filter(pl.len().over(BY_CUSTOMER, "party", "party_out", "through") >= MIN_TURNS)
        .pipe(collect)
    )


def circles(facts: Facts) -> pl.LazyFrame:
    """Return both sides of `circle_turns`."""
    return facts.cached(circle_turns).lazy().pipe(_both_sides, pl.col("name"))


def _periods(*after: int) -> list[pl.Expr]:
    """Return the numbers of CIRCLE_DAYS periods in which a row may meet another: its own plus each of `after`."""
    own = pl.col("date").dt.epoch("d") // CIRCLE_DAYS
    return [(own if after == (0,) else pl.concat_list(*(own + n for n in after))).alias("period")]


def parked_receipts(facts: Facts) -> pl.LazyFrame:
    """Return receipts of a month's last days that leave early in the next month, in MIN_MONTHS_PARKED months.

    A receipt of the data's last days from the same party is returned, too: it has not had time to leave yet.
    """
    over = _is_at_months_end() & (pl.col("date_out").dt.month_start() > pl.col("date"))
    leaves = (pl.col("date_out").dt.day() <= DAYS_OF_NEXT_MONTH) & (pl.col("gap") <= MAX_PARKED_DAYS)
    left = facts.cached(pairs).lazy().filter(over & leaves, pl.col("relation") != "other")
    often = left.filter(pl.col("date").dt.month_start().n_unique().over(BY_CUSTOMER) >= MIN_MONTHS_PARKED)
    still_there = (
        facts.cached(candidates)
        .lazy()
        .filter("is_receipt", _is_at_months_end(), pl.col("age") <= MAX_PARKED_DAYS)
        .join(
            often.select(BY_CUSTOMER, "party", about="name").unique(_PARTY, keep="first", maintain_order=True),
            on=_PARTY,
        )
        .select(BY_CUSTOMER, "about", "transaction_id", cents="size")
    )
    return pl.concat([often.pipe(_both_sides, pl.col("name")), still_there])


def _is_at_months_end() -> pl.Expr:
    return (pl.col("date").dt.month_end() - pl.col("date")).dt.total_days() < DAYS_AT_MONTHS_END


def _both_sides(trips: pl.LazyFrame, about: pl.Expr) -> pl.LazyFrame:
    """Return both sides of pairs as rows of a finding; only the receipt contributes to the amount."""
    named = trips.with_columns(about=about)
    return pl.concat(
        [
            named.select(BY_CUSTOMER, "about", "transaction_id", cents="size"),
            named.select(BY_CUSTOMER, "about", transaction_id="transaction_id_out", cents=pl.lit(0, pl.Int64)),
        ]
    )
