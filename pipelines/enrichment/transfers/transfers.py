"""Pair the two sides of transfers between the customer's own accounts.

A pair is an amount out of one account and the same amount into another, close in time, one to one. Among many equal
amounts, the texts decide best which belong together: they name each other's accounts, print the same reference, or both
mention a transfer. So pairs with the strongest texts are taken first; among equally strong ones, those of the same day,
then those a day apart, and so on. A text that names another of the customer's accounts excludes a pair.

Rows alike in `_ALIKE` are one kind, and a join finds the kinds that can be paired. Each step then pairs the n-th row of
a kind with the n-th of another. So no join has more rows than its input times the number of accounts and of days, and
thousands of equal amounts on one day (a hostile or synthetic feed) are paired in a few joins. Rows known to be with
somebody else (a named merchant, the bank itself) are left out unless their text names an own account, because their
amount may match by chance.
"""

from collections.abc import Iterator, Sequence
from functools import cache

import polars as pl

from pipelines.enrichment.account_details import find_details, replace_details
from pipelines.enrichment.calendars import SETTLEMENT, business_day_number
from pipelines.enrichment.matching.identities import derive_ids
from pipelines.enrichment.names.holders import holder_name
from pipelines.enrichment.transfers.own_accounts import GUESS, add_named_account, list_accounts
from pipelines.enrichment.wording.phrases import bare_words
from pipelines.enrichment.wording.text import matching_text
from pipelines.vocabulary.places import add_by_row, mark_places
from pipelines.vocabulary.schemas import TRANSACTIONS, UUID, AccountType, CategorySource, posted
from pipelines.vocabulary.taxonomy import TAXONOMY, TRANSFER

CARD_REPAYMENT = TAXONOMY.categories["card_repayment"]
CARD_ADVANCE = TAXONOMY.categories["card_advance"]
BASIS = "both sides found"
BY_NUMBER = "names an own account"
# Longest time between the two sides, with room for a cut-off time and a long weekend (our judgement).
MAX_CALENDAR_DAYS = 6
MAX_BUSINESS_DAYS = 3

REFERENCE_FROM = 4  # characters: a shorter one may match by chance (our judgement)

# The confidence in a pair by tier, strongest first: both texts name the other's account, or one does; then the sum of
# both sides' `_transfer_score`, from 4 down to 0. Not calibrated.
BOTH_NAME, ONE_NAMES = 0, 1
CONFIDENCE = (0.99, 0.99, 0.99, 0.98, 0.95, 0.9, 0.8)
SAME_REFERENCE_CONFIDENCE = 0.99

_NEVER_OWN_KINDS = ("business", "government")
_NEVER_OWN_CHANNELS = ("card", "eftpos", "atm", "cash", "fee", "interest")
_NEVER_OWN_GROUPS = ("revenue", "other_income", "payroll", "tax", "distress", "high_risk")
_NEVER_OWN_CATEGORIES = ("interest_charged", "loan_fees", "bank_fees", "merchant_fees", "related_entity")
_YET_MAYBE_OWN = ("customer_transfer",)  # its words fit payments by others and one's own from another bank
_NEVER_OWN = tuple(
    slug
    for slug, category in TAXONOMY.categories.items()
    if slug in _NEVER_OWN_CATEGORIES or (category.group in _NEVER_OWN_GROUPS and slug not in _YET_MAYBE_OWN)
)
_TRANSFER_CATEGORIES = (TRANSFER.slug, CARD_REPAYMENT.slug)
_DEBT_GROUPS = ("debt_inflow", "debt_service")
_FROM_OWNERS = ("director_loan_in", "director_loan_out")
_OWING_ACCOUNTS = ("credit_card", "loan", "other")  # accounts that loans are drawn from and repaid to
_REMITTER = 16  # characters of a payer's name that direct entry carries
_NAME_FROM = 6  # characters: a shorter name may match by chance (our judgement)
_TRANSFER_WORDS = r"\b(?:TRANSFER|TRANSF|TFR|TRF|TFER|XFER|TRNS|LINKED|SWEEP|INTERNAL|OWN|SAVINGS?|OFFSET)\b"

