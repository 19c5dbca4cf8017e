"""What the four large banks print."""

from pipelines.intake.pdf.page.result import Kind
from pipelines.synthetic.pdf.layout import Block, Column, Money, PdfLayout

_CR_DR = ("{} CR", "{} DR")
_CBA_IMPRINT = "Commonwealth Bank of Australia ABN 48 123 123 124 AFSL and Australian credit licence 234945"
_WESTPAC_IMPRINT = "Westpac Banking Corporation ABN 33 007 457 141 AFSL and Australian credit licence 233714."
_NAB_IMPRINT = "National Australia Bank Limited ABN 12 004 044 937 AFSL and Australian Credit Licence 230686"
_ANZ_IMPRINT = "Australia and New Zealand Banking Group Limited (ANZ) ABN 11 005 357 522. AFSL and ACL No. 234527."

CBA = PdfLayout(
    bank_name="Commonwealth Bank",
    style="Commonwealth Bank",
    columns=(
        Column("date", "Date", 45),
        Column("description", "Transaction", 110, 228),
        Column("debit", "Debit", 400),
        Column("credit", "Credit", 468),
        Column("balance", "Balance", 552),
    ),
    money=Money(balance=("${} CR", "${} DR"), summary=("${} CR", "${} DR")),
    date_format="%d %b",
    edge_date_format="%d %b %Y",
    amount_on="last",
    breaks=("Card xx", "Value Date:"),
    opening_row="OPENING BALANCE",
    closing_row="CLOSING BALANCE",
    front=(
        Block(45, 60, (("", "Commonwealth Bank"),), size=16, bold=True),
        Block(45, 120, (("", "{name}"), ("", "{street}"), ("", "{suburb}")), size=10),
        Block(
            320,
            70,
            (
                ("Statement {nth}", "(Page {page} of {pages})"),
                ("Account Number", "{bsb_spaced} {number}"),
                ("Statement Period", "{start:%-d %b %Y} - {end:%-d %b %Y}"),
                ("Closing Balance", "{closing}"),
                ("Enquiries", "13 1998"),
            ),
            value_at=552,
        ),
        Block(45, 200, (("", "Business Transaction Account"),), size=13, bold=True),
        Block(
            45,
            222,
            (
                ("", "If this account has an attached overdraft limit or facility which is secured over your"),
                ("", "primary place of residence, you should ensure that the property is adequately insured."),
                ("Name:", "{name}"),
                ("Note:", "Have you checked your statement today? It's easy to find out more about each entry."),
            ),
        ),
    ),
    head=(
        Block(
            320,
            50,
            (("Statement {nth}", "(Page {page} of {pages})"), ("Account Number", "{bsb_spaced} {number}")),
            value_at=552,
        ),
    ),
    end=(
        Block(
            60,
            26,
            (
                ("Opening balance", "{opening}"),
                ("- Total debits", "${debits}"),
                ("+ Total credits", "${credits}"),
                ("= Closing balance", "{closing}"),
            ),
            value_at=125,
            across=True,
        ),
    ),
    table_at=300,
    imprint=_CBA_IMPRINT,
    adverts=(
        "Important information: from 1 October 2024 the monthly account fee changes to $10.00. See commbank.com.au.",
        "Your Credit Interest Rate Summary: balances of $0.00 and over, standard credit interest rate 0.00% p.a.",
    ),
)
NETBANK = PdfLayout(
    bank_name="Commonwealth Bank",
    style="Commonwealth Bank",
    kind=Kind.LISTING,
    columns=(
        Column("date", "Date", 45),
        Column("description", "Transaction details", 115, 270),
        Column("amount", "Amount", 470),
        Column("balance", "Balance", 552),
    ),
    money=Money(amount=("${}", "-${}"), balance=("${}", "-${}")),
    date_format="%d %b %Y",
    breaks=("Card xx", "Value Date:"),
    newest_first=True,
    front=(
        Block(45, 60, (("", "Transaction Summary"),), size=16, bold=True),
        Block(400, 60, (("", "Commonwealth Bank"),), size=11, bold=True),
        Block(45, 90, (("Created", "{issued:%d/%m/%y} 10:14am (Sydney/Melbourne time)"),), size=8),
        Block(
            45,
            120,
            (
                ("", "{name}"),
                (
                    "",
                    "Here's your account information and a list of transactions from {start:%d/%m/%y}-{end:%d/%m/%y}.",
                ),
            ),
        ),
        Block(
            45,
            160,
            (
                ("Account name", "{name}"),
                ("BSB", "{bsb}"),
                ("Account number", "{number}"),
                ("Account type", "Business Transaction Account"),
                ("Date opened", "14/03/2011"),
            ),
            value_at=330,
        ),
    ),
    head=(Block(45, 50, (("", "Transaction Summary"),), bold=True), Block(480, 50, (("Page", "{page} of {pages}"),))),
    end=(
        Block(
            45,
            24,
            (
                (
                    "",
                    "Any pending transactions haven't been included. Cheque proceeds aren't available until cleared.",
                ),
                (
                    "",
                    "While this letter is accurate at the time it's produced, we're not responsible for any reliance.",
                ),
            ),
            size=7.5,
        ),
    ),
    table_at=260,
    later_table_at=80,
    imprint=_CBA_IMPRINT,
    shown=frozenset({"bank_name", "account_name", "bsb", "account_number", "period_start", "period_end"}),
    producer="iText 7",
)
CBA_CARD = PdfLayout(
    bank_name="Commonwealth Bank",
    style="Commonwealth Bank",
    account_type="credit_card",
    columns=(
        Column("date", "Date", 45),
        Column("description", "Transaction Details", 110, 320),
        Column("amount", "Amount (A$)", 552),
    ),
    money=Money(amount=("{}-", "{}"), balance=("${}-", "${}"), summary=("${}-", "${}")),
    date_format="%d %b",
    balances="none",
    opening_row="Opening balance",
    closing_row="Closing balance",
    front=(
        Block(45, 60, (("", "CommBank"), ("", "Business Credit Card")), size=14, bold=True),
        Block(45, 120, (("", "{name}"), ("", "{street}"), ("", "{suburb}"))),
        Block(
            330,
            60,
            (
                ("Account number", "{number_in_fours}"),
                ("Statement period", "{start:%d %b %Y} - {end:%d %b %Y}"),
                ("Credit limit", "${limit}"),
                ("Page", "{page} of {pages}"),
            ),
            value_at=552,
        ),
        Block(
            330,
            130,
            (
                ("Opening balance", "{opening}"),
                ("New transactions and charges", "${debits}"),
                ("Payments/refunds", "-${credits}"),
                ("Closing balance", "{closing}"),
            ),
            value_at=552,
        ),
        Block(
            45,
            200,
            (("Minimum payment required", "${least}"), ("Payment due date", "{due:%d %b %Y}")),
            value_at=280,
            bold=True,
        ),
        Block(
            45,
            240,
            (
                ("", "Minimum Repayment Warning: If you make only the minimum payment each month, you will pay more"),
                ("", "interest and it will take you longer to pay off your balance."),
            ),
            size=7.5,
        ),
    ),
    head=(Block(45, 50, (("Account number", "{number_in_fours}"),)), Block(480, 50, (("Page", "{page} of {pages}"),))),
    table_at=290,
    later_table_at=80,
    imprint=_CBA_IMPRINT,
    shown=frozenset(
        {"bank_name", "account_name", "account_number", "period_start", "period_end", "opening", "closing"}
    ),
    adverts=("Interest free days: pay your closing balance in full by the due date to enjoy up to 55 days.",),
)
WESTPAC = PdfLayout(
    bank_name="Westpac",
    style="Westpac",
    columns=(
        Column("date", "DATE", 45),
        Column("description", "TRANSACTION DESCRIPTION", 100, 230),
        Column("debit", "DEBIT", 405),
        Column("credit", "CREDIT", 475),
        Column("balance", "BALANCE", 552),
    ),
    money=Money(summary=("+ ${}", "- ${}")),
    date_format="%d/%m/%y",
    opening_row="STATEMENT OPENING BALANCE",
    closing_row="CLOSING BALANCE",
    front=(
        Block(45, 55, (("", "Westpac Business One"),), size=14, bold=True),
        Block(45, 80, (("Electronic Statement", ""),), size=8),
        Block(45, 120, (("", "{name}"), ("", "{street}"), ("", "{suburb}")), size=10),
        Block(330, 70, (("Statement Period", ""), ("", "{start:%-d %B %Y} - {end:%-d %B %Y}")), bold=True),
        Block(330, 110, (("Account Name", ""), ("", "{name}"), ("Customer ID", ""), ("", "4127 8830"))),
        Block(330, 175, (("BSB", ""), ("", "{bsb}"))),
        Block(430, 175, (("Account Number", ""), ("", "{number}"))),
        Block(
            330,
            220,
            (
                ("Opening Balance", "{opening}"),
                ("Total Credits", "+ ${credits}"),
                ("Total Debits", "- ${debits}"),
                ("Closing Balance", "{closing}"),
            ),
            value_at=552,
        ),
        Block(45, 300, (("", "TRANSACTIONS"),), bold=True),
        Block(
            45,
            316,
            (
                (
                    "",
                    "Please check all entries on this statement and promptly inform Westpac of any possible error.",
                ),
            ),
            size=7,
        ),
    ),
    head=(
        Block(45, 50, (("", "TRANSACTIONS"), ("", "Westpac Business One")), bold=True),
        Block(440, 50, (("Statement No.", "{nth}"), ("Page", "{page} of {pages}"))),
    ),
    end=(
        Block(45, 22, (("", "CONVENIENCE AT YOUR FINGERTIPS"),), bold=True),
        Block(
            45,
            36,
            (("", "Telephone Banking 132 142. Effective {end:%d %b %Y} interest rates are on our website."),),
            0,
            8,
        ),
    ),
    table_at=340,
    later_table_at=90,
    imprint=_WESTPAC_IMPRINT,
    adverts=("Fees in the next statement period may differ. Transaction Fee(s) period 1 AUG to 31 AUG Total $0.00",),
)
NAB = PdfLayout(
    bank_name="NAB",
    style="NAB",
    columns=(
        Column("date", "Date", 45),
        Column("description", "Particulars", 105, 215),
        Column("debit", "Debits", 390),
        Column("credit", "Credits", 462),
        Column("balance", "Balance", 552),
    ),
    money=Money(balance=("{} Cr", "{} Dr"), summary=("${} Cr", "${} Dr")),
    date_format="%-d %b %Y",
    date_on_first_row=True,
    balances="day",
    leaders=True,
    amount_on="last",
    spacing=0.6,
    gap=1.5,
    opening_row="Brought forward",
    carried="Carried forward",
    brought="Brought forward",
    front=(
        Block(45, 60, (("", "NAB Business Everyday Account"),), size=14, bold=True),
        Block(45, 78, (("", "For further information call the Business Servicing Team on 13 10 12"),), size=7.5),
        Block(45, 130, (("", "{name}"), ("", "{street}"), ("", "{suburb}")), size=10, capitals=True),
        Block(
            310,
            105,
            (
                ("Opening balance", "{opening}"),
                ("Total credits", "${credits}"),
                ("Total debits", "${debits}"),
                ("Closing balance", "{closing}"),
            ),
            value_at=552,
        ),
        Block(310, 90, (("", "Account Balance Summary"),), bold=True),
        Block(
            310,
            170,
            (("Statement starts", "{start:%-d %B %Y}"), ("Statement ends", "{end:%-d %B %Y}")),
            value_at=552,
        ),
        Block(
            45,
            215,
            (("", "Outlet Details"), ("", "Haymarket"), ("", "681-705 George Street"), ("", "Haymarket NSW 2000")),
        ),
        Block(310, 215, (("", "Account Details"),), bold=True),
        Block(
            310,
            229,
            (
                ("", "{name}"),
                ("", "Business Everyday Account"),
                ("BSB number", "{bsb}"),
                ("Account number", "{number_in_threes}"),
            ),
            value_at=552,
        ),
        Block(45, 300, (("", "Transaction Details"),), size=11, bold=True),
    ),
    head=(
        Block(
            310,
            45,
            (
                ("Statement number", "{nth}"),
                ("Statement starts", "{start:%-d %B %Y}"),
                ("Statement ends", "{end:%-d %B %Y}"),
                ("Page", "{page} of {pages}"),
            ),
            value_at=552,
        ),
        Block(45, 45, (("", "NAB Business Everyday Account"), ("", "Transaction Details (continued)")), bold=True),
    ),
    table_at=322,
    later_table_at=115,
    imprint=_NAB_IMPRINT,
    adverts=("Please note: the Bank's lending indicator rates changed. Base rate 9.62% from 17 June 2024.",),
)
NAB_LISTING = PdfLayout(
    bank_name="NAB",
    style="NAB",
    kind=Kind.LISTING,
    columns=(
        Column("date", "Date", 45),
        Column("description", "Transaction details", 105, 210),
        Column("debit", "Debit", 400),
        Column("credit", "Credit", 470),
        Column("balance", "Balance", 552),
    ),
    money=Money(debit="-${}", credit="+${}", balance=("+${}", "-${}")),
    date_format="%d %b %y",
    newest_first=True,
    front=(
        Block(45, 55, (("", "NAB Internet Banking"),), size=13, bold=True),
        Block(45, 80, (("", "Transaction history"),), size=12, bold=True),
        Block(
            45,
            105,
            (
                ("Account:", "Business Everyday Account {bsb} {number}"),
                ("Name:", "{name}"),
                ("Period:", "{start:%d %b %Y} to {end:%d %b %Y}"),
                ("Transactions listed:", "{rows}"),
                ("Printed:", "{issued:%d %B %Y}"),
            ),
        ),
    ),
    head=(Block(45, 45, (("", "NAB Internet Banking"),)), Block(490, 45, (("", "{page}/{pages}"),))),
    table_at=195,
    later_table_at=75,
    imprint=_NAB_IMPRINT,
    shown=frozenset({"bank_name", "account_name", "bsb", "account_number", "period_start", "period_end"}),
    producer="Skia/PDF m126",
)
ANZ = PdfLayout(
    bank_name="ANZ",
    style="ANZ",
    columns=(
        Column("date", "Date", 45),
        Column("description", "Transaction Details", 95, 230),
        Column("debit", "Withdrawals ($)", 405),
        Column("credit", "Deposits ($)", 475),
        Column("balance", "Balance ($)", 552),
    ),
    money=Money(balance=("{}", "{} OD"), summary=("${}", "${} OD")),
    date_format="%d %b",
    capitals=True,
    year_rows=True,
    blank="blank",
    opening_row="OPENING BALANCE",
    totals_row="TOTALS AT END OF PERIOD",
    carried="TOTALS AT END OF PAGE",
    carries_totals=True,
    front=(
        Block(45, 55, (("", "ANZ BUSINESS EXTRA STATEMENT"),), size=14, bold=True),
        Block(45, 78, (("STATEMENT NUMBER", "{nth}"),)),
        Block(45, 94, (("", "{start:%d %B %Y} TO {end:%d %B %Y}"),), capitals=True),
        Block(45, 140, (("", "{name}"), ("", "{street}"), ("", "{suburb}")), size=10, capitals=True),
        Block(330, 60, (("", "Account Details"),), bold=True),
        Block(
            330,
            76,
            (
                ("Account Name", ""),
                ("", "{name}"),
                ("Branch Number (BSB)", "{bsb}"),
                ("Account Number", "{number_dashed}"),
            ),
            value_at=552,
        ),
        Block(
            45,
            230,
            (
                ("Opening Balance:", "{opening}"),
                ("Total Deposits:", "${credits}"),
                ("Total Withdrawals:", "${debits}"),
                ("Closing Balance:", "{closing}"),
            ),
            value_at=125,
            across=True,
        ),
        Block(45, 285, (("", "Transaction Details"),), size=11, bold=True),
        Block(45, 299, (("", "Please retain this statement for taxation purposes"),), size=7.5),
    ),
    head=(
        Block(45, 45, (("", "ANZ BUSINESS EXTRA STATEMENT"),), bold=True),
        Block(400, 45, (("Account Number", "{number_dashed}"), ("Page", "{page} of {pages}"))),
    ),
    table_at=322,
    later_table_at=90,
    imprint=_ANZ_IMPRINT,
    adverts=("IMPORTANT INFORMATION: PLEASE CHECK THE ENTRIES AND CALL 13 13 14 REGARDING ANY ERRORS.",),
)
ANZ_INTERIM = PdfLayout(
    bank_name="ANZ",
    style="ANZ",
    kind=Kind.INTERIM,
    columns=(
        Column("date", "Date", 45),
        Column("description", "Details", 115, 220),
        Column("debit", "Debit", 410),
        Column("credit", "Credit", 480),
        Column("balance", "Balance", 552),
    ),
    money=Money(balance=_CR_DR, summary=_CR_DR),
    date_format="%d/%m/%Y",
    opening_row="Balance brought forward from last statement",
    closing_row="Current balance",
    front=(
        Block(45, 55, (("", "ANZ"),), size=16, bold=True),
        Block(45, 80, (("", "Interim Statement of Account"),), size=13, bold=True),
        Block(45, 98, (("", "Transactions since your last statement. This is not a formal statement."),), size=8),
        Block(
            45,
            125,
            (
                ("Account name:", "{name}"),
                ("BSB:", "{bsb}"),
                ("Account number:", "{number}"),
                ("From:", "{start:%d/%m/%Y}"),
                ("To:", "{end:%d/%m/%Y}"),
                ("Balance at start:", "{opening}"),
                ("Current balance:", "{closing}"),
            ),
        ),
    ),
    head=(Block(45, 45, (("Interim Statement of Account - page", "{page}"),)),),
    table_at=235,
    later_table_at=75,
    imprint=_ANZ_IMPRINT,
)
ANZ_CARD = PdfLayout(
    bank_name="ANZ",
    style="ANZ",
    account_type="credit_card",
    columns=(
        Column("date", "Date\nProcessed", 45),
        Column("value_date", "Date of\nTransaction", 110),
        Column("description", "Transaction\nDetails", 180, 210),
        Column("amount", "Amount ($A)", 465),
        Column("balance", "Balance", 552),
    ),
    money=Money(amount=("{} CR", "{}"), balance=("{} CR", "{}"), summary=("${} CR", "${}")),
    date_format="%d/%m/%Y",
    front=(
        Block(45, 55, (("", "ANZ"),), size=16, bold=True),
        Block(45, 80, (("", "ANZ BUSINESS VISA STATEMENT"),), size=13, bold=True),
        Block(45, 130, (("", "{name}"), ("", "{street}"), ("", "{suburb}")), size=10, capitals=True),
        Block(
            330,
            60,
            (
                ("Account Number", "{number_in_fours}"),
                ("Statement Period", "{start:%d/%m/%Y} - {end:%d/%m/%Y}"),
                ("Credit Limit", "${limit}"),
                ("Payment Due Date", "{due:%d/%m/%Y}"),
                ("Minimum Monthly Payment", "${least}"),
            ),
            value_at=552,
        ),
        Block(
            330,
            150,
            (
                ("Opening Balance", "{opening}"),
                ("Payments & other credits", "${credits} CR"),
                ("Purchases, cash advances & charges", "${debits}"),
                ("Closing Balance", "{closing}"),
            ),
            value_at=552,
        ),
    ),
    head=(
        Block(45, 45, (("", "ANZ BUSINESS VISA STATEMENT"),), bold=True),
        Block(400, 45, (("Account Number", "{number_in_fours}"), ("Page", "{page} of {pages}"))),
    ),
    table_at=240,
    later_table_at=90,
    imprint=_ANZ_IMPRINT,
    shown=frozenset(
        {"bank_name", "account_name", "account_number", "period_start", "period_end", "opening", "closing"}
    ),
)
