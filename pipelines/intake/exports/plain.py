"""Convert the contents of an export to plain data and back: they pass from a child process to its parent."""

from collections.abc import Iterator, Sequence
from dataclasses import fields
from itertools import groupby

import polars as pl

from pipelines.intake.as_sent import Digest, mask_rows
from pipelines.intake.export_rows import PlainAccount, PlainRefusal, PlainRow, PlainRows
from pipelines.intake.exports.sheet import refusal
from pipelines.intake.exports.statements import MASKED, Contents, Statement
from pipelines.vocabulary.schemas import LANDED

ROWS_AT_ONCE = 2_000  # decoding a longer list would block other threads for too long
MAX_ACCOUNTS = 20  # of a file; our judgement
LONGEST_TEXT = 200  # characters of an account's field


def plain_rows(contents: Contents) -> Iterator[PlainRows]:
    """Yield the rows of all accounts in parts."""
    names = [field.name for field in fields(PlainRow)]
    for number, statement in enumerate(contents.statements):
        account = PlainAccount(*(getattr(statement, field.name) for field in fields(PlainAccount)))
        rows = statement.rows.with_columns(line=statement.lines).select(names)
        for part in rows.iter_slices(ROWS_AT_ONCE):
            yield PlainRows(account, number, tuple(PlainRow(*row) for row in part.iter_rows()))


def plain_refusals(contents: Contents) -> tuple[PlainRefusal, ...]:
    return tuple(PlainRefusal(*row) for row in contents.refused.select("line", "code", "message").iter_rows())


def statements_of(parts: Sequence[PlainRows], digest: Digest) -> Iterator[Statement]:
    """Yield a statement for each account, with card and tax file numbers masked."""
    names = [field.name for field in fields(PlainRow)]
    for _, of_account in groupby(parts, key=lambda part: part.number):
        same = list(of_account)
        columns = {name: [getattr(row, name) for part in same for row in part.rows] for name in names}
        lines = pl.Series("line", columns.pop("line"), pl.UInt32)
        texts = pl.DataFrame(columns, schema=dict.fromkeys(columns, pl.String))
        rows = texts.with_row_index("position").with_columns(
            type=pl.lit(None, pl.String), malformed=pl.lit([], LANDED["malformed"])
        )
        masked = mask_rows(rows, MASKED, digest).select(LANDED.names()).cast(LANDED)
        yield Statement(rows=masked, lines=lines, **vars(same[0].account))


def require_submissions(statements: Sequence[Statement], most_rows: int) -> None:
    """Require that each statement can become a submission.

    Args:
        statements: of one file.
        most_rows: that a submission may have.

    Raises:
        InvalidRequest: there is none, there are too many, one is too long or its account can't be described, or they
            are several customers'; the detail is the end of a sentence about the file.
    """
    if not statements:
        raise refusal("NoTransactions", "holds no transactions")
    if len({statement.customer for statement in statements}) > 1:
        raise refusal("SeveralCustomers", "names several customers: send the rows of each on their own")
    if any(statement.rows.height > most_rows for statement in statements):
        raise refusal("TooManyRows", f"has more than {most_rows:,} rows of one account: send it in parts")
    if len(statements) > MAX_ACCOUNTS:
        raise refusal("TooManyAccounts", f"names more than {MAX_ACCOUNTS} accounts: send them in several files")
    if any(len(text) > LONGEST_TEXT for statement in statements for text in _account_texts(statement)):
        raise refusal("LongAccount", f"describes an account in more than {LONGEST_TEXT} characters")


def _account_texts(statement: Statement) -> Iterator[str]:
    fields_of_account = (getattr(statement, field.name) for field in fields(PlainAccount))
    return (text for text in fields_of_account if text is not None)
