"""Match rows of PDF statements with rows held for the same account that are the same transactions.

A statement describes a transaction in other words than a feed, a listing in other words than the later statement. Some
of them date a card payment by its purchase, others by its posting. So where one of two rows comes from a statement,
the words don't decide. The following do, the surest first:

1. the same date, amount and balance;
2. the same amount and balance on days at most SHIFT apart: the n-th row of one side with the n-th of the other, if
   both sides have the same number of such rows and nothing shows that they are two transactions (`_find_seams`);
3. the same date and amount, if at least one row states no balance: rows with similar words first, then in their order,
   but never so that fewer rows can be paired in total.

Rows whose balances differ are never matched. Rows sent as data are matched with each other word for word (`matching`).
A row sent as data may repeat a row of either kind: it takes equal balances first, then equal words, then the rest.

Matches depend on what was held when a submission arrived. So a submission that may repeat an earlier one begins a
new `Turn` of its account. Submissions that can't repeat any join the turn before.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cache
from itertools import product
from typing import NamedTuple

import polars as pl

from pipelines.enrichment.matching.matching import (
    ORDER,
    REPEATS,
    match_word_for_word,
    pair_in_order,
    select_unpaired,
    select_unpaired_held,
    states_balance,
)
from pipelines.vocabulary.schemas import MONEY

# Days between purchase and posting: a weekend, a holiday, and the days that a card payment takes (our judgement).
SHIFT = 5
# Pairs of rows with one day and amount whose words are compared. With more pairs, only the order counts: comparing
# takes the product of both sides.
MAX_COMPARED = 2_500

_PROVEN_KEY = ("account_id", "date", "amount", "balance")
_SAME_BALANCE = ("account_id", "amount", "balance")
_SAME_DAY = ("account_id", "date", "amount")
_SOURCE = ("account_id", "received_seq", "statement_id")
_ID_KEY = ("account_id", "sent_id")


@dataclass(frozen=True)
class Turn:
    """Rows of submissions that can be added together, and those of them (`may_repeat`) that may repeat a held row."""

    rows: pl.DataFrame
    may_repeat: pl.DataFrame


def split_into_turns(held: pl.DataFrame, new: pl.DataFrame, replacing: pl.DataFrame) -> list[Turn]:
    """Split new rows into turns, in order; at least one.

    All rows of an account without a statement go in the first turn.

    Args:
        replacing: `account_id` and `received_seq` of submissions that begin a turn although they may repeat no row.
    """
    if not any(frame["statement_id"].count() for frame in (held, new)):
        return [Turn(new, new.clear())]
    repeating = pl.concat([_find_repeating(held, new), replacing]).unique()
    if repeating.is_empty():
        return [Turn(new, new.clear())]
    submission, begun = ["account_id", "received_seq"], pl.col("meets").cum_sum().over("account_id")
    numbered = (
        new.select(submission)
        .unique()
        .join(repeating.with_columns(meets=pl.lit(1)), on=submission, how="left", validate="1:1")
        .sort(submission)
        .with_columns(pl.col("meets").fill_null(0))
        .with_columns(turn=begun - begun.first().over("account_id"))
    )
    marked = new.join(numbered, on=submission, validate="m:1", maintain_order="left")
    each = sorted(marked.partition_by("turn", as_dict=True, include_key=False).items())
    return [Turn(rows.drop("meets"), rows.filter(pl.col("meets") == 1).drop("meets")) for _, rows in each]


def _find_repeating(held: pl.DataFrame, new: pl.DataFrame) -> pl.DataFrame:
    """Return `account_id` and `received_seq` of new submissions with a row that may repeat an earlier one."""
    both = pl.concat([frame.select(*_SAME_DAY, "received_seq", "statement_id") for frame in (held, new)])
    in_reach = both.join(new, on=["account_id", "amount"], how="semi")
    days = pl.int_range(-SHIFT, SHIFT + 1, eager=True).alias("days").to_frame()
    seq = pl.col("received_seq")
    near = (
        in_reach.join(in_reach.filter(is_from_statement()), on=["account_id", "amount"], how="semi")
        .group_by(_SAME_DAY)
        .agg(first_seq=seq.min(), first_statement=seq.filter(is_from_statement()).min())
        .join(days, how="cross")
        .with_columns(pl.col("date") + pl.duration(days="days"))
        .group_by(_SAME_DAY)
        .agg(pl.col("first_seq", "first_statement").min())
    )
    repeats = pl.when(is_from_statement()).then(pl.col("first_seq") < seq).otherwise(pl.col("first_statement") < seq)
    met = new.join(near, on=_SAME_DAY, validate="m:1").filter(repeats)
    return met.select("account_id", "received_seq").unique()


@cache
def is_from_statement() -> pl.Expr:
    return pl.col("statement_id").is_not_null()


def match_statements(held: pl.DataFrame, sent: pl.DataFrame) -> pl.DataFrame:
    """Match sent rows with the held ones that they repeat, where a statement is on either side.

    Args:
        held: what the account held when the submission arrived.
        sent: rows of one submission per account.

    Returns:
        REPEATS.
    """
    if held.is_empty() or sent.is_empty():
        return pl.DataFrame(schema=REPEATS)
    can_repeat = sent.filter(pl.col("status") == "posted", ~pl.col("appended")).join(held, on=_ID_KEY, how="anti")
    nth_of_id = pl.int_range(pl.len()).over(_ID_KEY)
    first_of_id = can_repeat.filter(pl.col("sent_id").is_null() | (nth_of_id == 0))
    stands = (pl.col("status") == "posted") & pl.col("superseded_seq").is_null()
    pairs = match_rows(held.join(first_of_id, on="account_id", how="semi").filter(stands), first_of_id)
    return pl.concat([pairs, _match_repeated_ids(can_repeat, first_of_id, pairs)])


def _match_repeated_ids(sent: pl.DataFrame, first_of_id: pl.DataFrame, pairs: pl.DataFrame) -> pl.DataFrame:
    """Match rows that repeat a client's id in one submission with the partner of the id's first row."""
    partners = pairs.join(first_of_id.select(*ORDER, *_ID_KEY), on=ORDER, validate="1:1").drop(*ORDER, "job_id")
    again = select_unpaired(sent, first_of_id).join(partners, on=_ID_KEY, validate="m:1")
    return again.select(pairs.columns)


def match_rows(held: pl.DataFrame, sent: pl.DataFrame) -> pl.DataFrame:
    """Match rows like `match_statements`, but leave out no row."""
    data = held.filter(~is_from_statement())
    beside = ((held, data.clear(), sent.filter(is_from_statement())), (held, data, sent.filter(~is_from_statement())))
    return pl.concat(_match_one_to_one(*each) for each in beside)


def _match_one_to_one(held: pl.DataFrame, data: pl.DataFrame, sent: pl.DataFrame) -> pl.DataFrame:
    """Pair rows of one kind of submission. `data`: held rows that sent ones can only repeat word for word."""
    if held.is_empty() or sent.is_empty():
        return pl.DataFrame(schema=REPEATS)
    alignable = select_unpaired_held(
        held, data.select(held_received_seq="received_seq", held_position="position")
    ).sort(ORDER)
    sent = sent.sort(ORDER)
    proven = pair_in_order(alignable.filter(states_balance()), sent.filter(states_balance()), _PROVEN_KEY)
    left = select_unpaired(sent, proven)
    word_for_word = match_word_for_word(data.sort("date", *ORDER), left.filter(pl.col("sent_id").is_null()))
    left, free = select_unpaired(left, word_for_word), select_unpaired_held(alignable, proven)
    shifted = _match_shifted_dates(alignable, sent, free, left, proven)
    left, free = select_unpaired(left, shifted), select_unpaired_held(free, shifted)
    return pl.concat([proven, shifted, _match_missing_balances(free, left)])


# Step 2: dates that differ.


def _match_shifted_dates(
    held: pl.DataFrame, sent: pl.DataFrame, free: pl.DataFrame, left: pl.DataFrame, proven: pl.DataFrame
) -> pl.DataFrame:
    """Pair `free` held rows and `left` sent rows of the same amount and balance on different days.

    A pair never crosses a proven pair of the same amount and balance.
    """
    moves = pl.col("amount") != 0  # a row of 0 leaves the balance as it was, so an equal balance proves nothing
    keys = free.filter(states_balance(), moves).join(left, on=_SAME_BALANCE, how="semi").select(_SAME_BALANCE).unique()
    if keys.is_empty():
        return proven.clear()
    sides = {"held": free, "sent": left, "proven": sent.join(proven, on=ORDER, how="semi")}
    in_order = pl.concat(
        rows.join(keys, on=_SAME_BALANCE, how="semi").select(
            *_SAME_BALANCE, *ORDER, "date", "statement_id", side=pl.lit(side)
        )
        for side, rows in sides.items()
    ).sort(*_SAME_BALANCE, "date", *ORDER)
    near = _number_stretches(in_order)
    held_names = {"held_received_seq": "received_seq", "held_position": "position", "held_statement_id": "statement_id"}
    partners = near.filter(pl.col("side") == "held").select("stretch", "nth", held_date="date", **held_names)
    met = near.filter(pl.col("side") == "sent").join(partners, on=["stretch", "nth"], how="left", validate="1:1")
    apart = (pl.col("date") - pl.col("held_date")).dt.total_days().abs()
    as_many = (pl.col("of_held") == pl.col("of_sent")) & (apart <= SHIFT).fill_null(value=False).all().over("stretch")
    found = met.filter(as_many).pipe(_drop_seams, held, sent)
    names = held.select("transaction_id", held_received_seq="received_seq", held_position="position")
    named = found.join(names, on=["held_received_seq", "held_position"], validate="1:1")
    return named.join(sent.select("job_id", *ORDER), on=ORDER, validate="1:1").select(proven.columns)


def _number_stretches(in_order: pl.DataFrame) -> pl.DataFrame:
    """Split rows with one amount and balance into stretches: close in time, with no proven pair in between.

    Adds `stretch`, the row's `nth` place on its side of the stretch, and the counts `of_held` and `of_sent`.
    """
    same = pl.all_horizontal(pl.col(name) == pl.col(name).shift(1) for name in _SAME_BALANCE)
    far = (pl.col("date") - pl.col("date").shift(1)).dt.total_days() > SHIFT
    proven = pl.col("side") == "proven"
    begins = ~same | far | proven | proven.shift(1)
    numbered = in_order.with_columns(stretch=begins.fill_null(value=True).cum_sum())
    return numbered.with_columns(
        nth=pl.int_range(pl.len()).over("stretch", "side"),
        of_held=(pl.col("side") == "held").sum().over("stretch"),
        of_sent=(pl.col("side") == "sent").sum().over("stretch"),
    )


def _drop_seams(pairs: pl.DataFrame, held: pl.DataFrame, sent: pl.DataFrame) -> pl.DataFrame:
    """Drop pairs that are two transactions: one where one list ends, one where the next list begins."""
    is_held_first = pl.col("held_date") < pl.col("date")
    of_held = {"seq": "held_received_seq", "statement": "held_statement_id", "date": "held_date"}
    of_sent = {"seq": "received_seq", "statement": "statement_id", "date": "date"}
    numbered = pairs.with_row_index("pair")
    seams = [
        _find_seams(_order_sides(numbered.filter(is_held_first), of_held, of_sent), held, sent),
        _find_seams(_order_sides(numbered.filter(~is_held_first), of_sent, of_held), sent, held),
    ]
    return numbered.join(pl.concat(seams), on="pair", how="anti")


def _order_sides(pairs: pl.DataFrame, first: Mapping[str, str], last: Mapping[str, str]) -> pl.DataFrame:
    sides = {
        f"{place}_{name}": column for place, side in (("first", first), ("last", last)) for name, column in side.items()
    }
    return pairs.select("pair", *_SAME_BALANCE, **sides)


def _find_seams(pairs: pl.DataFrame, first: pl.DataFrame, last: pl.DataFrame) -> pl.DataFrame:
    """Return the numbers of the pairs that are two transactions.

    That is so if, between the two days, the list of the first row ends and that of the last row begins, and if the rows
    there that only one list has lead back to the same balance (a payment, its reversal, and the payment again). A list
    that covered both days would contain both rows.
    """
    of_first, of_last = (["account_id", f"{place}_seq", f"{place}_statement"] for place in ("first", "last"))
    ends = first.group_by(_SOURCE).agg(ends=pl.col("date").max())
    begins = last.group_by(_SOURCE).agg(begins=pl.col("date").min())
    at_ends = (
        pairs.join(ends, left_on=of_first, right_on=_SOURCE, nulls_equal=True, validate="m:1")
        .join(begins, left_on=of_last, right_on=_SOURCE, nulls_equal=True, validate="m:1")
        .filter(pl.col("ends") <= pl.col("last_date"), pl.col("begins") >= pl.col("first_date"))
    )
    steps: defaultdict[int, defaultdict[Decimal, list[Decimal]]] = defaultdict(lambda: defaultdict(list))
    for unknown in (_rows_between(at_ends, first, last), _rows_between(at_ends, last, first)):
        for pair, opening, balance in unknown.rows():
            steps[pair][opening].append(balance)
    ways = at_ends.select("pair", "balance", _opening()).rows()
    two = [pair for pair, left_at, came_back_to in ways if _leads_to(steps[pair], left_at, came_back_to)]
    return pl.DataFrame({"pair": two}, schema={"pair": pl.UInt32})


@cache
def _opening() -> pl.Expr:
    return (pl.col("balance") - pl.col("amount")).cast(MONEY).alias("opening")


def _rows_between(pairs: pl.DataFrame, rows: pl.DataFrame, others: pl.DataFrame) -> pl.DataFrame:
    """Return `pair`, `opening` and `balance` of the rows on a pair's days that the other list lacks."""
    stated = rows.filter(states_balance()).select(*_SAME_BALANCE, "date", _opening())
    on_days = (
        stated.join(pairs.select("pair", "account_id", "first_date", "last_date"), on="account_id")
        .filter(pl.col("date").is_between("first_date", "last_date"))
        .with_row_index("row")
    )
    near = (pl.col("other_date") - pl.col("date")).dt.total_days().abs() <= SHIFT
    known = on_days.join(others.select(*_SAME_BALANCE, other_date="date"), on=_SAME_BALANCE).filter(near)
    return on_days.join(known, on="row", how="anti").select("pair", "opening", "balance")


