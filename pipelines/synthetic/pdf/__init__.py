"""Bank statements as PDF files, drawn as banks print them, with the truth about every row.

The rows come from the synthetic portfolio, in the words of the bank. The paper differs from seed to seed as real files
do (`wear`). Tests and benchmarks of extraction need pages whose right answers are known, in any number.

    made = statement_pdf("westpac", seed=7, pages=10)
    made.content, made.accounts[0].rows

Whoever works on extraction does not look at the layouts of `HELD_OUT` (`data/layouts_held_out`): they measure how it
does on layouts that it never saw. `stress` is one of `STRESSES`, `forgery` one of `FORGERIES`. A forgery changes the
first account, whose rows are then those printed and no longer those that were true.
"""

from pipelines.synthetic.pdf.layout import EVERY_LAYOUT, HELD_OUT, LAYOUTS, PdfLayout
from pipelines.synthetic.pdf.printed import PrintedAccount, PrintedRow, PrintedStatement
from pipelines.synthetic.pdf.statement import Order, print_statement
from pipelines.synthetic.pdf.tampering import FORGERIES, forgeries_of
from pipelines.synthetic.pdf.wear import STRESSES

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
    """Return a file of a layout: the same bytes for the same arguments.

    `pages` wins over `rows`; without both the file has 12 to 120 rows.
    """
    return print_statement(Order(layout, seed, pages, rows, stress, forgery), EVERY_LAYOUT[layout])
