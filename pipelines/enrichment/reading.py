"""Read each row by itself: its fields, its counterparty and its category, before any other row counts.

What is read depends only on the row's facts, the type of its account, and what reads it: this program, the lists and
the model. So it is stored with the row, and a row is read again only when one of these has changed. `read_by` names
them. Later steps overwrite some of what was read, as a correction does: `as_read` has it as it was read.
"""

import hashlib
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.resources import files

import polars as pl

from pipelines.enrichment.account_details import ACCOUNT, find_details, replace_details
from pipelines.enrichment.counterparties import lists
from pipelines.enrichment.counterparties.categories import ask_model
from pipelines.enrichment.counterparties.narratives import read_narratives
from pipelines.enrichment.knowledge import NOTHING_KNOWN, Activated, Knowledge, T
from pipelines.enrichment.learned.model import UNNAMED, Model
from pipelines.enrichment.learned.model_file import load_base
from pipelines.enrichment.matching.matching import ORDER
from pipelines.enrichment.wording.value_dates import add_effective_date
from pipelines.vocabulary.places import take_rows
from pipelines.vocabulary.plans import collect
from pipelines.vocabulary.schemas import OVERWRITTEN, READ, TRANSACTIONS, Direction, not_retracted

REMEMBERED = (*ORDER, *READ, "read_by", "as_read", "retracted_seq", *ACCOUNT)
"""The columns of TRANSACTIONS from which `read_rows` knows what was read before."""

NOTHING_HELD = pl.DataFrame(schema={name: TRANSACTIONS[name] for name in REMEMBERED})
_CODE = ("enrichment", "vocabulary")  # the packages whose code and rules decide what is read
_DECIDING = (".py", ".yaml", ".tsv")  # files; a model is known by its name
_AS_TEXT = pl.Struct({**dict.fromkeys(OVERWRITTEN, pl.String()), "confidence": pl.Float64()})
_ONLY_FOR_READING = ("text", "stated_day", "stated_month", "stated_year")


def read_rows(
    rows: pl.DataFrame, held: pl.DataFrame = NOTHING_HELD, knowledge: Knowledge = NOTHING_KNOWN
) -> pl.DataFrame:
    """Add `direction`, the columns READ, and `read_by`.

    Args:
        rows: facts and identity (schema `duplicates.KNOWN`).
        held: rows that were read before (columns REMEMBERED); others may be among them.
    """
    details = find_details(rows)
    read = _recall(held, details, knowledge)
    sided = rows.with_columns(direction=_direction())
    places = _find_places(sided, read)
    missing = places.is_null().arg_true()
    if len(missing):
        new = sided[missing]
        read_now = _read(replace_details(new, details), knowledge).select(read.columns)
        places = places.scatter(missing, _find_places(new, read_now) + read.height)
        read = pl.concat([read, read_now])
    if read.height > sided.height or not places.is_sorted():  # else they are in order, and copying takes memory
        read = take_rows(read, places)
    return sided.hstack(read.drop(ORDER))


def _find_places(rows: pl.DataFrame, among: pl.DataFrame) -> pl.Series:
    """Return for each row the place of the same row among others, or null."""
    places = among.select(ORDER).with_row_index("place")
    return rows.select(ORDER).join(places, on=ORDER, how="left", validate="1:1", maintain_order="left")["place"]


def remember(rows: pl.DataFrame, read: pl.DataFrame) -> pl.DataFrame:
    """Add `as_read`: what was read where a later step has overwritten it, as JSON; null elsewhere.

    A column of JSON takes a tenth of the memory of one with a field for each value, because it is nearly always null.

    Args:
        rows: after all steps.
        read: from `read_rows`, with the same rows in the same order.
    """
    assert rows["position"].equals(read["position"]), "a step moved rows"
    overwritten = pl.select(pl.any_horizontal(rows[name].ne_missing(read[name]) for name in OVERWRITTEN)).to_series()
    changed = overwritten.arg_true()
    texts = read.select(OVERWRITTEN)[changed].select(pl.struct(OVERWRITTEN).struct.json_encode()).to_series()
    return rows.with_columns(as_read=pl.repeat(None, rows.height, dtype=pl.String, eager=True).scatter(changed, texts))


