"""Compute the model's input: pieces of the text, and the circumstances of the payment.

Everything is hashed into buckets, so a new label set, bank or context column needs no code. Three blocks come from the
narrative alone (pieces of words, words, whole phrases), with every number replaced by 0, so that many rows have equal
features. The fourth comes from amount, date, channel, long numbers, the answers of rules and lists, and the
context columns. Training and prediction use the same functions.

The pieces of all words are hashed at once: the texts are joined in one array of bytes, and a piece of n bytes is hashed
from the piece of n - 1 bytes at the same place (a polynomial hash, after Karp and Rabin, 1987).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from pipelines.vocabulary.own_columns import FILLED

Hashes = NDArray[np.uint64]
Places = NDArray[np.int64]

VERSION = 2  # of the features: a model trained with another version is refused
BUCKET_BITS = 20  # of each block
MAX_LETTERS = 160  # of a text: what follows adds nothing (our judgement)
PIECES = (2, 3, 4, 5)  # bytes
BLOCKS = ("pieces", "words", "phrases", "facts")
NARRATIVE = ("clean", "words", "direction")  # the columns of `prepare_narratives`
RULE_ANSWERS = ("category", "category_source", "counterparty_name", "counterparty_kind")  # of rules and lists

_SPACE = ord(" ")
_BASE = np.uint64(0x100000001B3)  # the 64-bit FNV prime
_POWERS = np.cumprod(np.full(4 * MAX_LETTERS + 2, _BASE))


@dataclass(frozen=True)
class Block:
    """Features of one block: row `rows[n]` has the feature with the hash `buckets[n]`."""

    rows: Places
    buckets: Places


@dataclass(frozen=True)
class _Words:
    """The words of all texts, in order: the number of each word's text, whether it is the first there, and its hash."""

    rows: Places
    hashes: Hashes

    @property
    def first(self) -> NDArray[np.bool_]:
        return np.diff(self.rows, prepend=-1) > 0


def prepare_narratives(rows: pl.DataFrame) -> pl.DataFrame:
    """Return the columns NARRATIVE: each row's clean and whole text, both made plain by `plain_text`, and direction.

    Args:
        rows: `clean_description`, `text` (upper case, in compatibility form) and `direction`.
    """
    return rows.select(
        plain_text(pl.col("clean_description")).alias("clean"), plain_text(pl.col("text")).alias("words"), "direction"
    )


def build_narrative_blocks(narratives: pl.DataFrame) -> list[Block]:
    """Return the features of the text: the blocks `pieces`, `words` and `phrases`.

    Args:
        narratives: from `prepare_narratives`.
    """
    side, clean = hash_values(narratives["direction"]), narratives["clean"]
    words = _split_words(narratives["words"])
    return [
        _make_block(_hash_pieces(clean)),
        _make_block(_hash_words_and_pairs(words, side)),
        _make_block(_hash_phrases(clean, side)),
    ]


def build_fact_block(rows: pl.DataFrame, contexts: Sequence[str]) -> Block:
    """Return what else is known about each row: the block `facts`. A missing column counts as unknown for every row.

    Args:
        rows: `clean_description`, `text`, `amount` (AUD), `direction`, `date`, `channel`, and the answers of rules and
            lists (RULE_ANSWERS).
        contexts: names of the client's own columns that the model learns from (`own_columns`).
    """
    every = np.arange(rows.height, dtype=np.int64)
    values = _read_circumstances(rows)
    if contexts:
        values |= _read_own_columns(rows, contexts)
    known = dict(zip(values, _hash_together(*values.values()), strict=True))
    alone = ((every, hashes) for hashes in known.values())
    together = ((every, _combine(known[one], known[other])) for one, other in _list_crossed(contexts))
    return _make_block([_hash_numbers(rows["text"]), *alone, *together])


def _make_block(kinds: Iterator[tuple[Places, Hashes]] | Sequence[tuple[Places, Hashes]]) -> Block:
    """Join features of several kinds in one block. Equal values of two kinds get different hashes."""
    parts = [(rows, _mix(hashes + np.uint64(kind + 1))) for kind, (rows, hashes) in enumerate(kinds)]
    buckets = np.concatenate([hashes for _, hashes in parts]) >> np.uint64(64 - BUCKET_BITS)
    return Block(np.concatenate([rows for rows, _ in parts]), buckets.astype(np.int64))


