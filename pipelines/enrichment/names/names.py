"""Read counterparties from the text itself, where the curated lists have no entry.

Intermediaries that passed the payment on (PAYPAL *, SQ *) are removed from the front. The rest is classified by its
words: given and family names, legal forms and trades, purposes such as WAGES or RENT (`name_words`, `name_shapes`).
Where the words don't tell a person from a business, the way of payment decides: private persons don't take cards or
collect by direct debit. All spellings of a name get one group.
"""

from functools import cache

import polars as pl

from pipelines.enrichment.names import name_words
from pipelines.enrichment.names.name_groups import group_of, slug
from pipelines.enrichment.names.name_shapes import find_names
from pipelines.vocabulary.schemas import CounterpartyKind

# Signs in the whole text of a way of payment or a purpose. They help to tell a person from a business.
BY_CARD = (
    *("EFTPOS", "VISA", "DEBIT CARD", "MASTERCARD", "RETAIL PURCHASE", "POS PURCHASE", "TAP AND PAY", "CARD XX"),
    *("CARD PURCHASE", "CARD PAYMENT TO", "CHECKCARD", "CHECK CARD", "POS DEBIT", "CONTACTLESS", "PURCHASE AUTHORIZED"),
    *("CARD NUMBER", "NSWAU", "VICAU", "QLDAU", " WAAU", " SAAU", "TASAU", "ACTAU", " NTAU"),
)
COLLECTED = ("DIRECT DEBIT", "BPAY", "PAYMENT BY AUTHORITY", "AUTOMATIC DRAWING", "BILL PAYMENT")
AT_THE_BANK = (
    "ATM ",
    "CASH DEP",
    "DEPOSIT-CASH",
    "DEPOSIT CASH",
    "CASH/CHQ DEP",
    "CREDIT CASH",
    "CASH PAID IN",
    "BRANCH DEPOSIT",
    "COUNTER DEPOSIT",
    "CASH WITHDRAWAL",
    "CASH WDL",
    "HANDYBANK",
    "HANDLING FEE",
)
CHARGED = (" FEE", "INTEREST", "CHARGEBACK")
EARNED = ("WAGE", "WGES", "SALARY", "NET PAY", "FINAL PAY", " PAY WK", "PAYSLIP")

# A business number is valid if, with its first digit reduced by one, the sum of its digits times these weights is
# divisible by 89 (source: Australian Business Register). Numbers that begin with 10 can pass, too, but aren't issued.
ABN_WEIGHTS, ABN_MODULUS = (10, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19), 89
_ABN = r"(?:\bABN[ :#.-]*|\b)\d{2} ?\d{3} ?\d{3} ?\d{3}\b"

_SMALL = ("Of", "And", "The", "For", "At", "On", "In", "N")  # in lower case inside a name; N is an initial after &
NAMED = pl.Schema(
    {
        "counterparty_name": pl.String(),
        "counterparty_kind": CounterpartyKind,
        "counterparty_group": pl.String(),
        "intermediaries": pl.List(pl.String()),
    }
)


def name_counterparties(texts: pl.DataFrame) -> pl.DataFrame:
    """Name the counterparty of each text.

    Args:
        texts: `text` (compatibility form, upper case, single spaces), `clean_description` (without rails, dates,
            references and places), `listed_name` and `listed_kind` from the curated lists, or null.

    Returns:
        Same rows, same order: `counterparty_name` as displayed, `counterparty_kind`, `counterparty_group` (equal for
        all spellings of a name), `intermediaries` (outermost first). Null, and an empty list, where the text names no
        counterparty.
    """
    read = _read_names(texts["clean_description"].unique())
    return (
        texts.with_columns(_payment_signs())
        .join(read, on="clean_description", how="left", validate="m:1", maintain_order="left", nulls_equal=True)
        .with_columns(_drop_nameless())
        .select(_name_columns())
        .match_to_schema(NAMED)
    )


@cache
def _name_columns() -> list[pl.Expr]:
    """Return the columns of NAMED."""
    return [
        pl.coalesce("listed_name", "read_name").alias("counterparty_name"),
        _counterparty_kind().cast(CounterpartyKind).alias("counterparty_kind"),
        pl.when(_is_listed()).then(slug(pl.col("listed_name"))).otherwise("read_group").alias("counterparty_group"),
        pl.when(_is_named() & ~_is_brokers_own()).then("brokers").otherwise([]).alias("intermediaries"),
    ]


def _read_names(clean: pl.Series) -> pl.DataFrame:
    """Read the name in each distinct clean text from its words.

    Returns:
        `clean_description`, `read_name`, `read_group`, `read_kind`, `name_shape`, `leans` (towards a person), `generic`
        (a trade, no name), `brokers` (the intermediaries) and `broker_kind` where the last intermediary is itself the
        counterparty.
    """
    split = clean.to_frame().with_columns(words=name_words.split_words())
    shaped = split.with_columns(shape=name_words.read_shapes(split["words"]))
    placed = shaped.join(find_names(shaped["shape"]), on="shape", how="left", validate="m:1", maintain_order="left")
    return (
        placed.with_columns(name=pl.col("words").list.slice("start", "length").list.join(" "))
        .pipe(_add_shown_names)
        .pipe(_add_brokers)
        .select(
            clean.name,
            "read_name",
            "read_group",
            "read_kind",
            "name_shape",
            "leans",
            "generic",
            "brokers",
            "broker_kind",
        )
    )


