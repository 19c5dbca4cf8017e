"""Decide which amounts are money out, from the file's own words or columns, its balances, or by assumption.

Card exports often print charges without a minus and payments with one. A running balance proves the signs of the
amounts of an account that holds money. It proves nothing if the account may be a card whose balance is the amount owed:
the signs of both amounts and balances may then be inverted. Signs that are not proved are reported as assumed.

The expressions and words are our judgement, from bank exports in general.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

import polars as pl

from pipelines.intake.exports.values import exact, negate
from pipelines.intake.minus_signs import MINUSES

OF_ONE_ACCOUNT = ("customer", "bsb", "account", "account_name")  # as printed
OUT = (
    *("debit", "dr", "d", "withdrawal", "dbit", "db", "deb", "-", "out", "money out", "paid out", "outgoing"),
    *("outbound", "payment out", "soll", "s"),
)
IN = (
    *("credit", "cr", "c", "deposit", "crdt", "cred", "+", "in", "money in", "paid in", "incoming"),
    *("inbound", "payment in", "haben", "h"),
)
OWING = ("credit_card", "loan")  # types of account whose balance is usually printed as the amount owed
_OUT_WORDS = (
    r"(?i)\b(?:purchase|withdrawal|interest charged?|(?:annual|late|card|overlimit) fee|foreign transaction fee)\b"
)
# Words of money out, unless a merchant's terminal takes it, the machine accepts deposits, or a lender advances it.
_MOSTLY_OUT_WORDS = r"(?i)\b(?:eftpos|atm|cash advance)\b"
_TAKEN_WORDS = r"(?i)\b(?:settlements?|deposits?|merchant|takings|purchase order|po)\b"
_IN_WORDS = r"(?i)\bpayments? received\b|\bthank ?you\b"
_BACK_WORDS = r"(?i)\b(?:refund|revers|rebate|cash ?back)"


class Signs(StrEnum):
    """The evidence for which amounts are money out."""

    DECLARED = "declared"  # by the user
    STATED = "stated"  # by columns or words for debit and credit
    PROVED = "proved"  # by balances
    ASSUMED = "assumed"


@dataclass(frozen=True)
class Signed:
    """`rows` with money out as negative amounts and balances as money held; `notes`: how that was decided."""

    rows: pl.DataFrame
    signs: Signs
    notes: tuple[str, ...]


def decide_signs(rows: pl.DataFrame, *, declared: str, split: bool) -> Signed:
    """Decide the sign of each amount. Evidence and notes are about the rows that are `asked_for`.

    Args:
        rows: oldest first, with `amount` and `balance` as plain digits where they can be read, `printed` and
            `printed_balance`: both as printed in the file, `known_type`: the account's type, the columns of
            `OF_ONE_ACCOUNT`, and `asked_for`.
        declared: `-` if the user says that the signs are inverted, `+` if they are right, else empty.
        split: amounts come from a debit and a credit column.
    """
    rows = _separate_credits(rows)
    if declared:
        held = rows.with_columns(amount=negated_where(pl.lit(value=declared == "-"))).pipe(_add_evidence)
        return _balances_as_held(held, pl.col("mirrored"), Signs.DECLARED, ())
    if split:
        return _sign_as_stated(rows)
    if (outgoing := _stated_negations(rows)) is not None:
        return _sign_as_stated(rows.with_columns(amount=negated_where(outgoing)))
    return _sign_by_evidence(*_sign_by_movement(rows))


def side(kind: pl.Expr) -> pl.Expr:
    """Return a word of `OUT` or `IN` as it is there: in lower case, without a full stop (`Dr.`), with a plain minus."""
    return kind.str.to_lowercase().str.strip_chars(" .").str.replace(rf"^[{MINUSES}]$", "-")


def _separate_credits(rows: pl.DataFrame) -> pl.DataFrame:
    """Negate the balances with CR of accounts whose other balances have no mark: those are owed, and CR is money held.

    It is done only if more balances then differ from the one before by their row's amount. `separated`: whether it was
    done for the account.
    """
    balance, amount = exact(pl.col("balance")), exact(pl.col("amount"))
    is_credit = pl.col("printed_balance").str.contains(r"(?i)CR\s*$").fill_null(value=False)
    is_mixed = is_credit.any() & (~is_credit & (balance > 0)).any() & ~(balance < 0).any()
    turned = rows.with_columns(balance=pl.when(is_credit).then(negate(pl.col("balance"))).otherwise("balance"))
    moves = (balance_steps(1).abs() == amount.abs()).sum().over(OF_ONE_ACCOUNT)
    judged = rows.with_columns(
        turned_balance=turned["balance"],
        separated=is_mixed.over(OF_ONE_ACCOUNT) & (turned.select(moves).to_series() > rows.select(moves).to_series()),
    )
    separate = pl.when("separated").then("turned_balance").otherwise("balance")
    return judged.with_columns(balance=separate).drop("turned_balance")


def balance_steps(direction: int) -> pl.Expr:
    """Return each balance less that of its account's row before (1) or after (-1) it."""
    balance = exact(pl.col("balance"))
    return balance - balance.shift(direction).over(OF_ONE_ACCOUNT)


