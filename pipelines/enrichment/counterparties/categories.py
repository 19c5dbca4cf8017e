"""Decide the category of a transaction: several layers propose one, the first wins, and the row records which it was.

Decisive rules come first, then the lists of counterparties, then indicative rules, and last a fallback for unknown
money in or out. The proposals of the later layers become the alternatives. Where the winner is not sure, the learned
model is asked (`ask_model`). A client's corrections override everything (`corrections`).
"""

from functools import cache

import polars as pl

from pipelines.enrichment.counterparties import counterparties
from pipelines.enrichment.learned.model import MIN_ALTERNATIVE, Model
from pipelines.enrichment.learned.model_file import load_base
from pipelines.enrichment.wording.phrases import bare_words
from pipelines.vocabulary.schemas import ALTERNATIVE, CategorySource, Direction
from pipelines.vocabulary.taxonomy import GROUPS, SIGNS, TRANSFER, UNKNOWN_CREDIT, UNKNOWN_DEBIT

SURE = 0.9  # the model is not asked about rows with at least this confidence (our judgement)
MIN_LEARNED = 0.6
"""The least confidence with which the model answers: three right answers for two wrong ones.

Our judgement, from the table of `make bench PARTS=quality` about unfamiliar banks, brands and families of names: of the
answers between 0.4 and 0.5 half are wrong there, and above 0.6 hardly more rows are right of those answered.
"""
ALTERNATIVES = 3

CANDIDATE = pl.Schema(
    {
        "key": pl.UInt32(),
        "order": pl.UInt32(),  # the lowest wins
        "category": pl.String(),
        "confidence": pl.Float64(),
        "category_source": CategorySource,
        "category_basis": pl.String(),
    }
)
DECIDED = pl.Schema(
    {
        "category": pl.String(),
        "category_group": pl.String(),
        "confidence": pl.Float64(),
        "category_source": CategorySource,
        "category_basis": pl.String(),
        "alternatives": pl.List(ALTERNATIVE),
    }
)
_WITHOUT_PURPOSE = (  # words that say nothing about a payment beside a person's name
    *("TO", "FROM", "MR", "MRS", "MS", "MISS", "DR", "AND", "THX", "THANKS", "THANK", "YOU", "CHEERS", "MATE", "TA"),
    *(
        "TRANSFER",
        "TFR",
        "TRF",
        "PAYMENT",
        "PYMT",
        "PMT",
        "CREDIT",
        "VIA",
        "MOBILE",
        "ON",
        "REF",
        "OSKO",
        "PAYID",
        "NPP",
    ),
    *(
        "ZELLE",
        "INTERAC",
        "ETRANSFER",
        "RECEIVED",
        "SENT",
        "AUTODEPOSIT",
        "BANKING",
        "INTERNET",
        "ONLINE",
        "WITHDRAWAL",
    ),
)
_DECISIVE, _NAMES, _INDICATIVE, _NOTHING = 0, 10_000, 20_000, 30_000  # where each layer's order begins


def propose_by_rules(held: pl.DataFrame) -> pl.DataFrame:
    """Return the candidates (schema CANDIDATE) of matching rules (schema `patterns.MATCHES`)."""
    layer = pl.when("decisive").then(pl.lit(_DECISIVE)).otherwise(pl.lit(_INDICATIVE))
    return _build_candidates(held, layer + pl.col("rule"), pl.col("category"), pl.col("confidence"), "pattern", "words")


def propose_by_names(named: pl.DataFrame) -> pl.DataFrame:
    """Return the candidates of listed counterparties.

    Args:
        named: `key`, `direction`, `phrase` and the lists' categories for `credit` and `debit`; nulls where no listed
            counterparty is named.
    """
    read = pl.when(pl.col("direction") == pl.lit("credit", Direction)).then("credit").otherwise("debit")
    saying = named.with_columns(category=read).filter(pl.col("category").is_not_null())
    sure = pl.lit(counterparties.CONFIDENCE)
    return _build_candidates(saying, pl.lit(_NAMES), pl.col("category"), sure, "counterparty", "phrase")


