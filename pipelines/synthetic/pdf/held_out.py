"""Layouts that nobody looks at who works on extraction: what it does with them measures what it does with others.

Whoever reads on stops being such a one.
"""

from collections.abc import Mapping
from types import MappingProxyType

from pipelines.synthetic.pdf.layout import Block, Column, Money, PdfLayout

_ADDRESS = (("", "{name}"), ("", "{street}"), ("", "{suburb}"))

_SUNCORP = PdfLayout(
    bank_name="Suncorp Bank",
    style="Suncorp Bank",
    columns=(
        Column("date", "Date", 45),
        Column("description", "Transaction Details", 115, 210),
        Column("debit", "Withdrawal", 400),
        Column("credit", "Deposit", 470),
        Column("balance", "Account Balance", 552),
    ),
    money=Money(debit="${}", credit="${}", balance=("${} CR", "${} DR"), summary=("${} CR", "${} DR")),
    date_format="%-d %b %Y",
    opening_row="Opening Balance",
    closing_row="Closing Balance",
    carried="Balance Carried Forward",
    brought="Balance Brought Forward",
    breaks=("REF", "CARD", "EFFECTIVE"),
    front=(
        Block(45, 60, (("", "Suncorp Bank"),), size=16, bold=True),
        Block(45, 90, (("", "Business Everyday Account"), ("", "Statement of Account")), size=11, bold=True),
        Block(45, 140, _ADDRESS, size=10, capitals=True),
        Block(330, 60, (("", "Account Details"),), bold=True),
        Block(
            330,
            76,
            (
                ("Account Name", "{name}"),
                ("BSB Number", "{bsb}"),
                ("Account Number", "{number}"),
                ("Statement Number", "{nth}"),
                ("Statement Period", "{start:%d/%m/%Y} - {end:%d/%m/%Y}"),
            ),
            value_at=552,
        ),
        Block(330, 165, (("", "Account Summary"),), bold=True),
        Block(
            330,
            181,
            (
                ("Opening Balance", "{opening}"),
                ("Total Withdrawals", "${debits}"),
                ("Total Deposits", "${credits}"),
                ("Closing Balance", "{closing}"),
            ),
            value_at=552,
        ),
        Block(45, 262, (("", "Details of Transactions"),), size=11, bold=True),
    ),
    head=(
        Block(45, 45, (("", "Business Everyday Account"), ("", "Details of Transactions continued"))),
        Block(400, 45, (("Account Number", "{number}"), ("Page", "{page} of {pages}"))),
    ),
    end=(Block(45, 24, (("", "Summary of Interest and Fees"), ("Credit interest paid this financial year", "$0.00"))),),
    table_at=284,
    later_table_at=90,
    imprint="Suncorp Bank (Norfina Limited ABN 66 010 831 722 AFSL and Australian Credit Licence 229882)",
    adverts=("Please check your statement and tell us promptly about any transaction you don't recognise: 13 11 75.",),
)
_BOQ = PdfLayout(
    bank_name="Bank of Queensland",
    style="Bank of Queensland",
    columns=(
        Column("date", "Posting\nDate", 45),
        Column("value_date", "Effective\nDate", 95),
        Column("description", "Transaction\nDetails", 150, 185),
        Column("debit", "Debit", 400),
        Column("credit", "Credit", 470),
        Column("balance", "Balance", 552),
    ),
    money=Money(balance=("{}CR", "{}DR"), summary=("${}CR", "${}DR")),
    date_format="%d-%b-%y",
    size=8,
    amount_on="last",
    opening_row="Opening Balance",
    totals_row="Totals",
    closing_row="Closing Balance",
    front=(
        Block(45, 60, (("", "BOQ"),), size=20, bold=True),
        Block(45, 90, (("", "Business Transaction Account"),), size=12, bold=True),
        Block(45, 130, _ADDRESS, size=10),
        Block(
            330,
            60,
            (
                ("Account Title", "{name}"),
                ("BSB", "{bsb}"),
                ("Account Number", "{number}"),
                ("Statement Start Date", "{start:%d %B %Y}"),
                ("Statement End Date", "{end:%d %B %Y}"),
                ("Statement No.", "{nth}"),
                ("Page", "{page} of {pages}"),
            ),
            value_at=552,
        ),
        Block(
            45,
            200,
            (
                ("Opening Balance", "{opening}"),
                ("Total Credits", "${credits}"),
                ("Total Debits", "${debits}"),
                ("Closing Balance", "{closing}"),
            ),
            value_at=125,
            across=True,
        ),
    ),
    head=(
        Block(45, 45, (("BSB", "{bsb}"), ("Account Number", "{number}"))),
        Block(400, 45, (("Statement No.", "{nth}"), ("Page", "{page} of {pages}"))),
    ),
    table_at=245,
    later_table_at=90,
    imprint="Bank of Queensland Limited ABN 32 009 656 740 (BOQ). AFSL and Australian Credit Licence 244616",
)
LAYOUTS: Mapping[str, PdfLayout] = MappingProxyType({"suncorp": _SUNCORP, "boq": _BOQ})
