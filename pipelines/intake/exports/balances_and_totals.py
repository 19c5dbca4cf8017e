"""Recognise rows of an export that state a balance or a total and are not transactions."""

import polars as pl

from pipelines.intake.exports.values import exact

_BALANCE_WORDS = r"(?i)\bbalance\b|\b[bc]/?f(?:wd)?\b|\b(?:brought|carried) forward\b|\bsaldo\b|\bsolde\b"
# The whole text of rows that state a balance or a total. A payer may word a payment like _MAYBE_BALANCE_TEXT, so the
# amount of such a row must equal the balance that it states.
_AS_AT = r"(?: (?:b/?f|c/?f|as at|as of|at|on))?[\s0-9/.:-]*$"
_BALANCE_TEXT = (
    r"(?i)^\W*(?:(?:opening|closing) balance|(?:balance )?(?:brought|carried) (?:forward|down)"
    rf"|balance [bc]/?(?:fwd|f|d)|[bc]/(?:fwd|f|d)|[bc]fwd){_AS_AT}"
)
_MAYBE_BALANCE_TEXT = (
    rf"(?i)^\W*(?:(?:starting|ending|beginning|previous|available|current|ledger|final) )?balance{_AS_AT}"
)
_TOTAL_TEXT = (
    r"(?i)^\W*(?:sub-?|grand )?totals?(?: of)?(?: (?:debits?|credits?|withdrawals?|deposits?|payments|receipts|in|out"
    r"|money (?:in|out)|paid (?:in|out)|and))+\W*$"
)
# A row of these words is a total if its amount is the sum of at least two rows before it.
_ANY_TOTAL_TEXT = r"(?i)^\W*(?:(?:sub-?|grand |net )?totals?\b.*|(?:\w+ )+totals?|net (?:movement|change))\W*$"
_MIN_SUMMED = 2  # one payment may be worded like a total and equal the row before it


def move_stated_balances(read: pl.DataFrame) -> pl.DataFrame:
    """Make the amount of rows such as `Opening balance` their balance, and mark rows such as `Total debits` in
    `states_total`.

    A row whose amount differs from the balance that it states remains a payment, such as the last one of an account
    that is closed.
    """
    text = pl.concat_str("payee", pl.coalesce("description", "words"), separator=" ", ignore_nulls=True)
    amount, balance = (exact(pl.col(name)).abs() for name in ("amount", "balance"))
    is_stated = text.str.contains(_BALANCE_TEXT) & ((amount == 0) | pl.col("balance").is_null())
    is_same = (text.str.contains(_BALANCE_TEXT) | text.str.contains(_MAYBE_BALANCE_TEXT)) & (amount == balance)
    is_balance = (amount.is_not_null() & (is_stated | is_same)).fill_null(value=False)
    is_total = (text.str.contains(_TOTAL_TEXT) & pl.col("balance").is_null()) | _is_sum(text)
    return read.with_columns(
        amount=pl.when(~is_balance).then("amount"),
        balance=pl.coalesce("balance", pl.when(is_balance & (amount != 0)).then("amount")),
        both=pl.col("both") & ~is_balance,
        states_total=is_total.fill_null(value=False),
    )


def only_states_balance() -> pl.Expr:
    """Match rows such as `Opening balance`. They are not transactions, but the next balance follows from theirs.

    Any other row without an amount is a transaction that can't be read.
    """
    words = pl.concat_str("payee", "description", "words", "kind", separator=" ", ignore_nulls=True)
    says_so = words.str.contains(_BALANCE_WORDS) | (words == "")
    return pl.col("amount").is_null() & pl.col("balance").is_not_null() & says_so


def _is_sum(text: pl.Expr) -> pl.Expr:
    """Match rows worded like totals whose amount is the sum of all rows before them, or of those since the last such
    row.
    """
    worded = text.str.contains(_ANY_TOTAL_TEXT).fill_null(value=False)
    amount = exact(pl.col("amount"))
    total = pl.when(~worded).then(amount).cum_sum().forward_fill()
    rows = (~worded & amount.is_not_null()).cum_sum().cast(pl.Int64)
    total_before, rows_before = (
        pl.when(worded).then(each).shift(1).forward_fill().fill_null(0) for each in (total, rows)
    )
    is_whole = (amount == total) & (rows >= _MIN_SUMMED)
    is_part = (amount == total - total_before) & (rows - rows_before >= _MIN_SUMMED)
    return worded & (is_whole | is_part)
