"""Reasons: why a reader can't fully rely on the data, in words, and what would resolve it.

Each reason is `{code, subject, message, settledBy, effect}`. Those of the customer come first, then those of accounts,
lenders and quarters, the largest first and at most MAX_OF_A_KIND of a kind. `docs/explanation/completeness.md` lists
the codes.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import polars as pl

from pipelines.figures.accounts import ROUNDING
from pipelines.figures.periods import BY_CUSTOMER
from pipelines.figures.tables import Table
from pipelines.reports.completeness.accounts import ACCOUNTS
from pipelines.reports.completeness.across import LENDERS, MENTIONED, MUCH_ONE_SIDED, REPEATED, SIMILAR, TRANSFERS
from pipelines.reports.completeness.coverage import YEAR
from pipelines.reports.completeness.documents import SIGNALS, STATEMENTS
from pipelines.reports.completeness.effects import EFFECTS, SHORT_HISTORY, STALE_AFTER, UNKNOWN
from pipelines.reports.completeness.gaps import GAPS
from pipelines.reports.completeness.identity import BAS, HOLDERS
from pipelines.reports.completeness.quality import QUALITY
from pipelines.reports.completeness.score import FRESHNESS, SUMMARY
from pipelines.vocabulary.report_values import RATIO, SCORE, count_text, dollars_text, percent_text

# Thresholds are our judgement.
MUCH_UNKNOWN = "0.10"  # of turnover
MUCH_VARIANCE = "0.10"  # of G1
MAX_OF_A_KIND = 5  # reasons of a kind
_SHOWN_SEVERITIES = ("warning", "alert")
_DIFFERENCES = ("openingDifference", "closingDifference")
REASONS = ("code", "subject", "message", "settledBy", "effect")
PREFIX = "Completeness."
_ACCOUNT = pl.col("accountId")
_LARGEST_FIRST = [False, True, False]
_Tables: TypeAlias = Mapping[str, pl.DataFrame]
_DETAILS = pl.Schema(
    {
        BY_CUSTOMER: pl.Int64(),
        "place": pl.Int32(),
        "nth": pl.Int64(),
        **dict.fromkeys(("code", "subject", "message", "settledBy"), pl.String()),
    }
)


@dataclass(frozen=True)
class Reason:
    """`rows`: one for each reason, the most important first; the others are expressions over them.

    `subject`: the account, statement or lender that it is about; null: the customer.
    """

    code: str
    rows: pl.DataFrame
    message: pl.Expr
    settled_by: pl.Expr
    subject: pl.Expr = field(default_factory=lambda: pl.lit(None))

    def details(self, place: int) -> pl.DataFrame:
        nth = pl.int_range(pl.len()).over(BY_CUSTOMER)
        return self.rows.select(
            BY_CUSTOMER,
            place=pl.lit(place),
            nth=nth,
            code=pl.lit(self.code),
            subject=self.subject.cast(pl.String),
            message=self.message,
            settledBy=self.settled_by,
        ).filter(pl.col("nth") < MAX_OF_A_KIND)


def reasons(tables: _Tables) -> pl.DataFrame:
    """Return one row per reason, in the order to report them: `customer_number` and REASONS.

    `effect`: points that completenessScore would rise if this alone were resolved; null if that is unknown.

    Args:
        tables: the rows of the report's tables and of EFFECTS, by the table's id.
    """
    others = (kind for table, of in _OTHERS if not tables[table.id].is_empty() for kind in of(tables))
    kinds = enumerate([*_customer_reasons(tables), *others])
    found = [reason.details(place) for place, reason in kinds if not reason.rows.is_empty()]
    details = pl.concat([pl.DataFrame(schema=_DETAILS), *found])
    effects = tables[EFFECTS.id].select(BY_CUSTOMER, "code", "subject", "effect")
    keys = [BY_CUSTOMER, "code", "subject"]
    known = pl.when(~pl.col("code").is_in(UNKNOWN)).then(pl.col("effect").fill_null(0).cast(SCORE))
    return (
        details.join(effects, on=keys, how="left", validate="m:1", nulls_equal=True)
        .sort(BY_CUSTOMER, "place", "nth")
        .with_columns(effect=known)
        .select(BY_CUSTOMER, *REASONS)
        .with_columns(code=pl.lit(PREFIX) + pl.col("code"))
    )


def _customer_reasons(tables: _Tables) -> Iterator[Reason]:
    fresh, quality, transfers = tables[FRESHNESS.id], tables[QUALITY.id], tables[TRANSFERS.id]
    through, first, count = pl.col("dataThrough"), pl.col("firstDate"), pl.col("transactionCount")
    history = (through - first).dt.total_days() + 1
    yield Reason(
        "NoTransactions",
        fresh.filter(through.is_null()),
        pl.lit("There are no posted transactions."),
        pl.lit("supply the transactions of all accounts"),
    )
    yield Reason(
        "Stale",
        fresh.filter(pl.col("daysBehind") > STALE_AFTER),
        pl.format("The last row is {} days old.", "daysBehind"),
        pl.format("supply all accounts from {}", _day(through + pl.duration(days=1))),
    )
    yield Reason(
        "ShortHistory",
        fresh.filter(history < SHORT_HISTORY),
        pl.format("The history covers only {}.", count_text(history, "day", "days")),
        pl.format("supply all accounts from {}", _day(through - pl.duration(days=SHORT_HISTORY - 1))),
    )
    seen = pl.col("daysSeen")
    yield Reason(
        "FewDaysSeen",
        tables[SUMMARY.id].filter(seen > 0, seen < YEAR),
        pl.format(
            "Only {}.", count_text(seen, f"of the last {YEAR} days is seen", f"of the last {YEAR} days are seen")
        ),
        pl.when(seen == YEAR - 1)
        .then(pl.lit("supply the accounts that were in use on the other day"))
        .otherwise(pl.format("supply the accounts that were in use on the other {} days", YEAR - seen)),
    )
    with_balance = pl.col("rowsWithBalance")
    yield Reason(
        "NoBalances",
        quality.filter(count > 0, with_balance == 0),
        pl.lit("No row has a balance, so a missing row can't be noticed."),
        pl.lit("supply the balance after each transaction"),
    )
    yield Reason(
        "PartialBalances",
        quality.filter(with_balance > 0, with_balance < count),
        pl.format("The balance is missing on {} of {}.", count - with_balance, count_text(count, "row", "rows")),
        pl.lit("supply the balance after each transaction"),
    )
    yield Reason(
        "RejectedRows",
        quality.filter(pl.col("rejectedRows") > 0),
        pl.format("{} rejected.", count_text(pl.col("rejectedRows"), "row was", "rows were")),
        pl.lit("correct the rows that the jobs' errors name, and send them again"),
    )
    yield Reason(
        "BackdatedRows",
        quality.filter(pl.col("backdatedRows") > 0),
        pl.format(
            "{} added to a period that had already been submitted.",
            count_text(pl.col("backdatedRows"), "row was", "rows were"),
        ),
        pl.lit("confirm the added rows with statements from the bank"),
    )
    yield Reason(
        "Uncategorised",
        quality.filter(pl.col("uncategorisedShare") > _ratio(MUCH_UNKNOWN)),
        pl.format("{} of the money moved is uncategorised.", percent_text(pl.col("uncategorisedShare"))),
        pl.lit("correct the categories of the largest uncategorised transactions"),
    )
    yield Reason(
        "OneSidedTransfers",
        transfers.filter(pl.col("oneSidedShare") > _ratio(MUCH_ONE_SIDED)),
        pl.format(
            "{} of the money moved went to or from own accounts that were not supplied.",
            percent_text(pl.col("oneSidedShare")),
        ),
        pl.lit("supply the accounts on the other side"),
    )


def _unidentified_account_reasons(tables: _Tables) -> Iterator[Reason]:
    yield Reason(
        "UnidentifiedAccount",
        tables[ACCOUNTS.id].filter(~pl.col("identified")).sort(BY_CUSTOMER, "accountId"),
        pl.lit("Some rows came without account details and are treated as one unidentified account."),
        pl.lit("send them again with accountNumber, or with bankName, accountName and accountType"),
        _ACCOUNT,
    )


def _ended_account_reasons(tables: _Tables) -> Iterator[Reason]:
    """Yield accounts that stop while others go on: windows end with the last row of all, so only this shows it."""
    fresh = tables[FRESHNESS.id].select(BY_CUSTOMER, "dataThrough")
    silent = (pl.col("dataThrough") - pl.col("lastDate")).dt.total_days()
    ended = (
        tables[ACCOUNTS.id]
        .join(fresh, on=BY_CUSTOMER, validate="m:1")
        .filter(silent > pl.col("longestPause"))
        .sort(BY_CUSTOMER, "lastDate", "accountId")
    )
    yield Reason(
        "AccountEnds",
        ended.pipe(_add_label, tables[ACCOUNTS.id]),
        pl.format("The last row of {} is {} days older than that of another account.", "label", silent),
        pl.format(
            "supply {} from {}, or confirm that it is closed", "label", _day(pl.col("lastDate") + pl.duration(days=1))
        ),
        _ACCOUNT,
    )


def _holder_reasons(tables: _Tables) -> Iterator[Reason]:
    yield Reason(
        "HeldBySomebodyElse",
        tables[HOLDERS.id].filter(pl.col("belongsTo") == "somebody_else").sort(BY_CUSTOMER, "accountId"),
        pl.format("The account named {} is in neither the customer's name nor a related party's.", "accountName"),
        pl.lit("confirm who holds the account, or declare the holder as a related party"),
        _ACCOUNT,
    )


def _similar_account_reasons(tables: _Tables) -> Iterator[Reason]:
    similar = tables[SIMILAR.id].sort(BY_CUSTOMER, "accountId", "otherAccountId")
    yield Reason(
        "SimilarAccounts",
        similar.pipe(_add_label, tables[ACCOUNTS.id]),
        pl.format("Two accounts look the same: {} and another. They agree on {} days.", "label", "sameDays"),
        pl.lit("retract the submissions of one of them, if they are the same"),
        _ACCOUNT,
    )


def _repeated_submission_reasons(tables: _Tables) -> Iterator[Reason]:
    repeated = tables[REPEATED.id].sort(BY_CUSTOMER, "sameDays", "accountId", descending=_LARGEST_FIRST)
    yield Reason(
        "RepeatedSubmissions",
        repeated.pipe(_add_label, tables[ACCOUNTS.id]),
        pl.format("Submissions of {} look the same. They agree on {} days, which count twice.", "label", "sameDays"),
        pl.lit("retract one of them, if they are the same"),
        _ACCOUNT,
    )


def _statement_reasons(tables: _Tables) -> Iterator[Reason]:
    """Yield reasons about files that can't be relied on as they are; each is a reason to check the file."""
    listed = (
        tables[STATEMENTS.id]
        .pipe(_add_label, tables[ACCOUNTS.id])
        .with_columns(pl.col("label").fill_null("an account without rows"), period=_period())
    )
    in_order = [BY_CUSTOMER, "accountId", "periodStart", "statementId"]
    of_period = pl.format("The statement of {}{}", "label", "period")
    yield Reason(
        "UnreconciledStatement",
        listed.filter(pl.col("verdict") == "unreconciled").sort(in_order),
        pl.format("{} prints no balances, or balances that don't agree with its rows.", of_period),
        pl.format("supply the bank's own file of {}{}", "label", "period"),
        pl.col("statementId"),
    )
    differing = pl.any_horizontal((pl.col(name) != 0).fill_null(value=False) for name in _DIFFERENCES)
    yield Reason(
        "StatementBalanceDiffers",
        listed.filter(differing).sort(in_order),
        pl.format("{} has an opening or closing balance that differs from that of the stored rows.", of_period),
        pl.format("supply {} again, beginning with the period before", "label"),
        pl.col("statementId"),
    )
    found = tables[SIGNALS.id].filter(pl.col("severity").is_in(_SHOWN_SEVERITIES))
    signalled = (
        listed.join(
            found.sort("code", "page")
            .group_by(BY_CUSTOMER, "statementId")
            .agg(codes=pl.col("code").unique(maintain_order=True)),
            on=[BY_CUSTOMER, "statementId"],
            validate="1:1",
        )
        .with_columns(codes=pl.col("codes").list.join(", "))
        .sort(in_order)
    )
    yield Reason(
        "TamperSignals",
        signalled,
        pl.format(
            "{} may have been changed after the bank made the file: {}. There can be a harmless cause.",
            of_period,
            "codes",
        ),
        pl.format(
            "get the original file of {}{} from the bank, or from the customer's online banking", "label", "period"
        ),
        pl.col("statementId"),
    )