_OPTIONAL = (
    *("account_name", "account_number", "account_type", "bsb", "other_account", "reference", "channel"),
    *("related_party", "category_source", "category_basis"),
)
_SIDE = ("customer_number", "size")
_SIDES = (
    *("row", "place", *_SIDE, "out", "date", "transaction_id", "reference"),
    *("account_id", "account_type", "named_account"),
)
_PAIRED = pl.Schema(
    {
        "row": pl.UInt32(),
        "transfer_pair_id": UUID,
        "pair_confidence": pl.Float64(),
        "from_type": AccountType,
        "into_type": AccountType,
    }
)
_CANDIDATES = pl.Schema(
    {
        "place": pl.UInt32(),
        "place_in": pl.UInt32(),
        "transaction_id": UUID,
        "transaction_id_in": UUID,
        "account_type": AccountType,
        "account_type_in": AccountType,
        "tier": pl.Int8(),
        "row_in": pl.UInt32(),
        "row_out": pl.UInt32(),
    }
)
_ALIKE = (
    "account_id",
    "account_type",
    "date",
    "out",
    "named_account",
    "says",
    "needs_owing",
)  # rows that are equal in these columns are interchangeable
Naming = tuple[
    bool, bool
]  # whether the outgoing row's text names the other account, and whether the incoming row's does
_NAMINGS: Sequence[Naming] = ((True, True), (True, False), (False, True), (False, False))
_TIERS = range(len(CONFIDENCE))
_MANY_PAIRS = 10_000_000  # of kinds; from this many on, each step is joined on its own to save memory (our judgement)
_CONFIDENCES = dict(enumerate(CONFIDENCE))
# Days from the amount out to the amount in, in order of preference: close before far, and leaving before arriving.
_DISTANCES = sorted(range(-MAX_CALENDAR_DAYS, MAX_CALENDAR_DAYS + 1), key=lambda days: (abs(days), days < 0))


def mark_transfers(rows: pl.DataFrame) -> pl.DataFrame:
    """Fill `is_transfer` and `transfer_pair_id`, and set the category of paired rows (`_set_category`).

    Optional columns that no earlier step has filled count as null.
    """
    missing = {name: TRANSACTIONS[name] for name in _OPTIONAL if name not in rows.columns}
    return (
        rows.drop("is_transfer", "transfer_pair_id", strict=False)
        .with_columns(pl.lit(None, kind).alias(name) for name, kind in missing.items())
        .pipe(_add_pairs)
        .with_columns(is_transfer=pl.col("transfer_pair_id").is_not_null())
        .pipe(_set_category)
        .pipe(_set_category_by_number)
        .drop("pair_confidence", "from_type", "into_type", *missing)
    )


def _add_pairs(rows: pl.DataFrame) -> pl.DataFrame:
    """Add the columns of pairs: `transfer_pair_id`, `pair_confidence`, `from_type` and `into_type`."""
    numbered = rows.with_row_index("row")
    moved = _select_moved(numbered)
    pairs = pl.DataFrame(schema=_PAIRED) if moved.is_empty() else _pair_sides(_select_sides(moved, numbered))
    return add_by_row(rows, pairs)


def _set_category(rows: pl.DataFrame) -> pl.DataFrame:
    """Set the category of paired rows, whatever their text says.

    A transfer into a credit card account is a card repayment, money from one an advance. Drawdowns and repayments of
    loans keep their category, as do rows that the client corrected. All others are transfers between own accounts.
    """
    corrected = pl.col("category_source").is_in(("client_rule", "correction")).fill_null(value=False)
    found = pl.col("is_transfer") & ~corrected
    repaid = pl.col("into_type").eq_missing("credit_card")
    advanced = pl.col("from_type").eq_missing("credit_card") & (pl.col("amount") > 0) & ~repaid
    lent = pl.col("category_group").is_in(_DEBT_GROUPS).fill_null(value=False)
    changed = found & (repaid | advanced | ~lent)
    settled, group = (
        pl.when(repaid)
        .then(pl.lit(getattr(CARD_REPAYMENT, name)))
        .when(advanced)
        .then(pl.lit(getattr(CARD_ADVANCE, name)))
        .otherwise(pl.lit(getattr(TRANSFER, name)))
        for name in ("slug", "group")
    )
    by_pair = pl.lit("counterparty", CategorySource)  # decided by the counterparty, which is the customer itself
    return rows.with_columns(
        category=pl.when(changed).then(settled).otherwise("category"),
        category_group=pl.when(changed).then(group).otherwise("category_group"),
        category_source=pl.when(changed).then(by_pair).otherwise("category_source"),
        category_basis=pl.when(changed).then(pl.lit(BASIS)).otherwise("category_basis"),
        confidence=pl.when(found).then("pair_confidence").otherwise("confidence"),
    )


