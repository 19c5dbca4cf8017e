"""Match overlapping submissions as multisets: find sent rows that repeat a held one word for word."""

from functools import cache

import polars as pl

from pipelines.vocabulary.schemas import TRANSACTIONS

ORDER = ("received_seq", "position")
KEY = ("account_id", "date", "amount", "text", "status")
_BALANCE_KEY = (*KEY, "balance")
REPEATS = pl.Schema(
    {name: TRANSACTIONS[name] for name in ("job_id", *ORDER, "transaction_id")}
    | {f"held_{name}": TRANSACTIONS[name] for name in ORDER}
)
"""`job_id`, `received_seq` and `position` of a sent row; `transaction_id` and place of the held row that it repeats."""


def match_word_for_word(held: pl.DataFrame, sent: pl.DataFrame) -> pl.DataFrame:
    """Pair as many sent rows as possible with held ones that they repeat.

    Rows with equal balances are paired first. Then sent rows with a balance take held rows without one, and last, sent
    rows without a balance take what is left.

    Returns REPEATS.
    """
    equal = pair_in_order(held.filter(states_balance()), sent.filter(states_balance()), _BALANCE_KEY)
    held, sent = select_unpaired_held(held, equal), select_unpaired(sent, equal)
    unstated = pair_in_order(held.filter(~states_balance()), sent.filter(states_balance()), KEY)
    held, sent = select_unpaired_held(held, unstated), select_unpaired(sent, unstated)
    stated_first = held.sort(pl.col("balance").is_null(), *ORDER, maintain_order=True)
    silent = pair_in_order(stated_first, sent.filter(~states_balance()), KEY)
    return pl.concat([equal, unstated, silent])


@cache
def states_balance() -> pl.Expr:
    return pl.col("balance").is_not_null()


def pair_in_order(held: pl.DataFrame, sent: pl.DataFrame, key: tuple[str, ...]) -> pl.DataFrame:
    """Pair the n-th sent row of each key with the n-th held row of that key."""
    if held.is_empty() or sent.is_empty():  # the usual case, and joining empty frames still takes time
        return pl.DataFrame(schema=REPEATS)
    nth = pl.int_range(pl.len()).over(key).alias("nth")
    partners = held.with_columns(nth).select(
        *key, "nth", "transaction_id", held_received_seq="received_seq", held_position="position"
    )
    pairs = sent.with_columns(nth).join(partners, on=(*key, "nth"), validate="1:1")
    return pairs.select(REPEATS.names())


def select_unpaired(sent: pl.DataFrame, pairs: pl.DataFrame) -> pl.DataFrame:
    """Return the sent rows that are in no pair."""
    return sent if pairs.is_empty() else sent.join(pairs, on=ORDER, how="anti")


def select_unpaired_held(held: pl.DataFrame, pairs: pl.DataFrame) -> pl.DataFrame:
    """Return the held rows that are in no pair."""
    if pairs.is_empty():
        return held
    return held.join(pairs, left_on=ORDER, right_on=[f"held_{name}" for name in ORDER], how="anti")