def _period() -> pl.Expr:
    """Return the statement's period as the end of a sentence; empty if the statement doesn't state it."""
    details = pl.format(" from {} to {}", _day(pl.col("periodStart")), _day(pl.col("periodEnd")))
    return pl.coalesce(details, pl.lit(""))


def _gap_reasons(tables: _Tables) -> Iterator[Reason]:
    """Yield one reason per account and kind of evidence."""
    likely, evidence = pl.col("likely"), pl.col("evidence")
    is_break = evidence == "balance_break"
    is_minor = likely.is_in(("rounding", "ordering"))
    listed = tables[GAPS.id].with_columns(kind=pl.when(is_break & is_minor).then(likely).otherwise(evidence))
    again = "supply {} again from {} to {}"
    messages = {
        "balance_break": (
            "BalanceBreaks",
            "Balances of {} that do not follow from the rows before them: {}. Rows are missing or wrong.",
            again,
        ),
        "rounding": (
            "Rounding",
            f"Balances of {{}} that differ from their rows by at most ${ROUNDING}: {{}}. No rows are missing.",
            "supply the amounts and balances of {}, unrounded, from {} to {}",
        ),
        "ordering": (
            "RowOrder",
            "Days of {} whose balances follow only in another order of the day's rows: {}. No rows are missing.",
            "supply the rows of {} in the bank's order, from {} to {}",
        ),
        "silence": ("Silences", "Gaps in {} that are longer than its usual activity explains: {}.", again),
        "series_missing": ("SeriesMissing", "Months of {} without any of its recurring payments: {}.", again),
        "statement_period": (
            "StatementPeriodMissing",
            "Periods of {} between two submissions that neither of them covers: {}.",
            again,
        ),
        "statement_missing": (
            "StatementMissing",
            "Periods of {} between two statements that no statement covers: {}.",
            again,
        ),
    }
    for kind, (code, message, settled_by) in messages.items():
        counts = (
            listed.filter(pl.col("kind") == kind)
            .group_by(BY_CUSTOMER, "accountId")
            .agg(found=pl.len(), begins=pl.col("lastSeen").min(), ends=pl.col("nextSeen").max())
            .pipe(_add_label, tables[ACCOUNTS.id])
            .sort(BY_CUSTOMER, "found", "accountId", descending=_LARGEST_FIRST)
        )
        period = (_day(pl.col("begins")), _day(pl.col("ends")))
        yield Reason(
            code, counts, pl.format(message, "label", "found"), pl.format(settled_by, "label", *period), _ACCOUNT
        )