def _add_shown_names(placed: pl.DataFrame) -> pl.DataFrame:
    """Add `read_name` and `read_group`. Names repeat, so each distinct one is formatted once."""
    key = ["name", "name_shape", "kind"]
    distinct = placed.select(key).drop_nulls("name").unique()
    stripped = distinct.with_columns(bare=_cut_repetition())
    dressed = stripped.with_columns(read_name=_write_names(stripped["bare"]), read_group=group_of(stripped))
    return placed.join(
        dressed.drop("bare"), on=key, how="left", validate="m:1", maintain_order="left", nulls_equal=True
    ).rename({"kind": "read_kind"})


@cache
def _cut_repetition() -> pl.Expr:
    """Cut `name` where it begins again: COREX PLASTICS COREX PLASTICS. SMITH & SMITH and CHIN CHIN stay."""
    name = pl.col("name").str.strip_chars("*'-. ")
    first = name.str.extract(r"^(\S+) ", 1)
    rest = name.cast(pl.Binary).bin.slice(first.str.len_bytes(), None).cast(pl.String) + " "
    again = rest.str.find(" " + first + " ", literal=True)
    cut = first + rest.cast(pl.Binary).bin.slice(0, again).cast(pl.String)
    means_it = cut.str.contains(r"(?:&|\bAND|\bOF|\bTHE)$") | ((again == 0) & (first.str.len_chars() < 5))
    return pl.when(again.is_not_null() & ~means_it).then(cut).otherwise(name)


def _write_names(names: pl.Series) -> pl.Series:
    """Write names in the usual case: John Smith, McDonald, O'Brien, ABC Pty Ltd."""
    split = names.str.split(" ")
    word = split.explode().drop_nulls().unique()
    written = word.to_frame("word").select(_written_word()).to_series()
    dressed = pl.element().replace_strict(word, written, default="", return_dtype=pl.String)
    small = {" & N ": " & N ", **{f" {word} ": f" {word.lower()} " for word in _SMALL}, "-&-": " & "}
    joined = pl.col("words").list.eval(dressed).list.join(" ")
    return split.to_frame("words").select(joined.str.replace_many(small, leftmost=True)).to_series()


@cache
def _written_word() -> pl.Expr:
    """Return `word` in title case, except acronyms, web addresses and names with a capital inside."""
    word = pl.col("word")
    title = word.str.to_titlecase()
    plain = word.is_in(list(name_words.load().not_acronyms))
    acronym = word.is_in(list(name_words.load().acronyms)) | word.str.contains(
        "^(?:[BCDFGHJKLMNPQRSTVWXZ]{2,3}|[A-Z]?[0-9][A-Z0-9]{0,3})$"
    )
    own = {broker.upper(): broker for broker in name_words.load().broker_kinds}  # their own spelling, as PayPal
    return (
        pl.when(word.is_in(list(own)))
        .then(word.replace_strict(own, default=None, return_dtype=pl.String))
        .when(acronym & ~plain)
        .then(word)
        .when(word.str.contains(r"\.(?:COM|NET|ORG|AU|CO|IO)"))
        .then(word.str.to_lowercase())
        .when(word.str.contains("^MC[A-Z]{3,}$"))
        .then("Mc" + word.str.slice(2).str.to_titlecase())
        .when(word.str.contains("^[ODL]'[A-Z]{3,}"))
        .then(word.str.head(2) + word.str.slice(2).str.to_titlecase())
        .when(word.str.contains("'"))
        .then(word.str.head(1) + word.str.slice(1).str.to_lowercase())
        .otherwise(title)
    )


def _add_brokers(placed: pl.DataFrame) -> pl.DataFrame:
    """Add `brokers`, the intermediaries before the name. If no name follows, the last of them is the counterparty."""
    found = _find_brokers(placed)
    rows = placed.with_row_index("row").join(found, on="row", how="left", validate="1:1", maintain_order="left")
    alone = pl.col("brokers").is_not_null() & pl.col("name").is_null()
    last = pl.when(alone).then(pl.col("brokers").list.last())
    follows = pl.col("after_intermediary").fill_null(value=False)
    passing = (
        pl.when(follows).then("brokers").when(alone).then(pl.col("brokers").list.head(pl.col("brokers").list.len() - 1))
    )
    return rows.with_columns(
        read_name=pl.coalesce("read_name", last),
        read_group=pl.coalesce("read_group", slug(last)),
        broker_kind=last.replace_strict(name_words.load().broker_kinds, default=None, return_dtype=pl.String),
        brokers=passing.otherwise([]),
    )


