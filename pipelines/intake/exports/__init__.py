"""Files that people have: exports of banks as CSV, the plain CSV of this project, and the API's own JSON.

    bytes → characters → cells → what the columns mean → statements, one an account

Layouts are told from what stands in the file, not from a template for each bank. Each step says what it could not
understand; a row that can't be right is left for `intake.rows.validate`, which says why.
"""

from pathlib import PurePath

from pipelines.intake.currencies import CODES, CURRENCY
from pipelines.intake.exports.columns import columns_of
from pipelines.intake.exports.documents import contents_of_json
from pipelines.intake.exports.layout import Layout, parse_layout
from pipelines.intake.exports.one_currency import Basis, InOneCurrency, in_one_currency
from pipelines.intake.exports.sheet import sheet, text_of
from pipelines.intake.exports.signs import Signs
from pipelines.intake.exports.statements import NO_ROW, REFUSED, Contents, Statement, contents_of, distinguished
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
    "distinguished",
    "in_one_currency",
    "job_id",
    "parse_layout",
    "read",
    "statement_number",
    "submitted",
]


def read(name: str, content: bytes, layout: Layout | None = None) -> Contents:
    """The statements in a file of that name; `layout` says what its columns are where the user specified it.

    Raises:
        InvalidRequest: it can't be understood; its detail is one line with the file's name and the reason.
    """
    try:
        text = text_of(content)
        if text.lstrip()[:1] in ("{", "["):
            return contents_of_json(content)
        cells = sheet(text)
        return contents_of(cells, columns_of(cells, layout), PurePath(name).stem)
    except InvalidRequest as error:
        raise InvalidRequest(error.code, f"{name} {error.detail}") from None