def _hash_pieces(texts: pl.Series) -> Iterator[tuple[Places, Hashes]]:
    """Yield the hashes of runs of bytes within a word, including the spaces around it."""
    letters, row_of = _join_bytes(texts)
    spaces = np.flatnonzero(letters == _SPACE)
    reach = np.repeat(spaces[1:], np.diff(spaces)) - np.arange(len(letters) - 1)  # bytes to the word's end
    reach[spaces[:-1][np.diff(spaces) == 1]] = 0  # two spaces in a row: a text ends, and the next begins
    rolled = letters.astype(np.uint64)
    for length in range(2, max(PIECES) + 1):
        rolled = rolled[:-1] * _BASE + letters[length - 1 :]
        whole = np.flatnonzero(reach[: len(rolled)] >= length - 1)
        yield row_of[whole], rolled[whole]


def _hash_words_and_pairs(words: _Words, side: Hashes) -> Iterator[tuple[Places, Hashes]]:
    """Yield the hashes of each word: alone, with the side of the account, and with the word before it."""
    yield words.rows, words.hashes
    yield words.rows, _combine(words.hashes, side[words.rows])
    follows = np.flatnonzero(~words.first)
    yield words.rows[follows], _combine(words.hashes[follows - 1], words.hashes[follows])


def _hash_phrases(clean: pl.Series, side: Hashes) -> Iterator[tuple[Places, Hashes]]:
    """Yield the hashes of the whole clean text and of its beginning, where a merchant's name is."""
    every = np.arange(len(clean), dtype=np.int64)
    for hashes in _hash_together(clean, *(_take_first_words(clean, words) for words in (1, 2, 3))):
        yield every, hashes
        yield every, _combine(hashes, side)


def _hash_numbers(texts: pl.Series) -> tuple[Places, Hashes]:
    """Hash long numbers as printed: a biller's code or a loan's number recurs."""
    found = texts.str.slice(0, MAX_LETTERS).str.extract_all(r"\d{3,}").list.join(" ")
    numbers = _split_words(found.fill_null(""))
    return numbers.rows, numbers.hashes


