"""Apply clients' corrections, which override every other step's category and counterparty.

A correction applies to one transaction, to all with a counterparty, or to all whose text contains certain words. A
correction of a single transaction wins over one of many; otherwise the later one wins.

The counterparty is decided first, because some corrections depend on it. A name given to the single transaction is
final. Without one, the counterparty is the one that the latest matching words name, else the one that enrichment found,
and later corrections of that counterparty may rename it further, in their order. Then the category is decided by the
latest correction of the single transaction, else by the latest one of its words or of a counterparty that it had at the
time.

Words are compared as adjacent whole words; clients can't send regular expressions. Words are looked up rather than
searched for: every run of words in a text that is as long as some correction's words is joined with the corrections. So
the cost depends on the length of the texts, not on the number of corrections or of matches.
"""

import sys
from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from pipelines.enrichment.wording.phrases import bare_words
from pipelines.enrichment.wording.text import matching_text
from pipelines.vocabulary.places import add_by_row
from pipelines.vocabulary.schemas import TRANSACTIONS, CategorySource, Direction
from pipelines.vocabulary.taxonomy import GROUPS, SIDES

# The columns that `find_changed_rows` and `count_corrected_rows` read.
REACHED_BY = (
    *("customer_number", "transaction_id", "direction", "description"),
    *("category", "category_basis", "counterparty_group", "counterparty_name"),
)
MAX_WORDS = 10  # of one correction: each length that occurs costs one pass over the texts (our judgement)
CONFIDENCE = 1.0  # the client knows

_SLICE_BYTES = 16_000_000  # of texts split into words at once, to bound memory
_ALWAYS = pl.lit(sys.maxsize, pl.Int64())
_FROM_THE_START = pl.lit(-1, pl.Int64())  # before every correction
_UUID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_SIDE = ("customer_number", "direction")
_TEXT = (*_SIDE, "description")
_POSITIONS = ("category_position", "name_position")
_NO_POSITIONS = dict.fromkeys(_POSITIONS, pl.Int64())
# A row has the counterparty `key` from the correction at position `since` to the one at `through`; `renames` says
# whether corrections in between may rename it.
_START = (*_SIDE, "key", "since", "through", "renames")
_OF_A_COUNTERPARTY = ("counterparty_kind", "counterparty_lender_id", "counterparty_abn")
_FILLED_BEFORE = ("category_basis", "counterparty_group", "counterparty_abn")


def _compared_text(text: pl.Expr) -> pl.Expr:
    return bare_words(matching_text(text))


def key_of(text: str) -> str:
    """Return one text in the form in which words and counterparties are compared; `""` without letters or digits."""
    key: str = pl.select(_compared_text(pl.lit(text))).item()
    return key


def _add_bare_words(rows: pl.DataFrame, text: str | pl.Expr, name: str) -> pl.DataFrame:
    """Add a column `name` with the bare words of a text, or null if it has none. Each distinct text is read once."""
    source = rows.with_columns(pl.col(text).alias("source") if isinstance(text, str) else text.alias("source"))
    bare = _compared_text(pl.col("source"))
    read = source.select("source").unique().drop_nulls().with_columns(pl.when(bare != "").then(bare).alias(name))
    return (
        source.drop(name, strict=False)
        .join(read, on="source", how="left", validate="m:1", maintain_order="left")
        .drop("source")
    )


def _add_key(rows: pl.DataFrame) -> pl.DataFrame:
    """Add `key`, by which corrections find a row's counterparty: its group, or without one its name."""
    return _add_bare_words(rows, pl.coalesce("counterparty_group", "counterparty_name"), "key")


def apply_corrections(rows: pl.DataFrame, corrections: pl.DataFrame) -> pl.DataFrame:
    """Set category and counterparty of each row as its client corrected them. Facts and transfer pairs stay.

    Args:
        rows: with the category and counterparty of all other steps.
        corrections: the active ones (schema CORRECTIONS), one row for each customer that a correction applies to.
    """
    if corrections.is_empty():
        return rows
    missing = {name: TRANSACTIONS[name] for name in _FILLED_BEFORE if name not in rows.columns}
    blank = rows.with_columns(pl.lit(None, kind).alias(name) for name, kind in missing.items())
    return _apply_decisions(blank, corrections)


