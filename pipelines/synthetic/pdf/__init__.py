"""Bank statements as PDF files, drawn as banks print them, with the truth about every row.

The rows come from the synthetic portfolio, in the words of the bank. The paper differs from seed to seed as real files
do (`print_variants`). Tests and benchmarks of extraction need pages whose right answers are known, in any number.

    made = statement_pdf("westpac", seed=7, pages=10)
    made.content, made.accounts[0].rows

The layouts of `HELD_OUT` (`data/layouts_held_out`) measure extraction on layouts that it was not developed with. Don't
look at them when you work on extraction. `stress` is one of `STRESSES`, `forgery` one of `FORGERIES`. A forgery changes
the first account: its `rows` are then the forged rows as printed, not the true ones.
"""

from pipelines.synthetic.pdf.layout import EVERY_LAYOUT, HELD_OUT, LAYOUTS, PdfLayout
from pipelines.synthetic.pdf.print_variants import STRESSES
from pipelines.synthetic.pdf.printed import PrintedAccount, PrintedRow, PrintedStatement
from pipelines.synthetic.pdf.statement import Order, print_statement
from pipelines.synthetic.pdf.tampering import FORGERIES, forgeries_of

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
