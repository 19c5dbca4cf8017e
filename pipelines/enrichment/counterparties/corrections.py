"""What clients corrected, applied: the last word on what a transaction is, and with whom.

A correction speaks of one transaction, of all with a counterparty, or of all whose text holds some words. The later of
two wins, and what is said of a single transaction wins over what is said of many. First comes who, because corrections
of counterparties hang on it: the name that a single transaction was given, else the one that the latest matching words
give, else what enrichment found; and from there on, corrections of the counterparty that it then is may rename it
further, in their order. Then comes what: as the latest says that was made for the transaction, its words, or a
counterparty that it was at the time.

Words are compared whole, side by side and as they are: no regular expression comes from outside. They are looked up,
not searched for: every run of words in a text, as long as some correction's, is joined with the corrections. So the
cost follows the length of the texts, however many corrections there are and however many of them a text meets.
"""

import sys
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import polars as pl

from pipelines.enrichment.wording.phrases import bare_words
from pipelines.enrichment.wording.text import matching_text
from pipelines.vocabulary.schemas import TRANSACTIONS, CategorySource, Direction
from pipelines.vocabulary.taxonomy import GROUPS, SIDES

# What `reached` and `held` look at in a row.
REACHED_BY = (
    *("customer_number", "transaction_id", "direction", "description"),
    *("category", "category_basis", "counterparty_group", "counterparty_name"),
)
MOST_WORDS = 10  # of one pattern: a text is looked at once for each length that occurs
CONFIDENCE = 1.0  # what the client says is so

_SLICE_BYTES = 16_000_000  # of texts that are split into words at once
_ALWAYS = pl.lit(sys.maxsize, pl.Int64())
_FROM_THE_START = pl.lit(-1, pl.Int64())  # before every correction
_UUID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_SIDE = ("customer_number", "direction")
_TEXT = (*_SIDE, "description")
_POSITIONS = ("category_position", "name_position")
_NO_POSITIONS = dict.fromkeys(_POSITIONS, pl.Int64())
# From when to when a counterparty is whose it is, and whether it may be renamed then.
_START = (*_SIDE, "key", "since", "through", "renames")
_OF_A_COUNTERPARTY = ("counterparty_kind", "counterparty_lender_id", "counterparty_abn")
_FILLED_BEFORE = ("category_basis", "counterparty_group", "counterparty_abn")


def _compared_text(text: pl.Expr) -> pl.Expr:
    return bare_words(matching_text(text))


def key_of(text: str) -> str:
    """One text as patterns and counterparties are compared; `""` when it holds neither letter nor digit."""
    key: str = pl.select(_compared_text(pl.lit(text))).item()
    return key


def _add_bare_words(rows: pl.DataFrame, text: str | pl.Expr, name: str) -> pl.DataFrame:
    """`name`: the bare words of a text, or null where it holds none. Texts repeat: each is read once."""
    asked = rows.with_columns(pl.col(text).alias("asked") if isinstance(text, str) else text.alias("asked"))
    bare = _compared_text(pl.col("asked"))
    read = asked.select("asked").unique().drop_nulls().with_columns(pl.when(bare != "").then(bare).alias(name))
    return (
        asked.drop(name, strict=False)
        .join(read, on="asked", how="left", validate="m:1", maintain_order="left")
        .drop("asked")
    )


def _add_key(rows: pl.DataFrame) -> pl.DataFrame:
    """`key`: the counterparty by which a correction finds a row, its group, or where there is none, its name."""
    return _add_bare_words(rows, pl.coalesce("counterparty_group", "counterparty_name"), "key")


def apply_corrections(rows: pl.LazyFrame, corrections: pl.DataFrame) -> pl.LazyFrame:
    """Give each row the category and the counterparty that its client corrected it to. Facts and pairs stay.

    Args:
        rows: with category and counterparty as all other steps have them.
        corrections: those that hold (schema CORRECTIONS), one row for each customer whom one holds for.
    """
    if corrections.is_empty():
        return rows
    asked = {name: TRANSACTIONS[name] for name in _FILLED_BEFORE if name not in rows.collect_schema()}
    return rows.with_columns(pl.lit(None, kind).alias(name) for name, kind in asked.items()).map_batches(
        partial(_apply_decisions, corrections=corrections), predicate_pushdown=False, projection_pushdown=False
    )


