"""Regular income: who pays a customer again and again, how regularly, and what kind of income it probably is.

    credits = list_credits(rows)            # credits that may be an income, by payer
    payers = find_payers(credits, through)  # the payers that pay regularly (schema PAYERS)
    weigh_kinds(payers, credits)            # with the probability of each kind

Series (`recurrence`) are strict, because what is expected next depends on them: a payment missed too often ends them.
An income is all that one payer pays into one account if it comes with some regularity (`cadence`), whatever is missing.
Nothing here changes a transaction: reports and metrics compute it when they need it.
"""

from pipelines.enrichment.income.kinds import KINDS, PROBABILITIES, Kind, weigh_kinds
from pipelines.enrichment.income.payers import PAYER, PAYERS, find_payers, list_credits

__all__ = ["KINDS", "PAYER", "PAYERS", "PROBABILITIES", "Kind", "find_payers", "list_credits", "weigh_kinds"]
