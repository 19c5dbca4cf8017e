"""Print lines between or below the rows that have words, days and figures but are not transactions.

Each function writes from a height on and returns the height below what it wrote.
"""

from datetime import date

from pipelines.synthetic.pdf.layout import paper_texts
from pipelines.synthetic.pdf.paper import WIDTH, Paper


def advert(paper: Paper, y: float, words: str, leading: float) -> float:
    """Write an advert between two rows, between rules."""
    paper.rule(y - 4, 70, WIDTH - 70)
    below = _prose(paper, y + 8, words, 90, leading)
    paper.rule(below - 4, 70, WIDTH - 70)
    return below + 14


def fee_table(paper: Paper, y: float, end: date, rows: int, leading: float) -> float:
    """Write sums, rates and days below the rows, in columns of their own."""
    since = f"{end.replace(day=1):%d/%m/%Y}"
    for words, *figures in paper_texts().fee_table:
        paper.write(60, y, words)
        for right, figure in zip((330, 430, 520), figures, strict=True):
            paper.write(right, y, figure.format(since=since, rows=rows), flush_right=True)
        y += leading
    return y


def small_print(paper: Paper, y: float, leading: float) -> float:
    return _prose(paper, y, paper_texts().small_print, 60, leading)


def _prose(paper: Paper, y: float, words: str, left: float, leading: float) -> float:
    for text in paper.lines(words, WIDTH - 2 * left):
        paper.write(left, y, text)
        y += leading
    return y
