"""Infer facilities from what payments do, whoever the lender is: money comes in, and debits pay it back.

A **dealing** is all payments of a customer that share a party, or a number (of a mandate or contract) printed in both
the credit and the debits. It is debt if a credit is followed by at least MIN_DEBITS debits that repay it and not much
more: regular ones of one amount that can do so in time, or ones that are each the same share of the takings since the
debit before. Advances on invoices are repaid one by one: a debit with the number of a credit is the same small factor
larger, at least MIN_DEBITS times. That both sides share a party or a number distinguishes debt from a rent after a
deposit, or wages after a customer's payment. Equal payments to a tax office, a month or less apart, pay off a debt:
activity statements differ from month to month.

Otherwise categories that corrections, lists or words decided are never overruled, but the model's are. What is
inferred exists only in the list of facilities: the rows keep their category and `facility_id`, so no metric, event,
score, rule or policy can read it.
"""

from pipelines.enrichment.facilities.inferring.marking import add_inferred
from pipelines.enrichment.facilities.inferring.payments import MIN_DEBITS

__all__ = ["MIN_DEBITS", "add_inferred"]
