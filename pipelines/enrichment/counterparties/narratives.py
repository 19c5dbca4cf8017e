"""Read narratives: their fields, the counterparty, and the category that names and words imply.

A business's narratives repeat. So each distinct combination of description, side and type of account is read once, and
the result is joined back to the rows. Many narratives are split into slices, one for each core.
"""

from concurrent.futures import ThreadPoolExecutor
from functools import partial

import polars as pl

from pipelines.enrichment.counterparties import lists, patterns
from pipelines.enrichment.counterparties.abbreviations import spell_out
from pipelines.enrichment.counterparties.brands import Brands
from pipelines.enrichment.counterparties.business_signs import BY_CARD, SIGNS, add_signs, is_card
from pipelines.enrichment.counterparties.categories import (
    DECIDED,
    decide,
    propose_by_names,
    propose_by_rules,
    propose_fallback,
)
from pipelines.enrichment.counterparties.counterparties import NAMED as LISTED
from pipelines.enrichment.counterparties.lists import Lists
from pipelines.enrichment.names import name_words
from pipelines.enrichment.names.name_groups import slug
from pipelines.enrichment.names.names import NAMED, find_abns, name_counterparties
from pipelines.enrichment.wording.details import read_details
from pipelines.enrichment.wording.phrases import words_of
from pipelines.enrichment.wording.rails import load_customers_name
from pipelines.enrichment.wording.text import matching_text

KEY = ("description", "direction", "account_type")
ALIKE = ("words", "clean_description", "direction", "account_type")  # these determine counterparty and category
OWN_SLICE = 10_000  # narratives read at once by a client's own rules, to bound memory
MIN_SLICE = 25_000  # narratives: each slice prepares a search for thousands of phrases, which must be worth it
_OF_TEXT = ("text", "whole_name", "channel", "location")  # nearly equal for equal words, so any narrative's are taken

_SEARCHED = ("words", *SIGNS)
_OF_A_PARTY = tuple(name for name in LISTED if name != "text_number")
_OF_THE_LISTS = (
    *("alike", "text_number", "direction", "account_type"),
    *("phrase", "purpose", "credit", "debit", "counterparty_lender_id"),
)