def negated_where(condition: pl.Expr) -> pl.Expr:
    """Return `amount`, negated where the condition is true and the amount can be read."""
    is_amount = exact(pl.col("amount")).is_not_null()
    return pl.when(condition & is_amount).then(negate(pl.col("amount"))).otherwise("amount")


def _stated_negations(rows: pl.DataFrame) -> pl.Expr | None:
    """Return which amounts to negate if the file says of every row whether it is debit or credit, else None.

    Whether a side is printed with a minus is decided by most of its rows, because a reversal has the opposite sign.
    """
    amounts = rows.filter(exact(pl.col("amount")).fill_null(0) != 0)
    kind, negative = side(pl.col("kind")), pl.col("amount").str.starts_with("-")
    if not amounts.is_empty() and amounts.select(kind.is_in([*OUT, *IN]).fill_null(value=False).all()).item():
        mostly = amounts.select(
            debits=negative.filter(kind.is_in(OUT)).mean(), credits=negative.filter(kind.is_in(IN)).mean()
        )
        of_debits, of_credits = mostly.row(0)
        if of_debits is None and 0.5 < of_credits < 1:
            return None  # all are called credits, whatever their sign: the word is about something else
        turned = [
            *(OUT if of_debits is not None and of_debits <= 0.5 else ()),
            *(IN if (of_credits or 0) > 0.5 else ()),
        ]
        return kind.is_in(turned).fill_null(value=False)
    suffix = pl.col("printed").str.extract(r"(?i)(CR|DR)\s*$").str.to_uppercase()
    minus, credited, debited = amounts.select(
        minus=negative.any(), credited=(suffix == "CR").any(), debited=(suffix == "DR").any()
    ).row(0)
    if debited:
        return pl.lit(value=False)
    bare_are_debits = credited and not minus and amounts.select(suffix.is_null().any()).item()
    return suffix.is_null() if bare_are_debits else None


def _sign_as_stated(rows: pl.DataFrame) -> Signed:
    """Read debits as money out, as banks mean them, unless balances that rise with debits show a business's own books.

    In such books, a debit to the bank's account is money in. But the balances owed on a card rise with debits, too. The
    account's type decides, or else whether the balances are below zero or the words are those of charges.
    """
    judged = rows.pipe(_add_evidence)
    contrary = pl.col("mirrored") & ~pl.col("owing")
    stated = judged.with_columns(turned=contrary & (~pl.col("owed") | pl.col("charged")), contrary=contrary)
    notes = []
    shown = stated.filter("asked_for")
    if shown["turned"].any():
        notes.append(
            "Signs are assumed: balances rise with debits, so these are money in, as in a business's own books."
        )
    if shown.select((pl.col("contrary") & ~pl.col("turned")).any()).item():
        where = "as on a card or in a business's own books"
        notes.append(f"Signs are assumed: balances rise with debits, {where}. Debits were read as money out.")
    read = stated.with_columns(amount=negated_where(pl.col("turned")))
    signs = Signs.ASSUMED if notes else Signs.STATED
    return _balances_as_held(read, pl.col("mirrored") & ~pl.col("turned"), signs, tuple(notes))


