"""Compare what was read from a generated statement with the truth."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from itertools import zip_longest

from pipelines.intake.pdf.page.result import Entry, Extraction, Severity, Statement, Verdict
from pipelines.synthetic.pdf import PrintedAccount, PrintedRow, PrintedStatement

PROVED = frozenset({Verdict.RECONCILED, Verdict.RECONCILED_DATES_DOUBTFUL})
DETAILS = ("bank_name", "bsb", "account_number", "period_start", "period_end", "opening", "closing")

_Figures = tuple[date, Decimal, Decimal | None]  # of a row: day, amount, balance


@dataclass(frozen=True)
class Reading:
    """The counts of one file."""

    layout: str
    read: int  # rows
    true: int
    right: int  # rows with the right date and amount
    exact: int  # and the right balance, if printed
    worded: int  # and the right description, except spaces
    placed: int  # and on the right page
    accounts: int
    reconciled: int  # accounts with this verdict, and listings that prove all rows except the oldest
    doubtful: int  # accounts that are reconciled except for their dates
    wrongly_proved: int  # accounts with either verdict although a row is wrong or forged
    details: int  # that are printed
    details_right: int
    flagged: bool  # an account is not proved, or a signal needs review


@dataclass(frozen=True)
class Total:
    """The counts of many files."""

    readings: Sequence[Reading]

    def sum(self, name: str) -> int:
        return sum(getattr(reading, name) for reading in self.readings)

    def share(self, part: str, whole: str) -> float:
        return self.sum(part) / max(1, self.sum(whole))

    def select_layout(self, layout: str) -> "Total":
        return Total([reading for reading in self.readings if reading.layout == layout])


def reading(made: PrintedStatement, found: Extraction, *, forged: bool = False) -> Reading:
    """Compare a file's accounts with the truth in printed order. A missing or extra one has rows but no counterpart.

    Args:
        forged: whether the first account's rows were forged.
    """
    entries = [entry for statement in found.statements for entry in statement.entries]
    rows = made.rows
    pairs = list(zip_longest(made.accounts, found.statements))
    doubtful = sum(each.verdict is Verdict.RECONCILED_DATES_DOUBTFUL for each in found.statements)
    details = [
        is_read
        for account, statement in pairs
        if account and statement
        for is_read in _list_read_details(account, statement)
    ]
    return Reading(
        layout=made.layout,
        read=len(entries),
        true=len(rows),
        right=_count_common(
            ((row.date, row.amount) for row in rows), ((entry.date, entry.amount) for entry in entries)
        ),
        exact=_count_exact_rows(rows, entries),
        worded=_count_common(
            ((row.date, row.amount, _without_spaces(row.description)) for row in rows),
            ((entry.date, entry.amount, _without_spaces(entry.description)) for entry in entries),
        ),
        placed=_count_common(
            ((row.date, row.amount, row.page) for row in rows),
            ((entry.date, entry.amount, entry.boxes[0].page if entry.boxes else 0) for entry in entries),
        ),
        accounts=len(made.accounts),
        reconciled=sum(_is_proved(each) for each in found.statements) - doubtful,
        doubtful=doubtful,
        wrongly_proved=sum(
            statement is not None and _is_wrongly_proved(None if forged and n == 0 else account, statement)
            for n, (account, statement) in enumerate(pairs)
        ),
        details=sum(len(account.shown & set(DETAILS)) for account in made.accounts),
        details_right=sum(details),
        flagged=_is_flagged(found),
    )


def _is_flagged(found: Extraction) -> bool:
    signalled = any(signal.severity is not Severity.INFORMATION for signal in found.signals)
    return signalled or not found.statements or not all(map(_is_proved, found.statements))


def _is_proved(statement: Statement) -> bool:
    """Return whether a statement is proved as far as its printed balances allow."""
    all_but_oldest = {reason.code for reason in statement.reasons} == {"OldestRowUnproved"}
    return statement.verdict in PROVED or (statement.verdict is Verdict.PARTIAL and all_but_oldest)


def _is_wrongly_proved(account: PrintedAccount | None, statement: Statement) -> bool:
    """Return whether a statement is wrongly proved: it has no account, or a wrong row. Doubtful dates may be wrong."""
    if not _is_proved(statement):
        return False
    if account is None:
        return True
    if statement.verdict is Verdict.RECONCILED_DATES_DOUBTFUL:
        return Counter(row.amount for row in account.rows) != Counter(entry.amount for entry in statement.entries)
    true = Counter((row.date, row.amount) for row in account.rows)
    return true != Counter((entry.date, entry.amount) for entry in statement.entries)


def _count_exact_rows(rows: Sequence[PrintedRow], entries: Sequence[Entry]) -> int:
    """Count exact rows. A row without a printed balance matches any entry that no row with a balance matches."""
    read = Counter[_Figures]((entry.date, entry.amount, entry.balance) for entry in entries)
    claimed = read & Counter[_Figures]((row.date, row.amount, row.balance) for row in rows if row.balance is not None)
    left = ((day, amount) for day, amount, _ in (read - claimed).elements())
    return claimed.total() + _count_common(((row.date, row.amount) for row in rows if row.balance is None), left)


def _count_common(true: Iterable[object], read: Iterable[object]) -> int:
    return (Counter(true) & Counter(read)).total()


def _list_read_details(account: PrintedAccount, statement: Statement) -> Sequence[bool]:
    """Return for each printed detail of the account whether it was read."""
    read = {
        "bank_name": _same_bank(account.bank_name, statement),
        "bsb": statement.bsb == account.bsb,
        "account_number": _without_spaces(statement.account_number or "") == account.account_number,
        "period_start": statement.period_start == account.period_start,
        "period_end": statement.period_end == account.period_end,
        "opening": statement.opening_balance == account.opening,
        "closing": statement.closing_balance == account.closing,
    }
    return [read[name] for name in DETAILS if name in account.shown]


def _same_bank(name: str, statement: Statement) -> bool:
    """Return whether a statement is of the bank, which may have shorter and longer names."""
    described = _without_spaces(statement.bank_name or "").casefold()
    true = _without_spaces(name).casefold()
    return bool(described) and (true.startswith(described) or described.startswith(true))


def _without_spaces(text: str) -> str:
    return "".join(text.split())
