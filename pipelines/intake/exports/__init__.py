"""Read files that people have: bank exports as CSV, this project's plain CSV, and the API's own JSON.

    bytes → characters → cells → roles of columns → statements, one per account

Layouts are inferred from the file's contents, not from a template for each bank. Each step reports what it could not
read; a row that can't be right is left for `intake.rows.validate`, which says why.
"""

from pathlib import PurePath

from pipelines.intake.as_sent import Digest, temporary_digest
from pipelines.intake.currencies import CODES, CURRENCY
from pipelines.intake.exports.columns import find_columns
from pipelines.intake.exports.documents import contents_of_json
from pipelines.intake.exports.layout import Layout, parse_layout
from pipelines.intake.exports.one_currency import Basis, InOneCurrency, in_one_currency
from pipelines.intake.exports.plain import plain_refusals, plain_rows, require_submissions, statements_of
from pipelines.intake.exports.sheet import refusal, sheet, text_of
from pipelines.intake.exports.signs import Signs
from pipelines.intake.exports.statements import (
    NO_ROW,
    REFUSED,
    Contents,
    Statement,
    are_same_account,
    contents_of,
    name_accounts,
)
from pipelines.intake.exports.submitting import Submitted, as_submission, job_id, statement_number
from pipelines.vocabulary.errors import InvalidRequest

__all__ = [
    "CODES",
    "CURRENCY",
    "NO_ROW",
    "REFUSED",
    "Basis",
    "Contents",
    "InOneCurrency",
    "Layout",
    "Signs",
    "Statement",
    "Submitted",
    "are_same_account",
    "as_submission",
    "in_one_currency",
    "job_id",
    "name_accounts",
    "parse_layout",
    "plain_refusals",
    "plain_rows",
    "read",
    "read_unmasked",
    "require_submissions",
    "statement_number",
    "statements_of",
]


def read(name: str, content: bytes, layout: Layout | None = None, customer: str | None = None) -> Contents:
    """Return the statements in a file.

    Args:
        name: of the file; it may show the type of account.
        content: of the file.
        layout: the roles of its columns, if the user specified them.
        customer: only this customer's rows count for `signs` and `notes` (`contents_of`).

    Raises:
        InvalidRequest: the file can't be read; the detail is one line with the file's name and the reason.
    """
    try:
        text = text_of(content)
        if is_json(text):
            return contents_of_json(content)
        return _contents_of_text(name, text, layout, temporary_digest, customer)
    except InvalidRequest as error:
        raise InvalidRequest(error.code, f"{name} {error.detail}") from None


def read_unmasked(name: str, content: bytes) -> Contents:
    """Return the statements in a bank's export with card and tax file numbers as sent, for a process without the key
    of their digests.

    Raises:
        InvalidRequest: the file can't be read, or is JSON; the detail is the end of a sentence about the file.
    """
    text = text_of(content)
    if is_json(text):
        raise refusal("IsJson", "is JSON: send its transactions as a submission")
    return _contents_of_text(name, text, None, None)


def _contents_of_text(
    name: str, text: str, layout: Layout | None, digest: Digest | None, customer: str | None = None
) -> Contents:
    cells = sheet(text)
    return contents_of(cells, find_columns(cells, layout), PurePath(name).stem, digest, customer)


def is_json(text: str) -> bool:
    return text.lstrip()[:1] in ("{", "[")
