"""Bank statements as PDF files, drawn as banks print them, with the truth about every row.

The rows come from the synthetic portfolio, worded by the bank whose paper it is; the paper differs from seed to seed as
files do (`wear`). Tests and benchmarks of extraction need pages whose right answers are known, in any number.

    made = statement_pdf("westpac", seed=7, pages=10)
    made.content, made.accounts[0].rows

`HELD_OUT` are layouts that nobody looks at who works on extraction: they measure how it does on what it never saw.
`stress` is one of `STRESSES`, `forgery` one of `FORGERIES`, done to the first account: its rows are then those printed,
no longer those that were true.
"""

from collections.abc import Mapping
from types import MappingProxyType

from pipelines.synthetic.pdf import held_out
from pipelines.synthetic.pdf.banks import LAYOUTS
from pipelines.synthetic.pdf.layout import PdfLayout
from pipelines.synthetic.pdf.printed import PrintedAccount, PrintedRow, PrintedStatement
from pipelines.synthetic.pdf.statement import Order, printed
from pipelines.synthetic.pdf.tampering import FORGERIES, forgeries_of
from pipelines.synthetic.pdf.wear import STRESSES

HELD_OUT: Mapping[str, PdfLayout] = held_out.LAYOUTS
EVERY_LAYOUT: Mapping[str, PdfLayout] = MappingProxyType({**LAYOUTS, **HELD_OUT})

__all__ = [
    "EVERY_LAYOUT",
    "FORGERIES",
    "HELD_OUT",
    "LAYOUTS",
    "STRESSES",
    "PdfLayout",
    "PrintedAccount",
    "PrintedRow",
    "PrintedStatement",
    "forgeries_of",
    "statement_pdf",
]


def statement_pdf(
    layout: str,
    seed: int,
    *,
    pages: int | None = None,
    rows: int | None = None,
    stress: str | None = None,
    forgery: str | None = None,
) -> PrintedStatement:
    """A file of that layout; the same bytes for the same wishes. `pages` wins over `rows`; without both it is short."""
    return printed(Order(layout, seed, pages, rows, stress, forgery), EVERY_LAYOUT[layout])