def _recall(held: pl.DataFrame, details: pl.DataFrame, knowledge: Knowledge) -> pl.DataFrame:
    """Return what was read in these rows by what reads them now, with the key of each row."""
    typed = replace_details(held, details).lazy()
    plan = typed.filter(not_retracted(), pl.col("read_by") == _reader(knowledge))
    rows = collect(plan.select(*ORDER, *READ, "read_by", "as_read"))
    changed = rows["as_read"].is_not_null().arg_true()
    former = rows["as_read"][changed].str.json_decode(_AS_TEXT).struct.unnest()
    return rows.drop("as_read").with_columns(
        rows[name].clone().scatter(changed, former[name].cast(rows.schema[name])) for name in OVERWRITTEN
    )


def _read(rows: pl.DataFrame, knowledge: Knowledge) -> pl.DataFrame:
    """Read each customer's rows by the rules and the model that its client activated, else by the shipped ones."""
    by_lists = _pair_with_customers(knowledge.own_lists, knowledge.lists or lists.load())
    fields = pl.concat(
        read_narratives(part, read_by)
        for whose, read_by in by_lists
        if (part := rows.filter(whose)).height or rows.is_empty()
    )
    by_model = _pair_with_customers(knowledge.models, load_base())
    return (
        pl.concat(ask_model(fields.filter(whose), model) for whose, model in by_model)
        .pipe(add_effective_date)
        .drop(_ONLY_FOR_READING)
        .with_columns(read_by=_reader(knowledge))
    )


def _reader(knowledge: Knowledge) -> pl.Expr:
    """Return what reads each customer's rows, and the type of their account, if stated; null if its lists or its model
    have no name to be known by.
    """
    shipped = knowledge.lists or lists.load()
    own_lists = [(each.customers, each.value.name) for each in knowledge.own_lists]
    own_models = [(each.customers, _name_of(each.value)) for each in knowledge.models]
    reader = pl.concat_str(
        pl.lit(_hash_program()),
        _by_customer(own_lists, shipped.name),
        _by_customer(own_models, _name_of(load_base())),
        separator=" ",
    )
    return reader + pl.format(" {}", pl.col("account_type").cast(pl.String)).fill_null("")


def _name_of(model: Model) -> str | None:
    return model.name if model.name != UNNAMED else None


def _by_customer(own: Sequence[tuple[frozenset[int], str | None]], rest: str | None) -> pl.Expr:
    named = pl.lit(rest, pl.String)
    for customers, name in own:
        named = pl.when(pl.col("customer_number").is_in(list(customers))).then(pl.lit(name, pl.String)).otherwise(named)
    return named


def _pair_with_customers(own: Sequence[Activated[T]], rest: T) -> list[tuple[pl.Expr, T]]:
    """Return pairs of an expression that selects customers, and what applies to them: what their client activated, or
    `rest` for all other customers.
    """
    groups = [(pl.col("customer_number").is_in(list(each.customers)), each.value) for each in own]
    others = ~pl.any_horizontal(pl.lit(value=False), *(of_client for of_client, _ in groups))
    return [*groups, (others, rest)]


@cache
def _hash_program() -> str:
    """Return the first digits of a SHA-256 over everything that decides what is read, except models.

    It covers the code, not only its version, so that no change can leave behind what former code has read.
    """
    whole = hashlib.sha256()
    for content in _list_contents():
        whole.update(hashlib.sha256(content).digest())
    return whole.hexdigest()[:16]


def _list_contents() -> Iterator[bytes]:
    folders = [files("pipelines").joinpath(name) for name in _CODE]
    while folders:
        for each in sorted(folders.pop().iterdir(), key=lambda entry: entry.name):
            if each.is_dir():
                folders.append(each)
            elif each.name.endswith(_DECIDING):
                yield each.read_bytes()


@cache
def _direction() -> pl.Expr:
    return pl.when(pl.col("amount") < 0).then(pl.lit("debit")).otherwise(pl.lit("credit")).cast(Direction)