def propose_fallback(keys: pl.DataFrame) -> pl.DataFrame:
    """Return for each `key` the candidate that applies if nothing is known: unknown money in or unknown money out."""
    silent = keys.with_columns(silence=pl.lit(None, pl.String))
    return _build_candidates(silent, pl.lit(_NOTHING), _unknown_by_side(), pl.lit(0.0), "fallback", "silence")


def _build_candidates(
    frame: pl.DataFrame, order: pl.Expr, category: pl.Expr, confidence: pl.Expr, source: str, basis: str
) -> pl.DataFrame:
    return frame.select(
        "key",
        order=order.cast(pl.UInt32),
        category=category,
        confidence=confidence,
        category_source=pl.lit(source, CategorySource),
        category_basis=pl.col(basis),
    )


def decide(candidates: pl.DataFrame) -> pl.DataFrame:
    """Return per `key` the first candidate (schema DECIDED), with the others as alternatives, each category once."""
    rank_labels = candidates.sort("key", "order").unique(["key", "category"], keep="first", maintain_order=True)
    first = rank_labels.filter(pl.col("key").is_first_distinct())
    others = (
        rank_labels.filter(~pl.col("key").is_first_distinct(), pl.col("category_source") != "fallback")
        .group_by("key", maintain_order=True)
        .agg(alternatives=pl.struct("category", "confidence").head(ALTERNATIVES))
    )
    return (
        first.join(others, on="key", how="left", validate="1:1")
        .with_columns(
            pl.col("alternatives").fill_null([]),
            category_group=pl.col("category").replace_strict(GROUPS, return_dtype=pl.String),
        )
        .select("key", *DECIDED)
    )


def ask_model(rows: pl.DataFrame, model: Model, least: float = MIN_LEARNED) -> pl.DataFrame:
    """Ask the model about rows for which no rule or name is sure.

    The model reads the answer of rules and names as part of its input. So the model's answer replaces that answer, even
    one with a higher confidence. If the model is less confident than `least`, it abstains: the row is unknown, with
    confidence 0, and what the model would have said is listed as an alternative. But the answer of rules and names
    stays, with at most the model's confidence in it, if the model agrees with it, or if the model's answer can't be
    right (`_fits_side`, `_is_named_transfer`). The shipped model's answer is not used where a payment says no more than
    a person's name (`_is_only_a_person`). If the model's answer is that nobody can know, the row is unknown, with
    confidence 0. Rows of which a rule says the same are unknown, too; the model is not asked about them.

    Args:
        rows: with the columns of DECIDED and the input of the model (see `Model.predict`).
    """
    numbered = rows.with_row_index("row")
    unsure = numbered.filter(pl.col("confidence") < SURE, ~_is_unknowable())
    is_shipped = pl.lit(model.name == load_base().name)
    bare = is_shipped & _is_only_a_person()
    questions = unsure.select("row", "direction", "counterparty_name", rule=_category_by_rule(), bare=bare)
    answers = questions.hstack(model.predict(unsure.drop("row")))
    doubts = answers.select("row", doubt=_read_doubts(unsure.select("row", "category"), answers))
    likely = (pl.col("confidence") >= least) & ~pl.col("bare")
    possible = answers.filter(_fits_side() & ~_is_named_transfer())
    learned = possible.filter(likely).select("row", *_as_learned(model))
    others = possible.filter(~likely, pl.col("category").ne_missing(pl.col("rule")))
    return (
        numbered.join(doubts, on="row", how="left", validate="1:1", maintain_order="left")
        .with_columns(confidence=pl.min_horizontal("confidence", "doubt"))
        .update(pl.concat([learned, others.select("row", *_as_abstention())]), on="row", include_nulls=True)
        .select(rows.columns)
    )


@cache
def _category_by_rule() -> pl.Expr:
    """Return the category that a rule or a list gave; null if none did."""
    return pl.when(pl.col("category_source") != pl.lit("fallback", CategorySource)).then("category")