def find_changed_rows(rows: pl.DataFrame, correction: pl.DataFrame, standing: pl.DataFrame) -> pl.DataFrame:
    """The rows that a correction decides once it is made, with `changes`: whether it says of them what was not said.

    A category that comes with a counterparty's name is looked at as it is shown; what other corrections said of a name
    that this one takes away is not.

    Args:
        rows: enriched transactions as they are shown (schema TRANSACTIONS, or the part in REACHED_BY).
        correction: the one to be made (schema CORRECTIONS), a row for each customer whom it holds for.
        standing: those that hold already (schema CORRECTIONS).
    """
    if correction.is_empty():
        return rows.clear().with_columns(changes=pl.lit(None, pl.Boolean))
    new = correction.row(0, named=True)
    meant = _select_meant_rows(rows.join(correction, on="customer_number", how="semi"), correction, new)
    single = _latest_positions(
        standing.clear() if new["transaction_id"] else standing, ("customer_number", "transaction_id")
    )
    category, name = pl.lit(new["category"], pl.String), pl.lit(new["counterparty_name"], pl.String)
    decides_category = category.is_not_null() & pl.col("category_position").is_null()
    decides_name = name.is_not_null() & pl.col("name_position").is_null()
    return (
        meant.join(single, on=("customer_number", "transaction_id"), how="left", validate="m:1", maintain_order="left")
        .filter(decides_category | decides_name)
        .with_columns(
            changes=(decides_category & category.ne_missing(pl.col("category")))
            | (decides_name & name.ne_missing(pl.col("counterparty_name")))
        )
        .drop(_POSITIONS)
    )


def _select_meant_rows(rows: pl.DataFrame, correction: pl.DataFrame, new: Mapping[str, Any]) -> pl.DataFrame:
    """Rows that the correction speaks of."""
    if new["transaction_id"] is not None:  # whose side is known: none is asked for
        return rows.filter(pl.col("transaction_id") == new["transaction_id"])
    if new["direction"] is not None:
        rows = rows.filter(pl.col("direction") == pl.lit(new["direction"], Direction))
    if new["counterparty_group"] is not None:
        return _add_key(rows).filter(pl.col("key") == new["counterparty_group"]).drop("key")
    return rows.join(_decide_by_words(rows, correction), on=_TEXT, how="semi", maintain_order="left")


def count_rows_by_counterparty(rows: pl.DataFrame, key: str) -> pl.DataFrame:
    """How many rows show a counterparty by this name, or are of this group, by `key` of the one that they are of."""
    named = rows.pipe(_add_bare_words, "counterparty_name", "name").pipe(_add_key)
    asked = (pl.col("name") == key) | (pl.col("key") == key)
    return named.filter(asked).group_by("key").agg(rows=pl.len().cast(pl.Int64()))


def count_corrected_rows(rows: pl.DataFrame) -> pl.DataFrame:
    """How many of the rows each correction decides, as they tell themselves: `correction_id` (text) and `rows`."""
    basis = pl.col("category_basis")
    deciding = pl.concat_list(
        basis.str.extract(f"^correction ({_UUID}):"), basis.str.extract(f"name by correction ({_UUID})$")
    )
    return (
        rows.filter(basis.str.contains("correction ", literal=True))
        .select(correction_id=deciding.list.drop_nulls().list.unique())
        .explode("correction_id")
        .drop_nulls()
        .group_by("correction_id")
        .agg(rows=pl.len().cast(pl.Int64()))
    )


def _apply_decisions(rows: pl.DataFrame, corrections: pl.DataFrame) -> pl.DataFrame:
    """Eager, because renaming goes on for as long as corrections follow each other."""
    numbered = rows.with_row_index("row")
    decisions = _find_decisions(numbered, corrections)
    if decisions.is_empty():
        return rows
    return (
        numbered.join(decisions, on="row", how="left", validate="1:1", maintain_order="left")
        .pipe(_join_on_position, _read_categories(corrections), "category_position")
        .pipe(_join_on_position, _read_names(corrections), "name_position")
        .with_columns(_corrected_category())
        .with_columns(_corrected_name())
        .select(rows.columns)
    )


def _join_on_position(rows: pl.DataFrame, said: pl.DataFrame, position: str) -> pl.DataFrame:
    return rows.join(said, on=("customer_number", position), how="left", validate="m:1", maintain_order="left")


