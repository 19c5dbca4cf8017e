"""People with personal accounts: what they live on, what they spend, and the truth about each of their payers.

    for person in people(customers=100, months=12, seed=7, until=date(2025, 6, 30)):
        person.incomes  # who pays them regularly, of what kind, and how often a payment was missed

Each lives in a situation (`people.yaml`): an employee, a casual worker, on a benefit, a pensioner, a landlord, a
contractor, or supported by family. Regular payers miss pay days, change their day and stop for two months, as real ones
do. Friends, shops, the tax office and the person's own savings pay in, too: these are no regular income.
"""

from pipelines.synthetic.people.portfolio import people

__all__ = ["people"]
