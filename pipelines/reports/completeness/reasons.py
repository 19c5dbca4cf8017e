"""Reasons: why a reader can't fully rely on the data, in words, and what would resolve it.

Each reason is `{code, subject, message, settledBy, effect}`. Those of the customer come first, then those of accounts,
lenders and quarters, the largest first and at most MAX_OF_A_KIND of a kind. `docs/explanation/completeness.md` lists
the codes.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from typing import Any, TypeAlias

import polars as pl

from pipelines.figures.accounts import ROUNDING
from pipelines.figures.periods import BY_CUSTOMER
from pipelines.figures.tables import Table
from pipelines.pages.wording import day, money, percent, quantity
from pipelines.reports.completeness.accounts import ACCOUNTS
from pipelines.reports.completeness.across import LENDERS, MENTIONED, MUCH_ONE_SIDED, REPEATED, SIMILAR, TRANSFERS
from pipelines.reports.completeness.causes import SHORT_HISTORY, STALE_AFTER
from pipelines.reports.completeness.coverage import YEAR_DAYS
from pipelines.reports.completeness.documents import REPLACED, SIGNALS, STATEMENTS
from pipelines.reports.completeness.effects import EFFECTS, UNKNOWN
from pipelines.reports.completeness.gaps import GAPS
from pipelines.reports.completeness.identity import BAS, HOLDERS
from pipelines.reports.completeness.quality import QUALITY
from pipelines.reports.completeness.score import FRESHNESS, SUMMARY
from pipelines.vocabulary.report_values import SCORE

# Thresholds are our judgement.
MUCH_UNKNOWN = Decimal("0.10")  # of turnover
MUCH_VARIANCE = Decimal("0.10")  # of G1
MAX_OF_A_KIND = 5  # reasons of a kind
MAX_NAMED = 3  # rows in a message
_SHOWN_SEVERITIES = ("warning", "alert")
_DIFFERENCES = ("openingDifference", "closingDifference")
REASONS = ("code", "subject", "message", "settledBy", "effect")
PREFIX = "Completeness."
_Row: TypeAlias = Mapping[str, Any]
_DETAILS = pl.Schema({BY_CUSTOMER: pl.Int64(), **dict.fromkeys(REASONS[:-1], pl.String()), "effect": SCORE})
_ADD_BALANCES = "supply the balance after each transaction"


@dataclass(frozen=True)
class Reason:
    """`subject`: the account, statement or lender that it is about; None: the customer."""

    code: str
    message: str
    settled_by: str
    subject: str | None = None


class _Tables:
    """The rows of a customer in the report's tables."""

    def __init__(self, rows: Mapping[str, Sequence[_Row]]) -> None:
        self._rows = rows

    def rows(self, table: Table) -> Sequence[_Row]:
        return self._rows.get(table.id, ())

    def only(self, table: Table) -> _Row:
        """Return the row of a table without keys."""
        [row] = self._rows[table.id]
        return row

    def label(self, account_id: str | None) -> str:
        """Return how messages name the account."""
        for account in self.rows(ACCOUNTS):
            if account["accountId"] == account_id:
                if account["accountNumberMasked"] is not None:
                    return f"account ending {account['accountNumberMasked'][-4:]}"
                name = account["accountName"]
                return "the unidentified account" if name is None else f"account {name}"
        return "an account without rows"


