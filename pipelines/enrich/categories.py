"""A first category for each transaction, by rules kept as data: the first rule that is found decides.

Rules look at the upper-case description and the side of the account. They are tried on distinct texts only: a
business's narratives repeat, but for their references. `confidence` says how much the rule's kind is trusted; it is
not yet calibrated.
"""

from collections.abc import Sequence

import polars as pl

from pipelines.enrich import counterparties
from pipelines.enrich.patterns import Rule, load, without_long_numbers
from pipelines.enrich.taxonomy import TAXONOMY, UNKNOWN_CREDIT, UNKNOWN_DEBIT, Sign
from pipelines.enrich.text import matching_text
from pipelines.schemas import CategorySource, CounterpartyKind, Direction

RULES = load()
DIRECTORY = counterparties.load()
FALLBACK_CONFIDENCE = 0.0
_SIDES: tuple[Sign, Sign] = ("credit", "debit")
_KEY = ("rule_text", "direction")
_GROUPS = {slug: category.group for slug, category in TAXONOMY.categories.items()}
_CONCLUSION = pl.Schema(
    {
        "category": pl.String(),
        "category_group": pl.String(),
        "confidence": pl.Float64(),
        "category_source": CategorySource,
        "counterparty_name": pl.String(),
        "counterparty_kind": CounterpartyKind,
        "counterparty_lender_id": pl.String(),
    }
)


def categorise(rows: pl.LazyFrame) -> pl.LazyFrame:
    """Fill the category, its group, source and confidence, and the counterparty where a rule or a list names one."""
    text = without_long_numbers(matching_text(pl.col("description")))
    return (
        rows.drop(_CONCLUSION.names(), strict=False)
        .with_columns(text.alias("rule_text"), *(pl.lit(None, kind).alias(name) for name, kind in _CONCLUSION.items()))
        .map_batches(_with_conclusions, predicate_pushdown=False, projection_pushdown=False)
        .drop("rule_text")
        .with_columns(_fallback())
    )


def _with_conclusions(rows: pl.DataFrame) -> pl.DataFrame:
    """What follows from each distinct text and side.

    Eager, because a plan that branches is planned again for each branch, and the rules are hundreds of expressions.
    """
    distinct = rows.select(_KEY).unique()
    tried = pl.concat(distinct.filter(direction=side).with_columns(rule=_first_rule(side)) for side in _SIDES)
    ruled = tried.join(_CONCLUSIONS, on="rule", how="left", validate="m:1").drop("rule")
    bare = rows.drop(_CONCLUSION.names())
    concluded = bare.join(ruled.pipe(_or_named), on=_KEY, how="left", validate="m:1", maintain_order="left")
    return concluded.select(rows.columns)


def _or_named(ruled: pl.DataFrame) -> pl.DataFrame:
    """Where no rule holds, or one less sure than a name: who is named, and the category that follows from it."""
    unsure = pl.col("confidence").fill_null(0) < counterparties.CONFIDENCE
    found = DIRECTORY.look_up(ruled.filter(unsure)["rule_text"].unique())
    listed = pl.when(unsure & (pl.col("direction") == "credit")).then("credit").when(unsure).then("debit")
    says = listed.is_not_null()
    return ruled.join(found, left_on="rule_text", right_on="text", how="left", suffix="_listed", validate="m:1").select(
        *_KEY,
        category=pl.coalesce(listed, "category"),
        category_group=pl.when(says).then(listed.replace_strict(_GROUPS, default=None)).otherwise("category_group"),
        confidence=pl.when(says).then(pl.lit(counterparties.CONFIDENCE)).otherwise("confidence"),
        category_source=pl.when(says).then(pl.lit("counterparty", CategorySource)).otherwise("category_source"),
        **{name: pl.coalesce(pl.when(unsure).then(f"{name}_listed"), name) for name in counterparties.COLUMNS},
    )


def _first_rule(side: Sign) -> pl.Expr:
    """Index of the first rule that holds on this side, or null."""
    text = pl.col("rule_text")
    return pl.coalesce(
        pl.when(text.str.contains(rule.pattern)).then(pl.lit(index, pl.Int32()))
        for index, rule in enumerate(RULES)
        if rule.sign in (side, "either")
    )


def _conclusion(rule: Rule) -> tuple[str | float | None, ...]:
    category, party = rule.category, rule.counterparty
    if party is None:
        return (category.slug, category.group, rule.confidence, "pattern", None, None, None)
    named = (party.name, party.kind, party.lender_id)
    return (category.slug, category.group, rule.confidence, "counterparty", *named)


def _conclusions(rules: Sequence[Rule]) -> pl.DataFrame:
    """What each rule concludes, one row a rule."""
    rows = [_conclusion(rule) for rule in rules]
    return pl.DataFrame(rows, schema=_CONCLUSION, orient="row").with_row_index("rule").cast({"rule": pl.Int32})


_CONCLUSIONS = _conclusions(RULES)


def _fallback() -> list[pl.Expr]:
    """What is said where no rule was found: which side, and that nothing is known."""
    money_in = pl.col("direction") == pl.lit("credit", Direction)
    unknown = pl.when(money_in).then(pl.lit(UNKNOWN_CREDIT.slug)).otherwise(pl.lit(UNKNOWN_DEBIT.slug))
    return [
        pl.coalesce("category", unknown),
        pl.col("category_group").fill_null(UNKNOWN_CREDIT.group),
        pl.col("confidence").fill_null(FALLBACK_CONFIDENCE),
        pl.col("category_source").fill_null(pl.lit("fallback", CategorySource)),
    ]
