"""Rows of a frame as JSON text, exact to the cent.

Polars prints decimals as JSON strings, since they may be longer than a float holds. We print them as numbers with all
their digits: a reader that parses them as decimals loses nothing.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import groupby, pairwise

import numpy as np
import polars as pl

from pipelines.figures.periods import BY_CUSTOMER

MAX_CACHED = 64  # schemas whose expression is cached: building one takes longer than formatting a page of rows


def json_objects(frame: pl.DataFrame) -> pl.Series:
    """Return each row as a JSON object of its columns, nested lists and structs too. Days are ISO dates."""
    return frame.select(object_text(frame.schema)).to_series()


def object_text(schema: Mapping[str, pl.DataType]) -> pl.Expr:
    """Return columns, cast to these types, as the text of one JSON object.

    Numbers, Booleans and days are formatted directly, which is fast. Only texts and nested columns go through an
    encoder, neighbouring ones together.

    Raises:
        ValueError: in nested columns, a decimal and a member of another type have the same name.
    """
    return _object_text(tuple(schema.items()))


@lru_cache(MAX_CACHED)
def _object_text(columns: Sequence[tuple[str, pl.DataType]]) -> pl.Expr:
    parts: list[tuple[str, pl.Expr]] = []
    for plain, together in groupby(columns, lambda column: _is_plain(column[1])):
        run = dict(together)
        members = [(f'"{name}":{{}}', _json_value(name, kind)) for name, kind in run.items()]
        parts += members if plain else [("{}", _encode_members(run))]
    return pl.format("{{" + ",".join(text for text, _ in parts) + "}}", *(member for _, member in parts))


def as_data(frame: pl.DataFrame) -> pl.DataFrame:
    """Return `customer_number, data`, where `data` is the JSON text of all other columns."""
    return frame.select(BY_CUSTOMER, data=json_objects(frame.drop(BY_CUSTOMER)))


def join_pieces(customers: pl.DataFrame, pieces: Sequence[str | pl.DataFrame]) -> pl.DataFrame:
    """Return `customer_number, data`: for each of `customers` one text, joined from the pieces in this order.

    A piece is either a text that every customer gets, or a frame of `customer_number` and `line`, with any number of
    JSON objects per customer, in order. Objects that follow each other are separated by commas.
    """
    texts: dict[int, list[str]] = {number: [] for number in customers[BY_CUSTOMER]}
    for piece in pieces:
        parts = ((number, piece) for number in texts) if isinstance(piece, str) else _join_lines(piece)
        for number, part in parts:
            text = texts[number]
            follows = text and text[-1].endswith("}") and part.startswith("{")
            text.append("," + part if follows else part)
    return customers.select(BY_CUSTOMER, data=pl.Series(["".join(text) for text in texts.values()], dtype=pl.String()))


def _join_lines(piece: pl.DataFrame) -> Iterator[tuple[int, str]]:
    """Yield each customer's lines as one text."""
    if piece.is_empty():
        return
    numbers, lines = piece[BY_CUSTOMER].to_numpy(), piece["line"].to_list()
    starts = (np.flatnonzero(np.diff(numbers)) + 1).tolist()
    for start, end in pairwise([0, *starts, len(lines)]):
        yield int(numbers[start]), ",".join(lines[start:end])


def _is_plain(kind: pl.DataType) -> bool:
    return kind.is_decimal() or kind.is_integer() or isinstance(kind, pl.Boolean | pl.Date)


def _json_value(name: str, kind: pl.DataType) -> pl.Expr:
    text = pl.col(name).cast(kind).cast(pl.String)
    quoted = pl.format('"{}"', text) if kind == pl.Date() else text
    return quoted.fill_null("null")


def _encode_members(columns: Mapping[str, pl.DataType]) -> pl.Expr:
    """Return the columns as JSON members, without the braces around them.

    The regular expression below removes the quotes around decimals. It can't match inside a text, because quotes are
    escaped there. But it can't distinguish a decimal from a text member with the same name, so such names are refused.
    """
    decimals, others = set[str](), set[str]()
    for name, kind in columns.items():
        for member, leaf in _members(name, kind):
            (decimals if leaf.is_decimal() else others).add(member)
    if both := decimals & others:
        raise ValueError(f"Decimals and other members share the names {', '.join(sorted(both))}.")
    text = pl.struct(pl.col(name).cast(kind) for name, kind in columns.items()).struct.json_encode()
    if decimals:
        names = "|".join(sorted(decimals))
        text = text.str.replace_all(rf'"({names})":"(-?[0-9]+(?:\.[0-9]+)?)"', '"$1":$2')
    return text.str.strip_prefix("{").str.strip_suffix("}")


def _members(name: str, kind: pl.DataType) -> Iterator[tuple[str, pl.DataType]]:
    if isinstance(kind, pl.Struct):
        for field in kind.fields:
            yield from _members(field.name, field.dtype() if isinstance(field.dtype, type) else field.dtype)
    elif isinstance(kind, pl.List):
        inner = kind.inner
        yield from _members(name, inner() if isinstance(inner, type) else inner)
    else:
        yield name, kind
