"""What the model looks at, as numbers: pieces of the text, and the circumstances of the payment.

Everything is hashed into buckets, so a label set, a bank or a context column never seen before needs no code. Three
blocks come from the narrative alone, every number in it read as the same (pieces of words, words, whole phrases): many
rows share one. The fourth comes from amount, date, channel, long numbers, what rules and lists said, and the context
columns. The same functions serve training and deciding.

The pieces of all words are hashed at once: the texts lie in one array of bytes, and a piece of n bytes at each place is
hashed from the piece of n - 1 bytes at the same place (a polynomial hash, after Karp and Rabin, 1987).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

Hashes = NDArray[np.uint64]
Places = NDArray[np.int64]

VERSION = 2  # of what the model looks at: a model of another version is refused
BUCKET_BITS = 20  # of each block
MOST_LETTERS = 160  # of a text; what follows says no more of what it is
PIECES = (2, 3, 4, 5)  # bytes
BLOCKS = ("pieces", "words", "phrases", "facts")
NARRATIVE = ("clean", "words", "direction")  # as `narratives` makes it
SAID = ("category", "category_source", "counterparty_name", "counterparty_kind")  # by rules and lists
CONTEXT = "context_"

_SPACE = ord(" ")
_BASE = np.uint64(0x100000001B3)
_POWERS = np.cumprod(np.full(4 * MOST_LETTERS + 2, _BASE))


@dataclass(frozen=True)
class Block:
    """Features of one block: the n-th says that row `rows[n]` has what is hashed to `buckets[n]`."""

    rows: Places
    buckets: Places


@dataclass(frozen=True)
class _Words:
    """The words of all texts, in order: of which text each is, whether it is its first, and its hash."""

    rows: Places
    hashes: Hashes

    @property
    def first(self) -> NDArray[np.bool_]:
        return np.diff(self.rows, prepend=-1) > 0


def narratives(rows: pl.DataFrame) -> pl.DataFrame:
    """The clean and the whole text of each row as `plain` has them, and its side of the account (columns NARRATIVE).

    Args:
        rows: `clean_description`, `text` (upper case, in compatibility form) and `direction`.
    """
    return rows.select(
        plain(pl.col("clean_description")).alias("clean"), plain(pl.col("text")).alias("words"), "direction"
    )


def narrative_blocks(read: pl.DataFrame) -> list[Block]:
    """What the text says: the blocks `pieces`, `words` and `phrases`.

    Args:
        told: of `narratives`.
    """
    side, clean = hashed(read["direction"]), read["clean"]
    words = _words(read["words"])
    return [_block(_pieces(clean)), _block(_words_and_pairs(words, side)), _block(_phrases(clean, side))]


def fact_block(rows: pl.DataFrame, contexts: Sequence[str]) -> Block:
    """What else is known of each row: the block `facts`. A column that is missing is unknown for every row.

    Args:
        rows: `clean_description`, `text`, `amount` (AUD), `direction`, `date`, `channel`, and what rules and lists said
            (SAID).
        contexts: names of the columns that came with the labels.
    """
    every = np.arange(rows.height, dtype=np.int64)
    known = {name: hashed(values) for name, values in _circumstances(rows).items()}
    known |= {name: hashed(_text(rows, name)) for name in contexts}
    alone = ((every, hashes) for hashes in known.values())
    together = ((every, _joined(known[one], known[other])) for one, other in _crossed(contexts))
    return _block([_numbers(rows["text"]), *alone, *together])


def _block(kinds: Iterator[tuple[Places, Hashes]] | Sequence[tuple[Places, Hashes]]) -> Block:
    """Features of several kinds, each with hashes of its own."""
    parts = [(rows, _stirred(hashes + np.uint64(kind + 1))) for kind, (rows, hashes) in enumerate(kinds)]
    buckets = np.concatenate([hashes for _, hashes in parts]) >> np.uint64(64 - BUCKET_BITS)
    return Block(np.concatenate([rows for rows, _ in parts]), buckets.astype(np.int64))


def _pieces(texts: pl.Series) -> Iterator[tuple[Places, Hashes]]:
    """Runs of bytes within a word, the spaces around it included."""
    letters, row_of = _bytes(texts)
    spaces = np.flatnonzero(letters == _SPACE)
    reach = np.repeat(spaces[1:], np.diff(spaces)) - np.arange(len(letters) - 1)  # to the word's end
    reach[spaces[:-1][np.diff(spaces) == 1]] = 0  # between two texts
    rolled = letters.astype(np.uint64)
    for length in range(2, max(PIECES) + 1):
        rolled = rolled[:-1] * _BASE + letters[length - 1 :]
        whole = np.flatnonzero(reach[: len(rolled)] >= length - 1)
        yield row_of[whole], rolled[whole]


def _words_and_pairs(words: _Words, side: Hashes) -> Iterator[tuple[Places, Hashes]]:
    """Each word, alone, with the side of the account, and with the word before it."""
    yield words.rows, words.hashes
    yield words.rows, _joined(words.hashes, side[words.rows])
    follows = np.flatnonzero(~words.first)
    yield words.rows[follows], _joined(words.hashes[follows - 1], words.hashes[follows])


def _phrases(clean: pl.Series, side: Hashes) -> Iterator[tuple[Places, Hashes]]:
    """The whole clean text, and its beginning: a merchant's name comes first, its branch or a reference after it."""
    whole = hashed(clean)
    every = np.arange(len(whole), dtype=np.int64)
    yield every, whole
    yield every, _joined(whole, side)
    for words in (1, 2, 3):
        beginning = _beginning(clean, words)
        yield every, beginning
        yield every, _joined(beginning, side)