def _mention_reasons(tables: _Tables) -> Iterator[Reason]:
    number = pl.col("maskedNumber").str.strip_prefix("xx")
    account = pl.coalesce(pl.format("account ending {}", number), pl.format("the account called {}", "name"))
    moved = pl.col("totalIn") + pl.col("totalOut")
    yield Reason(
        "MentionedAccount",
        tables[MENTIONED.id].sort(
            BY_CUSTOMER, moved, pl.coalesce("maskedNumber", "name"), descending=_LARGEST_FIRST, nulls_last=True
        ),
        pl.format(
            "{} {}, which wasn't supplied: {} in all.",
            count_text(pl.col("transferCount"), "transfer mentions", "transfers mention"),
            account,
            dollars_text(moved),
        ),
        pl.format("supply {} from {}", account, _day(pl.col("firstDate"))),
        pl.coalesce("maskedNumber", "name"),
    )


def _lender_reasons(tables: _Tables) -> Iterator[Reason]:
    yield Reason(
        "UnsharedLender",
        tables[LENDERS.id].sort(BY_CUSTOMER, "totalRepaid", "lender", descending=_LARGEST_FIRST, nulls_last=True),
        pl.format(
            "{} was repaid to {}, whose facility wasn't supplied.", dollars_text(pl.col("totalRepaid")), "lender"
        ),
        pl.format("supply the facility's statement by {} from {}", "lender", _day(pl.col("firstDate"))),
        pl.col("lender"),
    )