def _read_circumstances(rows: pl.DataFrame) -> dict[str, pl.Series]:
    """Return amount, day, channel, the answers of rules and lists, and the clean text and its first word."""
    cents = pl.col("amount").to_physical().cast(pl.Int64).abs()
    clean = pl.DataFrame({"clean": _plain_series(rows["clean_description"])})
    return {
        **rows.select(
            side=pl.col("direction").cast(pl.String),
            size=(pl.max_horizontal(cents, 1).log(2) * 2).floor().cast(pl.Int64),  # steps of a factor of √2
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
        **{name: _text_column(rows, name) for name in RULE_ANSWERS},
        "phrase": clean["clean"],
        "word": clean.select(pl.col("clean").str.extract(r"^(\S+)"))["clean"],
    }


def _read_own_columns(rows: pl.DataFrame, names: Sequence[str]) -> Mapping[str, pl.Series]:
    """Return the client's own columns: from the file, else as the row states them, else as the service fills them.

    An account's number is compared without spaces and hyphens.
    """
    stated = _text_column(rows, "own_columns").str.json_decode(pl.Struct(dict.fromkeys(names, pl.String())))
    values = {}
    for name in names:
        sources = (_text_column(rows, name), stated.struct.field(name), _text_column(rows, FILLED.get(name, name)))
        values[name] = pl.select(pl.coalesce(map(pl.lit, sources))).to_series()
    if "context_account" in values:
        values["context_account"] = values["context_account"].str.replace_all(r"[\s-]", "").str.to_uppercase()
    return values


def _list_crossed(contexts: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield pairs of circumstances that say more together than each alone."""
    for name in ("size", "cents", "round", "exactly", "day", "weekday", "end", "channel", "category"):
        yield "side", name
    for name in ("size", "exactly", "round"):
        yield "word", name
        yield "category", name
        yield "channel", name
    for context in contexts:
        for name in ("side", "channel", "size", "category", "counterparty_name", "phrase", "word"):
            yield context, name


def hash_values(values: pl.Series) -> Hashes:
    """Return a hash for each value: the same on every machine, and in every version, because models depend on it."""
    letters, row_of = _join_bytes(values.cast(pl.String).fill_null("∅").str.slice(0, MAX_LETTERS))
    return _hash_polynomial(letters, np.flatnonzero(np.diff(row_of, prepend=-1)))


def _hash_together(*columns: pl.Series) -> list[Hashes]:
    """Return the hashes of each column. All are hashed in one pass, which costs little more than hashing one."""
    return np.split(hash_values(pl.concat([values.cast(pl.String) for values in columns])), len(columns))


def merchant_words(clean: pl.Series) -> pl.Series:
    """Return the first two words of each clean description, skipping words with digits. They identify a merchant."""
    words = _plain_series(clean).str.replace_all(r"\S*0\S*", " ").str.replace_all(" +", " ").str.strip_chars(" ")
    return words.str.extract(r"^(\S+(?: \S+)?)").fill_null("")


def _text_column(rows: pl.DataFrame, name: str) -> pl.Series:
    known = rows[name] if name in rows.columns else pl.Series([None], dtype=pl.String).new_from_index(0, rows.height)
    return known.cast(pl.String)


def plain_text(texts: pl.Expr) -> pl.Expr:
    """Return upper-case words with any number as `0`: what stays the same when a payment recurs."""
    return (
        texts.fill_null("")
        .str.slice(0, MAX_LETTERS)
        .str.to_uppercase()
        .str.replace_all(r"\d+", "0")
        .str.replace_all(r"[^\p{L}\p{N}&]+", " ")
        .str.strip_chars(" ")
    )


def _plain_series(texts: pl.Series) -> pl.Series:
    return pl.select(plain_text(pl.lit(texts))).to_series()


def _take_first_words(texts: pl.Series, words: int) -> pl.Series:
    return texts.str.extract(rf"^((?:\S+ ?){{1,{words}}})").str.strip_chars(" ")


def _split_words(texts: pl.Series) -> _Words:
    letters, row_of = _join_bytes(texts)
    blank = letters == _SPACE
    starts = np.flatnonzero(blank[:-1] & ~blank[1:]) + 1
    return _Words(row_of[starts], _hash_polynomial(letters, starts))


def _join_bytes(texts: pl.Series) -> tuple[NDArray[np.uint8], Places]:
    """Join all texts in one array of bytes, with a space around each, and return the number of each byte's text."""
    bounded = " " + texts + " "
    letters = np.frombuffer((bounded.str.join("").item() or "").encode(), np.uint8)
    return letters, np.repeat(np.arange(len(texts), dtype=np.int64), bounded.str.len_bytes().to_numpy())


def _hash_polynomial(letters: NDArray[np.uint8], starts: Places) -> Hashes:
    """Hash the bytes from each start to the next. Spaces count as 0, so their number does not matter."""
    if not len(starts):
        return np.empty(0, np.uint64)
    first = starts[0]
    places = np.arange(first, len(letters)) - np.repeat(starts, np.diff(starts, append=len(letters)))
    powers = _POWERS[np.minimum(places, len(_POWERS) - 1)]  # only spaces lie beyond
    valued = np.where(letters == _SPACE, 0, letters).astype(np.uint64)[first:]
    return np.add.reduceat(valued * powers, starts - first)


def _combine(one: Hashes, other: Hashes) -> Hashes:
    return _mix(one) + other


def _mix(hashes: Hashes) -> Hashes:
    """Mix the bits, so that each depends on all bits of the hash (the finaliser of MurmurHash3, Appleby, 2011)."""
    mixed = (hashes ^ (hashes >> np.uint64(33))) * np.uint64(0xFF51AFD7ED558CCD)
    mixed = (mixed ^ (mixed >> np.uint64(33))) * np.uint64(0xC4CEB9FE1A85EC53)
    return mixed ^ (mixed >> np.uint64(33))
