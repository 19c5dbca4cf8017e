"""Documents: the PDF statements that rows come from, how far their balances prove the rows, and signs in files.

A statement issued by the bank for a period, with its opening and closing balance, is better evidence than a listing
printed from online banking. A listing is better than an interim statement, which the bank may still change. The
balances that a document states are compared with what the rows give before its first day and at the end of its last.

A **signal** is something that forged files show, and some honest files too. It says what was found and on which page,
and what would resolve it. It decides nothing and doesn't change the score. A statement whose balances don't prove its
rows does lower the score (`coverage`).

A **replaced row** is one that an earlier statement had and the later one that replaced it lacks
(`enrichment.matching.replacements`). A bank's correction leaves such rows, and so does a statement that somebody
doctored to remove them. They don't change the score.
"""

import polars as pl

from pipelines.enrichment.matching.replacements import list_replaced
from pipelines.figures import context
from pipelines.figures.accounts import BALANCE, BY_ACCOUNT
from pipelines.figures.facts import Facts
from pipelines.figures.periods import BY_CUSTOMER
from pipelines.figures.tables import Column, Derived, Table
from pipelines.reports.completeness.accounts import ACCOUNT_ID
from pipelines.reports.completeness.cached import cached
from pipelines.reports.completeness.coverage import steps
from pipelines.vocabulary.report_values import ratio, uuid_text

_DAY = (*BY_ACCOUNT, "date")
STATEMENT_ID = Column("statementId", "text")
_STATEMENTS = pl.Schema(
    {
        **context.STATEMENTS,
        "openingInRows": BALANCE,
        "closingInRows": BALANCE,
        "accountId": pl.String(),
        "statementId": pl.String(),
    }
)
_NO_STATEMENTS = _STATEMENTS.to_frame(eager=False)


def has_statements(facts: Facts) -> bool:
    return not facts.context.statements.is_empty()


@cached
def statements(facts: Facts) -> pl.LazyFrame:
    """Return the customers' statements that begin by `as_of`, with the closing balances according to the rows.

    `openingInRows`: before the statement's period; `closingInRows`: at its end; null where the rows don't show it.
    """
    if not has_statements(facts):  # true of many customers, and planning joins of nothing takes time
        return _NO_STATEMENTS
    details = facts.context.statements.lazy().join(facts.customers.lazy(), on=BY_CUSTOMER, how="semi")
    begun = pl.coalesce("period_start", "period_end") <= facts.as_of
    return (
        details.filter(begun.fill_null(value=True))
        .pipe(_add_closing, facts, pl.col("period_start") - pl.duration(days=1), "openingInRows")
        .pipe(_add_closing, facts, pl.col("period_end"), "closingInRows")
        .with_columns(accountId=uuid_text("account_id"), statementId=uuid_text("statement_id"))
    )


def _add_closing(documents: pl.LazyFrame, facts: Facts, day: pl.Expr, name: str) -> pl.LazyFrame:
    """Add the balance at the end of `day`, according to the last day with rows up to then."""
    closings = facts.stated_closings.lazy().select(*_DAY, pl.col("closing_balance").alias(name)).sort("date")
    dated = documents.with_columns(date=day).sort("date", nulls_last=True)
    return dated.join_asof(closings, on="date", by=list(BY_ACCOUNT), strategy="backward", check_sortedness=False).drop(
        "date"
    )


