"""The synthetic portfolio: small Australian businesses with bank accounts, and the truth about every row.

Demo, tests, benchmarks and training need statements that look real, in any number, whose right answers are known.
Each business is drawn from a seed and its own number. Its transactions are posted day by day (takings by weekday and
season, wages, super, tax, borrowing, sometimes decline) and printed in the wording of its banks. Every row carries its
category, counterparty, series and facility; the two legs of an own transfer share a pair; with `faults=True` gaps and
repetitions are labelled, too. What the business owes and whether it defaults is given as well (`risk`).

No single row gives the outcome away (`circumstances`). Each business applies for credit on some day, and its statements
end then or a few days later. Some sound businesses have adverse rows, or rows that look like window dressing: such rows
carry the label `lookalike`, and `Business.lookalikes` names the kinds. Some failing ones have no adverse rows at all.
With `lookalikes=True` each kind occurs in a tenth of the businesses or more, to measure false alarms.

Brands, trades, wordings and PDF layouts are files in `data/`; the code says only what happens with them.

    for business in portfolio(customers=100, months=12, seed=7, until=date(2025, 6, 30)):
        for body in submissions(business):
            ...  # POST it

`business(n, ...)` makes only business number `n` of the portfolio, counted from 0. `plain_rows` makes one account for
load tests. `people` makes personal accounts instead (`pipelines.synthetic.people`). Training uses `part="train"`: its
businesses meet no brand and no bank that is held out (`is_held_out`, `held_out_banks`).
"""

from pipelines.synthetic.people import people
from pipelines.synthetic.portfolio import business, portfolio
from pipelines.synthetic.submissions import plain_rows, submissions
from pipelines.synthetic.world.brands import is_held_out
from pipelines.synthetic.world.model import (
    LABELLED,
    Business,
    Facility,
    Income,
    Latents,
    Lookalike,
    Outcome,
    Part,
    Person,
    SyntheticAccount,
)
from pipelines.synthetic.world.styles import held_out_banks

__all__ = [
    "LABELLED",
    "Business",
    "Facility",
    "Income",
    "Latents",
    "Lookalike",
    "Outcome",
    "Part",
    "Person",
    "SyntheticAccount",
    "business",
    "held_out_banks",
    "is_held_out",
    "people",
    "plain_rows",
    "portfolio",
    "submissions",
]