def _leads_to(steps: Mapping[Decimal, Sequence[Decimal]], start: Decimal, end: Decimal) -> bool:
    """Return whether a chain of rows leads from `start` to `end`. `steps`: closing balances by opening balance."""
    seen, ahead = {start}, [start]
    while ahead:
        reached = [balance for balance in steps.get(ahead.pop(), ()) if balance not in seen]
        seen.update(reached)
        ahead += reached
    return end in seen


# Step 3: balances that are missing.


class _Candidate(NamedTuple):
    """A row of one day and amount: its number in its frame, and what is compared."""

    number: int
    states_balance: bool
    words: frozenset[str]


def _match_missing_balances(free: pl.DataFrame, left: pl.DataFrame) -> pl.DataFrame:
    """Pair rows of the same day and amount if at least one of the two states no balance."""
    free, left = free.join(left, on=_SAME_DAY, how="semi"), left.join(free, on=_SAME_DAY, how="semi")
    of_held, of_sent = _group_by_day(free), _group_by_day(left)
    numbers = [pair for day, sent in of_sent.items() for pair in _pair_by_words(of_held[day], sent)]
    found, repeating = (pl.Series([pair[side] for pair in numbers], dtype=pl.UInt32) for side in (0, 1))
    partners = free[found].select("transaction_id", held_received_seq="received_seq", held_position="position")
    return left[repeating].select("job_id", *ORDER).hstack(partners)