def _quarter_reasons(tables: _Tables) -> Iterator[Reason]:
    far = (pl.col("varianceShare").abs() > _ratio(MUCH_VARIANCE)) & pl.col("isCovered")
    yield Reason(
        "BasVariance",
        tables[BAS.id].filter(far).sort(BY_CUSTOMER, "quarter", descending=[False, True]),
        pl.format("Revenue banked in {} differs from declared G1 by {}.", "quarter", dollars_text(pl.col("variance"))),
        pl.format("supply the accounts into which sales of {} were paid, or the lodged statement", "quarter"),
        pl.col("quarter"),
    )


# Reasons that no customer has if this table is empty, in the order to report them.
_OTHERS: Sequence[tuple[Table, Callable[[_Tables], Iterator[Reason]]]] = (
    (ACCOUNTS, _unidentified_account_reasons),
    (ACCOUNTS, _ended_account_reasons),
    (HOLDERS, _holder_reasons),
    (SIMILAR, _similar_account_reasons),
    (REPEATED, _repeated_submission_reasons),
    (STATEMENTS, _statement_reasons),
    (GAPS, _gap_reasons),
    (MENTIONED, _mention_reasons),
    (LENDERS, _lender_reasons),
    (BAS, _quarter_reasons),
)


def _add_label(rows: pl.DataFrame, accounts: pl.DataFrame) -> pl.DataFrame:
    """Add `label`: how messages name the account."""
    ending = pl.col("accountNumberMasked").str.tail(4)
    label = pl.coalesce(
        pl.format("account ending {}", ending),
        pl.format("account {}", "accountName"),
        pl.lit("the unidentified account"),
    )
    return rows.join(
        accounts.select(BY_CUSTOMER, "accountId", label=label),
        on=[BY_CUSTOMER, "accountId"],
        how="left",
        validate="m:1",
        maintain_order="left",
    )


def _day(day: pl.Expr) -> pl.Expr:
    return day.dt.to_string("%-d %b %Y")


def _ratio(value: str) -> pl.Expr:
    return pl.lit(value).cast(RATIO)
