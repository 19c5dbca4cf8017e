"""Reasons: why a reader can't fully rely on the data, in words, and what would resolve it.

Each reason is `{code, message, settledBy}`. Those of the customer come first, then those of accounts, lenders and
quarters, the largest first and at most MOST of a kind. `docs/explanation/completeness.md` lists the codes.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import polars as pl

from pipelines.figures.periods import BY_CUSTOMER
from pipelines.reports.completeness.accounts import ACCOUNTS
from pipelines.reports.completeness.across import LENDERS, MENTIONED, SIMILAR, TRANSFERS
from pipelines.reports.completeness.documents import SIGNALS, STATEMENTS
from pipelines.reports.completeness.gaps import GAPS
from pipelines.reports.completeness.identity import BAS, HOLDERS
from pipelines.reports.completeness.quality import QUALITY
from pipelines.reports.completeness.score import FRESHNESS
from pipelines.vocabulary.printing import RATIO

# Thresholds are our judgement.
STALE_AFTER = 14  # days
SHORT_HISTORY = 90  # days
MUCH_ONE_SIDED = "0.05"  # of turnover
MUCH_UNKNOWN = "0.10"  # of turnover
MUCH_VARIANCE = "0.10"  # of G1
MOST = 5  # reasons of a kind
_SHOWN_SEVERITIES = ("warning", "alert")
_DIFFERENCES = ("openingDifference", "closingDifference")
REASONS = ("code", "message", "settledBy")


@dataclass(frozen=True)
class Reason:
    """`rows`: one for each reason, the most important first; `message` and `settled_by` are expressions over them."""

    code: str
    rows: pl.LazyFrame
    message: pl.Expr
    settled_by: pl.Expr

    def details(self, place: int) -> pl.LazyFrame:
        nth = pl.int_range(pl.len()).over(BY_CUSTOMER)
        return self.rows.select(
            BY_CUSTOMER,
            place=pl.lit(place),
            nth=nth,
            code=pl.lit(f"Completeness.{self.code}"),
            message=self.message,
            settledBy=self.settled_by,
        ).filter(pl.col("nth") < MOST)


def reasons(frames: Mapping[str, pl.DataFrame]) -> pl.LazyFrame:
    """Return one row per reason, in the order to print them: `customer_number` and REASONS.

    Args:
        frames: the rows of the report's tables, by the table's id.
    """
    tables = {name: rows.lazy() for name, rows in frames.items()}
    kinds = [
        *_of_customers(tables),
        *_of_accounts(tables),
        *_of_statements(tables),
        *_of_gaps(tables),
        *_of_others(tables),
    ]
    details = pl.concat([reason.details(place) for place, reason in enumerate(kinds)])
    return details.sort(BY_CUSTOMER, "place", "nth").select(BY_CUSTOMER, *REASONS)


def _of_customers(tables: Mapping[str, pl.LazyFrame]) -> Iterator[Reason]:
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
        pl.format("The history covers only {} days.", history),
        pl.format("supply all accounts before {}", _day(first)),
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
        pl.format("Only {} of {} rows have a balance.", with_balance, count),
        pl.lit("supply the balance after each transaction"),
    )
    yield Reason(
        "RejectedRows",
        quality.filter(pl.col("rejectedRows") > 0),
        pl.format("{} rows were rejected.", "rejectedRows"),
        pl.lit("correct the rows that the jobs' errors name, and send them again"),
    )
    yield Reason(
        "BackdatedRows",
        quality.filter(pl.col("backdatedRows") > 0),
        pl.format("{} rows were added to a period that had already been submitted.", "backdatedRows"),
        pl.lit("confirm the added rows with statements from the bank"),
    )
    yield Reason(
        "Uncategorised",
        quality.filter(pl.col("uncategorisedShare") > _ratio(MUCH_UNKNOWN)),
        pl.format("{} % of the money moved is uncategorised.", _percent("uncategorisedShare")),
        pl.lit("correct the categories of the largest uncategorised transactions"),
    )
    yield Reason(
        "OneSidedTransfers",
        transfers.filter(pl.col("oneSidedShare") > _ratio(MUCH_ONE_SIDED)),
        pl.format(
            "{} % of the money moved went to or from own accounts that were not supplied.", _percent("oneSidedShare")
        ),
        pl.lit("supply the accounts on the other side"),
    )


def _of_accounts(tables: Mapping[str, pl.LazyFrame]) -> Iterator[Reason]:
    accounts = tables[ACCOUNTS.id].sort(BY_CUSTOMER, "accountId")
    yield Reason(
        "UnidentifiedAccount",
        accounts.filter(~pl.col("identified")),
        pl.lit("Some rows came without account details and are treated as one unidentified account."),
        pl.lit("send them again with accountNumber, or with bankName, accountName and accountType"),
    )
    yield Reason(
        "HeldBySomebodyElse",
        tables[HOLDERS.id].filter(pl.col("belongsTo") == "somebody_else").sort(BY_CUSTOMER, "accountId"),
        pl.format("The account named {} is in neither the customer's name nor a related party's.", "accountName"),
        pl.lit("confirm who holds the account, or declare the holder as a related party"),
    )
    similar = tables[SIMILAR.id].sort(BY_CUSTOMER, "accountId", "otherAccountId")
    yield Reason(
        "SimilarAccounts",
        similar.pipe(_with_label, accounts),
        pl.format("Two accounts look the same: {} and another. They agree on {} days.", "label", "sameDays"),
        pl.lit("retract the submissions of one of them, if they are the same"),
    )


def _of_statements(tables: Mapping[str, pl.LazyFrame]) -> Iterator[Reason]:
    """Yield reasons about files that can't be relied on as they are, each only a reason to look."""
    listed = (
        tables[STATEMENTS.id]
        .pipe(_with_label, tables[ACCOUNTS.id])
        .with_columns(pl.col("label").fill_null("an account without rows"), period=_period())
    )
    in_order = [BY_CUSTOMER, "accountId", "periodStart", "statementId"]
    of_period = pl.format("The statement of {}{}", "label", "period")
    yield Reason(
        "UnreconciledStatement",
        listed.filter(pl.col("verdict") == "unreconciled").sort(in_order),
        pl.format("{} prints no balances, or balances that don't agree with its rows.", of_period),
        pl.format("supply the bank's own file of {}{}", "label", "period"),
    )
    differing = pl.any_horizontal((pl.col(name) != 0).fill_null(value=False) for name in _DIFFERENCES)
    yield Reason(
        "StatementBalanceDiffers",
        listed.filter(differing).sort(in_order),
        pl.format("{} has an opening or closing balance that differs from that of the stored rows.", of_period),
        pl.format("supply {} again, beginning with the period before", "label"),
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
    )