def _group_by_day(rows: pl.DataFrame) -> dict[tuple[object, ...], list[_Candidate]]:
    found: dict[tuple[object, ...], list[_Candidate]] = defaultdict(list)
    columns = rows.select(*_SAME_DAY, states_balance(), words=pl.col("text").str.split(" ")).rows()
    for number, (account, day, amount, states, words) in enumerate(columns):
        found[account, day, amount].append(_Candidate(number, states, frozenset(words)))
    return found


def _pair_by_words(held: Sequence[_Candidate], sent: Sequence[_Candidate]) -> Iterator[tuple[int, int]]:
    """Yield the numbers of paired held and sent rows, as many pairs as possible.

    Two rows that both state a balance are never paired: their balances differ.
    """
    free, left = {each.number: each for each in held}, {each.number: each for each in sent}
    # Greedy: a similar pair is taken only if the rest can still be paired as often as before.
    for one, other in _sort_by_similarity(held, sent):
        if one.number in free and other.number in left:
            others_free = [each for each in free.values() if each is not one]
            others_left = [each for each in left.values() if each is not other]
            if _count_most_pairs(others_free, others_left) + 1 == _count_most_pairs(free.values(), left.values()):
                del free[one.number], left[other.number]
                yield one.number, other.number
    yield from _pair_in_order(free.values(), left.values())