def _set_category_by_number(rows: pl.DataFrame) -> pl.DataFrame:
    """Let unpaired rows be own transfers if their text names an own account by its number, and nothing else.

    The other side may be missing, or be described as something else.
    """
    unexplained = pl.col("category").is_in(("unknown_credit", "unknown_debit")) & pl.col("counterparty_name").is_null()
    numbered = rows.with_row_index("row")
    printed = numbered.filter(pl.col("other_account").is_not_null(), ~pl.col("is_transfer"), unexplained)
    if printed.is_empty():  # true for many customers
        return rows
    naming = add_named_account(printed, list_accounts(rows)).drop_nulls("named_account")
    named = mark_places(naming["row"], rows.height)
    stated = {
        "category": pl.lit(TRANSFER.slug),
        "category_group": pl.lit(TRANSFER.group),
        "category_source": pl.lit("counterparty", CategorySource),
        "category_basis": pl.lit(BY_NUMBER),
        "confidence": pl.lit(CONFIDENCE[ONE_NAMES]),
    }
    return rows.with_columns(pl.when(named).then(value).otherwise(name).alias(name) for name, value in stated.items())


def _select_moved(numbered: pl.DataFrame) -> pl.DataFrame:
    """Select the posted rows whose amount left one account and entered another."""
    posted_rows = numbered.filter(posted(), pl.col("amount") != 0).with_columns(
        size=pl.col("amount").abs(), out=pl.col("amount") < 0
    )
    return posted_rows.join(_find_opposite_amounts(posted_rows), on=_SIDE, how="semi")


def _select_sides(moved: pl.DataFrame, numbered: pl.DataFrame) -> pl.DataFrame:
    """Select the moved amounts that may be one side of a transfer."""
    return (
        moved.pipe(replace_details, find_details(numbered))
        .pipe(add_named_account, list_accounts(numbered))
        .filter(~_is_with_others() | _names_own_account())
        .sort("customer_number", "received_seq", "position", "transaction_id")
        .with_row_index("place")
        .select(_SIDES, says=_transfer_score(), needs_owing=_needs_owing_account())
    )


def _find_opposite_amounts(posted_rows: pl.DataFrame) -> pl.DataFrame:
    """Return the amounts that left one account of a customer and entered another."""
    account, out = pl.col("account_id"), pl.col("out")
    several = account.min() != account.max()
    return posted_rows.group_by(_SIDE).agg(candidates=several & out.any() & ~out.all()).filter("candidates")


@cache
def _is_with_others() -> pl.Expr:
    """Return whether name, category, related party or channel show that a row is with others. Guesses don't count."""
    named = pl.col("counterparty_kind").is_in(_NEVER_OWN_KINDS) | pl.col("related_party").is_not_null()
    guessed = (pl.col("category_source") == "learned") & (pl.col("confidence") < GUESS)
    categorised = pl.col("category").is_in(_NEVER_OWN) & ~guessed.fill_null(value=False)
    is_transfer = pl.col("category").is_in(_TRANSFER_CATEGORIES).fill_null(value=False) | _has_transfer_words()
    railed = pl.col("channel").is_in(_NEVER_OWN_CHANNELS) & ~is_transfer
    return pl.any_horizontal(each.fill_null(value=False) for each in (named, categorised, railed))


@cache
def _names_own_account() -> pl.Expr:
    """Return whether the text names an account of the customer by its digits, or the accounts' holder."""
    return pl.col("named_account").is_not_null() | _names_holder()


@cache
def _names_holder() -> pl.Expr:
    """Return whether the text has the account's name, without account words and as direct entry cuts it."""
    holder = holder_name().str.head(_REMITTER)
    text = pl.format(" {} ", bare_words(matching_text(pl.col("description"))))
    named = text.str.contains(pl.format(" {}", bare_words(holder)), literal=True)
    return (named & (holder.str.len_chars() >= _NAME_FROM)).fill_null(value=False)


