"""The sandbox's bank feed: every night, send the days that have passed to the customers that the sandbox made.

A run that was killed can be repeated: a customer's days are recorded as sent in the transaction that accepts them.
"""

from datetime import UTC, date, datetime, timedelta

from dagster import OpExecutionContext, ResourceParam, job, op

from assets.core.runs import QUEUE_TAG
from assets.core.waiting import waits_for_storage
from pipelines.synthetic import submissions
from pipelines.synthetic.sandbox import FEED_DAYS, sandbox_business
from storage.core.models import Queue
from storage.core.store import Store
from storage.customers import customers
from storage.customers.customers import Customer
from storage.sandbox import sandbox_customers
from storage.sandbox.sandbox_customers import SandboxCustomer


@op
@waits_for_storage()
def send_passed_days(context: OpExecutionContext, store: ResourceParam[Store]) -> None:
    """Send what happened until yesterday to each customer that the sandbox made."""
    context.add_output_metadata({"submissions": feed(store, datetime.now(UTC))})


@job(tags={QUEUE_TAG: Queue.PORTFOLIO.value})
def sandbox_feed() -> None:
    """Send the days that have passed to the customers that the sandbox made."""
    send_passed_days()


def feed(store: Store, now: datetime) -> int:
    """Submit the rows of the days until yesterday that were not sent yet. Return the number of submissions."""
    through = now.astimezone(store.settings.zone).date() - timedelta(days=1)
    with store.db.reading() as r:
        behind = sandbox_customers.find_behind(r, through, FEED_DAYS)
        numbers = [each.customer_number for each in behind]
        ids, clients = customers.ids_of(r, numbers), customers.clients_of(r, numbers)
        known = {number: customers.get(r, clients[number], ids[number]) for number in numbers}
    return sum(_send(store, each, known[each.customer_number], through, now) for each in behind)


def _send(store: Store, sandbox_customer: SandboxCustomer, customer: Customer, through: date, now: datetime) -> int:
    """Submit a customer's rows until a day, and return the number of submissions."""
    origin = (sandbox_customer.profile, sandbox_customer.seed, sandbox_customer.months, sandbox_customer.until)
    business = sandbox_business(*origin, name=customer.name, abn=customer.abn)
    landed = sandbox_customers.land(store, submissions(business, sandbox_customer.sent_through, through), now)
    with store.db.writing() as w:
        if not sandbox_customers.advance(w, sandbox_customer, through):
            return 0
        return len(list(sandbox_customers.accept(w, store, customer, landed, None, now)))