def _find_brokers(placed: pl.DataFrame) -> pl.DataFrame:
    """Return `row` and `brokers` (without repetition) of the few texts with prefixes of intermediaries."""
    return (
        placed.select("words", letters=pl.col("settled").str.split(""))
        .with_row_index("row")
        .filter(placed["settled"].str.contains(name_words.STARRED, literal=True))
        .explode("words", "letters")
        .filter(pl.col("letters") == name_words.STARRED)
        .with_columns(
            broker=pl.col("words").replace_strict(name_words.load().brokers, default=None, return_dtype=pl.String)
        )
        .group_by("row", maintain_order=True)
        .agg(brokers=pl.col("broker").unique(maintain_order=True))
    )


@cache
def is_by_card() -> pl.Expr:
    """Return whether `text` shows a payment by card."""
    text = pl.col("text")
    return text.str.contains_any(list(BY_CARD)) | text.str.contains("^[VW][0-9]{4} [0-9]{2}/[0-9]{2} ")


@cache
def _payment_signs() -> list[pl.Expr]:
    text = pl.col("text")
    return [
        is_by_card().alias("by_card"),
        text.str.contains_any(list(COLLECTED)).alias("collected"),
        text.str.contains_any(list(EARNED)).alias("earned"),
        text.str.contains_any(list(AT_THE_BANK)).alias("at_the_bank"),
        text.str.contains_any(list(CHARGED)).alias("charged"),
    ]


@cache
def _drop_nameless() -> list[pl.Expr]:
    """Clear names that name no counterparty.

    A trade alone is a name only at a terminal. Next to cash, words that name no person are a place; next to a bank's
    charge, words that name nobody for sure are a product. A name from the lists wins, unless it is an intermediary's.
    """
    of_the_bank = pl.col("at_the_bank") | (pl.col("charged") & ~pl.col("leans").fill_null(value=False))
    somebody = (
        ~of_the_bank
        | pl.col("read_kind").eq_missing("person")
        | (~pl.col("at_the_bank") & pl.col("read_kind").is_not_null())
    )
    known = somebody & (~pl.col("generic").fill_null(value=False) | pl.col("by_card"))
    between = pl.col("listed_name").is_in(pl.col("brokers"))
    return [
        pl.when(known).then("read_name").alias("read_name"),
        pl.when(known).then("read_group").alias("read_group"),
        pl.when(~between.fill_null(value=False)).then("listed_name").alias("listed_name"),
    ]


@cache
def _is_listed() -> pl.Expr:
    return pl.col("listed_name").is_not_null()


@cache
def _is_named() -> pl.Expr:
    return pl.coalesce("listed_name", "read_name").is_not_null()


@cache
def _is_brokers_own() -> pl.Expr:
    """Return whether the counterparty is the intermediary itself: PayPal Working Capital is not paid through PayPal."""
    return pl.col("listed_name").str.starts_with(pl.col("brokers").list.first()).fill_null(value=False)


@cache
def _counterparty_kind() -> pl.Expr:
    """Return the kind of counterparty by the lists, else by the words, else by the way of payment.

    Whoever takes cards or is paid through an intermediary is a business, whatever the words.
    """
    leans = pl.col("leans").fill_null(value=False)
    return (
        pl.when(_is_listed())
        .then(pl.col("listed_kind").cast(pl.String))
        .when(pl.col("read_name").is_null())
        .then(None)
        .when(pl.col("broker_kind").is_not_null())
        .then("broker_kind")
        .when(pl.col("by_card") | (pl.col("brokers").list.len() > 0))
        .then(pl.lit("business"))
        .when(pl.col("read_kind").is_not_null())
        .then("read_kind")
        .when(leans & (pl.col("earned") | ~pl.col("collected")))
        .then(pl.lit("person"))
        .when(pl.col("earned") & pl.col("name_shape").str.contains("[GgSsXx]"))
        .then(pl.lit("person"))
        .when(pl.col("collected"))
        .then(pl.lit("business"))
    )


def find_abns(texts: pl.Series) -> pl.Series:
    """Return the first valid ABN in each text: 11 digits, or null (`counterparty_abn`)."""
    found = texts.rename("text").to_frame().with_row_index("row").filter(pl.col("text").str.contains(_ABN))
    if found.is_empty():
        return pl.repeat(None, len(texts), dtype=pl.String, eager=True).alias("counterparty_abn")
    valid = (
        found.with_columns(abn=pl.col("text").str.extract_all(_ABN))
        .explode("abn")
        .with_columns(pl.col("abn").str.replace_all("[^0-9]", ""))
        .filter(_is_valid_abn(pl.col("abn")))
        .unique("row", keep="first", maintain_order=True)
        .select("row", counterparty_abn="abn")
    )
    rows = pl.DataFrame({"row": pl.int_range(len(texts), dtype=pl.get_index_type(), eager=True)})
    return rows.join(valid, on="row", how="left", maintain_order="left")["counterparty_abn"]


def _is_valid_abn(abn: pl.Expr) -> pl.Expr:
    digit = [abn.str.slice(at, 1).cast(pl.Int64) for at in range(len(ABN_WEIGHTS))]
    weighted = sum((digit[at] - (at == 0)) * weight for at, weight in enumerate(ABN_WEIGHTS))
    return (abn.str.head(2) >= "11") & ((pl.lit(0) + weighted) % ABN_MODULUS == 0)