def _sort_by_similarity(
    held: Sequence[_Candidate], sent: Sequence[_Candidate]
) -> Iterable[tuple[_Candidate, _Candidate]]:
    """Return pairs that share words: the most similar first, then those without any balance, then in order."""
    if len(held) == len(sent) == 1 or len(held) * len(sent) > MAX_COMPARED:
        return []
    pairs = [pair for pair in product(held, sent) if _may_match(*pair) and _measure_similarity(*pair)]
    return sorted(pairs, key=lambda pair: (-_measure_similarity(*pair), any(each.states_balance for each in pair)))


def _may_match(one: _Candidate, other: _Candidate) -> bool:
    return not (one.states_balance and other.states_balance)


def _measure_similarity(one: _Candidate, other: _Candidate) -> Fraction:
    return Fraction(2 * len(one.words & other.words), len(one.words) + len(other.words))


def _count_most_pairs(held: Iterable[_Candidate], sent: Iterable[_Candidate]) -> int:
    """Count the most pairs that are possible: first rows that state a balance, each with one that states none."""
    silent_held, stating_held = _count_stating(held)
    silent_sent, stating_sent = _count_stating(sent)
    of_stating = min(stating_sent, silent_held)
    return of_stating + min(silent_sent, stating_held + silent_held - of_stating)


def _count_stating(rows: Iterable[_Candidate]) -> tuple[int, int]:
    stating = [each.states_balance for each in rows]
    return stating.count(False), stating.count(True)


def _pair_in_order(held: Iterable[_Candidate], sent: Iterable[_Candidate]) -> Iterator[tuple[int, int]]:
    """Pair in order. Sent rows that state a balance choose first, because they fit only rows that state none."""
    silent = [each.number for each in held if not each.states_balance]
    stating = [each.number for each in held if each.states_balance]
    choosy = [each.number for each in sent if each.states_balance]
    of_choosy = list(zip(silent, choosy, strict=False))
    yield from of_choosy
    rest = sorted([*stating, *silent[len(of_choosy) :]])
    yield from zip(rest, [each.number for each in sent if not each.states_balance], strict=False)
