"""Read files that people have: bank exports as CSV, this project's plain CSV, and the API's own JSON.

    bytes → characters → cells → roles of columns → statements, one per account

Layouts are inferred from the file's contents, not from a template for each bank. Each step reports what it could not
read; a row that can't be right is left for `intake.rows.validate`, which says why.
"""

from pathlib import PurePath

from pipelines.intake.currencies import CODES, CURRENCY
from pipelines.intake.exports.columns import columns_of
from pipelines.intake.exports.documents import contents_of_json
from pipelines.intake.exports.layout import Layout, parse_layout
from pipelines.intake.exports.one_currency import Basis, InOneCurrency, in_one_currency
from pipelines.intake.exports.sheet import sheet, text_of
from pipelines.intake.exports.signs import Signs
from pipelines.intake.exports.statements import NO_ROW, REFUSED, Contents, Statement, contents_of, name_accounts
from pipelines.intake.exports.submitting import Submitted, job_id, statement_number, submitted
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
    "in_one_currency",
    "job_id",
    "name_accounts",
    "parse_layout",
    "read",
    "statement_number",
    "submitted",
]


def read(name: str, content: bytes, layout: Layout | None = None) -> Contents:
    """Return the statements in a file.

    Args:
        name: of the file; it may show the type of account.
        content: of the file.
        layout: the roles of its columns, if the user specified them.

    Raises:
        InvalidRequest: the file can't be read; the detail is one line with the file's name and the reason.
    """
    try:
        text = text_of(content)
        if text.lstrip()[:1] in ("{", "["):
            return contents_of_json(content)
        cells = sheet(text)
        return contents_of(cells, columns_of(cells, layout), PurePath(name).stem)
    except InvalidRequest as error:
        raise InvalidRequest(error.code, f"{name} {error.detail}") from None