def _period() -> pl.Expr:
    """Return the statement's period as the end of a sentence; empty if the statement doesn't state it."""
    details = pl.format(" from {} to {}", _day(pl.col("periodStart")), _day(pl.col("periodEnd")))
    return pl.coalesce(details, pl.lit(""))


def _of_gaps(tables: Mapping[str, pl.LazyFrame]) -> Iterator[Reason]:
    """Yield one reason per account and kind of evidence."""
    gaps = tables[GAPS.id]
    messages = {
        "balance_break": (
            "BalanceBreaks",
            "Balances of {} that do not follow from the rows before them: {}. Rows are missing or wrong.",
        ),
        "silence": ("Silences", "Gaps in {} that are longer than its usual activity explains: {}."),
        "series_missing": ("SeriesMissing", "Months of {} without any of its recurring payments: {}."),
        "statement_period": (
            "StatementPeriodMissing",
            "Periods of {} between two submissions that neither of them covers: {}.",
        ),
        "statement_missing": ("StatementMissing", "Periods of {} between two statements that no statement covers: {}."),
    }
    for evidence, (code, message) in messages.items():
        counts = (
            gaps.filter(pl.col("evidence") == evidence)
            .group_by(BY_CUSTOMER, "accountId")
            .agg(found=pl.len(), begins=pl.col("lastSeen").min(), ends=pl.col("nextSeen").max())
            .pipe(_with_label, tables[ACCOUNTS.id])
            .sort(BY_CUSTOMER, "found", "accountId", descending=[False, True, False])
        )
        again = pl.format("supply {} again from {} to {}", "label", _day(pl.col("begins")), _day(pl.col("ends")))
        yield Reason(code, counts, pl.format(message, "label", "found"), again)


def _of_others(tables: Mapping[str, pl.LazyFrame]) -> Iterator[Reason]:
    number = pl.col("maskedNumber").str.strip_prefix("xx")
    called = pl.coalesce(pl.format("account ending {}", number), pl.format("the account called {}", "name"))
    moved = pl.col("totalIn") + pl.col("totalOut")
    largest = [False, True, False]
    yield Reason(
        "MentionedAccount",
        tables[MENTIONED.id].sort(
            BY_CUSTOMER, moved, pl.coalesce("maskedNumber", "name"), descending=largest, nulls_last=True
        ),
        pl.format("Transfers mention {}, which wasn't supplied: {} of them, {} AUD.", called, "transferCount", moved),
        pl.format("supply {} from {}", called, _day(pl.col("firstDate"))),
    )
    yield Reason(
        "UnsharedLender",
        tables[LENDERS.id].sort(BY_CUSTOMER, "totalRepaid", "lender", descending=largest, nulls_last=True),
        pl.format("{} AUD were repaid to {}, whose facility wasn't supplied.", "totalRepaid", "lender"),
        pl.format("supply the facility's statement by {} from {}", "lender", _day(pl.col("firstDate"))),
    )
    far = (pl.col("varianceShare").abs() > _ratio(MUCH_VARIANCE)) & pl.col("isCovered")
    yield Reason(
        "BasVariance",
        tables[BAS.id].filter(far).sort(BY_CUSTOMER, "quarter", descending=[False, True]),
        pl.format("Revenue banked in {} differs from declared G1 by {} AUD.", "quarter", "variance"),
        pl.format("supply the accounts into which sales of {} were paid, or the lodged statement", "quarter"),
    )


def _with_label(rows: pl.LazyFrame, accounts: pl.LazyFrame) -> pl.LazyFrame:
    """Add what the account is called in a sentence."""
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


def _percent(share: str) -> pl.Expr:
    return (pl.col(share) * 100).cast(pl.Decimal(38, 1))


def _ratio(value: str) -> pl.Expr:
    return pl.lit(value).cast(RATIO)