def _sign_by_movement(rows: pl.DataFrame) -> tuple[pl.DataFrame, tuple[str, ...], bool]:
    """Sign amounts by how the balance moves, if none has a minus and nine in ten balances move by their amount.

    Also return the notes, and whether any sign remains unproved: that of an account's first row, or of a row whose
    balance does not follow from the one before.
    """
    if rows["amount"].str.starts_with("-").any():
        return rows, (), False
    size, step = exact(pl.col("amount")), balance_steps(1)
    fell, rose = (step == -size).fill_null(value=False), (step == size).fill_null(value=False)
    asked_for = pl.col("asked_for")
    moved, decreases, increases, unproved, shown = rows.select(
        moved=(step + size).is_not_null().sum(),
        decreases=fell.sum(),
        increases=rose.sum(),
        unproved=(asked_for & (size > 0) & ~fell & ~rose).sum(),
        shown=asked_for.sum(),
    ).row(0)
    if not decreases or 10 * (decreases + increases) < 9 * moved:
        return _sign_by_known_sides(rows)
    notes = ["Amounts have no sign: where the balance fell by the amount, it was read as money out."]
    if unproved:
        counted = f"{unproved:,} of {shown:,} amounts"
        notes.append(f"The sign of {counted} is assumed, money in: no balance before them proves it.")
    return rows.with_columns(amount=negated_where(fell)), tuple(notes), unproved > 0


def _sign_by_known_sides(rows: pl.DataFrame) -> tuple[pl.DataFrame, tuple[str, ...], bool]:
    """Sign the amounts that the file calls debits, if no amount has a minus and it names no side of some rows, such as
    those of kind `Fee`.
    """
    is_debit, is_named = (side(pl.col("kind")).is_in(words).fill_null(value=False) for words in (OUT, [*OUT, *IN]))
    if not rows.select(is_debit.any()).item():
        return rows, (), False
    shown = rows.filter(pl.col("asked_for"), exact(pl.col("amount")) > 0)
    unnamed = shown.filter(~is_named).height
    counted = f"{unnamed:,} of {shown.height:,} amounts"
    note = f"The sign of {counted} is assumed, money in: the file doesn't call them debits or credits."
    return rows.with_columns(amount=negated_where(is_debit)), (note,) if unnamed else (), unnamed > 0


def _add_evidence(rows: pl.DataFrame) -> pl.DataFrame:
    """Add the evidence for signs, by account.

    `holds`: balances follow the amounts. `mirrored`: they move the opposite way. `owed`: most balances are positive.
    `owing`: the account is named a card or loan. `charged`: words say that positive amounts are charges, in at least
    one of ten. `positive`, `negative`: the number of such amounts.
    """
    amount, step = exact(pl.col("amount")), balance_steps(1)
    moves = amount != 0
    words = pl.concat_str("payee", "description", "words", "kind", separator=" ", ignore_nulls=True)
    given_back = words.str.contains(_BACK_WORDS)
    is_taken = given_back | words.str.contains(_TAKEN_WORDS)
    says_out, says_in = words.str.contains(_OUT_WORDS) & ~is_taken, words.str.contains(_IN_WORDS) & ~given_back
    mostly_out = says_out | (words.str.contains(_MOSTLY_OUT_WORDS) & ~is_taken)
    counts = {
        "follow": moves & (step == amount),
        "oppose": moves & (step == -amount),
        "compared": moves & step.is_not_null(),
        "in_credit": exact(pl.col("balance")) > 0,
        "in_debit": exact(pl.col("balance")) < 0,
        "positive": amount > 0,
        "negative": amount < 0,
        "against": (says_out & (amount > 0)) | (says_in & (amount < 0)),
        "agree": (mostly_out & (amount < 0)) | (says_in & (amount > 0)),
    }
    counted = rows.with_columns(
        says_in=says_in, **{name: each.sum().over(OF_ONE_ACCOUNT) for name, each in counts.items()}
    )
    follow, oppose, most = pl.col("follow"), pl.col("oppose"), pl.col("compared")
    return counted.with_columns(
        holds=(follow > 2 * oppose) & (2 * follow > most),
        mirrored=(oppose >= 2) & (oppose > 2 * follow),
        owed=pl.col("separated") | (pl.col("in_credit") >= pl.col("in_debit")),
        owing=pl.col("known_type").is_in(OWING).fill_null(value=False),
        charged=(pl.col("against") > pl.col("agree")) & (10 * pl.col("against") >= pl.col("positive")),
        turned=pl.lit(value=False),
    )