@cache
def _transfer_score() -> pl.Expr:
    """Return how clearly the text describes an own transfer: 2 clearly, 1 by some words, 0 not at all."""
    own = pl.col("category").is_in(_TRANSFER_CATEGORIES) | (pl.col("counterparty_kind") == "own") | _names_holder()
    return pl.when(own).then(2).when(_has_transfer_words()).then(1).otherwise(0).cast(pl.Int8)


@cache
def _has_transfer_words() -> pl.Expr:
    return matching_text(pl.col("description")).str.contains(_TRANSFER_WORDS)


@cache
def _needs_owing_account() -> pl.Expr:
    """Return whether the other side must be an owing account.

    That is so if the row borrows or repays, its own account is not an owing one, and its text names no account.
    """
    lent = pl.col("category_group").is_in(_DEBT_GROUPS) & ~pl.col("category").is_in(_FROM_OWNERS)
    here = pl.col("account_type").is_in(_OWING_ACCOUNTS).fill_null(value=True)
    return lent.fill_null(value=False) & ~here & pl.col("named_account").is_null()


def _pair_sides(sides: pl.DataFrame) -> pl.DataFrame:
    """Pair the sides: `row`, `transfer_pair_id`, `pair_confidence` and both account types, two rows per pair."""
    printed = sides.filter(pl.col("reference").str.len_chars() >= REFERENCE_FROM)
    referred = _match_sides(printed, (*_SIDE, "reference"))
    rest = _drop_paired(sides, referred)
    return _add_pair_ids(
        pl.concat(
            [
                referred.with_columns(pair_confidence=pl.lit(SAME_REFERENCE_CONFIDENCE)),
                _match_sides(rest, _SIDE).with_columns(pair_confidence=pl.col("tier").replace_strict(_CONFIDENCES)),
            ]
        )
    )


def _match_sides(sides: pl.DataFrame, key: Sequence[str]) -> pl.DataFrame:
    """Pair rows with the same `key`, each row at most once: the strongest texts first, then the closest in time."""
    free = sides.with_columns(kind=pl.col("place").min().over(*key, *_ALIKE)).pipe(_number_alike)
    chosen = [pl.DataFrame(schema=_CANDIDATES)]
    for meeting in _list_meetings(free, key):
        candidates = _find_candidates(free, meeting)
        while not candidates.is_empty():
            found = _keep_first_of_each(candidates)
            chosen.append(found)
            free = _drop_paired(free, found).pipe(_number_alike)
            if found.height == candidates.height:  # no row had two candidates, so the rest has none
                break
            candidates = _find_candidates(free, meeting)
    return pl.concat(chosen)


def _drop_paired(sides: pl.DataFrame, pairs: pl.DataFrame) -> pl.DataFrame:
    return sides.filter(~pl.col("row").is_in(pl.concat([pairs["row_out"], pairs["row_in"]]).implode()))


def _list_meetings(free: pl.DataFrame, key: Sequence[str]) -> Iterator[pl.DataFrame]:
    """Yield the kinds of rows that can be paired (`kind`, `kind_in`), by tier and days, in the order to take them.

    The first row of a kind represents all. Few kinds are joined at once, which takes less time; many step by step.
    """
    firsts = free.filter(pl.col("nth") == 0)
    if firsts.is_empty():
        return
    many = _count_pairs(firsts, key) > _MANY_PAIRS
    for tiers in [[tier] for tier in _TIERS] if many else [_TIERS]:
        for days in [[days] for days in _DISTANCES] if many else [_DISTANCES]:
            kinds = _join_sides(firsts, key, days).filter(pl.col("tier").is_in(tiers)).collect()
            steps = kinds.partition_by("tier", "days", as_dict=True)
            yield from (steps[step] for step in sorted(steps, key=lambda step: (step[0], _DISTANCES.index(step[1]))))


def _count_pairs(firsts: pl.DataFrame, key: Sequence[str]) -> int:
    """Count the pairs of kinds with the same `key`, on whatever days."""
    out = pl.col("out").cast(pl.Int64)
    pairs: int = firsts.group_by(key).agg(pairs=out.sum() * (1 - out).sum()).select(pl.col("pairs").sum()).item()
    return pairs