def _read_categories(corrections: pl.DataFrame) -> pl.DataFrame:
    """What each correction says a row is, and the words by which that is explained."""
    single = pl.col("transaction_id").is_not_null()
    what = pl.coalesce(
        pl.when(single).then(pl.lit("this transaction")),
        pl.format("counterparty {}", "counterparty_group"),
        pl.format("words {}", "words"),
    )
    saying = corrections.filter(pl.col("category").is_not_null()).pipe(_add_bare_words, "words", "words")
    return saying.select(
        "customer_number",
        category_position="position",
        said_category="category",
        said_group=pl.col("category").replace_strict(GROUPS, return_dtype=pl.String),
        said_source=pl.when(single).then(pl.lit("correction")).otherwise(pl.lit("client_rule")).cast(CategorySource),
        said_basis=pl.format("correction {}: {}", _id_text(), what),
    )


def _read_names(corrections: pl.DataFrame) -> pl.DataFrame:
    """Whom each correction says a row is with."""
    naming = corrections.filter(pl.col("counterparty_name").is_not_null())
    return naming.pipe(_add_bare_words, "counterparty_name", "said_counterparty").select(
        "customer_number",
        "said_counterparty",
        name_position="position",
        said_name="counterparty_name",
        named_by=pl.format("name by correction {}", _id_text()),
    )


def _id_text() -> pl.Expr:
    parts = r"^(.{8})(.{4})(.{4})(.{4})(.{12})$"
    return pl.col("correction_id").bin.encode("hex").str.replace(parts, "$1-$2-$3-$4-$5")


def _corrected_category() -> list[pl.Expr]:
    said = pl.col("said_category").is_not_null()
    return [
        pl.coalesce("said_category", "category").alias("category"),
        pl.coalesce("said_group", "category_group").alias("category_group"),
        pl.coalesce("said_source", "category_source").alias("category_source"),
        pl.coalesce("said_basis", "category_basis").alias("category_basis"),
        pl.when(said).then(pl.lit(CONFIDENCE)).otherwise("confidence").alias("confidence"),
    ]


def _corrected_name() -> list[pl.Expr]:
    """Somebody else's kind, lender and ABN don't come along; another spelling of the same keeps its own."""
    renamed = pl.col("said_name").is_not_null()
    somebody_else = renamed & pl.col("said_counterparty").ne_missing(pl.col("key"))
    basis = pl.concat_str("category_basis", "named_by", separator="; ", ignore_nulls=True)
    return [
        pl.coalesce("said_name", "counterparty_name").alias("counterparty_name"),
        pl.when(renamed).then("said_counterparty").otherwise("counterparty_group").alias("counterparty_group"),
        pl.when(renamed).then(basis).otherwise("category_basis").alias("category_basis"),
        *(pl.when(~somebody_else).then(name).alias(name) for name in _OF_A_COUNTERPARTY),
    ]


def _find_decisions(numbered: pl.DataFrame, corrections: pl.DataFrame) -> pl.DataFrame:
    """The rows that corrections decide: `row`, `category_position` and `name_position` of those that do (at least one
    of them), and the `key` of the counterparty that enrichment found.
    """
    mine = numbered.join(corrections, on="customer_number", how="semi").pipe(_add_key)
    concerned = mine.select("row", "customer_number", "transaction_id", "direction", "description", "key")
    single = _latest_positions(corrections, ("customer_number", "transaction_id")).rename(_prefix_positions("single"))
    worded = _decide_by_words(concerned, corrections).rename(_prefix_positions("worded"))
    # what words say after the transaction itself was named doesn't name it any more
    overruled = pl.col("worded_name_position") > pl.col("single_name_position")
    timed = (
        concerned.join(single, on=("customer_number", "transaction_id"), how="left", validate="m:1")
        .join(worded, on=_TEXT, how="left", validate="m:1")
        .with_columns(worded_name_position=pl.when(~overruled.fill_null(value=False)).then("worded_name_position"))
    )
    party = _decide_by_counterparty(timed, corrections).rename(_prefix_positions("party"))
    return (
        timed.join(party, on="row", how="left", validate="1:1")
        .select(
            "row",
            "key",
            category_position=pl.coalesce(
                "single_category_position", pl.max_horizontal("worded_category_position", "party_category_position")
            ),
            name_position=pl.max_horizontal("single_name_position", "worded_name_position", "party_name_position"),
        )
        .filter(pl.any_horizontal(pl.col(_POSITIONS).is_not_null()))
    )


