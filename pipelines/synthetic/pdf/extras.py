"""What stands between rows or below them and is no transaction, though it has words, days and figures, too.

Each draws from a height on, and tells the height below it.
"""

from datetime import date

from pipelines.synthetic.pdf.paper import WIDTH, Paper

_SMALL_PRINT = (
    "Please check every entry on this statement and tell us of any error or unauthorised transaction as soon as you "
    "can. Fees and charges may apply: a transaction that overdraws your account may cost $15.00, and a payment that is "
    "dishonoured $9.00. From 1 July 2024 the fee for a bank cheque is $12.50. Deposits of up to $250,000.00 with each "
    "bank are guaranteed by the Australian Government under the Financial Claims Scheme. If you have a complaint, call "
    "us on 1300 555 010 between 8.00am and 8.00pm, Monday to Friday, or write to us. If you are not satisfied with our "
    "answer you can turn to the Australian Financial Complaints Authority, 1800 931 678. An interest rate of 14.97% "
    "p.a. is charged on unarranged overdrafts. Keep this statement for taxation purposes."
)


def advert(paper: Paper, y: float, words: str, leading: float) -> float:
    """Between two rows, and between two rules."""
    paper.rule(y - 4, 70, WIDTH - 70)
    below = _prose(paper, y + 8, words, 90, leading)
    paper.rule(below - 4, 70, WIDTH - 70)
    return below + 14


def fee_table(paper: Paper, y: float, end: date, rows: int, leading: float) -> float:
    """Sums, rates and days below the rows, in columns of their own."""
    since = f"{end.replace(day=1):%d/%m/%Y}"
    for words, *figures in (
        ("Fees charged this period", "Number", "Rate ($)", "Charge ($)"),
        ("Electronic transactions", str(rows), "0.00", "0.00"),
        ("Assisted withdrawals", "2", "2.50", "5.00"),
        ("Less rebate", "", "", "-5.00"),
        ("Total fees", "", "", "0.00"),
        ("", "", "", ""),
        ("Interest rates", "From", "Balances over ($)", "% p.a."),
        ("Credit interest", since, "5,000.00", "0.10"),
        ("Unarranged overdrawn rate", since, "0.00", "14.97"),
    ):
        paper.write(60, y, words)
        for right, figure in zip((330, 430, 520), figures, strict=True):
            paper.write(right, y, figure, flush_right=True)
        y += leading
    return y


def small_print(paper: Paper, y: float, leading: float) -> float:
    return _prose(paper, y, _SMALL_PRINT, 60, leading)


def _prose(paper: Paper, y: float, words: str, left: float, leading: float) -> float:
    for text in paper.lines(words, WIDTH - 2 * left):
        paper.write(left, y, text)
        y += leading
    return y