def reasons(tables: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    """Return one row per reason, in the order to report them: `customer_number` and REASONS.

    `effect`: by how many points completenessScore would rise if this alone were resolved; null if that is unknown.

    Args:
        tables: the rows of the report's tables and of EFFECTS, by the table's id.
    """
    effects = tables[EFFECTS.id].select(BY_CUSTOMER, "code", "subject", "effect").rows()
    effect_of = {(number, code, subject): effect for number, code, subject, effect in effects}
    by_customer: dict[int, dict[str, list[_Row]]] = defaultdict(lambda: defaultdict(list))
    for table in _READ:
        for row in tables[table.id].iter_rows(named=True):
            by_customer[row[BY_CUSTOMER]][table.id].append(row)
    rows = list[tuple[object, ...]]()
    for number in sorted(by_customer):
        counts = Counter[str]()
        for reason in _list_reasons(_Tables(by_customer[number])):
            counts[reason.code] += 1
            if counts[reason.code] <= MAX_OF_A_KIND:
                gained = effect_of.get((number, reason.code, reason.subject), Decimal(0))
                effect = None if reason.code in UNKNOWN else gained
                rows.append((number, PREFIX + reason.code, reason.subject, reason.message, reason.settled_by, effect))
    return pl.DataFrame(rows, schema=_DETAILS, orient="row")


def _list_reasons(tables: _Tables) -> Iterator[Reason]:
    """Yield a customer's reasons, the most important of a kind first."""
    for kind in _KINDS:
        yield from kind(tables)


def _customer_reasons(tables: _Tables) -> Iterator[Reason]:
    fresh, quality, transfers = tables.only(FRESHNESS), tables.only(QUALITY), tables.only(TRANSFERS)
    first, through = fresh["firstDate"], fresh["dataThrough"]
    if through is None:
        yield Reason(
            "NoTransactions",
            "There are no posted transactions.",
            "supply the transactions of all accounts",
        )
    else:
        yield from _history_reasons(first, through, fresh["daysBehind"])
    yield from _days_seen_reasons(tables.only(SUMMARY)["daysSeen"])
    yield from _quality_reasons(quality)
    if (transfers["oneSidedShare"] or 0) > Decimal(MUCH_ONE_SIDED):
        yield Reason(
            "OneSidedTransfers",
            f"{percent(transfers['oneSidedShare'])} of the money moved went to or from own accounts that were not "
            "supplied.",
            "supply the accounts on the other side",
        )


def _history_reasons(first: date, through: date, days_behind: int) -> Iterator[Reason]:
    if days_behind > STALE_AFTER:
        yield Reason(
            "Stale",
            f"The last row is {days_behind} days old.",
            f"supply all accounts from {day(through + timedelta(days=1))}",
        )
    history = (through - first).days + 1
    if history < SHORT_HISTORY:
        yield Reason(
            "ShortHistory",
            f"The history covers only {quantity(history, 'day')}.",
            f"supply all accounts from {day(through - timedelta(days=SHORT_HISTORY - 1))}",
        )


def _days_seen_reasons(seen: int) -> Iterator[Reason]:
    if 0 < seen < YEAR_DAYS:
        verb = "is" if seen == 1 else "are"
        unseen = "on the other day" if seen == YEAR_DAYS - 1 else f"on the other {YEAR_DAYS - seen} days"
        yield Reason(
            "FewDaysSeen",
            f"Only {seen} of the last {YEAR_DAYS} days {verb} seen.",
            f"supply the accounts that were in use {unseen}",
        )


def _quality_reasons(quality: _Row) -> Iterator[Reason]:
    count, with_balance = quality["transactionCount"], quality["rowsWithBalance"]
    if with_balance == 0 < count:
        yield Reason("NoBalances", "No row has a balance, so a missing row can't be noticed.", _ADD_BALANCES)
    if 0 < with_balance < count:
        yield Reason(
            "PartialBalances",
            f"The balance is missing on {count - with_balance} of {quantity(count, 'row')}.",
            _ADD_BALANCES,
        )
    if rejected := quality["rejectedRows"]:
        yield Reason(
            "RejectedRows",
            f"{quantity(rejected, 'row was', 'rows were')} rejected.",
            "correct the rows that the jobs' errors name, and send them again",
        )
    if backdated := quality["backdatedRows"]:
        yield Reason(
            "BackdatedRows",
            f"{quantity(backdated, 'row was', 'rows were')} added to a period that had already been submitted.",
            "confirm the added rows with statements from the bank",
        )
    if (quality["uncategorisedShare"] or 0) > MUCH_UNKNOWN:
        yield Reason(
            "Uncategorised",
            f"{percent(quality['uncategorisedShare'])} of the money moved is uncategorised.",
            "correct the categories of the largest uncategorised transactions",
        )


def _unidentified_account_reasons(tables: _Tables) -> Iterator[Reason]:
    for account in sorted(tables.rows(ACCOUNTS), key=lambda row: row["accountId"]):
        if not account["identified"]:
            yield Reason(
                "UnidentifiedAccount",
                "Some rows came without account details and are treated as one unidentified account.",
                "send them again with accountNumber, or with bankName, accountName and accountType",
                account["accountId"],
            )


def _ended_account_reasons(tables: _Tables) -> Iterator[Reason]:
    """Yield a reason for each account that stops while others go on.

    Nothing else shows it, because periods end with the last row of all accounts.
    """
    through = tables.only(FRESHNESS)["dataThrough"]
    for account in sorted(tables.rows(ACCOUNTS), key=lambda row: (row["lastDate"], row["accountId"])):
        silent = (through - account["lastDate"]).days
        if account["longestPause"] is not None and silent > account["longestPause"]:
            label, since = tables.label(account["accountId"]), day(account["lastDate"] + timedelta(days=1))
            yield Reason(
                "AccountEnds",
                f"The last row of {label} is {silent} days older than that of another account.",
                f"supply {label} from {since}, or confirm that it is closed",
                account["accountId"],
            )


def _holder_reasons(tables: _Tables) -> Iterator[Reason]:
    for account in sorted(tables.rows(HOLDERS), key=lambda row: row["accountId"]):
        if account["belongsTo"] == "somebody_else":
            yield Reason(
                "HeldBySomebodyElse",
                f"The account named {account['accountName']} is in neither the customer's name nor a related party's.",
                "confirm who holds the account, or declare the holder as a related party",
                account["accountId"],
            )


def _similar_account_reasons(tables: _Tables) -> Iterator[Reason]:
    for pair in sorted(tables.rows(SIMILAR), key=lambda row: (row["accountId"], row["otherAccountId"])):
        label = tables.label(pair["accountId"])
        yield Reason(
            "SimilarAccounts",
            f"Two accounts look the same: {label} and another. They agree on {pair['sameDays']} days.",
            "retract the submissions of one of them, if they are the same",
            pair["accountId"],
        )


def _repeated_submission_reasons(tables: _Tables) -> Iterator[Reason]:
    for repeated in sorted(tables.rows(REPEATED), key=lambda row: (-row["sameDays"], row["accountId"])):
        label = tables.label(repeated["accountId"])
        yield Reason(
            "RepeatedSubmissions",
            f"Rows of {label} were sent again and count twice on {repeated['sameDays']} days.",
            "retract the submissions that repeat others",
            repeated["accountId"],
        )


# Reasons to check the file of a statement


def _unreconciled_statement_reasons(tables: _Tables) -> Iterator[Reason]:
    for statement, file in _statements(tables):
        if statement["verdict"] == "unreconciled":
            yield Reason(
                "UnreconciledStatement",
                f"The statement of {file} prints no balances, or balances that don't agree with its rows.",
                f"supply the bank's own file of {file}",
                statement["statementId"],
            )


def _differing_statement_reasons(tables: _Tables) -> Iterator[Reason]:
    for statement, file in _statements(tables):
        if _differs(statement) and not _is_replaced(statement, tables):
            yield Reason(
                "StatementBalanceDiffers",
                f"The statement of {file} has an opening or closing balance that differs from that of the stored rows.",
                f"supply {tables.label(statement['accountId'])} again, beginning with the period before",
                statement["statementId"],
            )


def _differs(statement: _Row) -> bool:
    return any(statement[name] for name in _DIFFERENCES)


def _is_replaced(statement: _Row, tables: _Tables) -> bool:
    """Return whether another statement for the whole period agrees with the rows, and some rows were replaced."""
    account, begins, ends = (statement[name] for name in ("accountId", "periodStart", "periodEnd"))
    others = [each for each in tables.rows(STATEMENTS) if each["accountId"] == account and not _differs(each)]
    return any(row["accountId"] == account for row in tables.rows(REPLACED)) and any(
        None not in (each["periodStart"], each["periodEnd"], begins, ends)
        and each["periodStart"] <= begins
        and each["periodEnd"] >= ends
        for each in others
    )


def _replaced_row_reasons(tables: _Tables) -> Iterator[Reason]:
    replaced: dict[str, list[_Row]] = defaultdict(list)
    for row in tables.rows(REPLACED):
        replaced[row["accountId"]].append(row)
    for account_id, rows in sorted(replaced.items(), key=lambda each: (-len(each[1]), each[0])):
        largest = sorted(rows, key=lambda row: (-abs(row["amount"]), row["date"]))[:MAX_NAMED]
        named = ", ".join(f"{money(row['amount'])} on {day(row['date'])}" for row in largest)
        more = f" and {len(rows) - MAX_NAMED} more" if len(rows) > MAX_NAMED else ""
        yield Reason(
            "ReplacedRows",
            f"A later statement of {tables.label(account_id)} replaced an earlier one of the same period and lacks "
            f"{quantity(len(rows), 'row')} of it: {named}{more}.",
            "confirm the later statement with the bank, or retract its submission if the earlier one is right",
            account_id,
        )


def _tamper_reasons(tables: _Tables) -> Iterator[Reason]:
    signals: dict[str, set[str]] = defaultdict(set)
    for signal in tables.rows(SIGNALS):
        if signal["severity"] in _SHOWN_SEVERITIES:
            signals[signal["statementId"]].add(signal["code"])
    for statement, file in _statements(tables):
        if codes := signals.get(statement["statementId"]):
            yield Reason(
                "TamperSignals",
                f"The statement of {file} may have been changed after the bank made the file: "
                f"{', '.join(sorted(codes))}. There can be a harmless cause.",
                f"get the original file of {file} from the bank, or from the customer's online banking",
                statement["statementId"],
            )


def _statements(tables: _Tables) -> Iterator[tuple[_Row, str]]:
    """Yield each statement, with its account and period in words."""
    in_order = ("accountId", "periodStart", "statementId")
    for statement in sorted(tables.rows(STATEMENTS), key=lambda row: [_nulls_first(row[name]) for name in in_order]):
        yield statement, f"{tables.label(statement['accountId'])}{_period(statement)}"


def _period(statement: _Row) -> str:
    """Return the statement's period as the end of a sentence; empty if the statement doesn't state it."""
    begins, ends = statement["periodStart"], statement["periodEnd"]
    return "" if begins is None or ends is None else f" from {day(begins)} to {day(ends)}"


def _nulls_first(value: Any) -> tuple[bool, Any]:
    return value is not None, value


_AGAIN = "supply {} again from {} to {}"
# By kind of evidence: a reason's code; its message, for an account's name and its number of gaps; and what would
# resolve it, for the account's name and the first and the last day.
_GAPS = {
    "balance_break": (
        "BalanceBreaks",
        "Balances of {} that do not follow from the rows before them: {}. Rows are missing or wrong.",
        _AGAIN,
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
    "silence": ("Silences", "Gaps in {} that are longer than its usual activity explains: {}.", _AGAIN),
    "series_missing": ("SeriesMissing", "Months of {} without any of its recurring payments: {}.", _AGAIN),
    "statement_period": (
        "StatementPeriodMissing",
        "Periods of {} between two submissions that neither of them covers: {}.",
        _AGAIN,
    ),
    "statement_missing": (
        "StatementMissing",
        "Periods of {} between two statements that no statement covers: {}.",
        _AGAIN,
    ),
}


def _gap_reasons(tables: _Tables) -> Iterator[Reason]:
    """Yield one reason per account and kind of evidence."""
    gaps: dict[str, dict[str, list[_Row]]] = {kind: defaultdict(list) for kind in _GAPS}
    for gap in tables.rows(GAPS):
        is_minor = gap["evidence"] == "balance_break" and gap["likely"] in ("rounding", "ordering")
        gaps[gap["likely"] if is_minor else gap["evidence"]][gap["accountId"]].append(gap)
    for kind, (code, message, settled_by) in _GAPS.items():
        for account_id, of_account in sorted(gaps[kind].items(), key=lambda each: (-len(each[1]), each[0])):
            label = tables.label(account_id)
            begins, ends = min(gap["lastSeen"] for gap in of_account), max(gap["nextSeen"] for gap in of_account)
            yield Reason(
                code,
                message.format(label, len(of_account)),
                settled_by.format(label, day(begins), day(ends)),
                account_id,
            )


def _mention_reasons(tables: _Tables) -> Iterator[Reason]:
    for mentioned in sorted(tables.rows(MENTIONED), key=lambda row: (-_total_moved(row), _name_mention(row))):
        number = mentioned["maskedNumber"]
        account = f"the account called {mentioned['name']}" if number is None else f"account ending {number[2:]}"
        mentions = quantity(mentioned["transferCount"], "transfer mentions", "transfers mention")
        yield Reason(
            "MentionedAccount",
            f"{mentions} {account}, which wasn't supplied: {money(_total_moved(mentioned))} in all.",
            f"supply {account} from {day(mentioned['firstDate'])}",
            _name_mention(mentioned),
        )


def _total_moved(mentioned: _Row) -> Decimal:
    total: Decimal = mentioned["totalIn"] + mentioned["totalOut"]
    return total


def _name_mention(mentioned: _Row) -> str:
    text: str = mentioned["name"] if mentioned["maskedNumber"] is None else mentioned["maskedNumber"]
    return text


def _lender_reasons(tables: _Tables) -> Iterator[Reason]:
    for lender in sorted(tables.rows(LENDERS), key=lambda row: (-row["totalRepaid"], row["lender"])):
        yield Reason(
            "UnsharedLender",
            f"{money(lender['totalRepaid'])} was repaid to {lender['lender']}, whose facility wasn't supplied.",
            f"supply the facility's statement by {lender['lender']} from {day(lender['firstDate'])}",
            lender["lender"],
        )


def _quarter_reasons(tables: _Tables) -> Iterator[Reason]:
    for bas in sorted(tables.rows(BAS), key=lambda row: row["quarter"], reverse=True):
        if bas["isCovered"] and abs(bas["varianceShare"] or 0) > MUCH_VARIANCE:
            yield Reason(
                "BasVariance",
                f"Revenue banked in {bas['quarter']} differs from declared G1 by {money(bas['variance'])}.",
                f"supply the accounts into which sales of {bas['quarter']} were paid, or the lodged statement",
                bas["quarter"],
            )


_READ = (
    *(FRESHNESS, SUMMARY, QUALITY, TRANSFERS, ACCOUNTS, HOLDERS, SIMILAR, REPEATED, STATEMENTS, SIGNALS, REPLACED),
    *(GAPS, MENTIONED, LENDERS, BAS),
)
# In the order to report them.
_KINDS: Sequence[Callable[[_Tables], Iterator[Reason]]] = (
    _customer_reasons,
    _unidentified_account_reasons,
    _ended_account_reasons,
    _holder_reasons,
    _similar_account_reasons,
    _repeated_submission_reasons,
    _unreconciled_statement_reasons,
    _differing_statement_reasons,
    _replaced_row_reasons,
    _tamper_reasons,
    _gap_reasons,
    _mention_reasons,
    _lender_reasons,
    _quarter_reasons,
)