STATEMENTS = Table(
    id="statements",
    name="Statements",
    hierarchy="account",
    type="summary",
    is_usually_empty=True,
    keys=(STATEMENT_ID,),
    details=(
        ACCOUNT_ID,
        Column("fileName", "text"),
        Column("kind", "text", meaning="statement, listing or interim; statement is the best evidence"),
        Column("verdict", "text", meaning="how far its balances prove its rows"),
        Column("periodStart", "date"),
        Column("periodEnd", "date"),
        Column("openingBalance", "AUD"),
        Column("closingBalance", "AUD"),
        Column("openingInRows", "AUD", meaning="balance before the period, according to the rows"),
        Column("closingInRows", "AUD", meaning="balance at the period's end, according to the rows"),
    ),
    listed=lambda facts: statements(facts).select(
        BY_CUSTOMER,
        "statementId",
        "accountId",
        "openingInRows",
        "closingInRows",
        fileName="file_name",
        kind=pl.col("kind").cast(pl.String),
        verdict=pl.col("verdict").cast(pl.String),
        periodStart="period_start",
        periodEnd="period_end",
        openingBalance="opening_balance",
        closingBalance="closing_balance",
    ),
    sources=(),
    derived=(
        Derived(
            "openingDifference",
            "AUD",
            ("openingInRows", "openingBalance"),
            pl.col("openingBalance") - pl.col("openingInRows"),
            "openingBalance − openingInRows: what moved before the period and is missing",
        ),
        Derived(
            "closingDifference",
            "AUD",
            ("closingInRows", "closingBalance"),
            pl.col("closingBalance") - pl.col("closingInRows"),
            "closingBalance − closingInRows: what moved in the period and is missing",
        ),
    ),
    order=("accountId", "periodStart", "statementId"),
)


@cached
def periods(facts: Facts) -> pl.LazyFrame:
    """Return the periods that an account's statements cover without a gap: `first`, `last`, in order."""
    until = pl.col("last").cum_max().shift(1).over(BY_ACCOUNT)
    apart = (pl.col("first") > until + pl.duration(days=1)).fill_null(value=False)
    return (
        statements(facts)
        .select(*BY_ACCOUNT, "accountId", first="period_start", last="period_end")
        .filter(pl.col("first") <= pl.col("last"))
        .sort(*BY_ACCOUNT, "first", "last")
        .with_columns(run=apart.cum_sum().over(BY_ACCOUNT))
        .group_by(*BY_ACCOUNT, "accountId", "run")
        .agg(pl.col("first").min(), pl.col("last").max())
        .drop("run")
        .sort(*BY_ACCOUNT, "first")
    )


def documented_accounts(facts: Facts) -> pl.LazyFrame:
    """Return accounts with documents: how many of each kind, how many don't reconcile, and the days they cover."""
    if not has_statements(facts):
        return DOCUMENTS.no_rows
    of_kind = {
        f"{kind}Count": (pl.col("kind") == kind).sum().cast(pl.Int64) for kind in ("statement", "listing", "interim")
    }
    days = (pl.col("last") - pl.col("first")).dt.total_days() + 1
    covered = periods(facts).group_by(BY_ACCOUNT).agg(coveredDays=days.sum())
    day = pl.col("day").cast(pl.Date)
    spans = steps(facts).group_by(BY_ACCOUNT).agg(firstDate=day.min(), lastDate=day.max())
    within = (
        periods(facts)
        .join(spans, on=BY_ACCOUNT, validate="m:1")
        .select(
            *BY_ACCOUNT,
            days=(pl.min_horizontal("last", "lastDate") - pl.max_horizontal("first", "firstDate"))
            .dt.total_days()
            .clip(lower_bound=-1)
            + 1,
        )
        .group_by(BY_ACCOUNT)
        .agg(documentedDays=pl.col("days").sum())
    )
    return (
        statements(facts)
        .group_by(*BY_ACCOUNT, "accountId")
        .agg(**of_kind, unreconciledCount=(pl.col("verdict") == "unreconciled").sum().cast(pl.Int64))
        .join(covered, on=BY_ACCOUNT, how="left", validate="1:1")
        .join(within, on=BY_ACCOUNT, how="left", validate="1:1")
        .join(spans, on=BY_ACCOUNT, how="left", validate="1:1")
        .with_columns(pl.col("coveredDays", "documentedDays").fill_null(0))
        .with_columns(daysSpanned=(pl.col("lastDate") - pl.col("firstDate")).dt.total_days() + 1)
        .drop("account_id")
    )