def _sign_by_evidence(rows: pl.DataFrame, notes: tuple[str, ...], sign_is_open: bool) -> Signed:
    """Sign each account's amounts by balances, else by the account's type and words, else with a minus as money out.

    Args:
        notes: of `_sign_by_movement`.
        sign_is_open: `_sign_by_movement` left a sign unproved.
    """
    judged = rows.pipe(_add_evidence)
    holds, mirrored, owed, charged = (pl.col(name) for name in ("holds", "mirrored", "owed", "charged"))
    as_card = charged | (pl.col("owing") & (pl.col("positive") > pl.col("negative")))
    turned = (
        pl.when(mirrored)
        .then(~owed | (charged & ~pl.col("owing")))
        .when(holds)
        .then((as_card & owed) | pl.col("separated"))
        .otherwise(as_card)
    )
    unsigned = not rows["amount"].str.starts_with("-").any()
    stays = pl.lit(value=unsigned) & pl.col("says_in")  # if no amount has a minus, a payment received is still money in
    proved = pl.when(mirrored).then(~owed | pl.col("owing")).otherwise(holds & ~turned)
    is_owed = pl.when(mirrored).then(~turned).otherwise(holds & turned)
    stated = judged.with_columns(turned=turned, proved=proved, owed_balance=is_owed)
    read = stated.with_columns(amount=negated_where(pl.col("turned") & ~stays))
    shown = stated.filter("asked_for")
    are_proved = shown["proved"].all() and not shown.is_empty() and not sign_is_open
    signs = Signs.PROVED if are_proved else Signs.ASSUMED
    return _balances_as_held(read, pl.col("owed_balance"), signs, (*notes, *_write_notes(shown, unsigned=unsigned)))


def _write_notes(stated: pl.DataFrame, *, unsigned: bool) -> Iterator[str]:
    turned = stated.filter("turned")
    if not turned.filter("proved").is_empty():
        yield "Balances prove that amounts without a minus are money out."
    if not turned.filter(~pl.col("proved")).is_empty():
        yield "Signs are assumed: amounts without a minus are money out, as on a card (by its name, words or CR)."
    if not stated.filter(~pl.col("turned"), ~pl.col("proved")).is_empty():
        read = "no amount has a minus, so all are money in" if unsigned else "a minus is money out"
        yield f"Signs are assumed: {read}. No balance proves it."


def _balances_as_held(rows: pl.DataFrame, is_owed: pl.Expr, signs: Signs, notes: tuple[str, ...]) -> Signed:
    """Negate balances that are amounts owed. An account that has them is a card, unless another type is stated."""
    # The balances below zero are those with CR, which `_separate_credits` negated: money held.
    mostly_held = pl.col("separated") & (pl.col("in_debit") > pl.col("in_credit"))
    is_card = (is_owed & ~mostly_held) | (pl.col("turned") & pl.col("owing"))
    account_type = pl.when(is_card).then(pl.when("owing").then("known_type").otherwise(pl.lit("credit_card")))
    judged = rows.with_columns(is_owed=is_owed, account_type=pl.coalesce("account_type", account_type))
    is_balance = exact(pl.col("balance")).is_not_null()
    turned = pl.when(pl.col("is_owed") & is_balance).then(negate(pl.col("balance"))).otherwise("balance")
    note = "The balance rises when money goes out: it was read as the amount owed on a card or loan."
    is_noted = judged.filter("asked_for")["is_owed"].any()
    return Signed(judged.with_columns(balance=turned), signs, (*notes, note) if is_noted else notes)