def find_changed_rows(rows: pl.DataFrame, correction: pl.DataFrame, standing: pl.DataFrame) -> pl.DataFrame:
    """Return the rows that a new correction would decide, with `changes`: whether it would change their values.

    The new category and name are compared with those that the rows have now. If the new name replaces one that other
    corrections apply to, those no longer apply; this is not considered.

    Args:
        rows: enriched transactions (schema TRANSACTIONS, or the columns REACHED_BY).
        correction: the new one (schema CORRECTIONS), a row for each customer that it applies to.
        standing: those already active (schema CORRECTIONS).
    """
    if correction.is_empty():
        return rows.clear().with_columns(changes=pl.lit(None, pl.Boolean))
    new = correction.row(0, named=True)
    meant = _select_meant_rows(rows.join(correction, on="customer_number", how="semi"), correction, new)
    single = _last_positions(
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
    """Select the rows that the correction applies to."""
    if new["transaction_id"] is not None:  # a single transaction needs no check of its direction
        return rows.filter(pl.col("transaction_id") == new["transaction_id"])
    if new["direction"] is not None:
        rows = rows.filter(pl.col("direction") == pl.lit(new["direction"], Direction))
    if new["counterparty_group"] is not None:
        return _add_key(rows).filter(pl.col("key") == new["counterparty_group"]).drop("key")
    return rows.join(_decide_by_words(rows, correction), on=_TEXT, how="semi", maintain_order="left")


def count_rows_by_counterparty(rows: pl.DataFrame, key: str) -> pl.DataFrame:
    """Count the rows whose counterparty has this name or group, by the `key` of their counterparty."""
    named = rows.pipe(_add_bare_words, "counterparty_name", "name").pipe(_add_key)
    is_named = (pl.col("name") == key) | (pl.col("key") == key)
    return named.filter(is_named).group_by("key").agg(rows=pl.len().cast(pl.Int64()))


def count_corrected_rows(rows: pl.DataFrame) -> pl.DataFrame:
    """Return `correction_id` (text) and `rows`: how many rows each correction decides, as `category_basis` records."""
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
    """Apply the corrections."""
    numbered = rows.with_row_index("row")
    decisions = _find_decisions(numbered, corrections)
    if decisions.is_empty():
        return rows
    return (
        add_by_row(rows, decisions)
        .pipe(_join_on_position, _read_categories(corrections), "category_position")
        .pipe(_join_on_position, _read_names(corrections), "name_position")
        .with_columns(_corrected_category())
        .with_columns(_corrected_name())
        .select(rows.columns)
    )


def _join_on_position(rows: pl.DataFrame, values: pl.DataFrame, position: str) -> pl.DataFrame:
    return rows.join(values, on=("customer_number", position), how="left", validate="m:1", maintain_order="left")


def _read_categories(corrections: pl.DataFrame) -> pl.DataFrame:
    """Return the category that each correction gives, and the explanation for `category_basis`."""
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
        corrected_category="category",
        corrected_group=pl.col("category").replace_strict(GROUPS, return_dtype=pl.String),
        corrected_source=pl.when(single)
        .then(pl.lit("correction"))
        .otherwise(pl.lit("client_rule"))
        .cast(CategorySource),
        corrected_basis=pl.format("correction {}: {}", _id_text(), what),
    )


def _read_names(corrections: pl.DataFrame) -> pl.DataFrame:
    """Return the counterparty that each correction gives."""
    naming = corrections.filter(pl.col("counterparty_name").is_not_null())
    return naming.pipe(_add_bare_words, "counterparty_name", "corrected_counterparty").select(
        "customer_number",
        "corrected_counterparty",
        name_position="position",
        corrected_name="counterparty_name",
        named_by=pl.format("name by correction {}", _id_text()),
    )


def _id_text() -> pl.Expr:
    parts = r"^(.{8})(.{4})(.{4})(.{4})(.{12})$"
    return pl.col("correction_id").bin.encode("hex").str.replace(parts, "$1-$2-$3-$4-$5")


def _corrected_category() -> list[pl.Expr]:
    is_corrected = pl.col("corrected_category").is_not_null()
    return [
        pl.coalesce("corrected_category", "category").alias("category"),
        pl.coalesce("corrected_group", "category_group").alias("category_group"),
        pl.coalesce("corrected_source", "category_source").alias("category_source"),
        pl.coalesce("corrected_basis", "category_basis").alias("category_basis"),
        pl.when(is_corrected).then(pl.lit(CONFIDENCE)).otherwise("confidence").alias("confidence"),
    ]