def _numbers(texts: pl.Series) -> tuple[Places, Hashes]:
    """Long numbers as they stand: a biller's code or a loan's number comes again."""
    found = texts.str.slice(0, MOST_LETTERS).str.extract_all(r"\d{3,}").list.join(" ")
    numbers = _words(found.fill_null(""))
    return numbers.rows, numbers.hashes


def _circumstances(rows: pl.DataFrame) -> Mapping[str, pl.Series]:
    """Amount, day, channel, and what rules and lists said, each as a few different values."""
    cents = pl.col("amount").to_physical().cast(pl.Int64).abs()
    clean = pl.DataFrame({"clean": _plain(rows["clean_description"])})
    return {
        **rows.select(
            side=pl.col("direction").cast(pl.String),
            size=(pl.max_horizontal(cents, 1).log(2) * 2).floor().cast(pl.Int64),  # half octaves
            cents=cents % 100,
            round=pl.coalesce(
                pl.when(cents % step == 0).then(pl.lit(step)) for step in (100_000, 10_000, 5_000, 1_000, 500, 100)
            ).fill_null(0),
            exactly=cents,
            day=pl.col("date").dt.day(),
            weekday=pl.col("date").dt.weekday(),
            end=pl.col("date").dt.month_end() == pl.col("date"),
            channel=pl.col("channel").cast(pl.String),
        ).to_dict(),
        **{name: _text(rows, name) for name in SAID},
        "phrase": clean["clean"],
        "word": clean.select(pl.col("clean").str.extract(r"^(\S+)"))["clean"],
    }


def _crossed(contexts: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Pairs of circumstances that say more together than each for itself."""
    for name in ("size", "cents", "round", "exactly", "day", "weekday", "end", "channel", "category"):
        yield "side", name
    for name in ("size", "exactly", "round"):
        yield "word", name
        yield "category", name
        yield "channel", name
    for context in contexts:
        for name in ("side", "channel", "size", "category", "counterparty_name", "phrase", "word"):
            yield context, name


def hashed(values: pl.Series) -> Hashes:
    """A hash for each value, the same on every machine and for ever."""
    letters, row_of = _bytes(values.cast(pl.String).fill_null("∅").str.slice(0, MOST_LETTERS))
    return _polynomial(letters, np.flatnonzero(np.diff(row_of, prepend=-1)))


def name_of(clean: pl.Series) -> pl.Series:
    """The first two words of a clean description that hold no number: by them a merchant is told from others."""
    words = _plain(clean).str.replace_all(r"\S*0\S*", " ").str.replace_all(" +", " ").str.strip_chars(" ")
    return words.str.extract(r"^(\S+(?: \S+)?)").fill_null("")


def _text(rows: pl.DataFrame, name: str) -> pl.Series:
    known = rows[name] if name in rows.columns else pl.Series([None], dtype=pl.String).new_from_index(0, rows.height)
    return known.cast(pl.String)


def plain(texts: pl.Expr) -> pl.Expr:
    """Letters in words, any number as `0`: what stays the same when a payment comes again."""
    return (
        texts.fill_null("")
        .str.slice(0, MOST_LETTERS)
        .str.to_uppercase()
        .str.replace_all(r"\d+", "0")
        .str.replace_all(r"[^\p{L}\p{N}&]+", " ")
        .str.strip_chars(" ")
    )


def _plain(texts: pl.Series) -> pl.Series:
    return pl.select(plain(pl.lit(texts))).to_series()


def _beginning(texts: pl.Series, words: int) -> Hashes:
    return hashed(texts.str.extract(rf"^((?:\S+ ?){{1,{words}}})").str.strip_chars(" "))


def _words(texts: pl.Series) -> _Words:
    letters, row_of = _bytes(texts)
    blank = letters == _SPACE
    starts = np.flatnonzero(blank[:-1] & ~blank[1:]) + 1
    return _Words(row_of[starts], _polynomial(letters, starts))


def _bytes(texts: pl.Series) -> tuple[NDArray[np.uint8], Places]:
    """All texts in one array, a space before and after each, and of which text each byte is."""
    bounded = " " + texts + " "
    letters = np.frombuffer((bounded.str.join("").item() or "").encode(), np.uint8)
    return letters, np.repeat(np.arange(len(texts), dtype=np.int64), bounded.str.len_bytes().to_numpy())


def _polynomial(letters: NDArray[np.uint8], starts: Places) -> Hashes:
    """The hash of the bytes from each start to the next. Spaces count nothing, so how many follow is no matter."""
    if not len(starts):
        return np.empty(0, np.uint64)
    first = starts[0]
    places = np.arange(first, len(letters)) - np.repeat(starts, np.diff(starts, append=len(letters)))
    powers = _POWERS[np.minimum(places, len(_POWERS) - 1)]  # beyond lie spaces only
    valued = np.where(letters == _SPACE, 0, letters).astype(np.uint64)[first:]
    return np.add.reduceat(valued * powers, starts - first)


def _joined(one: Hashes, other: Hashes) -> Hashes:
    return _stirred(one) + other


def _stirred(hashes: Hashes) -> Hashes:
    """Every bit of the outcome hangs on every bit of the hash (the finisher of MurmurHash3, Appleby, 2011)."""
    mixed = (hashes ^ (hashes >> np.uint64(33))) * np.uint64(0xFF51AFD7ED558CCD)
    mixed = (mixed ^ (mixed >> np.uint64(33))) * np.uint64(0xC4CEB9FE1A85EC53)
    return mixed ^ (mixed >> np.uint64(33))
