"""Find payments with the customer's own name on the other side: they go to or from another account of the customer.

Money that a business sends itself from another bank looks like a payment by one of its customers. Counted as revenue,
it would make every report too good. So unless there is better evidence, a payment with the customer's own name is a
transfer between own accounts, even if the other account was not supplied. The customer's names are the registered one
and those of the holders of its accounts.

The other side is the customer if the customer's name was read as the counterparty's. A name that is cut, or made of
words with another meaning, may be read wrongly (`EASTERN ICE CREA TRANSFER`). So a text also counts if it is the name
(perhaps cut to the width of a bank's field), followed by at most a word for a transfer.

A customer's name beside somebody else's does not count: the bank or the payer states whom the money is for. Then the
other name is the counterparty's (`OSKO PAYMENT HARBOUR HONEY CHARLOTTE KAUR`).
"""

from functools import cache, reduce

import polars as pl

from pipelines.enrichment.counterparties import lists
from pipelines.enrichment.counterparties.categories import SURE
from pipelines.enrichment.names.holders import holder_name
from pipelines.enrichment.names.name_groups import business_groups, slug
from pipelines.enrichment.names.names import NAMED, name_counterparties
from pipelines.enrichment.names.related import FIELD_WIDTHS
from pipelines.vocabulary.places import add_by_row
from pipelines.vocabulary.schemas import CategorySource, CounterpartyKind
from pipelines.vocabulary.taxonomy import TRANSFER

CONFIDENCE = 0.85  # not calibrated
BASIS = "the customer's own name"
_PREFIXES = ("FROM ", "TO ", "IN · ", "OUT · ")
_SUFFIXES = ("", *(f"{gap}{word}" for gap in (" ", " - ") for word in ("TRANSFER", "TFR", "FUNDS", "OWN ACCOUNT")))
_NAME_FROM = 5  # characters: a shorter name is an ordinary word as well (our judgement)
_NAMED = pl.Schema({"customer_number": pl.Int64(), "name": pl.String()})
_NEVER_HOLDERS = ("bank", "processor", "lender", "government")
_UNEXPLAINED = ("customer_transfer", "unknown_credit", "unknown_debit")  # categories that don't say what was paid for


def mark_own_names(rows: pl.DataFrame, customers: pl.DataFrame) -> pl.DataFrame:
    """Set the counterparty's kind to `own` where it is the customer itself, and an unsure category to own transfer.

    Where a text names somebody else beside the customer, that party becomes the counterparty.

    Args:
        rows: with the columns of counterparty and category, and `clean_description`.
        customers: schema `knowledge.CUSTOMERS`.
    """
    names = pl.concat([customers.select(_NAMED.names()), _holders(rows)]).unique()
    if names.is_empty():
        return rows
    marked = (
        rows.with_columns(bare_text=_bare_text())
        .pipe(_join_marks, _own_groups(names), "counterparty_group")
        .pipe(_join_marks, _own_texts(names), "bare_text")
        .pipe(_name_other_sides)
    )
    by_text = pl.col("is_own_text").is_not_null()
    # An account may be called after its bank or processor, which isn't its holder.
    is_other = pl.col("counterparty_kind").is_in(_NEVER_HOLDERS).fill_null(value=False)
    itself = (by_text | pl.col("own_name").is_not_null()) & ~is_other
    # The model knows no names, so its `customer_transfer` is a guess, whatever its confidence.
    guessed = (pl.col("confidence") < SURE) | (pl.col("category_source") == "learned")
    # A rule may have matched words of the own name, such as CARAVAN PARK: in a transfer they don't say what it is for.
    # A single word, or any text of a direct debit, more likely does.
    is_transfer = pl.col("channel").is_in(("transfer", "npp")) & pl.col("bare_text").str.contains(" ")
    by_name = by_text & (pl.col("category_source") == "pattern") & is_transfer.fill_null(value=False)
    unsure = itself & ((pl.col("category").is_in(_UNEXPLAINED) & guessed) | by_name)
    return marked.with_columns(
        counterparty_kind=pl.when(itself).then(pl.lit("own", CounterpartyKind)).otherwise("counterparty_kind"),
        category=pl.when(unsure).then(pl.lit(TRANSFER.slug)).otherwise("category"),
        category_group=pl.when(unsure).then(pl.lit(TRANSFER.group)).otherwise("category_group"),
        category_source=pl.when(unsure).then(pl.lit("counterparty", CategorySource)).otherwise("category_source"),
        category_basis=pl.when(unsure).then(pl.lit(BASIS)).otherwise("category_basis"),
        confidence=pl.when(unsure).then(pl.lit(CONFIDENCE)).otherwise("confidence"),
    ).drop("bare_text", "own_name", "is_own_text")