def _find_candidates(free: pl.DataFrame, meeting: pl.DataFrame) -> pl.DataFrame:
    """Pair the n-th row of a kind with the n-th row of each kind that it meets.

    Returns:
        _CANDIDATES. A row may have one in each other account.
    """
    known = free.select("kind", "nth", "row", "place", "transaction_id", "account_type")
    out = meeting.join(known, on="kind")
    candidates = out.join(known, left_on=("kind_in", "nth"), right_on=("kind", "nth"), suffix="_in")
    return candidates.select(*_CANDIDATES.names()[:-1], row_out="row")


def _number_alike(free: pl.DataFrame) -> pl.DataFrame:
    """Add `nth`, the place of each row in its kind, from 0."""
    return free.with_columns(nth=pl.int_range(pl.len()).over("kind"))


def _keep_first_of_each(candidates: pl.DataFrame) -> pl.DataFrame:
    """Keep each row's first pair, so that no row occurs twice."""
    return (
        candidates.sort("place", "place_in")
        .unique("place", keep="first", maintain_order=True)
        .unique("place_in", keep="first", maintain_order=True)
    )


def _join_sides(firsts: pl.DataFrame, key: Sequence[str], days: Sequence[int]) -> pl.LazyFrame:
    """Join outgoing rows with incoming rows `days` later: `kind`, `kind_in`, `tier` and `days`.

    Pairs within one account, too many business days apart, or without the owing account they need are dropped.
    """
    arrived = firsts.lazy().filter(~pl.col("out")).join(pl.LazyFrame({"days": days}, {"days": pl.Int8()}), how="cross")
    into = arrived.with_columns(arrived="date", date=pl.col("date") - pl.duration(days="days"))
    out = firsts.lazy().filter("out")
    elsewhere = pl.col("account_id") != pl.col("account_id_in")
    return (
        pl.concat([_join_by_naming(out, into, [*key, "date"], naming) for naming in _NAMINGS])
        .filter(elsewhere, _is_within_business_days(), _has_owing_account())
        .select("kind", "kind_in", "days", tier=_tier())
    )


def _join_by_naming(out: pl.LazyFrame, into: pl.LazyFrame, on: Sequence[str], naming: Naming) -> pl.LazyFrame:
    """Join sides: a row that names an account only with rows of that account, other rows with those of any account."""
    named = pl.col("named_account").is_not_null()
    of_out = [here for here, says in zip(("named_account", "account_id"), naming, strict=True) if says]
    of_in = [there for there, says in zip(("account_id", "named_account"), naming, strict=True) if says]
    return out.filter(named == naming[0]).join(
        into.filter(named == naming[1]), left_on=[*on, *of_out], right_on=[*on, *of_in], suffix="_in", coalesce=False
    )


@cache
def _tier() -> pl.Expr:
    names, names_in = (pl.col(name).is_not_null() for name in ("named_account", "named_account_in"))
    by_words = len(CONFIDENCE) - 1 - pl.col("says") - pl.col("says_in")
    return pl.when(names & names_in).then(BOTH_NAME).when(names | names_in).then(ONE_NAMES).otherwise(by_words)


@cache
def _has_owing_account() -> pl.Expr:
    """Return whether each side that needs an owing account has one on the other side."""
    owes, owes_in = (
        pl.col(name).is_in(_OWING_ACCOUNTS).fill_null(value=True) for name in ("account_type", "account_type_in")
    )
    return (owes_in | ~pl.col("needs_owing")) & (owes | ~pl.col("needs_owing_in"))


@cache
def _is_within_business_days() -> pl.Expr:
    """Return whether few business days of settlement lie between the dates: the earlier included, the later not."""
    first, last = pl.min_horizontal("date", "arrived"), pl.max_horizontal("date", "arrived")
    before_first, before_last = (
        business_day_number(day - pl.duration(days=1), pl.lit(SETTLEMENT)) for day in (first, last)
    )
    return before_last - before_first <= MAX_BUSINESS_DAYS


def _add_pair_ids(pairs: pl.DataFrame) -> pl.DataFrame:
    ids = derive_ids(pairs["transaction_id"], pairs["transaction_id_in"])
    named = pairs.rename({"account_type": "from_type", "account_type_in": "into_type"}).with_columns(
        transfer_pair_id=ids
    )
    return pl.concat([named.with_columns(row=side).select(_PAIRED.names()) for side in ("row_out", "row_in")])