DOCUMENTS = Table(
    id="documents",
    name="What statements cover",
    hierarchy="account",
    type="summary",
    is_usually_empty=True,
    keys=(ACCOUNT_ID,),
    details=(
        Column("statementCount", "count"),
        Column("listingCount", "count"),
        Column("interimCount", "count"),
        Column("unreconciledCount", "count"),
        Column("coveredDays", "days", meaning="days of the documents' periods, each counted once"),
        Column("documentedDays", "days", meaning="those from the account's first row to its last"),
        Column("daysSpanned", "days"),
    ),
    listed=documented_accounts,
    sources=(),
    derived=(
        Derived(
            "documentedShare",
            "ratio",
            ("documentedDays", "daysSpanned"),
            ratio(pl.col("documentedDays"), pl.col("daysSpanned")),
            "documentedDays / daysSpanned",
        ),
    ),
    hidden=("daysSpanned",),
    order=("accountId",),
)


def signals(facts: Facts) -> pl.LazyFrame:
    """Return the signals of the statements' files. A file's signals are listed for each of its statements."""
    exploded = statements(facts).explode("signals").drop_nulls("signals").unnest("signals")
    return exploded.select(
        BY_CUSTOMER, "statementId", "accountId", "code", "severity", "message", "page", fileName="file_name"
    )


SIGNALS = Table(
    id="tamperSignals",
    name="Signs that a file may have been changed",
    hierarchy="account",
    type="summary",
    is_usually_empty=True,
    keys=(STATEMENT_ID, Column("code", "text"), Column("page", "count"), Column("message", "text")),
    details=(ACCOUNT_ID, Column("fileName", "text"), Column("severity", "text")),
    listed=lambda facts: signals(facts).unique(
        [BY_CUSTOMER, "statementId", "code", "page", "message"], maintain_order=True
    ),
    sources=(),
    order=("accountId", "statementId", "page", "code", "message"),
    meaning="each is a reason to check the file, never a decision",
)


def replaced_rows(facts: Facts) -> pl.LazyFrame:
    """Return the rows of earlier statements that the later ones lack, by which they were replaced."""
    missing = list_replaced(facts.transactions).lazy().filter("is_missing", pl.col("date") <= facts.as_of)
    return missing.select(
        BY_CUSTOMER, "date", "amount", transactionId=uuid_text("transaction_id"), accountId=uuid_text("account_id")
    )


REPLACED = Table(
    id="replacedRows",
    name="Rows that a later statement of the period replaced",
    hierarchy="account",
    type="summary",
    is_usually_empty=True,
    keys=(Column("transactionId", "text"),),
    details=(ACCOUNT_ID, Column("date", "date"), Column("amount", "AUD")),
    listed=replaced_rows,
    sources=(),
    order=("accountId", "date", "transactionId"),
    meaning="rows of an earlier statement that the later one lacks: the bank's correction, or a doctored file",
)


def missing_periods(facts: Facts) -> pl.LazyFrame:
    """Return days between two periods covered by statements, unless rows prove that nothing is missing."""
    holes = (
        periods(facts)
        .join(facts.accounts.lazy(), on=BY_ACCOUNT, how="semi")
        .with_columns(until=pl.col("last").shift(1).over(BY_ACCOUNT))
        .drop_nulls("until")
        .select(*BY_ACCOUNT, lastSeen="until", nextSeen="first")
    )
    day, before = pl.col("day").cast(pl.Date), pl.col("previous_day").cast(pl.Date)
    spans = (day > pl.col("lastSeen")) & (before < pl.col("nextSeen"))
    across = holes.join(steps(facts), on=BY_ACCOUNT, how="left", validate="m:m").filter(spans)
    proven = across.group_by(*BY_ACCOUNT, "lastSeen").agg(all_proven=(pl.col("evidence") == "chain_holds").all())
    return holes.join(proven.filter("all_proven"), on=[*BY_ACCOUNT, "lastSeen"], how="anti").with_columns(
        evidence=pl.lit("statement_missing")
    )
