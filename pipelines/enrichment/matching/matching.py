"""Overlapping submissions matched as multisets: which sent rows repeat a held one, word for word."""

import polars as pl

ORDER = ("received_seq", "position")
KEY = ("account_id", "date", "amount", "text", "status")
_BALANCE_KEY = (*KEY, "balance")


def match_word_for_word(held: pl.DataFrame, sent: pl.DataFrame) -> pl.DataFrame:
    """The largest matching of sent rows to held ones: a sent row that repeats one, and `transaction_id` of that.

    Equal balances first; then sent rows whose balance nobody states, against held rows without one; then sent rows
    without a balance, against whatever is left.
    """
    equal = pair_in_order(held.filter(states_balance()), sent.filter(states_balance()), _BALANCE_KEY)
    held, sent = unpaired_held(held, equal), unpaired(sent, equal)
    unstated = pair_in_order(held.filter(~states_balance()), sent.filter(states_balance()), KEY)
    held, sent = unpaired_held(held, unstated), unpaired(sent, unstated)
    stated_first = held.sort(pl.col("balance").is_null(), *ORDER, maintain_order=True)
    silent = pair_in_order(stated_first, sent.filter(~states_balance()), KEY)
    return pl.concat([equal, unstated, silent])


def states_balance() -> pl.Expr:
    return pl.col("balance").is_not_null()


def pair_in_order(held: pl.DataFrame, sent: pl.DataFrame, key: tuple[str, ...]) -> pl.DataFrame:
    """The n-th sent row of a key with the n-th held one."""
    nth = pl.int_range(pl.len()).over(key).alias("nth")
    partners = held.with_columns(nth).select(
        *key, "nth", "transaction_id", held_received_seq="received_seq", held_position="position"
    )
    pairs = sent.with_columns(nth).join(partners, on=(*key, "nth"), validate="1:1")
    return pairs.select("job_id", *ORDER, "transaction_id", "held_received_seq", "held_position")


def unpaired(sent: pl.DataFrame, pairs: pl.DataFrame) -> pl.DataFrame:
    """Sent rows that are in none of the pairs."""
    return sent.join(pairs, on=ORDER, how="anti")


def unpaired_held(held: pl.DataFrame, pairs: pl.DataFrame) -> pl.DataFrame:
    """Held rows that are in none of the pairs."""
    return held.join(pairs, left_on=ORDER, right_on=[f"held_{name}" for name in ORDER], how="anti")