def _as_learned(model: Model) -> list[pl.Expr]:
    """Return the columns DECIDED by the model's answer."""
    return [
        pl.col("category"),
        pl.col("category").replace_strict(GROUPS, return_dtype=pl.String).alias("category_group"),
        pl.when(_is_unknown()).then(0.0).otherwise("confidence").alias("confidence"),
        pl.lit("learned", CategorySource).alias("category_source"),
        pl.lit(f"model {model.name}").alias("category_basis"),
        pl.col("alternatives"),
    ]


@cache
def _as_abstention() -> list[pl.Expr]:
    """Return the columns DECIDED where the model's answer is not likely enough, and only listed."""
    likeliest = pl.concat_list(pl.struct("category", "confidence"), "alternatives")
    named = pl.element().filter(~pl.element().struct.field("category").is_in([UNKNOWN_CREDIT.slug, UNKNOWN_DEBIT.slug]))
    return [
        _unknown_by_side().alias("category"),
        pl.lit(UNKNOWN_DEBIT.group).alias("category_group"),
        pl.lit(0.0).alias("confidence"),
        pl.lit("fallback", CategorySource).alias("category_source"),
        pl.lit(None, pl.String).alias("category_basis"),
        likeliest.list.eval(named).list.head(ALTERNATIVES).alias("alternatives"),
    ]


@cache
def _unknown_by_side() -> pl.Expr:
    money_in = pl.col("direction") == pl.lit("credit", Direction)
    return pl.when(money_in).then(pl.lit(UNKNOWN_CREDIT.slug)).otherwise(pl.lit(UNKNOWN_DEBIT.slug))


def _read_doubts(decided: pl.DataFrame, answers: pl.DataFrame) -> pl.Series:
    """Return for each row the model's probability of the category that rules and names gave (`decided`).

    A category that the model does not even list as an alternative is less likely than MIN_ALTERNATIVE.
    """
    others = answers.select("row", "alternatives").explode("alternatives").drop_nulls().unnest("alternatives")
    listed = pl.concat([answers.select(others.columns), others])
    found = decided.join(listed, on=["row", "category"], how="left", validate="1:1", maintain_order="left")
    return found["confidence"].fill_null(MIN_ALTERNATIVE)


@cache
def _is_unknowable() -> pl.Expr:
    """Return whether a rule says that the taxonomy has no category for the payment: the model must not guess one."""
    return (pl.col("category_source") == pl.lit("pattern", CategorySource)) & _is_unknown()


@cache
def _is_only_a_person() -> pl.Expr:
    """Return whether no rule or name holds, and a transfer says no more than a person's name.

    It may be from a customer, a friend or an owner. The shipped model has mostly seen persons who also print what they
    pay for; a client's own model may know these persons.
    """
    words = bare_words(pl.col("clean_description")).str.split(" ")
    name = bare_words(pl.col("counterparty_name").str.to_uppercase()).str.split(" ")
    other = pl.element().str.contains("..|[0-9]") & ~pl.element().is_in(_WITHOUT_PURPOSE)
    is_bare = words.list.set_difference(name).list.eval(pl.element().filter(other)).list.len() == 0
    nameless = pl.col("category_source") == pl.lit("fallback", CategorySource)
    by_transfer = ~pl.col("channel").is_in(["card", "eftpos"]) & pl.col("location").is_null()
    return (nameless & (pl.col("counterparty_kind") == "person") & by_transfer & is_bare).fill_null(value=False)


@cache
def _is_unknown() -> pl.Expr:
    """Return whether nobody can know the category. The model was also trained on such rows."""
    return pl.col("category").is_in([UNKNOWN_CREDIT.slug, UNKNOWN_DEBIT.slug])


@cache
def _fits_side() -> pl.Expr:
    """Return whether the category belongs on the row's side of the account."""
    sign = pl.col("category").replace_strict(SIGNS, default=None, return_dtype=pl.String)
    return sign.is_in(["either"]) | (sign == pl.col("direction").cast(pl.String))


@cache
def _is_named_transfer() -> pl.Expr:
    """Return whether the model calls a payment with a named counterparty a transfer.

    Such an answer is not used: a transfer is between the customer's own accounts, and the model can't know whether the
    name is the customer's own.
    """
    return (pl.col("category") == TRANSFER.slug) & pl.col("counterparty_name").is_not_null()
