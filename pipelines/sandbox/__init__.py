"""The synthetic book: small Australian businesses with bank accounts, and the truth about every row.

Demo, tests and benchmarks need statements that look real, in any number, whose right answers are known. Each
business is drawn from a seed and its own number, lives through its days (takings by weekday and season, wages,
super, tax, borrowing, sometimes decline) and is printed in the wording of its banks. Every row carries its
category, an own transfer's two legs share a pair, and with `faults=True` gaps and repetitions are labelled too.

    for business in book(customers=100, months=12, seed=7, until=date(2025, 6, 30)):
        for body in submissions(business):
            ...  # POST it

`business(n, ...)` is the book's n-th without the others; `plain_rows` is one account for plain load.
"""

from pipelines.sandbox.book import book, business
from pipelines.sandbox.model import LABELLED, Business, SandboxAccount
from pipelines.sandbox.submissions import plain_rows, submissions

__all__ = ["LABELLED", "Business", "SandboxAccount", "book", "business", "plain_rows", "submissions"]