def _prefix_positions(kind: str) -> dict[str, str]:
    return {name: f"{kind}_{name}" for name in _POSITIONS}


def _latest_positions(corrections: pl.DataFrame, keys: Sequence[str]) -> pl.DataFrame:
    """Position of the last correction for each of the keys that says a category, and of the last that says a name."""
    said = {"category_position": "category", "name_position": "counterparty_name"}
    return (
        corrections.filter(pl.all_horizontal(pl.col(keys).is_not_null()))
        .group_by(keys)
        .agg(pl.col("position").filter(pl.col(what).is_not_null()).max().alias(name) for name, what in said.items())
    )


def _split_by_side(corrections: pl.DataFrame) -> pl.DataFrame:
    """One row for each side of the account that a correction holds on."""
    return pl.concat(
        corrections.filter(pl.col("direction").is_null() | (pl.col("direction") == side)).with_columns(
            direction=pl.lit(side, Direction)
        )
        for side in SIDES
    )


def _decide_by_counterparty(timed: pl.DataFrame, corrections: pl.DataFrame) -> pl.DataFrame:
    """The corrections of counterparties that decide, by `row`.

    A row is with whom enrichment found until words name somebody, with that one until the transaction itself is given
    a name, and from then on with that one. Each of these times is a start, from which counterparties may be renamed.
    """
    by_party = _split_by_side(corrections.filter(pl.col("counterparty_group").is_not_null()))
    if by_party.is_empty():
        return pl.DataFrame(schema={"row": timed.schema["row"], **_NO_POSITIONS})
    names = _read_names(corrections).select("customer_number", "name_position", named="said_counterparty")
    worded, single = pl.col("worded_name_position"), pl.col("single_name_position")
    before_single = pl.coalesce(single - 1, _ALWAYS)
    found = timed.with_columns(since=_FROM_THE_START, through=pl.coalesce(worded - 1, before_single), renames=True)
    by_words = (
        timed.filter(worded.is_not_null())
        .with_columns(since=worded, through=before_single, renames=True)
        .pipe(_add_key_named_at, names)
    )
    by_itself = (
        timed.filter(single.is_not_null())
        .with_columns(since=single, through=_ALWAYS, renames=False)
        .pipe(_add_key_named_at, names)
    )
    times = pl.concat(each.select("row", *_START) for each in (found, by_words, by_itself)).drop_nulls("key")
    paths = _follow_renamings(times.select(_START).unique(), by_party)
    return times.join(paths, on=_START, validate="m:1").group_by("row").agg(pl.col(_POSITIONS).max())


def _add_key_named_at(rows: pl.DataFrame, names: pl.DataFrame) -> pl.DataFrame:
    """`key`: of the counterparty named by the correction at `since`."""
    at_since = names.rename({"name_position": "since"})
    named = rows.join(at_since, on=("customer_number", "since"), validate="m:1")
    return named.with_columns(key="named")


def _follow_renamings(starts: pl.DataFrame, by_party: pl.DataFrame) -> pl.DataFrame:
    """Where renaming leads from each start: the last position on the way that says a category, and that renames.

    From a start a counterparty goes by the first later correction of it that renames it, and so on. Each step is later
    than the one before, so there are at most as many as corrections.
    """
    named = pl.col("counterparty_name").is_not_null()
    key = pl.col("counterparty_group")
    renaming = by_party.filter(named).pipe(_add_bare_words, "counterparty_name", "to")
    renaming = renaming.select(*_SIDE, "to", key=key, leaves="position").sort("leaves")
    saying = by_party.filter(pl.col("category").is_not_null()).select(*_SIDE, key=key, says="position").sort("says")
    standing = starts.with_row_index("start")
    trails = [pl.DataFrame(schema={"start": standing.schema["start"], **_NO_POSITIONS})]
    while not standing.is_empty():
        trail = _step_to_next_renaming(standing, renaming, saying)
        trails.append(trail.select("start", category_position="says", name_position="leaves"))
        standing = trail.filter(pl.col("leaves").is_not_null()).with_columns(key="to", since="leaves")
        standing = standing.drop("leaves", "to", "says").drop_nulls("key")
    ends = pl.concat(trails).group_by("start").agg(pl.col(_POSITIONS).max())
    return starts.with_row_index("start").join(ends, on="start", validate="1:1").drop("start")