def read_narratives(rows: pl.DataFrame, known: Lists | None = None) -> pl.DataFrame:
    """Add `text` (from `matching_text`), the fields of `read_details`, the counterparty and the category.

    The columns of the category are `categories.DECIDED`.

    Args:
        rows: `description`, `direction` and `account_type`, and none of the columns that are added.
        known: lists of names to use instead of the shipped ones.
    """
    read_by = known or lists.load()
    read_slice = partial(_read_slice, read_by)
    keys = rows.select(KEY).unique().with_row_index("key")
    cores = pl.thread_pool_size()
    size = OWN_SLICE if read_by.is_own else max(-(-keys.height // cores), MIN_SLICE)
    with ThreadPoolExecutor(cores) as pool:
        read = pl.concat(list(pool.map(read_slice, keys.iter_slices(size))) or [read_slice(keys)])
    described = keys.join(read, on="key", validate="1:1").drop("key")
    return rows.join(described, on=KEY, how="left", validate="m:1", maintain_order="left", nulls_equal=True)


def _read_slice(known: Lists, keys: pl.DataFrame) -> pl.DataFrame:
    """Read each `key`: the fields from its text, everything else from its words, which repeat more often."""
    numbers = (*known.directory.numbers, *known.rulebook.numbers)
    texts = keys.select(text=matching_text(pl.col("description"))).to_series()
    fields = read_details(texts)
    whole = known.cut_names.find_whole(fields["clean_description"]).alias("whole_name")
    read = keys.hstack([texts, find_abns(texts), *fields, whole]).with_columns(is_card=is_card())
    read = read.with_columns(spelt=spell_out(read["clean_description"], read["is_card"]))
    parts = [
        words_of(_without_customer(pl.col("text")), numbers),
        pl.format(" ^ {} $ ", "whole_name").fill_null(""),
        words_of(pl.col("spelt"), numbers).fill_null(""),
        pl.when("is_card").then(pl.lit(f" {BY_CARD} ")).otherwise(pl.lit("")),
    ]
    read = read.with_columns(words=pl.concat_str(parts)).drop("is_card", "spelt")
    alike = read.unique(ALIKE).select(*ALIKE, *_OF_TEXT).with_row_index("alike")
    concluded = alike.drop(_OF_TEXT).join(_categorise(known, alike), on="alike", validate="1:1").drop("alike")
    return read.join(concluded, on=ALIKE, validate="m:1", nulls_equal=True).drop(*KEY, "words", "whole_name")


def _without_customer(text: pl.Expr) -> pl.Expr:
    """Remove the customer's own name, which says nothing about the payment."""
    named = pl.when(text.str.contains("IND", literal=True)).then(text)  # few texts are searched with the pattern
    return pl.coalesce(named.str.replace(load_customers_name(), ""), text)


def _categorise(known: Lists, narratives: pl.DataFrame) -> pl.DataFrame:
    """Return the counterparty and the category per `alike`.

    Args:
        narratives: distinct ALIKE, each with _OF_TEXT of any one of its narratives.
    """
    signed = add_signs(narratives)
    words = signed.select(_SEARCHED).unique().with_row_index("text_number")
    named = known.directory.find(words["words"], words.select(SIGNS))
    found = words.join(named, on="text_number", how="left", validate="1:1")
    listed = (
        signed.join(found, on=_SEARCHED, validate="m:1", maintain_order="left")
        .pipe(_forget_processors)
        .pipe(_add_brands, known.brands)
    )
    parties = pl.concat([listed.select(_OF_THE_LISTS), _name_parties(listed)], how="horizontal")
    keyed = parties.with_columns(key="alike")
    held = known.rulebook.find_matches(words["words"], keyed.select(patterns.KEYS.names()).cast(patterns.KEYS))
    candidates = pl.concat([propose_by_rules(held), propose_by_names(keyed), propose_fallback(keyed)])
    concluded = parties.join(decide(candidates), left_on="alike", right_on="key", validate="1:1")
    return concluded.select("alike", "counterparty_lender_id", *NAMED, *DECIDED)


def _forget_processors(listed: pl.DataFrame) -> pl.DataFrame:
    """Forget a listed processor that only passed on what was paid to a business (SUMUP *AJ TAXIS)."""
    kinds = name_words.load().broker_kinds
    processors = pl.col("counterparty_name").is_in([name for name, kind in kinds.items() if kind == "processor"])
    passed_on = processors & (pl.col("direction") == "debit") & pl.col("text").str.contains(name_words.any_starred())
    remaining = pl.when(~passed_on.fill_null(value=False))
    return listed.with_columns(remaining.then(name).alias(name) for name in _OF_A_PARTY)


def _add_brands(listed: pl.DataFrame, known: Brands) -> pl.DataFrame:
    """Name the brand (`brands`) where the lists name nobody or only an intermediary. The rows stay in their order."""
    between = pl.col("counterparty_name").is_in(list(name_words.load().broker_kinds))
    nameless = listed.filter(pl.col("purpose").is_null() | between)
    found = nameless.select("alike").with_row_index("text_number").join(known.find(nameless), on="text_number")
    return listed.update(found.drop("text_number"), on="alike", how="left", include_nulls=True)


def _name_parties(listed: pl.DataFrame) -> pl.DataFrame:
    """Name each counterparty by the lists, else from the text itself (schema NAMED, same rows).

    A listed bank is the counterparty only if the text names no other party: usually it is just the bank that paid.
    """
    other = pl.col("purpose").ne_missing("bank")
    by_lists = [pl.when(other).then(f"counterparty_{each}").alias(f"listed_{each}") for each in ("name", "kind")]
    names = name_counterparties(listed.select("text", "clean_description", *by_lists))
    nameless = names["counterparty_name"].is_null()
    banks = listed.select(pl.when(nameless).then(f"counterparty_{each}").alias(each) for each in ("name", "kind"))
    return names.with_columns(
        counterparty_name=pl.coalesce("counterparty_name", banks["name"]),
        counterparty_kind=pl.coalesce(banks["kind"], "counterparty_kind"),
        counterparty_group=pl.coalesce("counterparty_group", banks.select(slug(pl.col("name"))).to_series()),
    )
