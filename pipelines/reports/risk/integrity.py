"""The report's `integrity`: signs that a business was made to look better than it is, and revenue without them.

`statedRevenue` and `trueRevenue` are of the last 180 days, like the readings. `excluded` gives the part of their
difference that each kind of finding causes. `findings` lists all findings, resolved ones too, each with the honest
explanation that it can't exclude.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import polars as pl

from pipelines.figures.facts import Facts
from pipelines.figures.lineage import Trace, no_figure
from pipelines.figures.periods import BY_CUSTOMER
from pipelines.figures.tables import Column, Derived, Source, Table, Total
from pipelines.integrity import finding_rows, findings, load_descriptions, with_exclusions
from pipelines.vocabulary.plans import collect
from pipelines.vocabulary.report_values import ratio

WINDOW = 180  # days before the last row, as in the readings


@cache
def _descriptions() -> pl.DataFrame:
    rows = [(code, each.name, each.sentence, each.honest, each.excludes) for code, each in load_descriptions().items()]
    names = ["finding", "name", "sentence", "honestExplanation", "excludes"]
    return pl.DataFrame(rows, schema=names, orient="row")


def _revenue(facts: Facts) -> pl.LazyFrame:
    read = (BY_CUSTOMER, "transaction_id", "date", "amount", "age", "is_revenue")
    return with_exclusions(facts, read).lazy().filter(pl.col("is_revenue"), pl.col("age") < WINDOW)


def _left_out(facts: Facts) -> pl.LazyFrame:
    ages = facts.rows.lazy().select("transaction_id", "age")
    rows = finding_rows(facts).lazy().filter(pl.col("left_out") != 0)
    return rows.join(ages, on="transaction_id", how="left", validate="m:1").filter(pl.col("age") < WINDOW)


def _excluding_findings(facts: Facts) -> pl.LazyFrame:
    found = _left_out(facts).select(BY_CUSTOMER, "finding").unique()
    return found.join(_descriptions().lazy().select("finding", "name"), on="finding", how="left", validate="m:1")


def _findings(facts: Facts) -> pl.LazyFrame:
    return (
        findings(facts)
        .lazy()
        .join(_descriptions().lazy(), on="finding", how="left", validate="m:1", maintain_order="left")
        .select(
            *(
                BY_CUSTOMER,
                "finding",
                "about",
                "key",
                "name",
                "sentence",
                "honestExplanation",
                "excludes",
                "resolution",
            ),
            firstDate="first_date",
            lastDate="last_date",
            isResolved=pl.col("resolved_on").is_not_null(),
            resolvedOn="resolved_on",
        )
    )


_LEFT_OUT = pl.when("is_excluded").then("amount")
REVENUE = Table(
    id="revenue",
    name="Stated and true revenue",
    hierarchy="customer",
    type="summary",
    keys=(),
    listed=lambda facts: facts.customers.lazy(),
    sources=(
        Source(
            _revenue,
            (
                Total("statedRevenue", "AUD", pl.col("amount"), meaning="revenue of the last 180 days"),
                Total("excludedRevenue", "AUD", _LEFT_OUT, meaning="revenue of findings that nobody resolved"),
            ),
        ),
    ),
    derived=(
        Derived(
            "trueRevenue",
            "AUD",
            ("statedRevenue", "excludedRevenue"),
            pl.col("statedRevenue") - pl.col("excludedRevenue"),
            "statedRevenue − excludedRevenue",
        ),
        Derived(
            "trueShare",
            "ratio",
            ("excludedRevenue", "statedRevenue"),
            1 - ratio(pl.col("excludedRevenue"), pl.col("statedRevenue")),
            "1 − excludedRevenue / statedRevenue",
        ),
    ),
    order=(),
)
EXCLUDED = Table(
    id="excluded",
    name="What true revenue leaves out, and why",
    hierarchy="finding",
    type="summary",
    is_usually_empty=True,
    keys=(Column("finding", "text"),),
    details=(Column("name", "text"),),
    listed=_excluding_findings,
    sources=(Source(_left_out, (Total("amount", "AUD", pl.col("left_out")), Total("rows", "count", pl.lit(1)))),),
    order=("finding",),
)
FINDINGS = Table(
    id="findings",
    name="Findings",
    hierarchy="finding",
    type="summary",
    is_usually_empty=True,
    keys=(Column("finding", "text"), Column("about", "text")),
    details=(
        *(Column("key", "text"), Column("name", "text"), Column("sentence", "text")),
        *(Column("honestExplanation", "text"), Column("excludes", "boolean")),
        *(Column("firstDate", "date"), Column("lastDate", "date")),
        *(Column("isResolved", "boolean"), Column("resolvedOn", "date"), Column("resolution", "text")),
    ),
    listed=_findings,
    sources=(
        Source(
            lambda facts: finding_rows(facts).lazy(),
            (Total("amount", "AUD", pl.col("contribution")), Total("rows", "count", pl.lit(1))),
        ),
    ),
    order=("finding", "about"),
)


def section(facts: Facts) -> list[str | pl.DataFrame]:
    """Return the member `integrity`, with a comma after it, as pieces for `json_text.join_pieces`."""
    revenue = REVENUE.lines(facts).with_columns(pl.col("line").str.strip_suffix("}")).pipe(collect)
    if findings(facts).is_empty():  # true for most customers, and computing two empty tables still takes time
        return ['"integrity":', revenue, ',"excluded":[],"findings":[]},']
    excluded, found = pl.collect_all([table.lines(facts) for table in (EXCLUDED, FINDINGS)], engine="in-memory")
    return ['"integrity":', revenue, ',"excluded":[', excluded, '],"findings":[', found, "]},"]


def explain(facts: Facts, data: Mapping[str, Any], path: Sequence[str]) -> Trace:
    """Explain the figure at `FIGURE`, `excluded/N/FIGURE` or `findings/N/FIGURE` of the member.

    Raises:
        NotFound: there is no such figure.
    """
    listed = {table.id: table for table in (EXCLUDED, FINDINGS)}
    match path:
        case [member, nth, *figure] if member in listed and figure and nth.isdecimal() and int(nth) < len(data[member]):
            return listed[member].explain(facts, data[member][int(nth)], figure)
        case [_, *_] if path[0] not in listed:
            return REVENUE.explain(facts, data, path)
    raise no_figure(["integrity", *path])
