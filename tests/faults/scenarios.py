"""Scenarios: what a lender does while things break. To add one, write a function here.

A scenario asks and waits as a client does; it asserts nothing about what a fault may change. What must hold is
checked afterwards, by `invariants.py`, for every scenario alike.
"""

from collections.abc import Callable

from tests.faults.lender import Lender

Scenario = Callable[[Lender], None]


def submits_and_refreshes(lender: Lender) -> None:
    """Run the main job: three overlapping submissions with two subscriptions, then the reports."""
    lender.subscribe("job.completed")
    lender.subscribe("job.enrichment.completed")
    customer, rows = lender.customer(), lender.rows(30)
    lender.wait_for_job(lender.submit(customer, rows[:20]))
    more = lender.submit(customer, rows[10:])
    other = lender.submit(customer, lender.rows(5), accountNumber="998877665")
    for job in (more, other):
        lender.wait_for_job(job)
    lender.wait_for_job(lender.refresh(customer))


def submits_with_keys(lender: Lender) -> None:
    """Create everything with an Idempotency-Key."""
    lender.sends_keys = True
    customer = lender.customer()
    lender.wait_for_job(lender.submit(customer, lender.rows(20)))
    lender.wait_for_job(lender.refresh(customer))


def submits(lender: Lender) -> None:
    """Run the shortest scenario that ends with a webhook."""
    lender.subscribe("job.completed")
    lender.wait_for_job(lender.submit(lender.customer(), lender.rows(20)))


def submits_good_and_bad(lender: Lender) -> None:
    """Submit for two customers at once: one job with a bad row, one with only bad rows."""
    lender.subscribe("job.completed")
    lender.subscribe("job.failed")
    bad = [{"date": "2026-02-30", "description": "RENT", "amount": -1}]
    mixed = lender.submit(lender.customer(), lender.rows(10), bad=bad)
    nothing = lender.submit(lender.customer(), [], bad=bad)
    for job in (mixed, nothing):
        lender.wait_for_job(job)


def submits_for_many(lender: Lender) -> None:
    """Submit for ten customers at once, which makes one batch or a few."""
    lender.subscribe("job.completed")
    jobs = [lender.submit(lender.customer(), lender.rows(20)) for _ in range(10)]
    for job in jobs:
        lender.wait_for_job(job)


def submits_again_for_many(lender: Lender) -> None:
    """Submit for ten customers, then again for two of three, so that the first files are mostly obsolete."""
    rows = {lender.customer(): lender.rows(30) for _ in range(10)}
    again = {customer: rows[customer] for i, customer in enumerate(rows) if i % 3}
    for these, some in ((rows, slice(20)), (again, slice(10, None))):
        for job in [lender.submit(customer, these[customer][some]) for customer in these]:
            lender.wait_for_job(job)


def retracts(lender: Lender) -> None:
    """Retract two overlapping submissions, then send some of their rows again."""
    lender.subscribe("job.completed")
    customer, rows = lender.customer(), lender.rows(20)
    for some in (rows[:15], rows[5:]):
        lender.wait_for_job(lender.submit(customer, some))
    lender.retract_everything(customer)
    lender.wait_for_job(lender.submit(customer, rows[10:]))


LONG_HISTORY = [{"date": day, "description": "SALE", "amount": 10.0} for day in ("2026-06-01", "2026-10-30")]


def watches(lender: Lender) -> None:
    """Create a ruleset that triggers on histories of more than 30 days."""
    rule = {"code": "LONG", "message": "Long.", "condition": {"moreThan": [{"metric": "history_days"}, "30"]}}
    lender.data("POST", "/v1/monitoring/rulesets", {"slug": "long", "name": "Long", "rules": [rule]})


def is_watched(lender: Lender) -> None:
    """Let a rule trigger, stay true, be reset when everything is retracted, and trigger again."""
    lender.subscribe("monitoring.rule.triggered")
    watches(lender)
    customer = lender.customer()
    short, more = ([{"date": day, "description": "SALE", "amount": 5.0}] for day in ("2026-10-31", "2026-10-29"))
    for rows in (short, LONG_HISTORY, more):
        lender.wait_for_job(lender.submit(customer, rows))
    lender.retract_everything(customer)
    lender.wait_for_job(lender.submit(customer, LONG_HISTORY))