def _step_to_next_renaming(standing: pl.DataFrame, renaming: pl.DataFrame, saying: pl.DataFrame) -> pl.DataFrame:
    """`leaves`: when each is renamed next, if it is; `says`: the last correction until then that says a category."""
    by = [*_SIDE, "key"]
    next_one = standing.sort("since").join_asof(
        renaming,
        left_on="since",
        right_on="leaves",
        by=by,
        strategy="forward",
        allow_exact_matches=False,
        check_sortedness=False,  # both are; it can't be checked within groups
    )
    renamed = pl.col("renames") & (pl.col("leaves") <= pl.col("through"))
    left = next_one.with_columns(leaves=pl.when(renamed).then("leaves")).with_columns(
        until=pl.coalesce("leaves", "through")
    )
    last = left.sort("until").join_asof(saying, left_on="until", right_on="says", by=by, check_sortedness=False)
    return last.with_columns(says=pl.when(pl.col("says") > pl.col("since")).then("says")).drop("until")


def _decide_by_words(concerned: pl.DataFrame, corrections: pl.DataFrame) -> pl.DataFrame:
    """The last corrections whose words each text holds, by customer, side and description."""
    sided = _split_by_side(corrections.filter(pl.col("words").is_not_null()))
    phrases = sided.pipe(_add_bare_words, "words", "words").pipe(_latest_positions, (*_SIDE, "words"))
    found = [pl.DataFrame(schema={**{name: concerned.schema[name] for name in _TEXT}, **_NO_POSITIONS})]
    if not phrases.is_empty():
        texts = concerned.join(phrases, on=_SIDE, how="semi").select(_TEXT).unique()
        found += [_look_up_runs(some, phrases) for some in _slice_by_bytes(texts)]
    return pl.concat(found)


def _slice_by_bytes(texts: pl.DataFrame) -> list[pl.DataFrame]:
    """So many texts at once that their words fit into memory, however long each is."""
    nth = pl.col("description").str.len_bytes().cum_sum() // _SLICE_BYTES
    return texts.with_columns(nth=nth).partition_by("nth", include_key=False)


def _look_up_runs(texts: pl.DataFrame, phrases: pl.DataFrame) -> pl.DataFrame:
    """Every run of words that begins as one of the phrases, as long as such a phrase, looked up among them."""
    lengths = phrases.select(
        *_SIDE, word=pl.col("words").str.split(" ").list.first(), length=pl.col("words").str.count_matches(" ") + 1
    ).unique()
    split = texts.with_row_index("text").with_columns(word=_compared_text(pl.col("description")).str.split(" "))
    words = split.select("text", *_SIDE, "word").explode("word").with_row_index("place")
    beginning = words.join(lengths, on=(*_SIDE, "word")).select("place", "text", *_SIDE, "length")
    hits = [
        _runs_of_length(words, some, length[0])
        .join(phrases, on=(*_SIDE, "words"), validate="m:1")
        .select("text", *_POSITIONS)
        for length, some in beginning.partition_by("length", as_dict=True).items()
    ]
    if not hits:
        return texts.clear().with_columns(pl.lit(None, kind).alias(name) for name, kind in _NO_POSITIONS.items())
    last = pl.concat(hits).group_by("text").agg(pl.col(_POSITIONS).max())
    return split.drop("word").join(last, on="text", validate="1:1").drop("text")


def _runs_of_length(words: pl.DataFrame, beginning: pl.DataFrame, length: int) -> pl.DataFrame:
    """`words`: as many as `length` side by side, from each place on where so many are left in the text."""
    whole = beginning.filter(pl.col("place") + length <= words.height)
    last = words["text"].gather(whole["place"] + (length - 1))
    whole = whole.filter(whole["text"] == last)
    side_by_side = [words["word"].gather(whole["place"] + after).alias(f"{after}") for after in range(length)]
    run = pl.select(pl.concat_str(side_by_side, separator=" ")).to_series()
    return whole.with_columns(words=run)