def _corrected_name() -> list[pl.Expr]:
    """Return the corrected columns of the counterparty.

    Kind, lender and ABN are cleared if the new name is a different counterparty, and kept for another spelling.
    """
    renamed = pl.col("corrected_name").is_not_null()
    somebody_else = renamed & pl.col("corrected_counterparty").ne_missing(pl.col("key"))
    basis = pl.concat_str("category_basis", "named_by", separator="; ", ignore_nulls=True)
    return [
        pl.coalesce("corrected_name", "counterparty_name").alias("counterparty_name"),
        pl.when(renamed).then("corrected_counterparty").otherwise("counterparty_group").alias("counterparty_group"),
        pl.when(renamed).then(basis).otherwise("category_basis").alias("category_basis"),
        *(pl.when(~somebody_else).then(name).alias(name) for name in _OF_A_COUNTERPARTY),
    ]


def _find_decisions(numbered: pl.DataFrame, corrections: pl.DataFrame) -> pl.DataFrame:
    """Find the rows that corrections decide.

    Returns:
        `row`, the `key` of the counterparty that enrichment found, and `category_position` and `name_position` of the
        deciding corrections (at least one of the two).
    """
    affected = numbered.join(corrections, on="customer_number", how="semi").pipe(_add_key)
    concerned = affected.select("row", "customer_number", "transaction_id", "direction", "description", "key")
    single = _last_positions(corrections, ("customer_number", "transaction_id")).rename(_prefix_positions("single"))
    worded = _decide_by_words(concerned, corrections).rename(_prefix_positions("worded"))
    # Once a transaction has been given a name itself, later corrections by words no longer name it.
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


def _last_positions(corrections: pl.DataFrame, keys: Sequence[str]) -> pl.DataFrame:
    """Return for each key the position of its last correction with a category, and of its last with a name."""
    correcting = {"category_position": "category", "name_position": "counterparty_name"}
    return (
        corrections.filter(pl.all_horizontal(pl.col(keys).is_not_null()))
        .group_by(keys)
        .agg(
            pl.col("position").filter(pl.col(what).is_not_null()).max().alias(name) for name, what in correcting.items()
        )
    )


def _split_by_side(corrections: pl.DataFrame) -> pl.DataFrame:
    """Return one row for each side of the account that a correction applies to."""
    return pl.concat(
        corrections.filter(pl.col("direction").is_null() | (pl.col("direction") == side)).with_columns(
            direction=pl.lit(side, Direction)
        )
        for side in SIDES
    )


def _decide_by_counterparty(timed: pl.DataFrame, corrections: pl.DataFrame) -> pl.DataFrame:
    """Find the deciding corrections of counterparties, by `row`.

    A row has the counterparty that enrichment found until words name another, then that one until the transaction
    itself is given a name, and from then on that one. Until then, corrections of the counterparty may rename it.
    """
    by_party = _split_by_side(corrections.filter(pl.col("counterparty_group").is_not_null()))
    if by_party.is_empty():
        return pl.DataFrame(schema={"row": timed.schema["row"], **_NO_POSITIONS})
    names = _read_names(corrections).select("customer_number", "name_position", named="corrected_counterparty")
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
    """Add the `key` of the counterparty that the correction at `since` names."""
    at_since = names.rename({"name_position": "since"})
    named = rows.join(at_since, on=("customer_number", "since"), validate="m:1")
    return named.with_columns(key="named")


def _follow_renamings(starts: pl.DataFrame, by_party: pl.DataFrame) -> pl.DataFrame:
    """Follow renamings from each start. Return the positions of the last category correction and renaming on the way.

    From each start, the first later correction that renames the counterparty applies, and so on. Each step is later
    than the one before, so there are at most as many steps as corrections.
    """
    named = pl.col("counterparty_name").is_not_null()
    key = pl.col("counterparty_group")
    renaming = by_party.filter(named).pipe(_add_bare_words, "counterparty_name", "to")
    renaming = renaming.select(*_SIDE, "to", key=key, renamed_at="position").sort("renamed_at")
    categorising = (
        by_party.filter(pl.col("category").is_not_null())
        .select(*_SIDE, key=key, categorised_at="position")
        .sort("categorised_at")
    )
    standing = starts.with_row_index("start")
    trails = [pl.DataFrame(schema={"start": standing.schema["start"], **_NO_POSITIONS})]
    while not standing.is_empty():
        trail = _step_to_next_renaming(standing, renaming, categorising)
        trails.append(trail.select("start", category_position="categorised_at", name_position="renamed_at"))
        standing = trail.filter(pl.col("renamed_at").is_not_null()).with_columns(key="to", since="renamed_at")
        standing = standing.drop("renamed_at", "to", "categorised_at").drop_nulls("key")
    ends = pl.concat(trails).group_by("start").agg(pl.col(_POSITIONS).max())
    return starts.with_row_index("start").join(ends, on="start", validate="1:1").drop("start")


