"""A first category for each transaction, by rules kept as data: the first rule that is found decides.

Rules look at the upper-case description and the side of the account. They are tried on distinct texts only: a
business's narratives repeat, but for their references. `confidence` says how much the rule's kind is trusted; it is
not yet calibrated.
"""

from collections.abc import Sequence

import polars as pl

from pipelines.enrich.patterns import Rule, load, without_long_numbers
from pipelines.enrich.taxonomy import UNKNOWN_CREDIT, UNKNOWN_DEBIT, Sign
from pipelines.enrich.text import matching_text
from pipelines.schemas import CategorySource, CounterpartyKind, Direction

RULES = load()
FALLBACK_CONFIDENCE = 0.0
_SIDES: tuple[Sign, Sign] = ("credit", "debit")
_KEY = ("rule_text", "direction")
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
    """Fill the category, its group, source and confidence, and the counterparty where a rule names one."""
    text = without_long_numbers(matching_text(pl.col("description")))
    return (
        rows.drop(_CONCLUSION.names(), strict=False)
        .with_columns(text.alias("rule_text"), rule=pl.lit(None, pl.Int32()))
        .map_batches(_with_rules, predicate_pushdown=False, projection_pushdown=False)
        .drop("rule_text")
        .join(_conclusions(RULES), on="rule", how="left", validate="m:1", maintain_order="left")
        .drop("rule")
        .with_columns(_fallback())
    )


def _with_rules(rows: pl.DataFrame) -> pl.DataFrame:
    """`rule` filled: the index of the first rule that holds, tried once for each distinct text and side.

    Eager, because a plan that branches is planned again for each branch, and the rules are hundreds of expressions.
    """
    distinct = rows.select(_KEY).unique()
    tried = [distinct.filter(pl.col("direction") == side).with_columns(rule=_first_rule(side)) for side in _SIDES]
    return rows.drop("rule").join(pl.concat(tried), on=_KEY, how="left", validate="m:1", maintain_order="left")


def _first_rule(side: Sign) -> pl.Expr:
    """Index of the first rule that holds on this side, or null."""
    text = pl.col("rule_text")
    return pl.coalesce(
        pl.when(text.str.contains(rule.pattern)).then(pl.lit(index, pl.Int32()))
        for index, rule in enumerate(RULES)
        if rule.sign in (side, "either")
    )


def _conclusions(rules: Sequence[Rule]) -> pl.LazyFrame:
    """What each rule concludes, one row a rule."""
    rows = [_conclusion(rule) for rule in rules]
    return pl.LazyFrame(rows, schema=_CONCLUSION, orient="row").with_row_index("rule").cast({"rule": pl.Int32})


def _conclusion(rule: Rule) -> tuple[str | float | None, ...]:
    category, party = rule.category, rule.counterparty
    if party is None:
        return (category.slug, category.group, rule.confidence, "pattern", None, None, None)
    named = (party.name, party.kind, party.lender_id)
    return (category.slug, category.group, rule.confidence, "counterparty", *named)


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
