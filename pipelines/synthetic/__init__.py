"""The synthetic portfolio: small Australian businesses with bank accounts, and the truth about every row.

Demo, tests, benchmarks and training need statements that look real, in any number, whose right answers are known.
Each business is drawn from a seed and its own number, is booked day by day (takings by weekday and season, wages,
super, tax, borrowing, sometimes decline) and is printed in the wording of its banks. Every row carries its category,
counterparty, series and facility, an own transfer's two legs share a pair, and with `faults=True` gaps and
repetitions are labelled too. What the business owes and whether it defaults is given as well (`risk`).

No single row gives the outcome away (`circumstances`). Each business applies for credit on a day, and its statements
end then or a few days later. Some sound ones have adverse rows, or rows that look like window dressing: those carry the
label `lookalike`, and `Business.lookalikes` names the kinds. Some failing ones have no adverse rows at all. With
`lookalikes=True` each kind is carried by a tenth of the businesses or more, to measure false alarms.

Brands, trades, wordings and PDF layouts are the files of `data/`; the code is only what happens with them.

    for business in portfolio(customers=100, months=12, seed=7, until=date(2025, 6, 30)):
        for body in submissions(business):
            ...  # POST it

`business(n, ...)` is the n-th of the portfolio without the others; `plain_rows` is one account for load tests. Training
asks for `part="train"`: those businesses meet no brand and no bank that is held out (`is_held_out`, `held_out_banks`).
"""

from pipelines.synthetic.portfolio import business, portfolio
from pipelines.synthetic.submissions import plain_rows, submissions
from pipelines.synthetic.world.brands import is_held_out
from pipelines.synthetic.world.model import (
    LABELLED,
    Business,
    Facility,
    Latents,
    Lookalike,
    Outcome,
    Part,
    SyntheticAccount,
)
from pipelines.synthetic.world.styles import held_out_banks

__all__ = [
    "LABELLED",
    "Business",
    "Facility",
    "Latents",
    "Lookalike",
    "Outcome",
    "Part",
    "SyntheticAccount",
    "business",
    "held_out_banks",
    "is_held_out",
    "plain_rows",
    "portfolio",
    "submissions",
]