def _step_to_next_renaming(standing: pl.DataFrame, renaming: pl.DataFrame, categorising: pl.DataFrame) -> pl.DataFrame:
    """Add `renamed_at`, the position of the next renaming, and `categorised_at`, that of the last category until then.

    Both are null where there is none.
    """
    account_keys = [*_SIDE, "key"]
    next_one = standing.sort("since").join_asof(
        renaming,
        left_on="since",
        right_on="renamed_at",
        by=account_keys,
        strategy="forward",
        allow_exact_matches=False,
        check_sortedness=False,  # both are sorted, but Polars can't check that within groups
    )
    renamed = pl.col("renames") & (pl.col("renamed_at") <= pl.col("through"))
    left = next_one.with_columns(renamed_at=pl.when(renamed).then("renamed_at")).with_columns(
        until=pl.coalesce("renamed_at", "through")
    )
    last = left.sort("until").join_asof(
        categorising, left_on="until", right_on="categorised_at", by=account_keys, check_sortedness=False
    )
    return last.with_columns(
        categorised_at=pl.when(pl.col("categorised_at") > pl.col("since")).then("categorised_at")
    ).drop("until")


def _decide_by_words(concerned: pl.DataFrame, corrections: pl.DataFrame) -> pl.DataFrame:
    """Find the last corrections whose words each text contains, by customer, side and description."""
    sided = _split_by_side(corrections.filter(pl.col("words").is_not_null()))
    phrases = sided.pipe(_add_bare_words, "words", "words").pipe(_last_positions, (*_SIDE, "words"))
    found = [pl.DataFrame(schema={**{name: concerned.schema[name] for name in _TEXT}, **_NO_POSITIONS})]
    if not phrases.is_empty():
        texts = concerned.join(phrases, on=_SIDE, how="semi").select(_TEXT).unique()
        found += [_look_up_runs(some, phrases) for some in _slice_by_bytes(texts)]
    return pl.concat(found)


def _slice_by_bytes(texts: pl.DataFrame) -> list[pl.DataFrame]:
    """Split texts into slices whose words fit into memory, however long each text is."""
    nth = pl.col("description").str.len_bytes().cum_sum() // _SLICE_BYTES
    return texts.with_columns(nth=nth).partition_by("nth", include_key=False)


def _look_up_runs(texts: pl.DataFrame, phrases: pl.DataFrame) -> pl.DataFrame:
    """Look up in the phrases every run of words that has the first word and the length of a phrase."""
    lengths = phrases.select(
        *_SIDE, word=pl.col("words").str.split(" ").list.first(), length=pl.col("words").str.count_matches(" ") + 1
    ).unique()
    split = texts.with_row_index("text").with_columns(word=_compared_text(pl.col("description")).str.split(" "))
    words = split.select("text", *_SIDE, "word").explode("word").with_row_index("place")
    beginning = words.join(lengths, on=(*_SIDE, "word")).select("place", "text", *_SIDE, "length")
    hits = [
        _list_runs(words, some, length[0])
        .join(phrases, on=(*_SIDE, "words"), validate="m:1")
        .select("text", *_POSITIONS)
        for length, some in beginning.partition_by("length", as_dict=True).items()
    ]
    if not hits:
        return texts.clear().with_columns(pl.lit(None, kind).alias(name) for name, kind in _NO_POSITIONS.items())
    last = pl.concat(hits).group_by("text").agg(pl.col(_POSITIONS).max())
    return split.drop("word").join(last, on="text", validate="1:1").drop("text")


def _list_runs(words: pl.DataFrame, beginning: pl.DataFrame, length: int) -> pl.DataFrame:
    """Add `words`, the run of `length` adjacent words from each place. Places too near the text's end are dropped."""
    whole = beginning.filter(pl.col("place") + length <= words.height)
    last = words["text"].gather(whole["place"] + (length - 1))
    whole = whole.filter(whole["text"] == last)
    side_by_side = [words["word"].gather(whole["place"] + after).alias(f"{after}") for after in range(length)]
    run = pl.select(pl.concat_str(side_by_side, separator=" ")).to_series()
    return whole.with_columns(words=run)
