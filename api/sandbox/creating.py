"""Make a synthetic business and create it as a customer: attributes, related parties, and transactions as jobs."""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from uuid import UUID

from stdnum.au import abn as check_digits

from api.sandbox.schemas import NewSandboxCustomer
from pipelines.synthetic import Business, submissions
from pipelines.synthetic.sandbox import attributes_of, sandbox_business
from pipelines.vocabulary.errors import Conflict
from storage.core.database import Writing
from storage.core.store import Store
from storage.customers import customers
from storage.customers.customers import Customer, NewCustomer
from storage.enrichment import related_parties
from storage.enrichment.related_parties import Party
from storage.jobs.jobs import Job
from storage.monitoring import attributes
from storage.monitoring.attributes import NewAttribute
from storage.sandbox import sandbox_customers
from storage.sandbox.sandbox_customers import LandedBody, SandboxCustomer

SEEDS = 2**31
SOURCE = "synthetic"
ROLE = "group_company"  # of the companies and trusts of the same people


@dataclass(frozen=True)
class Made:
    """A business whose transactions are stored, but which is no customer yet."""

    business: Business
    drawn: SandboxCustomer  # with 0 in place of the customer's number
    landed: Sequence[LandedBody]


def make(store: Store, sent: NewSandboxCustomer, now: datetime) -> Made:
    """Draw a business, and store its transactions until yesterday."""
    until = now.astimezone(store.settings.zone).date() - timedelta(days=1)
    seed = secrets.randbelow(SEEDS)
    business = sandbox_business(sent.profile, seed, sent.months, until, name=sent.name, abn=sent.abn)
    landed = sandbox_customers.land(store, submissions(business, through=until), now)
    return Made(business, SandboxCustomer(0, sent.profile, seed, sent.months, until, until), landed)


def create(
    w: Writing, store: Store, client_id: UUID, reference: str | None, made: Made, who: str, now: datetime
) -> tuple[Customer, list[Job]]:
    """Create the business as a customer of the client, with everything that is known of it.

    Raises:
        Conflict: the client has a customer with this ABN and reference.
    """
    business, profile = made.business, made.drawn.profile
    valid = check_digits.is_valid(business.abn)
    new = NewCustomer(business.abn, valid, business.name, reference, business.state)
    creation = customers.create(w, client_id, new, who, now)
    if not creation.created:
        raise Conflict("Sandbox.CustomerExists", "A customer with this ABN and reference exists.")
    customer = creation.customer
    today = now.astimezone(store.settings.zone).date()
    known = attributes_of(profile, business, today)
    stated = {name: NewAttribute(value, SOURCE, evidence_date=today) for name, value in known.items()}
    attributes.put(w, customer, stated, who, now)
    related_parties.put(w, customer, [Party(name, None, None, ROLE) for name in business.related], who, now)
    sandbox_customers.add(w, replace(made.drawn, customer_number=customer.number))
    return customer, list(sandbox_customers.accept(w, store, customer, made.landed, who, now))