def _holders(rows: pl.DataFrame) -> pl.DataFrame:
    """Return `customer_number`, `name` of the holders of the customers' accounts."""
    if "account_name" not in rows.columns:
        return pl.DataFrame(schema=_NAMED)
    accounts = rows.select("customer_number", "account_name").unique().drop_nulls()
    holders = accounts.select("customer_number", name=holder_name())
    return holders.filter(pl.col("name").str.len_chars() >= _NAME_FROM)


@cache
def _bare_text() -> pl.Expr:
    """Return the text without words like FROM and TO."""
    return reduce(lambda left, word: left.str.strip_prefix(word), _PREFIXES, pl.col("clean_description"))


def _join_marks(rows: pl.DataFrame, own: pl.DataFrame, key: str) -> pl.DataFrame:
    return rows.join(own, on=["customer_number", key], how="left", maintain_order="left")


def _name_other_sides(rows: pl.DataFrame) -> pl.DataFrame:
    """Where a text names somebody beside the customer, make that party the counterparty and clear `own_name`."""
    own = pl.col("counterparty_name").str.to_uppercase()
    parts = pl.col("clean_description").str.splitn(own, 2)
    both = (
        rows.with_row_index("row")
        .filter(pl.col("own_name").is_not_null(), pl.col("is_own_text").is_null())
        .select("row", "own_name", parts.struct.rename_fields(["before", "after"]).struct.unnest())
        .drop_nulls("after")
    )
    if both.is_empty():
        return rows
    beside = both.select("row", "own_name", clean_description=pl.concat_str("before", "after", separator=" "))
    read = beside.join(_read_parties(beside["clean_description"].unique()), on="clean_description", validate="m:1")
    # What is read may be a part of the customer's own name, not another one (JACARANDA LAWN & GARDEN).
    is_part = pl.col("own_name").str.contains(pl.col("other_counterparty_name").str.to_uppercase(), literal=True)
    named = read.filter(~is_part).drop("own_name", "clean_description")
    is_named = pl.col("other_counterparty_name").is_not_null()
    others = {name: pl.when(is_named).then(f"other_{name}").otherwise(name) for name in NAMED}
    changed = add_by_row(rows, named)
    return changed.with_columns(own_name=pl.when(~is_named).then("own_name"), **others).drop(
        f"other_{name}" for name in NAMED
    )


def _read_parties(texts: pl.Series) -> pl.DataFrame:
    """Return `clean_description` of the texts that name a party, and the columns of NAMED with the prefix `other_`.

    A bank is no party, since it only passed the money on. A short name is left out, because it may be a bank's (ANZ).
    """
    nobody = dict.fromkeys(("listed_name", "listed_kind"), pl.lit(None, pl.String))
    read = name_counterparties(texts.to_frame().with_columns(text=texts, **nobody))
    named = texts.to_frame().hstack(read).filter(pl.col("counterparty_name").str.len_chars() >= _NAME_FROM)
    purposes = lists.load().directory.purposes_in(named["counterparty_name"].to_list())
    parties = named.filter(pl.Series(purposes, dtype=pl.String).ne_missing("bank"))
    return parties.rename({name: f"other_{name}" for name in NAMED})


def _own_groups(names: pl.DataFrame) -> pl.DataFrame:
    """List the counterparty groups that are the customer: `customer_number`, `counterparty_group`, `own_name`.

    `own_name`: the longest of the customer's names in the group, in upper case.
    """
    name = pl.col("name")
    business = pl.lit(business_groups(names["name"]))
    groups = pl.concat_list(slug(name), business, *(slug(name.str.head(width)) for width in FIELD_WIDTHS))
    named = names.select("customer_number", counterparty_group=groups, own_name=name.str.to_uppercase())
    longest = named.explode("counterparty_group").drop_nulls().sort(pl.col("own_name").str.len_chars(), "own_name")
    return longest.unique(["customer_number", "counterparty_group"], keep="last")


def _own_texts(names: pl.DataFrame) -> pl.DataFrame:
    """List texts of the customer's name and at most a word for a transfer.

    Columns: `customer_number`, `bare_text`, `is_own_text` (always true).
    """
    name = pl.col("name").str.to_uppercase().str.strip_chars()
    cuts = pl.concat_list(name, *(name.str.head(width).str.strip_chars_end() for width in FIELD_WIDTHS))
    cut = names.filter(name.str.len_chars() >= _NAME_FROM).select("customer_number", name=cuts).explode("name")
    texts = cut.select("customer_number", bare_text=pl.concat_list(pl.col("name") + end for end in _SUFFIXES))
    return texts.explode("bare_text").drop_nulls().unique().with_columns(is_own_text=pl.lit(value=True))
